"""Arrays that are read beside an update: IREE's groups of operations would run the readers behind it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hloforge
from hloforge import Value, ops
from hloforge.dialect.program import Program
from hloforge.pipelines.analysis.aliasing import has_readers_beside_updates

Build = Callable[[Value, Value, Value], tuple[Value, ...]]


def beside(x: Value, part: Value, y: Value) -> tuple[Value, ...]:
    """Nothing of the concatenation goes into the update, which may run beside the product."""
    padded = ops.concat_in_dim([ops.broadcast(ops.constant(-1.5, "f32"), [15, 7]), x, x], 1)
    return padded, ops.mul(y, y), ops.dynamic_update_slice(x, part, [7, 0])


def before(x: Value, part: Value, y: Value) -> tuple[Value, ...]:
    """What is written is computed from all that is read."""
    total = ops.reduce(ops.abs(x), 0.0, ops.max, [0, 1])
    return (ops.dynamic_update_slice(x, ops.add(part, ops.broadcast(total, part.dims)), [7, 0]), ops.mul(y, y))


def sorted_beside(x: Value, part: Value, y: Value) -> tuple[Value, ...]:
    return ops.sort(x, dimension=0), ops.abs(x), ops.concat_in_dim([part, y], 0)


def scattered_beside(x: Value, part: Value, y: Value) -> tuple[Value, ...]:
    places = ops.constant(np.array([[3], [5]], np.int32))
    row = ops.slice(part, [0, 0], [2, 1])
    added = ops.scatter(
        x, places, row, ops.add,
        update_window_dims=[1], inserted_window_dims=[0], scatter_dims_to_operand_dims=[0],
    )  # fmt: skip
    return added, ops.abs(x), ops.mul(y, y)


def built(build: Build) -> Program:
    with hloforge.Builder("order") as builder:
        x, part, y = (builder.parameter(n, f"f32[{rows},1]") for n, rows in enumerate((15, 8, 3)))
        return builder.build(build(x, part, y))


@pytest.mark.parametrize(
    ("build", "expected"), [(beside, True), (before, False), (sorted_beside, True), (scattered_beside, True)]
)
def test_programs_that_run_in_order(build: Build, expected: bool) -> None:
    assert has_readers_beside_updates(built(build).module) is expected


@pytest.mark.wide(2)
@pytest.mark.parametrize("build", [beside, before, sorted_beside, scattered_beside])
def test_readers_see_the_array_before_the_update(build: Build) -> None:
    program = built(build)
    inputs = hloforge.random_inputs(program.signature)
    for got, want in zip(program.compile("cpu")(*inputs), program.evaluate(*inputs, engine="xla"), strict=True):
        np.testing.assert_array_equal(got, want)
