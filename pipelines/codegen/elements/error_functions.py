"""The error function, its complement and its inverse.

Sources: f32 erf: Eigen, ``erf_float``; f32 erfc and f64: S. Moshier, Cephes, ndtrf.c and ndtr.c, as jaxlib expands
CHLO; the inverse: M. Giles, "Approximating the erfinv function", GPU Computing Gems (2011).
"""

from __future__ import annotations

from math import inf, pi, sqrt

from hloforge.pipelines.codegen.elements.arithmetic import magnitude, polynomial, with_sign_of
from hloforge.pipelines.codegen.elements.exponentials import exponential
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
_SHORT_MIDDLE = (
    0.563825965,
    -0.274112701,
    0.340488,
    -0.494451523,
    0.621000468,
    -0.582473278,
    0.368742466,
    -0.138703942,
    0.0232682,
)
_SHORT_FAR = (
    0.564189494,
    -0.282076746,
    0.42184633,
    -1.01526523,
    2.92101908,
    -7.49551868,
    12.9772,
    -10.477664,
)
_SHORT_NEAR = (
    1.12837911,
    -0.37612626,
    0.112835854,
    -0.0268538129,
    0.00518832775,
    -0.00080101937,
    7.85386146e-05,
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
_TAIL_P = (
    557.5353353693994,
    1027.5518868951572,
    934.5285271719576,
    526.4451949954773,
    196.5208329560771,
    48.63719709856814,
    7.463210564422699,
    0.5641895648310689,
    2.461969814735305e-10,
)
_TAIL_Q = (
    557.5353408177277,
    1656.6630919416134,
    2246.3376081871097,
    1823.9091668790973,
    975.7085017432055,
    354.9377788878199,
    86.70721408859897,
    13.228195115474499,
    1.0,
)
_TAIL_R = (
    2.9788666537210022,
    7.4097426995044895,
    6.160210979930536,
    5.019050422511805,
    1.275366707599781,
    0.5641895835477551,
)
_TAIL_S = (
    3.369076451000815,
    9.608968090632859,
    17.08144507475659,
    12.048953980809666,
    9.396035249380015,
    2.2605286322011726,
    1.0,
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
    size, square = magnitude(x), x * x
    near = x * (polynomial(square, _ERF_P) / polynomial(square, _ERF_Q))
    return (size < 1.0).where(near, with_sign_of(1.0 - _tail(size), x))


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
    size, square = magnitude(x), x * x
    if element_of(x.kind) == FLOAT:
        near = x * polynomial(square, _SHORT_NEAR)
    else:
        near = x * (polynomial(square, _ERF_P) / polynomial(square, _ERF_Q))
    tail = _tail(size)
    far = (x < 0.0).where(2.0 - tail, tail)
    return (size < 1.0).where(1.0 - near, far)


def _tail(size: Value) -> Value:
    """erfc of numbers from 1 on."""
    square = size * size
    # The square's rounding error, which the exponential would multiply.
    error = size.call("fma", size, -square)
    decay = exponential(-square)
    decay = decay - decay * error
    if element_of(size.kind) == FLOAT:
        inverse = 1.0 / size
        z = inverse * inverse
        ratio = inverse * (size < 2.0).where(polynomial(z, _SHORT_MIDDLE), polynomial(z, _SHORT_FAR))
        limit = 9.4
    else:
        middle = polynomial(size, _TAIL_P) / polynomial(size, _TAIL_Q)
        ratio = (size < 8.0).where(middle, polynomial(size, _TAIL_R) / polynomial(size, _TAIL_S))
        limit = 26.6
    return (size > limit).where(0.0, decay * ratio)


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
