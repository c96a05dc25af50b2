"""``legalize-single-turns``: a loop that is known to run once is its body, one that never runs what it begins with.

Before::

    %zero = stablehlo.constant dense<0> : tensor<i32>
    %r:2 = stablehlo.while(%i = %zero, %a = %x) cond { %i < 1 } do { ... return %i + 1, %f }

After, ``%r#1`` is ``%f``, computed of ``%x``.

Programs for any number of steps, layers or blocks are called with one. A loop's carries have memory, to which their
first values are copied, and what is before and after a loop is computed apart from its body.
Source: XLA "WhileLoopSimplifier".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.mlir import SSAValue, in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.traits import EFFECTS
from hloforge.pipelines.evaluation.known import KnownValues
from hloforge.pipelines.evaluation.plan import Array
from hloforge.pipelines.framework.facts import NORMALIZED, Facts
from hloforge.pipelines.framework.passes import Pass, register

_WHILE = "stablehlo.while"


@register
@dataclass(frozen=True)
class LegalizeSingleTurns(Pass):
    """Loops of one turn or none, by the numbers that their conditions depend on, are no loops."""

    name: ClassVar[str] = "legalize-single-turns"
    needs: ClassVar[frozenset[str]] = frozenset({_WHILE})
    requires: ClassVar[Facts] = NORMALIZED

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            # Inner loops first: a body moves with what is left of them.
            for op in operations(module, {_WHILE}):
                _simplify(op)


def _simplify(op: ir.Operation) -> None:
    condition, body = (region.blocks[0] for region in op.regions)
    # What a condition does besides would be lost.
    if any(
        op.name in EFFECTS for entry in condition.operations for op in (entry.operation, *operations(entry.operation))
    ):
        return
    *inside, terminator = [entry.operation for entry in body.operations]
    given = list(terminator.operands)
    if any(value.type != result.type for value, result in zip((*op.operands, *given), 2 * [*op.results], strict=True)):
        return
    begun = KnownValues(1)
    first = [begun.of(operand) for operand in op.operands]
    runs = _holds(condition, first)
    if runs is False:
        _replace(op, list(op.operands))
        return
    if not runs:
        return
    known = _with(body, first)
    if _holds(condition, [_value(known, value) for value in given]) is not False:
        return
    for entry in inside:
        entry.move_before(op)
    for argument, operand in zip(body.arguments, op.operands, strict=True):
        argument.replace_all_uses_with(operand)
    _replace(op, list(terminator.operands))


def _replace(op: ir.Operation, values: Sequence[SSAValue]) -> None:
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.erase()


def _with(block: ir.Block, values: Sequence[Array | None]) -> KnownValues:
    known = KnownValues(1)
    for argument, value in zip(block.arguments, values, strict=True):
        if value is not None:
            known.add(argument, value)
    return known


def _holds(condition: ir.Block, values: Sequence[Array | None]) -> bool | None:
    """Whether a loop goes on with some carries; None if that is not known."""
    *_, terminator = condition.operations
    (flag,) = terminator.operation.operands
    found = _value(_with(condition, values), flag)
    return None if found is None else bool(found)


def _value(known: KnownValues, value: Any) -> Array | None:
    """What a scalar is, where the operations that make it say so."""
    found = known.of(value)
    if found is not None or isinstance(value.owner, ir.Block):
        return found
    op = value.owner.operation
    if len(op.results) != 1 or op.regions or any(_value(known, operand) is None for operand in op.operands):
        return None
    found = known.result(op, list(op.operands), are_stated=True)
    if found is not None:
        known.add(value, found)
    return found
