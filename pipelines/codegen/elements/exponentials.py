"""Exponentials of floats: e^x, e^x - 1, logistic, tanh.

e^x = 2^k e^r with r = x - k ln 2, e^r by a polynomial, and 2^k by adding k to the exponent's bits. The overflowing and
the subnormal results are chosen afterwards, where NaN also stays itself; where x is known not to be above 0, as that of
a softmax, nothing has to be chosen. Sources: P. Tang, "Table-driven implementation
of the Expm1 function", ACM TOMS 18 (1992); S. Moshier, Cephes, expf.c.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from hloforge.pipelines.codegen.elements.arithmetic import (
    INTEGER_ORIGIN,
    fast_two_sum,
    from_bits,
    magnitude,
    mantissa_bits,
    nearest_integer,
    polynomial,
    two_sum,
    with_sign_of,
)
from hloforge.pipelines.codegen.lang.values import DOUBLE, FLOAT, Value, element_of, lanes_of
from hloforge.pipelines.series import EXPONENTIAL_CUBE, EXPONENTIAL_SQUARE, LN2


@dataclass(frozen=True)
class _Constants:
    """Of one type.

    Attributes:
        ln2: a part whose small multiples are exact, and the rest.
        square: coefficients of (e^r - 1 - r) / r^2 for |r| <= 0.3475.
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


# Above it e^x is infinite, and below its negative 0.
_MOST_SCALED = 110.0
# Below its negative e^x of f32 is 0; between both 2^k of x = k ln 2 + r is a normal number or 0.
_MOST_NORMAL = 88.0
_LOG2_E, _LN2 = 1.4426950408889634, 0.6931471805599453
# Of the exponent of f32.
_BIAS = 127
_CONSTANTS = {
    FLOAT: _Constants(
        ln2=(0.693359375, -2.12194440e-4),
        # To 2^-28 of e^r: least squares whose weights level the errors.
        square=(4.9999993346e-1, 1.6666519128e-1, 4.1668405766e-2, 8.3688988815e-3, 1.3814219806e-3),
        # Cephes, expf.c.
        cube=(1.6666665459e-1, 4.1665795894e-2, 8.3334519073e-3, 1.3981999507e-3, 1.9875691500e-4),
        largest=88.72283172607421875,
        least=-87.33654022216796875,
        smallest=-18.0,
        tiny=2.0**-25,
    ),
    DOUBLE: _Constants(
        ln2=LN2,
        square=EXPONENTIAL_SQUARE,
        cube=EXPONENTIAL_CUBE,
        largest=709.782712893384,
        least=-708.3964185322641,
        smallest=-60.0,
        tiny=2.0**-54,
    ),
}
# tanh x = x P(x^2) / Q(x^2) of f32 up to where it rounds to 1, to 2^-29. Least squares with weights that level the
# errors (in mpmath's numbers). All terms are positive, so that sums cancel nothing.
_SHORT_TANH_P = (1.0, 0.13780972407558592, 0.0040029100382627135, 3.146719228926089e-05, 5.033362494215911e-08)
_SHORT_TANH_Q = (
    1.0,
    0.47114304721683786,
    0.027717275700038423,
    0.000419727959890855,
    1.6080324433725513e-06,
    7.288143782397383e-10,
)
# tanh x = x + x^3 P(x^2) / Q(x^2) of f64 below 5/8: Cephes, tanh.c.
_TANH_P = (-1.61468768441708447952e3, -9.92877231001918586564e1, -9.64399179425052238628e-1)
_TANH_Q = (4.84406305325125486048e3, 2.23548839060100448583e3, 1.12811678491632931402e2, 1.0)
_TANH_NEAR = 0.625
# (e^r - 1 - r) / r^2 for |r| <= 0.347, to 2^-56 of e^r: by Chebyshev's nodes (mpmath's ``chebyfit``).
_QUICK_SQUARE = (
    0.5000000000000001,
    0.16666666666666669,
    0.04166666666662416,
    0.008333333333330063,
    0.0013888888917199863,
    0.00019841269863042963,
    2.4801521317484083e-05,
    2.7557268476553695e-06,
    2.7620078203806394e-07,
    2.5100377619606372e-08,
)
# From it on, tanh rounds to 1.
_TANH_LIMIT = {FLOAT: 9.011, DOUBLE: 19.0625}


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
    if has_scaling(x):
        # Beyond these numbers nothing changes. A comparison with NaN keeps it.
        x = (x > _MOST_SCALED).where(_MOST_SCALED, x)
        return _scaled_exponential((x < -_MOST_SCALED).where(-_MOST_SCALED, x))
    # Infinity and NaN, by adders, which wait for nothing.
    result = (x <= of.largest).where(normal_exponential(x), x + inf)
    return (x < of.least).where(0.0, result)


