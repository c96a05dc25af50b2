"""Angles modulo pi/2, exact for every float: the reduction that sine, cosine and tangent share.

An angle ``m * 2**e`` needs only those bits of 2/pi that turn into its last two whole quarter turns and the fraction;
they are selected by ``e`` and multiplied by ``m`` in integers. One path for all magnitudes keeps the code free of
branches.
Source: M. Payne and R. Hanek, "Radian reduction for trigonometric functions", SIGNUM 18 (1983).
"""

from __future__ import annotations

from dataclasses import dataclass

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.values import Value
from hloforge.pipelines.decompose.real_arithmetic import (
    EXPONENT_OF_ONE,
    INTEGER_ORIGIN,
    LOW_WORD,
    MANTISSA,
    SIGN,
    Pair,
    bits,
    fast_two_sum,
    from_bits,
    halves,
)
from hloforge.pipelines.series import PARTS_OF_TWO_OVER_PI, TWO_OVER_PI

_PI_OVER_2 = 1.5707963267948966
# pi/2 as 26 bits and the rest.
_PI_OVER_2_HIGH, _PI_OVER_2_LOW = 1.5707963109016418, 1.5893254773528196e-08
_PI_OVER_4 = 0.7853981633974483
_WORD = 64


@dataclass(frozen=True)
class Reduced:
    """``|angle| = quadrant * pi/2 + high + low`` modulo 2 pi, with ``|high| <= pi/4``.

    Attributes:
        quadrant: u64, only the lowest two bits count.
        high: float64.
        low: float64, the part of the rest below half an ulp of ``high``; None where the caller rounds to float32.
    """

    quadrant: Value
    high: Value
    low: Value | None


def reduce_float64(angle: Value) -> Reduced:
    """Reduce float64 angles; the rest has about 64 correct bits. Infinities and NaN give meaningless numbers."""
    magnitude = ops.abs(angle)
    exponent = ops.max(bits(magnitude) >> 52, 1022)
    offset = ops.min(exponent - 1022, 1023)
    mantissa = ((bits(magnitude) & MANTISSA) | (1 << 52)) << (exponent - 1022 - offset)
    first, second, third = _digits(offset, 3, index_bits=4)
    middle, carry_into_top = _product(mantissa, second)
    middle = middle + _product(mantissa, third)[1]
    carry = _product(mantissa, third)[1] > middle
    top = mantissa * first + carry_into_top + ops.convert_element_type(carry, "u64")
    high, low = _times_pi_over_2((top << 2) | (middle >> 62), middle << 2)
    small = magnitude <= _PI_OVER_4
    zero = full(magnitude, 0.0)
    return Reduced(
        ops.select(small, full(top, 0), _nearest(top)),
        ops.select(small, magnitude, high),
        ops.select(small, zero, low),
    )


def reduce_float32(angle: Value) -> Reduced:
    """Reduce float64 angles that are float32 numbers: three parts of 2/pi, whose products with 24 bits are exact."""
    magnitude = ops.abs(angle)
    parts = [full(magnitude, part) for part in PARTS_OF_TWO_OVER_PI[0][1]]
    for start, row in PARTS_OF_TWO_OVER_PI[1:]:
        above = magnitude >= start
        parts = [ops.select(above, full(magnitude, new), old) for new, old in zip(row, parts, strict=True)]
    upper, upper_turns = _without_turns(magnitude * parts[0])
    middle, middle_turns = _without_turns(magnitude * parts[1])
    shifted = (upper + middle) + INTEGER_ORIGIN
    fraction = ((upper - (shifted - INTEGER_ORIGIN)) + middle) + magnitude * parts[2]
    return Reduced(bits(shifted) + upper_turns + middle_turns, fraction * _PI_OVER_2, None)


def _without_turns(x: Value) -> tuple[Value, Value]:
    """A float64 from 0 to 2^52 without the nearest integer, and that integer as u64, modulo 2^52."""
    shifted = x + 2.0**52
    return x - (shifted - 2.0**52), bits(shifted)


def _nearest(top: Value) -> Value:
    """The nearest quadrant of a product whose highest two bits count quarter turns."""
    return (top >> 62) + ((top >> 61) & 1)


def _digits(offset: Value, count: int, index_bits: int) -> list[Value]:
    """``count`` words of 2/pi from bit ``offset`` on, by a tree of selections: it vectorizes, a gather does not."""
    words = [full(offset, word) for word in TWO_OVER_PI[: count + (1 << index_bits)]]
    for bit in reversed(range(index_bits)):
        step = 1 << bit
        chosen = ((offset >> (6 + bit)) & 1).ne(0)
        kept = min(count + step, len(words))
        words = [
            ops.select(chosen, words[j + step], words[j]) if j + step < len(words) else words[j] for j in range(kept)
        ]
    shift = offset & (_WORD - 1)
    # The right shift in two steps: by 64 in one it would be undefined.
    back = 63 - shift
    return [(words[j] << shift) | ((words[j + 1] >> 1) >> back) for j in range(count)]


def _product(a: Value, b: Value) -> Pair:
    """The 128-bit product of two u64 as (low, high) words."""
    a_low, a_high, b_low, b_high = a & LOW_WORD, a >> 32, b & LOW_WORD, b >> 32
    low = a_low * b_low
    inner = a_high * b_low + (low >> 32)
    outer = a_low * b_high + (inner & LOW_WORD)
    return (outer << 32) | (low & LOW_WORD), a_high * b_high + (inner >> 32) + (outer >> 32)


def _magnitude(word: Value) -> tuple[Value, Value]:
    """A two's complement word without its sign, and a word of sign bits (all ones if negative)."""
    sign = ops.bitcast_convert_type(ops.bitcast_convert_type(word, "s64") >> 63, "u64")
    return word ^ sign, sign


def _float(word: Value, exponent: int) -> Value:
    """``word * 2**exponent`` for a u64 below 2**32, exactly, by setting the mantissa: no vector unit converts u64."""
    base = EXPONENT_OF_ONE + ((52 + exponent) << 52)
    return from_bits(word | base) - 2.0 ** (52 + exponent)


def _times_pi_over_2(high: Value, low: Value) -> Pair:
    """A signed 128-bit fraction in [-1/2, 1/2) times pi/2, as a pair of floats."""
    upper, sign = _magnitude(high)
    lower = low ^ sign
    total, error = fast_two_sum(_float(upper >> 32, -32), _float(upper & LOW_WORD, -64))
    total, error = fast_two_sum(total, error + (_float(lower >> 32, -96) + _float(lower & LOW_WORD, -128)))
    total_high, total_low = halves(total)
    exact = total_high * _PI_OVER_2_HIGH
    rest = (total_high * _PI_OVER_2_LOW + total_low * _PI_OVER_2) + error * _PI_OVER_2
    product, tail = fast_two_sum(exact, rest)
    flip = sign & SIGN
    return from_bits(bits(product) ^ flip), from_bits(bits(tail) ^ flip)
