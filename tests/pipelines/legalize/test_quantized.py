"""legalize-quantized: the specification's formulas in numpy, through the interpreter that sees integers and floats."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hloforge import compile
from hloforge.dialect.element_types import element_type
from hloforge.importers.reader import read
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.legalize.quantized import LegalizeQuantized
from tests.engines import interpret

# A scale that its seven printed digits do not tell.
SCALE = 0.00392156862745098
I8 = "!quant.uniform<i8:f32, 0.5:-20>"
FINE = f"!quant.uniform<i8:f32, {SCALE}:3>"
U8 = "!quant.uniform<u8:f32, 0.25:128>"
NARROW = "!quant.uniform<i8<-7:7>:f32, 0.5>"
ROWS = "!quant.uniform<i8:f32:1, {0.5:0, 0.25:3, 0.125:-4}>"
SUMS = "!quant.uniform<i32:f32:1, {0.25:0, 0.125:0, 0.0625:0}>"


def run(text: str, *inputs: Any) -> list[np.ndarray[Any, Any]]:
    module = read(text).module
    PassManager([LegalizeQuantized()]).run(module)
    assert "quant" not in str(module)
    return interpret(module, *inputs)


def to_float(stored: Any, scale: Any, zero: Any) -> np.ndarray[Any, Any]:
    return ((stored.astype(np.int32) - zero).astype(np.float32) * np.float32(scale)).astype(np.float32)


def to_stored(floats: Any, scale: Any, zero: Any, low: int, high: int, dtype: Any) -> np.ndarray[Any, Any]:
    return np.rint(np.clip(floats / np.float32(scale) + np.float32(zero), low, high)).astype(dtype)


BYTES = np.arange(-128, 128).astype(np.int8)


@pytest.mark.parametrize(
    ("op", "function"), [("add", np.add), ("multiply", np.multiply), ("maximum", np.maximum), ("subtract", np.subtract)]
)
def test_arithmetic_is_done_in_floats_and_saturates(op: str, function: Any) -> None:
    x, y = BYTES, np.random.default_rng(0).permutation(BYTES)
    type_ = f"tensor<256x{I8}>"
    text = f"""func.func @main(%x: {type_}, %y: {type_}) -> {type_} {{
      %r = stablehlo.{op} %x, %y : {type_}
      return %r : {type_} }}"""
    want = to_stored(function(to_float(x, 0.5, -20), to_float(y, 0.5, -20)), 0.5, -20, -128, 127, np.int8)
    np.testing.assert_array_equal(run(text, x, y)[0], want)


@pytest.mark.parametrize(
    ("type_", "scale", "zero", "dtype", "limits"),
    [
        (I8, 0.5, -20, np.int8, (-128, 127)),
        (FINE, SCALE, 3, np.int8, (-128, 127)),
        (U8, 0.25, 128, np.uint8, (0, 255)),
        (NARROW, 0.5, 0, np.int8, (-7, 7)),
    ],
    ids=["i8", "fine", "u8", "narrow"],
)
def test_conversions(type_: str, scale: float, zero: int, dtype: Any, limits: tuple[int, int]) -> None:
    x = np.concatenate([np.linspace(-100, 100, 400), np.linspace(-1, 1, 400), [0.25, 0.75, np.inf]]).astype(np.float32)
    stored = np.arange(*limits).astype(dtype)
    n = len(stored)
    text = f"""func.func @main(%x: tensor<803xf32>, %s: tensor<{n}x{type_}>)
        -> (tensor<803x{type_}>, tensor<{n}xf32>) {{
      %q = stablehlo.uniform_quantize %x : (tensor<803xf32>) -> tensor<803x{type_}>
      %f = stablehlo.uniform_dequantize %s : (tensor<{n}x{type_}>) -> tensor<{n}xf32>
      return %q, %f : tensor<803x{type_}>, tensor<{n}xf32> }}"""
    quantized, floats = run(text, x, stored)
    np.testing.assert_array_equal(quantized, to_stored(x, scale, zero, *limits, dtype))
    np.testing.assert_array_equal(floats, to_float(stored, scale, zero))


@pytest.mark.parametrize(
    ("expressed", "scale"), [(np.float64, 1 / 255), (np.float16, 0.125), (ml_dtypes.bfloat16, 0.125)], ids=str
)
def test_numbers_stand_for_floats_of_any_width(expressed: Any, scale: float) -> None:
    """The scale has all of its digits in f64."""
    element = element_type(expressed).mlir
    type_ = f"!quant.uniform<i8:{element}, {scale!r}:3>"
    text = f"""func.func @main(%s: tensor<256x{type_}>) -> (tensor<256x{element}>, tensor<256x{type_}>) {{
      %f = stablehlo.uniform_dequantize %s : (tensor<256x{type_}>) -> tensor<256x{element}>
      %n = stablehlo.negate %f : tensor<256x{element}>
      %q = stablehlo.uniform_quantize %n : (tensor<256x{element}>) -> tensor<256x{type_}>
      return %f, %q : tensor<256x{element}>, tensor<256x{type_}> }}"""
    floats, negated = run(text, BYTES)
    np.testing.assert_array_equal(floats, (BYTES.astype(np.int64) - 3).astype(expressed) * expressed(scale))
    np.testing.assert_array_equal(negated, np.clip(6 - BYTES.astype(int), -128, 127))


def test_products_of_arrays_with_a_scale_a_column() -> None:
    text = f"""func.func @main(%x: tensor<4x2x{I8}>, %y: tensor<2x3x{ROWS}>, %z: tensor<4x2xf32>)
        -> (tensor<4x3x{SUMS}>, tensor<4x3xf32>) {{
      %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
        : (tensor<4x2x{I8}>, tensor<2x3x{ROWS}>) -> tensor<4x3x{SUMS}>
      %h = stablehlo.dot_general %z, %y, contracting_dims = [1] x [0]
        : (tensor<4x2xf32>, tensor<2x3x{ROWS}>) -> tensor<4x3xf32>
      return %r, %h : tensor<4x3x{SUMS}>, tensor<4x3xf32> }}"""
    # StableHLO asks for zeros that are 0 on the right.
    text = text.replace(ROWS, ROWS.replace(":3", ":0").replace(":-4", ":0"))
    rng = np.random.default_rng(0)
    x, y = rng.integers(-128, 128, (4, 2)).astype(np.int8), rng.integers(-128, 128, (2, 3)).astype(np.int8)
    z = rng.normal(size=(4, 2)).astype(np.float32)
    scales = np.array([0.5, 0.25, 0.125], np.float32)
    sums, hybrid = run(text, x, y, z)
    product = to_float(x, 0.5, -20) @ to_float(y, scales, 0)
    np.testing.assert_array_equal(sums, np.rint(product / (scales * 0.5)).astype(np.int32))
    np.testing.assert_allclose(hybrid, z @ to_float(y, scales, 0), rtol=1e-6)


def test_moves_keep_the_integers_and_constants_are_integers() -> None:
    text = f"""func.func @main(%x: tensor<2x3x{U8}>) -> (tensor<4x2x{U8}>, tensor<2x{U8}>, tensor<2xf32>) {{
      %c = stablehlo.constant() <{{value = dense<200> : tensor<i8>}}> : () -> tensor<{U8}>
      %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3x{U8}>) -> tensor<3x2x{U8}>
      %p = stablehlo.pad %t, %c, low = [1, 0], high = [0, 0], interior = [0, 0]
        : (tensor<3x2x{U8}>, tensor<{U8}>) -> tensor<4x2x{U8}>
      %m = stablehlo.reduce(%x init: %c) applies stablehlo.maximum across dimensions = [1]
        : (tensor<2x3x{U8}>, tensor<{U8}>) -> tensor<2x{U8}>
      %f = stablehlo.uniform_dequantize %m : (tensor<2x{U8}>) -> tensor<2xf32>
      return %p, %m, %f : tensor<4x2x{U8}>, tensor<2x{U8}>, tensor<2xf32> }}"""
    x = np.array([[0, 7, 255], [3, 128, 199]], np.uint8)
    padded, largest, floats = run(text, x)
    np.testing.assert_array_equal(padded, np.pad(x.T, ((1, 0), (0, 0)), constant_values=200))
    np.testing.assert_array_equal(largest, [255, 200])
    np.testing.assert_array_equal(floats, [(255 - 128) / 4, (200 - 128) / 4])


def test_a_scale_and_zero_for_each_column() -> None:
    text = f"""func.func @main(%x: tensor<2x3x{ROWS}>) -> (tensor<2x3xf32>, tensor<2x3x{ROWS}>) {{
      %f = stablehlo.uniform_dequantize %x : (tensor<2x3x{ROWS}>) -> tensor<2x3xf32>
      %n = stablehlo.negate %f : tensor<2x3xf32>
      %q = stablehlo.uniform_quantize %n : (tensor<2x3xf32>) -> tensor<2x3x{ROWS}>
      return %f, %q : tensor<2x3xf32>, tensor<2x3x{ROWS}> }}"""
    x = np.array([[-128, 7, 100], [3, 127, -4]], np.int8)
    scales, zeros = np.array([0.5, 0.25, 0.125], np.float32), np.array([0, 3, -4])
    floats, negated = run(text, x)
    np.testing.assert_array_equal(floats, to_float(x, scales, zeros))
    np.testing.assert_array_equal(negated, to_stored(-to_float(x, scales, zeros), scales, zeros, -128, 127, np.int8))


def test_comparators_compare_what_is_stored() -> None:
    text = f"""func.func @main(%x: tensor<2x3x{I8}>) -> tensor<2x3x{I8}> {{
      %r = "stablehlo.sort"(%x) <{{dimension = 1 : i64}}> ({{
      ^bb0(%a: tensor<{I8}>, %b: tensor<{I8}>):
        %p = stablehlo.compare GT, %a, %b : (tensor<{I8}>, tensor<{I8}>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }}) : (tensor<2x3x{I8}>) -> tensor<2x3x{I8}>
      return %r : tensor<2x3x{I8}>
    }}"""
    x = np.array([[-128, 127, -20], [3, 3, -1]], np.int8)
    np.testing.assert_array_equal(compile(text).load()(x), -np.sort(-x.astype(np.int32)).astype(np.int8))


@pytest.mark.parametrize(("operation", "operands"), [("all_reduce", 1), ("map", 2)])
def test_regions_compute_with_scalars(operation: str, operands: int) -> None:
    settings = {
        "all_reduce": "replica_groups = dense<0> : tensor<1x1xi64>",
        "map": "dimensions = array<i64: 0>",
    }[operation]
    types = ", ".join([f"tensor<256x{I8}>"] * operands)
    text = f"""func.func @main(%x: tensor<256x{I8}>, %y: tensor<256x{I8}>) -> tensor<256x{I8}> {{
      %r = "stablehlo.{operation}"({", ".join(("%x", "%y")[:operands])}) <{{{settings}}}> ({{
      ^bb0(%a: tensor<{I8}>, %b: tensor<{I8}>):
        %s = stablehlo.add %a, %b : tensor<{I8}>
        stablehlo.return %s : tensor<{I8}>
      }}) : ({types}) -> tensor<256x{I8}>
      return %r : tensor<256x{I8}>
    }}"""
    x, y = BYTES, BYTES[::-1].copy()
    want = to_stored(to_float(x, 0.5, -20) + to_float(y, 0.5, -20), 0.5, -20, -128, 127, np.int8)
    np.testing.assert_array_equal(compile(text).load()(x, y), x if operands == 1 else want)


def test_sizes_that_are_operands() -> None:
    # StableHLO's own pass ends the process on this one.
    text = f"""func.func @main(%x: tensor<4x3x{I8}>) -> tensor<2x6x{I8}> {{
      %s = stablehlo.constant dense<[2, 6]> : tensor<2xi32>
      %r = stablehlo.dynamic_reshape %x, %s : (tensor<4x3x{I8}>, tensor<2xi32>) -> tensor<2x6x{I8}>
      return %r : tensor<2x6x{I8}>
    }}"""
    x = BYTES[:12].reshape(4, 3)
    np.testing.assert_array_equal(compile(text).load()(x), x.reshape(2, 6))


def test_windows_select_and_add_up() -> None:
    text = f"""func.func @main(%x: tensor<2x4x{I8}>, %s: tensor<1x2x{I8}>) -> tensor<2x4x{I8}> {{
      %z = stablehlo.constant() <{{value = dense<-20> : tensor<i8>}}> : () -> tensor<{I8}>
      %r = "stablehlo.select_and_scatter"(%x, %s, %z)
          <{{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}}> ({{
      ^bb0(%a: tensor<{I8}>, %b: tensor<{I8}>):
        %p = stablehlo.compare GE, %a, %b : (tensor<{I8}>, tensor<{I8}>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }}, {{
      ^bb0(%a: tensor<{I8}>, %b: tensor<{I8}>):
        %t = stablehlo.add %a, %b : tensor<{I8}>
        stablehlo.return %t : tensor<{I8}>
      }}) : (tensor<2x4x{I8}>, tensor<1x2x{I8}>, tensor<{I8}>) -> tensor<2x4x{I8}>
      return %r : tensor<2x4x{I8}>
    }}"""
    x, source = np.array([[1, 5, -3, 0], [2, -9, 7, 7]], np.int8), np.array([[40, -60]], np.int8)
    want = np.array([[-20, 40, -20, -20], [-20, -20, -60, -20]], np.int8)
    np.testing.assert_array_equal(compile(text).load()(x, source), want)
