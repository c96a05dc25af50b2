"""legalize-whole-windows: values by StableHLO's interpreter; tests/runtime/vulkan_sessions.py runs some."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge import ops
from hloforge.dialect.operations import operations
from hloforge.pipelines.named import stages
from hloforge.pipelines.workarounds.whole_windows import LegalizeWholeWindows
from tests.engines import interpret


@pytest.mark.parametrize(
    ("shape", "window", "attributes", "rewritten"),
    [
        ((2, 2, 2), (2, 2, 2), {}, True),
        ((1, 2, 4, 1), (1, 2, 4, 1), {}, True),
        ((1, 2, 2), (2, 2, 2), {"padding": [(1, 0), (0, 0), (0, 0)]}, True),
        ((3, 3), (2, 2), {"window_dilations": (2, 2)}, True),
        ((2, 3), (3, 5), {"base_dilations": (2, 2)}, True),
        ((5,), (4,), {"window_strides": (2,)}, True),
        ((2, 3), (4, 3), {"padding": [(3, -1), (0, 0)]}, True),
        ((3, 2, 2), (2, 2, 2), {}, False),
        ((1, 1), (1, 1), {}, False),
        ((0, 3), (2, 3), {"padding": [(1, 1), (0, 0)]}, False),
    ],
)
def test_windows(shape: tuple[int, ...], window: tuple[int, ...], attributes: dict[str, Any], rewritten: bool) -> None:
    with hloforge.Builder("program") as builder:
        x = builder.parameter(0, hloforge.Shape.array("f32", *shape), "x")
        program = builder.build(ops.reduce_window(x, 1.0, ops.mul, window, **attributes))
    copy = program.clone()
    LegalizeWholeWindows().run(copy.module)
    assert len(list(operations(copy.module, ["stablehlo.reduce"]))) == rewritten
    given = np.random.default_rng(0).integers(1, 4, shape).astype(np.float32)
    np.testing.assert_array_equal(interpret(copy.module, given)[0], interpret(program.module, given)[0])


def test_several_arrays() -> None:
    def larger(a: hloforge.Value, i: hloforge.Value, b: hloforge.Value, j: hloforge.Value) -> tuple[Any, Any]:
        first = ops.ge(a, b)
        return ops.select(first, a, b), ops.select(first, i, j)

    with hloforge.Builder("program") as builder:
        x = builder.parameter(0, hloforge.Shape.array("f32", 3, 4), "x")
        places = ops.iota("s32", (3, 4), 1)
        inits = [ops.constant(float("-inf"), "f32"), ops.constant(9, "s32")]
        program = builder.build(ops.reduce_window([x, places], inits, larger, (3, 4)))
    copy = program.clone()
    LegalizeWholeWindows().run(copy.module)
    assert not list(operations(copy.module, ["stablehlo.reduce_window"]))
    given = np.random.default_rng(0).permutation(12).astype(np.float32).reshape(3, 4)
    for got, want in zip(interpret(copy.module, given), (given.max(), given.argmax() % 4), strict=True):
        np.testing.assert_array_equal(np.asarray(got).reshape(()), want)


def test_gpus_alone_need_it() -> None:
    named = {target: {str(stage.entry) for stage in stages(target)} for target in ("cpu", "cuda", "vulkan")}
    assert [target for target, found in named.items() if LegalizeWholeWindows.name in found] == ["cuda", "vulkan"]
