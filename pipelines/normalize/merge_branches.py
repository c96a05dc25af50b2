"""``merge-branches``: equal branches of a conditional are one.

Before::

    %r = "stablehlo.case"(%i) ({ A }, { B }, { B }, { B })

After, because an index out of range takes the last branch::

    %r = "stablehlo.case"(%i) ({ A }, { B })

Where equal branches are not the last ones, the index is that of the branch that is left. JAX's programs that choose
among padded sizes have a branch for each step of the choice, and small steps have the same size: half of the branches
of an eigenvalue decomposition by divide and conquer. Code is made for each branch, however often it is taken. Source:
StableHLO spec "if", "case".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import SSAValue, in_context, ir
from hloforge.dialect.operations import defining_op, operations
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.facts import Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.normalize.choose_branches import take

_CONDITIONALS = frozenset({"stablehlo.if", "stablehlo.case"})
_CONSTANT = "stablehlo.constant"


@register
@dataclass(frozen=True)
class MergeBranches(Pass):
    """Leave one of each conditional's equal branches; a conditional of one branch is that branch."""

    name: ClassVar[str] = "merge-branches"
    needs: ClassVar[frozenset[str]] = _CONDITIONALS
    requires: ClassVar[Facts] = frozenset({Fact.ONE_FUNCTION})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            # Inner conditionals first: branches may be equal when theirs are merged.
            for op in operations(module, _CONDITIONALS):
                _merge(op)


def _merge(op: ir.Operation) -> None:
    blocks = [region.blocks[0] for region in op.regions]
    # The number of the first branch that equals each.
    first: list[int] = []
    for number, block in enumerate(blocks):
        equal = (other for other in range(number) if first[other] == other and _are_equal(blocks[other], block))
        first.append(next(equal, number))
    left = [number for number, one in enumerate(first) if number == one]
    if len(left) == 1:
        take(op, blocks[0])
    elif len(left) < len(blocks):
        # An index out of range takes the last branch before and afterwards.
        left.remove(first[-1])
        _keep(op, [*left, first[-1]], first)


def _keep(op: ir.Operation, left: Sequence[int], first: Sequence[int]) -> None:
    """The conditional with some of its branches, given the first that equals each branch."""
    with ir.InsertionPoint(op), op.location:
        chosen = index = Value(op.operands[0])
        for number, one in enumerate(first):
            # Numbers from the last branch's on are out of range or that branch.
            place = left.index(one)
            if place != min(number, len(left) - 1):
                index = ops.select(chosen.eq(number), place, index)
        made = ir.Operation.create(
            op.name,
            results=[result.type for result in op.results],
            operands=[index.ir],
            attributes=dict(op.attributes.items()),
            regions=len(left),
        )
    for number, region in zip(left, made.regions, strict=True):
        op.regions[number].blocks[0].append_to(region)
    for old, new in zip(op.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()


def _are_equal(one: ir.Block, other: ir.Block) -> bool:
    """Whether two blocks compute the same of what is around them."""
    return _Comparison().blocks(one, other)


class _Comparison:
    """What is known of two blocks that are read side by side."""

    def __init__(self) -> None:
        # Values of the other block by those of the one.
        self._others: dict[SSAValue, SSAValue] = {}

    def blocks(self, one: ir.Block, other: ir.Block) -> bool:
        if not self._pair(one.arguments, other.arguments):
            return False
        body, another = one.operations, other.operations
        return len(body) == len(another) and all(
            self._operations(inside.operation, beside.operation) for inside, beside in zip(body, another, strict=True)
        )

    def _pair(self, values: Sequence[SSAValue], others: Sequence[SSAValue]) -> bool:
        """Let values of equal types be the same from here on."""
        if [value.type for value in values] != [value.type for value in others]:
            return False
        self._others.update(zip(values, others, strict=True))
        return True

    def _operations(self, one: ir.Operation, other: ir.Operation) -> bool:
        return (
            one.name == other.name
            and len(one.operands) == len(other.operands)
            and all(map(self._values, one.operands, other.operands))
            and len(one.regions) == len(other.regions)
            and self._pair(one.results, other.results)
            and _mean_the_same(one, other)
            and all(
                len(inside.blocks) == len(beside.blocks) and all(map(self.blocks, inside.blocks, beside.blocks))
                for inside, beside in zip(one.regions, other.regions, strict=True)
            )
        )

    def _values(self, one: SSAValue, other: SSAValue) -> bool:
        if one in self._others:
            return self._others[one] == other
        return one == other or are_equal_constants(one, other)


def _mean_the_same(one: ir.Operation, other: ir.Operation) -> bool:
    """Whether the attributes of two operations of one name and equal types are equal."""
    if one.name == _CONSTANT and "complex" in str(one.results[0].type):
        # The bindings know nothing of such a constant's attribute.
        return _text(one) == _text(other)
    return dict(one.attributes.items()) == dict(other.attributes.items())


def _text(op: ir.Operation) -> str:
    """All that follows an operation's result."""
    return str(op.get_asm(print_generic_op_form=True)).partition(" = ")[2]


def are_equal_constants(one: SSAValue, other: SSAValue) -> bool:
    maker, another = defining_op(one, _CONSTANT), defining_op(other, _CONSTANT)
    return maker is not None and another is not None and one.type == other.type and _mean_the_same(maker, another)
