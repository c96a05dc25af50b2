"""Hyperbolic sine and cosine of floats, by h = e^|x| / 2, which overflows where they do.

cosh x = h + 1 / 4h. sinh x = h - 1 / 4h from 1 on; below, where that cancels, its Taylor series.
"""

from __future__ import annotations

from math import factorial, inf, log

from hloforge.pipelines.codegen.elements.arithmetic import magnitude, polynomial, with_sign_of
from hloforge.pipelines.codegen.elements.exponentials import normal_exponential
from hloforge.pipelines.codegen.lang.values import DOUBLE, FLOAT, Value, element_of

# (sinh x - x) / x^3 by x^2 below 1, to 2^-27 and 2^-60 of sinh x.
_SERIES = {kind: tuple(1 / factorial(n) for n in range(3, last + 1, 2)) for kind, last in ((FLOAT, 11), (DOUBLE, 19))}
# The largest number whose results are finite.
_LARGEST = {FLOAT: 89.41598510742187, DOUBLE: 710.4758600739439}
# From it on the quarter of 1 / h is below half an ulp of h, and would be subnormal later.
_FAR = {FLOAT: 12 * log(2.0), DOUBLE: 28 * log(2.0)}
# Below it sinh x is x. Subnormals are flushed in arithmetic.
_TINY = {FLOAT: 2.0**-12, DOUBLE: 2.0**-27}


def hyperbolic_cosine(x: Value) -> Value:
    """(e^x + e^-x) / 2."""
    size = magnitude(x)
    half, inverse = _halves(size)
    return (size <= _LARGEST[element_of(x.kind)]).where(half + inverse, size * inf)


def hyperbolic_sine(x: Value) -> Value:
    """(e^x - e^-x) / 2."""
    element, size = element_of(x.kind), magnitude(x)
    half, inverse = _halves(size)
    square = size * size
    near = size + size * square * polynomial(square, _SERIES[element])
    result = (size < 1.0).where(near, half - inverse)
    result = with_sign_of((size <= _LARGEST[element]).where(result, size * inf), x)
    return (size < _TINY[element]).where(x, result)


def _halves(size: Value) -> tuple[Value, Value]:
    """e^x / 2, and e^-x / 2 where it matters."""
    half = normal_exponential(size, halved=True)
    return half, (size < _FAR[element_of(size.kind)]).where(0.25 / half, 0.0)
