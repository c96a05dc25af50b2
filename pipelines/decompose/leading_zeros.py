"""``decompose-leading-zeros``: the leading zeros of integers of 8, 16 and 64 bits by those of 32 bits.

Before::

    %n = stablehlo.count_leading_zeros %x : tensor<4xi64>

After: those of the upper 32 bits, or 32 more than those of the lower ones where the upper ones are all zero. Shorter
integers are widened by zeros, which are not counted.

SPIR-V's extended instruction for the highest bit takes 32 bits, and IREE 3.13 writes none for others.
Source: GLSL.std.450, FindUMsb.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

_WIDTH = 32


def leading_zeros(x: Value) -> Value:
    """Zero bits above the highest one bit of an integer of 8, 16 or 64 bits; its width for 0."""
    width = x.element_type.bits
    bits = ops.bitcast_convert_type(x, f"u{width}")
    low = ops.clz(bits.astype("u32"))
    if width < _WIDTH:
        return (low - (_WIDTH - width)).astype(x.element_type.name)
    high = (bits >> _WIDTH).astype("u32")
    return ops.select(high.eq(0), low + _WIDTH, ops.clz(high)).astype(x.element_type.name)


@pattern("stablehlo.count_leading_zeros")
def by_32_bits(op: ir.Operation) -> Replacement:
    """count_leading_zeros of 8, 16 and 64 bits -> of 32; any shape."""
    x = Value(op.operands[0])
    if x.element_type.bits not in (8, 16, 64):
        return NoMatch("not of 8, 16 or 64 bits")
    return leading_zeros(x)


@register
@dataclass(frozen=True)
class DecomposeLeadingZeros(PatternPass):
    """Count the leading zeros of integers of 8, 16 and 64 bits in 32."""

    name: ClassVar[str] = "decompose-leading-zeros"
    patterns: ClassVar[tuple[Pattern, ...]] = by_32_bits
