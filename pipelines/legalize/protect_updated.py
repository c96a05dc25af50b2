"""``protect-updated``: a copy of each array that is read after a part of it was overwritten, or while it is.

Before::

    %u = stablehlo.dynamic_update_slice %v, %part, %i
    return %u, %v

After::

    %true = stablehlo.optimization_barrier (constant true)
    %w = stablehlo.optimization_barrier (stablehlo.select %true, %v, %true as numbers)
    %u = stablehlo.dynamic_update_slice %w, %part, %i
    return %u, %v

IREE 3.13 runs an update in the buffer of its operand, and elides the copy of an operand that is still needed in some
programs: it then reads the updated array for the old one. It also writes a part of an array over another part of the
same one where the two overlap, an element after the other, and reads such a part from the buffer also when an update
in between has written there (the imaginary row behind the real one). Both copies would be made anyway; a choice whose
condition IREE cannot see is one that it does not elide. What a loop updates is copied once before it, if it is read
again. An optimization barrier copies nothing, nor does a reshape: their results are other names of their operands.

IREE also runs operations in another order: what the host waits for comes first (a slice's start, what a loop or a
branch begins with). Where that is computed from the updated array, the update runs ahead of operations that stand
before it and read the old one. And what is read by operations that wait for the host runs late, with these. Both count
as readers behind the update, unless it needs their results itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import in_block, operations
from hloforge.dialect.program import entry_function
from hloforge.dialect.regions import ELEMENTWISE
from hloforge.dialect.values import Value
from hloforge.pipelines.legalize.protect_arguments import may_be_overwritten
from hloforge.pipelines.optimize.below import DISPATCH
from hloforge.pipelines.passes import Pass, register

_UPDATE, _SCATTER, _LOOP = "stablehlo.dynamic_update_slice", "stablehlo.scatter", "stablehlo.while"
_BARRIER = "stablehlo.optimization_barrier"
# Operations whose results are other names of their operands.
_NAMING = frozenset({_BARRIER, "stablehlo.reshape"})
_CONTROL = frozenset(f"stablehlo.{name}" for name in ("case", "if", "while"))
# Operations that the host begins, when it has waited for their operands, and the operands of others that it reads.
_WAITS = _CONTROL | {"stablehlo.custom_call", _BARRIER, DISPATCH}
_STARTS = {"stablehlo.dynamic_slice": 1, _UPDATE: 2}
# Bits of the patterns with which IREE fills arrays.
_WIDEST_FILL = 64
# Operations that move elements.
_VIEWS = frozenset(
    f"stablehlo.{name}"
    for name in ("broadcast_in_dim", "dynamic_slice", "gather", "pad", "reshape", "reverse", "slice", "transpose")
)


@register
@dataclass(frozen=True)
class ProtectUpdated(Pass):
    """Copy arrays before an update in place where something reads what they were."""

    name: ClassVar[str] = "protect-updated"

    def run(self, module: Any) -> None:
        entry = entry_function(module).operation
        block = entry.regions[0].blocks[0]
        with in_context(module):
            found = [(op, number) for op in updates(block) for number in unsafe(op)]
            copied = [(op, number) for op, number in found if _can_copy(Value(op.operands[number]))]
            if copied:
                _copy_all(copied, block)


def _copy_all(found: list[tuple[Any, int]], block: Any) -> None:
    with ir.InsertionPoint.at_block_begin(block):
        flag = constant(True)
        # With conditions of their own, equal copies stay two. Equal barriers would become one, also with that of
        # protect-arguments, hence one of several results.
        count = len(found) + 1
        barrier = ir.Operation.create(
            "stablehlo.optimization_barrier", results=[flag.type] * count, operands=[flag.ir] * count
        )
    for (op, number), condition in zip(found, list(barrier.results)[1:], strict=True):
        with ir.InsertionPoint(op), op.location:
            op.operands[number] = _copy(Value(op.operands[number]), Value(condition)).ir


def _copy(value: Value, condition: Value) -> Value:
    # The other choice must differ, whatever number IREE finds that the array has in all places.
    row = value.element_type
    if row.bits > _WIDEST_FILL:
        other = ops.neg(value)
    elif row.is_complex:
        part = ops.convert_element_type(condition, "f32")
        other = ops.broadcast(ops.complex(part, part), value.dims)
    elif row.name == "bf16":
        # IREE has no conversion to it.
        bits = ops.convert_element_type(condition, "u16")
        other = ops.broadcast(ops.bitcast_convert_type(bits, row), value.dims)
    else:
        other = ops.broadcast(ops.convert_element_type(condition, row), value.dims)
    copied = ops.select(condition, value, other)
    # Without the barrier, IREE copies while it updates.
    return emit("stablehlo.optimization_barrier", [copied], copied.type)


def updates(block: Any) -> Iterator[Any]:
    """The updates of a block, its loops, and the updates of the loops and branches in it."""
    for op in block.operations:
        if op.operation.name in (_UPDATE, _SCATTER, _LOOP):
            yield op.operation
        if op.operation.name in _CONTROL:
            for region in op.operation.regions:
                for inner in region.blocks:
                    yield from updates(inner)


def overwritten(op: Any) -> list[int]:
    """The operands in whose place the results of an update or a loop may lie."""
    if op.name == _LOOP:
        arguments = op.regions[1].blocks[0].arguments
        return [number for number, argument in enumerate(arguments) if may_be_overwritten(argument)]
    return [0] if op.name == _UPDATE else list(range(len(op.results)))


def unsafe(op: Any) -> Iterator[int]:
    """The operands that need copies: arrays that are overwritten, and what is written into them."""
    arrays = overwritten(op)
    yield from (number for number in arrays if _is_read_after(op.operands[number], op, number))
    if op.name != _LOOP:
        # A scatter has indices between its arrays and its updates, a slice's update has starts behind it.
        parts = [1] if op.name == _UPDATE else range(len(arrays), len(op.operands))
        earlier = [array for number in arrays for array in _in_place_of(op.operands[number])]
        yield from (n for n in parts if any(_reads(op.operands[n], array, op) for array in earlier))


def _in_place_of(array: Any) -> Iterator[Any]:
    """An array, and those in whose buffers updates have made it: what a part was read from may lie there."""
    while not isinstance(array.owner, ir.Block) and array.owner.operation.name in _NAMING | {_UPDATE, _SCATTER}:
        yield array
        array = _counterpart(array)
    yield array


def _counterpart(result: Any) -> Any:
    """The operand in whose place a result is."""
    op = result.owner.operation
    return op.operands[list(op.results).index(result)]


def _is_of_barrier(value: Any) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.operation.name == _BARRIER


def names_of(value: Any) -> list[Any]:
    """The values that are one buffer with a value, for barriers and reshapes copy nothing; the first comes first."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in _NAMING:
        value = _counterpart(value)
    names = [value]
    for name in names:
        passed = (use for use in name.uses if use.owner.operation.name in _NAMING)
        names += [use.owner.operation.results[use.operand_number] for use in passed]
    return names


