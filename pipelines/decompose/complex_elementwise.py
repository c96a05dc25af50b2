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

from dataclasses import dataclass
from math import inf, nan
from typing import Any, ClassVar

from hloforge.dialect.ops import elementwise as ew
from hloforge.dialect.values import Operand, Value, full
from hloforge.pipelines.decompose.real_arithmetic import Pair, is_nan
from hloforge.pipelines.passes import Pass, register
from hloforge.pipelines.patterns import NoMatch, Replacement, apply_patterns, pattern

# Beyond it e^-2x is below half an ulp of one in float64, and e^x still far from overflow in float32.
_FAR = 22.0


def _parts(z: Value) -> Pair:
    return ew.real(z), ew.imaginary(z)


def _sign(x: Value) -> Value:
    """One with the sign bit of x."""
    row = x.element_type
    unsigned = f"u{row.bits}"
    sign = ew.bitcast_convert(x, unsigned) & (1 << (row.bits - 1))
    return ew.bitcast_convert(ew.bitcast_convert(full(x, 1.0), unsigned) | sign, row)


def _is_zero(x: Value) -> Value:
    return x.eq(0.0)


def modulus(z: Value) -> Value:
    """|a + bi| without overflow of the squares; infinite if either part is."""
    a, b = (ew.absolute(part) for part in _parts(z))
    larger, smaller = ew.maximum(a, b), ew.minimum(a, b)
    ratio = smaller / larger
    length = larger * ew.square_root(ratio * ratio + 1.0)
    length = ew.select(_is_zero(larger), larger, length)
    return ew.select(a.eq(inf) | b.eq(inf), inf, length)


def _hyperbolic(b: Value) -> tuple[Value, Value, Value]:
    """(c, s, h) with cosh b = c h and sinh b = s h; h keeps large results from overflowing before the last product."""
    magnitude = ew.absolute(b)
    far = magnitude > _FAR
    e = ew.exponential_minus_one(ew.minimum(magnitude, _FAR))
    half = ew.select(far, ew.exponential(magnitude * 0.5), 1.0)
    below = e / (e + 1.0)
    cosh = ew.select(far, half * 0.5, (e * below) * 0.5 + 1.0)
    sinh = ew.select(far, half * 0.5, (e + below) * 0.5) * _sign(b)
    return cosh, sinh, half


def sine(z: Value) -> Value:
    """sin(a + bi) = sin a cosh b + i cos a sinh b."""
    a, b = _parts(z)
    cosh, sinh, half = _hyperbolic(b)
    real_part = ew.select(_is_zero(a), a, (ew.sine(a) * cosh) * half)
    cosine = ew.cosine(a)
    zero = ew.select(ew.is_finite(a), cosine * b, b)
    return ew.complex_number(real_part, ew.select(_is_zero(b), zero, (cosine * sinh) * half))


def cosine(z: Value) -> Value:
    """cos(a + bi) = cos a cosh b - i sin a sinh b."""
    a, b = _parts(z)
    cosh, sinh, half = _hyperbolic(b)
    imaginary_part = -((ew.sine(a) * sinh) * half)
    zero = -(ew.select(_is_zero(a), a, _sign(a)) * ew.select(_is_zero(b), b, _sign(b)))
    imaginary_part = ew.select(_is_zero(a) | (_is_zero(b) & ~ew.is_finite(a)), zero, imaginary_part)
    return ew.complex_number((ew.cosine(a) * cosh) * half, imaginary_part)


def _hyperbolic_tangent(a: Value, b: Value) -> Pair:
    """The parts of tanh(a + bi), by Kahan's formula; beyond _FAR by its limit."""
    t = ew.tangent(b)
    beta = t * t + 1.0
    near = ew.maximum(ew.minimum(a, _FAR), -_FAR)
    e = ew.exponential_minus_one(ew.absolute(near))
    s = (e + e / (e + 1.0)) * 0.5 * _sign(a)
    denominator = beta * s * s + 1.0
    far = ew.absolute(a) > _FAR
    decay = ew.exponential(ew.absolute(a) * -2.0) * 4.0
    real_part = ew.select(far, _sign(a), ew.square_root(s * s + 1.0) * (beta * s) / denominator)
    imaginary_part = ew.select(far, (t / beta) * decay, t / denominator)
    # No angle at all: the real part alone has a limit, and only at infinity or on the imaginary axis.
    turning, infinite, zero = ~ew.is_finite(b), ew.absolute(a).eq(inf), _is_zero(a)
    real_part = ew.select(turning & ~infinite, ew.select(zero, a, nan), real_part)
    imaginary_part = ew.select(infinite & turning, 0.0, imaginary_part)
    return real_part, ew.select(is_nan(a) & _is_zero(b), b, imaginary_part)


