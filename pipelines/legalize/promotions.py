"""``legalize-promotions``: reductions that compute in a wider type than their operands' convert the operands first.

Before::

    %r = "stablehlo.reduce"(%x, %zero) ({... add : tensor<i32>}) : (tensor<4xi8>, tensor<i32>) -> tensor<i32>

After::

    %w = stablehlo.convert %x : (tensor<4xi8>) -> tensor<4xi32>
    %r = "stablehlo.reduce"(%w, %zero) ({... add : tensor<i32>}) : (tensor<4xi32>, tensor<i32>) -> tensor<i32>

IREE 3.13 takes one element type alone, as later passes do. Source: StableHLO spec "reduce", "reduce_window", "scatter",
"all_reduce", "reduce_scatter" (``is_promotable``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.emission import create
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import promoted_operands
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


@pattern(
    "stablehlo.reduce",
    "stablehlo.reduce_window",
    "stablehlo.scatter",
    "stablehlo.all_reduce",
    "stablehlo.reduce_scatter",
)
def in_one_type(op: ir.Operation) -> Replacement:
    """Convert the operands to the types of the results."""
    promoted = promoted_operands(op)
    if not promoted:
        return NoMatch("one type")
    operands = [Value(operand) for operand in op.operands]
    for number, element in promoted.items():
        operands[number] = ops.convert_element_type(operands[number], str(element))
    attributes = {name: op.attributes[name] for name in op.attributes}
    made = create(op.name, operands, [result.type for result in op.results], 1, **attributes)
    op.regions[0].blocks[0].append_to(made.regions[0])
    return [Value(result) for result in made.results]


@register
@dataclass(frozen=True)
class LegalizePromotions(PatternPass):
    """Convert the operands of reductions to the element types in which these compute."""

    name: ClassVar[str] = "legalize-promotions"
    patterns: ClassVar[tuple[Pattern, ...]] = in_one_type
