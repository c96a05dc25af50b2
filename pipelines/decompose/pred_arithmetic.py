"""``decompose-pred-arithmetic``: sums and products of booleans as logic.

Before::

    %s = stablehlo.add %a, %b : tensor<4xi1>

After::

    %s = stablehlo.or %a, %b : tensor<4xi1>

IREE computes the sum in one bit, where true + true is false; XLA's is the logical or. Reducers are covered alike,
for the operation is in their region. Source: StableHLO spec "add", "multiply", "maximum", "minimum".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

_LOGIC = {
    "stablehlo.add": "stablehlo.or",
    "stablehlo.maximum": "stablehlo.or",
    "stablehlo.multiply": "stablehlo.and",
    "stablehlo.minimum": "stablehlo.and",
}


@pattern(*_LOGIC)
def as_logic(op: ir.Operation) -> Replacement:
    """add, maximum -> or; multiply, minimum -> and."""
    lhs, rhs = map(Value, op.operands)
    if lhs.element_type.name != "pred":
        return NoMatch("not a boolean")
    return emit(_LOGIC[op.name], [lhs, rhs], lhs.type)


@register
@dataclass(frozen=True)
class DecomposePredArithmetic(PatternPass):
    """Replace arithmetic on booleans by logic."""

    name: ClassVar[str] = "decompose-pred-arithmetic"
    patterns: ClassVar[tuple[Pattern, ...]] = as_logic
