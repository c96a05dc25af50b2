"""What functions of floats share: polynomials, sums with their error, and the bits of numbers.

Kernels run with subnormal numbers flushed, and a product and a sum may be fused: products that are cancelled later are
exact, or their error does not matter.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

from hloforge.pipelines.codegen.lang.values import DOUBLE, FLOAT, Value, bits_of, element_of

# 3/2 * 2^23 and 3/2 * 2^52: sums with it have a last bit of weight one, for either sign.
INTEGER_ORIGIN = {FLOAT: 1.5 * 2.0**23, DOUBLE: 1.5 * 2.0**52}
MANTISSA_BITS = {FLOAT: 23, DOUBLE: 52}
# LLVM writes both types by the bits of a double.
_LITERAL = re.compile(r"\b0x([0-9A-F]{16})\b")
LEAST_NORMAL = {FLOAT: 2.0**-126, DOUBLE: 2.0**-1022}


# Of how many coefficients a polynomial is two of the square, and four of the fourth power.
_IN_TWO, _IN_FOUR = 10, 14


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """A polynomial; ``coefficients`` from the constant term up, at least two.

    Long ones are shorter ones of even and odd powers, for Horner's rule waits for each of its products: loops over
    functions wait for results more than for arithmetic units.
    """
    count = len(coefficients)
    if count < _IN_TWO:
        return _by_horner(x, coefficients)
    square = x * x
    parts = coefficients[::2], coefficients[1::2]
    if count < _IN_FOUR:
        return x * _by_horner(square, parts[1]) + _by_horner(square, parts[0])
    return x * _in_two(square, parts[1]) + _in_two(square, parts[0])


def _in_two(x: Value, coefficients: Sequence[float]) -> Value:
    square = x * x
    return x * _by_horner(square, coefficients[1::2]) + _by_horner(square, coefficients[::2])


def _by_horner(x: Value, coefficients: Sequence[float]) -> Value:
    total: Value | float = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = x * total + coefficient
    assert isinstance(total, Value)
    return total


def known_number(x: Value) -> float | None:
    """The number that a float or each lane of a vector is; None for what is computed."""
    found = _LITERAL.search(x.text) if x.is_constant else None
    return struct.unpack("<d", struct.pack("<Q", int(found[1], 16)))[0] if found else None


def from_bits(word: Value) -> Value:
    """The float with the bits of an integer of 32 or 64 bits."""
    return word.function.cast("bitcast", word, FLOAT if bits_of(word.kind) == 32 else DOUBLE)


def fast_two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """a + b and its rounding error; needs ``|a| >= |b|`` or ``a == 0``."""
    total = a + b
    return total, b - (total - a)


def two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """a + b and its rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def magnitude(x: Value) -> Value:
    return x.call("fabs")


def with_sign_of(x: Value, source: Value) -> Value:
    """``|x|`` with the sign bit of ``source``."""
    return x.call("copysign", source)


def mantissa_bits(x: Value) -> int:
    return MANTISSA_BITS[element_of(x.kind)]


def nearest_integer(x: Value) -> tuple[Value, Value]:
    """The nearest integer of a float below 2^22 (f64: 2^51) in magnitude, and an integer with its low bits."""
    origin = INTEGER_ORIGIN[element_of(x.kind)]
    shifted = x + origin
    return shifted - origin, shifted.bits()


def wide_magnitude(x: Value) -> Value:
    """The magnitude of a float as a double, subnormal ones included, which a conversion would flush."""
    word = x.bits() & 0x7FFFFFFF
    wide = word.as_(DOUBLE)
    return (word < 1 << 23).where(wide * 2.0**-149, magnitude(x).as_(DOUBLE))
