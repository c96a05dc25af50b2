"""``decompose-unsigned-division``: quotients and remainders of unsigned integers by signed divisions.

Before::

    %q = stablehlo.divide %x, %y : tensor<4xui32>

After: twice the quotient of x/2 is the right one or one less; a divisor of 2^31 and more goes once or not at all.

IREE 3.13 has no SPIR-V for unsigned divisions of single numbers that are in vectors of one element, as in small
arrays. It makes such ones of signed divisions as well where it can tell that neither number is negative (x/2 by a
constant), so -x/2 is divided. Source: H. S. Warren, "Hacker's Delight", 9-3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.element_types import Kind
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


def divided(x: Value, y: Value) -> tuple[Value, Value]:
    """Quotient and remainder of unsigned integers; all ones and ``x`` where ``y`` is 0."""
    unsigned, signed = x.element_type.name, f"s{x.element_type.bits}"
    zero, one = full(x, 0), full(x, 1)
    none, large = y.eq(zero), (y >> (x.element_type.bits - 1)).ne(zero)
    divisor = ops.bitcast_convert_type(ops.select(none | large, one, y), signed)
    half = ops.div(ops.neg(ops.bitcast_convert_type(x >> 1, signed)), divisor)
    low = ops.select(large, zero, ops.bitcast_convert_type(ops.neg(half), unsigned) << 1)
    rest = x - low * y
    more = rest >= y
    quotient = ops.select(more, low + one, low)
    remainder = ops.select(more, rest - y, rest)
    return ops.select(none, ~zero, quotient), ops.select(none, x, remainder)


@pattern("stablehlo.divide", "stablehlo.remainder")
def by_signed_division(op: ir.Operation) -> Replacement:
    """divide, remainder of unsigned integers -> signed ones; any shape."""
    x, y = map(Value, op.operands)
    if x.element_type.kind is not Kind.UNSIGNED:
        return NoMatch("not unsigned")
    quotient, remainder = divided(x, y)
    return quotient if op.name == "stablehlo.divide" else remainder


@register
@dataclass(frozen=True)
class DecomposeUnsignedDivision(PatternPass):
    """Replace divisions and remainders of unsigned integers."""

    name: ClassVar[str] = "decompose-unsigned-division"
    patterns: ClassVar[tuple[Pattern, ...]] = by_signed_division
