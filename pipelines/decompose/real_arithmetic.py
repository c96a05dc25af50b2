"""What the decompositions of real functions share: the bits of a float64, and sums and products with their error.

A product that is later cancelled is always one of halves of 26 and 27 bits, hence exact: the backend may contract a
product and a sum into one fused operation, and an exact product is the same either way. IREE and XLA run with
subnormals flushed in arithmetic, so whatever depends on them looks at the bits. Source: T. Dekker, "A floating-point
technique for extending the available precision", Numer. Math. 18 (1971).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.marks import ROUNDED
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value

# The sum of a float64 and a correction below half its last place.
Pair: TypeAlias = tuple[Value, Value]

MANTISSA = (1 << 52) - 1
SIGN = 1 << 63
EXPONENT_OF_ONE = 1023 << 52
EXPONENT_OF_2_52 = (1023 + 52) << 52
INFINITY = 2047 << 52
SMALLEST_NORMAL = 1 << 52
# A subnormal number is its mantissa, an integer, times 2**SUBNORMAL_EXPONENT.
SUBNORMAL_EXPONENT = -1074
LOW_WORD = (1 << 32) - 1
_HIGH_HALF = ~((1 << 27) - 1) & (2**64 - 1)
# 3/2 * 2^52: sums with it have the last bit of weight one, for either sign.
INTEGER_ORIGIN = 1.5 * 2.0**52
_NARROW = frozenset({"f16", "bf16", "f32"})


def bits(x: Value) -> Value:
    """The bits of a float64 as u64."""
    return ops.bitcast_convert_type(x, "u64")


def from_bits(word: Value) -> Value:
    """The float64 with the bits of a u64."""
    return ops.bitcast_convert_type(word, "f64")


def masked(x: Value, mask: int) -> Value:
    """A float64 with only the bits of ``mask`` kept."""
    return from_bits(bits(x) & mask)


def halves(x: Value) -> Pair:
    """A float64 as the sum of its upper 26 bits and its lower 27."""
    high = masked(x, _HIGH_HALF)
    return high, x - high


def with_sign_of(magnitude: Value, source: Value) -> Value:
    """``magnitude`` (not negative) with the sign bit of ``source``."""
    return from_bits(bits(magnitude) | (bits(source) & SIGN))


def is_negative(x: Value) -> Value:
    """Whether the sign bit is set: true for -0 also."""
    return (bits(x) & SIGN).ne(0)


def is_nan(x: Value) -> Value:
    """Whether each float is no number."""
    return x.ne(x)


def is_regular(x: Value) -> Value:
    """Whether each float64 is neither zero nor infinite nor NaN; subnormal numbers are regular."""
    word = bits(x) & (SIGN - 1)
    return word.ne(0) & (word < INFINITY)


def normalized(magnitude: Value) -> tuple[Value, Value]:
    """A non-negative float64 as a normal one, times ``2**SUBNORMAL_EXPONENT`` where the second result holds."""
    word = bits(magnitude)
    subnormal = word < SMALLEST_NORMAL
    mantissa = from_bits(word | EXPONENT_OF_2_52) - 2.0**52
    return ops.select(subnormal, mantissa, magnitude), subnormal


def fast_two_sum(a: Value, b: Value) -> Pair:
    """a + b and its rounding error; needs ``|a| >= |b|`` or ``a == 0``."""
    total = a + b
    return total, b - (total - a)


def two_sum(a: Value, b: Value) -> Pair:
    """a + b and its rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def remainder_of_product(a: Value, b: Value, c: Value) -> Value:
    """``a - b*c`` where ``b*c`` is within an ulp or so of ``a``, accurate far below an ulp of ``a``."""
    b_high, b_low = halves(b)
    c_high, c_low = halves(c)
    return ((a - b_high * c_high) - (b_high * c_low + b_low * c_high)) - b_low * c_low


def quotient(numerator: Pair, denominator: Pair) -> Value:
    """The ratio of two pairs, rounded to about half an ulp."""
    rough = numerator[0] / denominator[0]
    rest = remainder_of_product(numerator[0], rough, denominator[0]) + (numerator[1] - rough * denominator[1])
    return rough + rest / denominator[0]


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """Horner's rule; ``coefficients`` from the constant term up."""
    total = full(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def power_of_two(exponent: Value) -> Value:
    """2**exponent for s64 in [-1022, 1023]."""
    return ops.bitcast_convert_type((exponent + 1023) << 52, "f64")


def scaled(x: Value, exponent: Value) -> Value:
    """``x * 2**exponent`` for s64 in [-2044, 2046], by two factors, so that it over- and underflows only as x does."""
    first = exponent >> 1
    return (x * power_of_two(first)) * power_of_two(exponent - first)


def to_integer(x: Value) -> Value:
    """An integral float64 below 2**51 in magnitude as s64, by its mantissa: no vector unit converts to s64."""
    return ops.bitcast_convert_type(x + INTEGER_ORIGIN, "s64") - ((1023 + 52 << 52) + (1 << 51))


def in_float64(function: Callable[..., Value], *operands: Value) -> Value:
    """Apply ``function`` to the operands widened to float64 and round the result to the operands' type."""
    row = operands[0].element_type
    result = function(*(exactly_widened(operand) for operand in operands))
    return narrowed(result, row.name)


def widened(x: Value) -> Value:
    """A float as float64; half precision goes through float32, for which alone CPUs have instructions."""
    return ops.convert_element_type(_in_f32(x) if x.element_type.name in _NARROW else x, "f64")


def _in_f32(x: Value) -> Value:
    """A float as float32, by a conversion that is no step of the program: ``legalize-bf16`` rounds before it."""
    wide = ops.convert_element_type(x, "f32")
    if x.element_type.name == "bf16":
        wide.ir.owner.attributes[ROUNDED] = ir.UnitAttr.get()
    return wide


def exactly_widened(x: Value) -> Value:
    """The same, subnormal numbers of float32 and bfloat16 included: conversion would flush them."""
    wide = widened(x)
    if x.element_type.name not in ("f32", "bf16"):
        return wide
    word = ops.convert_element_type(ops.bitcast_convert_type(_in_f32(x), "u32"), "u64")
    magnitude = word & ((1 << 31) - 1)
    mantissa = (from_bits(magnitude | EXPONENT_OF_2_52) - 2.0**52) * 2.0**-149
    subnormal = with_sign_of(mantissa, from_bits(word << 32))
    return ops.select(magnitude < (1 << 23), subnormal, wide)


def narrowed(x: Value, name: str) -> Value:
    """A float64 as the element type ``name``, by float32 for half precision."""
    return ops.convert_element_type(ops.convert_element_type(x, "f32") if name in _NARROW else x, name)


REAL_TYPES = frozenset({"f64"}) | _NARROW
