"""Elements in the lanes of vectors, whether one number or two."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hloforge.pipelines.codegen.algorithms.arrays import Element, parts
from hloforge.pipelines.codegen.elements.comparisons import select
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I1, Value, lanes_of, vector_of


def mapped(element: Element, change: Callable[[Value], Value]) -> Element:
    """An element whose parts are changed."""
    if isinstance(element, Value):
        return change(element)
    return change(element[0]), change(element[1])


def shuffled(element: Element, places: Sequence[int]) -> Element:
    """The lanes at some places."""
    return mapped(element, lambda value: value.function.shuffle(value, None, places))


def spread(element: Element, lanes: int) -> Element:
    """A vector that repeats an element."""
    return mapped(element, lambda value: value.function.spread(value, lanes))


def lane(element: Element, place: int) -> Element:
    """The element in a lane."""
    return mapped(element, lambda value: value.function.extract(value, place))


def chosen(function: Function, flags: Sequence[bool], yes: Element, no: Element) -> Element:
    """Lanes of one of two vectors, as known beforehand."""
    text = f"<{', '.join(f'i1 {str(flag).lower()}' for flag in flags)}>"
    return select(Value(function, vector_of(I1, len(flags)), text), yes, no)


def flattened(elements: Sequence[Element]) -> list[Value]:
    """The values of several elements, as a loop carries them."""
    return [value for element in elements for value in parts(element)]


def like(values: Sequence[Value], elements: Sequence[Element]) -> list[Element]:
    """Values as elements of the same forms as others."""
    found: list[Element] = []
    left = list(values)
    for element in elements:
        if isinstance(element, Value):
            found.append(left.pop(0))
        else:
            found.append((left.pop(0), left.pop(0)))
    return found


def total(vector: Value) -> Value:
    """The sum of a vector's numbers."""
    function, count = vector.function, lanes_of(vector.kind)
    while count > 1:
        count //= 2
        low, high = (function.shuffle(vector, None, range(start, start + count)) for start in (0, count))
        vector = low + high
    return function.extract(vector, 0)
