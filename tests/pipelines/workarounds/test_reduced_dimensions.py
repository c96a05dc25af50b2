"""legalize-reduced-dimensions: which reductions are of one dimension, in memory; vulkan_sessions.py runs some."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hloforge
from hloforge import Value, ops
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import integers, operations
from hloforge.dialect.program import Program
from hloforge.pipelines.named import stages
from hloforge.pipelines.workarounds.reduced_dimensions import LegalizeReducedDimensions
from tests.engines import interpret

Build = Callable[[Value], Value]
_REDUCTIONS = ("stablehlo.reduce",)
X = np.arange(72, dtype=np.int32).reshape(2, 3, 2, 3, 2) % 7 - 3
CUBE = np.arange(24, dtype=np.int32).reshape(3, 2, 2, 2) % 5 - 2


def _program(build: Build, array: np.ndarray) -> Program:
    with hloforge.Builder("program") as builder:
        x = builder.parameter(0, hloforge.Shape.array("s32", *array.shape), "x")
        return builder.build(build(x))


def _sum(x: Value, dims: list[int]) -> Value:
    return ops.reduce(x, ops.constant(np.int32(1)), ops.add, dims)


def _row(x: Value, *dims: int) -> Value:
    """A part of the numbers, along these dimensions of others."""
    part = ops.reshape(
        ops.slice(x, [0] * 4, [1, *(2 if d in dims else 1 for d in (1, 2, 3))], [1] * 4), [2] * len(dims)
    )
    return ops.broadcast_in_dim(ops.optimization_barrier(part), x.dims, dims)


def _squares_of_differences(x: Value) -> Value:
    mean = ops.broadcast_in_dim(_sum(x, [1, 2, 3]), x.dims, [0])
    return ops.mul(ops.sub(x, mean), ops.sub(x, mean))


def _outer(x: Value) -> Value:
    """Of 16 by 5 by 3 numbers."""
    five = ops.reshape(ops.slice(x, [0], [5], [1]), [5])
    three = ops.broadcast_in_dim(ops.slice(x, [0], [3], [1]), [5, 3], [1])
    return ops.dot_general(x, ops.mul(three, ops.broadcast_in_dim(five, [5, 3], [0])), ops.DotDimensionNumbers([], []))


APART: dict[str, tuple[Build, np.ndarray]] = {
    "every second": (lambda x: _sum(x, [0, 2, 4]), X),
    "least": (lambda x: ops.reduce(x, ops.constant(np.int32(9)), ops.min, [0, 2, 4]), X),
    "in another order": (lambda x: _sum(ops.transpose(x, [0, 3, 2, 1]), [1, 2, 3]), CUBE),
    "one of them in another order": (lambda x: _sum(ops.mul(x, ops.transpose(x, [0, 3, 2, 1])), [1, 2, 3]), CUBE),
    "one lacks the others": (lambda x: _sum(ops.mul(x, _row(x, 2)), [1, 2, 3]), CUBE),
    "two groups, a rest of vectors": (lambda x: _sum(x, [0, 2]), np.arange(96, dtype=np.int32).reshape(16, 2, 3)),
    "of an outer product": (lambda x: _sum(_outer(x), [0, 1]), np.arange(16, dtype=np.int32)),
    "two groups of several": (lambda x: _sum(x, [0, 1, 3]), np.arange(192, dtype=np.int32).reshape(4, 8, 2, 3)),
    "each lacks one": (lambda x: _sum(ops.mul(_row(x, 1, 2), _row(x, 2, 3)), [0, 1, 2, 3]), CUBE),
}
TOGETHER: dict[str, tuple[Build, np.ndarray]] = {
    "side by side": (lambda x: _sum(x, [1, 2, 3]), CUBE),
    "all": (lambda x: _sum(ops.neg(x), [0, 1, 2, 3]), CUBE),
    "two groups": (lambda x: _sum(x, [0, 1, 3]), X),
    "two groups of whole vectors": (lambda x: _sum(x, [0, 2]), np.arange(128, dtype=np.int32).reshape(16, 2, 4)),
    "sizes of 1": (lambda x: _sum(ops.reshape(x, [3, 1, 2, 1, 2, 2]), [1, 2, 3, 4]), CUBE),
    "one lacks all": (lambda x: _sum(_squares_of_differences(x), [1, 2, 3]), CUBE),
    "one lacks one at the end": (lambda x: _sum(ops.mul(x, _row(x, 1, 2)), [1, 2, 3]), CUBE),
}


def _reduced(op: ir.Operation) -> int:
    return len(integers(op, "dimensions"))


@pytest.mark.parametrize("name", [*APART, *TOGETHER])
def test_reductions(name: str) -> None:
    build, array = {**APART, **TOGETHER}[name]
    program = _program(build, array)
    copy = program.clone()
    LegalizeReducedDimensions().run(copy.module)
    changed, given = ([_reduced(op) for op in operations(m, _REDUCTIONS)] for m in (copy.module, program.module))
    assert (changed != given) == (name in APART)
    assert changed[-1] == 1 or name in TOGETHER
    got, want = (interpret(module, array)[0] for module in (copy.module, program.module))
    np.testing.assert_array_equal(got, want)


def test_vulkan_alone_needs_it() -> None:
    named = {target: {str(stage.entry) for stage in stages(target)} for target in ("cpu", "cuda", "vulkan")}
    assert [target for target, found in named.items() if LegalizeReducedDimensions.name in found] == ["vulkan"]
