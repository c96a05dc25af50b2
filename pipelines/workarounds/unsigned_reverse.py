"""``legalize-unsigned-reverse``: reversals of unsigned integers as reversals of signed ones.

Before::

    %r = stablehlo.reverse %x, dims = [0] : tensor<4xui8>

After::

    %s = stablehlo.bitcast_convert %x : (tensor<4xui8>) -> tensor<4xi8>
    %t = stablehlo.reverse %s, dims = [0] : tensor<4xi8>
    %r = stablehlo.bitcast_convert %t : (tensor<4xi8>) -> tensor<4xui8>

IREE 3.13 refuses the former, and any reversal along no dimension, which is its operand.
Source: StableHLO spec "reverse".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.emission import emit
from hloforge.dialect.idioms import typed_like
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import integers
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import reverses_unsigned_or_nothing
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


@pattern("stablehlo.reverse")
def as_signed(op: ir.Operation) -> Replacement:
    """bitcast, reverse, bitcast back."""
    if not reverses_unsigned_or_nothing(op):
        return NoMatch("IREE reverses it")
    operand = Value(op.operands[0])
    if not integers(op, "dimensions"):
        return operand
    row = operand.element_type
    signed = ops.bitcast_convert_type(operand, f"s{row.bits}")
    turned = emit(op.name, [signed], typed_like(operand, f"s{row.bits}"), dimensions=op.attributes["dimensions"])
    return ops.bitcast_convert_type(turned, row)


@register
@dataclass(frozen=True)
class LegalizeUnsignedReverse(PatternPass):
    """Reverse unsigned integers as signed ones."""

    name: ClassVar[str] = "legalize-unsigned-reverse"
    patterns: ClassVar[tuple[Pattern, ...]] = as_signed
