"""Arrays that a step reads from a later element on are bound from there on, so that equal steps have equal kernels.

The steps of a loop that the user's Python wrote out read one row after the other of the same arrays. The number of the
first element that a step reads is no part of its code: it is where a dispatch binds the array. What steps of an LSTM's
gradient had in common was then compiled for each of them (64 steps: 137 texts, 4.2 s of LLVM's time).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from hloforge.pipelines.codegen import index as places
from hloforge.pipelines.codegen.access import Accesses
from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.graph import Array
from hloforge.pipelines.codegen.index import Index
from hloforge.pipelines.codegen.slots import Slot, Where
from hloforge.pipelines.codegen.steps import Nest, Single, Step

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator


def first_elements(generator: Generator, step: Step, in_memory: Callable[[Array], bool]) -> dict[Array, int]:
    """The numbers of the first elements that a step reads of arrays, where these are not the arrays' own."""
    firsts: dict[Array, int] = {}
    for array, number in _loads(step, in_memory):
        firsts[array] = min(number.low, firsts.get(array, number.low))
    made = {generator.slots.get(array) for array in step.makes}
    # A place under a condition that does not hold may be outside.
    inside = [array for array, first in firsts.items() if 0 < first < array.elements]
    return {array: firsts[array] for array in inside if _is_bound(generator.slots.get(array), made)}


def _loads(step: Step, in_memory: Callable[[Array], bool]) -> Collection[tuple[Array, Index]]:
    """What a loop reads, or what follows a product's sums."""
    if isinstance(step, Nest):
        return step.loads(in_memory)
    if not isinstance(step, Single) or not step.epilogue:
        return ()
    own, sums = set(step.epilogue), step.operation.result
    found = Accesses(lambda array: array is sums or (in_memory(array) and array not in own))
    for array in step.epilogue:
        found.made(array, tuple(places.counter(size) for size in array.shape))
    return [(array, number) for array, number in found.loads if array is not sums]


def _is_bound(slot: Slot | None, made: Collection[Slot | None]) -> bool:
    """Whether an array lies where a later address is as good, and the step writes it nowhere."""
    return slot is not None and slot not in made and (slot.is_constant or slot.where is Where.TRANSIENT)


def slots_read(
    generator: Generator, step: Step, arrays: Collection[Array], in_memory: Callable[[Array], bool]
) -> set[Slot]:
    """What a step binds for arrays that it reads."""
    firsts = first_elements(generator, step, in_memory)
    slots = {array: generator.slots[array] for array in arrays if array in generator.slots}
    return {_from(generator, array, firsts[array]) if array in firsts else slot for array, slot in slots.items()}


def _from(generator: Generator, array: Array, first: int) -> Slot:
    slot, start = generator.slots[array], first * elements.size(array.element)
    return generator.part(slot, start, slot.size - start)


@contextmanager
def from_first_elements(generator: Generator, step: Step, in_memory: Callable[[Array], bool]) -> Iterator[None]:
    """Let what is written inside read arrays from the first elements that a step reads on."""
    function, writer = generator.writer.function, generator.writer
    for array, first in first_elements(generator, step, in_memory).items():
        function.near[array] = first, partial(writer.memory, _from(generator, array, first))
    yield
    function.near.clear()
