"""The error function, its complement and its inverse.

Sources: f32 erf: Eigen, ``erf_float``; f64 erf below 1: S. Moshier, Cephes, ndtr.c, as jaxlib expands CHLO; the
inverse: M. Giles, "Approximating the erfinv function", GPU Computing Gems (2011).
"""

from __future__ import annotations

from math import inf, pi, sqrt

from hloforge.pipelines.codegen.elements.arithmetic import magnitude, polynomial, with_sign_of
from hloforge.pipelines.codegen.elements.exponentials import normal_exponential
from hloforge.pipelines.codegen.elements.logarithms import log
from hloforge.pipelines.codegen.lang.values import FLOAT, Value, element_of

_ERF_LIMIT = 4.0
_SHORT_ERF_P = (
    -0.0160960332,
    -0.0029546,
    -0.000734990637,
    -5.69250624e-05,
    -2.10102394e-06,
    2.77068146e-08,
    -2.72614237e-10,
)
_SHORT_ERF_Q = (
    -0.0142647391,
    -0.00737332925,
    -0.00168282702,
    -0.000213374049,
    -1.45660715e-05,
)
_ERF_P = (
    55592.30130103949,
    7003.325141128051,
    2232.005345946843,
    90.02601972038427,
    9.604973739870516,
)
_ERF_Q = (
    49267.39426086359,
    22629.000061389095,
    4594.323829709801,
    521.3579497801527,
    33.56171416475031,
    1.0,
)
# e^(x^2) erfc x = P(x) / Q(x) for x in [0, 10] and [0, 27], to 2^-27 and 2^-59: least squares with weights that level
# the errors (in mpmath's numbers). All terms are positive, so that sums cancel nothing.
_SHORT_SCALED_P = (1.00000001, 1.23844308, 0.73163657, 0.22923351, 0.03279928)
_SHORT_SCALED_Q = (1.0, 2.36682282, 2.40230081, 1.32542879, 0.4063322, 0.05813452)
_SCALED_P = (
    1.0,
    2.3403282273692554,
    2.715361843162142,
    2.018101120858493,
    1.054054074695333,
    0.4024239338744175,
    0.11358378120530829,
    0.023431808339291708,
    0.0033941924486281666,
    0.00031394307535844313,
    1.425408200666241e-05,
)
_SCALED_Q = (
    1.0,
    3.468707394464768,
    5.629379003826328,
    5.6537204960602265,
    3.9135602689770446,
    1.9659467229177954,
    0.7337655283746518,
    0.20431740267788884,
    0.04181002373453991,
    0.006028681827481288,
    0.000556449612885217,
    2.5264702543825518e-05,
)
_SHORT_INVERSE_NEAR = (
    1.50140941,
    0.246640727,
    -0.00417768164,
    -0.00125372503,
    0.00021858087,
    -4.39150654e-06,
    -3.5233877e-06,
    3.43273939e-07,
    2.81022636e-08,
)
_SHORT_INVERSE_FAR = (
    2.83297682,
    1.00167406,
    0.00943887047,
    -0.0076224613,
    0.00573950773,
    -0.00367342844,
    0.00134934322,
    0.000100950558,
    -0.000200214257,
)
_INVERSE_NEAR = (
    1.6536545626831027,
    0.24015818242558962,
    -0.006033670871430149,
    -0.000740702534166267,
    0.00018673420803405714,
    -1.3882523362786469e-05,
    -1.3654692000834679e-06,
    4.2347877827932404e-07,
    -2.9070369957882005e-08,
    -4.112633980346984e-09,
    1.0512122733215323e-09,
    -5.415412054294628e-11,
    -1.2975133253453532e-11,
    2.6335093153082323e-12,
    -8.151934197605472e-14,
    -4.054566272975207e-14,
    6.637638134358324e-15,
    2.0972767875968562e-17,
    -1.333171662854621e-16,
    1.1157877678025181e-17,
    1.28584807152564e-18,
    -1.6850591381820166e-19,
    -3.64441206401782e-21,
)
_INVERSE_MIDDLE = (
    3.0838856104922208,
    1.0052589676941592,
    0.005370914553590064,
    -0.003751208507569241,
    0.002491442096107851,
    -0.0016882755560235047,
    0.0009532893797373805,
    -0.0003550375203628475,
    2.4031110387097894e-05,
    6.828485145957318e-05,
    -4.7318229009055734e-05,
    1.2475304481671779e-05,
    2.9234449089955446e-06,
    -4.013867526981546e-06,
    1.5027403968909828e-06,
    1.8239629214389228e-08,
    -2.7517406297064545e-07,
    9.075656193888539e-08,
    2.2137376921775787e-09,
)
_INVERSE_FAR = (
    4.849906401408584,
    1.0103004648645344,
    -0.00013871931833623122,
    -0.00021503011930044477,
    7.599527703001776e-05,
    -1.968177810553167e-05,
    4.526062597223154e-06,
    -9.9298272942317e-07,
    2.2900482228026655e-07,
    -6.771199775845234e-08,
    2.914795345090108e-08,
    -1.496002662714924e-08,
    7.61570120807834e-09,
    -3.789465440126737e-09,
    1.5076572693500548e-09,
    -2.555641816996525e-10,
    -2.7109920616438573e-11,
)


