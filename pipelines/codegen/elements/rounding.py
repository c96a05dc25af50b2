"""Floats rounded to integers, their signs, and whether they are finite."""

from __future__ import annotations

from math import inf

from hloforge.pipelines.codegen.elements.arithmetic import mantissa_bits, with_sign_of
from hloforge.pipelines.codegen.lang.values import DOUBLE, FLOAT, Value, bits_of, element_of

# The largest number below 1/2.
_BELOW_HALF = {FLOAT: 0.5 - 2.0**-25, DOUBLE: 0.5 - 2.0**-54}


def floor(x: Value) -> Value:
    """Of a subnormal number below zero -1, as StableHLO says: the processor would read it as zero."""
    return _subnormal_as(x, -1.0).call("floor")


def ceil(x: Value) -> Value:
    """Of a subnormal number above zero 1."""
    return _subnormal_as(x, 1.0).call("ceil")


def _subnormal_as(x: Value, away: float) -> Value:
    """Subnormal numbers with the sign of ``away`` replaced by it, found by their bits."""
    word = x.bits()
    first = 1 if away > 0 else 1 - (1 << (bits_of(x.kind) - 1))
    # The codes of subnormal numbers of one sign follow that of zero.
    subnormal = (word - first).compare("ult", (1 << mantissa_bits(x)) - 1)
    return subnormal.where(away, x)


def nearest_even(x: Value) -> Value:
    return x.call("roundeven")


def nearest_away(x: Value) -> Value:
    """To nearest, ties away from zero: the sum rounds to the next integer from a tie on, and stays below it before."""
    return (x + with_sign_of(x.like(_BELOW_HALF[element_of(x.kind)]), x)).call("trunc")


def sign(x: Value) -> Value:
    """-1 or 1; zeros and NaN stay, and subnormal numbers become zeros where sums flush them."""
    return x.compare("one", 0.0).where(with_sign_of(x.like(1.0), x), x + x)


def is_finite(x: Value) -> Value:
    return x.call("fabs") < inf