def _is_read_after(value: Any, op: Any, number: int) -> bool:
    """Whether a value is read by or behind an operation other than as its operand of this number."""
    names = names_of(value)
    block = names[0].owner if isinstance(names[0].owner, ir.Block) else names[0].owner.operation.block
    if block != op.block:
        # A loop may run again, and a branch ends before what follows it.
        return True
    others = (use for name in names for use in name.uses if (use.owner.operation, use.operand_number) != (op, number))
    readers = [in_block(use.owner.operation, block) for use in others]
    if op.name == _LOOP:
        return any(not reader.is_before_in_block(op) for reader in readers)
    if any(op.is_before_in_block(reader) for reader in readers):
        return True
    apart = [reader for reader in readers if not needs(op, reader)]
    return bool(apart) and (is_waited_for(op) or any(_may_run_late(reader, value, op) for reader in apart))


def _may_run_late(reader: Any, value: Any, op: Any) -> bool:
    """Whether IREE may run a reader of an array behind an update that stands after it: where the host waits in between.

    It runs operations as late as their users allow, and an update perhaps as soon as its operands are there. An update
    of the same array gets a copy, which a barrier of its own reads.
    """
    if reader.name in (_UPDATE, _SCATTER) and value in reader.operands:
        return True
    places, needed = _waits(reader.block)
    before = needed.get(op, -1)
    pending, seen = [reader], set()
    while pending:
        current = pending.pop()
        if current in places:
            if any(before < place < places[current] for place in places.values()):
                return True
        elif needed.get(current, -1) > before:
            return True
        elif current not in seen:
            seen.add(current)
            uses = (use for result in current.results for use in result.uses)
            pending += (in_block(use.owner.operation, reader.block) for use in uses)
    return False


