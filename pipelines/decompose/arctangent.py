"""``decompose-arctangent``: atan2 of real floats as arithmetic.

Before::

    %a = stablehlo.atan2 %y, %x : tensor<4xf64>

After: the ratio of the smaller to the larger magnitude, moved near 0 by a tabulated angle, a polynomial, and the sum of
the angles that octant and quadrant add.

IREE has no f64 form without a libm, and its f32 form is NaN at the origin and wrong at signed zeros and infinities; f32
and half precision are computed in f64. Polynomial: FreeBSD msun s_atan.c (Sun Microsystems, 1993); special values: IEEE
754-2019, 9.2.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, pi
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.decompose.real_arithmetic import (
    REAL_TYPES,
    SUBNORMAL_EXPONENT,
    Pair,
    bits,
    fast_two_sum,
    in_float64,
    is_nan,
    is_negative,
    normalized,
    polynomial,
    remainder_of_product,
    with_sign_of,
)
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern
from hloforge.pipelines.series import ARCTANGENT

# Angles as a float and the rest of it.
_NONE = (0.0, 0.0)
_HALF = (4.63647609000806093515e-01, 2.26987774529616870924e-17)
_ONE = (pi / 4, 3.061616997868383e-17)
_PI_OVER_2 = (pi / 2, 6.123233995736766e-17)
_PI = (pi, 1.2246467991473532e-16)


def _angle(like: Value, parts: tuple[float, float]) -> Pair:
    return full(like, parts[0]), full(like, parts[1])


def _choose(flag: Value, on_true: Pair, on_false: Pair) -> Pair:
    return ops.select(flag, on_true[0], on_false[0]), ops.select(flag, on_true[1], on_false[1])


def _small_angle(smaller: Value, larger: Value) -> Pair:
    """atan(smaller / larger) in [0, pi/4] of positive floats that neither over- nor underflow, as a pair."""
    far = smaller * 16.0 > larger * 11.0
    near = smaller * 16.0 <= larger * 7.0
    # tan(atan(s/l) - atan(c)) = (s - c l) / (l + c s) with c = 0, 1/2 or 1; the differences are exact.
    numerator = ops.select(near, smaller, ops.select(far, smaller - larger, smaller * 2.0 - larger))
    denominator = ops.select(near, larger, ops.select(far, larger + smaller, larger * 2.0 + smaller))
    t = numerator / denominator
    low = ops.select(near, remainder_of_product(numerator, t, denominator) / denominator, 0.0)
    square = t * t
    tail = low - t * square * polynomial(square, ARCTANGENT)
    offset = _choose(near, _angle(t, _NONE), _choose(far, _angle(t, _ONE), _angle(t, _HALF)))
    high, rest = fast_two_sum(offset[0], t)
    return fast_two_sum(high, rest + (tail + offset[1]))


def _scaled_up(magnitude: Value) -> Value:
    """A magnitude below 1 times 2**1000; a subnormal one by its bits."""
    normal, subnormal = normalized(magnitude)
    return normal * ops.select(subnormal, full(magnitude, 2.0 ** (SUBNORMAL_EXPONENT + 1000)), 2.0**1000)


def _in_safe_range(smaller: Value, larger: Value) -> Pair:
    """Two magnitudes of the same ratio, far from over- and underflow; (0, 1) or (1, 1) for zeros and infinities."""
    infinite = larger.eq(inf)
    below = ops.select(infinite, ops.select(smaller.eq(inf), full(larger, 1.0), 0.0), smaller)
    above = ops.select(infinite | bits(larger).eq(0), 1.0, larger)
    tiny, factor = above < 1.0, ops.select(above > 2.0**900, full(larger, 2.0**-100), 1.0)
    return (
        ops.select(tiny, _scaled_up(below), below * factor),
        ops.select(tiny, _scaled_up(above), above * factor),
    )


def arc_tangent_2(y: Value, x: Value) -> Value:
    """atan2 of float64, within an ulp."""
    y_magnitude, x_magnitude = ops.abs(y), ops.abs(x)
    # Compared as integers, which order non-negative floats alike and see subnormal ones.
    steep, left = bits(y_magnitude) > bits(x_magnitude), is_negative(x)
    smaller = ops.select(steep, x_magnitude, y_magnitude)
    larger = ops.select(steep, y_magnitude, x_magnitude)
    angle = _small_angle(*_in_safe_range(smaller, larger))
    base = _choose(steep, _angle(x, _PI_OVER_2), _choose(left, _angle(x, _PI), _angle(x, _NONE)))
    backwards = steep ^ left
    high, low = (ops.select(backwards, -part, part) for part in angle)
    total, error = fast_two_sum(base[0], high)
    result = with_sign_of(total + (error + (base[1] + low)), y)
    return ops.select(is_nan(y) | is_nan(x), y + x, result)


@pattern("stablehlo.atan2")
def by_octant(op: ir.Operation) -> Replacement:
    """atan2 of f16, bf16, f32, f64 -> arithmetic; any shape."""
    y, x = map(Value, op.operands)
    if y.element_type.name not in REAL_TYPES:
        return NoMatch(f"no form for {y.element_type}")
    return in_float64(arc_tangent_2, y, x)


@register
@dataclass(frozen=True)
class DecomposeArctangent(PatternPass):
    """Replace atan2 of real floats by arithmetic."""

    name: ClassVar[str] = "decompose-arctangent"
    patterns: ClassVar[tuple[Pattern, ...]] = by_octant
