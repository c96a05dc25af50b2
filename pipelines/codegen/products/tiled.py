"""Products by tiles of sums in registers.

A unit of work is a strip of columns for a chunk of rows of one matrix of the batch. Its right factor is packed if that
pays; then the tiles of the chunk follow each other, each through all terms::

    for unit in piece:                   # of the batch, chunks of rows, strips of columns
        pack the strip's right factor    # [terms, tile.columns]
        for tile in chunk:
            sums = 0; for each term: sums += column * row
            store sums

Terms are cut into blocks if a strip's right factor fills the second-level cache; sums wait in the scratch area between
blocks. The last tile of rows and the last vector of columns begin early enough to end with the matrix: some results
are computed and stored twice with the same value, and nothing outside of the matrices is read or written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I8, Value, bits_of, vector_of
from hloforge.pipelines.codegen.products import packing
from hloforge.pipelines.codegen.products.blocking import Tile, block_depth, choose_tile
from hloforge.pipelines.codegen.products.loops import each
from hloforge.pipelines.codegen.products.micro_kernel import Side, add_terms, zeros
from hloforge.pipelines.codegen.products.operands import clamped, split_index, strided
from hloforge.pipelines.codegen.products.results import Results
from hloforge.pipelines.framework.machine import Machine

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.products.gemm import Gemm

# Rows of a chunk at most, while there are enough to pay for packing the right factor again.
_CHUNK_ROWS = 1024
# From so many tiles that read a strip on, packing it pays where its columns are next to each other.
_PACKED_TILES = 4
# Bytes between terms up to which a strip is read in place as fast as from a copy.
_NEAR = 1024
_LINE = 64
# Elements that are widened at once.
_MOVED = 16


@dataclass(frozen=True)
class TiledPlan:
    """How a product is cut.

    Attributes:
        depth: terms of a block.
        packs_right: whether strips of the right factor are copied.
        left: how the left factor is read: in ``place``, from ``widened`` rows, or from ``gathered`` tiles.
        chunk: tiles of rows in a unit.
    """

    tile: Tile
    depth: int
    packs_right: bool
    left: str
    chunk: int


def plan(gemm: Gemm, machine: Machine) -> TiledPlan:
    tile = choose_tile(gemm.sums, gemm.m, gemm.n, gemm.k, machine)
    size = bits_of(gemm.sums) // 8
    tiles = -(-gemm.m // tile.rows)
    depth = block_depth(gemm.k, tile.columns, size, machine) if tiles > 1 else gemm.k
    is_far = gemm.rhs.row * gemm.rhs.bytes > _NEAR
    packs = (
        gemm.rhs.column != 1
        or (gemm.rhs.kind != gemm.sums and tiles > 2)
        or (tiles >= _PACKED_TILES and is_far and gemm.k > 32)
    )
    left = "place"
    if gemm.lhs.kind != gemm.sums and gemm.lhs.column == 1:
        left = "widened"
    elif gemm.lhs.row == 1 and gemm.m > 1 and gemm.n >= 2 * tile.columns and gemm.k > 32:
        left = "gathered"
    chunk = min(tiles, max(1, _CHUNK_ROWS // tile.rows))
    return TiledPlan(tile, depth, packs, left, -(-tiles // -(-tiles // chunk)))


def units(gemm: Gemm, found: TiledPlan) -> tuple[int, int, int]:
    """How many matrices, chunks of rows and strips of columns there are."""
    tile = found.tile
    tiles = -(-gemm.m // tile.rows)
    return gemm.count, -(-tiles // found.chunk), -(-gemm.n // tile.columns)


def scratch_bytes(gemm: Gemm, found: TiledPlan) -> int:
    return sum(_areas(gemm, found))


def _areas(gemm: Gemm, found: TiledPlan) -> tuple[int, int, int]:
    """Bytes of a packed strip, of a chunk's left factor and of waiting sums."""
    size, tile = bits_of(gemm.sums) // 8, found.tile
    rows = found.chunk * tile.rows
    right = found.depth * tile.columns * size if found.packs_right else 0
    left = rows * gemm.k * size if found.left != "place" else 0
    waiting = rows * tile.columns * size if found.depth < gemm.k else 0
    return _whole(right), _whole(left), _whole(waiting)


