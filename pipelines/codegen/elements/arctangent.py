"""atan2 of f32, in f64, where quotients of f32 neither over- nor underflow.

The angle of the smaller to the larger side, then its octant and quadrant. Special values:
IEEE 754-2019, 9.2.1.

Sides of f64 that are not far from over- and underflow are scaled first. Its series: FreeBSD msun s_atan.c (Sun
Microsystems, 1993).
"""

from __future__ import annotations

from math import nan, pi

from hloforge.pipelines.codegen.elements.arithmetic import (
    fast_two_sum,
    from_bits,
    magnitude,
    polynomial,
    wide_magnitude,
    with_sign_of,
)
from hloforge.pipelines.codegen.elements.slow_paths import with_slow_path
from hloforge.pipelines.codegen.lang.values import DOUBLE, FLOAT, Value
from hloforge.pipelines.polynomials import estrin
from hloforge.pipelines.series import ARCTANGENT

# atan(t) / t for t in [0, 1] in powers of t^2, to 2^-33: by Chebyshev's nodes (mpmath's ``chebyfit``).
_ARCTANGENT = (
    0.9999999999887381,
    -0.3333333295165722,
    0.19999978336217084,
    -0.1428522560816021,
    0.11105306732424464,
    -0.09049179093720577,
    0.07495262378099696,
    -0.06022196387937433,
    0.04364658944281667,
    -0.02600599597760862,
    0.011427633277375594,
    -0.0031954252407363944,
    0.00041922786011272897,
)


# Angles as a double and the rest of it.
_NONE, _HALF, _ONE = (
    (0.0, 0.0),
    (4.63647609000806093515e-01, 2.26987774529616870924e-17),
    (pi / 4, 3.061616997868383e-17),
)
_QUARTER_TURN, _HALF_TURN = (pi / 2, 6.123233995736766e-17), (pi, 1.2246467991473532e-16)
# Bits of numbers whose quotients, and four times themselves, neither over- nor underflow.
_SMALLEST, _LARGEST = (1023 - 400) << 52, (1023 + 400) << 52
_ONE_WORD, _INFINITY = 1023 << 52, 0x7FF << 52


def arc_tangent_2(y: Value, x: Value) -> Value:
    height, width = wide_magnitude(y), wide_magnitude(x)
    steep, left = height > width, x.bits() < 0
    smaller, larger = steep.where(width, height), steep.where(height, width)
    # Equal sides also where both are infinite.
    ratio = smaller.equals(larger).where(1.0, smaller / larger)
    ratio = larger.equals(0.0).where(0.0, ratio)
    angle = ratio * polynomial(ratio * ratio, _ARCTANGENT)
    angle = steep.where(pi / 2 - angle, angle)
    angle = left.where(pi - angle, angle)
    return x.compare("uno", y).where(nan, with_sign_of(angle.as_(FLOAT), y))


def arc_tangent_2_of_doubles(y: Value, x: Value) -> Value:
    """The same of f64, within an ulp."""
    height, width = magnitude(y).bits(), magnitude(x).bits()
    # As integers, which order magnitudes alike and see subnormal ones.
    steep, left = height > width, x.bits() < 0
    smaller, larger = steep.where(width, height), steep.where(height, width)
    is_usual = (smaller >= _SMALLEST) & (larger < _LARGEST)
    given = [smaller, larger]
    high, low = _small_angle(*with_slow_path("scaled_sides", is_usual, list(map(from_bits, given)), given, _scaled))
    base = [
        steep.where(high.like(first), left.where(high.like(second), other))
        for first, second, other in zip(_QUARTER_TURN, _HALF_TURN, _NONE, strict=True)
    ]
    backwards = steep ^ left
    high, low = backwards.where(-high, high), backwards.where(-low, low)
    total, error = fast_two_sum(base[0], high)
    angle = with_sign_of(total + (error + (base[1] + low)), y)
    return x.compare("uno", y).where(nan, angle)


def _small_angle(smaller: Value, larger: Value) -> tuple[Value, Value]:
    """atan(smaller / larger) in [0, pi/4] of positive doubles that neither over- nor underflow, as a pair."""
    far, near = smaller * 16.0 > larger * 11.0, smaller * 16.0 <= larger * 7.0
    # tan(atan(s/l) - atan(c)) = (s - c l) / (l + c s) with c = 0, 1/2 or 1; the differences are exact.
    above = near.where(smaller, far.where(smaller - larger, smaller * 2.0 - larger))
    below = near.where(larger, far.where(larger + smaller, larger * 2.0 + smaller))
    t = above / below
    rest = near.where((-t).call("fma", below, above) * (1.0 / below), 0.0)
    square = t * t
    tail = rest - (t * square) * estrin(square, ARCTANGENT)
    first, second = (
        near.where(t.like(none), far.where(t.like(one), half))
        for none, one, half in zip(_NONE, _ONE, _HALF, strict=True)
    )
    high, error = fast_two_sum(first, t)
    return fast_two_sum(high, error + (tail + second))


def _scaled(smaller: Value, larger: Value) -> list[Value]:
    """Magnitudes by their bits, as two of the same ratio; (0, 1) or (1, 1) for zeros and infinities."""
    is_infinite = larger.equals(_INFINITY)
    below = is_infinite.where(smaller.equals(_INFINITY).where(smaller.like(_ONE_WORD), 0), smaller)
    above = (is_infinite | larger.equals(0)).where(_ONE_WORD, larger)
    tiny = above < _ONE_WORD
    factor = (above > (1023 + 900) << 52).where(from_bits(above).like(2.0**-100), 1.0)

    def scaled(word: Value) -> Value:
        subnormal = word < 1 << 52
        up = subnormal.where(word.as_(DOUBLE) * 2.0 ** (1000 - 1074), from_bits(word) * 2.0**1000)
        return tiny.where(up, from_bits(word) * factor)

    return [scaled(below), scaled(above)]
