"""Powers of floats: x^y of f32 as 2^(y log2 |x|) in f64, with the sign and the special values afterwards.

The logarithm has 50 bits, of which the product with y takes 7. Source: FreeBSD msun e_log2.c (Sun
Microsystems, 1993) for the logarithm's series; special values: IEEE 754-2019, 9.2.1. Arrays of f64 are taken apart
before by ``decompose-power``.

One number is e^(y ln |x|) by tables, of f64 with a logarithm of 68 bits. What zeros give is known at once.
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
from hloforge.pipelines.codegen.elements.tables import exponential_of_sum, logarithm_parts
from hloforge.pipelines.codegen.lang.values import DOUBLE, FLOAT, I32, Value
from hloforge.pipelines.polynomials import estrin

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
# (ln(1 + r) - r + r^2/2) / r^3, as a series: r is below 0.007.
_LOGARITHM_OF_ONE = (1 / 3, -1 / 4, 1 / 5, -1 / 6, 1 / 7, -1 / 8, 1 / 9)
# The bits of the least normal number, and of infinity.
_BOUNDS = {FLOAT: (1 << 23, 0xFF << 23), DOUBLE: (1 << 52, 0x7FF << 52)}
# Exponents of e whose power is a normal number, and beyond which it is zero or infinite.
_NORMAL, _FINITE = 708.0, 800.0


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


def power_of_one(x: Value, y: Value) -> Value:
    """The same of one f32 or f64, by branches: its time is what follows waits for."""
    exponent = known_number(y)
    if exponent in _SIMPLE:
        return _SIMPLE[exponent](x)
    function, kind = x.function, x.kind
    size = magnitude(x)
    word, least, infinity = size.bits(), *_BOUNDS[kind]
    is_usual = function.likely((word - least).compare("ult", infinity - least))
    (wide,) = function.branch(is_usual, lambda: [size.as_(DOUBLE).bits()], lambda: [_subnormal(word)])
    is_regular = function.likely((word - 1).compare("ult", infinity - 1))
    raise_ = _exactly_raised if kind == DOUBLE else _raised

    def edge() -> list[Value]:
        return [word.equals(0).differs(y.bits() < 0).where(x.like(0.0), inf)]

    (raised,) = function.branch(is_regular, lambda: [raise_(wide, y.as_(DOUBLE)).as_(kind)], edge)
    # Of no negative number to a finite power other than 0 nothing is left to do.
    is_plain = x.bits().compare("ult", infinity) & (magnitude(y).bits() - 1).compare("ult", infinity - 1)
    return function.branch(
        function.likely(is_plain),
        lambda: [raised],
        lambda: [_finished(x, y, size, size.equals(1.0).where(1.0, raised))],
    )[0]


def _subnormal(word: Value) -> Value:
    """The bits of a subnormal number as a double, whose exponent may lie below a double's; of others anything."""
    wide = word.as_(DOUBLE, signed=False).bits()
    return wide - ((149 if word.kind == I32 else 1074) << 52)


def _exactly_raised(word: Value, y: Value) -> Value:
    """A positive number to any power, of f64."""
    log = logarithm_parts(word)
    r, function = log.r, word.function
    half = r * -0.5
    near = log.whole + r
    high = r.call("fma", half, near)
    # What the two sums lose, exactly.
    lost = ((log.whole - near) + r) + r.call("fma", half, near - high)
    square = half * r
    low = (log.rest + lost) + (square * -2.0 * r) * estrin(r, _LOGARITHM_OF_ONE)
    product = y * high
    rest = y.call("fma", high, -product) + y * low
    usual = function.likely(magnitude(product) < _NORMAL)

    def unusual() -> list[Value]:
        inside = (product > _FINITE).where(_FINITE, product)
        inside = (inside < -_FINITE).where(-_FINITE, inside)
        return [exponential_of_sum(inside, (magnitude(product) < _FINITE).where(rest, 0.0), scaled=True)]

    return function.branch(usual, lambda: [exponential_of_sum(product, rest)], unusual)[0]


def _raised(word: Value, y: Value) -> Value:
    """The same to the digits of f32; beyond these, zero and infinity as in f32."""
    log = logarithm_parts(word)
    r = log.r
    square = r * r
    product = y * (((log.whole + log.rest) + r) + square * (r * estrin(r, _LOGARITHM_OF_ONE[:4]) - 0.5))

    def unusual() -> list[Value]:
        inside = (product > _REACH).where(_REACH, product)
        inside = (inside < -_REACH).where(-_REACH, inside)
        return [exponential_of_sum(inside, product.like(0.0))]

    usual = word.function.likely(magnitude(product) < _REACH)
    return word.function.branch(usual, lambda: [exponential_of_sum(product, product.like(0.0))], unusual)[0]


def _general(x: Value, y: Value) -> Value:
    size = wide_magnitude(x)
    logarithm = size.equals(0.0).where(-inf, (size < inf).where(_logarithm_2(size), size))
    # Zero and subnormal exponents, which are read as zero, become tiny: they move no finite base from 1, but others.
    wide = y.as_(DOUBLE)
    wide = wide + with_sign_of(wide.like(2.0**-200), wide)
    raised = _power_of_two(wide * logarithm).as_(FLOAT)
    return _finished(x, y, size, size.equals(1.0).where(1.0, raised))


def _finished(x: Value, y: Value, size: Value, raised: Value) -> Value:
    """The power of x, by that of its magnitude ``size``."""
    # By their bits, because subnormal numbers would be read as zero; infinity counts as even.
    integral = y.call("floor").bits().equals(y.bits())
    odd = integral & (y * 0.5).call("floor").differs(y * 0.5)
    negative = x.bits() < 0
    signed = (negative & odd).where(-raised, raised)
    undefined = (negative & ~integral & (size.bits() > 0) & (size < inf)) | x.is_nan() | y.is_nan()
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
