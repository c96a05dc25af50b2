"""Windows of an image laid out as rows of a matrix, for instructions that read rows at equal distances.

What laying out costs, a byte of a row each, pays where the instruction multiplies a thousand of them in a cycle. The
image is copied with its padding first if it has some (``windows.py``), so that rows are copied without conditions.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import cast

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I8, Number, Value, bits_of, is_float
from hloforge.pipelines.codegen.products import packing
from hloforge.pipelines.codegen.products.arithmetic import Arithmetic
from hloforge.pipelines.codegen.products.blocking import Tile
from hloforge.pipelines.codegen.products.left_factors import OneRun
from hloforge.pipelines.codegen.products.loops import each
from hloforge.pipelines.codegen.products.micro_kernel import Side, Turn, wide
from hloforge.pipelines.codegen.products.operands import clamped
from hloforge.pipelines.codegen.products.windows import Windows

# Bytes that are moved at once.
_MOVED = 64
# Vectors of a run that are moved without a loop, which takes longer than they do.
_WRITTEN_OUT = 4


@dataclass(frozen=True)
class LaidWindows(OneRun):
    """Rows are the result's pixels in row-major order, each with all weights by all features.

    What fills the last block of a row of bytes is whatever was in memory, which the right factor multiplies by zero.
    Of floats it is zeros, because zero times NaN is none.

    Attributes:
        windows: the pixels that the rows are copied from, whose arithmetic is of single elements.
        count: of pixels.
        depth: weights by features.
        tiles: of a chunk.
        is_matrix: whether weights by features are a matrix in memory; else each position's are one.
    """

    windows: Windows
    count: int
    depth: int
    tile: Tile
    arithmetic: Arithmetic
    tiles: int
    is_matrix: bool

    @property
    def weights(self) -> tuple[int, tuple[Turn, ...]]:
        return super().weights if self.is_matrix else (self.windows.features, self.windows.turns)

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
            if is_float(self.arithmetic.element):
                packing.clear_end(function, self.arithmetic, target, self.depth)
            with ExitStack() as loops:
                size = self.depth * bits_of(self.arithmetic.element) // 8
                turns = windows.turns
                if self.is_matrix:
                    # In the order of the weights in memory.
                    turns = tuple(sorted(turns, key=lambda turn: -cast("int", turn.right)))
                for turn in turns:
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

    def move(place: Number) -> None:
        vector = function.load(function.offset(source, I8, place), wide(I8, lanes), 1)
        function.store(vector, function.offset(target, I8, place), 1)

    if size <= _WRITTEN_OUT * lanes:
        for first in range(0, size, lanes):
            move(min(first, size - lanes))
        return
    with each(function, 0, size, lanes) as begun:
        move(begun.minimum(size - lanes) if size % lanes else begun)
