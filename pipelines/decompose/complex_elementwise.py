"""``decompose-complex-elementwise``: elementwise functions of complex numbers by real ones of their parts.

Before::

    %s = stablehlo.sine %z : tensor<4xcomplex<f64>>

After: sin(a + bi) = sin a cosh b + i cos a sinh b, with the hyperbolic functions from one expm1 and one exp.

IREE lowers these to real functions that its linker lacks for f64, or loses digits and special values; ``cbrt`` has no
lowering at all. What this pass builds are real operations and complex exp, log and sqrt, so
``stablehlo-complex-math-expander`` and the decompositions of real functions come after it.

Sources: W. Kahan, "Branch cuts for complex elementary functions" (1987), for tanh; C17 Annex G for special values.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from math import inf, nan
from typing import ClassVar

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Operand, Value
from hloforge.pipelines.decompose.real_arithmetic import Pair, is_nan
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

# Beyond it e^-2x is below half an ulp of one in float64, and e^x still far from overflow in float32.
_FAR = 22.0


def _parts(z: Value) -> Pair:
    return ops.real(z), ops.imag(z)


def _sign(x: Value) -> Value:
    """One with the sign bit of x."""
    row = x.element_type
    unsigned = f"u{row.bits}"
    sign = ops.bitcast_convert_type(x, unsigned) & (1 << (row.bits - 1))
    return ops.bitcast_convert_type(ops.bitcast_convert_type(full(x, 1.0), unsigned) | sign, row)


def _is_zero(x: Value) -> Value:
    return x.eq(0.0)


def modulus(z: Value) -> Value:
    """|a + bi| without overflow of the squares; infinite if either part is."""
    a, b = (ops.abs(part) for part in _parts(z))
    larger, smaller = ops.max(a, b), ops.min(a, b)
    ratio = smaller / larger
    length = larger * ops.sqrt(ratio * ratio + 1.0)
    length = ops.select(_is_zero(larger), larger, length)
    return ops.select(a.eq(inf) | b.eq(inf), inf, length)


def _hyperbolic(b: Value) -> tuple[Value, Value, Value]:
    """(c, s, h) with cosh b = c h and sinh b = s h; h keeps large results from overflowing before the last product."""
    magnitude = ops.abs(b)
    far = magnitude > _FAR
    e = ops.expm1(ops.min(magnitude, _FAR))
    half = ops.select(far, ops.exp(magnitude * 0.5), 1.0)
    below = e / (e + 1.0)
    cosh = ops.select(far, half * 0.5, (e * below) * 0.5 + 1.0)
    sinh = ops.select(far, half * 0.5, (e + below) * 0.5) * _sign(b)
    return cosh, sinh, half


def sine(z: Value) -> Value:
    """sin(a + bi) = sin a cosh b + i cos a sinh b."""
    a, b = _parts(z)
    cosh, sinh, half = _hyperbolic(b)
    real_part = ops.select(_is_zero(a), a, (ops.sin(a) * cosh) * half)
    cosine = ops.cos(a)
    zero = ops.select(ops.is_finite(a), cosine * b, b)
    return ops.complex(real_part, ops.select(_is_zero(b), zero, (cosine * sinh) * half))


def cosine(z: Value) -> Value:
    """cos(a + bi) = cos a cosh b - i sin a sinh b."""
    a, b = _parts(z)
    cosh, sinh, half = _hyperbolic(b)
    imaginary_part = -((ops.sin(a) * sinh) * half)
    zero = -(ops.select(_is_zero(a), a, _sign(a)) * ops.select(_is_zero(b), b, _sign(b)))
    imaginary_part = ops.select(_is_zero(a) | (_is_zero(b) & ~ops.is_finite(a)), zero, imaginary_part)
    return ops.complex((ops.cos(a) * cosh) * half, imaginary_part)


def _hyperbolic_tangent(a: Value, b: Value) -> Pair:
    """The parts of tanh(a + bi), by Kahan's formula; beyond _FAR by its limit."""
    t = ops.tan(b)
    beta = t * t + 1.0
    near = ops.max(ops.min(a, _FAR), -_FAR)
    e = ops.expm1(ops.abs(near))
    s = (e + e / (e + 1.0)) * 0.5 * _sign(a)
    denominator = beta * s * s + 1.0
    far = ops.abs(a) > _FAR
    decay = ops.exp(ops.abs(a) * -2.0) * 4.0
    real_part = ops.select(far, _sign(a), ops.sqrt(s * s + 1.0) * (beta * s) / denominator)
    imaginary_part = ops.select(far, (t / beta) * decay, t / denominator)
    # No angle at all: the real part alone has a limit, and only at infinity or on the imaginary axis.
    turning, infinite, zero = ~ops.is_finite(b), ops.abs(a).eq(inf), _is_zero(a)
    real_part = ops.select(turning & ~infinite, ops.select(zero, a, nan), real_part)
    imaginary_part = ops.select(infinite & turning, 0.0, imaginary_part)
    return real_part, ops.select(is_nan(a) & _is_zero(b), b, imaginary_part)


