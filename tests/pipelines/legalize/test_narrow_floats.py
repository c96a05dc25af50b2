"""legalize-narrow-floats: all codes, all roundings, judged by ml_dtypes and XLA."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hloforge
from hloforge import Builder, Shape, ops
from hloforge.dialect.element_types import TABLE, ElementType
from hloforge.dialect.mlir import in_context, parse_module, passmanager
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.legalize.narrow_floats import LegalizeNarrowFloats
from hloforge.pipelines.legalize.narrow_integers import LegalizeNarrowIntegers
from hloforge.runtime.reference.engines import reference
from tests.engines import interpret

NARROW = [row for row in TABLE if row.is_float and row.bits <= 8]


def lowered(text: str) -> Any:
    module = parse_module(text)
    PassManager([LegalizeNarrowFloats(), LegalizeNarrowIntegers()]).run(module)
    assert not any(t in str(module) for t in ("xf8E", "xf6E", "xf4E"))
    return module


def codes(row: ElementType) -> np.ndarray:
    return np.arange(1 << row.bits, dtype=np.uint8)


def same(actual: np.ndarray, expected: np.ndarray, row: ElementType) -> None:
    """Equal codes, any NaN for a NaN."""
    a, b = (array.view(row.dtype) for array in (actual, expected))
    both = np.isnan(a.astype(np.float32)) & np.isnan(b.astype(np.float32))
    np.testing.assert_array_equal(actual[~both], expected[~both])


def from_codes(row: ElementType, name: str, n: int) -> str:
    """Text that turns ``%<name>``, codes in ui8, into ``%<name>f`` of the type."""
    t = f"{n}x{row.mlir}"
    if row.bits == 6:
        return f"%{name}f = builtin.unrealized_conversion_cast %{name} : tensor<{n}xui8> to tensor<{t}>"
    if row.bits == 8:
        return f"%{name}f = stablehlo.bitcast_convert %{name} : (tensor<{n}xui8>) -> tensor<{t}>"
    return f"""%{name}c = stablehlo.convert %{name} : (tensor<{n}xui8>) -> tensor<{n}xui4>
      %{name}f = stablehlo.bitcast_convert %{name}c : (tensor<{n}xui4>) -> tensor<{t}>"""


def to_codes(row: ElementType, n: int) -> str:
    """Text that turns ``%r`` of the type into ``%s``, codes in ui8."""
    t = f"{n}x{row.mlir}"
    if row.bits == 6:
        return f"%s = builtin.unrealized_conversion_cast %r : tensor<{t}> to tensor<{n}xui8>"
    if row.bits == 8:
        return f"%s = stablehlo.bitcast_convert %r : (tensor<{t}>) -> tensor<{n}xui8>"
    return f"""%q = stablehlo.bitcast_convert %r : (tensor<{t}>) -> tensor<{n}xui4>
      %s = stablehlo.convert %q : (tensor<{n}xui4>) -> tensor<{n}xui8>"""


@pytest.mark.parametrize("row", NARROW, ids=str)
@pytest.mark.parametrize("wide", ["f32", "f64"])
def test_every_code_has_its_value(row: ElementType, wide: str) -> None:
    n = 1 << row.bits
    module = lowered(f"""func.func @main(%x: tensor<{n}xui8>) -> tensor<{n}x{wide}> {{ {from_codes(row, "x", n)}
      %r = stablehlo.convert %xf : (tensor<{n}x{row.mlir}>) -> tensor<{n}x{wide}>
      return %r : tensor<{n}x{wide}> }}""")
    (result,) = interpret(module, codes(row))
    expected = codes(row).view(row.dtype).astype(result.dtype)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(np.signbit(result[~np.isnan(result)]), np.signbit(expected[~np.isnan(result)]))


def hard_values(row: ElementType) -> np.ndarray:
    """Every value, every midpoint, their neighbours on both sides, and the special ones."""
    values = np.unique(codes(row).view(row.dtype).astype(np.float64))
    values = values[np.isfinite(values)]
    middles = (values[1:] + values[:-1]) / 2
    edges = np.concatenate([values, middles, [values[-1] * 1.0625, values[-1] * 1.5, values[-1] * 2]])
    with np.errstate(over="ignore"):
        edges = np.concatenate([edges, -edges]).astype(np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 1e-38, 3e38], np.float32)
    with np.errstate(over="ignore"):
        up, down = np.nextafter(edges, np.float32(np.inf)), np.nextafter(edges, np.float32(-np.inf))
    return np.concatenate([edges, up, down, special])


def encoded(row: ElementType, x: np.ndarray, wide: str) -> np.ndarray:
    n = len(x)
    module = lowered(f"""func.func @main(%x: tensor<{n}x{wide}>) -> tensor<{n}xui8> {{
      %r = stablehlo.convert %x : (tensor<{n}x{wide}>) -> tensor<{n}x{row.mlir}> {to_codes(row, n)}
      return %s : tensor<{n}xui8> }}""")
    return interpret(module, x)[0]


@pytest.mark.parametrize("row", NARROW, ids=str)
def test_every_rounding_from_f32(row: ElementType) -> None:
    x = hard_values(row)
    with np.errstate(all="ignore"):
        same(encoded(row, x, "f32"), x.astype(row.dtype).view(np.uint8), row)


@pytest.mark.parametrize("row", [row for row in NARROW if row.name != "f8e8m0fnu"], ids=str)
def test_a_rounding_from_f64_is_not_done_twice(row: ElementType) -> None:
    # So close to a midpoint that rounding to f32 first would make a tie of it.
    values = np.unique(codes(row).view(row.dtype).astype(np.float64))
    values = values[np.isfinite(values)]
    middles = (values[1:] + values[:-1]) / 2
    x = np.concatenate([np.nextafter(middles, np.inf), np.nextafter(middles, -np.inf)])
    above, below = np.tile(values[1:], 2), np.tile(values[:-1], 2)
    nearest = np.where(np.arange(len(x)) < len(middles), above, below)
    nearest = np.where(nearest == 0, np.copysign(0, x), nearest)
    same(encoded(row, x, "f64"), nearest.astype(row.dtype).view(np.uint8), row)


# Zeros, negative numbers, subnormals of f32 and what lies around the least and the greatest power of two.
_SCALES = [0, -0.0, 1, -1, -5, 0.75, 1.5, 3, np.inf, -np.inf, np.nan, 2.0**127, 1.5 * 2.0**127, 2.0**-127, -(2.0**-127)]
_SCALES += [2.0**-126, 1.5 * 2.0**-126, 1e-45, -1e-45, 1e-40, 2.0**-128, 2.0**-129, 1.4999 * 2.0**127, 3e38]
_SCALES += [2.0**-127 * (1 + 2.0**-20), 2.0**-127 * (1 - 2.0**-20), 1.25 * 2.0**-127, 1.75 * 2.0**-127]
_WIDE_SCALES = [1e-300, -1e-300, 5e-324, 1e300, 2.0**128, 2.0**-150, 1.5 * (1 - 2.0**-52), 1.5 * (1 + 2.0**-52)]
_WIDE_SCALES += [2.0**-127 * (1 - 2.0**-50), 2.0**-127 * (1 + 2.0**-50), 1.5 * 2.0**127 * (1 - 2.0**-52)]
_TO_SCALES = {
    "f64": np.array(_SCALES + _WIDE_SCALES),
    "f32": np.array(_SCALES, np.float32),
    "bf16": np.array(_SCALES).astype(ml_dtypes.bfloat16),
    "f16": np.array([0, -0.0, 1, -1, 1.5, 3, 6e-8, -6e-8, 65504, np.inf, -np.inf, np.nan], np.float16),
    "pred": np.array([False, True]),
    "s8": np.array([0, 1, -1, -128, 127, 3, 5, 95, 96], np.int8),
    "u8": np.array([0, 1, 3, 191, 192, 255], np.uint8),
    "s32": np.array([0, 1, -1, -(2**31), 2**31 - 1, 3 << 29, (3 << 29) - 1, (3 << 29) - 65], np.int32),
    "s64": np.array([0, -1, 2**63 - 1, -(2**63), (3 << 61) - 1], np.int64),
    "u64": np.array([0, 1, 2**64 - 1, 3 << 62, (3 << 62) - 1], np.uint64),
}


@pytest.mark.parametrize("source", _TO_SCALES)
def test_powers_of_two_are_those_of_xla(source: str) -> None:
    """f8e8m0fnu, which has neither zero nor sign; ml_dtypes rounds f64 twice, and keeps subnormals."""
    x = _TO_SCALES[source]
    with Builder("scales") as builder:
        scales = ops.convert_element_type(builder.parameter(0, Shape.array(source, len(x))), "f8e8m0fnu")
        program = builder.build(ops.bitcast_convert_type(scales, "u8"))
    module = lowered(program.text())
    np.testing.assert_array_equal(interpret(module, x)[0], reference("xla", isolated=False).prepare(program)(x))


SIGNED = [row for row in NARROW if row.name != "f8e8m0fnu"]
ARITHMETIC = ["add", "multiply", "divide", "subtract"]


def check_arithmetic(op: str, row: ElementType, left: np.ndarray, right: np.ndarray) -> None:
    n = len(left)
    module = lowered(f"""func.func @main(%x: tensor<{n}xui8>, %y: tensor<{n}xui8>) -> tensor<{n}xui8> {{
      {from_codes(row, "x", n)} {from_codes(row, "y", n)}
      %r = stablehlo.{op} %xf, %yf : tensor<{n}x{row.mlir}> {to_codes(row, n)}
      return %s : tensor<{n}xui8> }}""")
    (result,) = interpret(module, left, right)
    with np.errstate(all="ignore"):
        exact = getattr(np, op)(*(array.view(row.dtype).astype(np.float64) for array in (left, right)))
        expected = exact.astype(row.dtype).view(np.uint8)
    # Below 8 bits there is no NaN: what 0 / 0 gives there is nobody's rule.
    defined = ~np.isnan(exact) | (row.bits == 8)
    same(result[defined], expected[defined], row)


@pytest.mark.wide(3)
@pytest.mark.parametrize("row", SIGNED, ids=str)
@pytest.mark.parametrize("op", ARITHMETIC)
def test_arithmetic_is_rounded_once(op: str, row: ElementType) -> None:
    left, right = np.random.default_rng(0).integers(0, 1 << row.bits, (2, 3000)).astype(np.uint8)
    check_arithmetic(op, row, left, right)


@pytest.mark.slow
@pytest.mark.parametrize("row", SIGNED, ids=str)
@pytest.mark.parametrize("op", ARITHMETIC)
def test_arithmetic_on_every_pair(op: str, row: ElementType) -> None:
    left, right = (grid.ravel() for grid in np.meshgrid(codes(row), codes(row)))
    check_arithmetic(op, row, left, right)


def test_constants_reducers_and_products() -> None:
    module = lowered("""func.func @main(%x: tensor<3x4xf32>) -> (tensor<3x3xf32>, tensor<3xf32>, tensor<3x3xf32>) {
      %a = stablehlo.convert %x : (tensor<3x4xf32>) -> tensor<3x4xf8E4M3FN>
      %k = stablehlo.constant dense<[[1.0, 2.0, 0.5], [0.0, 1.5, 1.0], [1.0, 1.0, 1.0], [-1.0, 2.0, 4.0]]>
        : tensor<4x3xf8E5M2>
      %d = stablehlo.dot_general %a, %k, contracting_dims = [1] x [0]
        : (tensor<3x4xf8E4M3FN>, tensor<4x3xf8E5M2>) -> tensor<3x3xf32>
      %e = stablehlo.dot_general %a, %k, contracting_dims = [1] x [0]
        : (tensor<3x4xf8E4M3FN>, tensor<4x3xf8E5M2>) -> tensor<3x3xbf16>
      %f = stablehlo.convert %e : (tensor<3x3xbf16>) -> tensor<3x3xf32>
      %z = stablehlo.constant dense<0.0> : tensor<f8E4M3FN>
      %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1]
        : (tensor<3x4xf8E4M3FN>, tensor<f8E4M3FN>) -> tensor<3xf8E4M3FN>
      %t = stablehlo.convert %s : (tensor<3xf8E4M3FN>) -> tensor<3xf32>
      return %d, %t, %f : tensor<3x3xf32>, tensor<3xf32>, tensor<3x3xf32> }""")
    x = np.array([[1, 2, 3, 4], [0.5, -1, 2, 0], [8, 16, -8, 2]], np.float32)
    k = np.array([[1, 2, 0.5], [0, 1.5, 1], [1, 1, 1], [-1, 2, 4]])
    product, total, rounded = interpret(module, x)
    np.testing.assert_array_equal(product, x @ k)
    np.testing.assert_array_equal(rounded, x @ k)
    np.testing.assert_array_equal(total, x.sum(1))


@pytest.mark.parametrize("row", NARROW, ids=str)
def test_the_total_order_of_all_codes(row: ElementType) -> None:
    """Each negative code comes before those nearer to zero, and what is neither a number nor signed at the ends."""
    n = 1 << row.bits
    t = f"tensor<{n}x{row.mlir}>"
    module = lowered(f"""func.func @main(%x: tensor<{n}xui8>) -> (tensor<{n}xui8>, tensor<{n - 1}xi1>) {{
      {from_codes(row, "x", n)}
      %r, %i = "chlo.top_k"(%xf) {{k = {n} : i64}} : ({t}) -> ({t}, tensor<{n}xi32>)
      %u = stablehlo.slice %xf [1:{n}] : ({t}) -> tensor<{n - 1}x{row.mlir}>
      %v = stablehlo.slice %xf [0:{n - 1}] : ({t}) -> tensor<{n - 1}x{row.mlir}>
      %c = stablehlo.compare LT, %v, %u, TOTALORDER
        : (tensor<{n - 1}x{row.mlir}>, tensor<{n - 1}x{row.mlir}>) -> tensor<{n - 1}xi1>
      {to_codes(row, n)}
      return %s, %c : tensor<{n}xui8>, tensor<{n - 1}xi1> }}""")
    if row.name == "f8e8m0fnu":
        order = codes(row)
    elif "fnuz" in row.name:
        order = np.concatenate([[n // 2], codes(row)[: n // 2 : -1], codes(row)[: n // 2]])
    else:
        order = np.concatenate([codes(row)[: n // 2 - 1 : -1], codes(row)[: n // 2]])
    with in_context(module):
        passmanager.PassManager.parse("builtin.module(func.func(chlo-legalize-to-stablehlo))").run(module.operation)
    greatest_first, ascends = interpret(module, order.astype(np.uint8))
    np.testing.assert_array_equal(greatest_first, order[::-1])
    assert ascends.all()


@pytest.mark.parametrize("name", ["f8E5M2", "f4E2M1FN"])
@pytest.mark.parametrize("op", ["all_reduce", "reduce_scatter"])
def test_reductions_of_a_single_device(op: str, name: str) -> None:
    """Their computation is of the narrow type: of operands in f32 it was invalid, and compilation ended."""
    along = "scatter_dimension = 1 : i64, " if op == "reduce_scatter" else ""
    text = f"""func.func @main(%x: tensor<2x3x{name}>) -> tensor<2x3xf32> {{
      %0 = "stablehlo.{op}"(%x) <{{{along}replica_groups = dense<0> : tensor<1x1xi64>}}> ({{
        ^bb0(%a: tensor<{name}>, %b: tensor<{name}>):
          %s = stablehlo.add %a, %b : tensor<{name}>
          stablehlo.return %s : tensor<{name}>
      }}) : (tensor<2x3x{name}>) -> tensor<2x3x{name}>
      %1 = stablehlo.convert %0 : (tensor<2x3x{name}>) -> tensor<2x3xf32>
      return %1 : tensor<2x3xf32> }}"""
    x = np.array([[0.5, -1, 6], [-0.0, 2, 3]], ml_dtypes.float4_e2m1fn if "4E" in name else ml_dtypes.float8_e5m2)
    program = hloforge.read(text)
    expected = reference("xla", isolated=False).prepare(program)(x)
    np.testing.assert_array_equal(hloforge.compile(program)(x), expected)
