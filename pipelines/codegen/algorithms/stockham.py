"""Fourier transforms of several columns at once, one in each lane of vectors, which lie in two buffers in turn.

Each pass does one factor of the length, reads its points far apart and writes them in their new order, so that no
permutation is left. Source: Van Loan, "Computational Frameworks for the FFT", 1992, 1.7.

A factor without straight code (``butterflies.py``) is a prime, whose pass has loops over the same sums and differences
of pairs and a table of their factors: up to some size the square of it is less work than the three transforms of a
convolution (``bluestein.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from hloforge.pipelines.codegen.algorithms.butterflies import RADICES, Point, minus, plus, times, transformed
from hloforge.pipelines.codegen.algorithms.matrices import folded, steps
from hloforge.pipelines.codegen.kernel_program import ENTRY
from hloforge.pipelines.codegen.lang.functions import Array, Function
from hloforge.pipelines.codegen.lang.outlining import Cut, outline
from hloforge.pipelines.codegen.lang.values import Number, Value

# The largest prime whose square is less work than a convolution.
_LARGEST = 199
# So many results of a pass with loops are summed at once, of which each takes four registers.
_AT_ONCE = 3


@cache
def radices(length: int) -> tuple[int, ...] | None:
    """The factors of the passes, equal ones together; None if there is no code for one."""
    found: list[int] = []
    for radix in (*sorted(RADICES, reverse=True), *range(max(RADICES) + 2, _LARGEST + 1, 2)):
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
        """The factors in the passes with loops and between passes, parts of turns as numerators and denominators."""
        rest = self.length
        for radix in self.factors:
            if radix not in RADICES:
                places = np.arange(1, radix // 2 + 1)
                yield np.outer(places, places).ravel(), radix
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
        begin = Cut(len(function.lines), function.block)
        state, factors = [first, second, table, function.index(self.length), function.index(1)], list(self.factors)
        while factors:
            radix = factors[0]
            count = factors.count(radix)
            del factors[:count]

            def turn(_: Value, state: list[Value], radix: int = radix) -> list[Value]:
                write = self._passed if radix in RADICES else self._passed_by_loops
                return write(function, radix, state)

            state = folded(function, 0, count, state, turn)
        outline(function, [begin], ENTRY, has_vectors=True, apart={first.text, second.text, table.text})
        result, other = (first, second) if len(self.factors) % 2 == 0 else (second, first)
        return Points(result, self.kind, self.lanes), Points(other, self.kind, self.lanes)

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

    def _passed_by_loops(self, function: Function, radix: int, state: list[Value]) -> list[Value]:
        """As ``_passed``, of a prime; the points become sums and differences of pairs where they are."""
        source, target, table, rest, step = state
        own, into = (Points(pointer, self.kind, self.lanes) for pointer in (source, target))
        half, count = radix // 2, rest.udiv(radix)
        turns = Array(table, self.kind)
        between = function.offset(table, self.kind, 2 * half * half)
        distance = count * step

        def root(numbers: Array, place: Value) -> Point:
            cosine, sine = (function.spread(numbers.at(place * 2 + number), self.lanes) for number in (0, 1))
            return cosine, sine

        with steps(function, 0, count) as part, steps(function, 0, step) as column:
            start = part * step + column
            target_start = part * step * radix + column
            factors = Array(function.offset(between, self.kind, part * (2 * (radix - 1))), self.kind)
            first = own.at(start)

            def pair(number: Value, total: list[Value]) -> list[Value]:
                places = [start + number * distance, start + (function.index(radix) - number) * distance]
                one, other = map(own.at, places)
                own.put(plus(one, other), places[0])
                own.put(minus(one, other), places[1])
                return list(plus((total[0], total[1]), plus(one, other)))

            real, imaginary = folded(function, function.index(1), half + 1, list(first), pair)
            into.put((real, imaginary), target_start)
            with steps(function, 0, half, _AT_ONCE) as block:
                results = [(block + number).minimum(half - 1) for number in range(_AT_ONCE)]

                def add(term: Value, sums: list[Value], results: list[Value] = results) -> list[Value]:
                    number = term + 1
                    (a, b), (c, d) = (
                        own.at(start + place * distance) for place in (number, function.index(radix) - number)
                    )
                    found: list[Value] = []
                    for place, result in enumerate(results):
                        cosine, sine = root(turns, result * half + term)
                        e, f, g, h = sums[4 * place : 4 * place + 4]
                        found += [e + a * cosine, f + b * cosine, g + c * sine, h + d * sine]
                    return found

                zero = first[0].like(0.0)
                sums = folded(function, function.index(0), half, [*first, zero, zero] * _AT_ONCE, add)
                for place, result in enumerate(results):
                    a, b, c, d = sums[4 * place : 4 * place + 4]
                    # The table has the sines of the negative angle.
                    for number, point in ((result + 1, (a - d, b + c)), (radix - 1 - result, (a + d, b - c))):
                        into.put(times(point, root(factors, number - 1)), target_start + number * step)
        following = function.offset(between, self.kind, count * (2 * (radix - 1)))
        return [target, source, following, count, step * radix]
