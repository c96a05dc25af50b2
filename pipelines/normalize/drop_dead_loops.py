"""``drop-dead-loops``: loops of which only arrays are read that they pass on unchanged.

Before::

    %r:2 = stablehlo.while(%i = %n, %a = %x) ... do { ... stablehlo.return %next, %a }
    return %r#1

After, whether the loop ends or not, as in XLA::

    return %x

A carry is unchanged too where the body gives back what it began with, the same constant, what an inner loop passes
on, or another unchanged carry that began the same; also after an integer 0 was added. Loops that write to the host,
take from it or draw random numbers stay; collectives go, because each device drops the same loop. Source: XLA
"WhileLoopSimplifier", "HloDCE".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.mlir import SSAValue, in_context, ir
from hloforge.dialect.operations import defining_op, operations, splat
from hloforge.dialect.traits import COLLECTIVES, EFFECTS
from hloforge.pipelines.framework.facts import Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.normalize.merge_branches import are_equal_constants

_WHILE = "stablehlo.while"
_ADD = "stablehlo.add"
_CONSTANT = "stablehlo.constant"
_DIALECTS = ("stablehlo.", "chlo.")
_HAS_SIDE_EFFECT = "has_side_effect"


@register
@dataclass(frozen=True)
class DropDeadLoops(Pass):
    """Replace what such loops pass on by what they began with, and remove them."""

    name: ClassVar[str] = "drop-dead-loops"
    needs: ClassVar[frozenset[str]] = frozenset({_WHILE})
    requires: ClassVar[Facts] = frozenset({Fact.NO_TUPLES, Fact.ONE_FUNCTION})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            _Loops(operations(module, {_WHILE})).drop()


class _Loops:
    """The loops of a module: inner ones come before outer ones, and what is read before who reads it."""

    def __init__(self, loops: Sequence[ir.Operation]) -> None:
        self._loops = loops
        # The carries that are in each turn what they were before the loop.
        self._unchanged = set[tuple[ir.Operation, int]]()
        for loop in loops:
            self._unchanged |= {(loop, number) for number in self._unchanged_of(loop)}

    def drop(self) -> None:
        """The last loop first: it may be the only reader of an earlier one."""
        numbers: dict[Any, int] = {loop: number for number, loop in enumerate(self._loops)}
        outer = [numbers.get(_loop_around(loop)) for loop in self._loops]
        gone = set[int | None]()
        for number in reversed(range(len(self._loops))):
            if outer[number] in gone or self._is_dropped(self._loops[number]):
                gone.add(number)

    def _unchanged_of(self, loop: ir.Operation) -> set[int]:
        """The largest set of carries of which each is given the value of one of them that began the same, plus 0."""
        body = loop.regions[1].blocks[0]
        *_, end = body.operations
        before = [self._origin(operand) for operand in loop.operands]
        # By carry the carries that have to be unchanged for it to be.
        needs = dict[int, set[int]]()
        for number, operand in enumerate(end.operation.operands):
            began, needed = self._began(operand, body, before)
            if began == before[number] or are_equal_constants(began, before[number]):
                needs[number] = needed
        while lost := [number for number, needed in needs.items() if not needed <= needs.keys()]:
            for number in lost:
                del needs[number]
        return set(needs)

    def _began(self, value: SSAValue, body: ir.Block, before: Sequence[SSAValue]) -> tuple[SSAValue, set[int]]:
        """What a value of a body was before the loop, if the carries of these numbers are unchanged."""
        needed = set[int]()

        def known(value: SSAValue) -> SSAValue:
            value = self._origin(value)
            if value.owner != body:
                return value
            needed.add(number := ir.BlockArgument(value).arg_number)
            return before[number]

        if (summed := defining_op(value, _ADD)) is not None:
            one, other = summed.operands
            if _is_zero(known(other)):
                return known(one), needed
            if _is_zero(known(one)):
                return known(other), needed
            needed.clear()
        return known(value), needed

    def _origin(self, value: SSAValue) -> SSAValue:
        """What a value was before the loops that pass it on."""
        while (loop := defining_op(value, _WHILE)) is not None:
            number = ir.OpResult(value).result_number
            if (loop, number) not in self._unchanged:
                break
            value = loop.operands[number]
        return value

    def _is_dropped(self, loop: ir.Operation) -> bool:
        """Remove a loop, if all that is read of it is what it passes on."""
        read = [number for number, result in enumerate(loop.results) if next(iter(result.uses), None) is not None]
        if not all((loop, number) in self._unchanged for number in read) or any(map(_acts, operations(loop))):
            return False
        for number in read:
            loop.results[number].replace_all_uses_with(loop.operands[number])
        loop.erase()
        return True


def _is_zero(value: SSAValue) -> bool:
    """Whether all elements are the integer 0; a float and 0.0 may be another zero than the float."""
    maker = defining_op(value, _CONSTANT)
    if maker is None or not isinstance(ir.ShapedType(value.type).element_type, ir.IntegerType):
        return False
    number = maker.attributes["value"]
    return isinstance(number, ir.DenseElementsAttr) and number.is_splat and not splat(maker)


def _loop_around(op: ir.Operation) -> ir.Operation | None:
    parent = op.parent
    while parent is not None and parent.operation.name != _WHILE:
        parent = parent.operation.parent
    return parent.operation if parent is not None else None


def _acts(op: ir.Operation) -> bool:
    """Whether an operation does more than to compute results."""
    if op.name == "stablehlo.custom_call":
        return _HAS_SIDE_EFFECT in op.attributes and bool(ir.BoolAttr(op.attributes[_HAS_SIDE_EFFECT]).value)
    return not op.name.startswith(_DIALECTS) or op.name in EFFECTS - COLLECTIVES
