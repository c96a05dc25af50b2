"""legalize-bf16-reductions: least and greatest bf16, found in f32; vulkan_sessions.py runs some."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import hloforge
from hloforge import Value, ops
from hloforge.dialect.operations import operations
from hloforge.pipelines.named import stages
from hloforge.pipelines.workarounds.bf16_reductions import LegalizeBf16Reductions
from tests.engines import interpret

X = np.array([[1, -3, 2, -0.5], [np.inf, 0, -np.inf, 7]], ml_dtypes.bfloat16)


@pytest.mark.parametrize(
    ("combine", "element", "row"), [(ops.max, "bf16", "f32"), (ops.min, "bf16", "f32"), (ops.add, "bf16", "bf16")]
)
def test_reductions(combine: Callable[[Value, Value], Value], element: str, row: str) -> None:
    with hloforge.Builder("program") as builder:
        x = builder.parameter(0, hloforge.Shape.array(element, *X.shape), "x")
        program = builder.build(ops.reduce(x, ops.constant(X.dtype.type(1)), combine, [1]))
    copy = program.clone()
    LegalizeBf16Reductions().run(copy.module)
    (reduction,) = operations(copy.module, ["stablehlo.reduce"])
    assert str(reduction.results[0].type.element_type) == row
    got, want = (interpret(module, X)[0].astype(np.float32) for module in (copy.module, program.module))
    np.testing.assert_array_equal(got, want)


def test_vulkan_alone_needs_it() -> None:
    named = {target: {str(stage.entry) for stage in stages(target)} for target in ("cpu", "cuda", "vulkan")}
    assert [target for target, found in named.items() if LegalizeBf16Reductions.name in found] == ["vulkan"]
