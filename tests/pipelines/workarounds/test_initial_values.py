"""legalize-initial-values: barriers before initial values; tests/cuda_emulator/cuda_sessions.py runs some."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge import Value, ops
from hloforge.dialect.operations import defining_op, operations
from hloforge.pipelines.named import stages
from hloforge.pipelines.workarounds.initial_values import LegalizeInitialValues
from tests.engines import interpret


def _behind(value: object) -> int:
    """How many barriers a value is behind."""
    op = defining_op(value)
    return 1 + _behind(op.operands[0]) if op is not None and op.name == "stablehlo.optimization_barrier" else 0


@pytest.mark.parametrize(
    ("shapes", "behind"),
    [
        ([("f32", 3, 8)], [1]),
        ([("f32", 3, 8), ("f32", 3, 8), ("f32", 3, 8)], [1, 2, 3]),
        ([("f32", 3, 8), ("s32", 7, 4), ("u32", 3, 1, 8)], [1, 2, 3]),
        ([("f32", 3, 8), ("f64", 3, 8), ("f32", 2, 9)], [1, 1, 2]),
    ],
)
def test_windows(shapes: list[tuple[str, int]], behind: list[int]) -> None:
    with hloforge.Builder("program") as builder:
        given = [builder.parameter(n, hloforge.Shape.array(*shape)) for n, shape in enumerate(shapes)]
        program = builder.build(tuple(ops.reduce_window(x, 0, ops.add, [1] * (x.rank - 1) + [2]) for x in given))
    copy = program.clone()
    LegalizeInitialValues().run(copy.module)
    assert [_behind(op.operands[1]) for op in operations(copy.module, ["stablehlo.reduce_window"])] == behind
    arrays = [np.random.default_rng(n).integers(0, 9, x.dims).astype(x.element_type.dtype) for n, x in enumerate(given)]
    for got, want in zip(interpret(copy.module, *arrays), interpret(program.module, *arrays), strict=True):
        np.testing.assert_array_equal(got, want)


def test_loops_have_chains_of_their_own() -> None:
    def sums(x: Value) -> Value:
        return ops.pad(ops.reduce_window(x, 0.0, ops.add, [2]), 0.0, [(0, 1, 0)])

    with hloforge.Builder("program") as builder:
        x = builder.parameter(0, "f32[8]", "x")
        zero = ops.constant(0, "s32")
        looped = ops.while_(lambda c: ops.lt(c[0], 3), lambda c: (c[0] + 1, sums(c[1])), (zero, sums(x)))
        program = builder.build(sums(looped[1]))
    copy = program.clone()
    LegalizeInitialValues().run(copy.module)
    copy.module.operation.verify()
    windows = list(operations(copy.module, ["stablehlo.reduce_window"]))
    assert sorted(_behind(op.operands[1]) for op in windows) == [1, 2, 3]
    given = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(interpret(copy.module, given)[0], interpret(program.module, given)[0])


def test_cuda_alone_needs_it() -> None:
    named = {target: {str(stage.entry) for stage in stages(target)} for target in ("cpu", "cuda", "vulkan")}
    assert [target for target, found in named.items() if LegalizeInitialValues.name in found] == ["cuda"]
