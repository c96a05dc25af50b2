"""Square roots, cube roots, and their like."""

from __future__ import annotations

from math import inf

from hloforge.pipelines.codegen.elements.arithmetic import from_bits, wide_magnitude, with_sign_of
from hloforge.pipelines.codegen.lang.values import FLOAT, I32, I64, Value

# (1023 - 1023/3 - 0.03306235651) * 2^20: the bias that a third of the exponent lacks.
_BIAS = 715094163


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
    third = word.udiv(3) + _BIAS
    root = from_bits(third.as_(I64, signed=False) << 32)
    for _ in range(2):
        cube = root * root * root
        root = root * (size + size + cube) / (size + cube + cube)
    regular = (size > 0.0) & (size < inf)
    return regular.where(with_sign_of(root.as_(FLOAT), x), x)
