"""``legalize-stable-sort``: a stable sort as one whose comparator has no ties.

Before::

    %0 = "stablehlo.sort"(%keys) <{dimension = 0, is_stable = true}> ({ ^bb0(%a, %b): return %a < %b })

After::

    %0:2 = "stablehlo.sort"(%keys, iota) <{dimension = 0, is_stable = false}> ({
      ^bb0(%a, %b, %i, %j): return %a < %b or (not %b < %a and %i < %j) })

IREE ignores ``is_stable``. An operand that is an iota along the dimension already, as in an argsort, breaks the ties
itself; a sort of one integer array has ties between equal elements only, which nobody can tell apart.
Source: XLA "Sort".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.mlir import ir
from hloforge.dialect.ops.reduction import fill_region
from hloforge.dialect.ops.region import inline_region
from hloforge.dialect.ops.shape import iota
from hloforge.dialect.values import Value
from hloforge.pipelines.forms import is_stable_sort
from hloforge.pipelines.passes import Pass, register
from hloforge.pipelines.patterns import NoMatch, Replacement, apply_patterns, pattern


@pattern("stablehlo.sort")
def with_tie_breaker(op: Any) -> Replacement:
    """Add the element's position as the last key."""
    if not is_stable_sort(op):
        return NoMatch("not stable")
    operands = [Value(operand) for operand in op.operands]
    if not operands[0].shape.is_static:
        return NoMatch("dynamic size")
    if len(operands) == 1 and operands[0].element_type.is_integer:
        return _sort(op, operands, None)
    dimension = op.attributes["dimension"].value
    breaker = _iota_operand(operands, dimension)
    if breaker is None:
        breaker = len(operands)
        operands.append(iota("s32", operands[0].dims, dimension))
    return _sort(op, operands, breaker)


def _sort(op: Any, operands: list[Value], breaker: int | None) -> list[Value]:
    """The sort of ``operands`` by the comparator of ``op``, ties broken by operand number ``breaker``."""
    created = ir.Operation.create(
        op.name,
        results=[operand.type for operand in operands],
        operands=[operand.ir for operand in operands],
        attributes={"dimension": op.attributes["dimension"], "is_stable": ir.BoolAttr.get(False)},
        regions=1,
    )
    count = 2 * len(op.operands)

    def comparator(*arguments: Value) -> Value:
        (before,) = inline_region(op.regions[0], arguments[:count])
        if breaker is None:
            return before
        swapped = [arguments[number ^ 1] for number in range(count)]
        (after,) = inline_region(op.regions[0], swapped)
        return before | (~after & (arguments[2 * breaker] < arguments[2 * breaker + 1]))

    scalars = [ir.RankedTensorType.get([], operand.type.element_type) for operand in operands for _ in range(2)]
    fill_region(created.regions[0], scalars, comparator)
    return [Value(result) for result in list(created.results)[: len(op.results)]]


def _iota_operand(operands: list[Value], dimension: int) -> int | None:
    """The number of an operand that counts along the sorted dimension."""
    for number, operand in enumerate(operands):
        owner = operand.ir.owner
        if isinstance(owner, ir.Block) or owner.name != "stablehlo.iota":
            continue
        if owner.attributes["iota_dimension"].value == dimension and operand.element_type.bits >= 32:
            return number
    return None


@register
@dataclass(frozen=True)
class LegalizeStableSort(Pass):
    """Give every stable sort a comparator without ties; static shapes only."""

    name: ClassVar[str] = "legalize-stable-sort"

    def run(self, module: Any) -> None:
        apply_patterns(module, with_tie_breaker)