def _waits(block: Any) -> tuple[dict[Any, int], dict[Any, int]]:
    """The places of a block's operations that the host waits for, and the last of these that each other one needs."""
    places: dict[Any, int] = {}
    needed: dict[Any, int] = {}
    for place, op in enumerate(op.operation for op in block.operations):
        owners = [value.owner.operation for value in op.operands if not isinstance(value.owner, ir.Block)]
        needed[op] = max((places.get(owner, needed.get(owner, -1)) for owner in owners), default=-1)
        if op.name in _WAITS and not _is_constant(op):
            places[op] = place
    return places, needed


def _is_constant(op: Any) -> bool:
    """Whether an operation has constants alone for operands."""
    owners = [value.owner for value in op.operands]
    return all(not isinstance(owner, ir.Block) and owner.operation.name == "stablehlo.constant" for owner in owners)


def is_waited_for(op: Any) -> bool:
    """Whether the host waits for something that is computed from the results of an operation, in its block."""
    pending, seen = list(op.results), set()
    while pending:
        for use in pending.pop().uses:
            user = in_block(use.owner.operation, op.block)
            if _is_wait(user, use):
                return True
            if user not in seen:
                seen.add(user)
                pending += user.results
    return False


def waited_for(block: Any) -> set[Any]:
    """The operations of a block of which ``is_waited_for`` holds, found in one pass."""
    found: set[Any] = set()
    for op in reversed([op.operation for op in block.operations]):
        uses = [(in_block(use.owner.operation, block), use) for result in op.results for use in result.uses]
        if any(_is_wait(user, use) or user in found for user, use in uses):
            found.add(op)
    return found


def _is_wait(user: Any, use: Any) -> bool:
    """Whether the host waits for a use, which stands in the operation ``user`` or is its own."""
    starts = _STARTS.get(user.name)
    return user.name in _WAITS or (starts is not None and use.operand_number >= starts)


def needs(op: Any, other: Any) -> bool:
    """Whether an operation computes with results of another one of its block."""
    pending, seen = [op], set()
    while pending:
        current = pending.pop()
        if current == other:
            return True
        if current in seen or not other.is_before_in_block(current):
            continue
        seen.add(current)
        operands = (value for inner in (current, *operations(current)) for value in inner.operands)
        owners = (value.owner.operation for value in operands if not isinstance(value.owner, ir.Block))
        pending += (owner for owner in owners if owner.block == op.block)
    return False


def _reads(value: Any, array: Any, update: Any) -> bool:
    """Whether a value is made of parts of an array other than the one that is overwritten, element by element."""
    pending, seen = [value], set()
    while pending:
        current = pending.pop()
        if current == array:
            return True
        if current in seen or isinstance(current.owner, ir.Block):
            continue
        seen.add(current)
        op = current.owner.operation
        if op.name == _BARRIER and not _is_copy(_counterpart(current)):
            pending.append(_counterpart(current))
        elif (op.name in _VIEWS or op.name in ELEMENTWISE) and not _is_the_same_part(op, array, update):
            pending += op.operands
    return False


def _is_copy(value: Any) -> bool:
    """Whether a value is a choice that `_copy` has made."""
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "stablehlo.select":
        return False
    return _is_of_barrier(value.owner.operation.operands[0])


def _is_the_same_part(op: Any, array: Any, update: Any) -> bool:
    """Whether an operation takes what the update overwrites."""
    return bool(
        update.name == _UPDATE
        and op.name == "stablehlo.dynamic_slice"
        and op.operands[0] == array
        and list(op.operands)[1:] == list(update.operands)[2:]
        and op.results[0].type == update.operands[1].type
    )


def _can_copy(value: Value) -> bool:
    """Whether the other choice can be made."""
    return bool(value.shape.is_static)
