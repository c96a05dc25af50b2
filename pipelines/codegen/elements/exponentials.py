"""Exponentials of floats: e^x, e^x - 1, logistic, tanh.

e^x = 2^k e^r with r = x - k ln 2, e^r by a polynomial, and 2^k by adding k to the exponent's bits. The overflowing and
the subnormal results are chosen afterwards, where NaN also stays itself. Sources: P. Tang, "Table-driven implementation
of the Expm1 function", ACM TOMS 18 (1992); S. Moshier, Cephes, expf.c; tanh of f32: Eigen, ``ptanh_float``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from hloforge.pipelines.codegen.elements.arithmetic import (
    fast_two_sum,
    from_bits,
    magnitude,
    mantissa_bits,
    nearest_integer,
    polynomial,
    two_sum,
    with_sign_of,
)
from hloforge.pipelines.codegen.lang.values import DOUBLE, FLOAT, Value, element_of


@dataclass(frozen=True)
class _Constants:
    """Of one type.

    Attributes:
        ln2: a part whose small multiples are exact, and the rest.
        square: coefficients of (e^r - 1 - r) / r^2 for |r| <= 0.347.
        cube: of (e^r - 1 - r - r^2/2) / r^3.
        largest: above, e^x overflows.
        least: below, e^x is no normal number.
        smallest: below, e^x - 1 rounds to -1.
        tiny: below it in magnitude, e^x - 1 and tanh are the identity.
    """

    ln2: tuple[float, float]
    square: tuple[float, ...]
    cube: tuple[float, ...]
    largest: float
    least: float
    smallest: float
    tiny: float


_LOG2_E = 1.4426950408889634
_CONSTANTS = {
    FLOAT: _Constants(
        ln2=(0.693359375, -2.12194440e-4),
        # Cephes, expf.c.
        square=(5.0000001201e-1, 1.6666665459e-1, 4.1665795894e-2, 8.3334519073e-3, 1.3981999507e-3, 1.9875691500e-4),
        cube=(1.6666665459e-1, 4.1665795894e-2, 8.3334519073e-3, 1.3981999507e-3, 1.9875691500e-4),
        largest=88.72283172607421875,
        least=-87.33654022216796875,
        smallest=-18.0,
        tiny=2.0**-25,
    ),
    # By Chebyshev's nodes, to 2^-59 of r (as in ``decompose-exponential``).
    DOUBLE: _Constants(
        ln2=(6.93147180369123816490e-01, 1.90821492927058770002e-10),
        square=(
            0.5,
            0.1666666666666667,
            0.04166666666666667,
            0.008333333333325985,
            0.0013888888888883642,
            0.00019841269875342141,
            2.4801587325920163e-05,
            2.7557254740405416e-06,
            2.7557273171941026e-07,
            2.5105490906986696e-08,
            2.091488256348507e-09,
        ),
        cube=(
            0.16666666666666669,
            0.041666666666666664,
            0.008333333333329994,
            0.0013888888888886504,
            0.00019841269863392214,
            2.48015873173863e-05,
            2.7557267935231926e-06,
            2.755728259480407e-07,
            2.5100634461878497e-08,
            2.0911414421956654e-09,
        ),
        largest=709.782712893384,
        least=-708.3964185322641,
        smallest=-60.0,
        tiny=2.0**-54,
    ),
}
# tanh x = x P(x^2) / Q(x^2) of f32, and 1 from the last number on.
_TANH_P = (
    4.89352455891786e-03,
    6.37261928875436e-04,
    1.48572235717979e-05,
    5.12229709037114e-08,
    -8.60467152213735e-11,
    2.00018790482477e-13,
    -2.76076847742355e-16,
)
_TANH_Q = (4.89352518554385e-03, 2.26843463243900e-03, 1.18534705686654e-04, 1.19825839466702e-06)
_TANH_LIMIT = 7.90531110763549805


def _constants(x: Value) -> _Constants:
    return _CONSTANTS[element_of(x.kind)]


def _reduced(x: Value) -> tuple[Value, Value, Value]:
    """``x = k ln 2 + high - low``: the bits of k where a float has its exponent, ``high`` and ``low``."""
    turns, word = nearest_integer(x * _LOG2_E)
    high, low = _constants(x).ln2
    return word << mantissa_bits(x), x - turns * high, turns * low


def _times_power_of_two(x: Value, exponent: Value) -> Value:
    """``x * 2**k`` where both are normal numbers."""
    return from_bits(x.bits() + exponent)


def exponential(x: Value) -> Value:
    """e^x; 0 where it would be subnormal."""
    of = _constants(x)
    exponent, high, low = _reduced(x)
    r = high - low
    tail = r * r * polynomial(r, of.square)
    if element_of(x.kind) == FLOAT:
        value = tail + r + 1.0
    else:
        whole, rounding = fast_two_sum(x.like(1.0), r)
        value = whole + (tail + (rounding + ((high - r) - low)))
    result = (x <= of.largest).where(_times_power_of_two(value, exponent), x * inf)
    return (x < of.least).where(0.0, result)


def logistic(x: Value) -> Value:
    """1 / (1 + e^-x)."""
    return 1.0 / (exponential(-x) + 1.0)


def exponential_minus_one(x: Value) -> Value:
    """e^x - 1 without cancellation."""
    of = _constants(x)
    result = (x <= of.largest).where(_minus_one(x), x * inf)
    result = (x < of.smallest).where(-1.0, result)
    return (magnitude(x) < of.tiny).where(x, result)


def _minus_one(x: Value) -> Value:
    """The same between the numbers where it is -1 and where it overflows."""
    exponent, high, low = _reduced(x)
    r = high - low
    error = (high - r) - low
    tail = r * r * (r * polynomial(r, _constants(x).cube) + 0.5) + (error + error * r)
    # 2^-k; where it is no normal number it is far below an ulp, and its sign bit says so.
    inverse = from_bits(x.like(1.0).bits() - exponent)
    whole, rest = two_sum(1.0 - (inverse > 0.0).where(inverse, 0.0), r)
    return _times_power_of_two(whole + (rest + tail), exponent)


def hyperbolic_tangent(x: Value) -> Value:
    """tanh, by a rational function (f32) or t / (2 - t) with t = 1 - e^(-2|x|)."""
    if element_of(x.kind) == FLOAT:
        return _rational_tangent(x)
    of, size = _constants(x), magnitude(x)
    rise = (size > -of.smallest).where(1.0, -_minus_one(size * -2.0))
    return (size >= of.tiny).where(with_sign_of(rise / (2.0 - rise), x), x)


def _rational_tangent(x: Value) -> Value:
    # Comparisons with NaN choose x.
    near = (x > _TANH_LIMIT).where(_TANH_LIMIT, x)
    near = (near < -_TANH_LIMIT).where(-_TANH_LIMIT, near)
    square = near * near
    ratio = near * polynomial(square, _TANH_P) / polynomial(square, _TANH_Q)
    return (magnitude(x) < 0.0004).where(x, ratio)
