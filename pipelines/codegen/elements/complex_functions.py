"""Exponential, logarithm and square root of complex<f32>, in f64.

There the squares of f32 numbers are exact, and neither they nor what is between an exponential and its product over- or
underflow, so that the formulas of textbooks serve. Special values: C17 Annex G; on the square root's branch cut both
XLA and this take the upper side. Other functions, and complex<f64>, are taken apart before by
``decompose-complex-elementwise``.
"""

from __future__ import annotations

from math import inf

from hloforge.pipelines.codegen.elements.arctangent import arc_tangent_2
from hloforge.pipelines.codegen.elements.arithmetic import magnitude, wide_magnitude
from hloforge.pipelines.codegen.elements.complex_numbers import Parts
from hloforge.pipelines.codegen.elements.exponentials import exponential as real_exponential
from hloforge.pipelines.codegen.elements.logarithms import log_of_parts, split
from hloforge.pipelines.codegen.elements.trigonometric import cosine_and_sine
from hloforge.pipelines.codegen.lang.values import DOUBLE, FLOAT


def exponential(z: Parts) -> Parts:
    """e^a (cos b + i sin b)."""
    a, b = z
    length = real_exponential(a.as_(DOUBLE))
    cosine, sine = cosine_and_sine(b)
    real, imaginary = (length * cosine).as_(FLOAT), (length * sine).as_(FLOAT)
    # No angle leaves no number, unless there is nothing to turn, or only a length.
    turning = ~(magnitude(b) < inf)
    real = turning.where(a.equals(inf).where(a, a.equals(-inf).where(0.0, real)), real)
    imaginary = (turning & a.equals(-inf)).where(0.0, imaginary)
    return real, b.equals(0.0).where(b, imaginary)


def log(z: Parts) -> Parts:
    """ln |z| + i arg z; the logarithm of |z|^2 - 1 near the unit circle."""
    a, b = wide_magnitude(z[0]), wide_magnitude(z[1])
    larger, smaller = (a > b).where(a, b), (a > b).where(b, a)
    least = smaller * smaller
    square = larger * larger + least
    # Both terms are exact, so that their sum has all digits.
    rest = (larger - 1.0) * (larger + 1.0) + least
    exponent, mantissa = split(square)
    near = magnitude(rest) < 0.25
    length = log_of_parts(near.where(0, exponent), near.where(rest, mantissa - 1.0)) * 0.5
    length = square.equals(0.0).where(-inf, (square < inf).where(length, square))
    infinite = a.equals(inf) | b.equals(inf)
    return infinite.where(inf, length).as_(FLOAT), arc_tangent_2(z[1], z[0])


def square_root(z: Parts) -> Parts:
    """The root with no negative real part, by the one of its parts that is larger."""
    a, b = wide_magnitude(z[0]), wide_magnitude(z[1])
    longer = (((a * a + b * b).call("sqrt") + a) * 0.5).call("sqrt")
    shorter = longer.equals(0.0).where(0.0, b * 0.5 / longer)
    # An infinite imaginary part makes both parts infinite, an infinite real one its part alone.
    longer = (a.equals(inf) | b.equals(inf)).where(inf, longer)
    shorter = b.equals(inf).where(inf, (a.equals(inf) & ~b.is_nan()).where(0.0, shorter))
    left = z[0] < 0.0
    real, imaginary = left.where(shorter, longer).as_(FLOAT), left.where(longer, shorter).as_(FLOAT)
    return real, (z[1] < 0.0).where(-imaginary, imaginary)
