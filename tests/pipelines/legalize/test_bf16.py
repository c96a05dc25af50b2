"""legalize-bf16: XLA's roundings, judged by numpy in f32 with explicit roundings."""

from __future__ import annotations

import ml_dtypes
import numpy as np

import hloforge
from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.legalize.bf16 import LegalizeBf16
from tests.engines import interpret

BF16 = np.dtype(ml_dtypes.bfloat16)
X = np.random.default_rng(0).normal(size=64).astype(BF16)
Y = np.random.default_rng(1).normal(size=64).astype(BF16)


def lowered(body: str, result: str) -> object:
    module = parse_module(f"""func.func @main(%x: tensor<64xbf16>, %y: tensor<64xbf16>) -> tensor<64x{result}> {{
      {body}
      return %r : tensor<64x{result}> }}""")
    PassManager([LegalizeBf16()]).run(module)
    return module


def rounded(values: np.ndarray) -> np.ndarray:
    return values.astype(BF16).astype(np.float32)


def test_an_exponent_is_rounded_before_the_exponential() -> None:
    module = lowered(
        """%d = stablehlo.subtract %x, %y : tensor<64xbf16>
        %r = stablehlo.exponential %d : tensor<64xbf16>""",
        "bf16",
    )
    # Nothing may fold this rounding: it must be more than a pair of conversions.
    assert "reduce_precision" in str(module)
    expected = np.exp(rounded(X.astype(np.float32) - Y.astype(np.float32))).astype(BF16)
    np.testing.assert_array_equal(interpret(module, X, Y)[0], expected)


def test_a_conversion_of_the_result_sees_it_before_the_rounding() -> None:
    module = lowered(
        """%p = stablehlo.multiply %x, %y : tensor<64xbf16>
        %r = stablehlo.convert %p : (tensor<64xbf16>) -> tensor<64xf32>""",
        "f32",
    )
    np.testing.assert_array_equal(interpret(module, X, Y)[0], X.astype(np.float32) * Y.astype(np.float32))


def test_sums_are_computed_in_f32() -> None:
    module = lowered("%r = stablehlo.add %x, %y : tensor<64xbf16>", "bf16")
    assert "stablehlo.add %" in str(module)
    assert "add %arg0, %arg1 : tensor<64xbf16>" not in str(module)
    np.testing.assert_array_equal(
        interpret(module, X, Y)[0], (X.astype(np.float32) + Y.astype(np.float32)).astype(BF16)
    )


def test_special_values_survive() -> None:
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3.3e38, 1.0] * 8).astype(BF16)
    module = lowered("%r = stablehlo.logistic %x : tensor<64xbf16>", "bf16")
    with np.errstate(over="ignore"):
        expected = (1 / (1 + np.exp(-special.astype(np.float32)))).astype(BF16)
    (result,) = interpret(module, special, Y)
    np.testing.assert_array_equal(result.astype(np.float32), expected.astype(np.float32))


def test_the_computation_of_a_reduction_is_left_alone() -> None:
    text = """func.func @main(%a: tensor<4xbf16>) -> tensor<bf16> {
      %z = stablehlo.constant dense<0.0> : tensor<bf16>
      %r = stablehlo.reduce(%a init: %z) applies stablehlo.maximum across dimensions = [0]
        : (tensor<4xbf16>, tensor<bf16>) -> tensor<bf16>
      return %r : tensor<bf16> }"""
    module = parse_module(text)
    PassManager([LegalizeBf16()]).run(module)
    assert str(module) == str(parse_module(text))


def test_sums_of_products_are_rounded_twice_where_no_library_computes_them() -> None:
    text = """func.func @main(%x: tensor<64xbf16>, %y: tensor<64xbf16>) -> tensor<64xbf16> {
      %p = stablehlo.multiply %x, %y : tensor<64xbf16>
      %r = stablehlo.subtract %p, %y : tensor<64xbf16>
      return %r : tensor<64xbf16> }"""
    x, y = X.astype(np.float32), Y.astype(np.float32)
    np.testing.assert_array_equal(hloforge.compile(text)(X, Y), (rounded(x * y) - y).astype(BF16))


