"""Where a tile's rows of the left factor are: in place, or in a copy that suits the micro-kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I8, Value
from hloforge.pipelines.codegen.products import packing
from hloforge.pipelines.codegen.products.arithmetic import Arithmetic, PairArithmetic
from hloforge.pipelines.codegen.products.blocking import Tile
from hloforge.pipelines.codegen.products.loops import each
from hloforge.pipelines.codegen.products.micro_kernel import Side, Turn
from hloforge.pipelines.codegen.products.operands import Matrix, clamped, strided

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.products.gemm import Gemm

# Bytes of a block of terms that registers for tiles take at once.
_BLOCK = 64
# Terms, or groups of them, that are gathered of all tiles of a chunk before the next ones.
_GATHERED = 16


class Left(Protocol):
    """A left factor as the loops of tiles see it, and its terms, which the right factor follows.

    Attributes:
        side: how the micro-kernel reads it.
        turns: loops around the innermost one; their bytes in the right factor are those of one in place.
        most: how often each of them runs at most.
        run: terms of the innermost loop, of which the last group may have fewer than others.
        size: bytes of the copy of a chunk.
    """

    @property
    def side(self) -> Side: ...

    @property
    def turns(self) -> tuple[Turn, ...]: ...

    @property
    def most(self) -> tuple[int, ...]: ...

    @property
    def run(self) -> int: ...

    @property
    def size(self) -> int: ...

    def prepare(self, function: Function, lhs: Value, begin: Value, end: Value, memory: Value) -> None:
        """Copy the rows of the tiles from ``begin`` up to ``end``, if there is a copy."""

    def rows(
        self, function: Function, lhs: Value, begin: Value, number: Value, row: Value, memory: Value | None
    ) -> list[Value]:
        """The addresses of the rows of tile ``number`` at its first term, or of the first, which is ``row``, alone."""


class OneRun:
    """A left factor whose terms the innermost loop goes over all by itself."""

    depth: int

    @property
    def step(self) -> int:
        """Bytes from one block of a row's terms to the next, where units are taken in blocks."""
        return _BLOCK

    @property
    def weights(self) -> tuple[int, tuple[Turn, ...]]:
        """The terms of a run of the right factor, and the loops around it there, where it is packed."""
        return self.depth, ()

    @property
    def fills_runs(self) -> bool:
        """Whether each run of the right factor is filled with zeros to whole blocks, instead of all runs together."""
        return False

    @property
    def turns(self) -> tuple[Turn, ...]:
        return ()

    @property
    def most(self) -> tuple[int, ...]:
        return ()

    @property
    def run(self) -> int:
        return self.depth


@dataclass(frozen=True)
class Rows(OneRun):
    """The rows of a matrix.

    Attributes:
        tiles: of a chunk.
        form: ``place``, ``widened`` to the arithmetic's elements row by row, ``turned`` where rows lie next to each
            other, or ``gathered`` tile by tile.
    """

    matrix: Matrix
    count: int
    depth: int
    tile: Tile
    arithmetic: Arithmetic
    tiles: int
    form: str

    @property
    def _row_bytes(self) -> int:
        return packing.row_units(self.arithmetic, self.depth) * self.arithmetic.unit_bytes * self._parts

    @property
    def _parts(self) -> int:
        """Numbers of a term."""
        return 2 if isinstance(self.arithmetic, PairArithmetic) else 1

    @property
    def size(self) -> int:
        return 0 if self.form == "place" else self.tiles * self.tile.rows * self._row_bytes

    @property
    def side(self) -> Side:
        matrix, unit, size = self.matrix, self.arithmetic.unit, self.arithmetic.unit_bytes
        if self.form in ("widened", "turned"):
            return Side(unit, self._row_bytes, size, size)
        if self.form == "gathered":
            return Side(unit, size * self._parts, size * self._parts * self.tile.rows, size)
        if self.arithmetic.group > 1:
            return Side(unit, matrix.row * matrix.bytes, size, matrix.bytes)
        return Side(matrix.kind, matrix.row * matrix.bytes, matrix.column * matrix.bytes, matrix.bytes, matrix.signed)

    def prepare(self, function: Function, lhs: Value, begin: Value, end: Value, memory: Value) -> None:
        matrix, tile = self.matrix, self.tile
        if self.form in ("widened", "turned"):
            row = clamped(function, begin * tile.rows, self.count - tile.rows)
            stop = clamped(function, end * tile.rows, self.count)
            source = strided(function, lhs, matrix.kind, [row], [matrix.row])
            turn = packing.turn_rows if self.count >= packing.TURNED else packing.turn_few_rows
            copy = packing.widen_rows if self.form == "widened" else turn
            copy(function, self.arithmetic, matrix, source, stop - row, self.depth, memory)
            return
        # A few terms of all tiles at a time, since tiles of one term share lines and pages of memory.
        block = _GATHERED * self.arithmetic.group
        block = block if self.depth > 2 * block else self.depth
        whole = self.depth - self.depth % block
        for first, last in ((0, whole), (whole, self.depth)):
            most = min(block, last - first)
            if not most:
                continue
            with each(function, first, last, most) as term, each(function, begin, end) as number:
                row = clamped(function, number * tile.rows, self.count - tile.rows)
                source = strided(function, lhs, matrix.kind, [row, term], [matrix.row, matrix.column])
                target = strided(function, memory, I8, [number - begin], [tile.rows * self._row_bytes])
                step = term.udiv(self.arithmetic.group) * (tile.rows * self._parts * self.arithmetic.unit_bytes)
                packing.gather_tile(
                    *(function, tile.rows * self._parts, self.arithmetic, matrix, source, most),
                    function.offset(target, I8, step),
                )

    def rows(
        self, function: Function, lhs: Value, begin: Value, number: Value, row: Value, memory: Value | None
    ) -> list[Value]:
        if self.form == "place" or memory is None:
            return [strided(function, lhs, self.matrix.kind, [row], [self.matrix.row])]
        if self.form in ("widened", "turned"):
            first = clamped(function, begin * self.tile.rows, self.count - self.tile.rows)
            return [strided(function, memory, I8, [row - first], [self._row_bytes])]
        return [strided(function, memory, I8, [number - begin], [self.tile.rows * self._row_bytes])]


