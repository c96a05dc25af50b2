"""legalize-narrow-integers: every pair of values, judged by wide arithmetic in numpy that is wrapped afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hloforge.dialect.element_types import element_type
from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.legalize.narrow_integers import LegalizeNarrowIntegers
from tests.engines import interpret

TYPES = ["i2", "i4", "ui2", "ui4"]


def lowered(text: str) -> Any:
    module = parse_module(text)
    PassManager([LegalizeNarrowIntegers()]).run(module)
    assert not any(f"x{type_}>" in str(module) or f"<{type_}>" in str(module) for type_ in TYPES)
    return module


def domain(name: str) -> np.ndarray:
    row = element_type(name)
    low = -(1 << row.bits - 1) if row.kind.value == "signed" else 0
    return np.arange(low, low + (1 << row.bits))


def wrap(values: np.ndarray, name: str) -> np.ndarray:
    row = element_type(name)
    bits = np.asarray(values) & ((1 << row.bits) - 1)
    return np.where(bits >= 1 << row.bits - 1, bits - (1 << row.bits), bits) if row.kind.value == "signed" else bits


def byte(name: str) -> str:
    return "i8" if name.startswith("i") else "ui8"


def unary(name: str, op: str, values: np.ndarray) -> np.ndarray:
    n, wide = len(values), byte(name)
    module = lowered(f"""func.func @main(%x: tensor<{n}x{wide}>) -> tensor<{n}x{wide}> {{
      %a = stablehlo.convert %x : (tensor<{n}x{wide}>) -> tensor<{n}x{name}>
      %b = stablehlo.{op} %a : tensor<{n}x{name}>
      %r = stablehlo.convert %b : (tensor<{n}x{name}>) -> tensor<{n}x{wide}>
      return %r : tensor<{n}x{wide}> }}""")
    return interpret(module, values.astype(element_type(wide).dtype))[0].astype(int)


def binary(name: str, op: str, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    n, wide = len(left), byte(name)
    module = lowered(f"""func.func @main(%x: tensor<{n}x{wide}>, %y: tensor<{n}x{wide}>) -> tensor<{n}x{wide}> {{
      %a = stablehlo.convert %x : (tensor<{n}x{wide}>) -> tensor<{n}x{name}>
      %b = stablehlo.convert %y : (tensor<{n}x{wide}>) -> tensor<{n}x{name}>
      %c = stablehlo.{op} %a, %b : tensor<{n}x{name}>
      %r = stablehlo.convert %c : (tensor<{n}x{name}>) -> tensor<{n}x{wide}>
      return %r : tensor<{n}x{wide}> }}""")
    dtype = element_type(wide).dtype
    return interpret(module, left.astype(dtype), right.astype(dtype))[0].astype(int)


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("op", ARITHMETIC)
def test_binary_arithmetic(op: str, name: str) -> None:
    left, right = (grid.ravel() for grid in np.meshgrid(domain(name), domain(name)))
    np.testing.assert_array_equal(binary(name, op, left, right), wrap(ARITHMETIC[op](left, right), name))


@pytest.mark.parametrize("name", TYPES)
def test_division_truncates_and_wraps(name: str) -> None:
    left, right = (grid.ravel() for grid in np.meshgrid(domain(name), domain(name)))
    left, right = left[right != 0], right[right != 0]
    np.testing.assert_array_equal(binary(name, "divide", left, right), wrap(np.trunc(left / right).astype(int), name))
    np.testing.assert_array_equal(binary(name, "remainder", left, right), np.fmod(left, right))


@pytest.mark.parametrize("name", TYPES)
def test_shifts(name: str) -> None:
    bits = element_type(name).bits
    amounts = np.arange(min(bits + 1, domain(name).max() + 1))
    left, right = (grid.ravel() for grid in np.meshgrid(domain(name), amounts))
    code, signed = left & ((1 << bits) - 1), wrap(left, f"i{bits}")
    np.testing.assert_array_equal(binary(name, "shift_left", left, right), wrap(left << right, name))
    np.testing.assert_array_equal(binary(name, "shift_right_logical", left, right), wrap(code >> right, name))
    np.testing.assert_array_equal(binary(name, "shift_right_arithmetic", left, right), wrap(signed >> right, name))


UNARY: dict[str, Callable[[np.ndarray, int], Any]] = {
    "negate": lambda x, bits: -x,
    "not": lambda x, bits: ~x,
    "popcnt": lambda x, bits: np.array([bin(v & ((1 << bits) - 1)).count("1") for v in x]),
    "count_leading_zeros": lambda x, bits: np.array([bits - int(v & ((1 << bits) - 1)).bit_length() for v in x]),
}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("op", UNARY)
def test_unary_arithmetic(op: str, name: str) -> None:
    values = domain(name)
    expected = UNARY[op](values, element_type(name).bits)
    np.testing.assert_array_equal(unary(name, op, values), wrap(expected, name))


@pytest.mark.parametrize("name", ["i2", "i4"])
def test_magnitude_and_sign(name: str) -> None:
    np.testing.assert_array_equal(unary(name, "abs", domain(name)), wrap(np.abs(domain(name)), name))
    np.testing.assert_array_equal(unary(name, "sign", domain(name)), np.sign(domain(name)))


@pytest.mark.parametrize("name", TYPES)
def test_conversions_of_integers_wrap_and_of_floats_saturate(name: str) -> None:
    module = lowered(f"""func.func @main(%x: tensor<256xi32>, %y: tensor<4xf32>) -> (tensor<256xi32>, tensor<4xf32>) {{
      %a = stablehlo.convert %x : (tensor<256xi32>) -> tensor<256x{name}>
      %r = stablehlo.convert %a : (tensor<256x{name}>) -> tensor<256xi32>
      %b = stablehlo.convert %y : (tensor<4xf32>) -> tensor<4x{name}>
      %s = stablehlo.convert %b : (tensor<4x{name}>) -> tensor<4xf32>
      return %r, %s : tensor<256xi32>, tensor<4xf32> }}""")
    numbers = np.arange(-128, 128, dtype=np.int32)
    low, high = domain(name)[[0, -1]]
    integers, floats = interpret(module, numbers, np.array([high + 9.5, 0.75, 1.0, max(low - 9.5, 0)], np.float32))
    np.testing.assert_array_equal(integers, wrap(numbers, name))
    np.testing.assert_array_equal(floats, [high, 0, 1, max(low - 9.5, 0)])


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("wide", ["i8", "ui16", "f32"])
def test_bitcasts_pack_the_first_element_lowest(wide: str, name: str) -> None:
    row, target = element_type(name), element_type(wide)
    count = target.bits // row.bits
    module = lowered(f"""func.func @main(%x: tensor<3x{wide}>) -> (tensor<3x{count}xi32>, tensor<3x{wide}>) {{
      %a = stablehlo.bitcast_convert %x : (tensor<3x{wide}>) -> tensor<3x{count}x{name}>
      %r = stablehlo.convert %a : (tensor<3x{count}x{name}>) -> tensor<3x{count}xi32>
      %b = stablehlo.bitcast_convert %a : (tensor<3x{count}x{name}>) -> tensor<3x{wide}>
      return %r, %b : tensor<3x{count}xi32>, tensor<3x{wide}> }}""")
    x = (
        np.array([1.5, -2.25, 100]).astype(target.dtype)
        if target.is_float
        else np.array([0x61, 0x2F, 0x8E]).astype(target.dtype)
    )
    words = x.view(f"u{target.bits // 8}").astype(int)
    parts, whole = interpret(module, x)
    np.testing.assert_array_equal(parts, wrap(words[:, None] >> (np.arange(count) * row.bits), name))
    np.testing.assert_array_equal(whole, x)


def test_constants_loops_and_reducers_are_widened() -> None:
    module = lowered("""func.func @main(%x: tensor<3x31xi8>) -> (tensor<3xi8>, tensor<i8>) {
      %a = stablehlo.convert %x : (tensor<3x31xi8>) -> tensor<3x31xi4>
      %k = stablehlo.constant dense<-3> : tensor<3x31xi4>
      %v = stablehlo.constant dense<[7, -8, 1]> : tensor<3xi4>
      %z = stablehlo.constant dense<0> : tensor<i4>
      %one = stablehlo.constant dense<1> : tensor<i4>
      %m = stablehlo.multiply %a, %k : tensor<3x31xi4>
      %s = stablehlo.reduce(%m init: %z) applies stablehlo.add across dimensions = [1]
        : (tensor<3x31xi4>, tensor<i4>) -> tensor<3xi4>
      %t = stablehlo.add %s, %v : tensor<3xi4>
      %w = stablehlo.while(%i = %z) : tensor<i4>
        cond { %p = stablehlo.compare GE, %i, %z : (tensor<i4>, tensor<i4>) -> tensor<i1>
               stablehlo.return %p : tensor<i1> }
        do { %n = stablehlo.add %i, %one : tensor<i4> stablehlo.return %n : tensor<i4> }
      %r = stablehlo.convert %t : (tensor<3xi4>) -> tensor<3xi8>
      %q = stablehlo.convert %w : (tensor<i4>) -> tensor<i8>
      return %r, %q : tensor<3xi8>, tensor<i8> }""")
    x = np.random.default_rng(0).integers(-8, 8, (3, 31)).astype(np.int8)
    total, wrapped_counter = interpret(module, x)
    np.testing.assert_array_equal(total, wrap((x.astype(int) * -3).sum(1) + np.array([7, -8, 1]), "i4"))
    assert wrapped_counter == -8


def test_a_dot_product_wraps() -> None:
    module = lowered("""func.func @main(%x: tensor<3x40xi8>) -> tensor<3x3xi8> {
      %a = stablehlo.convert %x : (tensor<3x40xi8>) -> tensor<3x40xi4>
      %d = stablehlo.dot_general %a, %a, contracting_dims = [1] x [1]
        : (tensor<3x40xi4>, tensor<3x40xi4>) -> tensor<3x3xi4>
      %r = stablehlo.convert %d : (tensor<3x3xi4>) -> tensor<3x3xi8>
      return %r : tensor<3x3xi8> }""")
    x = np.random.default_rng(0).integers(-8, 8, (3, 40)).astype(np.int8)
    (result,) = interpret(module, x)
    np.testing.assert_array_equal(result, wrap(x.astype(int) @ x.T.astype(int), "i4"))
