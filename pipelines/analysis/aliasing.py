"""Alias analysis: which values may share memory, what overwrites it, and who reads it when.

Two values are *names* of one array where IREE may make the one of the other without moving an element: by reshapes,
barriers and casts, by moves that keep all elements in their order (along dimensions of size 1, by nothing padded or
sliced), by taking a part that was padded or joined before, by arithmetic that folds (``x + 0``), and by branches and
loops that hand arrays on. The sets are larger than what IREE 3.13 shares, never smaller as far as known: a name too
many costs a copy, one too few a wrong number, which ``runtime/compile/in_place_audit.py`` finds when IREE has decided.

A *writer* is an operation that IREE runs in the buffer of an operand. It may do so if every reader of a name is done:

- readers whose results the writer needs are;
- others that are before it are, if IREE keeps the order. It runs first what the host waits for (a slice's start,
  what a loop or a branch begins with), so that a writer which something waits for may run ahead of them, and what is
  read by operations that wait for the host may run behind it.

Groups of operations that may run at once (``ScheduleConcurrency``) do not keep the order either: an operation alone
that reads an array ends up after a group in which an update overwrites it, though it is before the update.
``has_readers_beside_updates`` tells which programs are compiled without groups.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from functools import cached_property
from math import prod
from typing import Any

from hloforge.dialect import traits
from hloforge.dialect.mlir import AnyOp, SSAValue, ir
from hloforge.dialect.operations import defining_op, in_block, is_made_by, operations

UPDATE, SCATTER, LOOP = "stablehlo.dynamic_update_slice", "stablehlo.scatter", "stablehlo.while"
BARRIER, _RETURN = "stablehlo.optimization_barrier", "stablehlo.return"
_BRANCHES = frozenset({"stablehlo.case", "stablehlo.if"})
_CONTROL = _BRANCHES | {LOOP}
# Operations that run in the buffers of all their operands.
_WHOLE = frozenset({"stablehlo.sort", "stablehlo.fft"})
# Operations that the host begins, when it has waited for their operands, and the operands of others that it reads.
_WAITS = _CONTROL | {"stablehlo.custom_call", BARRIER}
_STARTS = {"stablehlo.dynamic_slice": 1, UPDATE: 2}

# Operations whose result may be an operand as it is.
_CASTS = frozenset(
    {
        "flow.tensor.bitcast",
        "flow.tensor.reshape",
        "flow.tensor.tie_shape",
        "stablehlo.bitcast_convert",
        "stablehlo.clamp",
        "stablehlo.complex",
        "stablehlo.convert",
        "stablehlo.imag",
        "stablehlo.real",
        "stablehlo.select",
        "tensor.cast",
    }
)
_NAMES = traits.NAMES | {"util.optimization_barrier"}
# Of so few values it is soon found what they are made of.
_FEW_VALUES = 100
# Operations whose results lie in the buffers of their first operands; the same bits of another type do, too.
_KEEPING = _NAMES | {UPDATE, SCATTER, "flow.tensor.bitcast", "stablehlo.bitcast_convert"}
# Operations that take or join parts, whose results may be names after all: what was padded or joined is sliced again.
_PARTS = frozenset(f"stablehlo.{name}" for name in ("concatenate", "dynamic_slice", "pad", "slice"))
# Operations that keep the order of elements if they have no more and no less of them.
_SPREADS = frozenset(f"stablehlo.{name}" for name in ("broadcast", "broadcast_in_dim", "reduce"))
# Operations that IREE folds to an operand where the other one is neutral, and those that it folds if both are the same.
_FOLDED_OF_SAME = traits.IDEMPOTENT
_BINARY = """
    add divide multiply power remainder shift_left shift_right_arithmetic shift_right_logical subtract xor