def _whole(size: int) -> int:
    return -(-size // _LINE) * _LINE


class TiledProduct:
    """Writes the loops of a product."""

    def __init__(
        self,
        function: Function,
        gemm: Gemm,
        found: TiledPlan,
        lhs: Value,
        rhs: Value,
        results: Results,
        scratch: Value | None,
    ) -> None:
        self.function, self.gemm, self.plan, self.tile = function, gemm, found, found.tile
        self.lhs, self.rhs, self.results = lhs, rhs, results
        self.kind = gemm.sums
        right, left, _ = _areas(gemm, found)
        self.strip = self.packed = self.waiting = scratch
        if scratch is not None:
            self.packed = function.offset(scratch, I8, right)
            self.waiting = function.offset(scratch, I8, right + left)

    def run(self, first: Value, last: Value) -> None:
        """Units from ``first`` up to ``last``."""
        function, gemm = self.function, self.gemm
        counts = units(gemm, self.plan)
        tiles = -(-gemm.m // self.tile.rows)
        with each(function, first, last) as unit:
            batch, chunk, strip = split_index(function, unit, counts)
            places = split_index(function, batch, gemm.batch)
            lhs = strided(function, self.lhs, gemm.lhs.kind, places, gemm.lhs.batch)
            rhs = strided(function, self.rhs, gemm.rhs.kind, places, gemm.rhs.batch)
            begin = chunk * self.plan.chunk
            end = function.index(tiles) if counts[1] == 1 else (begin + self.plan.chunk).minimum(tiles)
            if self.plan.left != "place":
                self._pack_left(lhs, unit, first, strip, begin, end)
            columns = [
                clamped(function, _plus(strip, self.tile.columns, place * self.tile.lanes), gemm.n - self.tile.lanes)
                for place in range(self.tile.vectors)
            ]
            if self.plan.depth == gemm.k:
                self._whole_depth(batch, lhs, rhs, begin, end, columns)
            else:
                self._blocks(batch, lhs, rhs, begin, end, columns)

    def _pack_left(self, lhs: Value, unit: Value, first: Value, strip: Value, begin: Value, end: Value) -> None:
        """Copy a chunk's rows before its first strip."""
        function, gemm, tile = self.function, self.gemm, self.tile
        assert self.packed is not None
        starts = strip.equals(0) | unit.equals(first)
        with function.if_(starts):
            if self.plan.left == "widened":
                row = clamped(function, begin * tile.rows, gemm.m - tile.rows)
                stop = clamped(function, end * tile.rows, gemm.m)
                source = strided(function, lhs, gemm.lhs.kind, [row], [gemm.lhs.row])
                lanes = min(_MOVED, 1 << (gemm.k.bit_length() - 1))
                packing.widen_rows(function, self.kind, gemm.lhs, source, stop - row, gemm.k, lanes, self.packed)
                return
            with each(function, begin, end) as number:
                row = clamped(function, number * tile.rows, gemm.m - tile.rows)
                source = strided(function, lhs, gemm.lhs.kind, [row], [gemm.lhs.row])
                target = strided(function, self.packed, self.kind, [number - begin], [gemm.k * tile.rows])
                packing.gather_tile(function, tile.rows, self.kind, gemm.lhs, source, gemm.k, target)

    def _rows_at(self, lhs: Value, begin: Value, number: Value, row: Value, term: Value | int) -> tuple[Value, Side]:
        """The address of a tile's first row at a term, and how to go on from there."""
        function, gemm, tile = self.function, self.gemm, self.tile
        at = function.index(term)
        if self.plan.left == "place":
            sides = Side(gemm.lhs.kind, gemm.lhs.row, gemm.lhs.column, gemm.lhs.signed)
            return strided(function, lhs, gemm.lhs.kind, [row, at], [gemm.lhs.row, gemm.lhs.column]), sides
        assert self.packed is not None
        if self.plan.left == "widened":
            start = clamped(function, begin * tile.rows, gemm.m - tile.rows)
            return strided(function, self.packed, self.kind, [row - start, at], [gemm.k, 1]), Side(self.kind, gemm.k, 1)
        places = [number - begin, at]
        address = strided(function, self.packed, self.kind, places, [gemm.k * tile.rows, tile.rows])
        return address, Side(self.kind, 1, tile.rows)

    def _right(
        self, rhs: Value, columns: Sequence[Value], term: Value | int, terms: Value | int
    ) -> tuple[list[Value], Side]:
        """The addresses of a strip's vectors at a term, packed if need be."""
        function, matrix, tile = self.function, self.gemm.rhs, self.tile
        at = function.index(term)
        places = [strided(function, rhs, matrix.kind, [at, column], [matrix.row, matrix.column]) for column in columns]
        if not self.plan.packs_right:
            if self.gemm.n % tile.columns == 0:
                places = places[:1]
            return places, Side(matrix.kind, 0, matrix.row, matrix.signed)
        assert self.strip is not None
        packing.pack_strip(function, tile, self.kind, matrix, places, terms, self.strip)
        return [self.strip], Side(self.kind, 0, tile.columns)

    def _whole_depth(
        self, batch: Value, lhs: Value, rhs: Value, begin: Value, end: Value, columns: Sequence[Value]
    ) -> None:
        function, gemm, tile = self.function, self.gemm, self.tile
        vectors, right = self._right(rhs, columns, 0, gemm.k)
        with each(function, begin, end) as number:
            row = clamped(function, number * tile.rows, gemm.m - tile.rows)
            start, left = self._rows_at(lhs, begin, number, row, 0)
            sums = zeros(function, tile, self.kind)
            sums = add_terms(function, tile, self.kind, left, right, start, vectors, gemm.k, sums)
            if self.results.is_plain and (self.results.takes_vectors or tile.lanes == 1):
                self._store_tile(sums, batch, row, columns)
            else:
                memory = function.stack(sums[0].kind, len(sums))
                for place, total in enumerate(sums):
                    function.store(total, function.offset(memory, total.kind, place))
                self._finish(memory, batch, row, columns)

    def _blocks(self, batch: Value, lhs: Value, rhs: Value, begin: Value, end: Value, columns: Sequence[Value]) -> None:
        function, gemm, tile = self.function, self.gemm, self.tile
        assert self.waiting is not None
        wide = vector_of(self.kind, tile.lanes) if tile.lanes > 1 else self.kind
        count = tile.rows * tile.vectors
        bytes_of_tile = tile.rows * tile.columns * bits_of(self.kind) // 8
        function.clear(self.waiting, (end - begin) * bytes_of_tile)
        with each(function, 0, gemm.k, self.plan.depth) as term:
            terms = (function.index(gemm.k) - term).minimum(self.plan.depth)
            vectors, right = self._right(rhs, columns, term, terms)
            with each(function, begin, end) as number:
                row = clamped(function, number * tile.rows, gemm.m - tile.rows)
                start, left = self._rows_at(lhs, begin, number, row, term)
                memory = function.offset(self.waiting, I8, (number - begin) * bytes_of_tile)
                places = [function.offset(memory, wide, place) for place in range(count)]
                sums = [function.load(place, wide) for place in places]
                sums = add_terms(function, tile, self.kind, left, right, start, vectors, terms, sums)
                for total, place in zip(sums, places, strict=True):
                    function.store(total, place)
        with each(function, begin, end) as number:
            row = clamped(function, number * tile.rows, gemm.m - tile.rows)
            self._finish(function.offset(self.waiting, I8, (number - begin) * bytes_of_tile), batch, row, columns)

    def _store_tile(self, sums: Sequence[Value], batch: Value, row: Value, columns: Sequence[Value]) -> None:
        function, matrix, tile = self.function, self.gemm.out, self.tile
        start = strided(function, self.results.address(batch), matrix.kind, [row], [matrix.row])
        for place, column in enumerate(columns):
            at = strided(function, start, matrix.kind, [column], [matrix.column])
            for number in range(tile.rows):
                total = sums[number * tile.vectors + place]
                function.store(total.as_(matrix.kind), function.offset(at, matrix.kind, number * matrix.row))

    def _finish(self, memory: Value, batch: Value, row: Value, columns: Sequence[Value]) -> None:
        """Store a tile that waits in memory, by one text for all of its vectors."""
        function, tile = self.function, self.tile
        # Results whose columns lie apart are stored one by one.
        lanes = tile.lanes if self.results.takes_vectors else 1
        kind = vector_of(self.kind, lanes) if lanes > 1 else self.kind
        with each(function, 0, tile.rows) as number, each(function, 0, tile.vectors) as place:
            column = columns[0]
            if tile.vectors > 1:
                column = clamped(function, columns[0] + place * tile.lanes, self.gemm.n - tile.lanes)
            with each(function, 0, tile.lanes // lanes) as lane:
                at = (number * tile.vectors + place) * tile.lanes + lane
                value = function.load(function.offset(memory, self.kind, at), kind)
                self.results.put(value, batch, row + number, column + lane)


def _plus(strip: Value, columns: int, place: int) -> Value:
    first = strip * columns if strip.text != "0" else strip
    return first + place if place else first
