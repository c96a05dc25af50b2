"""Large arrays that are read across are written past the caches, panel by panel of transposed squares.

A panel is some rows of the result, all of which are written from their first to their last line. What squares make is
kept in a tile, whose rows begin with what was too little for a whole line before: rows begin anywhere in lines, and a
line that is written in parts is read from memory first. Squares that leave lines to the caches (``crossed.py``) take
two to four times as long where these do not hold the arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hloforge.pipelines.codegen.crossed import CrossedLoops, Crossing
from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.elements.kinds import is_complex, storage
from hloforge.pipelines.codegen.emit import Memory
from hloforge.pipelines.codegen.graph import Array
from hloforge.pipelines.codegen.index import Index, Symbol
from hloforge.pipelines.codegen.lang.functions import NO_VECTORS, STREAMED
from hloforge.pipelines.codegen.lang.values import I64, Value, vector_of
from hloforge.pipelines.codegen.nest_loops import sum_of
from hloforge.pipelines.codegen.squares import Sizes, fill_square
from hloforge.pipelines.codegen.streams import LINE
from hloforge.pipelines.codegen.vector_places import VectorAccesses, VectorEmitter

# Rows of a panel are elements that follow each other in what is read: at least so many, and so many bytes.
_ROWS, _ROWS_BYTES = 64, 128
# Bytes of a row that a tile takes at once, more where a panel has fewer rows, and elements at most.
_BLOCK, _LONGEST_BLOCK, _ELEMENTS = 256, 1024, 128
# The part of the caches that arrays exceed: what lies far apart is slow as soon as others take some of them.
_PART = 2
# Bytes of a row of the result from which on its ends, which are written element by element, cost little; and of one
# that is whole lines.
_LEAST_ROW, _LEAST_WHOLE = 1024, 128


@dataclass
class _CrossedAccesses(VectorAccesses):
    """Whether vectors can be computed along a loop across which an array is read.

    Attributes:
        held: the array with the number of its element.
    """

    held: tuple[Array, Index] | None = None

    def load(self, array: Array, number: Index) -> None:
        if (array, number) != self.held:
            super().load(array, number)


@dataclass(frozen=True)
class _Tile:
    """What is kept of a panel.

    Attributes:
        memory: of its rows.
        line: elements of a line, with which each row begins.
        block: elements that follow.
    """

    memory: Memory
    line: int
    block: int

    @property
    def pitch(self) -> int:
        return self.line + self.block


@dataclass(frozen=True)
class _Part:
    """A part of a panel, as long as a tile.

    Attributes:
        panel: the first row of the panel.
        begin: the first place along rows.
        size: how many places there are.
        is_first: whether rows begin here, and ``is_last`` whether they end.
    """

    panel: Value
    begin: Value
    size: Value
    is_first: Value
    is_last: Value


class StreamedSquares(CrossedLoops):
    """Writes such panels."""

    def _are_panels(self, crossing: Crossing) -> bool:
        """Whether a nest has one result that is worth it, and one array that it reads across."""
        nest, second = self._nest, crossing.second
        if (
            not self._exceeds_caches(_PART)
            or len(crossing.loads) != 1
            or not all(crossing.lanes)
            or nest.into is not None
        ):
            return False
        results = [array for array in nest.maps if array not in nest.unstored]
        if len(results) != 1 or not self._is_streamed(results[0]) or is_complex(results[0].element):
            return False
        size = elements.size(results[0].element)
        if size != elements.size(crossing.loads[0][0].element) or second.dims[-1] != len(nest.shape) - 1:
            return False
        row = second.size * size
        if row < _LEAST_ROW and (row % LINE or row < _LEAST_WHOLE):
            return False
        place, found = nest.analysis(self._in_memory)
        if found.conditions or found.is_irregular:
            return False
        along = place[second.dims[-1]].terms[0][0]
        vectors = _CrossedAccesses(self._in_memory, along=along, functions=True, held=crossing.loads[0])
        for array in nest.maps:
            vectors.made(array, nest.at(place))
        return vectors.fits

    def _by_panels(self, crossing: Crossing) -> None:
        function, first, second = self._function, crossing.first, crossing.second
        array, _ = crossing.loads[0]
        size = elements.size(array.element)
        most = max(_ROWS, _ROWS_BYTES // size)
        block = min(_BLOCK * max(most // first.size, 1), _LONGEST_BLOCK, _ELEMENTS * size) // size
        tile = _Tile(self._line(array, most * (LINE // size + block)), LINE // size, block)
        panels = -(-first.size // most)
        begin, end = function.index(0), function.index(second.size)
        if self._share is not None and panels < 2 * self._share.count:
            # Too few panels to share them out: each worker has a part of all rows.
            start, stop = (function.index(bound) for bound in self._bounds(-(-second.size // block)))
            begin, end = start * block, (stop * block).minimum(second.size)
        with function.loop(*self._bounds(panels)) as panel, self._emitter.scope():
            row = panel * most
            rows = function.index(most)
            if first.size % most:
                rows = (function.index(first.size) - row).minimum(most)
            with function.loop(begin, end, block) as column, self._emitter.scope():
                columns = (end - column).minimum(block)
                part = _Part(row, column, columns, column.equals(begin), column + block >= end)
                self._fill(crossing, tile, part, rows, most)
                with function.loop(0, rows) as inner, self._emitter.scope():
                    self._row_of_panel(crossing, tile, part, inner)

    def _fill(self, crossing: Crossing, tile: _Tile, part: _Part, rows: Value, most: int) -> None:
        """Read a part into a tile, behind what its rows begin with, and fetch the next one."""
        function, (array, load) = self._function, crossing.loads[0]
        stride = self._stride(load, crossing.second)
        memory, kind, size = self._emitter.memory(array), storage(array.element), elements.size(array.element)

        def number(row: Value, column: Value) -> Value:
            with self._emitter.scope():
                self._enter(crossing.first, sum_of(part.panel, crossing.first.size, row))
                self._enter(crossing.second, sum_of(part.begin, crossing.second.size, column))
                return self._emitter.value(self._here(load))

        # The processor foresees no rows of some lines that lie far apart.
        width = min(most, crossing.first.size) * size
        with function.loop(0, tile.block) as column:
            address = function.offset(memory.pointer, kind, number(function.index(0), column))
            for distance in range(0, width + (LINE - 1 if stride * size % LINE else 0), LINE):
                ahead = function.moved(address, function.index(tile.block * stride * size + distance))
                function.prefetch(ahead, level=2)
        pointer = function.offset(tile.memory.pointer, kind, tile.line)
        fill_square(
            function,
            replace(tile.memory, pointer=pointer),
            memory,
            Sizes(crossing.first.size, crossing.second.size),
            crossing.lanes[0],
            (rows, part.size),
            stride,
            number,
            pitch=tile.pitch,
        )

    def _fetch_others(self, crossing: Crossing, tile: _Tile) -> None:
        """Fetch the next part of what is read in the order of the result, a row of which is a few lines as well."""
        function, nest, second = self._function, self._nest, crossing.second
        place, found = nest.analysis(self._in_memory)
        row, along = (place[group.dims[-1]].terms[0][0] for group in (crossing.first, second))
        for array, number in dict.fromkeys(found.loads):
            factors, size = dict(number.terms), elements.size(array.element)
            if factors.get(along) != 1 or not factors.get(row):
                continue
            memory = self._emitter.memory(array)
            address = function.offset(memory.pointer, storage(array.element), self._emitter.value(self._here(number)))
            for distance in range(0, tile.block * size, LINE):
                ahead = function.moved(address, function.index(tile.block * size + distance))
                function.prefetch(ahead, level=2)

    def _row_of_panel(self, crossing: Crossing, tile: _Tile, part: _Part, inner: Value) -> None:
        """Write the part of a row that a tile has, as far as lines of the result are whole."""
        function, nest, second = self._function, self._nest, crossing.second
        array, load = crossing.loads[0]
        (result,) = (array for array in nest.maps if array not in nest.unstored)
        memory, size = self._emitter.memory(result), elements.size(result.element)
        self._enter(crossing.first, sum_of(part.panel, crossing.first.size, inner))
        self._enter(second, sum_of(part.begin, second.size, function.index(0)))
        number = self._emitter.value(nest.stored(result, nest.at(self._place())))
        address = function.cast("ptrtoint", function.offset(memory.pointer, storage(result.element), number), I64)
        # Elements of the line that the part begins in, before it.
        before = (address & (LINE - 1)).udiv(size)
        self._fetch_others(crossing, tile)
        head = ((function.index(tile.line) - before) & (tile.line - 1)).minimum(part.size)
        end = part.begin + part.size
        start = part.is_first.where(part.begin + head, part.begin - before)
        stop = start + (end - start) - (end - start).urem(tile.line)
        # Of the row's first place, if the tile had all of them.
        base = inner * tile.pitch + tile.line - part.begin
        ends = (part.begin, part.is_first.where(start, part.begin)), (stop, part.is_last.where(end, stop))
        for first, last in ends:
            with function.loop(first, last) as place, self._emitter.scope():
                self._enter(second, Index(((Symbol(second.size - 1, value=place), 1),)))
                self._emitter.known((array, self._here(load)), tile.memory.load(base + place))
                self._store_maps()
        lanes = self._writer.vector_bytes // size
        target = replace(memory, access=memory.access + STREAMED)
        with function.loop(start, stop, tile.line, hints=NO_VECTORS) as begin:
            for lane in range(0, tile.line, lanes):
                place = begin + lane
                self._enter(second, Index(((symbol := Symbol(second.size - 1, value=place), 1),)))
                emitter = VectorEmitter(function, self._memory, symbol, lanes)
                emitter.known((array, self._here(load)), tile.memory.load(base + place, lanes))
                made = {one: emitter.made(one, nest.at(self._place())) for one in nest.maps}[result]
                assert isinstance(made, Value)
                at = emitter.value(nest.stored(result, nest.at(self._place())))
                target.store(emitter.spread(made), at, min(lanes * size, LINE))
        # What is left begins the row's next part.
        kind = storage(array.element)
        rest = function.offset(tile.memory.pointer, kind, inner * tile.pitch + tile.block)
        kept = function.load(rest, vector_of(kind, tile.line))
        function.store(kept, function.offset(tile.memory.pointer, kind, inner * tile.pitch))
