"""Logarithms of floats: ln x, ln(1 + x).

x = 2^k (1 + f) by the exponent's bits, ln x = k ln 2 + ln(1 + f). Subnormal numbers count as zeros, as XLA's processor
flags have it. Sources: S. Moshier, Cephes, logf.c; FreeBSD msun e_log.c (Sun Microsystems, 1993); W. Kahan's log1p,
HP-15C Advanced Functions Handbook (1982).
"""

from __future__ import annotations

from math import inf, nan

from hloforge.pipelines.codegen.elements.arithmetic import (
    LEAST_NORMAL,
    from_bits,
    magnitude,
    mantissa_bits,
    polynomial,
    two_sum,
)
from hloforge.pipelines.codegen.elements.slow_paths import with_slow_path
from hloforge.pipelines.codegen.elements.tables import natural_logarithm
from hloforge.pipelines.codegen.lang.values import DOUBLE, FLOAT, Value, element_of
from hloforge.pipelines.series import LN2, LOGARITHM

# (ln(1+f) - f + f^2/2) / f^3 for f from sqrt(1/2) - 1 to sqrt(2) - 1.
_CEPHES = (
    3.3333331174e-1,
    -2.4999993993e-1,
    2.0000714765e-1,
    -1.6668057665e-1,
    1.4249322787e-1,
    -1.2420140846e-1,
    1.1676998740e-1,
    -1.1514610310e-1,
    7.0376836292e-2,
)
# ln 2 as a part whose small multiples are exact, and the rest.
_LN2 = {FLOAT: (0.693359375, -2.12194440e-4), DOUBLE: LN2}
# The bits of sqrt(1/2), and below 1 + 2^k (sqrt(1/2) - 1): numbers from there to twice it belong to one k.
_LOWEST = {FLOAT: 0x3F3504F3, DOUBLE: 0x3FE6A09E667F3BCD}
# The bits of the least normal double, and of infinity.
_LEAST_WORD, _INFINITY_WORD = 1 << 52, 0x7FF << 52
# Below it, ln(1 + x) is x.
_TINY = {FLOAT: 2.0**-25, DOUBLE: 2.0**-54}


def split(x: Value) -> tuple[Value, Value]:
    """A positive normal number as ``2**k`` times one from sqrt(1/2) to sqrt(2): the bits of k, and the latter."""
    element, shift = element_of(x.kind), mantissa_bits(x)
    word = x.bits()
    exponent = (word - _LOWEST[element]) & -(1 << shift)
    return exponent, from_bits(word - exponent)


def log_of_parts(exponent: Value, f: Value) -> Value:
    """k ln 2 + ln(1 + f)."""
    element, shift = element_of(f.kind), mantissa_bits(f)
    k = _as_float(exponent, element, shift)
    high, low = _LN2[element]
    square = f * f
    if element == FLOAT:
        tail = square * f * polynomial(f, _CEPHES) + k * low
        return k * high + (f + (tail - square * 0.5))
    s = f / (f + 2.0)
    half = square * 0.5
    z = s * s
    tail = s * (half + z * polynomial(z, LOGARITHM))
    return k * high - ((half - (tail + k * low)) - f)


def _as_float(exponent: Value, element: str, shift: int) -> Value:
    if element == FLOAT:
        return exponent.shifted_right(shift, signed=True).as_(FLOAT)
    # Vector units convert i32 to f64 faster than i64, and some have nothing for the latter.
    return exponent.shifted_right(shift, signed=True).as_("i32").as_(DOUBLE)


def log(x: Value) -> Value:
    """The natural logarithm; -inf of zero and subnormal numbers, NaN of negative ones."""
    least = LEAST_NORMAL[element_of(x.kind)]
    exponent, mantissa = split(x)
    result = (x < inf).where(log_of_parts(exponent, mantissa - 1.0), x)
    result = (x < least).where(-inf, result)
    return (x <= -least).where(nan, result)


def log_plus_one(x: Value) -> Value:
    """ln(1 + x): the rounding error of the sum, scaled like it, is added to f."""
    element = element_of(x.kind)
    total, error = two_sum(x.like(1.0), x)
    exponent, mantissa = split(total)
    # 2^-k, or 0 where that is no normal number: large sums have no error to the point.
    scale = from_bits((x.like(1.0).bits() - exponent).maximum(0))
    result = (x < inf).where(log_of_parts(exponent, (mantissa - 1.0) + error * scale), x)
    result = (x <= -1.0).where(x.equals(-1.0).where(x.like(-inf), nan), result)
    return (magnitude(x) < _TINY[element]).where(x, result)


def log_of_few(x: Value) -> Value:
    """The natural logarithm of f64 by tables: few operations wait for each other, where vectors have more to do."""
    return _by_table(x, x.like(0.0))


def log_plus_one_of_few(x: Value) -> Value:
    """ln(1 + x) of f64: the sum's logarithm, and its rounding error relative to it."""
    total, error = two_sum(x.like(1.0), x)
    return (magnitude(x) < _TINY[DOUBLE]).where(x, _by_table(total, error / total))


def _by_table(x: Value, correction: Value) -> Value:
    """ln x and a small number."""
    word = x.bits()
    is_usual = (word - _LEAST_WORD).compare("ult", _INFINITY_WORD - _LEAST_WORD)
    return with_slow_path("log_of_others", is_usual, [natural_logarithm(word, correction)], [x], _of_others)[0]


def _of_others(x: Value) -> list[Value]:
    """The logarithm of zeros, subnormal and negative numbers, and what is not finite."""
    least = LEAST_NORMAL[DOUBLE]
    return [(x < least).where((x <= -least).where(x.like(nan), -inf), x)]
