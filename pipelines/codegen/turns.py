"""Carries of a loop that change places: what an iteration makes of an array it writes to another one, and the next
iteration finds it there.

A carry whose elements are computed of other elements of itself (stencils, rolls, gathers, products, rows of a table)
cannot be written where it is. Written beside it and copied back, it would pass through the cache once more in each
iteration. So the addresses of such carries are carried instead, with that of one array more: a wheel. A carry that only
takes another's place (``u, before = step(u, before), u``) is on the wheel as well, and what nobody takes is what is
written next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Protocol

from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.emit import Memory, attributes_of
from hloforge.pipelines.codegen.graph import Array, Block, Op
from hloforge.pipelines.codegen.kernel_writer import KernelWriter
from hloforge.pipelines.codegen.lang.values import I1, POINTER, Value
from hloforge.pipelines.codegen.slots import Slot
from hloforge.pipelines.codegen.splats import splat_of

# Bytes from which on a carry is worth it: LLVM keeps smaller ones in registers, or moves them in a few instructions.
_LEAST = 512


@dataclass(frozen=True)
class Wheel:
    """Carries of one type that change places, and arrays beside them.

    Attributes:
        carries: their numbers. These come first among the places, and what is beside them follows.
        following: for each place the one whose array it has in the next iteration.
        written: for each carry whether that array is made in the iteration; else it is another carry's.
        over: for each carry that is made in another's place, element by element, the other's number.
    """

    carries: tuple[int, ...]
    following: tuple[int, ...]
    written: tuple[bool, ...]
    over: tuple[int | None, ...]

    def after(self, turns: int) -> list[int]:
        """The place in which an array was that is in each place after some iterations."""
        start = found = list(range(len(self.following)))
        cycle = [start]
        while (found := [found[place] for place in self.following]) != start:
            cycle.append(found)
        return cycle[turns % len(cycle)]

    def at(self, slots: Sequence[Slot]) -> Iterator[tuple[int, Slot]]:
        """Carries with their memory, of that of the places."""
        return zip(self.carries, slots, strict=False)

    def targets(self, slots: Sequence[Slot]) -> Iterator[tuple[int, Slot | None, int | None]]:
        """Carries, where what an iteration makes of them is written, and the carry whose memory that is."""
        for here, carry in enumerate(self.carries):
            yield carry, slots[self.following[here]] if self.written[here] else None, self.over[here]


class Written(Protocol):
    """A loop's body as it will be written."""

    def is_made(self, array: Array, /) -> bool: ...

    def is_wanted(self, number: int, /) -> bool: ...

    def may_replace(self, array: Array, carry: Array, /) -> bool: ...


def wheels_of(body: Block, written: Written) -> list[Wheel]:
    """The wheels of a loop."""
    places = {argument: number for number, argument in enumerate(body.arguments)}
    seen: set[Array] = set()
    moving: dict[int, int | None] = {}
    for number, (argument, result) in enumerate(zip(body.arguments, body.results, strict=True)):
        is_first = result not in seen
        seen.add(result)
        if not is_first or argument.elements * elements.size(argument.element) < _LEAST or written.is_wanted(number):
            continue
        source = places.get(result)
        if source is not None and _is_alike(argument, body.arguments[source]):
            moving[number] = source
        elif source is None and written.is_made(result):
            moving[number] = None
    while wrong := [number for number, source in moving.items() if source is not None and source not in moving]:
        for number in wrong:
            del moving[number]
    kinds: dict[tuple[str, int], list[int]] = {}
    for number in moving:
        argument = body.arguments[number]
        kinds.setdefault((argument.element, argument.elements), []).append(number)
    return [_wheel(body, carries, moving, written) for carries in kinds.values()]


def _is_alike(one: Array, other: Array) -> bool:
    return one.element == other.element and one.elements == other.elements