def test_exponents_of_dynamic_size_are_rounded_too() -> None:
    text = """func.func @main(%x: tensor<?xbf16>, %y: tensor<?xbf16>) -> tensor<?xbf16> {
      %d = stablehlo.subtract %x, %y : tensor<?xbf16>
      %r = stablehlo.abs %d : tensor<?xbf16>
      return %r : tensor<?xbf16> }"""
    difference = rounded(X.astype(np.float32) - Y.astype(np.float32))
    got = hloforge.compile(text, dynamic_shapes="keep")(X, Y)
    np.testing.assert_array_equal(got, np.abs(difference).astype(BF16))


def test_an_infinite_square_is_infinite_before_it_is_subtracted() -> None:
    text = """func.func @main(%x: tensor<64xbf16>) -> tensor<bf16> {
      %zero = stablehlo.constant dense<0.0> : tensor<bf16>
      %squares = stablehlo.multiply %x, %x : tensor<64xbf16>
      %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<64xbf16>, tensor<bf16>) -> tensor<bf16>
      %total = stablehlo.reduce(%squares init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<64xbf16>, tensor<bf16>) -> tensor<bf16>
      %square = stablehlo.multiply %sum, %sum : tensor<bf16>
      %r = stablehlo.subtract %total, %square : tensor<bf16>
      return %r : tensor<bf16> }"""
    large = np.full(64, 2.0**100, BF16)
    assert np.isnan(np.asarray(hloforge.compile(text, cache=False).load()(large), np.float32))


def test_operands_of_decomposed_functions_are_rounded() -> None:
    """sine, tan and power are written as arithmetic of wider types, whose conversions are no steps of the program."""
    text = """func.func @main(%x: tensor<64xbf16>, %y: tensor<64xbf16>)
        -> (tensor<64xbf16>, tensor<64xbf16>, tensor<64xbf16>) {
      %p = stablehlo.multiply %x, %y : tensor<64xbf16>
      %s = stablehlo.sine %p : tensor<64xbf16>
      %t = stablehlo.tan %p : tensor<64xbf16>
      %m = stablehlo.abs %p : tensor<64xbf16>
      %w = stablehlo.power %m, %y : tensor<64xbf16>
      return %s, %t, %w : tensor<64xbf16>, tensor<64xbf16>, tensor<64xbf16> }"""
    x, y = 30 * X, 2 * Y
    product = rounded(x.astype(np.float32) * y.astype(np.float32)).astype(np.float64)
    expected = np.sin(product), np.tan(product), np.abs(product) ** y.astype(np.float64)
    for got, want in zip(hloforge.load(hloforge.compile(text))(x, y), expected, strict=True):
        np.testing.assert_array_equal(got, want.astype(BF16))


def test_reductions_of_flags_are_no_library() -> None:
    """A loop that ends when all of its flags are set rounds after every operation, as any program of arithmetic."""
    text = """func.func @main(%x: tensor<64xbf16>, %y: tensor<64xbf16>) -> (tensor<64xbf16>, tensor<i1>) {
      %false = stablehlo.constant dense<false> : tensor<i1>
      %p = stablehlo.multiply %x, %y : tensor<64xbf16>
      %s = stablehlo.add %p, %x : tensor<64xbf16>
      %d = stablehlo.subtract %s, %p : tensor<64xbf16>
      %m = stablehlo.compare GT, %d, %y : (tensor<64xbf16>, tensor<64xbf16>) -> tensor<64xi1>
      %any = stablehlo.reduce(%m init: %false) applies stablehlo.or across dimensions = [0]
        : (tensor<64xi1>, tensor<i1>) -> tensor<i1>
      return %d, %any : tensor<64xbf16>, tensor<i1> }"""
    found = hloforge.compile(text, cache=False).load()(X, Y)
    for got, want in zip(found, interpret(text, X, Y), strict=True):
        np.testing.assert_array_equal(got, want)
