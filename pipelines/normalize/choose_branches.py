"""``choose-branches``: the branch of a conditional whose choice is a constant.

Before::

    %no = stablehlo.constant dense<false> : tensor<i1>
    %r = "stablehlo.if"(%no) ({ stablehlo.return %x }, { stablehlo.return %y }) : (tensor<i1>) -> tensor<4xf32>

After, ``%r`` is ``%y``.

TensorFlow chooses by sizes that it knows and keeps the other branch, whose results may have other sizes: XLA then calls
the result one of bounded size, which later passes would resolve in each branch alone. Source: StableHLO spec "if",
"case": an index out of range takes the last branch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.dense_values import array_of
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.facts import Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register

_CONDITIONALS = frozenset({"stablehlo.if", "stablehlo.case"})


@register
@dataclass(frozen=True)
class ChooseBranches(Pass):
    """Replace conditionals of constant predicate by the branch that is taken."""

    name: ClassVar[str] = "choose-branches"
    needs: ClassVar[frozenset[str]] = _CONDITIONALS
    requires: ClassVar[Facts] = frozenset({Fact.ONE_FUNCTION})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            # Inner conditionals first: a branch moves with what is left of it.
            for op in operations(module, _CONDITIONALS):
                number = _chosen(op)
                if number is not None:
                    take(op, op.regions[number].blocks[0])


def _chosen(op: ir.Operation) -> int | None:
    """The number of the branch that a constant chooses."""
    owner = op.operands[0].owner
    if isinstance(owner, ir.Block) or owner.operation.name != "stablehlo.constant":
        return None
    number, last = int(array_of(owner.operation.attributes["value"])), len(op.regions) - 1
    if op.name == "stablehlo.if":
        return 0 if number else 1
    return number if 0 <= number < last else last


def take(op: ir.Operation, block: ir.Block) -> None:
    """Move a branch before its conditional; it stays where its results are known better than those."""
    *body, terminator = [entry.operation for entry in block.operations]
    values = list(terminator.operands)
    if any(value.type != result.type for value, result in zip(values, op.results, strict=True)):
        return
    for entry in body:
        entry.move_before(op)
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    terminator.erase()
    op.erase()
