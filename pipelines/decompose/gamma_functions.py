"""``decompose-gamma-functions``: lgamma and digamma as arithmetic, right to the last digits at their zeros.

Before::

    %r = chlo.lgamma %x : tensor<4xf32> -> tensor<4xf32>

After, by the magnitude m of x: below 3, ``(m - 1) (m - 2) P(m - 2)`` or, below 1, ``m (m - 1) P(m - 1) - log m``;
from 3 on, Stirling's series; negative numbers by reflection. digamma likewise, with its zero as the factor.

CHLO's expansion is Lanczos's sum, whose terms cancel: at 1 and 2, where lgamma is zero, its error is 1e-6 in f32, as
XLA's, and so is that of digamma at its zero 1.46. f32 and half precision are computed in f64, which has digits left at
the zeros between negative integers too. Sources: NIST Handbook (DLMF) 5.5, 5.7, 5.11; the polynomials: Chebyshev's
nodes in mpmath's numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, nan, pi
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.decompose.real_arithmetic import (
    REAL_TYPES,
    narrowed,
    widened,
)
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern
from hloforge.pipelines.polynomials import estrin

# From here on Stirling's series is used.
_FAR = 3.0
# lgamma(2 + v) / (v (v + 1)) for v from -1 to 1, to 2^-60.
_LGAMMA = (
    0.42278433509846713,
    -0.10031730167435392,
    0.03296500062115574,
    -0.012384192193371238,
    0.004998641164703528,
    -0.002108130833958805,
    0.0009153769220696921,
    -0.00040570739742046497,
    0.00018255264185594036,
    -8.30951276372239e-05,
    3.8168863787885225e-05,
    -1.766166422556033e-05,
    8.222342452139818e-06,
    -3.847396648270243e-06,
    1.8074775340912791e-06,
    -8.526588188526563e-07,
    4.0551922127948146e-07,
    -1.9252286332850674e-07,
    8.75360413423732e-08,
    -4.17254430301382e-08,
    2.615457216445561e-08,
    -1.2569945435720683e-08,
    -6.830399052794191e-10,
    3.613371593815743e-10,
    4.885761922683655e-09,
    -2.372580625023415e-09,
    -1.3764318718154119e-09,
    6.705737026247826e-10,
    4.226016675377439e-10,
    -2.0542420991550905e-10,
)
# (lgamma(x) - (x - 1/2) log x + x - log(2 pi) / 2) x in 1 / x^2 up to 1/9, to 2^-56.
_STIRLING = (
    0.08333333333333333,
    -0.0027777777777757695,
    0.000793650792622404,
    -0.0005952378854503139,
    0.0008417282394032359,
    -0.0019160464198791072,
    0.006346110578292672,
    -0.027601910018978465,
    0.13605466944124706,
    -0.6346190865706115,
    2.348297111372058,
    -5.724231505133728,
    6.653396422514748,
)
# digamma(2 + v) / (2 + v - zero) for v from -1 to 1, to 2^-58; 2 less the zero as a float and the rest of it.
_DIGAMMA = (
    0.7853075386041053,
    -0.2607389546830014,
    0.10899991701762841,
    -0.04955103291766767,
    0.023447309597562315,
    -0.011338432553553088,
    0.005552254176163854,
    -0.002739572878878444,
    0.001358142115660262,
    -0.0006753134172771423,
    0.00033643307392409804,
    -0.00016781485745549608,
    8.377541533754836e-05,
    -4.1847758637407615e-05,
    2.090944279433702e-05,
    -1.043615113408139e-05,
    5.216485445131201e-06,
    -2.6450069563210817e-06,
    1.322327646207658e-06,
    -5.878282013270488e-07,
    2.938946209899294e-07,
    -2.5162239592946485e-07,
    1.258090299216334e-07,
    4.46741085718643e-08,
    -2.2337287908168016e-08,
    -6.628736705562654e-08,
    3.314365249205256e-08,
    2.0501183895194647e-08,
    -1.0250592958849892e-08,
    -5.4669888399440215e-09,
    2.7334936115473567e-09,
)
_FROM_ZERO = (0.5383678550316376, 1.5522348162858677e-17)
# (log x - 1 / (2 x) - digamma(x)) x^2 in 1 / x^2 up to 1/9, to 2^-55.
_DIGAMMA_FAR = (
    0.08333333333333333,
    -0.008333333333325033,
    0.003968253963318731,
    -0.004166665495022904,
    0.0075756100694986265,
    -0.021081441106059102,
    0.08275092617561204,
    -0.42213739276734025,
    2.4853225179572207,
    -14.509465068315617,
    72.40846099395732,
    -269.9594777475153,
    643.1483984648313,
    -720.4954060785403,
)
# sin(pi d) / d and pi d cot(pi d) in d^2 up to 1/4.
_SINE = (
    3.141592653589793,
    -5.16771278004997,
    2.5501640398773455,
    -0.5992645293207869,
    0.08214588661099356,
    -0.007370430943702136,
    0.0004663027874593273,
    -2.1915250301851375e-05,
    7.94853903737232e-07,
    -2.228371216069697e-08,
)
_COTANGENT = (
    1.0,
    -3.289868133696457,
    -2.164646467420892,
    -2.034686124154129,
    -2.0081546994114303,
    -2.001989699177906,
    -2.000476988640501,
    -2.000411605909027,
    -1.9961204155083805,
    -2.0382547488793725,
    -1.7276165557713552,
    -3.4058372811319497,
    3.161119340676198,
    -14.943473839672569,
    18.391967758914742,
    -18.39196776824034,
)


def lgamma(x: Value) -> Value:
    """log |gamma(x)| of float64, within 2 ulp of positive numbers; infinite at zero and negative integers."""
    magnitude = ops.abs(x)
    small, near = magnitude < 1.0, magnitude < _FAR
    # The factors are exact: m - 1 and m - 2, or those of m + 1.
    first = ops.select(small, magnitude, magnitude - 1.0)
    second = first - 1.0
    base = second * (first * estrin(second, _LGAMMA))
    logarithm, inverse = ops.log(magnitude), 1.0 / magnitude
    rest = inverse * estrin(inverse * inverse, _STIRLING) + (log(2 * pi) - 1) / 2
    far = (magnitude - 0.5) * (logarithm - 1.0) + rest
    # A sum, so that lgamma(1) is +0.
    positive = ops.select(near, base + ops.select(small, -logarithm, 0.0), far)
    # lgamma(-m) = log(pi / (m sin(pi m))) - lgamma(m); below 1 both have log m, which is left out.
    distance = ops.abs(_from_integer(magnitude))
    sine = distance * estrin(distance * distance, _SINE)
    reflected = ops.log(pi / (ops.select(small, 1.0, magnitude) * sine)) - ops.select(near, base, far)
    result = ops.select(x < 0.0, ops.select(sine.eq(0.0), inf, reflected), positive)
    return ops.select(magnitude.eq(inf), inf, result)


def digamma(x: Value) -> Value:
    """The derivative of lgamma of float64; NaN at zero and negative integers."""
    magnitude = ops.abs(x)
    small, near = magnitude < 1.0, magnitude < _FAR
    second = ops.select(small, magnitude, magnitude - 1.0) - 1.0
    factor = (second + _FROM_ZERO[0]) + _FROM_ZERO[1]
    inverse = 1.0 / magnitude
    square = inverse * inverse
    far = ops.log(magnitude) - (0.5 * inverse + square * estrin(square, _DIGAMMA_FAR))
    base = ops.select(near, factor * estrin(second, _DIGAMMA), far)
    positive = ops.select(small, base - inverse, base)
    # digamma(-m) = digamma(m) + 1 / m + pi cot(pi m); below 1 it is digamma(m + 1) that is at hand.
    distance = _from_integer(magnitude)
    cotangent = estrin(distance * distance, _COTANGENT) / distance
    negative = ops.select(small, base, base + inverse) + cotangent
    result = ops.select(x < 0.0, ops.select(distance.eq(0.0), nan, negative), positive)
    return ops.select(x.eq(0.0), nan, result)


def _from_integer(magnitude: Value) -> Value:
    """The exact distance from the next integer, with its sign."""
    part = magnitude - ops.floor(magnitude)
    return ops.select(part > 0.5, part - 1.0, part)


_FUNCTIONS = {"chlo.digamma": digamma, "chlo.lgamma": lgamma}


@pattern(*_FUNCTIONS)
def by_factors(op: ir.Operation) -> Replacement:
    """lgamma and digamma of real floats -> arithmetic of float64; any shape."""
    x = Value(op.operands[0])
    if x.element_type.name not in REAL_TYPES:
        return NoMatch(f"no form for {x.element_type}")
    return narrowed(_FUNCTIONS[op.name](widened(x)), x.element_type.name)


@register
@dataclass(frozen=True)
class DecomposeGammaFunctions(PatternPass):
    """Replace lgamma and digamma by arithmetic that loses no digits at their zeros."""

    name: ClassVar[str] = "decompose-gamma-functions"
    patterns: ClassVar[tuple[Pattern, ...]] = by_factors
