"""``decompose-remainder``: remainder of floats (C's fmod) in integers, exact for all magnitudes.

Before::

    %r = stablehlo.remainder %x, %y : tensor<4xf64>

After: with x = a 2^i and y = b 2^j the remainder is (a (2^(i-j) mod b) mod b) 2^j, the power by six squarings modulo b.

IREE has no f64 form without a libm. Source: modular product by an approximate quotient as in V. Shoup, "A Computational
Introduction to Number Theory and Algebra", 3.3.

Vulkan's form of narrower floats is x - y trunc(x/y), that of signed integers takes the smallest one for positive: there
floats are computed in f64, and remainders get the sign of ``x``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.element_types import Kind
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.values import Value
from hloforge.pipelines.decompose.real_arithmetic import (
    EXPONENT_OF_2_52,
    MANTISSA,
    REAL_TYPES,
    SUBNORMAL_EXPONENT,
    Pair,
    bits,
    exactly_widened,
    from_bits,
    is_nan,
    narrowed,
    normalized,
    with_sign_of,
)
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, apply_patterns, pattern, replace

# Bits of the exponent difference (up to 2097) below its highest six.
_SQUARINGS = 6


def _integer_and_exponent(magnitude: Value) -> Pair:
    """A non-negative float64 as an integer of 53 bits (u64) and the exponent of two that scales it (s64)."""
    normal, subnormal = normalized(magnitude)
    word = bits(normal)
    exponent = ops.bitcast_convert_type(word >> 52, "s64") + (SUBNORMAL_EXPONENT - 1)
    shifted = exponent + SUBNORMAL_EXPONENT
    return (word & MANTISSA) | (1 << 52), ops.select(subnormal, shifted, exponent)


def _as_float(integer: Value) -> Value:
    """A u64 below 2**53 as float64, exactly, by halves: no vector unit converts u64."""
    upper = from_bits((integer >> 32) | EXPONENT_OF_2_52) - 2.0**52
    lower = from_bits((integer & ((1 << 32) - 1)) | EXPONENT_OF_2_52) - 2.0**52
    return upper * 2.0**32 + lower


def _as_integer(quotient: Value) -> Value:
    """A non-negative float64 below 2**53 as u64, truncated."""
    upper = ops.floor(quotient * 2.0**-32)
    lower = ops.floor(quotient - upper * 2.0**32)
    word = (bits(upper + 2.0**52) & MANTISSA) << 32
    return word | (bits(lower + 2.0**52) & MANTISSA)


@dataclass(frozen=True)
class _Modulus:
    """Arithmetic modulo an integer of exactly 53 bits."""

    integer: Value
    number: Value

    def reduced(self, value: Value) -> Value:
        """A value below twice the modulus."""
        return ops.select(value >= self.integer, value - self.integer, value)

    def product(self, a: Value, b: Value) -> Value:
        """a * b mod m of reduced values: the quotient in floats is off by three at most, the rest exact."""
        quotient = _as_integer(_as_float(a) * _as_float(b) / self.number)
        rest = a * b - quotient * self.integer
        four = self.integer << 2
        positive = rest + four
        for shift in (2, 1, 0):
            multiple = self.integer << shift
            positive = ops.select(positive >= multiple, positive - multiple, positive)
        return positive


def _remainder_of_magnitudes(x: Value, y: Value) -> Value:
    """fmod of finite float64 x >= y > 0."""
    x_integer, x_exponent = _integer_and_exponent(x)
    y_integer, y_exponent = _integer_and_exponent(y)
    modulus = _Modulus(y_integer, _as_float(y_integer))
    difference = ops.bitcast_convert_type(ops.max(x_exponent - y_exponent, 0), "u64")
    # The highest six bits of the difference are at most 32, and 2**32 is below any modulus of 53 bits.
    power = full(difference, 1) << (difference >> _SQUARINGS)
    for bit in reversed(range(_SQUARINGS)):
        square = modulus.product(power, power)
        doubled = modulus.reduced(square << 1)
        power = ops.select(((difference >> bit) & 1).ne(0), doubled, square)
    return _scaled_integer(modulus.product(modulus.reduced(x_integer), power), y_exponent)


def _scaled_integer(integer: Value, exponent: Value) -> Value:
    """``integer * 2**exponent``, known to be a float64, by its bits: arithmetic would flush a subnormal one."""
    word = bits(_as_float(integer))
    shifted = ops.bitcast_convert_type(word >> 52, "s64") + exponent
    normal = word + ops.bitcast_convert_type(exponent << 52, "u64")
    right = ops.bitcast_convert_type(ops.min(ops.max(1 - shifted, 0), 63), "u64")
    subnormal = ((word & MANTISSA) | (1 << 52)) >> right
    return from_bits(ops.select(integer.eq(0), integer, ops.select(shifted > 0, normal, subnormal)))


def remainder(x: Value, y: Value) -> Value:
    """fmod of float64: exact, with the sign of ``x``; NaN for an infinite ``x`` or a zero ``y``."""
    x_magnitude, y_magnitude = ops.abs(x), ops.abs(y)
    rest = with_sign_of(_remainder_of_magnitudes(x_magnitude, y_magnitude), x)
    # Compared as integers, which order non-negative floats alike and see subnormal ones.
    result = ops.select(bits(x_magnitude) < bits(y_magnitude), x, rest)
    invalid = x_magnitude.eq(inf) | bits(y_magnitude).eq(0) | is_nan(x) | is_nan(y)
    return ops.select(invalid, nan, result)


@pattern("stablehlo.remainder")
def by_modular_powers(op: ir.Operation) -> Replacement:
    """remainder of f64 -> integer arithmetic; any shape."""
    x, y = map(Value, op.operands)
    if x.element_type.name != "f64":
        return NoMatch("not f64")
    return remainder(x, y)


@pattern("stablehlo.remainder")
def narrow_by_modular_powers(op: ir.Operation) -> Replacement:
    """remainder of f16, bf16, f32 -> that of f64; any shape."""
    x, y = map(Value, op.operands)
    row = x.element_type
    if row.name not in REAL_TYPES or row.name == "f64":
        return NoMatch(f"no form for {row}")
    return narrowed(remainder(exactly_widened(x), exactly_widened(y)), row.name)


@register
@dataclass(frozen=True)
class DecomposeRemainder(Pass):
    """Replace remainders of float64 by exact integer arithmetic.

    Attributes:
        all_types: those of other floats and of signed integers as well.
    """

    name: ClassVar[str] = "decompose-remainder"
    all_types: bool = False

    def run(self, module: ir.Module) -> None:
        apply_patterns(module, by_modular_powers)
        if self.all_types:
            apply_patterns(module, narrow_by_modular_powers)
            with in_context(module):
                for op in operations(module, {"stablehlo.remainder"}):
                    if Value(op.operands[0]).element_type.kind is Kind.SIGNED:
                        with ir.InsertionPoint(op), op.location:
                            replace(op, [_of_signed(*map(Value, op.operands))])


def _of_signed(x: Value, y: Value) -> Value:
    """The remainder of signed integers, of which Vulkan's may have the wrong sign."""
    rest, zero = ops.rem(x, y), full(x, 0)
    return ops.select((x < zero).eq(rest < zero), rest, -rest)
