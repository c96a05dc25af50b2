"""Sine, cosine and tangent of f64: the angle modulo pi/2, two polynomials, and a choice by quadrant.

|x| = n pi/2 + r. Below 2^20 r is x less n times three parts of pi/2, kept with its rounding errors; of larger angles
it is a product with those bits of 2/pi that count (``slow_paths.py``). Sources: M. Payne and R. Hanek, "Radian
reduction for trigonometric functions", SIGNUM 18 (1983); FreeBSD msun k_sin.c, k_cos.c (Sun Microsystems, 1993).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import inf, nan

from hloforge.pipelines.codegen.elements.arithmetic import (
    fast_two_sum,
    from_bits,
    magnitude,
    nearest_integer,
    two_sum,
)
from hloforge.pipelines.codegen.elements.slow_paths import with_slow_path_by_lane
from hloforge.pipelines.codegen.lang.values import DOUBLE, I64, Value
from hloforge.pipelines.polynomials import estrin
from hloforge.pipelines.series import COSINE, SINE, TWO_OVER_PI

_MODERATE = 2.0**20
_QUARTERS = 0.6366197723675814
# pi/2 as three doubles.
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
# Below it, x^3/3 is under half an ulp of x.
_TINY = 2.0**-28
_MANTISSA = (1 << 52) - 1
_SIGN = -(1 << 63)
_WIDE = "i128"


@dataclass(frozen=True)
class _Angle:
    """``|x| = quadrant * pi/2 + high + low`` modulo 2 pi, ``|high|`` at most about pi/4.

    Attributes:
        quadrant: i64, only the lowest two bits count.
        high: a double; NaN for angles that are not finite.
        low: the part of the rest below half an ulp of ``high``, or about as small.
    """

    quadrant: Value
    high: Value
    low: Value


def sine(x: Value) -> Value:
    angle = _reduced(x)
    chosen = _odd(angle).where(_total(_cosine(angle)), _total(_sine(angle)))
    return _tiny_as_is(x, _negated_if(chosen, (angle.quadrant << 62) ^ x.bits()))


def cosine(x: Value) -> Value:
    angle = _reduced(x)
    chosen = _odd(angle).where(_total(_sine(angle)), _total(_cosine(angle)))
    return _negated_if(chosen, (angle.quadrant + 1) << 62)


def tangent(x: Value) -> Value:
    """sin / cos of the rest, or minus cos / sin in odd quadrants."""
    angle = _reduced(x)
    sine, cosine = fast_two_sum(*_sine(angle)), fast_two_sum(*_cosine(angle))
    odd = _odd(angle)
    (above, above_rest), (below, below_rest) = (
        tuple(odd.where(other, one) for one, other in zip(first, second, strict=True))
        for first, second in ((sine, cosine), (cosine, sine))
    )
    inverse = 1.0 / below
    ratio = above * inverse
    rest = (-ratio).call("fma", below, above) + (above_rest - ratio * below_rest)
    return _tiny_as_is(x, _negated_if(ratio + rest * inverse, (angle.quadrant << 63) ^ x.bits()))


def _sine(angle: _Angle) -> tuple[Value, Value]:
    """The sine of the rest as its largest part, and what is added to it."""
    r, low = angle.high, angle.low
    square = r * r
    return r, (square * r) * estrin(square, SINE) + (low - low * (square * 0.5))


def _cosine(angle: _Angle) -> tuple[Value, Value]:
    r = angle.high
    square = r * r
    half = square * 0.5
    whole = 1.0 - half
    return whole, ((1.0 - whole) - half) + (square * square * estrin(square, COSINE) - r * angle.low)


def _total(parts: tuple[Value, Value]) -> Value:
    return parts[0] + parts[1]


def _odd(angle: _Angle) -> Value:
    return (angle.quadrant & 1).differs(0)


def _negated_if(value: Value, word: Value) -> Value:
    """``value`` with its sign changed where the highest bit of ``word`` is set."""
    return from_bits(value.bits() ^ (word & _SIGN))


def _tiny_as_is(x: Value, result: Value) -> Value:
    # Subnormal numbers too, which arithmetic would flush.
    return (magnitude(x) < _TINY).where(x, result)


def _reduced(x: Value) -> _Angle:
    size = magnitude(x)
    return _Angle(*with_slow_path_by_lane("large_angle", size < _MODERATE, _by_parts(size), [size], _by_digits))


def _by_parts(size: Value) -> list[Value]:
    """Of a moderate angle."""
    first, second, third = _HALF_PI
    turns, quadrant = nearest_integer(size * _QUARTERS)
    # Exact: both are multiples of 2^-53, and so is the difference, which is below 1.
    rest = (-turns).call("fma", first, size)
    product = turns.literally("mul", second)
    high, error = two_sum(rest, -product)
    return [quadrant, high, error - (turns * third + turns.call("fma", second, -product))]


def _by_digits(size: Value) -> list[Value]:
    """Of any angle of at least 1/2.

    It is a mantissa times 2^e, whose product has as whole turns what stands before some bit of 2/pi. Of the 192 bits
    from there on, 128 of the product are kept.
    """
    function, word = size.function, size.bits()
    # Of what is not finite the digits do not matter, but they have to be there.
    exponent = word.shifted_right(52) - 1022
    offset = exponent.minimum(1023)
    mantissa = ((word & _MANTISSA) | (1 << 52)) << (exponent - offset)
    table = function.table(TWO_OVER_PI, I64)
    place, shift = offset.shifted_right(6), offset & 63
    words = [function.load(function.offset(table, I64, place + number), I64) for number in range(4)]
    digits = [high.call("fshl", low, shift) for high, low in pairwise(words)]
    first, second, third = ((mantissa * digits[0]).as_(_WIDE, signed=False), *map(_wide, digits[1:]))
    factor = _wide(mantissa)
    product = (first << 64) + second * factor + (third * factor).shifted_right(64)
    quadrant = (product.shifted_right(126) + (product.shifted_right(125) & 1)).as_(I64)
    # The fraction of a quarter turn, from -1/2 to 1/2.
    fraction = product << 2
    negative = fraction < 0
    high, low = _as_doubles(negative.where(-fraction, fraction))
    pi_high, pi_low = _HALF_PI[:2]
    result = high.literally("mul", pi_high)
    rest = high.call("fma", pi_high, -result) + (high * pi_low + low * pi_high)
    result = (size < inf).where(result, nan)
    return [quadrant, negative.where(-result, result), negative.where(-rest, rest)]


def _wide(word: Value) -> Value:
    return word.as_(_WIDE, signed=False)


def _as_doubles(number: Value) -> tuple[Value, Value]:
    """A positive 128-bit fraction of 1 as two doubles. No conversion of so many bits is without a library."""
    zeros = number.call("ctlz")
    number = number << zeros
    high = number.shifted_right(75).as_(I64).as_(DOUBLE)
    low = (number.shifted_right(12).as_(I64) & ((1 << 63) - 1)).as_(DOUBLE)
    scale = from_bits((1023 - zeros.as_(I64)) << 52)
    return high * 2.0**-53 * scale, low * 2.0**-116 * scale
