"""Quotients by a divisor that many elements share: a division for all of them, and few operations for each.

Processors divide a vector of AVX-512 in 10 to 16 cycles, one of AVX2 in 5, and multiply two in one. The reciprocal
``r`` of the divisor is rounded once; then ``q = x r`` is next to the quotient, by how much ``q y`` exceeds ``x`` is a
number without rounding, and subtracting its quotient rounds as division does::

    q = x * r;  excess = q * y - x;  quotient = q - excess * r

An excess of 0 is +0 and ``y`` is not negative (its sign is put back in the end), so that the quotient keeps the sign of
a 0. Very large and very small divisors are scaled, because their reciprocals or excesses are subnormal. Beside infinite
numbers the quotient is what it was. What is known of the numbers leaves out what they do not need.

LLVM moves what the divisor alone decides out of the loop over the elements. The last bit may differ where the quotient
is below 2^-38 and ``x`` below 2^-102 (f32). Source: P. Markstein, "Computation of elementary functions on the IBM RISC
System/6000 processor", 1990, theorem 3.
"""

from __future__ import annotations

from hloforge.pipelines.codegen.elements.kinds import Range
from hloforge.pipelines.codegen.lang.values import Value, bits_of, element_of

# Divisors above these, and below their reciprocals, are scaled: quotients of what leaves the range so leave it too.
_LARGE = {32: 2.0**64, 64: 2.0**512}


def by_shared_divisor(x: Value, y: Value, dividend: Range, divisor: Range) -> Value:
    """The quotient, rounded as by division but for the smallest numbers.

    Args:
        dividend: what is known of ``x``.
        divisor: what is known of ``y``.
    """
    large = _LARGE[bits_of(element_of(y.kind))]
    size = y if divisor.low > 0 else y.call("fabs")
    is_usual = 1 / large <= divisor.low and divisor.high <= large
    if not is_usual:
        scale = (size > large).where(y.like(1 / large), (size < 1 / large).where(y.like(large), y.like(1.0)))
        x, size = x.literally("mul", scale), size.literally("mul", scale)
    inverse = size.like(1.0) / size
    near = x.literally("mul", inverse)
    excess = near.call("fma", size, -x)
    quotient = (-excess).call("fma", inverse, near)
    if not (is_usual and -large <= dividend.low and dividend.high <= large):
        quotient = quotient.is_nan().where(near, quotient)
    if divisor.low > 0:
        return quotient
    sign = y.bits() & (1 << bits_of(y.kind) - 1)
    word = quotient.bits() ^ sign
    return word.function.cast("bitcast", word, element_of(y.kind))
