"""Parts of arrays that lie in one piece: a layer of stacked weights, a batch's image, some rows of a table.

An algorithm reads such a part where the array is, from the part's first element on::

    for layer in range(layers):
        x = x @ weights[layer]      # no copy of the layer

What is read so is in memory anyway. A part of an array that loops alone would read has memory of its own: less than
the array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING

from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.emit import Emitter, Memory, splat_of
from hloforge.pipelines.codegen.graph import Array, Op
from hloforge.pipelines.codegen.lang.values import I8

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator

InMemory = Callable[[Array], bool]

_SLICES = frozenset({"slice", "dynamic_slice"})


def base_of(array: Array, in_memory: InMemory) -> Array:
    """The array in memory that one lies in: itself, or of those of which it is a part or another shape the last one
    made."""
    found = array
    while not in_memory(found) and found.op is not None and _lies_in_one_piece(found.op):
        found = found.op.operands[0]
    return found


def slices_between(array: Array, base: Array) -> list[Op]:
    """The slices by which an array is a part of another."""
    found: list[Op] = []
    while array is not base:
        assert array.op is not None
        if array.op.name in _SLICES:
            found.append(array.op)
        array = array.op.operands[0]
    return found


def rooms_of(op: Op, part: Array) -> Sequence[int]:
    """The last place in each dimension where a part may begin that a ``dynamic_slice`` reads or an update writes."""
    return [size - length for size, length in zip(op.operands[0].shape, part.shape, strict=True)]


def known_start(start: Array, room: int) -> int | None:
    """Where such a part begins in a dimension; None where the call tells."""
    if room == 0:
        return 0
    if start.op is None or start.op.name != "constant":
        return None
    return min(max(int(splat_of(start.op)), 0), room)


def starts_of(op: Op) -> Sequence[int | Array]:
    """Where a slice begins in each dimension: a number, or a scalar's value."""
    if op.name == "slice":
        return op.integers("start_indices")
    found: list[int | Array] = []
    for start, room in zip(op.operands[1:], rooms_of(op, op.result), strict=True):
        known = known_start(start, room)
        found.append(start if known is None else known)
    return found


def _lies_in_one_piece(op: Op) -> bool:
    """Whether the elements of an operation's result follow each other in its operand, in the same order."""
    if op.name == "reshape":
        return True
    if op.name not in _SLICES or not op.result.elements:
        return False
    whole, part = op.operands[0].shape, op.result.shape
    cut = next((d for d, size in enumerate(part) if size != 1), len(part))
    if part[cut + 1 :] != whole[cut + 1 :]:
        return False
    return op.name == "dynamic_slice" or cut == len(part) or op.integers("strides")[cut] == 1


def memory_of(generator: Generator, array: Array) -> Memory:
    """Where an algorithm reads an array, or makes one, in the code that is being written."""
    base = base_of(array, generator.in_memory)
    slot, function = generator.slots[base], generator.writer.function
    emitter = Emitter(function, generator.memory)
    size = elements.size(array.element)
    known, moved = 0, []
    for op in slices_between(array, base):
        rooms = rooms_of(op, op.result)
        for d, start in enumerate(starts_of(op)):
            step = prod(op.operands[0].shape[d + 1 :]) * size
            if isinstance(start, int):
                known += start * step
            else:
                moved.append(emitter.value(emitter.start(start, (), rooms[d], (op, d))) * step)
    if known and slot.is_constant:
        # Bound from there on, so that the kernels of several layers have one text.
        slot, known = generator.part(slot, known, slot.size - known), 0
    memory = generator.writer.memory(slot)
    pointer = memory.pointer
    for number in [*moved, *([function.index(known)] if known else [])]:
        pointer = function.offset(pointer, I8, number)
    return Memory(pointer, memory.element, memory.access)
