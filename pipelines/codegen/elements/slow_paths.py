"""Functions of floats with a fast path of short code for nearly all numbers, and a slow path for the others.

A vector has the short code whole, and a branch that is taken if a lane needs more. What an element becomes depends on
itself alone: lanes that the short code suits keep what it made. The long code is a function, which the text has once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I8, Value, element_of, lanes_of, vector_of

Make = Callable[..., Sequence[Value]]


def with_slow_path(
    name: str, is_usual: Value, values: Sequence[Value], operands: Sequence[Value], make: Make
) -> list[Value]:
    """Values, those of lanes that are not usual made again of their operands.

    Args:
        name: of the function that does it.
        is_usual: flags.
        make: the values of operands, of whole vectors.
    """
    function, lanes = is_usual.function, lanes_of(is_usual.kind)
    kinds = [value.kind for value in values]

    def others() -> list[Value]:
        made = function.shared(f"{name}.{lanes}" if lanes else name, operands, kinds, make)
        return [is_usual.where(value, new) for value, new in zip(values, made, strict=True)] if lanes else made

    return function.branch(function.likely(is_usual.all()), lambda: values, others)


def with_slow_path_by_lane(
    name: str, is_usual: Value, values: Sequence[Value], operands: Sequence[Value], make: Make
) -> list[Value]:
    """The same where ``make`` takes numbers: of one lane after the other."""
    if not lanes_of(is_usual.kind):
        return with_slow_path(name, is_usual, values, operands, make)
    given = [is_usual.as_(I8, signed=False), *values, *operands]

    def each(*vectors: Value) -> list[Value]:
        return _each(vectors[0].function, vectors, len(values), make)

    return with_slow_path(name, is_usual, values, given, each)


def _each(function: Function, vectors: Sequence[Value], count: int, make: Make) -> list[Value]:
    """Of flags, values and operands: the values, some of them made again."""
    lanes = lanes_of(vectors[0].kind)
    elements = [element_of(vector.kind) for vector in vectors]
    rooms = [function.stack(element, lanes) for element in elements]
    for vector, room in zip(vectors, rooms, strict=True):
        function.store(vector, room)
    with function.loop(0, lanes) as lane:
        flag, *places = (function.offset(room, element, lane) for room, element in zip(rooms, elements, strict=True))
        with function.if_(function.load(flag, I8).equals(0)):
            numbers = [function.load(*pair) for pair in zip(places[count:], elements[count + 1 :], strict=True)]
            for value, place in zip(make(*numbers), places[:count], strict=True):
                function.store(value, place)
    kept = slice(1, count + 1)
    return [
        function.load(room, vector_of(element, lanes))
        for room, element in zip(rooms[kept], elements[kept], strict=True)
    ]
