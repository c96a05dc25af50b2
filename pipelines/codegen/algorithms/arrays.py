"""Arrays in memory that an algorithm reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from hloforge.pipelines.codegen.elements import memory
from hloforge.pipelines.codegen.elements.kinds import Element, single
from hloforge.pipelines.codegen.emit import accessing
from hloforge.pipelines.codegen.lang.values import Number, Value

__all__ = ["Combine", "Element", "Elements", "Source", "parts", "put_record", "record"]

# New values of several arrays' elements from the old ones and others that meet them.
Combine = Callable[[list[Element], list[Element]], Sequence[Element]]


class Source(Protocol):
    """What has elements at places: an array, or what computes them."""

    def at(self, place: Number, lanes: int = 0) -> Element: ...


@dataclass(frozen=True)
class Elements:
    """Elements of one type that follow each other.

    Attributes:
        pointer: to the first.
        element: the type as MLIR spells it.
        access: the metadata of its loads and stores: without it, LLVM looks whether arrays overlap before each loop.
    """

    pointer: Value
    element: str
    access: str = ""

    def at(self, place: Number, lanes: int = 0) -> Element:
        """An element, or as many as ``lanes`` that follow each other."""
        with accessing(self.pointer.function, self.access):
            return memory.load(self.pointer.function, self.pointer, self.element, place, lanes)

    def number(self, place: Number) -> Value:
        """An element that is no complex one."""
        return single(self.at(place))

    def put(self, value: Element, place: Number) -> None:
        """Write an element, or several."""
        with accessing(self.pointer.function, self.access):
            memory.store(self.pointer.function, value, self.pointer, self.element, place)

    def moved(self, place: Number) -> Elements:
        """The array that begins at one of its elements."""
        function = self.pointer.function
        return Elements(function.offset(self.pointer, f"[{self.size} x i8]", place), self.element, self.access)

    @property
    def addresses(self) -> frozenset[str]:
        """The name of its pointer."""
        return frozenset((self.pointer.text,))

    @property
    def size(self) -> int:
        """Of an element, in bytes."""
        return memory.size(self.element)


def record(arrays: Sequence[Elements], place: Number) -> list[Element]:
    """The elements of several arrays at a place."""
    return [array.at(place) for array in arrays]


def put_record(arrays: Sequence[Elements], place: Number, elements: Sequence[Element]) -> None:
    """Write an element of each array at a place."""
    for array, element in zip(arrays, elements, strict=True):
        array.put(element, place)


def parts(value: Element) -> tuple[Value, ...]:
    """The values of an element: one, or two of a complex number."""
    return (value,) if isinstance(value, Value) else value
