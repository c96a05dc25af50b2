"""Fourier transforms of several columns at once, one in each lane of vectors, which lie in two buffers in turn.

Each pass does one factor of the length, reads its points far apart and writes them in their new order, so that no
permutation is left. Source: Van Loan, "Computational Frameworks for the FFT", 1992, 1.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from hloforge.pipelines.codegen.algorithms.butterflies import RADICES, Point, times, transformed
from hloforge.pipelines.codegen.algorithms.matrices import folded, steps
from hloforge.pipelines.codegen.lang.functions import Array, Function
from hloforge.pipelines.codegen.lang.values import Number, Value


@cache
def radices(length: int) -> tuple[int, ...] | None:
    """The factors of the passes, equal ones together; None if there is no code for one."""
    found: list[int] = []
    for radix in sorted(RADICES, reverse=True):
        while length % radix == 0:
            found.append(radix)
            length //= radix
    if length > 1:
        return None
    # 8 · 2 is done as 4 · 4, which has fewer operations.
    if 8 in found and 2 in found:
        found.remove(8)
        found.remove(2)
        found += [4, 4]
    return tuple(sorted(found, reverse=True))


@dataclass(frozen=True)
class Points:
    """A buffer of complex vectors.

    Attributes:
        kind: of a part, ``float`` or ``double``.
    """

    pointer: Value
    kind: str
    lanes: int

    def _parts(self, place: Number, lane: Number) -> tuple[Value, Value]:
        function = self.pointer.function
        start = function.offset(self.pointer, f"[{2 * self.lanes} x {self.kind}]", place)
        real = function.offset(start, self.kind, lane)
        return real, function.offset(real, self.kind, self.lanes)

    def at(self, place: Number, lane: Number = 0, lanes: int | None = None) -> Point:
        """A point, or some of its lanes from one on."""
        real, imaginary = self._parts(place, lane)
        count = self.lanes if lanes is None else lanes
        return Array(real, self.kind).at(0, count), Array(imaginary, self.kind).at(0, count)

    def put(self, point: Point, place: Number, lane: Number = 0) -> None:
        """Write a point, or some of its lanes from one on."""
        for pointer, value in zip(self._parts(place, lane), point, strict=True):
            Array(pointer, self.kind).put(value, 0)


@dataclass(frozen=True)
class Stockham:
    """Forward transforms of ``length`` points.

    Attributes:
        kind: of a part, ``float`` or ``double``.
    """

    length: int
    lanes: int
    kind: str

    @cached_property
    def factors(self) -> tuple[int, ...]:
        found = radices(self.length)
        if found is None:
            raise ValueError(f"no code transforms {self.length} points")
        return found

    @property
    def buffer(self) -> int:
        """Bytes of one of the two buffers."""
        return self.length * 2 * self.lanes * (4 if self.kind == "float" else 8)

    def table(self) -> Iterator[Any]:
        """The factors between the passes, parts of turns as numerators and denominators."""
        rest = self.length
        for radix in self.factors:
            numbers = np.outer(np.arange(rest // radix), np.arange(1, radix))
            yield numbers.ravel(), rest
            rest //= radix

    def write(self, function: Function, first: Value, second: Value, table: Value) -> tuple[Points, Points]:
        """Write the passes.

        Args:
            first: a pointer to the buffer with the points.
            second: to the other buffer.
            table: to the complex numbers of ``table``.

        Returns:
            the buffer with the results, and the other one.
        """
        state, factors = [first, second, table, function.index(self.length), function.index(1)], list(self.factors)
        while factors:
            radix = factors[0]
            count = factors.count(radix)
            del factors[:count]

            def turn(_: Value, state: list[Value], radix: int = radix) -> list[Value]:
                return self._passed(function, radix, state)

            state = folded(function, 0, count, state, turn)
        return Points(state[0], self.kind, self.lanes), Points(state[1], self.kind, self.lanes)

    def _passed(self, function: Function, radix: int, state: list[Value]) -> list[Value]:
        """One pass; the buffers in their new roles, the next table, the lengths of the parts and their distance."""
        source, target, table, rest, step = state
        own, into = (Points(pointer, self.kind, self.lanes) for pointer in (source, target))
        count = rest.udiv(radix)
        distance = count * step
        with steps(function, 0, count) as part:
            numbers = Array(function.offset(table, self.kind, part * (2 * (radix - 1))), self.kind)
            factors = [
                (function.spread(numbers.at(2 * k), self.lanes), function.spread(numbers.at(2 * k + 1), self.lanes))
                for k in range(radix - 1)
            ]
            start = part * step
            target_start = start * radix
            with steps(function, 0, step) as column:
                place, found = start + column, []
                for number in range(radix):
                    found.append(own.at(place))
                    if number < radix - 1:
                        place = place + distance
                first, *others = transformed(found)
                place = target_start + column
                into.put(first, place)
                for point, factor in zip(others, factors, strict=True):
                    place = place + step
                    into.put(times(point, factor), place)
        following = function.offset(table, self.kind, count * (2 * (radix - 1)))
        return [target, source, following, count, step * radix]
