"""Arithmetic of complex numbers by their parts, infinities as in C17 Annex G (``decompose/complex_elementwise.py``)."""

from __future__ import annotations

from math import inf
from typing import TypeAlias

from hloforge.pipelines.codegen.elements.arithmetic import magnitude, with_sign_of
from hloforge.pipelines.codegen.lang.values import Value

Parts: TypeAlias = tuple[Value, Value]


def add(z: Parts, w: Parts) -> Parts:
    return z[0].literally("add", w[0]), z[1].literally("add", w[1])


def subtract(z: Parts, w: Parts) -> Parts:
    return z[0].literally("sub", w[0]), z[1].literally("sub", w[1])


def multiply(z: Parts, w: Parts) -> Parts:
    (a, b), (c, d) = z, w
    return a * c - b * d, a * d + b * c


def negate(z: Parts) -> Parts:
    return -z[0], -z[1]


def modulus(z: Parts) -> Value:
    """|a + bi| without overflow of the squares; infinite if either part is."""
    a, b = magnitude(z[0]), magnitude(z[1])
    larger, smaller = a.maximum(b), a.minimum(b)
    ratio = smaller / larger
    length = larger * (ratio * ratio + 1.0).call("sqrt")
    length = larger.equals(0.0).where(larger, length)
    return (a.equals(inf) | b.equals(inf)).where(inf, length)


def sign(z: Parts) -> Parts:
    """z / |z|; zeros stay, and a NaN in either part makes both NaN."""
    length = modulus(z)
    zero = length.equals(0.0)
    return zero.where(z[0], z[0] / length), zero.where(z[1], z[1] / length)


def _is_infinite(x: Value) -> Value:
    return magnitude(x).equals(inf)


def _one(x: Value) -> Value:
    """One with the sign bit of x."""
    return with_sign_of(x.like(1.0), x)


def divide(z: Parts, w: Parts) -> Parts:
    """z / w by Smith's algorithm; zero divisors and infinities as in C17 Annex G.5.1."""
    (a, b), (c, d) = z, w
    # (a + bi) / (c + di) = (b - ai) / (d - ci): whichever has the larger real divisor.
    swap = magnitude(c) < magnitude(d)
    p, q = swap.where(b, a), swap.where(-a, b)
    u, v = swap.where(d, c), swap.where(-c, d)
    ratio = v / u
    norm = u + v * ratio
    real, imaginary = (p + q * ratio) / norm, (q - p * ratio) / norm
    infinite = {part: _is_infinite(part) for part in (a, b, c, d)}
    infinite_z, infinite_w = infinite[a] | infinite[b], infinite[c] | infinite[d]
    finite_z, finite_w = (magnitude(a) < inf) & (magnitude(b) < inf), (magnitude(c) < inf) & (magnitude(d) < inf)
    pole = c.equals(0.0) & d.equals(0.0)
    overflow, vanish = infinite_z & finite_w & ~pole, finite_z & infinite_w
    # One product serves the three cases: the direction of z (or z itself) by the direction of w, times 0 or infinity.
    e, f = (overflow.where(_direction(part, infinite[part]), part) for part in (a, b))
    g, h = (vanish.where(_direction(part, infinite[part]), part) for part in (c, d))
    g, h = pole.where(_one(c), g), pole.where(0.0, h)
    factor = vanish.where(a.like(0.0), inf)
    # As there, only where the quotient is no number in either part.
    special = real.is_nan() & imaginary.is_nan() & (pole | overflow | vanish)
    special_real = pole.where(e * factor * g, factor * (e * g + f * h))
    special_imaginary = pole.where(f * factor * g, factor * (f * g - e * h))
    return special.where(special_real, real), special.where(special_imaginary, imaginary)


def _direction(x: Value, infinite: Value) -> Value:
    """One for an infinite part, zero for a finite one, with its sign: the direction of an infinite number."""
    return with_sign_of(infinite.where(x.like(1.0), 0.0), x)