@dataclass(frozen=True)
class BlockedRows(OneRun):
    """The rows of a matrix, copied tile by tile: a block of terms of all rows of a tile, then the next block.

    Rows in place lie too far apart for the processor to fetch them by itself, or share places of its caches.

    Attributes:
        tiles: of a chunk.
    """

    matrix: Matrix
    count: int
    depth: int
    tile: Tile
    arithmetic: Arithmetic
    tiles: int

    @staticmethod
    def takes(matrix: Matrix, tile: Tile, depth: int) -> bool:
        """Whether there is code for a matrix."""
        return matrix.column == 1 or (matrix.row == 1 and tile.rows >= packing.TURNED and depth % packing.TURNED == 0)

    @property
    def step(self) -> int:
        return _BLOCK * self.tile.rows

    @property
    def _tile_bytes(self) -> int:
        return packing.row_units(self.arithmetic, self.depth) * self.arithmetic.unit_bytes * self.tile.rows

    @property
    def size(self) -> int:
        return self.tiles * self._tile_bytes

    @property
    def side(self) -> Side:
        size = self.arithmetic.unit_bytes
        return Side(self.arithmetic.unit, _BLOCK, size, size)

    def prepare(self, function: Function, lhs: Value, begin: Value, end: Value, memory: Value) -> None:
        copy = packing.block_rows if self.matrix.column == 1 else packing.turn_blocks
        with each(function, begin, end) as number:
            row = clamped(function, number * self.tile.rows, self.count - self.tile.rows)
            source = strided(function, lhs, self.matrix.kind, [row], [self.matrix.row])
            target = strided(function, memory, I8, [number - begin], [self._tile_bytes])
            copy(function, self.arithmetic, self.matrix, source, self.tile.rows, self.depth, target)

    def rows(
        self, function: Function, lhs: Value, begin: Value, number: Value, row: Value, memory: Value | None
    ) -> list[Value]:
        assert memory is not None
        return [strided(function, memory, I8, [number - begin], [self._tile_bytes])]


def rows_of(gemm: Gemm, tile: Tile, arithmetic: Arithmetic, tiles: int) -> Rows:
    """A matrix's rows, copied where that pays."""
    lhs = gemm.lhs
    form = "place"
    if arithmetic.group > 1:
        # Groups are read in place where terms lie next to each other and fill the last group.
        is_same = lhs.kind == arithmetic.element and gemm.k % arithmetic.group == 0
        if lhs.column != 1:
            form = "gathered"
        elif not is_same:
            form = "widened"
    elif lhs.kind != gemm.sums and lhs.column == 1:
        form = "widened"
    elif lhs.row == 1 + gemm.is_complex and gemm.m > 1 and gemm.n >= 2 * tile.columns and gemm.k > 32:
        form = "gathered"
    return Rows(lhs, gemm.m, gemm.k, tile, arithmetic, tiles, form)
