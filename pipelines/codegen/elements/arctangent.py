"""atan2 of f32, in f64, where quotients of f32 neither over- nor underflow.

The angle of the smaller to the larger side, then its octant and quadrant. f64 is taken apart before by
``decompose-arctangent``. Special values: IEEE 754-2019, 9.2.1.
"""

from __future__ import annotations

from math import nan, pi

from hloforge.pipelines.codegen.elements.arithmetic import polynomial, wide_magnitude, with_sign_of
from hloforge.pipelines.codegen.lang.values import FLOAT, Value

# atan(t) / t for t in [0, 1] in powers of t^2, to 2^-33: by Chebyshev's nodes (mpmath's ``chebyfit``).
_ARCTANGENT = (
    0.9999999999887381,
    -0.3333333295165722,
    0.19999978336217084,
    -0.1428522560816021,
    0.11105306732424464,
    -0.09049179093720577,
    0.07495262378099696,
    -0.06022196387937433,
    0.04364658944281667,
    -0.02600599597760862,
    0.011427633277375594,
    -0.0031954252407363944,
    0.00041922786011272897,
)


def arc_tangent_2(y: Value, x: Value) -> Value:
    height, width = wide_magnitude(y), wide_magnitude(x)
    steep, left = height > width, x.bits() < 0
    smaller, larger = steep.where(width, height), steep.where(height, width)
    # Equal sides also where both are infinite.
    ratio = smaller.equals(larger).where(1.0, smaller / larger)
    ratio = larger.equals(0.0).where(0.0, ratio)
    angle = ratio * polynomial(ratio * ratio, _ARCTANGENT)
    angle = steep.where(pi / 2 - angle, angle)
    angle = left.where(pi - angle, angle)
    return x.compare("uno", y).where(nan, with_sign_of(angle.as_(FLOAT), y))
