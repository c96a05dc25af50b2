"""Loops over arrays that are read across the order in which results are written: square by square (``squares.py``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.emit import Memory
from hloforge.pipelines.codegen.graph import Array
from hloforge.pipelines.codegen.groups import Group
from hloforge.pipelines.codegen.index import Index
from hloforge.pipelines.codegen.lang.values import Value
from hloforge.pipelines.codegen.nest_loops import sum_of
from hloforge.pipelines.codegen.squares import SIDE, Sizes, fill_square, lanes_of_square
from hloforge.pipelines.codegen.streams import StreamedLoops

# The least sides of a square that is worth its tile: transposed in registers, or else read element by element.
_LEAST_ALONG, _LEAST_ACROSS = 8, 8
# Squares in a row from which on those at its end have loops of their own.
_MANY_SQUARES = 4
# Bytes of elements of which squares of joined rows gain: wider ones are read across as fast.
_NARROW = 2
# Arrays that are kept for a square of the places, 4 KiB of f32 each.
_MOST_HELD = 2
# Of a loop: its first iteration, and the one after the last.
Ends: TypeAlias = "tuple[Value | int, Value | int]"


@dataclass(frozen=True)
class Crossing:
    """Two loops of which arrays are read in the order of one and written in that of the other.

    Attributes:
        loads: arrays that are read so, with the numbers of elements, to be kept for a square.
        lanes: of the vectors that each is transposed by; 0 for one that is read element by element.
    """

    first: Group
    second: Group
    loads: list[tuple[Array, Index]]
    lanes: list[int]


class CrossedLoops(StreamedLoops):
    """Writes such loops."""

    def _crossed(self) -> Crossing | None:
        """Arrays that are read across the order in which results are written."""
        groups = self._groups
        if len(groups) < 2 or groups[-1].size < _LEAST_ACROSS:
            return None
        place, found = self._nest.analysis(self._in_memory)
        last = place[groups[-1].dims[-1]].terms[0][0]
        # Rows too short for squares may follow each other along another loop, as those of ``x.transpose(2, 1, 0)``.
        for group in (*groups[:-1], *self._joined_groups()):
            symbol = place[group.dims[-1]].terms[0][0]
            loads = [
                (array, number)
                for array, number in dict.fromkeys(found.loads)
                if dict(number.terms).get(symbol) == 1 and abs(dict(number.terms).get(last, 0)) > 1
            ]
            known = (*place, *(self._nest.origin or ()))
            plain = {*found.fixed, *(symbol for index in known for symbol, _ in index.terms)}
            held = [load for load in loads if all(symbol in plain for symbol, _ in load[1].terms) and _is_inside(load)]
            held = held[:_MOST_HELD]
            sizes = Sizes(group.size, groups[-1].size)
            is_small = min(sizes.along, sizes.across) < SIDE
            if not loads or group.size < _LEAST_ALONG:
                continue
            lanes = [lanes_of_square(sizes, array.element, self._writer.vector_bytes) for array, _ in held]
            if not is_small or (len(held) == len(loads) and all(lanes)):
                return Crossing(group, groups[-1], held, lanes)
        return None

    def _joined_groups(self) -> list[Group]:
        """Loops that are one in the order of what is read, though not in that of the results."""
        place, found = self._nest.analysis(self._in_memory)
        groups, joined = self._groups[:-1], []
        if any(elements.size(array.element) > _NARROW for array, _ in found.loads):
            return []
        for inner in groups:
            for outer in groups if inner.size < _LEAST_ALONG else []:
                one, other = (place[group.dims[-1]].terms[0][0] for group in (outer, inner))
                factors = [dict(number.terms) for _, number in found.loads]
                if outer is not inner and all(own.get(one, 0) == inner.size * own.get(other, 0) for own in factors):
                    joined.append(Group((*outer.dims, *inner.dims), (*outer.sizes, *inner.sizes)))
        return joined

    def _by_squares(self, crossing: Crossing) -> None:
        """Two loops by squares, which are read in the order of memory first, and kept beside each other.

        Squares at the ends are smaller, and have loops of their own, because LLVM makes less of sizes it does not know.
        """
        function, first, second = self._function, crossing.first, crossing.second
        squares = -(-first.size // SIDE)
        across: Ends = 0, -(-second.size // SIDE)
        if self._share is not None and squares < self._share.count:
            # Too few rows of squares to share them out: each worker has a part of all.
            across = self._bounds(-(-second.size // SIDE))
        start, stop = self._bounds(squares)
        tiles = [self._line(array, SIDE * SIDE) for array, _ in crossing.loads]
        whole = first.size // SIDE
        if first.size % SIDE == 0 or whole < _MANY_SQUARES:
            self._rows_of_squares(crossing, tiles, (start, stop), across)
            return
        self._rows_of_squares(crossing, tiles, (start, function.index(stop).minimum(whole)), across, are_whole=True)
        self._rows_of_squares(crossing, tiles, (function.index(start).maximum(whole), stop), across)

    def _rows_of_squares(
        self,
        crossing: Crossing,
        tiles: Sequence[Memory],
        ends: Ends,
        across: Ends,
        *,
        are_whole: bool = False,
    ) -> None:
        """Some rows of squares.

        Args:
            ends: the first one, and the one after the last.
            across: the first square of each, and the one after the last.
            are_whole: whether all have as many rows of elements as others.
        """
        function, first, second = self._function, crossing.first, crossing.second
        whole, rest = divmod(second.size, SIDE)
        with function.loop(*ends) as square, self._emitter.scope():
            row = square * SIDE
            rows = SIDE if are_whole else self._within(row, first.size)
            left, right = across
            if rest and whole >= _MANY_SQUARES:
                end = function.index(right).minimum(whole) if isinstance(right, Value) else whole
                with function.loop(left, end) as square, self._emitter.scope():
                    self._square(crossing, tiles, (row, square * SIDE), (rows, SIDE))
                begin = function.index(left).maximum(whole) if isinstance(left, Value) else whole
                with function.loop(begin, right), self._emitter.scope():
                    self._square(crossing, tiles, (row, function.index(whole * SIDE)), (rows, rest))
                return
            with function.loop(left, right) as square, self._emitter.scope():
                column = square * SIDE
                self._square(crossing, tiles, (row, column), (rows, self._within(column, second.size)))

    def _square(
        self,
        crossing: Crossing,
        tiles: Sequence[Memory],
        begin: tuple[Value, Value],
        extent: tuple[Value | int, Value | int],
    ) -> None:
        """A square of places: its first row and column, and how many there are of each."""
        function, first, second = self._function, crossing.first, crossing.second
        (row, column), (rows, columns) = begin, extent

        def enter(inner_row: Value, inner_column: Value) -> Value:
            """Be at a place of the square; its number there."""
            self._enter(first, sum_of(row, first.size, inner_row))
            self._enter(second, sum_of(column, second.size, inner_column))
            return inner_row * SIDE + inner_column

        for tile, (array, load), lanes in zip(tiles, crossing.loads, crossing.lanes, strict=True):

            def number(inner_row: Value, inner_column: Value, load: Index = load) -> Value:
                with self._emitter.scope():
                    enter(inner_row, inner_column)
                    return self._emitter.value(self._here(load))

            if lanes:
                memory, sizes = self._emitter.memory(array), Sizes(first.size, second.size)
                stride = self._stride(load, second)
                fill_square(function, tile, memory, sizes, lanes, (rows, columns), stride, number)
                continue
            with function.loop(0, columns) as inner_column, function.loop(0, rows) as inner_row:
                value = self._emitter.memory(array).load(number(inner_row, inner_column))
                tile.store(value, inner_row * SIDE + inner_column)
        with (
            function.loop(0, rows) as inner_row,
            self._emitter.scope(),
            function.loop(0, columns) as inner_column,
            self._emitter.scope(),
        ):
            place = enter(inner_row, inner_column)
            for tile, (array, load) in zip(tiles, crossing.loads, strict=True):
                held = tile.load(place)
                self._emitter.known((array, self._here(load)), held)
            self._store_maps()

    def _stride(self, number: Index, group: Group) -> int:
        """How far apart in memory two elements are that follow each other along a group."""
        place, _ = self._nest.analysis(self._in_memory)
        return dict(number.terms)[place[group.dims[-1]].terms[0][0]]

    def _within(self, start: Value, size: int) -> Value | int:
        """How many iterations of a square there are."""
        if size % SIDE == 0:
            return SIDE
        return min(size, SIDE) if size <= SIDE else (self._function.index(size) - start).minimum(SIDE)


def _is_inside(load: tuple[Array, Index]) -> bool:
    """Whether an array has all the elements that are read, even where a condition says that none is, as in padding."""
    array, number = load
    return number.low >= 0 and number.high < math.prod(array.shape)
