"""Remainders of floats (C's fmod), exact.

It is |x| - q |y| if the quotient has at most as many bits as a float: rounded, q is off by one at most, and what is
left is a multiple of the last bit of y, so that it is exact as well. Other doubles are divided bit by bit.

Others of f32 in f64: with |x| = a 2^i and |y| = b 2^j, a and b of 24 bits, the remainder is (a (2^(i-j) mod b) mod b)
2^j, the power by four squarings modulo b, whose products f64 holds exactly. Source: modular product by an approximate
quotient as in V. Shoup, "A Computational Introduction to Number Theory and Algebra", 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan

from hloforge.pipelines.codegen.elements.arithmetic import from_bits, magnitude, wide_magnitude, with_sign_of
from hloforge.pipelines.codegen.elements.slow_paths import with_slow_path, with_slow_path_by_lane
from hloforge.pipelines.codegen.lang.values import DOUBLE, FLOAT, I32, Value, element_of

_MANTISSA = (1 << 52) - 1
_INFINITY = {FLOAT: 0xFF << 23, DOUBLE: 0x7FF << 52}
# Zeros before the highest bit of a double's mantissa, in a word.
_LEADING = 11
# Of a quotient whose rounding is off by one at most, and the smallest divisor for which no step is subnormal.
_QUOTIENT_BITS = {FLOAT: 23, DOUBLE: 52}
_LEAST_DIVISOR = {FLOAT: 2.0**-100, DOUBLE: 2.0**-960}
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
    element = element_of(x.kind)
    size, divisor, infinity = magnitude(x), magnitude(y), _INFINITY[element]
    word, other = size.bits(), divisor.bits()
    largest = divisor * 2.0 ** _QUOTIENT_BITS[element]
    # Products of less are subnormal numbers, which the arithmetic of floats takes for zero.
    is_long = ((size >= largest) | (divisor < _LEAST_DIVISOR[element])) & (size < inf) & other.differs(0)
    is_short, rest = ~is_long, _divided(size, divisor)
    if element == DOUBLE:
        (rest,) = with_slow_path_by_lane("long_remainder", is_short, [rest], [size, divisor], _at_length)
    else:
        (rest,) = with_slow_path("long_remainder.float", is_short, [rest], [size, divisor], _narrow_at_length)
    result = (word < other).where(x, with_sign_of(rest, x))
    invalid = (word >= infinity) | (other > infinity) | other.equals(0)
    return invalid.where(nan, result)


def _divided(size: Value, divisor: Value) -> Value:
    """What is left of a magnitude, by a quotient that is rounded by less than one."""
    rest = (-(size / divisor).call("floor")).call("fma", divisor, size)
    return (rest < 0.0).where(rest + divisor, rest)


def _narrow_at_length(size: Value, divisor: Value) -> list[Value]:
    """The remainder of f32's magnitudes by any number of steps; of an infinite one or by 0 any number."""
    return [_narrowed(_by_squarings(wide_magnitude(size), wide_magnitude(divisor)))]


def _at_length(size: Value, divisor: Value) -> list[Value]:
    """The same of two doubles."""
    return [from_bits(_by_bits(size.bits(), divisor.bits()))]


def _by_bits(word: Value, other: Value) -> Value:
    """The remainder of the magnitudes of doubles by their bits, of any; of an infinite one or by 0 any number."""
    number, exponent = _taken_apart(word)
    divisor, least = _taken_apart(other)
    loop = word.function.loop(0, (exponent - least).maximum(0), carried=[number])
    with loop as (_, (left,)):
        loop.next([_less(left, divisor) << 1])
    rest = _less(loop.results[0], divisor)
    # Its highest bit goes to the place of the implicit one, or as far as the smallest exponent allows.
    shift = (rest.call("ctlz") - _LEADING).minimum((least - 1).maximum(0))
    moved = (rest << shift).shifted_right((1 - least).maximum(0))
    exponent = (moved >= 1 << 52).where(least - shift, 0)
    return rest.equals(0).where(0, (moved & _MANTISSA) | (exponent << 52))


def _less(left: Value, divisor: Value) -> Value:
    return (left >= divisor).where(left - divisor, left)


def _taken_apart(word: Value) -> tuple[Value, Value]:
    """A double's mantissa, of 53 bits, and its exponent, which is at most 0 for subnormal ones."""
    mantissa, exponent = word & _MANTISSA, word.shifted_right(52)
    shift = mantissa.call("ctlz") - _LEADING
    is_normal = exponent > 0
    return is_normal.where(mantissa | (1 << 52), mantissa << (shift & 63)), is_normal.where(exponent, 1 - shift)


def _by_squarings(size: Value, divisor: Value) -> Value:
    """The remainder of f32's magnitudes in f64, in a fixed number of steps; of smaller ones any number."""
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
    return rest * 2.0**-23 * from_bits(exponent)


def _integer(magnitude: Value) -> Value:
    """The mantissa of a double that is an f32 as an integer of 24 bits, in f64."""
    return from_bits((magnitude.bits() & _MANTISSA) | _EXPONENT_OF_2_23)


def _narrowed(magnitude: Value) -> Value:
    """A double that is an f32 as such; subnormal ones by their bits, for a conversion would flush them."""
    small = (magnitude < 2.0**-126).where(magnitude * 2.0**149, 0.0)
    subnormal = from_bits(magnitude.function.cast("fptosi", small, I32))
    return (magnitude < 2.0**-126).where(subnormal, magnitude.as_(FLOAT))
