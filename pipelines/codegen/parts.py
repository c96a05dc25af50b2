"""Parts of arrays that algorithms read where they are: a layer of stacked weights, an image of a batch, some columns.

An algorithm reads a part whose elements follow each other from its first element on; a product reads one by strides::

    for layer in range(layers):
        x = x @ weights[layer]      # no copy of the layer

What is read so is in memory anyway. A part of an array that loops alone would read has memory of its own: less than
the array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hloforge.pipelines.codegen import index as places
from hloforge.pipelines.codegen.access import Accesses
from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.elements.memory import Element
from hloforge.pipelines.codegen.emit import Emitter, Memory
from hloforge.pipelines.codegen.evaluate import MOVES, Place
from hloforge.pipelines.codegen.graph import Array, Op
from hloforge.pipelines.codegen.index import Index, Symbol
from hloforge.pipelines.codegen.lang.values import I8
from hloforge.pipelines.codegen.splats import splat_of

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator

InMemory = Callable[[Array], bool]


@dataclass(frozen=True)
class Part:
    """Where the elements of an array are.

    Attributes:
        base: the array in whose memory they are.
        strides: of the dimensions, in elements; that of a dense array for one of size 1.
        is_dense: whether they follow each other.
        is_moved: whether a number that is computed says where the first one is.
    """

    base: Array
    strides: tuple[int, ...]
    is_dense: bool
    is_moved: bool = False


def part_of(array: Array, in_memory: InMemory) -> Part | None:
    """An array as a part of one in memory; None for what is computed, or lies in no such order."""
    dense = strides(array.shape)
    if in_memory(array):
        return Part(array, dense, is_dense=True)
    if array.op is None or array.op.name not in MOVES or not array.elements:
        return None
    place = tuple(map(places.counter, array.shape))
    found = _Read(in_memory)
    found.element(array, place)
    if len(found.loads) != 1 or found.is_computed or found.conditions or found.is_irregular:
        return None
    ((base, number),) = found.loads
    steps = dict(number.terms)
    own = tuple(
        steps.pop(index.terms[0][0], 0) if index.terms else step for index, step in zip(place, dense, strict=True)
    )
    if any(step <= 0 for step in own) or any(symbol not in found.starts for symbol in steps):
        return None
    return Part(base, own, own == dense, bool(steps))


def base_of(array: Array, in_memory: InMemory) -> Array:
    """The array in whose memory the elements of another follow each other; this itself if there is none."""
    part = part_of(array, in_memory)
    return part.base if part is not None and part.is_dense else array


def is_stored_anyway(array: Array, block: Any, is_root: Callable[[Op], bool]) -> bool:
    """Whether an array that operations of a block read has memory, whatever they are."""
    if array.op is None:
        return True
    return (array.op.name == "constant" and not array.op.is_splat) or is_root(array.op) or array.block is not block


def memory_of(generator: Generator, array: Array) -> Memory:
    """Where an algorithm reads an array, or makes one, in the code that is being written."""
    part = part_of(array, generator.in_memory)
    assert part is not None
    slot, function = generator.slots[part.base], generator.writer.function
    size = elements.size(array.element)
    number = places.ZERO
    emitter = _Places(function, generator.memory)
    if part.base is not array:
        emitter.element(array, (places.ZERO,) * array.rank)
        number = emitter.read * size
    if number.offset and not number.terms and slot.is_constant:
        # Bound from there on, so that the kernels of several layers have one text.
        return generator.writer.memory(generator.part(slot, number.offset, slot.size - number.offset))
    memory = generator.writer.memory(slot)
    if number == places.ZERO:
        return memory
    return Memory(function.offset(memory.pointer, I8, emitter.value(number)), memory.element, memory.access)


def strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Of a dense row-major array, in elements."""
    found, step = [], 1
    for size in reversed(shape):
        found.append(step)
        step *= size
    return tuple(found[::-1])


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


@dataclass
class _Read(Accesses):
    """What is read of arrays, without the places that are.

    Attributes:
        starts: symbols of places that are computed, but the same for all elements.
        is_computed: whether an element is more than one that is read.
    """

    starts: set[Symbol] = field(default_factory=set)
    is_computed: bool = False

    def element(self, array: Array, place: Place) -> None:
        if self.in_memory(array) or (array.op is not None and array.op.name in MOVES):
            super().element(array, place)
        else:
            self.is_computed = True

    def number(self, index: Index, element: str) -> None:
        self.is_computed = True

    def splat(self, op: Op) -> None:
        self.is_computed = True

    def start(self, array: Array, at: Place, most: int, key: Any) -> Index:
        if any(index.terms for index in at):
            self.is_irregular = True
        known = known_start(array, most)
        if known is not None:
            return places.constant(known)
        if key not in self._symbols:
            symbol = Symbol(most)
            self.starts.add(symbol)
            self._symbols[key] = Index(((symbol, 1),))
        return self._symbols[key]


class _Places(Emitter):
    """Finds the number of the element that is read, of which it loads the places alone.

    Attributes:
        read: the number of the element.
    """

    read = places.ZERO

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._starting = 0

    def start(self, array: Array, at: Place, most: int, key: Any) -> Index:
        known = known_start(array, most)
        if known is not None:
            return places.constant(known)
        self._starting += 1
        found = super().start(array, at, most, key)
        self._starting -= 1
        return found

    def load(self, array: Array, number: Index) -> Element:
        if self._starting:
            return super().load(array, number)
        self.read = number
        return self.function.index(0)
