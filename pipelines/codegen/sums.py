"""Loops of reductions: sums in registers or in lines, added up in chains of limited length (``chains.py``).

Reductions along the last dimension carry their sums in registers, which LLVM makes vectors of. Reductions along outer
dimensions alone keep a line of sums in the first-level cache, so that memory is read in its order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from hloforge.pipelines.codegen import index as places
from hloforge.pipelines.codegen.chains import LONGEST, Terms, cut
from hloforge.pipelines.codegen.choices import is_choice
from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.emit import Memory, parts
from hloforge.pipelines.codegen.extremes import Keys
from hloforge.pipelines.codegen.groups import Group
from hloforge.pipelines.codegen.index import Index, Symbol
from hloforge.pipelines.codegen.lang.functions import UNROLLED
from hloforge.pipelines.codegen.lang.values import Value
from hloforge.pipelines.codegen.nest_loops import element_of, segment_index, sum_of
from hloforge.pipelines.codegen.row_blocks import is_float_sum, is_sum
from hloforge.pipelines.codegen.row_trees import RowTreeLoops
from hloforge.pipelines.codegen.segments import Segment

# Rows that are added to a line of sums at once, if they cost no more together, in sums.
_ROWS_AT_ONCE, _MOST_AT_ONCE = 4, 40
# Bytes of a line of sums: a quarter of the smallest first-level cache.
_LINE = 8192
# Terms of a sum that is written out, and those of one that is if they cost little, in sums.
_FEW_TERMS, _MOST_TERMS, _MOST_WRITTEN = 8, 32, 128
# Columns, in vectors, from which on a rest of a vector costs little.
_FEW_VECTORS = 4
# Terms of a choice between two pairs that LLVM makes vectors of, where they are written out.
_FEW_CHOICES = 4
# Columns whose sums over rows are in registers, those of extremes of floats, and how many rows there are at least.
_FEW_COLUMNS, _FEW_EXTREMES, _ROWS = 4, 8, 16
# Lanes of a vector: dear terms of rows of so many, or a multiple, leave none to be computed one by one.
_LINE_OF_LANES = 16
# Sums that the terms of short rows cost before they are computed by blocks.
DEAR = 12
# Lanes of a reduction that LLVM makes no vectors of: enough for the latency of a few operations, or one vector. Lanes
# are combined one after the other, so that a row has some times as many elements.
_LANES, _FEW_LANES, _ROUNDS = 64, 16, 4
# Of a loop that is one of parts of a group: the piece of the group, its first place and the one after its last.
Limits: TypeAlias = "dict[Group, tuple[Segment, Value, Value]]"


@dataclass(frozen=True)
class _Piece:
    """A loop over a group, so many places at once.

    Attributes:
        group: None for no loop.
        begins: whether sums of floats begin anew inside, and are added to those outside.
    """

    group: Group | None
    step: int = 1
    begins: bool = False


class SumLoops(RowTreeLoops):
    """Writes the reductions of a nest."""

    def _by_sums(self, reduced: Sequence[Group], columns: Group | None = None) -> None:
        """Reductions with sums in registers.

        Args:
            columns: a few that follow each other in memory, each of which has sums.
        """
        reductions = self._nest.reductions
        keys = self._keys = Keys(reductions, self._writer.vector_bytes)
        count = columns.size if columns else 1

        def each(body: Callable[..., list[Value]], *values: list[Value]) -> list[Value]:
            """Do something for the sums of each column."""
            found: list[Value] = []
            for column in range(count):
                size = len(values[0]) // count if values else 0
                own = [one[column * size : (column + 1) * size] for one in values]
                with self._emitter.scope():
                    if columns:
                        self._enter(columns, places.constant(column))
                    found += body(*own)
            return found

        def starts() -> list[Value]:
            found = [(op, value) for op in reductions for element in self._starts(op) for value in parts(element)]
            return [keys.key(op, value) if op in keys else value for op, value in found]

        def add(carried: list[Value]) -> list[Value]:
            self._store_maps()
            return self._combined(carried)

        def store(carried: list[Value]) -> list[Value]:
            results, number = iter(carried), self._result_number()
            for op in reductions:
                for result in op.results:
                    made = keys.value(next(results)) if op in keys else element_of(result.element, results)
                    self._store(result, made, number)
            return []

        def loops(pieces: Sequence[_Piece], limits: Limits, carried: list[Value]) -> list[Value]:
            if not pieces:
                return each(add, carried)
            piece, *rest = pieces
            if piece.begins:
                made = loops([replace(piece, begins=False), *rest], limits, each(self._begun, carried))
                return each(self._with_parts, carried, made)
            group = piece.group
            if group is None:
                return loops(rest, limits, carried)
            if group in limits:
                segment, start, stop = limits[group]
                return over(segment, piece, rest, limits, (start, stop), carried)
            segments = self._segments(group)
            if not rest and len(segments) == 1 and (lanes := self._lanes_of_choice(group)):
                return self._by_lanes(group, lanes, carried)
            for segment in segments:
                with self._cutting(self._is_cutting and not segment.is_border):
                    carried = over(segment, piece, rest, limits, (segment.start, segment.stop), carried)
            return carried

        def over(
            segment: Segment,
            piece: _Piece,
            rest: Sequence[_Piece],
            limits: Limits,
            ends: tuple[Value | int, Value | int],
            carried: list[Value],
        ) -> list[Value]:
            group, function = piece.group, self._function
            assert group is not None
            if segment.size == 1 and piece.step == 1:
                with self._emitter.scope():
                    self._enter(group, places.constant(segment.start))
                    return loops(rest, limits, carried)
            is_written = self._is_short(segment.size * math.prod(one.group.size for one in rest if one.group))
            is_written = is_written and (bool(rest) or not self._is_plain(group))
            hints = UNROLLED if is_written else ""
            loop = function.loop(*ends, piece.step, carried=carried, hints=hints)
            with loop as (counter, values), self._emitter.scope():
                if piece.step > 1:
                    last: Value = counter + piece.step
                    if isinstance(ends[0], Value) or (segment.stop - segment.start) % piece.step:
                        last = last.minimum(ends[1])
                    within = {**limits, group: (segment, counter, last)}
                    loop.next(loops(rest, within, values))
                else:
                    self._enter(group, segment_index(counter, segment))
                    loop.next(loops(rest, limits, values))
            return loop.results

        each(store, loops(self._pieces_of(reduced, are_vectors=columns is not None), {}, each(starts)))

    def _pieces_of(self, reduced: Sequence[Group], *, are_vectors: bool = False) -> list[_Piece]:
        """Loops over groups that are summed, cut so that no sum of floats adds many numbers one after the other.

        Args:
            are_vectors: whether LLVM makes vectors of the sums in any case.
        """
        if not any(map(is_float_sum, self._nest.reductions)):
            return [_Piece(group) for group in reduced]
        # Vectors of a loop that is one have a sum for each lane.
        is_plain = len(reduced) > 0 and self._groups[-1] is reduced[-1] and self._is_plain(reduced[-1])
        lanes = self._lanes if is_plain or are_vectors else 1
        sizes = [*(group.size for group in reduced[:-1]), *(-(-group.size // lanes) for group in reduced[-1:])]
        chains = cut([Terms(size, size, ()) for size in sizes], 1, LONGEST)
        found: list[_Piece] = []
        for number, chain in enumerate(chains):
            own = [
                _Piece(
                    reduced[one.loop], one.step * lanes if one.loop == len(reduced) - 1 and one.step > 1 else one.step
                )
                for one in chain
            ]
            if number and not own:
                own = [_Piece(None)]
            if number:
                own[0] = replace(own[0], begins=True)
            found += own
        return found

    def _is_short(self, terms: int) -> bool:
        """Whether a sum of so many terms is written out, so that LLVM makes vectors of the loop around it."""
        _, found = self._nest.analysis(self._in_memory)
        return terms <= _FEW_TERMS or (terms <= _MOST_TERMS and terms * found.cost <= _MOST_WRITTEN)

    def _is_plain(self, group: Group) -> bool:
        """Whether a reduction reads memory in its order, and is a sum: LLVM makes vectors of its terms."""
        place, found = self._nest.analysis(self._in_memory)
        if group.size <= _FEW_TERMS or (found.cost >= DEAR and group.size % _LINE_OF_LANES):
            return False
        symbol = place[group.dims[-1]].terms[0][0]
        factors = {dict(number.terms).get(symbol, 0) for _, number in found.loads}
        return factors <= {0, 1} and 1 in factors and not found.is_irregular and all(map(is_sum, self._nest.reductions))

    def _are_columns(self, columns: Group, reduced: Sequence[Group]) -> bool:
        """Whether the sums of a few columns are in registers: a line of so few is no vector."""
        reductions, rows = self._nest.reductions, math.prod(group.size for group in reduced)
        if rows < _ROWS or columns.size > _FEW_EXTREMES:
            return False
        if all(map(is_sum, reductions)):
            return columns.size <= _FEW_COLUMNS
        keys = Keys(reductions, self._writer.vector_bytes)
        return all(is_sum(op) or op in keys for op in reductions)

    def _are_lines(self, rows: Group, reduced: Sequence[Group]) -> bool:
        """Whether sums of many rows are added up at once, because what is read of rows follows each other in memory.

        So are distances of each number to each of some others, of which LLVM makes no vectors along the others.
        """
        nest = self._nest
        place, found = nest.analysis(self._in_memory)
        terms = math.prod(group.size for group in reduced)
        least = _FEW_CHOICES if any(map(is_choice, nest.reductions)) else _FEW_TERMS
        if rows.size < _LANES or terms <= least or found.conditions or found.is_irregular:
            return False
        if any(array not in nest.unstored for array in nest.maps) or (len(reduced) == 1 and self._is_plain(reduced[0])):
            return False
        row = place[rows.dims[-1]].terms[0][0]
        plain = {*found.fixed, *(index.terms[0][0] for index in place if index.terms)}
        factors = [dict(number.terms) for _, number in found.loads]
        return all(one.keys() <= plain for one in factors) and {one.get(row, 0) for one in factors} in ({0, 1}, {1})

    def _lanes_of_choice(self, group: Group) -> int:
        """Lanes of a reduction that LLVM makes no vectors of, such as an extreme with its place; 0 for other ones."""
        if not all(map(is_choice, self._nest.reductions)):
            return 0
        return next((lanes for lanes in (_LANES, _FEW_LANES) if group.size >= _ROUNDS * lanes), 0)

    def _by_lanes(self, group: Group, lanes: int, carried: list[Value]) -> list[Value]:
        """A reduction of every so many elements for each of some lanes, and then of these.

        The results of lanes are in memory, where LLVM's vectors take them from.
        """
        function, emitter, reductions = self._function, self._emitter, self._nest.reductions
        results = [result for op in reductions for result in op.results]
        lines = [self._line(result, lanes) for result in results]
        with function.loop(0, lanes) as lane, emitter.scope():
            self._enter(group, sum_of(function.index(0), group.size, lane))
            self._store_maps()
            terms = [term for op in reductions for term in self._terms(op)]
            for line, term in zip(lines, terms, strict=True):
                line.store(term, lane)
        whole = group.size // lanes * lanes
        with (
            function.loop(lanes, whole, lanes) as begin,
            emitter.scope(),
            function.loop(0, lanes) as lane,
            emitter.scope(),
        ):
            self._enter(group, sum_of(begin, group.size, lane))
            self._add_to(lines, lane)
        loop = function.loop(0, lanes, carried=carried)
        with loop as (lane, values), emitter.scope():
            loop.next(self._joined(values, [line.load(lane) for line in lines]))
        if whole == group.size:
            return loop.results
        rest = function.loop(whole, group.size, carried=loop.results)
        with rest as (counter, values), emitter.scope():
            self._enter(group, counter)
            self._store_maps()
            rest.next(self._combined(values))
        return rest.results

    def _by_lines(self, last: Group, reduced: Sequence[Group]) -> None:
        """Reductions with a line of sums in memory."""
        function, reductions = self._function, self._nest.reductions
        results = [result for op in reductions for result in op.results]
        total = sum(elements.size(result.element) for result in results)
        length = min(last.size, max(_LINE // total, 16))
        lines = [self._line(result, length) for result in results]
        first, end = self._bounds(last.size)
        with function.loop(first, end, length) as begin, self._emitter.scope():
            stop: Value | int = length
            if last.size % length or isinstance(end, Value):
                # Compared as a whole, because a short line is the exception.
                stop = (function.index(end) - begin).minimum(length)
            with function.loop(0, stop) as column, self._emitter.scope():
                starts = [element for op in reductions for element in self._starts(op)]
                for line, element in zip(lines, starts, strict=True):
                    line.store(element, column)
            self._add_lines(self._pieces_of(reduced), {}, lines, begin, stop, last, length)
            with function.loop(0, stop) as column, self._emitter.scope():
                self._enter_column(last, begin, column)
                number = self._result_number()
                for line, result in zip(lines, results, strict=True):
                    self._store(result, line.load(column), number)

    def _add_lines(
        self,
        pieces: Sequence[_Piece],
        limits: Mapping[Group, tuple[Value | int, Value | int]],
        lines: Sequence[Memory],
        begin: Value,
        stop: Value | int,
        last: Group,
        length: int,
    ) -> None:
        if not pieces:
            for first, end in self._vector_pieces(stop):
                with self._function.loop(first, end) as column, self._emitter.scope():
                    self._enter_column(last, begin, column)
                    self._add_to(lines, column)
            return
        piece, *rest = pieces
        if piece.begins:
            inner = self._begun_lines(lines, stop, length)
            self._add_lines([replace(piece, begins=False), *rest], limits, inner, begin, stop, last, length)
            self._add_parts(lines, inner, stop)
            return
        group = piece.group
        if group is None:
            self._add_lines(rest, limits, lines, begin, stop, last, length)
            return
        start, end = limits.get(group, (0, group.size))
        if piece.step > 1:
            with self._function.loop(start, end, piece.step) as counter:
                reached: Value = counter + piece.step
                if isinstance(start, Value) or group.size % piece.step:
                    reached = reached.minimum(end)
                within = {**limits, group: (counter, reached)}
                self._add_lines(rest, within, lines, begin, stop, last, length)
            return
        if not rest and self._adds_several():
            function = self._function
            whole: Value | int
            if isinstance(start, int) and isinstance(end, int):
                whole = end - (end - start) % _ROWS_AT_ONCE
            else:
                count = function.index(end) - function.index(start)
                whole = function.index(start) + (count - count.urem(_ROWS_AT_ONCE))
            self._add_several(group, (start, whole), lines, begin, stop, last)
            start = whole
        with self._function.loop(start, end) as counter, self._emitter.scope():
            self._enter(group, counter)
            self._add_lines(rest, limits, lines, begin, stop, last, length)

    def _over_vectors(self, groups: Sequence[Group], body: Callable[[], None]) -> None:
        """Loops over groups, the last of which has short sums inside that LLVM makes vectors of."""
        columns = groups[-1] if groups else None
        is_shared = self._share is not None and len(groups) == 1
        if columns is None or columns is not self._groups[-1] or columns.size < self._lanes or is_shared:
            self._over(groups, body)
            return
        if len(self._segments(columns)) > 1:
            self._over(groups, body)
            return

        def over_columns() -> None:
            for first, end in self._vector_pieces(columns.size):
                with self._function.loop(first, end) as column, self._emitter.scope():
                    self._enter(columns, column)
                    body()

        self._over(groups[:-1], over_columns)

    def _vector_pieces(self, stop: Value | int) -> list[tuple[int, Value | int]]:
        """A loop over columns as loops of whole vectors: LLVM computes the rest of a vector element by element."""
        if isinstance(stop, Value) or stop > _FEW_VECTORS * self._lanes:
            return [(0, stop)]
        found: list[tuple[int, Value | int]] = []
        first, lanes = 0, self._lanes
        while first < stop:
            size = (stop - first) // lanes * lanes if lanes > 2 else stop - first
            if size:
                found.append((first, first + size))
            first, lanes = first + size, lanes // 2
        return found

    def _adds_several(self) -> bool:
        """Whether some rows at once are added to a line."""
        cost = self._nest.analysis(self._in_memory)[1].cost
        return cost * _ROWS_AT_ONCE <= _MOST_AT_ONCE and not self._nest.maps

    def _add_several(
        self,
        group: Group,
        rows: tuple[Value | int, Value | int],
        lines: Sequence[Memory],
        begin: Value,
        stop: Value | int,
        last: Group,
    ) -> None:
        """Add rows, some at once: a line is read and written less often, and more is on its way from memory.

        Sums of floats are first those of the rows, which makes chains shorter.
        """
        function, emitter = self._function, self._emitter
        with function.loop(*rows, _ROWS_AT_ONCE) as counter, emitter.scope():
            for first, end in self._vector_pieces(stop):
                with function.loop(first, end) as column, emitter.scope():
                    self._enter_column(last, begin, column)
                    before = [part for line in lines for part in parts(line.load(column))]
                    values = self._begun(before)
                    for row in range(_ROWS_AT_ONCE):
                        with emitter.scope():
                            most = max(group.size - _ROWS_AT_ONCE, 0)
                            self._enter(group, Index(((Symbol(most, value=counter), 1),), row))
                            values = self._combined(values)
                    given = iter(self._with_parts(before, values))
                    for line in lines:
                        line.store(element_of(line.element, given), column)

    def _enter_column(self, last: Group, begin: Value, column: Value) -> None:
        self._enter(last, sum_of(begin, last.size, column) if not begin.is_constant else column)
