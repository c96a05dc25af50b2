"""legalize-crossed-uses: which results get a barrier, and what compiled programs of such uses compute."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hloforge
from hloforge import Value, ops
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.pipelines.workarounds.crossed_uses import LegalizeCrossedUses
from hloforge.runtime.reference.compare import compare

Build = Callable[[Value], Value]


def total(x: Value) -> Value:
    return ops.reduce(x, 0.0, ops.add, [1])


def largest(x: Value) -> Value:
    return ops.reduce(x, -1e30, ops.max, [1])


def along(x: Value, dimension: int) -> Value:
    return ops.broadcast_in_dim(x, [20, 20], [dimension])


def pairs(x: Value) -> Value:
    sums = total(x)
    return ops.sub(along(sums, 0), along(sums, 1))


def pairs_of_functions(x: Value) -> Value:
    sums = total(x)
    return ops.add(along(ops.tanh(sums), 0), along(sums, 1))


def chained_reductions(x: Value) -> Value:
    most = largest(x)
    sums = total(ops.abs(ops.sub(x, along(most, 0))))
    return ops.add(along(most, 0), along(sums, 1))


def outer_product(x: Value) -> Value:
    column = ops.reshape(total(x), [20, 1])
    return ops.neg(ops.dot_general(column, column, ops.DotDimensionNumbers([1], [1])))


def reshaped(x: Value) -> Value:
    sums = total(x)
    return ops.mul(ops.broadcast_in_dim(ops.reshape(sums, [1, 20]), [20, 20], [0, 1]), along(sums, 0))


def product_of_matrices(x: Value) -> Value:
    made = ops.dot(x, x)
    first, second = (ops.broadcast_in_dim(made, [20, 20, 20], dims) for dims in ([0, 1], [0, 2]))
    return ops.sub(first, second)


def softmax(x: Value) -> Value:
    shifted = ops.exp(ops.sub(x, along(largest(x), 0)))
    return ops.div(shifted, along(total(shifted), 0))


def normalized(x: Value) -> Value:
    centred = ops.sub(ops.dot(x, x), along(total(x), 0))
    return ops.div(centred, along(ops.add(total(ops.abs(centred)), 1.0), 0))


CROSSED = (pairs, pairs_of_functions, chained_reductions, outer_product, reshaped, product_of_matrices)


def built(build: Build) -> Program:
    with hloforge.Builder(build.__name__) as builder:
        return builder.build(build(builder.parameter(0, "f32[20,20]", "x")))


def barriers(program: Program) -> int:
    copy = program.clone()
    LegalizeCrossedUses().run(copy.module)
    return len(operations(copy.module, {"stablehlo.optimization_barrier"}))


@pytest.mark.parametrize("build", CROSSED)
def test_crossed_uses_are_held_back(build: Build) -> None:
    assert barriers(built(build)) == 1


@pytest.mark.parametrize("build", [softmax, normalized])
def test_rows_that_meet_themselves_stay_fused(build: Build) -> None:
    assert not barriers(built(build))


def test_compiled_crossed_uses() -> None:
    with hloforge.Builder("all") as builder:
        x = builder.parameter(0, "f32[20,20]", "x")
        program = builder.build(tuple(build(x) for build in CROSSED))
    array = np.random.default_rng(0).integers(-9, 9, (20, 20)).astype(np.float32)
    report = compare(program.compile("cpu")(array), program.evaluate(array, engine="interpreter"))
    assert report.agrees, report.text()
