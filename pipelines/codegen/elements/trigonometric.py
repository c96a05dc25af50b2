"""Sine, cosine and tangent of f32, in f64: the angle modulo pi/2, two polynomials, and a choice by quadrant.

An angle below 2^128 needs three parts of 2/pi, chosen by its magnitude, whose products with 24 bits are exact. Sources:
M. Payne and R. Hanek, "Radian reduction for trigonometric functions", SIGNUM 18 (1983); FreeBSD msun k_sindf.c,
k_cosdf.c, e_rem_pio2f.c (Sun Microsystems, 1993).
"""

from __future__ import annotations

from hloforge.pipelines.codegen.elements.arithmetic import (
    INTEGER_ORIGIN,
    from_bits,
    magnitude,
    nearest_integer,
    polynomial,
)
from hloforge.pipelines.codegen.elements.slow_paths import with_slow_path
from hloforge.pipelines.codegen.lang.values import DOUBLE, FLOAT, Value
from hloforge.pipelines.series import PARTS_OF_TWO_OVER_PI, SHORT_COSINE, SHORT_SINE

_PI_OVER_2 = 1.5707963267948966
# Angles of fewer quarter turns than 2^20, and pi/2 as its first 33 bits and the rest.
_MODERATE = 2.0**20
_TWO_OVER_PI = 0.6366197723675814
_HALF_PI_PARTS = (1.57079632673412561417, 6.07710050650619224932e-11)
# Below it, x^3/3 is under half an ulp of x.
_TINY = 2.0**-14
_SIGN = -(1 << 63)


def sine(x: Value) -> Value:
    wide, quadrant, sine, cosine = _reduced(x)
    chosen = _odd(quadrant).where(cosine, sine)
    return _tiny_as_is(x, _negated_if(chosen, (quadrant << 62) ^ wide.bits()))


def cosine(x: Value) -> Value:
    _, quadrant, sine, cosine = _reduced(x)
    return _negated_if(_odd(quadrant).where(sine, cosine), (quadrant + 1) << 62).as_(FLOAT)


def cosine_and_sine(x: Value) -> tuple[Value, Value]:
    """Both of an f32, as f64; without branches."""
    wide = x.as_(DOUBLE)
    quadrant, rest = _by_parts(magnitude(wide))
    sine, cosine = _both(rest)
    odd = _odd(quadrant)
    sines = _negated_if(odd.where(cosine, sine), (quadrant << 62) ^ wide.bits())
    return _negated_if(odd.where(sine, cosine), (quadrant + 1) << 62), sines


def tangent(x: Value) -> Value:
    wide, quadrant, sine, cosine = _reduced(x)
    odd = _odd(quadrant)
    ratio = odd.where(cosine, sine) / odd.where(sine, cosine)
    return _tiny_as_is(x, _negated_if(ratio, (quadrant << 63) ^ wide.bits()))


def _reduced(x: Value) -> tuple[Value, Value, Value, Value]:
    """The angle as f64, its quadrant (the low two bits), and sine and cosine of the rest; NaN for infinite angles."""
    wide = x.as_(DOUBLE)
    size = magnitude(wide)
    quadrant, rest = with_slow_path("large_angle.float", size < _MODERATE, _by_product(size), [size], _by_parts)
    return wide, quadrant, *_both(rest)


def _both(r: Value) -> tuple[Value, Value]:
    """Sine and cosine of an angle of at most pi/4."""
    square = r * r
    return r + (square * r) * polynomial(square, SHORT_SINE), square * polynomial(square, SHORT_COSINE) + 1.0


def _by_product(size: Value) -> tuple[Value, Value]:
    """The quadrant of a moderate angle, and the rest: the product with the first part of pi/2 is exact."""
    turns, quadrant = nearest_integer(size * _TWO_OVER_PI)
    return quadrant, (size - turns * _HALF_PI_PARTS[0]) - turns * _HALF_PI_PARTS[1]


def _by_parts(size: Value) -> tuple[Value, Value]:
    """The quadrant of any angle, and the rest."""
    parts = [size.like(part) for part in PARTS_OF_TWO_OVER_PI[0][1]]
    for start, row in PARTS_OF_TWO_OVER_PI[1:]:
        above = size >= start
        parts = [above.where(new, old) for new, old in zip(row, parts, strict=True)]
    upper, upper_turns = _without_turns(size * parts[0])
    middle, middle_turns = _without_turns(size * parts[1])
    shifted = (upper + middle) + INTEGER_ORIGIN[DOUBLE]
    r = (((upper - (shifted - INTEGER_ORIGIN[DOUBLE])) + middle) + size * parts[2]) * _PI_OVER_2
    return shifted.bits() + upper_turns + middle_turns, r


def _without_turns(x: Value) -> tuple[Value, Value]:
    """A float64 from 0 to 2^52 without the nearest integer, and that integer, modulo 2^52."""
    shifted = x + 2.0**52
    return x - (shifted - 2.0**52), shifted.bits()


def _odd(quadrant: Value) -> Value:
    # The sign bit decides: vector units choose by it without a comparison.
    return (quadrant << 63) < 0


def _negated_if(value: Value, word: Value) -> Value:
    """``value`` with its sign changed where the highest bit of ``word`` is set."""
    return from_bits(value.bits() ^ (word & _SIGN))


def _tiny_as_is(x: Value, result: Value) -> Value:
    return (magnitude(x) < _TINY).where(x, result.as_(FLOAT))
