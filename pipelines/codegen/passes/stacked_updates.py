"""``legalize-stacked-updates``: a changed part of a stack is changed in the stack that a loop makes, and read there.

Before, in a loop's body, as ``scan`` over layers writes it whose caches go in and out::

    %y = stablehlo.dynamic_update_slice %x, %k, %0, %t : (tensor<128x64xf32>, tensor<1x64xf32>, …)
    %b = stablehlo.broadcast_in_dim %y, dims = [1, 2] : … -> tensor<1x128x64xf32>
    %s = stablehlo.dynamic_update_slice %stack, %b, %i, %0, %0 : (tensor<6x128x64xf32>, …)

After::

    %whole = stablehlo.dynamic_update_slice %stack, %x1, %i, %0, %0       // %x1 is %x as one of a stack
    %s = stablehlo.dynamic_update_slice %whole, %k1, %i, %0, %t
    %y = stablehlo.dynamic_slice %s, %i, %0, %0, sizes = [1, 128, 64]     // for other readers

A part of the stack itself is changed where it is, without the first of both updates. Updates are made in place, and
algorithms read a part of an array where it is: what was copied twice, to be changed and to be stacked, is copied once.
Source: StableHLO spec "dynamic_update_slice", "dynamic_slice".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import SSAValue, ir
from hloforge.dialect.operations import defining_op, integers, stands_in
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.framework.facts import NORMALIZED, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

_UPDATE = "stablehlo.dynamic_update_slice"
_BROADCAST, _RESHAPE = "stablehlo.broadcast_in_dim", "stablehlo.reshape"


@pattern(_UPDATE)
def in_the_stack(op: ir.Operation) -> Replacement:
    """Change the part of the stack that an array will be."""
    if not is_static(op) or not stands_in(op, "stablehlo.while"):
        return NoMatch("not in a loop")
    stacking = next(filter(None, (_stacking(op.results[0], use.owner.operation) for use in op.results[0].uses)), None)
    if stacking is None:
        return NoMatch("becomes no part of a stack")
    stack, _, *starts = stacking.operands
    if not all(_is_before(value, op) for value in (stack, *starts)):
        return NoMatch("the stack's place is computed later")
    is_there = _is_part(op.operands[0], stack, starts)
    if not is_there and not _is_own(stack):
        return NoMatch("the stack has other readers")
    x, change, *inner = map(Value, op.operands)
    outer = [Value(start) for start in starts]
    if len({start.element_type for start in (*outer, *inner)}) > 1:
        return NoMatch("places of several types")
    more = Value(stack).rank - x.rank
    whole = Value(stack) if is_there else ops.dynamic_update_slice(Value(stack), _one(x, more), outer)
    for number, operand in enumerate((whole, _one(change, more), *outer[:more], *inner)):
        stacking.operands[number] = operand.ir
    stacking.move_before(op)
    return ops.dynamic_slice(Value(stacking.results[0]), outer, [*[1] * more, *x.dims]).reshape(*x.dims)


def _one(array: Value, more: int) -> Value:
    """An array as one of a stack of so many more dimensions."""
    return array.reshape(*[1] * more, *array.dims)


def _stacking(result: SSAValue, shaped: ir.Operation) -> ir.Operation | None:
    """The update that makes an array, as it is, a part of a stack along first dimensions."""
    if shaped.name not in (_BROADCAST, _RESHAPE):
        return None
    array, part = Value(result), Value(shaped.results[0])
    more = part.rank - array.rank
    if more < 1 or part.dims != (*[1] * more, *array.dims):
        return None
    if shaped.name == _BROADCAST and integers(shaped, "broadcast_dimensions") != list(range(more, part.rank)):
        return None
    for reader in shaped.results[0].uses:
        update: ir.Operation = reader.owner.operation
        is_stack = update.name == _UPDATE and reader.operand_number == 1
        if is_stack and update.block == shaped.block and Value(update.operands[0]).dims[more:] == array.dims:
            return update
    return None


def _is_part(array: SSAValue, stack: SSAValue, starts: Sequence[SSAValue]) -> bool:
    """Whether an array is the part of the stack whose place it is to take."""
    shaped = defining_op(array, _RESHAPE)
    part = shaped and defining_op(shaped.operands[0], "stablehlo.dynamic_slice")
    return part is not None and list(part.operands) == [stack, *starts]


def _is_own(stack: SSAValue) -> bool:
    """Whether a stack is a carry that updates alone read, and their result the carry's next value."""
    if not isinstance(stack, ir.BlockArgument):
        return False
    value = stack
    while True:
        uses = list(value.uses)
        if len(uses) != 1:
            return False
        reader, number = uses[0].owner.operation, uses[0].operand_number
        if reader.name == "stablehlo.return":
            return value is not stack and number == stack.arg_number
        if reader.name != _UPDATE or number != 0:
            return False
        value = reader.results[0]


def _is_before(value: SSAValue, op: ir.Operation) -> bool:
    """Whether a value is known where an operation stands."""
    made = defining_op(value)
    if made is None or made.block != op.block:
        return True
    return made.is_before_in_block(op)


@register
@dataclass(frozen=True)
class LegalizeStackedUpdates(PatternPass):
    """Arrays that are changed and stacked are changed in the stack."""

    name: ClassVar[str] = "legalize-stacked-updates"
    requires: ClassVar[Facts] = NORMALIZED
    patterns: ClassVar[tuple[Pattern, ...]] = in_the_stack
