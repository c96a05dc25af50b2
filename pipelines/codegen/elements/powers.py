"""Powers of floats: x^y of f32 as 2^(y log2 |x|) in f64, and of f64 as e^(y ln |x|) by tables.

The logarithm of f32 has 50 bits, of which the product with y takes 7; that of f64 has 68. Signs and special values are
found afterwards, where a number is not positive or a power not normal. Source: FreeBSD msun e_log2.c (Sun Microsystems,
1993) for the logarithm's series; special values: IEEE 754-2019, 9.2.1.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

from hloforge.pipelines.codegen.elements.arithmetic import (
    from_bits,
    known_number,
    magnitude,
    nearest_integer,
    wide_magnitude,
    with_sign_of,
)
from hloforge.pipelines.codegen.elements.logarithms import split
from hloforge.pipelines.codegen.elements.slow_paths import with_slow_path
from hloforge.pipelines.codegen.elements.tables import LOGARITHM_NEAR_ONE, exponential_of_sum, logarithm_parts
from hloforge.pipelines.codegen.lang.values import DOUBLE, FLOAT, I32, Value, element_of
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
# The bits of the least normal number, and of infinity.
_BOUNDS = {FLOAT: (1 << 23, 0xFF << 23), DOUBLE: (1 << 52, 0x7FF << 52)}
# Exponents of 2 (f32) and of e (f64): powers of smaller ones are normal doubles, and f32 are zero or infinite beyond.
_NORMAL = {FLOAT: 400.0, DOUBLE: 708.0}
# Beyond which powers of e are zero or infinite.
_FINITE = 800.0


def simple_power(x: Value, y: Value) -> Value | None:
    """x^y of a known exponent as XLA simplifies it, or None."""
    simple = _SIMPLE.get(known_number(y))
    return simple and simple(x)


def power(x: Value, y: Value) -> Value:
    """x^y."""
    word, element = x.bits(), element_of(x.kind)
    if element == DOUBLE:
        product, rest = _exact_product(word, y)
        raised = exponential_of_sum(product, rest)
    else:
        product = y.as_(DOUBLE) * _logarithm_2(x.as_(DOUBLE))
        raised = _power_of_two(product).as_(FLOAT)
    least, infinity = _BOUNDS[element]
    # Nothing is left to do of positive normal numbers whose powers are such, and of zeros what is common.
    is_plain = (word - least).compare("ult", infinity - least) & (magnitude(product) < _NORMAL[element])
    is_zero = word.equals(0) & (y > 0.0)
    is_plain, raised = is_plain | is_zero, is_zero.where(0.0, raised)
    return with_slow_path(f"any_power.{element}", is_plain, [raised], [x, y], _ANY[element])[0]


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


def _exact_product(word: Value, y: Value) -> tuple[Value, Value]:
    """y ln x as a double and a rest, of a positive x by its bits."""
    log = logarithm_parts(word)
    r = log.r
    half = r * -0.5
    near = log.whole + r
    high = r.call("fma", half, near)
    # What the two sums lose, exactly.
    lost = ((log.whole - near) + r) + r.call("fma", half, near - high)
    square = half * r
    low = (log.rest + lost) + (square * -2.0 * r) * estrin(r, LOGARITHM_NEAR_ONE)
    product = y * high
    return product, y.call("fma", high, -product) + y * low


def _any_of_doubles(x: Value, y: Value) -> list[Value]:
    size = magnitude(x)
    word, (least, infinity) = size.bits(), _BOUNDS[DOUBLE]
    # A subnormal number is its mantissa, an integer, times 2^-1074: its exponent lies below a double's.
    subnormal = word.as_(DOUBLE).bits() - (1074 << 52)
    product, rest = _exact_product((word < least).where(subnormal, word), y)
    inside = _clamped(product, _FINITE)
    raised = exponential_of_sum(inside, (magnitude(product) < _FINITE).where(rest, 0.0), scaled=True)
    edge = word.equals(0).differs(y.bits() < 0).where(x.like(0.0), inf)
    raised = (word - 1).compare("ult", infinity - 1).where(raised, edge)
    return [_finished(x, y, size, size.equals(1.0).where(1.0, raised))]


def _any_of_floats(x: Value, y: Value) -> list[Value]:
    size = wide_magnitude(x)
    logarithm = size.equals(0.0).where(-inf, (size < inf).where(_logarithm_2(size), size))
    # Zero and subnormal exponents, which are read as zero, become tiny: they move no finite base from 1, but others.
    wide = y.as_(DOUBLE)
    wide = wide + with_sign_of(wide.like(2.0**-200), wide)
    raised = _power_of_two(_clamped(wide * logarithm, _NORMAL[FLOAT])).as_(FLOAT)
    return [_finished(x, y, size, size.equals(1.0).where(1.0, raised))]


_ANY = {FLOAT: _any_of_floats, DOUBLE: _any_of_doubles}


def _clamped(x: Value, most: float) -> Value:
    x = (x > most).where(most, x)
    return (x < -most).where(-most, x)


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
    return exponent.shifted_right(52, signed=True).as_(I32).as_(DOUBLE) + s * estrin(z, _LOGARITHM)


def _power_of_two(x: Value) -> Value:
    """2^x of a double below 2^10 in magnitude, for results of f32."""
    turns, word = nearest_integer(x)
    return from_bits(estrin(x - turns, _POWER).bits() + (word << 52))
