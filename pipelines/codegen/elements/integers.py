"""Arithmetic and bits of integers and flags.

What StableHLO leaves open is XLA's: division by zero gives all ones (-1), the remainder by zero the dividend, the
smallest integer by -1 itself; shifts by the width and more give zeros, or copies of the sign. Sums of flags are "or",
products "and". Source: XLA "Operation Semantics", ``ElementalIrEmitter``.
"""

from __future__ import annotations

import re

from hloforge.pipelines.codegen.lang.values import DOUBLE, FLOAT, I32, Value, bits_of

# Quotients of numbers of so many bits are exact in floats of twice as many: 1/x, the least distance to the next
# integer in units of the quotient, is far above their last place.
_EXACT_IN_FLOAT, _EXACT_IN_DOUBLE = 16, 32
_POWER_BITS = 6
_LITERAL = re.compile(r"(?:splat \(i\d+ )?(-?\d+)\)?")


def known_integer(x: Value) -> int | None:
    """The number that an integer or each lane of a vector is; None for what is computed."""
    found = _LITERAL.fullmatch(x.text)
    return int(found[1]) if found else None


def divide(x: Value, y: Value, *, signed: bool) -> Value:
    """The quotient towards zero."""
    if known_integer(y) not in (None, 0, -1):
        return _quotient(x, y, signed)
    none = y.equals(0)
    return none.where(-1, _quotient(x, _safe(x, y, none, signed), signed))


def remainder(x: Value, y: Value, *, signed: bool) -> Value:
    """What is left of ``x`` by ``divide``, with its sign."""
    if known_integer(y) not in (None, 0, -1):
        return x.srem(y) if signed else x.urem(y)
    none = y.equals(0)
    divisor = _safe(x, y, none, signed)
    if y.is_constant or bits_of(x.kind) > _EXACT_IN_DOUBLE:
        rest = x.srem(divisor) if signed else x.urem(divisor)
    else:
        rest = x - _quotient(x, divisor, signed) * divisor
    return none.where(x, rest)


def _safe(x: Value, y: Value, none: Value, signed: bool) -> Value:
    """A divisor for which the quotient exists; the smallest integer by 1 is itself, as by -1."""
    if not signed:
        return none.where(1, y)
    overflow = x.equals(-(1 << (bits_of(x.kind) - 1))) & y.equals(-1)
    return (none | overflow).where(1, y)


def _quotient(x: Value, y: Value, signed: bool) -> Value:
    bits = bits_of(x.kind)
    # A constant divisor becomes a product; vector units divide no integers, but floats.
    if y.is_constant or bits > _EXACT_IN_DOUBLE:
        return x.sdiv(y) if signed else x.udiv(y)
    wide = FLOAT if bits <= _EXACT_IN_FLOAT else DOUBLE
    ratio = x.as_(wide, signed=signed) / y.as_(wide, signed=signed)
    narrow = x.function.cast("fptosi" if signed else "fptoui", ratio, I32)
    return narrow.as_(f"i{bits}")


def absolute(x: Value) -> Value:
    """The magnitude; of the smallest integer itself."""
    return x.call("abs")


def sign(x: Value, *, signed: bool) -> Value:
    """-1, 0 or 1."""
    one = x.minimum(1, signed=signed)
    return one.maximum(-1) if signed else one


def _is_within(x: Value, amount: Value) -> bool:
    """Whether a shift is known to be less than the width."""
    known = known_integer(amount)
    return known is not None and 0 <= known < bits_of(x.kind)


def shift_left(x: Value, amount: Value) -> Value:
    width = bits_of(x.kind)
    if _is_within(x, amount):
        return x << amount
    return amount.compare("ult", width).where(x << amount, 0)


def shift_right_logical(x: Value, amount: Value) -> Value:
    width = bits_of(x.kind)
    if _is_within(x, amount):
        return x.shifted_right(amount)
    return amount.compare("ult", width).where(x.shifted_right(amount), 0)


def shift_right_arithmetic(x: Value, amount: Value) -> Value:
    if _is_within(x, amount):
        return x.shifted_right(amount, signed=True)
    return x.shifted_right(amount.minimum(bits_of(x.kind) - 1, signed=False), signed=True)


def power(x: Value, y: Value) -> Value:
    """x to the power y, modulo 2^width, by the lowest six bits of y.

    Those are all that matter to XLA (ElementalIrEmitter's integer power), where larger powers mean little. An exponent
    with the highest bit set is negative, of unsigned types also: then 1 and -1 keep their powers, all else gives 0.
    """
    known = known_integer(y)
    if known is not None and known > 0:
        return _known_power(x, known & ((1 << _POWER_BITS) - 1))
    result, factor = x.like(1), x
    for bit in range(_POWER_BITS):
        result = (y & (1 << bit)).differs(0).where(result * factor, result)
        if bit < _POWER_BITS - 1:
            factor = factor * factor
    unit = x.equals(1) | x.equals(-1)
    return (y >= 0).where(result, unit.where(((y & 1).differs(0)).where(x, 1), 0))


def _known_power(x: Value, exponent: int) -> Value:
    result: Value | None = None
    factor = x
    while exponent:
        if exponent & 1:
            result = factor if result is None else result * factor
        exponent >>= 1
        factor = factor * factor if exponent else factor
    return x.like(1) if result is None else result
