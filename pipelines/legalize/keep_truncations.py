"""``keep-truncations``: ceil and floor of subnormal numbers where both make up a truncation.

Before::

    %p = stablehlo.compare GE, %x, %zero
    %f = stablehlo.floor %x : tensor<4xf32>         // and has other readers
    %c = stablehlo.ceil %x : tensor<4xf32>
    %t = stablehlo.select %p, %f, %c

After::

    %g = stablehlo.floor %x {hloforge.normal}
    %c = stablehlo.ceil %x {hloforge.normal}
    %t = stablehlo.select %p, %g, %c                // other readers of %f keep it

The floor of -1e-40 is -1. A comparison reads that number as zero, because processors run with subnormals flushed, and
chooses the floor: so a truncation has a floor and a ceil of its own, which flush too. The mark says so to whoever
rounds subnormal numbers away from zero, whatever became of the comparison until then. Source: XLA's CPU client.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.emission import emit
from hloforge.dialect.marks import NORMAL
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import may_flush_a_subnormal
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import REWRITTEN, NoMatch, Pattern, Replacement, pattern


@pattern("stablehlo.ceil", "stablehlo.floor")
def of_its_own(op: ir.Operation) -> Replacement:
    """A rounding for the truncations among the readers."""
    if not may_flush_a_subnormal(op):
        return NoMatch("no subnormal number is flushed")
    uses = list(op.results[0].uses)
    truncations = [use for use in uses if _truncates(use.owner.operation, op.operands[0])]
    if not truncations:
        return NoMatch("part of no truncation")
    if len(truncations) == len(uses):
        op.attributes[NORMAL] = ir.UnitAttr.get()
        return REWRITTEN
    own = emit(op.name, [Value(op.operands[0])], op.results[0].type, **{NORMAL: ir.UnitAttr.get()})
    for use in truncations:
        use.owner.operation.operands[use.operand_number] = own.ir
    return REWRITTEN


def _truncates(op: Any, x: Any) -> bool:
    """A selection between ceil and floor of x by a comparison of x."""
    if op.name != "stablehlo.select":
        return False
    owners = [operand.owner for operand in op.operands]
    if any(isinstance(owner, ir.Block) for owner in owners):
        return False
    condition, *branches = owners
    if {branch.name for branch in branches} != {"stablehlo.ceil", "stablehlo.floor"}:
        return False
    return condition.name == "stablehlo.compare" and all(x in list(owner.operands) for owner in (condition, *branches))


@register
@dataclass(frozen=True)
class KeepTruncations(PatternPass):
    """Give truncations a ceil and a floor of their own, which flush subnormal numbers as their comparison does."""

    name: ClassVar[str] = "keep-truncations"
    patterns: ClassVar[tuple[Pattern, ...]] = of_its_own