def hyperbolic_tangent(z: Value) -> Value:
    """tanh of a complex array."""
    return ew.complex_number(*_hyperbolic_tangent(*_parts(z)))


def tangent(z: Value) -> Value:
    """tan z = -i tanh(iz)."""
    a, b = _parts(z)
    real_part, imaginary_part = _hyperbolic_tangent(-b, a)
    return ew.complex_number(imaginary_part, -real_part)


def exponential_minus_one(z: Value) -> Value:
    """e^(a + bi) - 1, the real part as expm1(a) cos b - 2 sin(b/2)^2."""
    a, b = _parts(z)
    power = ew.exponential(z)
    half_sine = ew.sine(b * 0.5)
    near = ew.exponential_minus_one(a) * ew.cosine(b) - half_sine * half_sine * 2.0
    return ew.complex_number(ew.select(a > _FAR * 2, ew.real(power), near), ew.imaginary(power))


def logistic(z: Value) -> Value:
    """1 / (1 + e^-z), by w = e^-z or e^z, whichever is at most 1: 1 / (1 + w) or w / (1 + w)."""
    a, b = _parts(z)
    left = a < 0.0
    decay = ew.exponential(-ew.absolute(a))
    none = _is_zero(decay)
    c, s = (ew.select(none, 0.0, decay * part) for part in (ew.cosine(b), ew.sine(b)))
    s = ew.select(left, s, -s)
    half_cosine = ew.cosine(b * 0.5)
    # 1 + c without cancellation near the poles, where c is -1.
    whole = half_cosine * half_cosine * decay * 2.0 - ew.exponential_minus_one(-ew.absolute(a))
    whole = ew.select(none, 1.0, whole)
    norm = whole * whole + s * s
    real_part = ew.select(left, c + decay * decay, whole) / norm
    return ew.complex_number(real_part, ew.select(left, s, -s) / norm)


def reciprocal_square_root(z: Value) -> Value:
    """1 / sqrt(z), by the conjugate over the modulus, twice."""
    root = ew.square_root(z)
    a, b = ew.real(root), ew.absolute(ew.imaginary(root))
    length, lower = modulus(root), -_sign(ew.imaginary(z))
    unbounded = length.eq(inf)
    real_part = ew.select(unbounded, 0.0, (a / length) / length)
    imaginary_part = lower * ew.select(unbounded, 0.0, (b / length) / length)
    pole = _is_zero(length)
    return ew.complex_number(ew.select(pole, inf, real_part), ew.select(pole, nan, imaginary_part))


def cube_root(z: Value) -> Value:
    """The cube root nearest the positive real axis: a third of the argument."""
    a, b = _parts(z)
    radius, angle = ew.cube_root(modulus(z)), ew.arc_tangent_2(b, a) / 3.0
    return ew.complex_number(radius * ew.cosine(angle), ew.select(_is_zero(b) & (a >= 0.0), b, radius * ew.sine(angle)))


def power(z: Value, w: Value) -> Value:
    """z^(c + di) = |z|^c e^(-d arg z) (cos q + i sin q) with q = c arg z + d ln|z|; 0^0 = 1."""
    c, d = _parts(w)
    a, b = _parts(z)
    radius, angle = modulus(z), ew.arc_tangent_2(b, a)
    turn = c * angle + ew.select(_is_zero(d), 0.0, d * ew.logarithm(radius))
    length = radius**c * ew.exponential(-(d * angle))
    origin = _is_zero(radius)
    none = _is_zero(c) & _is_zero(d)
    at_origin = ew.select(none, full(c, 1.0), ew.select(c > 0.0, full(c, 0.0), nan))
    real_part = ew.select(origin, at_origin, length * ew.cosine(turn))
    imaginary_part = ew.select(origin, ew.select(none, 0.0, at_origin), length * ew.sine(turn))
    return ew.complex_number(ew.select(none, 1.0, real_part), ew.select(none, 0.0, imaginary_part))


