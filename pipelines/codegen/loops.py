"""Loops over places: in which order they run, and how sums are kept.

Reductions along the last dimension
carry their sums in registers, which LLVM makes vectors of. Reductions along outer dimensions alone keep a line of sums
in the first-level cache, so that memory is read in its order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from hloforge.pipelines.codegen import index as places
from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.elements.memory import Element
from hloforge.pipelines.codegen.emit import Emitter, Memory, parts
from hloforge.pipelines.codegen.evaluate import Place
from hloforge.pipelines.codegen.graph import Array, Op
from hloforge.pipelines.codegen.groups import Group, factors_of, groups_of
from hloforge.pipelines.codegen.index import Index, Symbol
from hloforge.pipelines.codegen.kernel_writer import KernelWriter
from hloforge.pipelines.codegen.lang.functions import UNROLLED, Function
from hloforge.pipelines.codegen.lang.values import I8, Value
from hloforge.pipelines.codegen.row_blocks import RowBlocks, is_extreme, is_orderless, is_sum, row_blocks
from hloforge.pipelines.codegen.scalars import combine
from hloforge.pipelines.codegen.segments import Segment, segments_of, whole
from hloforge.pipelines.codegen.squares import SIDE, Held, Loop, Sizes, fill_square, lanes_of_square, short_rows
from hloforge.pipelines.codegen.steps import Nest

# Rows that are added to a line of sums at once, if they cost no more together, in sums.
_ROWS_AT_ONCE, _MOST_AT_ONCE = 4, 40
# Bytes of a line of sums: a quarter of the smallest first-level cache.
_LINE = 8192
# Loops of so few iterations are written out: LLVM is asked for it, because by itself it would write out others, which
# takes most of its time.
_FEW, _FEW_TERMS = 4, 8
# Terms of a sum that is written out if they cost little, in sums.
_MOST_TERMS, _MOST_WRITTEN = 32, 128
# Lanes of a vector: dear terms of rows of so many, or a multiple, leave none to be computed one by one.
_LINE_OF_LANES = 16
# Sums that the terms of short rows cost before they are computed by blocks.
_DEAR = 12
# The least sides of a square that is worth its tile: transposed in registers, or else read element by element.
_LEAST_ALONG, _LEAST_ACROSS = 8, 8
# Arrays that are kept for a square of the places, 4 KiB of f32 each.
_MOST_HELD = 2
# Lanes of a reduction that LLVM makes no vectors of: enough for the latency of a few operations.
_LANES = 64
_CHOICES = frozenset({"compare", "select", "and", "or", "not", "maximum", "minimum"})


@dataclass(frozen=True)
class Share:
    """A part of the iterations: those of one workgroup.

    Attributes:
        number: of the workgroup.
        count: of workgroups.
    """

    number: Value
    count: int


@dataclass(frozen=True)
class _Crossing:
    """Two loops of which arrays are read in the order of one and written in that of the other.

    Attributes:
        loads: arrays that are read so, with the numbers of elements, to be kept for a square.
        lanes: of the vectors that each is transposed by; 0 for one that is read element by element.
    """

    first: Group
    second: Group
    loads: list[tuple[Array, Index]]
    lanes: list[int]


class NestWriter:
    """Writes a nest.

    Args:
        memory: where an array in memory is, in the kernel's code.
        share: the iterations of the outermost loop that run; None for all.
    """

    def __init__(
        self,
        writer: KernelWriter,
        nest: Nest,
        memory: Callable[[Array], Memory | None],
        in_memory: Callable[[Array], bool],
        share: Share | None = None,
    ) -> None:
        self._writer, self._nest, self._memory, self._share = writer, nest, memory, share
        self._function: Function = writer.function
        self._emitter = Emitter(self._function, memory)
        self._emitter.hides_infinity = any(is_extreme(op) for op in nest.reductions)
        self._in_memory = in_memory
        self._groups = [] if 0 in nest.shape else groups_of(nest, in_memory)
        self._counters: dict[int, Index] = {}
        self._pieces = self._cut()
        self._is_cutting = True

    def _cut(self) -> dict[Group, list[Segment]]:
        """The pieces of loops, where these are cut."""
        nest = self._nest
        if not self._groups:
            return {}
        place, found = nest.analysis(self._in_memory)
        if not found.conditions:
            return {}
        kept = [group for group in self._groups if not nest.reductions or group.dims[0] in nest.dims]
        loops = [(_symbol(place, group), group.size) for group in kept]
        return dict(zip(kept, segments_of(loops, found.conditions, found.cost), strict=True))

    def write(self) -> None:
        nest = self._nest
        if 0 in nest.shape:
            self._write_empty()
            return
        if not nest.reductions:
            crossed = self._crossed()
            blocks = self._row_blocks() if crossed is None else None
            if blocks is not None:
                self._over(self._groups[:-2], partial(self._by_row_blocks, blocks))
            elif crossed is None:
                self._over(self._groups, self._store_maps)
            else:
                rest = [group for group in self._groups if group not in (crossed.first, crossed.second)]
                self._over(rest, lambda: self._by_squares(crossed))
            return
        kept = [group for group in self._groups if group.dims[0] not in nest.dims]
        reduced = [group for group in self._groups if group.dims[0] in nest.dims]
        if kept and self._groups[-1] is kept[-1] and not (len(reduced) == 1 and self._is_short(reduced[0].size)):
            blocks = self._row_blocks() if len(reduced) == 1 else None
            if blocks is not None:
                self._over(kept[:-1], partial(self._sums_by_row_blocks, blocks))
            else:
                self._over(kept[:-1], lambda: self._by_lines(kept[-1], reduced))
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
                self._over(kept, lambda: self._by_sums(reduced))

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

    # Loops

    def _over(self, groups: Sequence[Group], body: Callable[[], None]) -> None:
        """Loops over groups, the first of which is shared out."""
        if not groups:
            body()
            return
        group, *rest = groups
        start, stop = self._bounds(group.size)
        for segment in self._segments(group):
            with (
                self._cutting(self._is_cutting and not segment.is_border),
                self._iterations(segment, group, start, stop),
            ):
                self._over(rest, body)

    @contextmanager
    def _iterations(self, segment: Segment, group: Group, start: Value | int, stop: Value | int) -> Iterator[None]:
        """A loop over a piece of a group, as far as it lies between two bounds."""
        function, size = self._function, segment.size
        is_shared = isinstance(start, Value)
        if size == 1 and not is_shared:
            with self._emitter.scope():
                self._enter(group, places.constant(segment.start))
                yield
            return
        first: Value | int = segment.start
        last: Value | int = segment.stop
        if is_shared:
            first, last = function.index(start).maximum(segment.start), function.index(stop).minimum(segment.stop)
        hints = UNROLLED if size <= _FEW and not is_shared else ""
        with function.loop(first, last, hints=hints) as counter, self._emitter.scope():
            self._enter(group, segment_index(counter, segment))
            yield

    def _segments(self, group: Group) -> list[Segment]:
        return self._pieces.get(group, whole(group.size)) if self._is_cutting else whole(group.size)

    @contextmanager
    def _cutting(self, is_cutting: bool) -> Iterator[None]:
        """Whether loops inside are cut."""
        before, self._is_cutting = self._is_cutting, is_cutting
        yield
        self._is_cutting = before

    def _bounds(self, size: int) -> tuple[Value | int, Value | int]:
        share, self._share = self._share, None
        if share is None:
            return 0, size
        function = self._function
        start = (share.number * size).udiv(share.count)
        stop = ((share.number + 1) * size).udiv(share.count)
        return function.index(start), function.index(stop)

    def _enter(self, group: Group, counter: Value | Index) -> None:
        """Let the places of a group be those of a counter."""
        index = counter if isinstance(counter, Index) else places.counter(group.size, counter)
        for d, part in zip(group.dims, places.delinear(index, group.sizes), strict=True):
            self._counters[d] = part

    def _place(self) -> Place:
        return tuple(self._counters[d] if size > 1 else places.ZERO for d, size in enumerate(self._nest.shape))

    def _crossed(self) -> _Crossing | None:
        """Arrays that are read across the order in which results are written."""
        groups = self._groups
        if len(groups) < 2 or groups[-1].size < _LEAST_ACROSS:
            return None
        place, found = self._nest.analysis(self._in_memory)
        last = place[groups[-1].dims[-1]].terms[0][0]
        for group in groups[:-1]:
            symbol = place[group.dims[-1]].terms[0][0]
            loads = [
                (array, number)
                for array, number in dict.fromkeys(found.loads)
                if dict(number.terms).get(symbol) == 1 and abs(dict(number.terms).get(last, 0)) > 1
            ]
            plain = {index.terms[0][0] for index in place if index.terms}
            held = [load for load in loads if all(symbol in plain for symbol, _ in load[1].terms)][:_MOST_HELD]
            sizes = Sizes(group.size, groups[-1].size)
            is_small = min(sizes.along, sizes.across) < SIDE
            if not loads or group.size < _LEAST_ALONG:
                continue
            lanes = [lanes_of_square(sizes, array.element, self._writer.vector_bytes) for array, _ in held]
            if not is_small or (len(held) == len(loads) and all(lanes)):
                return _Crossing(group, groups[-1], held, lanes)
        return None

    def _by_squares(self, crossing: _Crossing) -> None:
        """Two loops by squares, which are read in the order of memory first, and kept beside each other."""
        function, first, second = self._function, crossing.first, crossing.second
        start, stop = self._bounds(-(-first.size // SIDE))
        tiles = [self._line(array, SIDE * SIDE) for array, _ in crossing.loads]
        with function.loop(start, stop) as square, self._emitter.scope():
            row = square * SIDE
            rows = self._within(row, first.size)
            with function.loop(0, second.size, SIDE) as column, self._emitter.scope():
                columns = self._within(column, second.size)

                def enter(inner_row: Value, inner_column: Value) -> Value:
                    """Be at a place of the square; its number there."""
                    self._enter(first, _sum_of(row, first.size, inner_row))
                    self._enter(second, _sum_of(column, second.size, inner_column))
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

    def _here(self, number: Index) -> Index:
        """A number of an element in the counters of the loops that are being written."""
        place, _ = self._nest.analysis(self._in_memory)
        counters = {index.terms[0][0]: d for d, index in enumerate(place) if index.terms}
        found = places.constant(number.offset)
        for symbol, factor in number.terms:
            found = found + self._counters[counters[symbol]] * factor
        return found

    def _within(self, start: Value, size: int) -> Value | int:
        """How many iterations of a square there are."""
        if size % SIDE == 0:
            return SIDE
        return min(size, SIDE) if size <= SIDE else (self._function.index(size) - start).minimum(SIDE)

    # Short rows

    def _short_rows(self) -> list[Held] | None:
        """What is read of rows that are added up, several at once."""
        place, found = self._nest.analysis(self._in_memory)
        rows, columns = (Loop(group.dims[-1], group.size) for group in self._groups[-2:])
        return short_rows(place, found, rows, columns, self._writer.vector_bytes)

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
                self._enter(rows, _sum_of(first, rows.size, row))
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

    # Blocks of rows

    def _row_blocks(self) -> RowBlocks | None:
        """Rows that are taken together: of maps, or those that reductions add up."""
        groups, nest = self._groups, self._nest
        if len(groups) < 2:
            return None
        rows, columns = groups[-2:]
        if nest.reductions:
            adds_rows = rows.dims[0] in nest.dims
            if adds_rows == (columns.dims[0] in nest.dims):
                return None
            if adds_rows and not all(is_orderless(op) or _is_choice(op) for op in nest.reductions):
                return None
            if adds_rows and self._share is not None and len(groups) == 2:
                # Columns are shared out.
                return None
            if not adds_rows and nest.analysis(self._in_memory)[1].cost < _DEAR:
                return None
        place, found = nest.analysis(self._in_memory)
        uses = [factors for index in found.uses for factors in factors_of(index)]
        return row_blocks(place, found, (rows.dims[-1], rows.size), (columns.dims[-1], columns.size), uses)

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
        return lines + [self._line(array, blocks.size) for array, _ in blocks.spread]

    def _spread(self, blocks: RowBlocks, lines: Sequence[Memory], first: Value, count: Value | int) -> None:
        """Repeat what is read of so many rows for their columns."""
        if not blocks.spread:
            return
        rows, columns = self._groups[-2:]
        with self._function.loop(0, count) as row, self._emitter.scope():
            self._enter(rows, _sum_of(first, rows.size, row))
            self._enter(columns, places.ZERO)
            values = [self._emitter.load(array, self._here(number)) for array, number in blocks.spread]
            with self._function.loop(0, blocks.columns) as column:
                for line, value in zip(lines[len(blocks.repeated) :], values, strict=True):
                    line.store(value, row * blocks.columns + column)

    def _enter_element(self, blocks: RowBlocks, lines: Sequence[Memory], start: Value, number: Value) -> None:
        """Be at an element of the block that begins with an element."""
        rows, columns = self._groups[-2:]
        both = Group((*rows.dims, *columns.dims), (*rows.sizes, *columns.sizes))
        self._enter(both, _sum_of(start, both.size, number))
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
                self._enter(self._groups[-2], _sum_of(first, blocks.total, row))
                starts = [part for op in reductions for element in self._starts(op) for part in parts(element)]
                loop = function.loop(0, blocks.columns, carried=starts, hints=UNROLLED)
                with loop as (column, values), emitter.scope():
                    more = [line.load(row * blocks.columns + column) for line in held]
                    loop.next(self._joined(values, more))
                totals, number = iter(loop.results), self._result_number()
                for result in results:
                    self._store(result, _element(result.element, totals), number)

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
        with function.loop(1, whole) as block, emitter.scope():
            self._spread(blocks, repeated, block * blocks.rows, blocks.rows)
            with function.loop(0, blocks.size) as number, emitter.scope():
                self._enter_element(blocks, repeated, block * blocks.size, number)
                self._add_to(lines, number)
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
                self._store(result, _element(result.element, totals), number)

    def _joined(self, values: Sequence[Value], others: Sequence[Element]) -> list[Value]:
        """Sums so far, as parts, with others."""
        given, more = iter(values), iter(others)
        found: list[Value] = []
        for op in self._nest.reductions:
            so_far = [_element(result.element, given) for result in op.results]
            own = [next(more) for _ in op.results]
            found += [part for one in combine(self._emitter, op.inner[0], so_far, own) for part in parts(one)]
        return found

    # Bodies

    def _store_maps(self) -> None:
        place = self._nest.at(self._place())
        made = [self._emitter.made(array, place) for array in self._nest.maps]
        for op in self._nest.reductions:
            # All is read before anything is written, because maps may be stored where a loop's carries are.
            self._terms(op)
        for array, value in zip(self._nest.maps, made, strict=True):
            if array in self._nest.unstored:
                continue
            memory = self._memory(array)
            assert memory is not None
            memory.store(value, self._emitter.value(self._nest.stored(array, place)))

    def _starts(self, op: Op) -> list[Element]:
        half = len(op.operands) // 2
        return [self._emitter.element(start, ()) for start in op.operands[half:]]

    def _terms(self, op: Op) -> list[Element]:
        half = len(op.operands) // 2
        place = self._nest.at(self._place())
        return [self._emitter.element(operand, place) for operand in op.operands[:half]]

    def _by_sums(self, reduced: Sequence[Group]) -> None:
        """Reductions with sums in registers."""
        reductions = self._nest.reductions
        sums = [value for op in reductions for element in self._starts(op) for value in parts(element)]

        def loops(groups: Sequence[Group], carried: list[Value]) -> list[Value]:
            if not groups:
                self._store_maps()
                return self._combined(carried)
            group, *rest = groups
            segments = self._segments(group)
            if not rest and len(segments) == 1 and self._gains_by_lanes(group):
                return self._by_lanes(group, carried)
            for segment in segments:
                with self._cutting(self._is_cutting and not segment.is_border):
                    carried = over(segment, group, rest, carried)
            return carried

        def over(segment: Segment, group: Group, rest: Sequence[Group], carried: list[Value]) -> list[Value]:
            if segment.size == 1:
                with self._emitter.scope():
                    self._enter(group, places.constant(segment.start))
                    return loops(rest, carried)
            is_written = not rest and self._is_short(segment.size) and not self._is_plain(group)
            hints = UNROLLED if is_written else ""
            loop = self._function.loop(segment.start, segment.stop, carried=carried, hints=hints)
            with loop as (counter, values), self._emitter.scope():
                self._enter(group, segment_index(counter, segment))
                loop.next(loops(rest, values))
            return loop.results

        results = iter(loops(reduced, sums))
        number = self._result_number()
        for op in reductions:
            for result in op.results:
                self._store(result, _element(result.element, results), number)

    def _is_short(self, terms: int) -> bool:
        """Whether a sum of so many terms is written out, so that LLVM makes vectors of the loop around it."""
        _, found = self._nest.analysis(self._in_memory)
        return terms <= _FEW_TERMS or (terms <= _MOST_TERMS and terms * found.cost <= _MOST_WRITTEN)

    def _is_plain(self, group: Group) -> bool:
        """Whether a reduction reads memory in its order, and is a sum: LLVM makes vectors of its terms."""
        place, found = self._nest.analysis(self._in_memory)
        if group.size <= _FEW_TERMS or (found.cost >= _DEAR and group.size % _LINE_OF_LANES):
            return False
        symbol = place[group.dims[-1]].terms[0][0]
        factors = {dict(number.terms).get(symbol, 0) for _, number in found.loads}
        return factors <= {0, 1} and 1 in factors and not found.is_irregular and all(map(is_sum, self._nest.reductions))

    def _gains_by_lanes(self, group: Group) -> bool:
        """Whether LLVM makes no vectors of a reduction, such as an extreme with its place."""
        return group.size >= 4 * _LANES and all(_is_choice(op) for op in self._nest.reductions)

    def _by_lanes(self, group: Group, carried: list[Value]) -> list[Value]:
        """A reduction of every so many elements for each of some lanes, and then of these.

        The results of lanes are in memory, where LLVM's vectors take them from.
        """
        function, emitter, reductions = self._function, self._emitter, self._nest.reductions
        results = [result for op in reductions for result in op.results]
        lines = [self._line(result, _LANES) for result in results]
        with function.loop(0, _LANES) as lane, emitter.scope():
            self._enter(group, _sum_of(function.index(0), group.size, lane))
            self._store_maps()
            terms = [term for op in reductions for term in self._terms(op)]
            for line, term in zip(lines, terms, strict=True):
                line.store(term, lane)
        whole = group.size // _LANES * _LANES
        with (
            function.loop(_LANES, whole, _LANES) as begin,
            emitter.scope(),
            function.loop(0, _LANES) as lane,
            emitter.scope(),
        ):
            self._enter(group, _sum_of(begin, group.size, lane))
            self._add_to(lines, lane)
        loop = function.loop(0, _LANES, carried=carried)
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

    def _add_to(self, lines: Sequence[Memory], column: Value) -> None:
        """Combine the elements of a place with those of a column of lines."""
        self._store_maps()
        given = iter(lines)
        for op in self._nest.reductions:
            own = [next(given) for _ in op.results]
            so_far = [line.load(column) for line in own]
            made = combine(self._emitter, op.inner[0], so_far, self._terms(op))
            for line, element in zip(own, made, strict=True):
                line.store(element, column)

    def _combined(self, carried: Sequence[Value]) -> list[Value]:
        given = iter(carried)
        found: list[Value] = []
        for op in self._nest.reductions:
            so_far = [_element(result.element, given) for result in op.results]
            for element in combine(self._emitter, op.inner[0], so_far, self._terms(op)):
                found += parts(element)
        return found

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
            self._add_lines(reduced, lines, begin, stop, last, length)
            with function.loop(0, stop) as column, self._emitter.scope():
                self._enter_column(last, begin, column, length)
                number = self._result_number()
                for line, result in zip(lines, results, strict=True):
                    self._store(result, line.load(column), number)

    def _add_lines(
        self,
        reduced: Sequence[Group],
        lines: Sequence[Memory],
        begin: Value,
        stop: Value | int,
        last: Group,
        length: int,
    ) -> None:
        if reduced:
            group, *rest = reduced
            several = 0 if rest else self._rows_at_once(group)
            if several:
                self._add_several(group, several, lines, begin, stop, last, length)
            with self._function.loop(several, group.size) as counter, self._emitter.scope():
                self._enter(group, counter)
                self._add_lines(rest, lines, begin, stop, last, length)
            return
        with self._function.loop(0, stop) as column, self._emitter.scope():
            self._enter_column(last, begin, column, length)
            self._add_to(lines, column)

    def _rows_at_once(self, group: Group) -> int:
        """How many rows are added to a line by several at once."""
        cost = self._nest.analysis(self._in_memory)[1].cost
        is_cheap = cost * _ROWS_AT_ONCE <= _MOST_AT_ONCE and not self._nest.maps
        return group.size // _ROWS_AT_ONCE * _ROWS_AT_ONCE if is_cheap else 0

    def _add_several(
        self,
        group: Group,
        count: int,
        lines: Sequence[Memory],
        begin: Value,
        stop: Value | int,
        last: Group,
        length: int,
    ) -> None:
        """Add so many rows, some at once: a line is read and written less often, and more is on its way from memory."""
        function, emitter = self._function, self._emitter
        with (
            function.loop(0, count, _ROWS_AT_ONCE) as counter,
            emitter.scope(),
            function.loop(0, stop) as column,
            emitter.scope(),
        ):
            self._enter_column(last, begin, column, length)
            values = [part for line in lines for part in parts(line.load(column))]
            for row in range(_ROWS_AT_ONCE):
                with emitter.scope():
                    self._enter(group, Index(((Symbol(count - _ROWS_AT_ONCE, value=counter), 1),), row))
                    values = self._combined(values)
            given = iter(values)
            for line in lines:
                line.store(_element(line.element, given), column)

    def _enter_column(self, last: Group, begin: Value, column: Value, length: int) -> None:
        self._enter(last, _sum_of(begin, last.size, column) if not begin.is_constant else column)

    def _line(self, result: Array, length: int) -> Memory:
        size = elements.size(result.element) * length
        self._writer.stack += size
        pointer = self._function.stack(f"[{elements.size(result.element)} x {I8}]", length)
        return Memory(pointer, result.element, "")

    def _result_number(self) -> Value:
        place = [index for d, index in enumerate(self._place()) if d not in self._nest.dims]
        shape = [size for d, size in enumerate(self._nest.shape) if d not in self._nest.dims]
        return self._emitter.value(places.linear(place, shape))

    def _store(self, result: Array, value: Element, number: Value) -> None:
        memory = self._memory(result)
        assert memory is not None
        memory.store(value, number)


def _symbol(place: Place, group: Group) -> Symbol | None:
    """The counter of a group in a place of counters, if it is one dimension's."""
    return place[group.dims[0]].terms[0][0] if len(group.dims) == 1 else None


def segment_index(counter: Value, segment: Segment) -> Index:
    """The place of a counter that is known to lie in a segment."""
    if segment.start == 0:
        return Index(((Symbol(segment.stop - 1, value=counter), 1),))
    return Index(((Symbol(segment.size - 1, value=counter - segment.start), 1),), segment.start)


def _element(element: str, values: Iterable[Value]) -> Element:
    """The next element of its parts."""
    given = iter(values)
    first = next(given)
    return (first, next(given)) if element.startswith("complex") else first


def _sum_of(start: Value, size: int, counter: Value) -> Index:
    """The place of a counter after a start; both together are below the size."""
    first = places.constant(int(start.text)) if start.is_constant else Index(((Symbol(size - 1, value=start), 1),))
    return first + Index(((Symbol(size - 1, value=counter), 1),))


def _is_choice(op: Op) -> bool:
    """Whether a reduction keeps one of two pairs, whichever comes first, as extremes with their places do."""
    return len(op.results) == 2 and all(inner.name in _CHOICES for inner in op.inner[0].ops)
