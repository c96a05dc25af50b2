"""legalize-bf16-products: products of f32 between barriers, and the same numbers; vulkan_sessions.py runs some."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import hloforge
from hloforge import Value, ops
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.pipelines.named import stages
from hloforge.pipelines.workarounds.bf16_products import LegalizeBf16Products
from tests.engines import interpret

_ROWS = ops.DotDimensionNumbers([1], [0])
_RNG = np.random.default_rng(0)
X, Y = (_RNG.integers(-2, 3, shape).astype(ml_dtypes.bfloat16) for shape in ((4, 8), (8, 4)))


def of_one_type(x: Value, y: Value) -> Value:
    return ops.convert_element_type(ops.dot_general(x, y, _ROWS), "f32")


def from_bf16(x: Value, y: Value) -> Value:
    return ops.dot_general(ops.convert_element_type(x, "f32"), ops.convert_element_type(y + y, "f32"), _ROWS)


def of_f32(x: Value, y: Value) -> Value:
    wide = [ops.optimization_barrier(ops.convert_element_type(value, "f32")) for value in (x, y)]
    return ops.dot_general(*wide, _ROWS)


def _program(build: Callable[[Value, Value], Value]) -> Program:
    with hloforge.Builder("program") as builder:
        given = [builder.parameter(n, hloforge.Shape.array("bf16", *a.shape), f"p{n}") for n, a in enumerate((X, Y))]
        return builder.build(build(*given))


@pytest.mark.parametrize(("build", "barriers"), [(of_one_type, 3), (from_bf16, 2), (of_f32, 2)])
def test_products(build: Callable[[Value, Value], Value], barriers: int) -> None:
    copy = _program(build).clone()
    LegalizeBf16Products().run(copy.module)
    assert len(operations(copy.module, ["stablehlo.optimization_barrier"])) == barriers
    (product,) = operations(copy.module, ["stablehlo.dot_general"])
    assert {str(value.type.element_type) for value in (*product.operands, *product.results)} == {"f32"}
    wide = (Y if build is not from_bf16 else Y + Y).astype(np.float32)
    np.testing.assert_array_equal(interpret(copy.module, X, Y)[0], X.astype(np.float32) @ wide)


def test_vulkan_alone_needs_it() -> None:
    named = {target: {str(stage.entry) for stage in stages(target)} for target in ("cpu", "cuda", "vulkan")}
    assert [target for target, found in named.items() if LegalizeBf16Products.name in found] == ["vulkan"]
