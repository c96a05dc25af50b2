"""``legalize-sign-conversions``: conversions between signed and unsigned integers as a widening and a bitcast.

Before::

    %r = stablehlo.convert %x : (tensor<i32>) -> tensor<ui64>

After::

    %w = stablehlo.convert %x : (tensor<i32>) -> tensor<i64>
    %r = stablehlo.bitcast_convert %w : (tensor<i64>) -> tensor<ui64>

IREE 3.13 takes integer scalars for shape computations, folds a conversion that changes only the sign, and then builds
``tensor.from_elements`` of mixed types, which its verifier refuses. Both forms keep the low bits of the value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.element_types import Kind
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


@pattern("stablehlo.convert")
def by_bitcast(op: ir.Operation) -> Replacement:
    """convert between signs -> convert to the target's width, then bitcast."""
    operand = Value(op.operands[0])
    source, target = operand.element_type, Value(op.results[0]).element_type
    if not (source.is_integer and target.is_integer) or source.kind is target.kind:
        return NoMatch("the sign stays")
    prefix = "u" if source.kind is Kind.UNSIGNED else "s"
    return ops.bitcast_convert_type(ops.convert_element_type(operand, f"{prefix}{target.bits}"), target)


@register
@dataclass(frozen=True)
class LegalizeSignConversions(PatternPass):
    """Replace every integer conversion that changes the sign."""

    name: ClassVar[str] = "legalize-sign-conversions"
    patterns: ClassVar[tuple[Pattern, ...]] = by_bitcast