def hyperbolic_tangent(z: Value) -> Value:
    """tanh of a complex array."""
    return ops.complex(*_hyperbolic_tangent(*_parts(z)))


def tangent(z: Value) -> Value:
    """tan z = -i tanh(iz)."""
    a, b = _parts(z)
    real_part, imaginary_part = _hyperbolic_tangent(-b, a)
    return ops.complex(imaginary_part, -real_part)


def exponential_minus_one(z: Value) -> Value:
    """e^(a + bi) - 1, the real part as expm1(a) cos b - 2 sin(b/2)^2."""
    a, b = _parts(z)
    power = ops.exp(z)
    half_sine = ops.sin(b * 0.5)
    near = ops.expm1(a) * ops.cos(b) - half_sine * half_sine * 2.0
    return ops.complex(ops.select(a > _FAR * 2, ops.real(power), near), ops.imag(power))


def logistic(z: Value) -> Value:
    """1 / (1 + e^-z), by w = e^-z or e^z, whichever is at most 1: 1 / (1 + w) or w / (1 + w)."""
    a, b = _parts(z)
    left = a < 0.0
    decay = ops.exp(-ops.abs(a))
    # No angle leaves no number, unless there is nothing to turn.
    none = _is_zero(decay) & (ops.is_finite(b) | ops.abs(a).eq(inf))
    c, s = (ops.select(none, 0.0, decay * part) for part in (ops.cos(b), ops.sin(b)))
    s = ops.select(left, s, -s)
    half_cosine = ops.cos(b * 0.5)
    # 1 + c without cancellation near the poles, where c is -1.
    whole = half_cosine * half_cosine * decay * 2.0 - ops.expm1(-ops.abs(a))
    whole = ops.select(none, 1.0, whole)
    norm = whole * whole + s * s
    real_part = ops.select(left, c + decay * decay, whole) / norm
    return ops.complex(real_part, ops.select(left, s, -s) / norm)


def reciprocal_square_root(z: Value) -> Value:
    """1 / sqrt(z), by the conjugate over the modulus, twice."""
    root = ops.sqrt(z)
    a, b = ops.real(root), ops.abs(ops.imag(root))
    length, lower = modulus(root), -_sign(ops.imag(z))
    # Also beside a NaN, which the root's own parts may both be then.
    unbounded = ops.abs(ops.real(z)).eq(inf) | ops.abs(ops.imag(z)).eq(inf)
    real_part = ops.select(unbounded, 0.0, (a / length) / length)
    imaginary_part = lower * ops.select(unbounded, 0.0, (b / length) / length)
    pole = _is_zero(length)
    return ops.complex(ops.select(pole, inf, real_part), ops.select(pole, nan, imaginary_part))


def cube_root(z: Value) -> Value:
    """The cube root nearest the positive real axis: a third of the argument."""
    a, b = _parts(z)
    radius, angle = ops.cbrt(modulus(z)), ops.atan2(b, a) / 3.0
    return ops.complex(radius * ops.cos(angle), ops.select(_is_zero(b) & (a >= 0.0), b, radius * ops.sin(angle)))


def power(z: Value, w: Value) -> Value:
    """z^(c + di) = |z|^c e^(-d arg z) (cos q + i sin q) with q = c arg z + d ln|z|; 0^0 = 1."""
    c, d = _parts(w)
    a, b = _parts(z)
    radius, angle = modulus(z), ops.atan2(b, a)
    turn = c * angle + d * ops.log(radius)
    length = radius**c * ops.exp(-(d * angle))
    origin = _is_zero(radius)
    none = _is_zero(c) & _is_zero(d)
    at_origin = ops.select(none, full(c, 1.0), ops.select((c > 0.0) & ops.is_finite(d), full(c, 0.0), nan))
    # Only the positive real infinity has a direction that real powers keep.
    unbounded = a.eq(inf) & _is_zero(b) & _is_zero(d) & c.eq(c)
    real_part = ops.select(origin, at_origin, ops.select(unbounded, length, length * ops.cos(turn)))
    imaginary_part = ops.select(origin, ops.select(none, 0.0, at_origin), length * ops.sin(turn))
    return ops.complex(ops.select(none, 1.0, real_part), ops.select(none | unbounded, 0.0, imaginary_part))


def arc_tangent_2(y: Value, x: Value) -> Value:
    """atan2(y, x) = -i log((x + iy) / sqrt(x^2 + y^2)) (XLA's definition for complex operands), without overflow."""
    row = x.element_type.dtype
    unit: Operand = row.type(1j)
    size = _power_of_two(_largest_part(x, y))
    x, y = (ops.complex(ops.real(z) / size, ops.imag(z) / size) for z in (x, y))
    quotient = (x + y * unit) / ops.sqrt(x * x + y * y)
    a, b = _parts(ops.log(quotient))
    return ops.complex(b, -a)


def _largest_part(*numbers: Value) -> Value:
    """The largest magnitude among the parts of complex numbers; NaN if one is."""
    parts = [ops.abs(part) for z in numbers for part in _parts(z)]
    return functools.reduce(ops.max, parts)