def arc_tangent_2(y: Value, x: Value) -> Value:
    """atan2(y, x) = -i log((x + iy) / sqrt(x^2 + y^2)) (XLA's definition for complex operands)."""
    row = x.element_type.dtype
    unit: Operand = row.type(1j)
    quotient = (x + y * unit) / ew.square_root(x * x + y * y)
    a, b = _parts(ew.logarithm(quotient))
    return ew.complex_number(b, -a)


def _unit(x: Value) -> Value:
    """One for an infinite part, zero for a finite one, with its sign: the direction of an infinite number."""
    return ew.select(ew.absolute(x).eq(inf), full(x, 1.0), 0.0) * _sign(x)


def divide(z: Value, w: Value) -> Value:
    """z / w by Smith's algorithm; zero divisors and infinities as in C17 Annex G.5.1."""
    (a, b), (c, d) = _parts(z), _parts(w)
    # (a + bi) / (c + di) = (b - ai) / (d - ci): whichever has the larger real divisor.
    swap = ew.absolute(c) < ew.absolute(d)
    p, q = ew.select(swap, b, a), ew.select(swap, -a, b)
    u, v = ew.select(swap, d, c), ew.select(swap, -c, d)
    ratio = v / u
    norm = u + v * ratio
    real_part, imaginary_part = (p + q * ratio) / norm, (q - p * ratio) / norm
    infinite_z = ew.absolute(a).eq(inf) | ew.absolute(b).eq(inf)
    infinite_w = ew.absolute(c).eq(inf) | ew.absolute(d).eq(inf)
    finite_z, finite_w = ew.is_finite(a) & ew.is_finite(b), ew.is_finite(c) & ew.is_finite(d)
    pole, overflow, vanish = _is_zero(c) & _is_zero(d), infinite_z & finite_w, finite_z & infinite_w
    # One product serves the three cases: the direction of z (or z itself) by the direction of w, times 0 or infinity.
    e, f = (ew.select(overflow, _unit(part), part) for part in (a, b))
    g, h = (ew.select(vanish, _unit(part), part) for part in (c, d))
    g, h = ew.select(pole, _sign(c), g), ew.select(pole, 0.0, h)
    factor = ew.select(vanish, full(a, 0.0), inf)
    special = pole | overflow | vanish
    special_real = ew.select(pole, e * factor * g, factor * (e * g + f * h))
    special_imaginary = ew.select(pole, f * factor * g, factor * (f * g - e * h))
    return ew.complex_number(
        ew.select(special, special_real, real_part), ew.select(special, special_imaginary, imaginary_part)
    )


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
_BINARY = {"stablehlo.atan2": arc_tangent_2, "stablehlo.divide": divide, "stablehlo.power": power}


@pattern(*_UNARY)
def by_parts(op: Any) -> Replacement:
    """A function of one complex array -> real functions of its parts; any shape."""
    operand = Value(op.operands[0])
    if not operand.element_type.is_complex:
        return NoMatch("not complex")
    return _UNARY[op.name](operand)


@pattern(*_BINARY)
def pair_by_parts(op: Any) -> Replacement:
    """A function of two complex arrays -> real functions of their parts; any shape."""
    lhs, rhs = map(Value, op.operands)
    if not lhs.element_type.is_complex:
        return NoMatch("not complex")
    return _BINARY[op.name](lhs, rhs)


@register
@dataclass(frozen=True)
class DecomposeComplexElementwise(Pass):
    """Replace elementwise functions of complex numbers by functions of their parts."""

    name: ClassVar[str] = "decompose-complex-elementwise"

    def run(self, module: Any) -> None:
        apply_patterns(module, (*by_parts, *pair_by_parts))
