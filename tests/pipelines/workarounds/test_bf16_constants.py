"""legalize-bf16-constants: arrays of bf16 from those of f32; vulkan_sessions.py runs one."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hloforge
from hloforge import ops
from hloforge.dialect.operations import operations
from hloforge.pipelines.named import stages
from hloforge.pipelines.workarounds.bf16_constants import LegalizeBf16Constants
from tests.engines import interpret

ARRAY = np.array([[1.5, -0.0, 1e-40], [np.inf, -3.0e38, np.nan]], ml_dtypes.bfloat16)


@pytest.mark.parametrize(
    ("values", "element"),
    [(ARRAY, "f32"), (np.ones((2, 3), ml_dtypes.bfloat16), "bf16"), (ARRAY[0, :1], "bf16"), (ARRAY[:, :0], "bf16")],
)
def test_constants(values: np.ndarray[Any, Any], element: str) -> None:
    with hloforge.Builder("constants") as builder:
        module = builder.build(ops.constant(values)).module
    LegalizeBf16Constants().run(module)
    (constant,) = operations(module, ["stablehlo.constant"])
    assert str(constant.results[0].type.element_type) == element
    got = np.asarray(interpret(module)[0])
    np.testing.assert_array_equal(got.astype(np.float32), values.astype(np.float32))


def test_vulkan_alone_needs_it() -> None:
    named = {target: {str(stage.entry) for stage in stages(target)} for target in ("cpu", "cuda", "vulkan")}
    assert [target for target, found in named.items() if LegalizeBf16Constants.name in found] == ["vulkan"]
