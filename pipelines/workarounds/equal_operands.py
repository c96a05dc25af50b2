"""``legalize-equal-operands``: differences of an array and itself, in a form that IREE does not fold.

Before::

    %r = stablehlo.subtract %x, %x : tensor<?xi32>

After::

    %r = stablehlo.xor %x, %x : tensor<?xi32>

IREE 3.13 folds the first into a constant of dynamic shape, which is invalid. Runs after ``cse``, which makes
operands equal. Of subtract, xor, divide, remainder and the comparisons the others come through.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


@pattern("stablehlo.subtract")
def nothing_by_xor(op: ir.Operation) -> Replacement:
    """x - x -> x ^ x, of integers of dynamic shape."""
    lhs, rhs = op.operands
    type_ = op.results[0].type
    if lhs != rhs or type_.has_static_shape or not isinstance(type_.element_type, ir.IntegerType):
        return NoMatch("IREE does not fold it")
    return Value(lhs) ^ Value(rhs)


@register
@dataclass(frozen=True)
class LegalizeEqualOperands(PatternPass):
    """Prevent IREE from folding ``x - x`` of dynamic shape."""

    name: ClassVar[str] = "legalize-equal-operands"
    patterns: ClassVar[tuple[Pattern, ...]] = nothing_by_xor
