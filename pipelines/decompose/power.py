"""``decompose-power``: power of real floats as arithmetic.

Before::

    %p = stablehlo.power %x, %y : tensor<4xf64>

After: 2^(y log2 |x|) with the logarithm to 69 bits, then the sign and the special values.

IREE takes the power as exp(y log x), whose error grows with the exponent (290 ulp and more), and which is NaN at zero
and for negative bases. Half precision and f32 are computed in f64, where IREE's own logarithm and exponential suffice.
Source: FreeBSD msun e_pow.c (Sun Microsystems, 2004); special values: IEEE 754-2019, 9.2.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, nan
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.decompose.real_arithmetic import (
    EXPONENT_OF_ONE,
    LOW_WORD,
    MANTISSA,
    REAL_TYPES,
    SIGN,
    SUBNORMAL_EXPONENT,
    Pair,
    bits,
    exactly_widened,
    from_bits,
    is_nan,
    is_negative,
    masked,
    narrowed,
    normalized,
    polynomial,
    scaled,
    to_integer,
)
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

_HIGH_WORD = ~LOW_WORD & (2**64 - 1)
# ln((1+s)/(1-s)) = 2s + 2/3 s^3 + s^5 L(s^2)
_LOGARITHM = (
    5.99999999999994648725e-01,
    4.28571428578550184252e-01,
    3.33333329818377432918e-01,
    2.72728123808534006489e-01,
    2.30660745775561754067e-01,
    2.06975017800338417784e-01,
)
# r coth(r/2) - 2 = r^2 E(r^2)
_EXPONENTIAL = (
    1.66666666666666019037e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
    -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)
# 2/(3 ln 2), log2(1.5) and ln 2, each also as a float of 21 to 33 bits and the rest.
_CP, _CP_HIGH, _CP_LOW = 9.61796693925975554329e-01, 9.61796700954437255859e-01, -7.02846165095275826516e-09
_LOG2_OF_3_OVER_2 = (5.84962487220764160156e-01, 1.35003920212974897128e-08)
_LN2, _LN2_HIGH, _LN2_LOW = 6.93147180559945286227e-01, 6.93147182464599609375e-01, -1.90465429995776804525e-09
# Mantissas below the first are compared with 1, below the second with 3/2, above with 2.
_TO_ONE, _TO_THREE_OVER_2 = 0x3988E << 32, 0xBB67A << 32
# An exponent beyond it gives 0, 1 or infinity for every base, and its products stay finite.
_LARGEST_EXPONENT = 2.0**70


def _upper(x: Value) -> Value:
    """x cut to 21 bits, so that products of two such are exact."""
    return masked(x, _HIGH_WORD)


def _logarithm_2(x: Value) -> Pair:
    """log2 of a positive finite float64 as 21 bits and the rest, to about 2^-69."""
    normal, subnormal = normalized(x)
    word = bits(normal)
    fraction = word & MANTISSA
    middle = (fraction >= _TO_ONE) & (fraction < _TO_THREE_OVER_2)
    up = ops.convert_element_type(fraction >= _TO_THREE_OVER_2, "s64")
    exponent = ops.bitcast_convert_type(word >> 52, "s64") - 1023 + up
    exponent = exponent + ops.select(subnormal, full(exponent, SUBNORMAL_EXPONENT), 0)
    one = full(x, 1.0)
    a = from_bits(fraction | EXPONENT_OF_ONE) * ops.select(fraction >= _TO_THREE_OVER_2, full(x, 0.5), 1.0)
    base = ops.select(middle, full(x, 1.5), one)
    # s = (a - base) / (a + base) as high + low
    numerator, denominator = a - base, a + base
    inverse = 1.0 / denominator
    s = numerator * inverse
    s_high, denominator_high = _upper(s), _upper(denominator)
    denominator_low = a - (denominator_high - base)
    s_low = inverse * ((numerator - s_high * denominator_high) - s_high * denominator_low)
    # 3 + s^2 (1 + ...) as high + low
    square = s * s
    tail = square * square * polynomial(square, _LOGARITHM) + s_low * (s_high + s)
    high_square = s_high * s_high
    t_high = _upper((high_square + 3.0) + tail)
    t_low = tail - ((t_high - 3.0) - high_square)
    # their product, times 2/(3 ln 2)
    u, v = s_high * t_high, s_low * t_high + t_low * s
    p_high = _upper(u + v)
    p_low = v - (p_high - u)
    zero = full(x, 0.0)
    z_high = p_high * _CP_HIGH
    z_low = p_high * _CP_LOW + p_low * _CP + ops.select(middle, full(x, _LOG2_OF_3_OVER_2[1]), zero)
    offset = ops.select(middle, full(x, _LOG2_OF_3_OVER_2[0]), zero)
    whole = ops.convert_element_type(ops.convert_element_type(exponent, "s32"), "f64")
    high = _upper(((z_high + z_low) + offset) + whole)
    return high, z_low - (((high - whole) - offset) - z_high)


def _exponential_2(high: Value, low: Value) -> Value:
    """2^(high + low) of float64; infinite above 1024, zero below -1075."""
    turns = ops.round_nearest_even(ops.min(ops.max(high + low, -1100.0), 1100.0))
    rest = ops.select(ops.abs(high) < 2000.0, high - turns, 0.0)
    low = ops.select(ops.abs(high) < 2000.0, low, 0.0)
    t = _upper(rest + low)
    u = t * _LN2_HIGH
    v = (low - (t - rest)) * _LN2 + t * _LN2_LOW
    z = u + v
    w = v - (z - u)
    square = z * z
    t1 = z - square * polynomial(square, _EXPONENTIAL)
    value = 1.0 - (((z * t1) / (t1 - 2.0) - (w + z * w)) - z)
    return scaled(value, to_integer(turns))


def _long_magnitude(x: Value, y: Value) -> Value:
    """x^y for positive finite float64 x; any y."""
    clamped = ops.min(ops.max(y, -_LARGEST_EXPONENT), _LARGEST_EXPONENT)
    log_high, log_low = _logarithm_2(x)
    y_high = _upper(clamped)
    low = (clamped - y_high) * log_high + clamped * log_low
    high = y_high * log_high
    return _exponential_2(high, ops.select(high.eq(high), low, 0.0))


def _short_magnitude(x: Value, y: Value) -> Value:
    """The same for results that are rounded to float32."""
    return ops.exp(y * ops.log(x))


def power(x: Value, y: Value, magnitude_of: Callable[[Value, Value], Value] = _long_magnitude) -> Value:
    """x^y of float64 with C's special values.

    Args:
        magnitude_of: x^y for positive finite x.
    """
    word = bits(x) & (SIGN - 1)
    base = from_bits(word)
    one, zero = full(x, 1.0), full(x, 0.0)
    edge = ops.select(word.eq(0).ne(is_negative(y)), zero, full(x, inf))
    irregular = word.eq(0) | base.eq(inf)
    safe = ops.select(irregular | is_nan(x) | base.eq(1.0), one, base)
    magnitude = ops.select(irregular, edge, ops.select(base.eq(1.0), one, magnitude_of(safe, y)))
    # Infinite exponents count as even integers, as all floats above 2^53 do.
    integral, half = bits(ops.floor(y)).eq(bits(y)), y * 0.5
    odd = integral & ops.floor(half).ne(half)
    negative = is_negative(x)
    signed = ops.select(negative & odd, -magnitude, magnitude)
    undefined = negative & ~integral & ~irregular
    result = ops.select(undefined | is_nan(x) | is_nan(y), nan, signed)
    # Zero: LLVM takes a comparison of the bits for one of floats, where the processor reads a subnormal as zero.
    none = integral & (ops.abs(y) < 1.0)
    return ops.select(none | x.eq(1.0), one, result)


@pattern("stablehlo.power")
def by_logarithm(op: ir.Operation) -> Replacement:
    """power of f16, bf16, f32, f64 -> arithmetic; any shape."""
    x, y = map(Value, op.operands)
    row = x.element_type
    if row.name not in REAL_TYPES:
        return NoMatch(f"no form for {row}")
    magnitude_of = _long_magnitude if row.name == "f64" else _short_magnitude
    return narrowed(power(exactly_widened(x), exactly_widened(y), magnitude_of), row.name)


@register
@dataclass(frozen=True)
class DecomposePower(PatternPass):
    """Replace powers of real floats by arithmetic."""

    name: ClassVar[str] = "decompose-power"
    patterns: ClassVar[tuple[Pattern, ...]] = by_logarithm
