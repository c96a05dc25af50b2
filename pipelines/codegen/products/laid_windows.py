"""Windows of an image laid out as rows of a matrix, for instructions that read rows at equal distances.

What laying out costs, a byte of a row each, pays where the instruction multiplies a thousand of them in a cycle. The
image is copied with its padding first if it has some (``windows.py``), so that rows are copied without conditions.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I8, Value
from hloforge.pipelines.codegen.products import packing
from hloforge.pipelines.codegen.products.arithmetic import Arithmetic
from hloforge.pipelines.codegen.products.blocking import Tile
from hloforge.pipelines.codegen.products.left_factors import OneRun
from hloforge.pipelines.codegen.products.loops import each
from hloforge.pipelines.codegen.products.micro_kernel import Side, wide
from hloforge.pipelines.codegen.products.operands import clamped
from hloforge.pipelines.codegen.products.windows import Windows

# Bytes that are moved at once.
_MOVED = 64


@dataclass(frozen=True)
class LaidWindows(OneRun):
    """Rows are the result's pixels in row-major order, each with all weights by all features.

    What fills the last block of a row is whatever was in memory: bytes, which the right factor multiplies by zero.

    Attributes:
        windows: the pixels that the rows are copied from, whose arithmetic is of single bytes.
        count: of pixels.
        depth: weights by features.
        tiles: of a chunk.
    """

    windows: Windows
    count: int
    depth: int
    tile: Tile
    arithmetic: Arithmetic
    tiles: int

    @property
    def _row_bytes(self) -> int:
        return packing.row_units(self.arithmetic, self.depth) * self.arithmetic.unit_bytes

    @property
    def _laid(self) -> int:
        return self.tiles * self.tile.rows * self._row_bytes

    @property
    def size(self) -> int:
        return self._laid + self.windows.size

    @property
    def side(self) -> Side:
        size = self.arithmetic.unit_bytes
        return Side(self.arithmetic.unit, self._row_bytes, size, size)

    def prepare(self, function: Function, lhs: Value, begin: Value, end: Value, memory: Value) -> None:
        tile, windows = self.tile, self.windows
        rest = function.offset(memory, I8, self._laid)
        windows.prepare(function, lhs, begin, end, rest)
        first = clamped(function, begin * tile.rows, self.count - tile.rows)
        last = clamped(function, end * tile.rows, self.count)
        with each(function, first, last) as pixel:
            start = windows.window(function, lhs, pixel, first, rest)
            target = function.offset(memory, I8, (pixel - first) * self._row_bytes)
            with ExitStack() as loops:
                size = self.depth
                for turn in windows.turns:
                    assert isinstance(turn.count, int)
                    size //= turn.count
                    place = loops.enter_context(each(function, 0, turn.count))
                    start = function.offset(start, I8, place * turn.left)
                    target = function.offset(target, I8, place * size)
                _move(function, target, start, size)

    def rows(
        self, function: Function, lhs: Value, begin: Value, number: Value, row: Value, memory: Value | None
    ) -> list[Value]:
        assert memory is not None
        first = clamped(function, begin * self.tile.rows, self.count - self.tile.rows)
        return [function.offset(memory, I8, (row - first) * self._row_bytes)]


def _move(function: Function, target: Value, source: Value, size: int) -> None:
    """Copy so many bytes by vectors, the last of which may begin within the one before."""
    lanes = min(_MOVED, 1 << (size.bit_length() - 1))
    with each(function, 0, size, lanes) as begun:
        place = begun.minimum(size - lanes) if size % lanes else begun
        vector = function.load(function.offset(source, I8, place), wide(I8, lanes), 1)
        function.store(vector, function.offset(target, I8, place), 1)