def _wheel(body: Block, carries: Sequence[int], moving: dict[int, int | None], written: Written) -> Wheel:
    place = {number: here for here, number in enumerate(carries)}
    following: list[int] = []
    over: list[int | None] = []
    # Carries that no other takes, whose arrays are free at the end of an iteration.
    free = [number for number in carries if number not in moving.values()]
    count = len(carries)
    for number in carries:
        source = moving[number]
        replaced: int | None = None
        if source is None:
            result = body.results[number]
            replaced = next((other for other in free if written.may_replace(result, body.arguments[other])), None)
            if replaced is None:
                following.append(count)
                count += 1
            else:
                free.remove(replaced)
                following.append(place[replaced])
        else:
            following.append(place[source])
        over.append(replaced)
    left = [here for here in range(count) if here not in following]
    return Wheel(tuple(carries), (*following, *left), tuple(moving[number] is None for number in carries), tuple(over))


def turns_of(loop: Op) -> int | None:
    """How often a loop runs, where it counts from one constant to another; None if that is not known."""
    condition, body = loop.inner
    test = condition.results[0].op
    if test is None or test.name != "compare" or attributes_of(test)["comparison_direction"] != "LT":
        return None
    counter, limit = test.operands
    if counter not in condition.arguments:
        return None
    number = condition.arguments.index(counter)
    step = body.results[number].op
    if step is None or step.name != "add" or body.arguments[number] not in step.operands:
        return None
    added = next((operand for operand in step.operands if operand is not body.arguments[number]), None)
    known = [_constant(one) for one in (loop.operands[number], limit, added)]
    if any(one is None for one in known):
        return None
    first, last, by = (one or 0 for one in known)
    # Neither beyond the type, where the counter would begin again, nor above the highest number with a sign.
    is_plain = by > 0 and 0 <= first <= last and last + by < 1 << 8 * elements.size(counter.element) - 1
    return -(-(last - first) // by) if is_plain else None


def _constant(array: Array | None) -> int | None:
    if array is None or array.op is None or array.op.name != "constant" or array.elements != 1:
        return None
    return int(splat_of(array.op)) if "i" in array.element and "c" not in array.element else None


class TurningAddresses:
    """The addresses of a wheel's arrays, in the code of a loop.

    Args:
        slots: of the places when the loop begins.
        is_home: whether carries are where they have to be when it ends; else it is where they were.
    """

    def __init__(self, kernel: KernelWriter, wheel: Wheel, slots: Sequence[Slot], *, is_home: bool) -> None:
        self._kernel, self._wheel, self._slots, self._is_home = kernel, wheel, slots, is_home
        self._outside = [kernel.memory(slot) for slot in slots]
        function = kernel.function
        self._addresses = [Value(function, POINTER, function.carried_address()) for _ in slots]

    def enter(self) -> None:
        """Let arrays be where they are in each iteration."""
        for slot, address in zip(self._slots, self._addresses, strict=True):
            # Metadata of an array would say that it shares no memory with itself at another turn.
            self._kernel.let(slot, Memory(address, slot.element, ""))

    def phis(self, before: str, back: str) -> list[str]:
        """The lines at the loop's head, which comes from two blocks."""
        return [
            f"  {own.text} = phi ptr [ {first.pointer.text}, %{before} ], [ {self._addresses[then].text}, %{back} ]"
            for own, first, then in zip(self._addresses, self._outside, self._wheel.following, strict=True)
        ]

    def leave(self, scratch: Callable[[int], Memory]) -> None:
        """Let carries be where they were, for the code after the loop."""
        for slot, memory in zip(self._slots, self._outside, strict=True):
            self._kernel.let(slot, memory)
        if not self._is_home:
            self._bring_home(scratch)

    def _bring_home(self, scratch: Callable[[int], Memory]) -> None:
        function, count = self._kernel.function, len(self._wheel.carries)
        homes = [memory.pointer for memory in self._outside[:count]]
        held, size = self._addresses[:count], self._slots[0].size
        flags = [
            function.emit(f"icmp ne ptr {home.text}, {own.text}", I1) for home, own in zip(homes, held, strict=True)
        ]
        with function.if_(reduce(or_, flags)):
            if count > 1:
                # One's place may be another's.
                rooms = [scratch(size).pointer for _ in held]
                for room, own in zip(rooms, held, strict=True):
                    function.copy(room, own, size)
                held = rooms
            for home, own in zip(homes, held, strict=True):
                function.copy(home, own, size)