def exponential_of_negative(x: Value) -> Value:
    """The same, bit by bit, of what is NaN or not above 0."""
    if element_of(x.kind) != FLOAT:
        return exponential(x)
    x = (x < -_MOST_NORMAL).where(-_MOST_NORMAL, x)
    return _scaled_exponential(x) if has_scaling(x) else _exponential_between(x)


def _exponential_between(x: Value) -> Value:
    """e^x of f32 that is NaN or at most 88 in magnitude: 2^k is a factor, by which NaN stays itself and what is
    subnormal becomes 0, and nothing is chosen afterwards."""
    origin = INTEGER_ORIGIN[FLOAT] + _BIAS
    shifted = x * _LOG2_E + origin
    high, low = _constants(x).ln2
    turns = shifted - origin
    r = (x - turns * high) - turns * low
    return _of_remainder(r) * from_bits(shifted.bits() << mantissa_bits(x))


def _of_remainder(r: Value) -> Value:
    """e^r of f32 for |r| <= 0.3475."""
    return r * (r * polynomial(r, _CONSTANTS[FLOAT].square) + 1.0) + 1.0


def has_scaling(x: Value) -> bool:
    """Whether vectors have an instruction that multiplies by powers of two, to infinity and zero (AVX-512)."""
    return element_of(x.kind) == FLOAT and lanes_of(x.kind) == 16 and x.function.vector_bytes == 64


def _scaled_exponential(x: Value) -> Value:
    """e^x by that instruction, with the same bits as without; subnormal results are flushed as all are."""
    function, of = x.function, _constants(x)
    turns, _ = nearest_integer(x * _LOG2_E)
    value = _of_remainder((x - turns * of.ln2[0]) - turns * of.ln2[1])
    name = "@llvm.x86.avx512.mask.scalef.ps.512"
    return function.emit(f"call {x.kind} {name}({value}, {turns}, {x.kind} zeroinitializer, i16 -1, i32 4)", x.kind)


def normal_exponential(x: Value, *, halved: bool = False) -> Value:
    """e^x, or half of it, where that is a normal number; anything elsewhere, and of NaN."""
    exponent, high, low = _reduced(x)
    if halved:
        exponent = exponent - (1 << mantissa_bits(x))
    r = high - low
    if element_of(x.kind) == FLOAT:
        value = _of_remainder(r)
    else:
        tail = r * r * polynomial(r, _constants(x).square)
        whole, rounding = fast_two_sum(x.like(1.0), r)
        value = whole + (tail + (rounding + ((high - r) - low)))
    return _times_power_of_two(value, exponent)


def logistic(x: Value) -> Value:
    """1 / (1 + e^-x)."""
    opposite = -x
    if element_of(x.kind) != FLOAT:
        return 1.0 / (exponential(opposite) + 1.0)
    # Beyond, the quotient is subnormal, and 0 therefore.
    opposite = (opposite > _MOST_NORMAL).where(_MOST_NORMAL, opposite)
    opposite = (opposite < -_MOST_NORMAL).where(-_MOST_NORMAL, opposite)
    power = _scaled_exponential(opposite) if has_scaling(x) else _exponential_between(opposite)
    return 1.0 / (power + 1.0)


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
    """tanh: a rational function of f32; of f64 another one near zero, and 1 - 2 / (e^2|x| + 1)."""
    element, size = element_of(x.kind), magnitude(x)
    # A comparison with NaN chooses NaN.
    limit = _TANH_LIMIT[element]
    inside = (size > limit).where(limit, size)
    square = inside * inside
    if element == FLOAT:
        ratio = inside * polynomial(square, _SHORT_TANH_P) / polynomial(square, _SHORT_TANH_Q)
        result = (ratio > 1.0).where(1.0, ratio)
    else:
        near = size.compare("ult", _TANH_NEAR)
        power = _quick_exponential(inside + inside)
        # One quotient for both.
        above = near.where(polynomial(square, _TANH_P), -2.0)
        quotient = above / near.where(polynomial(square, _TANH_Q), power + 1.0)
        result = near.where(inside * square, 1.0) * quotient + near.where(inside, 1.0)
    return (size < _constants(x).tiny).where(x, with_sign_of(result, x))


def _quick_exponential(x: Value) -> Value:
    """e^x of f64 from 1 to 40, to 2^-52 x: what is made of it depends on it the less the larger it is."""
    turns, word = nearest_integer(x * _LOG2_E)
    r = x - turns * _LN2
    value = r * r * polynomial(r, _QUICK_SQUARE) + r + 1.0
    return _times_power_of_two(value, word << mantissa_bits(x))
