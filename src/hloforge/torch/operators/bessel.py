"""Bessel functions of the first, second and third kind of orders 0 and 1, and Airy's function.

Rational approximations and Chebyshev series with the coefficients of the Cephes library (S. Moshier, netlib.org/cephes:
``j0.c``, ``j1.c``, ``k0.c``, ``k1.c``, ``airy.c``), the highest power first. PyTorch has the same, but leaves out the
leading 1 of some denominators, so that it is off by 1e-6 near 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy import special

from hloforge.torch.registry import Kind, pointwise

_FLOAT = Kind.INT_TO_FLOAT

# fmt: off
# Of large numbers, by order: what the cosine and the sine of the phase are multiplied with, as functions of 25 / x².
_PHASE_COS_0 = (
    0.0007969367292973471, 0.08283523921074408, 1.239533716464143, 5.447250030587687, 8.74716500199817,
    5.303240382353949, 1.0,
)
_PHASE_COS_0_BELOW = (
    0.0009244088105588637, 0.08562884743544745, 1.2535274390105895, 5.470977403304171, 8.761908832370695,
    5.306052882353947, 1.0,
)
_PHASE_SIN_0 = (
    -0.011366383889846916, -1.2825271867050931, -19.553954425773597, -93.20601521237683, -177.68116798048806,
    -147.07750515495118, -51.41053267665993, -6.050143506007285,
)
_PHASE_SIN_0_BELOW = (
    1.0, 64.3178256118178, 856.4300259769806, 3882.4018360540163, 7240.467741956525, 5930.727011873169,
    2062.0933166032783, 242.0057402402914,
)
_PHASE_COS_1 = (
    0.0007621256162081731, 0.07313970569409176, 1.1271960812968493, 5.112079511468076, 8.424045901417724,
    5.214515986823615, 1.0,
)
_PHASE_COS_1_BELOW = (
    0.0005713231280725487, 0.06884559087544954, 1.105142326340617, 5.073863861286015, 8.399855543276042,
    5.209828486823619, 1.0,
)
_PHASE_SIN_1 = (
    0.05108625947501766, 4.982138729512334, 75.82382841325453, 366.7796093601508, 710.8563049989261,
    597.4896124006136, 211.68875710057213, 25.207020585802372,
)
_PHASE_SIN_1_BELOW = (
    1.0, 74.23732770356752, 1056.4488603826283, 4986.410583376536, 9562.318924047562, 7997.041604473507,
    2826.1927851763908, 336.0936078106983,
)
# Of small numbers, as functions of x²: J is divided by its first two zeros, Y is what is left without the logarithm.
_J0 = (-4794432209.782018, 1956174919465.5657, -249248344360967.72, 9708622510473064.0)
_J0_BELOW = (
    1.0, 499.563147152651, 173785.4016763747, 48440965.83399621, 11185553704.535683, 2112775201154.892,
    310518229857422.56, 3.1812195594320496e+16, 1.7108629408104315e+18,
)
_J1 = (-899971225.7055594, 452228297998.19403, -72749424522181.83, 3682957328638529.0)
_J1_BELOW = (
    1.0, 620.8364781180543, 256987.25675774884, 83514679.14319493, 22151159547.97925, 4749141220799.914,
    784369607876235.9, 8.952223361846274e+16, 5.322786203326801e+18,
)
_Y0 = (
    15592.436785523574, -14663929.59039716, 5435264770.518765, -982136065717.9115, 87590639439536.7,
    -3466283033847297.0, 4.4273326857256984e+16, -1.8495080043698668e+16,
)
_Y0_BELOW = (
    1.0, 1041.2835366425984, 626107.330137135, 268919633.39381415, 86400248710.3935, 20297961275010.555,
    3171577528429750.5, 2.5059625617265306e+17,
)
_Y1 = (
    1263204747.9017804, -647355876379.1603, 114509511541823.73, -8127702555013251.0, 2.024394757135949e+17,
    -7.788771962659501e+17,
)
_Y1_BELOW = (
    1.0, 594.3015923461282, 235564.09294306856, 73481194.44597217, 18760131610.870617, 3882312774962.3857,
    620557727146953.8, 6.871410873553005e+16, 3.9727060811656064e+18,
)
# Chebyshev series of K: in x² - 2 up to 2, in 8 / x - 2 beyond.
_K0 = (
    1.374465435613523e-16, 4.25981614279661e-14, 1.0349695257633842e-11, 1.904516377220209e-09,
    2.5347910790261494e-07, 2.286212103119452e-05, 0.001264615411446926, 0.0359799365153615,
    0.3442898999246285, -0.5353273932339028,
)
_K0_LARGE = (
    5.300433772686263e-18, -1.6475804301524212e-17, 5.2103915050390274e-17, -1.678231096805412e-16,
    5.512055978524319e-16, -1.848593377343779e-15, 6.3400764774050706e-15, -2.2275133269916698e-14,
    8.032890775363575e-14, -2.9800969231727303e-13, 1.140340588208475e-12, -4.514597883373944e-12,
    1.8559491149547177e-11, -7.957489244477107e-11, 3.577397281400301e-10, -1.69753450938906e-09,
    8.574034017414225e-09, -4.660489897687948e-08, 2.766813639445015e-07, -1.8317555227191195e-06,
    1.39498137188765e-05, -0.00012849549581627802, 0.0015698838857300533, -0.0314481013119645,
    2.4403030820659555,
)
_K1 = (
    -7.023863479386288e-18, -2.427449850519366e-15, -6.666901694199329e-13, -1.4114883926335278e-10,
    -2.213387630734726e-08, -2.4334061415659684e-06, -0.0001730288957513052, -0.006975723859639864,
    -0.12261118082265715, -0.3531559607765449, 1.5253002273389478,
)
_K1_LARGE = (
    -5.756744483665017e-18, 1.7940508731475592e-17, -5.689462558442859e-17, 1.838093544366639e-16,
    -6.057047248373319e-16, 2.038703165624334e-15, -7.019837090418314e-15, 2.4771544244813043e-14,
    -8.976705182324994e-14, 3.3484196660784293e-13, -1.2891739609510289e-12, 5.13963967348173e-12,
    -2.1299678384275683e-11, 9.218315187605006e-11, -4.1903547593418965e-10, 2.015049755197033e-09,
    -1.0345762465678097e-08, 5.7410841254500495e-08, -3.5019606030878126e-07, 2.406484947837217e-06,
    -1.936197974166083e-05, 0.00019521551847135162, -0.002857816859622779, 0.10392373657681724,
    2.7206261904844427,
)
# Airy's function beyond 2.09 on either side, as functions of 3 / (2 x^1.5), or of its square.
_AIRY = (
    0.346538101525629, 12.007595273964581, 76.27960536152345, 168.08922493463058, 159.75639135016442,
    70.53609068404442, 14.026469116338967, 1.0,
)
_AIRY_BELOW = (
    0.5675945326387702, 14.75625625848472, 84.51389701414746, 177.31808814540045, 164.2346928715297,
    71.47784008255756, 14.095913560783403, 1.0,
)
_AIRY_SIN = (
    -0.1316963234183318, -0.6264565444319123, -0.6931580360369335, -0.2797799815451191, -0.04919001326095003,
    -0.004062659235948854, -0.0001592764962392621, -2.776491081552329e-06, -1.6778769848911465e-08,
)
_AIRY_SIN_BELOW = (
    1.0, 13.356042070655324, 32.682503279522464, 26.736704094149957, 9.187074029072596, 1.4752914677166642,
    0.11568717379518804, 0.004402916416152112, 7.547203482874142e-05, 4.5185009297058035e-07,
)
_AIRY_COS = (
    0.01973399320916857, 0.39110302961568827, 1.0657989759959559, 0.9391692298166502, 0.35146565610554764,
    0.06338889196289255, 0.005858041130483885, 0.000282851600836737, 6.98793669997261e-06,
    8.117892395543892e-08, 3.415517847659236e-10,
)
_AIRY_COS_BELOW = (
    1.0, 9.30892908077442, 19.835292871831214, 15.564662893286462, 5.476860694229755, 0.9542936116189619,
    0.08645808263523921, 0.004126565238242226, 0.00010125908511650914, 1.1716673321441352e-06,
    4.9183457006293e-09,
)
# fmt: on
# Squares of the first zeros of J0 and J1 but 0.
_ZEROS_0 = 5.78318596294678452118, 30.4712623436620863991
_ZEROS_1 = 14.6819706421238932572, 49.2184563216946036703
_SMALL = 5.0
# Where Airy's function is a power series, and its value and derivative at 0 but for the sign.
_AIRY_SERIES, _AIRY_TERMS = 2.09, 16
_AIRY_VALUE, _AIRY_SLOPE = 0.355028053887817239260, 0.258819403792806798405


@pointwise("prims.bessel_j0", "aten.special_bessel_j0", kind=_FLOAT, wide=True)
def j0(x: Any) -> Any:
    x = jnp.abs(x)
    square = jnp.minimum(x, _SMALL) ** 2
    near = (square - _ZEROS_0[0]) * (square - _ZEROS_0[1]) * _ratio(_J0, _J0_BELOW, square)
    return jnp.where(x <= _SMALL, near, _far(x, 0)[0])


@pointwise("prims.bessel_j1", "aten.special_bessel_j1", kind=_FLOAT, wide=True)
def j1(x: Any) -> Any:
    size = jnp.abs(x)
    small = jnp.minimum(size, _SMALL)
    square = small * small
    near = _ratio(_J1, _J1_BELOW, square) * small * (square - _ZEROS_1[0]) * (square - _ZEROS_1[1])
    return jnp.sign(x) * jnp.where(size <= _SMALL, near, _far(size, 1)[0])


@pointwise("aten.special_bessel_y0", kind=_FLOAT, wide=True)
def y0(x: Any) -> Any:
    small = jnp.clip(x, np.finfo(x.dtype).tiny, _SMALL)
    near = _ratio(_Y0, _Y0_BELOW, small * small) + 2 / np.pi * jnp.log(small) * j0(small)
    return _of_positive(x, jnp.where(x <= _SMALL, near, _far(x, 0)[1]), -np.inf)


@pointwise("aten.special_bessel_y1", kind=_FLOAT, wide=True)
def y1(x: Any) -> Any:
    small = jnp.clip(x, np.finfo(x.dtype).tiny, _SMALL)
    rest = small * _ratio(_Y1, _Y1_BELOW, small * small)
    near = rest + 2 / np.pi * (j1(small) * jnp.log(small) - 1 / small)
    return _of_positive(x, jnp.where(x <= _SMALL, near, _far(x, 1)[1]), -np.inf)


@pointwise("aten.special_airy_ai", kind=_FLOAT, wide=True)
def airy_ai(x: Any) -> Any:
    """Infinities give NaN, as in PyTorch."""
    size = jnp.maximum(jnp.abs(x), _AIRY_SERIES)
    root = jnp.sqrt(size)
    zeta = 2 * size * root / 3
    flat = 1 / jnp.sqrt(np.pi * root)
    positive = flat / 2 * _ratio(_AIRY, _AIRY_BELOW, 1 / zeta) * jnp.exp(-zeta)
    square = 1 / (zeta * zeta)
    sine, cosine = _sin_cos_of_sum(zeta, 1)
    negative = flat * (
        sine * (1 + square * _ratio(_AIRY_SIN, _AIRY_SIN_BELOW, square))
        - cosine / zeta * _ratio(_AIRY_COS, _AIRY_COS_BELOW, square)
    )
    near = _airy_series(jnp.clip(x, -_AIRY_SERIES, _AIRY_SERIES))
    found = jnp.where(x >= _AIRY_SERIES, positive, jnp.where(x <= -_AIRY_SERIES, negative, near))
    return jnp.where(jnp.isinf(x), np.nan, found)


def _airy_series(x: Any) -> Any:
    cube = x * x * x
    value, slope = jnp.ones_like(x), x
    values, slopes = value, slope
    for k in range(3, 3 * _AIRY_TERMS, 3):
        value, slope = value * cube / ((k - 1) * k), slope * cube / (k * (k + 1))
        values, slopes = values + value, slopes + slope
    return _AIRY_VALUE * values - _AIRY_SLOPE * slopes


def _far(x: Any, order: int) -> tuple[Any, Any]:
    """J and Y of numbers above 5, by their amplitude and phase."""
    x = jnp.maximum(x, _SMALL)
    part = _SMALL / x
    square = part * part
    if order == 0:
        even = _ratio(_PHASE_COS_0, _PHASE_COS_0_BELOW, square)
        odd = part * _ratio(_PHASE_SIN_0, _PHASE_SIN_0_BELOW, square)
    else:
        even = _ratio(_PHASE_COS_1, _PHASE_COS_1_BELOW, square)
        odd = part * _ratio(_PHASE_SIN_1, _PHASE_SIN_1_BELOW, square)
    sine, cosine = _sin_cos_of_sum(x, -1 - 2 * order)
    flat = np.sqrt(2 / np.pi) / jnp.sqrt(x)
    return flat * (even * cosine - odd * sine), flat * (even * sine + odd * cosine)


def _sin_cos_of_sum(x: Any, eighths: int) -> tuple[Any, Any]:
    """The sine and cosine of x and an odd number of eighths of a turn; the sum itself would be rounded."""
    turn = eighths * np.pi / 4
    sine, cosine, of_sine, of_cosine = jnp.sin(x), jnp.cos(x), np.sin(turn), np.cos(turn)
    return sine * of_cosine + cosine * of_sine, cosine * of_cosine - sine * of_sine


def _k0(x: Any, *, is_scaled: bool) -> Any:
    small = jnp.clip(x, np.finfo(x.dtype).tiny, 2)
    near = _chebyshev(_K0, small * small - 2) - jnp.log(small / 2) * special.i0(small)
    return _of_k(x, near, _K0_LARGE, is_scaled)


def _k1(x: Any, *, is_scaled: bool) -> Any:
    small = jnp.clip(x, np.finfo(x.dtype).tiny, 2)
    near = jnp.log(small / 2) * special.i1(small) + _chebyshev(_K1, small * small - 2) / small
    return _of_k(x, near, _K1_LARGE, is_scaled)


def _of_k(x: Any, near: Any, series: Sequence[float], is_scaled: bool) -> Any:
    large = jnp.maximum(x, 2)
    far = _chebyshev(series, 8 / large - 2) / jnp.sqrt(large)
    if is_scaled:
        near = near * jnp.exp(jnp.minimum(x, 2))
    else:
        far = far * jnp.exp(-large)
    return _of_positive(x, jnp.where(x <= 2, near, far), np.inf)


for _order, _function in (("k0", _k0), ("k1", _k1)):
    for _prefix, _is_scaled in (("", False), ("scaled_", True)):
        pointwise(f"aten.special_{_prefix}modified_bessel_{_order}", kind=_FLOAT, wide=True)(
            partial(_function, is_scaled=_is_scaled)
        )


def _of_positive(x: Any, value: Any, at_zero: float) -> Any:
    """A function of positive numbers, which is infinite at 0; others, and what is no number, give NaN."""
    return jnp.where(x > 0, value, jnp.where(x == 0, at_zero, np.nan)).astype(x.dtype)


def _ratio(above: Sequence[float], below: Sequence[float], x: Any) -> Any:
    return _polynomial(above, x) / _polynomial(below, x)


def _polynomial(coefficients: Sequence[float], x: Any) -> Any:
    found = jnp.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        found = found * x + coefficient
    return found


def _chebyshev(coefficients: Sequence[float], x: Any) -> Any:
    """A series of Chebyshev polynomials of x / 2, by Clenshaw's recurrence."""
    before, last, here = jnp.zeros_like(x), jnp.zeros_like(x), jnp.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        before, last = last, here
        here = x * last - before + coefficient
    return (here - before) / 2