def _power_of_two(x: Value) -> Value:
    """The greatest power of two up to a positive number; what is too small or infinite gives the nearest normal one."""
    row = x.element_type
    limits = np.finfo(row.dtype)
    word = ops.bitcast_convert_type(ops.clamp(limits.tiny, x, limits.max), f"u{row.bits}")
    exponent = int(np.array(inf, row.dtype).view(f"u{row.bits // 8}"))
    return ops.bitcast_convert_type(word & exponent, row)


def _unit(x: Value) -> Value:
    """One for an infinite part, zero for a finite one, with its sign: the direction of an infinite number."""
    return ops.select(ops.abs(x).eq(inf), full(x, 1.0), 0.0) * _sign(x)


def divide(z: Value, w: Value) -> Value:
    """z / w by Smith's algorithm; zero divisors and infinities as in C17 Annex G.5.1."""
    (a, b), (c, d) = _parts(z), _parts(w)
    # (a + bi) / (c + di) = (b - ai) / (d - ci): whichever has the larger real divisor.
    swap = ops.abs(c) < ops.abs(d)
    p, q = ops.select(swap, b, a), ops.select(swap, -a, b)
    u, v = ops.select(swap, d, c), ops.select(swap, -c, d)
    ratio = v / u
    norm = u + v * ratio
    real_part, imaginary_part = (p + q * ratio) / norm, (q - p * ratio) / norm
    infinite_z = ops.abs(a).eq(inf) | ops.abs(b).eq(inf)
    infinite_w = ops.abs(c).eq(inf) | ops.abs(d).eq(inf)
    finite_z, finite_w = ops.is_finite(a) & ops.is_finite(b), ops.is_finite(c) & ops.is_finite(d)
    pole = _is_zero(c) & _is_zero(d)
    overflow, vanish = infinite_z & finite_w & ~pole, finite_z & infinite_w
    # One product serves the three cases: the direction of z (or z itself) by the direction of w, times 0 or infinity.
    e, f = (ops.select(overflow, _unit(part), part) for part in (a, b))
    g, h = (ops.select(vanish, _unit(part), part) for part in (c, d))
    g, h = ops.select(pole, _sign(c), g), ops.select(pole, 0.0, h)
    factor = ops.select(vanish, full(a, 0.0), inf)
    # As there, only where the quotient is no number in either part.
    special = is_nan(real_part) & is_nan(imaginary_part) & (pole | overflow | vanish)
    special_real = ops.select(pole, e * factor * g, factor * (e * g + f * h))
    special_imaginary = ops.select(pole, f * factor * g, factor * (f * g - e * h))
    return ops.complex(
        ops.select(special, special_real, real_part), ops.select(special, special_imaginary, imaginary_part)
    )


def maximum(z: Value, w: Value) -> Value:
    """The later in lexicographic order; w where neither is."""
    return ops.select(_follows(z, w), z, w)


def minimum(z: Value, w: Value) -> Value:
    """The earlier in lexicographic order; w where neither is."""
    return ops.select(_follows(w, z), z, w)


def _follows(z: Value, w: Value) -> Value:
    """z > w by the real parts, or the imaginary ones where those are equal."""
    (a, b), (c, d) = _parts(z), _parts(w)
    return ops.select(a.eq(c), b > d, a > c)


_UNARY = {
    "stablehlo.abs": modulus,
    "stablehlo.cbrt": cube_root,
    "stablehlo.cosine": cosine,
    "stablehlo.exponential_minus_one": exponential_minus_one,
    "stablehlo.logistic": logistic,
    "stablehlo.rsqrt": reciprocal_square_root,
    "stablehlo.sine": sine,
    "stablehlo.tan": tangent,
    "stablehlo.tanh": hyperbolic_tangent,
}
_BINARY = {
    "stablehlo.atan2": arc_tangent_2,
    "stablehlo.divide": divide,
    "stablehlo.maximum": maximum,
    "stablehlo.minimum": minimum,
    "stablehlo.power": power,
}


@pattern(*_UNARY)
def by_parts(op: ir.Operation) -> Replacement:
    """A function of one complex array -> real functions of its parts; any shape."""
    operand = Value(op.operands[0])
    if not operand.element_type.is_complex:
        return NoMatch("not complex")
    return _UNARY[op.name](operand)


@pattern(*_BINARY)
def pair_by_parts(op: ir.Operation) -> Replacement:
    """A function of two complex arrays -> real functions of their parts; any shape."""
    lhs, rhs = map(Value, op.operands)
    if not lhs.element_type.is_complex:
        return NoMatch("not complex")
    return _BINARY[op.name](lhs, rhs)


@register
@dataclass(frozen=True)
class DecomposeComplexElementwise(PatternPass):
    """Replace elementwise functions of complex numbers by functions of their parts."""

    name: ClassVar[str] = "decompose-complex-elementwise"
    patterns: ClassVar[tuple[Pattern, ...]] = (*by_parts, *pair_by_parts)
