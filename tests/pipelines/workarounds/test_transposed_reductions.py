"""legalize-transposed-reductions: which results get a barrier, and that transposed positions of maxima compile."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import hloforge
from hloforge import Value, ops
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.dialect.values import leaves
from hloforge.pipelines.workarounds.transposed_reductions import LegalizeTransposedReductions
from hloforge.runtime.reference.compare import compare

Build = Callable[[Value], object]


def largest(x: Value) -> Sequence[Value]:
    """The largest elements along the second dimension, and where they are."""

    def larger(a: Value, i: Value, b: Value, j: Value) -> tuple[Value, Value]:
        is_first = ops.gt(a, b)
        return ops.select(is_first, a, b), ops.select(is_first, i, j)

    return leaves(ops.reduce([x, ops.iota("s32", [3, 4, 3], 1)], [-np.inf, 0], larger, [1]))


def positions(x: Value) -> Value:
    return ops.transpose(largest(x)[1], [1, 0])


def both(x: Value) -> tuple[Value, ...]:
    return tuple(ops.transpose(result, [1, 0]) for result in largest(x))


def one_of_two(x: Value) -> tuple[Value, ...]:
    values, places = largest(x)
    return ops.transpose(values, [1, 0]), places


def function_of_positions(x: Value) -> Value:
    half = ops.mul(ops.convert_element_type(largest(x)[1], "f32"), ops.constant(np.full((3, 3), 0.5, np.float32)))
    return ops.transpose(ops.reshape(half, [1, 3, 3]), [2, 0, 1])


def plain(x: Value) -> tuple[Value, ...]:
    values, places = largest(x)
    return values, ops.neg(places)


CASES: dict[Build, int] = {
    positions: 1,
    both: 2,
    one_of_two: 1,
    function_of_positions: 1,
    plain: 0,
}


def built(*builds: Build) -> Program:
    with hloforge.Builder("program") as builder:
        x = builder.parameter(0, "f32[3,4,3]", "x")
        return builder.build(tuple(build(x) for build in builds))


@pytest.mark.parametrize("build", CASES)
def test_results_that_are_transposed_get_a_barrier(build: Build) -> None:
    program = built(build)
    LegalizeTransposedReductions().run(program.module)
    assert len(operations(program.module, {"stablehlo.optimization_barrier"})) == CASES[build]


def test_they_compile() -> None:
    program = built(both, one_of_two, function_of_positions)
    array = np.random.default_rng(0).normal(size=(3, 4, 3)).astype(np.float32)
    report = compare(program.compile("cpu")(array), program.evaluate(array, engine="interpreter"))
    assert report.agrees, report.text()
