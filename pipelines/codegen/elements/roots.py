"""Square roots, cube roots, and their like."""

from __future__ import annotations

from math import inf

from hloforge.pipelines.codegen.elements.arithmetic import (
    from_bits,
    magnitude,
    polynomial,
    wide_magnitude,
    with_sign_of,
)
from hloforge.pipelines.codegen.lang.values import DOUBLE, FLOAT, I32, I64, Value
from hloforge.pipelines.series import CUBE_ROOT, THIRD_OF_EXPONENT


def square_root(x: Value) -> Value:
    return x.call("sqrt")


def reciprocal_square_root(x: Value) -> Value:
    return 1.0 / x.call("sqrt")


def cube_root(x: Value) -> Value:
    """Of f32, in f64: an estimate from a third of the upper word, then two steps of Halley's (each triples the digits).

    Source: FreeBSD msun s_cbrtf.c (Sun Microsystems, 1993; B. D. Evans).
    """
    size = wide_magnitude(x)
    word = size.bits().shifted_right(32).as_(I32)
    third = word.udiv(3) + THIRD_OF_EXPONENT
    root = from_bits(third.as_(I64, signed=False) << 32)
    for _ in range(2):
        cube = root * root * root
        root = root * (size + size + cube) / (size + cube + cube)
    regular = (size > 0.0) & (size < inf)
    return regular.where(with_sign_of(root.as_(FLOAT), x), x)


def cube_root_of_doubles(x: Value) -> Value:
    """The same of f64, within 0.7 ulp: an estimate, a polynomial, and a step of Newton's with an exact square.

    Source: FreeBSD msun s_cbrt.c (Sun Microsystems, 1993; B. D. Evans and D. Schultz).
    """
    word = magnitude(x).bits()
    # A subnormal number is its mantissa, an integer, times 2^-1074.
    subnormal = word < 1 << 52
    size = subnormal.where(word.as_(DOUBLE), magnitude(x))
    # A third of the upper word, by multiplication: there is no vector division of integers.
    third = (size.bits().shifted_right(32) * 0x55555556).shifted_right(32)
    root = from_bits((third + THIRD_OF_EXPONENT) << 32)
    root = root * polynomial((root * root) * (root / size), CUBE_ROOT)
    # 23 bits, so that the square below is exact.
    root = from_bits((root.bits() + (1 << 31)) & -(1 << 30))
    ratio = size / (root * root)
    root = root + root * ((ratio - root) / (root + root + ratio))
    root = subnormal.where(root * 2.0 ** (-1074 // 3), root)
    regular = (word - 1).compare("ult", (0x7FF << 52) - 1)
    return regular.where(with_sign_of(root, x), x)
