"""Loops over places: in which order they run.

Reductions are in ``sums.py``; here are the order of loops, squares of what is read across, and blocks of short rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from hloforge.pipelines.codegen import index as places
from hloforge.pipelines.codegen.chains import LONGEST
from hloforge.pipelines.codegen.choices import is_choice
from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.emit import Memory, parts
from hloforge.pipelines.codegen.evaluate import Condition
from hloforge.pipelines.codegen.graph import Array
from hloforge.pipelines.codegen.groups import Group, factors_of
from hloforge.pipelines.codegen.index import Index, Symbol
from hloforge.pipelines.codegen.lang.functions import UNROLLED
from hloforge.pipelines.codegen.lang.values import I8, Value
from hloforge.pipelines.codegen.nest_loops import element_of, segment_index, sum_of
from hloforge.pipelines.codegen.row_blocks import RowBlocks, is_float_sum, is_orderless, least_blocks, row_blocks
from hloforge.pipelines.codegen.segments import Segment
from hloforge.pipelines.codegen.selected_rows import SelectedRows, selected_rows
from hloforge.pipelines.codegen.squares import SIDE, Held, Loop, Sizes, fill_square, short_rows
from hloforge.pipelines.codegen.streamed_squares import StreamedSquares
from hloforge.pipelines.codegen.sums import DEAR


class NestWriter(StreamedSquares):
    """Writes a nest."""

    def write(self) -> None:
        nest = self._nest
        if 0 in nest.shape:
            self._write_empty()
            return
        if not nest.reductions:
            crossed = self._crossed()
            blocks = self._row_blocks() if crossed is None else None
            selected = self._selected_rows() if crossed is None and blocks is None else None
            if blocks is not None:
                self._over(self._groups[:-2], partial(self._by_row_blocks, blocks))
            elif selected is not None:
                self._over(self._groups[: -selected.inner - 1], partial(self._by_selected_rows, selected))
            elif crossed is None and (streamed := self._streamed()):
                self._over(self._groups[:-1], partial(self._by_streams, streamed))
                self._function.fence()
            elif crossed is None:
                self._over(self._groups, self._store_maps)
            else:
                dims = {*crossed.first.dims, *crossed.second.dims}
                rest = [group for group in self._groups if dims.isdisjoint(group.dims)]
                if self._are_panels(crossed):
                    self._over(rest, partial(self._by_panels, crossed))
                    self._function.fence()
                else:
                    self._over(rest, lambda: self._by_squares(crossed))
            return
        kept = [group for group in self._groups if group.dims[0] not in nest.dims]
        reduced = [group for group in self._groups if group.dims[0] in nest.dims]
        if kept and self._groups[-1] is kept[-1] and not self._is_short(math.prod(group.size for group in reduced)):
            blocks = self._row_blocks() if len(reduced) == 1 else None
            if blocks is not None:
                self._over(kept[:-1], partial(self._sums_by_row_blocks, blocks))
            elif self._are_columns(kept[-1], reduced):
                self._over(kept[:-1], lambda: self._by_sums(reduced, kept[-1]))
            else:
                self._over(kept[:-1], lambda: self._by_lines(kept[-1], reduced))
        elif self._are_sum_tiles(kept, reduced):
            self._over(kept[:-2], partial(self._by_sum_tiles, kept[-2], kept[-1], reduced[0]))
        elif self._are_row_trees(kept, reduced):
            self._over(kept[:-1], partial(self._by_row_trees, kept[-1], reduced[0]))
        elif self._are_extremes(reduced):
            self._over(kept, lambda: self._by_vectors(reduced))
        elif kept and self._are_lines(kept[-1], reduced):
            self._over(kept[:-1], lambda: self._by_lines(kept[-1], reduced))
        elif self._are_apart(reduced):
            self._over(kept, lambda: self._by_sums_apart(reduced))
        elif self._are_row_sums(reduced):
            self._over(kept, partial(self._by_row_sums, reduced[0]))
        else:
            # Rows of a short sum that are added up are no rows whose elements are.
            is_of_rows = len(reduced) == 1 and self._groups[-1] is reduced[0]
            is_plain = is_of_rows and self._is_plain(reduced[0])
            held = self._short_rows() if kept and is_of_rows and not is_plain and not nest.maps else None
            blocks = self._row_blocks() if kept and is_of_rows and not is_plain else None
            if held is not None:
                self._over(kept[:-1], partial(self._sums_of_short_rows, held))
            elif blocks is not None:
                self._over(kept[:-1], partial(self._row_sums_by_blocks, blocks))
            else:
                self._over_vectors(kept, lambda: self._by_sums(reduced))

    def _write_empty(self) -> None:
        """Reductions of nothing: their initial values."""
        nest = self._nest
        if not nest.reductions:
            return
        shape = tuple(size for d, size in enumerate(nest.shape) if d not in nest.dims)
        if 0 in shape:
            return
        counter = math.prod(shape)
        with self._function.loop(0, counter) as number, self._emitter.scope():
            for op in nest.reductions:
                for result, value in zip(op.results, self._starts(op), strict=True):
                    memory = self._memory(result)
                    assert memory is not None
                    memory.store(value, number)

    def _short_rows(self) -> list[Held] | None:
        """What is read of rows that are added up, several at once."""
        place, found = self._nest.analysis(self._in_memory)
        rows, columns = (Loop(group.dims[-1], group.size) for group in self._groups[-2:])
        are_choices = all(map(is_choice, self._nest.reductions))
        return short_rows(place, found, rows, columns, self._writer.vector_bytes, are_choices=are_choices)

    def _sums_of_short_rows(self, held: Sequence[Held]) -> None:
        """Reductions of rows: a line of sums, one for each of some rows, which are read transposed."""
        function, emitter, (rows, columns) = self._function, self._emitter, self._groups[-2:]
        results = [result for op in self._nest.reductions for result in op.results]
        lines = [self._line(result, SIDE) for result in results]
        tiles = [self._line(one.array, max(columns.size, one.lanes) * SIDE) for one in held]
        start, stop = self._bounds(-(-rows.size // SIDE))
        with function.loop(start, stop) as square, emitter.scope():
            # The last rows are taken together with some before them, so that all loops have whole vectors.
            first = (square * SIDE).minimum(rows.size - SIDE)

            def enter(row: Value, column: Value | Index) -> None:
                self._enter(rows, sum_of(first, rows.size, row))
                self._enter(columns, column)

            for tile, one in zip(tiles, held, strict=True):

                def number(column: Value, row: Value, load: Index = one.number) -> Value:
                    with emitter.scope():
                        enter(row, column)
                        return emitter.value(self._here(load))

                memory, sizes = emitter.memory(one.array), Sizes(columns.size, rows.size)
                fill_square(function, tile, memory, sizes, one.lanes, (columns.size, SIDE), one.stride, number)

            with function.loop(0, SIDE) as row, emitter.scope():
                enter(row, places.ZERO)
                starts = [element for op in self._nest.reductions for element in self._starts(op)]
                for line, element in zip(lines, starts, strict=True):
                    line.store(element, row)
            with (
                function.loop(0, columns.size) as column,
                emitter.scope(),
                function.loop(0, SIDE) as row,
                emitter.scope(),
            ):
                enter(row, column)
                for tile, one in zip(tiles, held, strict=True):
                    emitter.known((one.array, self._here(one.number)), tile.load(column * SIDE + row))
                self._add_to(lines, row)
            with function.loop(0, SIDE) as row, emitter.scope():
                enter(row, places.ZERO)
                to = self._result_number()
                for line, result in zip(lines, results, strict=True):
                    self._store(result, line.load(row), to)

    def _row_blocks(self) -> RowBlocks | None:
        """Rows that are taken together: of maps, or those that reductions add up."""
        groups, nest = self._groups, self._nest
        if len(groups) < 2:
            return None
        rows, columns = groups[-2:]
        adds_rows = bool(nest.reductions) and rows.dims[0] in nest.dims
        if nest.reductions:
            if adds_rows == (columns.dims[0] in nest.dims):
                return None
            if adds_rows and not all(is_orderless(op) or is_choice(op) for op in nest.reductions):
                return None
            if adds_rows and self._share is not None and len(groups) == 2:
                # Columns are shared out.
                return None
            if not adds_rows and nest.analysis(self._in_memory)[1].cost < DEAR:
                return None
        place, found = nest.analysis(self._in_memory)
        uses = [factors for index in found.uses for factors in factors_of(index)]
        loops = (rows.dims[-1], rows.size), (columns.dims[-1], columns.size)
        if not adds_rows:
            return row_blocks(place, found, *loops, uses, adds_rows=False, are_dear=bool(nest.reductions))
        blocks = least_blocks(columns.size, self._lanes, nest.reductions)
        return row_blocks(place, found, *loops, uses, adds_rows=True, blocks=blocks)

    def _selected_rows(self) -> SelectedRows | None:
        """Short rows with borders that are taken together."""
        nest = self._nest
        if len(self._groups) < 2 or nest.into is not None or nest.origin is not None:
            return None
        place, found = nest.analysis(self._in_memory)
        again = partial(nest.accesses, memory=self._in_memory)
        return selected_rows(place, found, self._groups, nest.shape, again)

    def _by_selected_rows(self, selected: SelectedRows) -> None:
        function, emitter = self._function, self._emitter
        rows, inner = self._groups[-selected.inner - 1], self._groups[-selected.inner :]
        start, stop = self._bounds(rows.size)
        lines = self._flags(selected)
        for first, last in ((0, selected.first), (selected.last, rows.size)):
            if first < last:
                with self._cutting(False), self._iterations(Segment(first, last, True), rows, start, stop):
                    self._over(inner, self._store_maps)
        segment = Segment(selected.first, selected.last, False)
        begin = function.index(start).maximum(segment.start)
        end = function.index(stop).minimum(segment.stop)
        with function.loop(begin, end, selected.rows) as row, emitter.scope():
            count = (end - row).minimum(selected.rows)
            self._enter(rows, segment_index(row, segment))
            with function.loop(0, count * selected.size) as number, emitter.scope():
                # The innermost counter runs through all rows of the block, whose elements follow each other.
                for group in inner:
                    value = number if group is inner[-1] else function.index(0)
                    self._enter(group, Index(((Symbol(group.size - 1, value=value), 1),)))
                for line, (d, condition) in zip(lines, selected.conditions, strict=True):
                    index = self._counters[d] * condition.index.terms[0][1] + condition.index.offset
                    flag = line.load(number)
                    assert isinstance(flag, Value)
                    emitter.flags[index, condition.limit, condition.step] = flag.compare("ne", 0)
                self._store_maps()
                emitter.flags.clear()

    def _flags(self, selected: SelectedRows) -> list[Memory]:
        """Where in a block of short rows each condition holds."""
        function, emitter = self._function, self._emitter
        length = selected.rows * selected.size
        self._writer.stack += length * len(selected.conditions)
        lines = [Memory(function.stack(I8, length), I8, "") for _ in selected.conditions]
        dims = [d for group in self._groups[-selected.inner :] for d in group.dims]
        sizes = tuple(self._nest.shape[d] for d in dims)
        with function.loop(0, selected.size) as element, emitter.scope():
            own = dict(zip(dims, places.delinear(places.counter(selected.size, element), sizes), strict=True))
            for line, (d, condition) in zip(lines, selected.conditions, strict=True):
                index = own[d] * condition.index.terms[0][1] + condition.index.offset
                holds = emitter.holds(Condition(index, condition.limit, condition.step))
                byte = holds.as_(I8, signed=False)
                with function.loop(0, selected.rows) as row:
                    line.store(byte, row * selected.size + element)
        return lines

    def _repeated(self, blocks: RowBlocks) -> list[Memory]:
        """What is read of each column alone, for each element of a block; and lines for what is read of rows."""
        rows, columns = self._groups[-2:]
        lines = [self._line(array, blocks.size) for array, _ in blocks.repeated]
        if lines:
            with self._function.loop(0, blocks.columns) as column, self._emitter.scope():
                self._enter(rows, places.ZERO)
                self._enter(columns, column)
                for line, (array, number) in zip(lines, blocks.repeated, strict=True):
                    value = self._emitter.load(array, self._here(number))
                    with self._function.loop(0, blocks.rows) as row:
                        line.store(value, row * blocks.columns + column)
        # The last row is repeated for whole vectors, too.
        return lines + [self._line(array, blocks.size + self._vector_of(array)) for array, _ in blocks.spread]

    def _vector_of(self, array: Array) -> int:
        """Elements of a vector."""
        return self._writer.vector_bytes // elements.size(array.element)

    def _spread(self, blocks: RowBlocks, lines: Sequence[Memory], first: Value, count: Value | int) -> None:
        """Repeat what is read of so many rows for their columns."""
        if not blocks.spread:
            return
        rows, columns = self._groups[-2:]
        with self._function.loop(0, count) as row, self._emitter.scope():
            self._enter(rows, sum_of(first, rows.size, row))
            self._enter(columns, places.ZERO)
            values = [self._emitter.load(array, self._here(number)) for array, number in blocks.spread]
            for line, value, (array, _) in zip(lines[len(blocks.repeated) :], values, blocks.spread, strict=True):
                # By whole vectors: the next row is written over what is too much.
                lanes = self._vector_of(array)
                with self._function.loop(0, -(-blocks.columns // lanes) * lanes) as column:
                    line.store(value, row * blocks.columns + column)

    def _enter_element(self, blocks: RowBlocks, lines: Sequence[Memory], start: Value, number: Value) -> None:
        """Be at an element of the block that begins with an element."""
        rows, columns = self._groups[-2:]
        both = Group((*rows.dims, *columns.dims), (*rows.sizes, *columns.sizes))
        self._enter(both, sum_of(start, both.size, number))
        for line, (array, load) in zip(lines, (*blocks.repeated, *blocks.spread), strict=True):
            self._emitter.known((array, self._here(load)), line.load(number))

    @contextmanager
    def _row_block(self, blocks: RowBlocks, lines: Sequence[Memory]) -> Iterator[tuple[Value, Value, Value | int]]:
        """A loop over blocks: a block's first element, its first row and how many rows it has."""
        function = self._function
        first, last = self._bounds(-(-blocks.total // blocks.rows))
        with function.loop(first, last) as block, self._emitter.scope():
            row = block * blocks.rows
            count: Value | int = blocks.rows
            if blocks.total % blocks.rows:
                count = (function.index(blocks.total) - row).minimum(blocks.rows)
            self._spread(blocks, lines, row, count)
            yield block * blocks.size, row, count

    def _by_row_blocks(self, blocks: RowBlocks) -> None:
        lines = self._repeated(blocks)
        with (
            self._row_block(blocks, lines) as (start, _, count),
            self._function.loop(0, count * blocks.columns) as number,
            self._emitter.scope(),
        ):
            self._enter_element(blocks, lines, start, number)
            self._store_maps()

    def _row_sums_by_blocks(self, blocks: RowBlocks) -> None:
        """Reductions of rows whose terms cost more than adding them: first the terms of a block."""
        function, emitter, reductions = self._function, self._emitter, self._nest.reductions
        lines = self._repeated(blocks)
        results = [result for op in reductions for result in op.results]
        held = [self._line(result, blocks.size) for result in results]
        with self._row_block(blocks, lines) as (start, first, count):
            with function.loop(0, count * blocks.columns) as number, emitter.scope():
                self._enter_element(blocks, lines, start, number)
                self._store_maps()
                terms = [term for op in reductions for term in self._terms(op)]
                for line, term in zip(held, terms, strict=True):
                    line.store(term, number)
            with function.loop(0, count) as row, emitter.scope():
                self._enter(self._groups[-2], sum_of(first, blocks.total, row))
                starts = [part for op in reductions for element in self._starts(op) for part in parts(element)]
                loop = function.loop(0, blocks.columns, carried=starts, hints=UNROLLED)
                with loop as (column, values), emitter.scope():
                    more = [line.load(row * blocks.columns + column) for line in held]
                    loop.next(self._joined(values, more))
                totals, number = iter(loop.results), self._result_number()
                for result in results:
                    self._store(result, element_of(result.element, totals), number)

    def _sums_by_row_blocks(self, blocks: RowBlocks) -> None:
        function, emitter, reductions = self._function, self._emitter, self._nest.reductions
        repeated = self._repeated(blocks)
        results = [result for op in reductions for result in op.results]
        lines = [self._line(result, blocks.size) for result in results]
        zero = function.index(0)
        self._spread(blocks, repeated, zero, blocks.rows)
        with function.loop(0, blocks.size) as number, emitter.scope():
            self._enter_element(blocks, repeated, zero, number)
            self._store_maps()
            terms = [term for op in reductions for term in self._terms(op)]
            for line, term in zip(lines, terms, strict=True):
                line.store(term, number)
        whole, rest = divmod(blocks.total, blocks.rows)

        def add(first: Value | int, last: Value | int, step: int, lines: Sequence[Memory]) -> None:
            if step > 1:
                with function.loop(first, last, step) as block:
                    inner = self._begun_lines(lines, blocks.size, blocks.size)
                    add(block, (block + step).minimum(last), step // LONGEST, inner)
                    self._add_parts(lines, inner, blocks.size)
                return
            with function.loop(first, last) as block, emitter.scope():
                self._spread(blocks, repeated, block * blocks.rows, blocks.rows)
                with function.loop(0, blocks.size) as number, emitter.scope():
                    self._enter_element(blocks, repeated, block * blocks.size, number)
                    self._add_to(lines, number)

        step = 1
        while any(map(is_float_sum, reductions)) and step * LONGEST < whole:
            step *= LONGEST
        add(1, whole, step, lines)
        if rest:
            self._spread(blocks, repeated, function.index(whole * blocks.rows), rest)
            with function.loop(0, rest * blocks.columns) as number, emitter.scope():
                self._enter_element(blocks, repeated, function.index(whole * blocks.size), number)
                self._add_to(lines, number)
        with function.loop(0, blocks.columns) as column, emitter.scope():
            self._enter(self._groups[-1], column)
            starts = [part for op in reductions for element in self._starts(op) for part in parts(element)]
            loop = function.loop(0, blocks.rows, carried=starts)
            with loop as (row, values), emitter.scope():
                found = self._joined(values, [line.load(row * blocks.columns + column) for line in lines])
                loop.next(found)
            totals, number = iter(loop.results), self._result_number()
            for result in results:
                self._store(result, element_of(result.element, totals), number)
