"""Singular values and vectors of real upper bidiagonal matrices by divide and conquer.

A block has a row for each singular value, and one column more unless it is the last one: the vector on its right side
that belongs to no row, and that the row between two blocks couples. With it, a merger is a secular equation whose poles
are squares (``secular.py``), the first of which is zero. Source: Gu and Eisenstat, SIAM J. Matrix Anal. Appl. 16
(1995); LAPACK "bdsdc", "lasd2", "lasd3".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from hloforge.pipelines.codegen.algorithms.arrays import Elements
from hloforge.pipelines.codegen.algorithms.matrices import folded, steps
from hloforge.pipelines.codegen.algorithms.merging import (
    COUNT,
    FIRST,
    KEPT,
    NONE,
    OPEN,
    UPPER,
    Memory,
    Merger,
    TridiagonalEigenvectors,
)
from hloforge.pipelines.codegen.algorithms.places import times
from hloforge.pipelines.codegen.algorithms.shared_out import Handed
from hloforge.pipelines.codegen.elements import memory as element_memory
from hloforge.pipelines.codegen.elements.kinds import single
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Number, Value


@dataclass(frozen=True)
class BidiagonalVectors(TridiagonalEigenvectors):
    """Singular values in descending order and vectors of both sides, one in a row."""

    _beyond: ClassVar[int] = 1
    _squared: ClassVar[bool] = True

    @property
    def _levels(self) -> int:
        return self.n.bit_length()

    @property
    def _numbers(self) -> list[int]:
        rows, values, *others = super()._numbers
        # Of the eigenvalues there are three: the last are the given diagonal.
        square = (self.n + 4) * self._side
        return [rows, values + self.n, *others, 2 * self._copy, square]

    def _memory(self, memory: Value) -> Memory:
        pointers = self._pointers(memory)
        count = len(self._numbers)
        lefts = [Elements(pointer, self.element) for pointer in pointers[count - 2 : count]]
        return replace(self._of([*pointers[: count - 2], *pointers[count:]]), lefts=lefts)

    def _blocks(self, number: Value, mergers: Value) -> tuple[Value, Value, Value]:
        n = self.n + 1
        low, high = (number * n).udiv(mergers), ((number + 1) * n).udiv(mergers) - 1
        middle = ((number * 2 + 1) * n).udiv(mergers * 2) - 1
        # Blocks of one row are between two of none.
        return low, middle.maximum(low).minimum((high - 1).maximum(low)), high

    @property
    def _more(self) -> Sequence[Callable[[Function, Merger], None]]:
        return (self._middle_column,)

    def write_both(
        self,
        function: Function,
        d: Elements,
        e: Elements,
        values: Elements,
        left: Elements,
        right: Elements,
        memory: Value,
        hand: Handed,
        rows: tuple[Number, Number] | None = None,
    ) -> None:
        """Write the loops; arguments as of ``write``, with vectors of both sides."""
        n, side = self.n, self._side
        first, last = rows or (0, self.batch)
        one = element_memory.constant(function, self.element, 1)
        with steps(function, first, last) as number:
            room = self._memory(memory)
            diagonals = [array.moved(times(number, n)) for array in (d, e)]
            with steps(function, 0, n) as place:
                room.e.put(diagonals[1].at(place), place)
                room.d.put(diagonals[0].at(place), place + 2 * n)
                room.rows.put(one, place * (side + 1))
            self._merge(function, memory, hand)
            room = self._memory(memory)
            shift = self._levels % 2
            found = room.d.moved(shift * n)
            sources = [array.moved(shift * self._copy) for array in (room.lefts[0], room.rows)]
            targets = [array.moved(times(number, n * n)) for array in (left, right)]
            value = values.moved(times(number, n))
            with steps(function, 0, n) as place:
                from_end = (place * -1) + (n - 1)
                value.put(found.at(from_end), place)
                for source, target in zip(sources, targets, strict=True):
                    function.copy(
                        target.moved(place * n).pointer, source.moved(from_end * side).pointer, n * self._size
                    )

    def _deflate(self, function: Function, own: Merger) -> None:
        with function.if_(own.is_first):
            for which in (COUNT, FIRST, UPPER, KEPT):
                own.note(which, function.index(0))
            own.note(OPEN, function.index(NONE))
            with function.if_(own.low.compare("slt", own.high)):
                self._clear(function, own)
                largest = self._couple_rows(function, own)
                places = [
                    own.low.minimum(own.middle),
                    *((place.maximum(own.low)) for place in (own.middle - 1, own.high - 1)),
                    (own.middle + 1).minimum(own.high - 1),
                ]
                # Fourth powers do not underflow either; the matrix has numbers of about 1.
                limit = self._limit(own, [*largest, self._number(function, 2.0**-11)], places)
                is_coupled = self._couple_ends(function, own, limit) > limit
                self._sort(function, own, own.low + 1, own.middle + 1)
                with function.if_(is_coupled):
                    self._take(own, own.middle)
                with function.if_(is_coupled ^ 1):
                    self._keep(function, own, own.middle)
                with steps(function, own.low + 1, own.high) as place:
                    row = own.memory.order.at(place)
                    small = own.memory.z.number(row).call("fabs") <= limit
                    self._choose(function, own, row, (is_coupled ^ 1) | small, limit)
                self._take_last(function, own)
                with function.if_(own.fact(COUNT).compare("sgt", 1)):
                    # Poles are apart.
                    second = own.memory.poles.number(own.region + 1)
                    own.memory.poles.put(second.call("maxnum", limit * 0.5), own.region + 1)
                self._by_kinds(function, own)

    def _clear(self, function: Function, own: Merger) -> None:
        middle, after = own.middle, own.middle + 1
        right, left = own.read, own.sides[1][0]
        self._clear_side(function, right, (own.low, after), (after, own.high + 1))
        self._clear_side(function, right, (after, own.high + 1), (own.low, after))
        self._clear_side(function, left, (own.low, middle), (middle, own.high + 1))
        self._clear_side(function, left, (after, own.high), (own.low, after))
        self._clear_side(function, left, (middle, after), (own.low, own.high + 1))
        left.put(self._number(function, 1), middle * (self._side + 1))
        self._note_kinds(function, own, after)

    def _couple_rows(self, function: Function, own: Merger) -> list[Value]:
        """The middle row by the vectors of both sides; the sizes of its two numbers."""
        room, side, n = own.memory, self._side, self.n
        d, e = room.d.number(own.middle + 2 * n), room.e.number(own.middle)
        after = own.middle + 1
        ends = after, own.high + 1
        for rows, column, factor in (((own.low, ends[0]), own.middle, d), ((after, ends[1]), after, e)):
            with steps(function, *rows) as row:
                room.z.put(own.read.number(row * side + column) * factor, row)
        room.coupling.put(self._number(function, 1), own.number)
        own.d.put(self._number(function, 0), own.middle)
        return [d.call("fabs"), e.call("fabs")]

    def _couple_ends(self, function: Function, own: Merger, limit: Value) -> Value:
        """Of the two vectors without rows one is rotated into the equation, as the pole at zero, the other out of it.

        Returns:
            the largest number that couples the rows. If it is small, the row between the blocks is taken for zero.
        """
        room, middle, high = own.memory, own.middle, own.high
        room.kinds.put(function.index(1), middle)
        with function.if_(high.compare("slt", self.n)):
            room.kinds.put(function.index(2), middle)
            one, other = room.z.number(middle), room.z.number(high)
            size = (one * one + other * other).call("sqrt")
            is_small = size <= limit
            c, s = is_small.where(one.like(1.0), one / size), is_small.where(one.like(0.0), other / size)
            room.z.put(size, middle)
            self._rotate(function, own, own.read, (middle, high), (c, s))

        def turn(row: Value, state: list[Value]) -> list[Value]:
            return [state[0].call("maxnum", room.z.number(row).call("fabs"))]

        (largest,) = folded(function, own.low, high, [self._number(function, 0)], turn)
        z = room.z.number(middle)
        room.z.put((z.call("fabs") <= limit).where(limit, z), middle)
        return largest

    def _is_close(self, values: tuple[Value, Value], c: Value, s: Value, limit: Value) -> Value:
        return (values[1] - values[0]).call("fabs") <= limit

    def _change(
        self, own: Merger, rows: tuple[Value, Value], values: tuple[Value, Value], turn: tuple[Value, Value]
    ) -> None:
        """Nothing: both are as good as equal."""

    def _after(self, pole: Value, distance: Value) -> Value:
        return (pole * pole + distance).call("sqrt")

    def _root(self, origin: Value, offset: Value) -> Value:
        square = (origin * origin + offset).call("maxnum", 0.0)
        return square.call("sqrt")

    def _make(self, function: Function, own: Merger) -> None:
        super()._make(function, own)
        with function.if_(own.is_first & own.high.compare("slt", self.n)):
            place = own.high * self._side + own.low
            size = (own.high - own.low + 1) * self._size
            function.copy(own.write.moved(place).pointer, own.read.moved(place).pointer, size)

    def _multiply(self, function: Function, own: Merger) -> None:
        after = own.middle + 1
        self._products(function, own, own.sides[0], (own.low, after), (after, own.high + 1))
        self._products(function, own, own.sides[1], (own.low, own.middle), (after, own.high))

    def _middle_column(self, function: Function, own: Merger) -> None:
        """The column of the left side's vectors that belongs to the row between the blocks."""
        room, side = own.memory, self._side
        _, write, u = own.sides[1]
        with function.if_(own.is_first):
            # Of its kind the pole at zero is the first.
            kind = room.kinds.at(own.middle.minimum(self.n - 1))
            at = kind.compare("eq", 1).where(function.index(0), own.fact(FIRST))
            with steps(function, 0, own.fact(COUNT)) as item:
                # Rows of the product have the other sign.
                value = -single(u.at((own.low + item) * side + own.low + at))
                write.put(value, room.targets.at(own.region + item) * side + own.middle)
