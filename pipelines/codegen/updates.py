"""``dynamic_update_slice``: a part of an array is changed where the array is.

What is written may be computed of the array itself. If it reads there at the place alone that it is written to, as
``u.at[1:, 1:].add(y)`` does, a loop computes and writes it at once; otherwise it is computed beside first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hloforge.pipelines.codegen import index as places
from hloforge.pipelines.codegen.access import Accesses
from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.emit import Emitter
from hloforge.pipelines.codegen.evaluate import Place
from hloforge.pipelines.codegen.graph import Array, Op
from hloforge.pipelines.codegen.handing_out import hand_out
from hloforge.pipelines.codegen.index import Index
from hloforge.pipelines.codegen.loops import NestWriter
from hloforge.pipelines.codegen.nest_loops import Share
from hloforge.pipelines.codegen.parts import known_start, rooms_of
from hloforge.pipelines.codegen.steps import Nest

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator


def write_update(generator: Generator, op: Op) -> None:
    """Change the result's memory, which holds the operand."""
    result = generator.memory(op.result)
    assert result is not None
    operand, change, *starts = op.operands
    if not _reads_where_it_writes(generator, op):
        change = generator.apart(change, generator.slots[op.result])
    if not change.elements:
        return
    moved = Array(change.element, change.shape, None, change.block)
    moved.op = Op("reshape", (change,), op.mlir, change.block, (moved,))

    def write(share: Share | None) -> None:
        emitter = Emitter(generator.writer.function, generator.memory)
        first = [
            _known_start(start, room) or emitter.start(start, (), room, (op, d))
            for d, (start, room) in enumerate(zip(starts, rooms_of(op, change), strict=True))
        ]
        nest = Nest(shape=change.shape, maps=[moved], into=(tuple(first), operand.shape))
        nest.split(generator.in_memory)
        memory = lambda array: result if array is moved else generator.memory(array)  # noqa: E731
        NestWriter(generator.writer, nest, memory, generator.in_memory, share).write()

    hand_out(generator, generator.shares, write)


def _reads_where_it_writes(generator: Generator, op: Op) -> bool:
    """Whether each element reads, in the memory that is changed, the one alone that it replaces."""
    _, change, *starts = op.operands
    found = Accesses(generator.in_memory)
    place: Place = tuple(places.counter(size) for size in change.shape)
    found.element(change, place)
    slot = generator.slots[op.result]
    read = [(array, number) for array, number in found.loads if generator.slots.get(array) is slot]
    if not read:
        return True
    first = [_start(start, room, found) for start, room in zip(starts, rooms_of(op, change), strict=True)]
    own = places.linear([index + start for index, start in zip(place, first, strict=True)], op.result.shape)
    width = elements.size(op.result.element)
    return all(number == own and elements.size(array.element) == width for array, number in read)


def _start(array: Array, room: int, found: Accesses) -> Index:
    """Where the part begins, by the symbol of slices that begin there as well; by one of its own if none does."""
    known = _known_start(array, room)
    if known is not None:
        return known
    for symbol, (start, _, most, _) in found.fixed.items():
        if start is array and most == room:
            return Index(((symbol, 1),))
    return places.counter(room + 1)


def _known_start(array: Array, room: int) -> Index | None:
    known = known_start(array, room)
    return None if known is None else places.constant(known)