"""
_FOLDED = _FOLDED_OF_SAME | {f"stablehlo.{name}" for name in _BINARY.split()}


# Names


class Names:
    """The names of an array as the operations of one block see it, without those that come from its writer.

    Attributes:
        values: the array and all other names of it in the block and in the regions of its operations.
        is_from_outside: whether a value of another block is a name, which somebody else may read at any time.
    """

    def __init__(self, array: SSAValue, writer: ir.Operation) -> None:
        block = writer.block
        self.values: list[Any] = []
        self.is_from_outside = _block_of(array) != block
        size = _bits(array)
        pending, seen = [array], {array}
        while pending:
            value = pending.pop()
            is_name = _bits(value) == size
            if not _is_inside(value, block):
                self.is_from_outside |= is_name
                continue
            if is_name:
                self.values.append(value)
            # What a block takes and returns concerns the operation that it belongs to.
            taken = () if value.owner == block else _sources(value)
            passing = [use for use in value.uses if not _is_of(use.owner.operation, writer)]
            for near in (*taken, *(name for use in passing for name in _results(use))):
                if near not in seen:
                    seen.add(near)
                    pending.append(near)


def _is_of(op: Any, writer: Any) -> bool:
    """Whether an operation makes the results of a writer, or those of the operation around it."""
    return bool(op == writer or (op.name == _RETURN and (op.block == writer.block or op.parent.operation == writer)))


def is_overwritten(value: SSAValue) -> bool:
    """Whether an operation may run in the buffer of a value, under this name or another one that is made of it."""
    size = _bits(value)
    pending, seen = [value], {value}
    while pending:
        current = pending.pop()
        for use in current.uses:
            if _bits(current) == size and _is_written(use):
                return True
            for name in _results(use):
                if name not in seen:
                    seen.add(name)
                    pending.append(name)
    return False


def _is_written(use: Any) -> bool:
    op, number = use.owner.operation, use.operand_number
    if op.name == "tensor.insert_slice":
        return bool(number == 1)
    return op.name != LOOP and number in _places(op)


def _results(use: Any) -> Iterator[Any]:
    """What may be another name of a value because of one use of it."""
    op, number = use.owner.operation, use.operand_number
    if op.name in _NAMES:
        yield op.results[min(number, len(op.results) - 1)]
    elif op.name == LOOP:
        yield from _carried(op, number)
    elif op.name == _RETURN:
        parent = op.parent.operation
        if parent.name in _BRANCHES:
            yield parent.results[number]
        elif parent.name == LOOP and op.block == parent.regions[1].blocks[0]:
            yield from _carried(parent, number)
    elif _passes_on(op, number):
        yield op.results[0]


def _sources(value: SSAValue) -> Iterator[Any]:
    """What a value may be another name of."""
    if isinstance(value.owner, ir.Block):
        loop = value.owner.owner
        if loop.operation.name == LOOP:
            yield from _handed_on(loop.operation, ir.BlockArgument(value).arg_number)
        return
    op = value.owner.operation
    number = _number(value)
    if op.name in _NAMES:
        yield op.operands[number]
    elif op.name == LOOP:
        yield from _handed_on(op, number)
    elif op.name in _BRANCHES:
        for region in op.regions:
            yield _end(region).operands[number]
    else:
        yield from (operand for place, operand in enumerate(op.operands) if _passes_on(op, place))


def _carried(loop: ir.Operation, number: int) -> Iterator[Any]:
    yield loop.results[number]
    for region in loop.regions:
        yield region.blocks[0].arguments[number]


def _handed_on(loop: Any, number: int) -> Iterator[Any]:
    yield loop.operands[number]
    yield _end(loop.regions[1]).operands[number]


def _passes_on(op: Any, number: int) -> bool:
    """Whether the first result may be the operand as it is, or holds it as a part or is a part of it."""
    if op.name in _CASTS or op.name in _PARTS:
        # What decide-updates copies is another array.
        return (op.name != "stablehlo.dynamic_slice" or number == 0) and not _is_copy(op.results[0])
    if op.name in _SPREADS:
        return number == 0 and _bits(op.operands[0]) == _bits(op.results[0])
    if op.name == "stablehlo.reverse":
        return all(op.operands[0].type.shape[d] == 1 for d in op.attributes["dimensions"])
    if op.name == "stablehlo.transpose":
        sizes = list(op.operands[0].type.shape)
        moved = [d for d in op.attributes["permutation"] if sizes[d] != 1]
        return moved == sorted(moved)
    if op.name not in _FOLDED:
        return False
    other = op.operands[1 - number]
    return _may_be_neutral(other) or (op.name in _FOLDED_OF_SAME and other == op.operands[number])


def _may_be_neutral(value: SSAValue) -> bool:
    """Whether a value is an array of one constant, 0, 1 or -1; any complex constant, which the bindings do not read."""
    op = defining_op(value)
    if op is not None and op.name == "stablehlo.broadcast_in_dim":
        return _may_be_neutral(op.operands[0])
    if op is None or op.name != "stablehlo.constant":
        return False
    if isinstance(value.type.element_type, ir.ComplexType):
        return True
    if not ir.DenseElementsAttr(op.attributes["value"]).is_splat:
        return False
    number = ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
    return getattr(number, "value", None) in (0, 1, -1)


def _bits(value: SSAValue) -> int | None:
    """The size of an array; None if only a call knows it, or for what is no array."""
    type_ = value.type
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        return None
    element, parts = type_.element_type, 1
    if isinstance(element, ir.ComplexType):
        element, parts = element.element_type, 2
    width = getattr(element, "width", None)
    return None if width is None else parts * _count(type_) * int(width)


def _count(type_: ir.RankedTensorType) -> int:
    return prod(int(size) for size in type_.shape)


def _block_of(value: SSAValue) -> ir.Block:
    return value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block


def _is_inside(value: SSAValue, block: ir.Block) -> bool:
    home = _block_of(value)
    return home == block or in_block(home.owner.operation, block) is not None


def _number(result: SSAValue) -> int:
    return int(ir.OpResult(result).result_number)


def _end(region: ir.Region) -> Any:
    return region.blocks[0].operations[-1].operation


# Writers


def writers(block: ir.Block) -> Iterator[Any]:
    """The operations of a block, and of the loops and branches in it, that may run in the buffers of their operands."""
    for op in block.operations:
        if op.operation.name in traits.IN_PLACE:
            yield op.operation
        if op.operation.name in _CONTROL:
            for region in op.operation.regions:
                for inner in region.blocks:
                    yield from writers(inner)


def overwritten(op: ir.Operation) -> list[int]:
    """The operands in whose place the results of a writer may lie."""
    if op.name != LOOP:
        return _places(op)
    arguments = op.regions[1].blocks[0].arguments
    return [number for number, argument in enumerate(arguments) if is_overwritten(argument)]


def _places(op: Any) -> list[int]:
    if op.name == UPDATE:
        return [0]
    return list(range(len(op.results))) if op.name in _WHOLE or op.name == SCATTER else []


class Known:
    """What is asked of a module again and again, found once; the module stays as it is meanwhile.

    Attributes:
        origins: of arrays that updates have made, the first one in whose buffer they may lie.
    """

    def __init__(self) -> None:
        self.origins: dict[Any, Any] = {}
        self._orders: dict[Any, _Order] = {}
        self._made_of: dict[tuple[Any, bool], set[Any]] = {}

    def order(self, block: ir.Block) -> _Order:
        """What the host waits for in a block."""
        found = self._orders.get(block)
        if found is None:
            found = self._orders[block] = _Order(block)
        return found

    def made_of(self, origin: SSAValue, *, by_slices: bool) -> set[Any]:
        """The values that are made of parts of an array, or of what updates make of it, element by element.

        Args:
            by_slices: follow slices with positions that a call computes, too.
        """
        key = (origin, by_slices)
        if key not in self._made_of:
            self._made_of[key] = _made_of(origin, by_slices)
        return self._made_of[key]


def unsafe(op: ir.Operation, known: Known) -> Iterator[int]:
    """The operands of a writer that need copies: arrays that somebody else reads, and what is written into them.

    Args:
        known: nothing at first, and kept for the next writer.
    """
    arrays = overwritten(op)
    yield from (number for number in arrays if _is_read_after(op, number, known))
    if op.name in (UPDATE, SCATTER):
        # A scatter has indices between its arrays and its updates, a slice's update has starts after it.
        parts = [1] if op.name == UPDATE else range(len(arrays), len(op.operands))
        earlier = {_origin(op.operands[number], known.origins) for number in arrays}
        yield from (n for n in parts if _reads(op.operands[n], earlier, op, known))


def _is_read_after(op: Any, number: int, known: Known) -> bool:
    """Whether an operand of a writer is read when it may be overwritten, other than by the writer itself."""
    array = op.operands[number]
    places, names = [op], Names(array, op)
    while names.is_from_outside:
        around = places[-1].parent.operation
        if around.name not in _BRANCHES:
            # A loop may run again.
            return True
        places.append(around)
        names = Names(array, around)
    uses = [use for name in names.values for use in name.uses]
    others = [use.owner.operation for use in uses if (use.owner.operation, use.operand_number) != (op, number)]
    return any(_is_read_beside(place, array, others, known, is_writer=place == op) for place in places)


def _is_read_beside(op: ir.Operation, array: Any, users: list[ir.Operation], known: Known, *, is_writer: bool) -> bool:
    """Whether users of an array may read it after a writer, or a branch around one; those in other branches do not."""
    readers = [reader for user in users if (reader := in_block(user, op.block)) is not None]
    if not is_writer:
        readers = [reader for reader in readers if reader != op]
    if op.name == LOOP:
        return any(not reader.is_before_in_block(op) for reader in readers)
    if any(op.is_before_in_block(reader) for reader in readers):
        return True
    apart = _not_needed(op, readers)
    if not apart:
        return False
    order = known.order(op.block)
    return op in order.waited_for or any(_may_run_late(reader, array, op, order) for reader in apart)


def _may_run_late(reader: Any, value: Any, op: ir.Operation, order: _Order) -> bool:
    """Whether IREE may run a reader of an array after an update that is after it: where the host waits in between.

    It runs operations as late as their users allow, and an update perhaps as soon as its operands are there. An update
    of the same array gets a copy, which a barrier of its own reads.
    """
    if reader.name in (UPDATE, SCATTER) and value in reader.operands:
        return True
    before = order.needed.get(op, -1)
    pending, seen = [reader], set()
    while pending:
        current = pending.pop()
        place = order.places.get(current)
        if place is not None:
            if order.waits_between(before, place):
                return True
        elif order.needed.get(current, -1) > before:
            return True
        elif current not in seen:
            seen.add(current)
            uses = (use for result in current.results for use in result.uses)
            pending += (in_block(use.owner.operation, reader.block) for use in uses)
    return False


def _origin(array: SSAValue, origins: dict[Any, Any]) -> Any:
    """The array in whose buffer updates have made one: what a part was read from may lie there."""
    passed = []
    while array not in origins and not isinstance(array.owner, ir.Block):
        maker = array.owner.operation
        if maker.name not in _KEEPING:
            break
        passed.append(array)
        array = maker.operands[_number(array)]
    found = origins.get(array, array)
    origins.update((name, found) for name in passed)
    return found


def _reads(value: SSAValue, arrays: set[SSAValue], update: ir.Operation, known: Known) -> bool:
    """Whether a value is made of parts of some arrays other than the one that is overwritten, element by element."""
    is_found = _is_found(value, arrays, update, known, None)
    if is_found is None and any(value in known.made_of(array, by_slices=False) for array in arrays):
        return True
    if is_found is None:
        # What reads no such part at all is most of a long program.
        near = [known.made_of(array, by_slices=True) for array in arrays]
        is_found = _is_found(value, arrays, update, known, near)
    return bool(is_found)


def _is_found(
    value: SSAValue, arrays: set[SSAValue], update: ir.Operation, known: Known, near: list[set[Any]] | None
) -> bool | None:
    """As ``_reads``: goes back from the value.

    Args:
        near: looks at values in one of these sets alone; at all if it is None, but gives up early by returning None.
    """
    pending = [value]
    seen: set[Any] = set()
    while pending:
        current = pending.pop()
        if current in seen or not (near is None or any(current in made for made in near)):
            continue
        if _origin(current, known.origins) in arrays:
            return True
        if near is None and len(seen) > _FEW_VALUES:
            return None
        seen.add(current)
        op: Any = defining_op(current)
        if op is None:
            continue
        if op.name == BARRIER and not _is_copy(op.operands[_number(current)]):
            pending.append(op.operands[_number(current)])
        elif (op.name in traits.VIEWS or op.name in traits.ELEMENTWISE) and not _is_the_same_part(op, update):
            pending += op.operands
    return False


def _made_of(origin: SSAValue, by_slices: bool) -> set[Any]:
    """As ``Known.made_of``: follows the uses of an array and of its names."""
    found, names = {origin}, {origin}
    pending = [origin]
    while pending:
        value = pending.pop()
        for use in value.uses:
            op, number = use.owner.operation, use.operand_number
            is_name = value in names and op.name in _KEEPING and number < len(op.results)
            if is_name or (op.name == BARRIER and not _is_copy(value)):
                made = [op.results[number]]
            elif op.name in traits.VIEWS or op.name in traits.ELEMENTWISE:
                made = list(op.results) if by_slices or op.name != "stablehlo.dynamic_slice" else []
            else:
                continue
            for result in made:
                if result not in found or (is_name and result not in names):
                    found.add(result)
                    if is_name:
                        names.add(result)
                    pending.append(result)
    return found


def _is_copy(value: SSAValue) -> bool:
    """Whether a value is a choice by a condition that comes from a barrier, as ``decide-updates`` makes copies."""
    select = defining_op(value, "stablehlo.select")
    return select is not None and is_made_by(select.operands[0], BARRIER)


def _is_the_same_part(op: ir.Operation, update: ir.Operation) -> bool:
    """Whether an operation takes what the update overwrites."""
    return bool(
        update.name == UPDATE
        and op.name == "stablehlo.dynamic_slice"
        and op.operands[0] == update.operands[0]
        and list(op.operands)[1:] == list(update.operands)[2:]
        and op.results[0].type == update.operands[1].type
    )


# Order


def has_readers_beside_updates(module: ir.Module) -> bool:
    """Whether something reads an array that something else overwrites, and neither needs the other's results."""
    in_place = operations(module, {UPDATE, SCATTER, *_WHOLE})
    return any(_has_reader_beside(op, number) for op in in_place for number in _places(op))


