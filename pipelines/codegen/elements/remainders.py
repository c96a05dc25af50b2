"""Remainders of floats (C's fmod) of f32, exact, in f64.

With |x| = a 2^i and |y| = b 2^j, a and b of 24 bits, the remainder is (a (2^(i-j) mod b) mod b) 2^j, the power by four
squarings modulo b, whose products f64 holds exactly. Source: modular product by an approximate quotient as in V. Shoup,
"A Computational Introduction to Number Theory and Algebra", 3.3. f64 is taken apart before by ``decompose-remainder``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan

from hloforge.pipelines.codegen.elements.arithmetic import from_bits, wide_magnitude, with_sign_of
from hloforge.pipelines.codegen.lang.values import FLOAT, I32, Value

_MANTISSA = (1 << 52) - 1
_EXPONENT_OF_2_23 = (1023 + 23) << 52
# Bits of the exponents' difference, up to 276, below its highest five.
_SQUARINGS = 4


@dataclass(frozen=True)
class _Modulus:
    """Arithmetic modulo an integer of 24 bits.

    Attributes:
        number: the integer as f64.
        inverse: its reciprocal, rounded.
    """

    number: Value
    inverse: Value

    def reduced(self, value: Value) -> Value:
        """An integer below 2^49, whose quotient is off by one at most."""
        quotient = (value * self.inverse).call("floor")
        rest = value - quotient * self.number
        rest = (rest < 0.0).where(rest + self.number, rest)
        return self.lowered(rest)

    def lowered(self, value: Value) -> Value:
        """An integer below twice the modulus."""
        return (value >= self.number).where(value - self.number, value)


def remainder(x: Value, y: Value) -> Value:
    """fmod with the sign of ``x``; NaN for an infinite ``x`` or a zero ``y``."""
    size, divisor = wide_magnitude(x), wide_magnitude(y)
    number = _integer(divisor)
    modulus = _Modulus(number, 1.0 / number)
    difference = (size.bits().shifted_right(52) - divisor.bits().shifted_right(52)).maximum(0)
    # The highest five bits of the difference are at most 17, and 2^17 is below any modulus.
    power = from_bits(((difference.shifted_right(_SQUARINGS)) + 1023) << 52)
    for bit in reversed(range(_SQUARINGS)):
        square = modulus.reduced(power * power)
        power = (difference & (1 << bit)).differs(0).where(modulus.lowered(square + square), square)
    rest = modulus.reduced(modulus.lowered(_integer(size)) * power)
    exponent = divisor.bits() & ~_MANTISSA
    result = _narrowed(rest * 2.0**-23 * from_bits(exponent))
    result = (size < divisor).where(x, with_sign_of(result, x))
    invalid = size.equals(inf) | divisor.equals(0.0) | x.compare("uno", y)
    return invalid.where(nan, result)


def _integer(magnitude: Value) -> Value:
    """The mantissa of a double that is an f32 as an integer of 24 bits, in f64."""
    return from_bits((magnitude.bits() & _MANTISSA) | _EXPONENT_OF_2_23)


def _narrowed(magnitude: Value) -> Value:
    """A double that is an f32 as such; subnormal ones by their bits, for a conversion would flush them."""
    small = (magnitude < 2.0**-126).where(magnitude * 2.0**149, 0.0)
    subnormal = from_bits(magnitude.function.cast("fptosi", small, I32))
    return (magnitude < 2.0**-126).where(subnormal, magnitude.as_(FLOAT))
