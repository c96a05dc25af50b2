"""Powers of floats: x^y of f32 as 2^(y log2 |x|) in f64, with the sign and the special values afterwards.

The logarithm has 50 bits, of which the product with y takes 7. Source: FreeBSD msun e_log2.c (Sun
Microsystems, 1993) for the logarithm's series; special values: IEEE 754-2019, 9.2.1. f64 is taken apart before by
``decompose-power``.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

from hloforge.pipelines.codegen.elements.arithmetic import (
    from_bits,
    known_number,
    magnitude,
    nearest_integer,
    polynomial,
    wide_magnitude,
    with_sign_of,
)
from hloforge.pipelines.codegen.elements.logarithms import split
from hloforge.pipelines.codegen.lang.values import DOUBLE, FLOAT, I32, Value

# log2((1+s)/(1-s)) / s for |s| <= 0.172 in powers of s^2, and 2^r for |r| <= 1/2: by Chebyshev's nodes (mpmath's
# ``chebyfit``), to 2^-52 and 2^-34.
_LOGARITHM = (
    2.885390081777927,
    0.9617966939243245,
    0.5770780172508729,
    0.4121984013068434,
    0.3206164421244846,
    0.26144245557136553,
    0.24293824606326322,
)
_POWER = (
    0.9999999999595618,
    0.6931471805568324,
    0.24022651213498092,
    0.055504109063258665,
    0.009618025613318034,
    0.0013333478473685416,
    0.00015469729214118296,
    1.5303700711365693e-05,
)
# Beyond these, powers of two are infinite or zero in f32.
_REACH = 400.0


def power(x: Value, y: Value) -> Value:
    """x^y of f32; of a known exponent as XLA simplifies it."""
    exponent = known_number(y)
    if exponent in _SIMPLE:
        return _SIMPLE[exponent](x)
    return _general(x, y)


def _root(x: Value) -> Value:
    """The power of 1/2: of -0 and -inf without sign, unlike the square root."""
    return x.equals(-inf).where(inf, (x + 0.0).call("sqrt"))


# Source: XLA, ``AlgebraicSimplifierVisitor::HandlePower``.
_SIMPLE: dict[float | None, Callable[[Value], Value]] = {
    1.0: lambda x: x,
    2.0: lambda x: x * x,
    3.0: lambda x: x * x * x,
    -1.0: lambda x: 1.0 / x,
    0.5: _root,
}


def _general(x: Value, y: Value) -> Value:
    size = wide_magnitude(x)
    logarithm = size.equals(0.0).where(-inf, (size < inf).where(_logarithm_2(size), size))
    # Zero and subnormal exponents, which are read as zero, become tiny: they move no finite base from 1, but others.
    wide = y.as_(DOUBLE)
    wide = wide + with_sign_of(wide.like(2.0**-200), wide)
    raised = _power_of_two(wide * logarithm).as_(FLOAT)
    raised = size.equals(1.0).where(1.0, raised)
    # By their bits, because subnormal numbers would be read as zero; infinity counts as even.
    integral = y.call("floor").bits().equals(y.bits())
    odd = integral & (y * 0.5).call("floor").differs(y * 0.5)
    negative = x.bits() < 0
    signed = (negative & odd).where(-raised, raised)
    undefined = (negative & ~integral & (size > 0.0) & (size < inf)) | x.is_nan() | y.is_nan()
    result = undefined.where(nan, signed)
    # Also beside NaN. LLVM would take a comparison of the bits with zero for one of floats.
    none = integral & (magnitude(y) < 1.0)
    return (none | x.equals(1.0)).where(1.0, result)


def _logarithm_2(x: Value) -> Value:
    exponent, mantissa = split(x)
    f = mantissa - 1.0
    s = f / (f + 2.0)
    z = s * s
    return exponent.shifted_right(52, signed=True).as_(I32).as_(DOUBLE) + s * polynomial(z, _LOGARITHM)


def _power_of_two(x: Value) -> Value:
    """2^x of f64 for results of f32."""
    inside = (x > _REACH).where(_REACH, x)
    inside = (inside < -_REACH).where(-_REACH, inside)
    turns, word = nearest_integer(inside)
    r = inside - turns
    return from_bits(polynomial(r, _POWER).bits() + (word << 52))
