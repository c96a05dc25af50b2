"""Quotients by a divisor that many elements share: a division for all of them, and few operations for each.

Processors divide a vector of AVX-512 in 10 to 16 cycles, and multiply two in one. The reciprocal ``r`` of the divisor
is rounded once; then ``q = x r`` is next to the quotient, what is left of ``x`` is a number without rounding, and
adding its quotient rounds as division does::

    q = x * r;  rest = x - q * y;  quotient = q + rest * r

LLVM moves what the divisor alone decides out of the loop over the elements. Very large and very small divisors are
scaled, because their reciprocals or rests are subnormal. The last bit may differ where the quotient is below 2^-38 and
``x`` below 2^-102 (f32). Source: P. Markstein, "Computation of elementary functions on the IBM RISC System/6000
processor", 1990, theorem 3.
"""

from __future__ import annotations

from hloforge.pipelines.codegen.lang.values import Value, bits_of, element_of

# Divisors above these, and below their reciprocals, are scaled: quotients of what leaves the range so leave it too.
_LARGE = {32: 2.0**64, 64: 2.0**512}


def by_shared_divisor(x: Value, y: Value) -> Value:
    """The quotient, rounded as by division but for the smallest numbers."""
    large = _LARGE[bits_of(element_of(y.kind))]
    size = y.call("fabs")
    scale = (size > large).where(y.like(1 / large), (size < 1 / large).where(y.like(large), y.like(1.0)))
    x, y = x.literally("mul", scale), y.literally("mul", scale)
    inverse = y.like(1.0) / y
    near = x.literally("mul", inverse)
    rest = (-near).call("fma", y, x)
    quotient = rest.call("fma", inverse, near)
    # Without a rest the quotient keeps the sign of 0, and beside infinite numbers it is what it was.
    is_better = rest.compare("one", 0.0) & ~quotient.is_nan()
    return is_better.where(quotient, near)