def _has_reader_beside(op: ir.Operation, number: int) -> bool:
    array = op.operands[number]
    names = Names(array, op)
    uses = [use for name in names.values for use in name.uses]
    others = [use for use in uses if (use.owner.operation, use.operand_number) != (op, number)]
    if names.is_from_outside:
        return bool(others) or sum(1 for _ in array.uses) > 1
    return bool(_not_needed(op, [in_block(use.owner.operation, op.block) for use in others]))


class _Order:
    """What the host waits for in a block.

    Attributes:
        places: the positions of the operations that it waits for.
        needed: the last of these positions that each operation needs, -1 for none.
    """

    def __init__(self, block: ir.Block) -> None:
        self.places: dict[Any, int] = {}
        self.needed: dict[Any, int] = {}
        self._block = block
        for place, op in enumerate(op.operation for op in block.operations):
            owners = [value.owner.operation for value in op.operands if not isinstance(value.owner, ir.Block)]
            self.needed[op] = max(map(self._last, owners), default=-1)
            if op.name in _WAITS and not _is_constant(op):
                self.places[op] = place
        self._sorted = list(self.places.values())

    def _last(self, op: ir.Operation) -> int:
        place = self.places.get(op)
        return self.needed.get(op, -1) if place is None else place

    def waits_between(self, before: int, after: int) -> bool:
        """Whether the host waits for an operation after one position and before another one."""
        first = bisect_right(self._sorted, before)
        return first < len(self._sorted) and self._sorted[first] < after

    @cached_property
    def waited_for(self) -> set[ir.Operation]:
        """The operations from whose results something is computed that the host waits for."""
        return waited_for(self._block)