def erf(x: Value) -> Value:
    if element_of(x.kind) == FLOAT:
        return _rational_erf(x)
    # One quotient serves both: dividing takes longer than a polynomial.
    near, square = magnitude(x) < 1.0, x * x
    decay, above, below = _scaled(x)
    quotient = near.where(polynomial(square, _ERF_P), above) / near.where(polynomial(square, _ERF_Q), below)
    return near.where(x * quotient, with_sign_of(1.0 - decay * quotient, x))


def _rational_erf(x: Value) -> Value:
    # Comparisons with NaN choose x.
    near = (x > _ERF_LIMIT).where(_ERF_LIMIT, x)
    near = (near < -_ERF_LIMIT).where(-_ERF_LIMIT, near)
    square = near * near
    ratio = near * polynomial(square, _SHORT_ERF_P) / polynomial(square, _SHORT_ERF_Q)
    ratio = (ratio > 1.0).where(1.0, ratio)
    ratio = (ratio < -1.0).where(-1.0, ratio)
    # The first term of the series: small coefficients times a tiny number would be subnormal.
    return (magnitude(x) < 2.0**-60).where(x * (2.0 / sqrt(pi)), ratio)


def erfc(x: Value) -> Value:
    """1 - erf x without cancellation."""
    decay, above, below = _scaled(x)
    tail = decay * (above / below)
    return (x < 0.0).where(2.0 - tail, tail)


def _scaled(x: Value) -> tuple[Value, Value, Value]:
    """e^(-x^2), and the numerator and the denominator of erfc |x| by it."""
    short, size = element_of(x.kind) == FLOAT, magnitude(x)
    # Where the exponential is the least normal number, and erfc far below; a comparison with NaN chooses NaN.
    limit = 9.34 if short else 26.61
    size = (size > limit).where(limit, size)
    square = size * size
    # The square's rounding error, which the exponential would multiply.
    error = size.call("fma", size, -square)
    decay = normal_exponential(-square)
    above, below = (_SHORT_SCALED_P, _SHORT_SCALED_Q) if short else (_SCALED_P, _SCALED_Q)
    return decay - decay * error, polynomial(size, above), polynomial(size, below)


def erf_inv(x: Value) -> Value:
    """The inverse of erf: infinite at 1 and -1, NaN beyond."""
    w = -log((1.0 - x) * (x + 1.0))
    if element_of(x.kind) == FLOAT:
        far = polynomial(w.call("sqrt") - 3.0, _SHORT_INVERSE_FAR)
        result = x * (w < 5.0).where(polynomial(w - 2.5, _SHORT_INVERSE_NEAR), far)
    else:
        root = w.call("sqrt")
        middle, far = polynomial(root - 3.25, _INVERSE_MIDDLE), polynomial(root - 5.0, _INVERSE_FAR)
        result = x * (w < 6.25).where(polynomial(w - 3.125, _INVERSE_NEAR), (w < 16.0).where(middle, far))
    return magnitude(x).equals(1.0).where(x * inf, result)