def _is_constant(op: AnyOp) -> bool:
    """Whether an operation has constants alone for operands."""
    owners = [value.owner for value in op.operands]
    return all(not isinstance(owner, ir.Block) and owner.operation.name == "stablehlo.constant" for owner in owners)


def waited_for(block: ir.Block) -> set[ir.Operation]:
    """The operations of a block from whose results something is computed there that the host waits for."""
    found: set[Any] = set()
    for op in reversed([op.operation for op in block.operations]):
        uses = [(in_block(use.owner.operation, block), use) for result in op.results for use in result.uses]
        if any(_is_wait(user, use) or user in found for user, use in uses):
            found.add(op)
    return found


def _is_wait(user: AnyOp, use: Any) -> bool:
    """Whether the host waits for a use, which is in the operation ``user`` or is its own."""
    starts = _STARTS.get(user.name)
    return user.name in _WAITS or (starts is not None and use.operand_number >= starts)


def _not_needed(op: ir.Operation, others: Collection[ir.Operation]) -> list[ir.Operation]:
    """Those of some operations before another one, in its block, with whose results it does not compute."""
    first: Any = None
    for other in others:
        if first is None or other.is_before_in_block(first):
            first = other
    if first is None:
        return []
    pending, seen = [op], set()
    while pending:
        current = pending.pop()
        if current in seen or current.is_before_in_block(first):
            continue
        seen.add(current)
        operands = (value for inner in (current, *_inside(current)) for value in inner.operands)
        owners = (value.owner.operation for value in operands if not isinstance(value.owner, ir.Block))
        pending += (owner for owner in owners if owner not in seen and owner.block == op.block)
    return [other for other in others if other not in seen]


def _inside(op: ir.Operation) -> list[ir.Operation]:
    return operations(op) if len(op.regions) else []
