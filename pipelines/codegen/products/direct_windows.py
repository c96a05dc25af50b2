"""Windows of an image that registers for tiles read where they lie.

Rows of a register are pixels of one row of the result, so that their windows lie at equal distances in the image, and
each block of terms is features at one position of the window: its distance from the first block is the same for all
pixels. Nothing is copied but the image with its padding, if it has some (``windows.py``), and rows that windows share
stay in the first-level cache::

    for register of pixels: sums = 0; for each block: sums += image[first pixel + distances[block]] * weights[block]

Where registers do not divide a row, its last one begins early enough to end with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I8, I64, Value, bits_of
from hloforge.pipelines.codegen.products.arithmetic import Arithmetic
from hloforge.pipelines.codegen.products.blocking import Tile
from hloforge.pipelines.codegen.products.images import Axis
from hloforge.pipelines.codegen.products.left_factors import OneRun
from hloforge.pipelines.codegen.products.loops import SCALAR, each
from hloforge.pipelines.codegen.products.micro_kernel import Side, Turn
from hloforge.pipelines.codegen.products.operands import clamped, split_index, strided
from hloforge.pipelines.codegen.products.windows import Windows

# Rows of a register, and of those how many there are at least: fewer take as long to read their columns.
_ROWS, _LEAST_ROWS = 16, 8
# Bytes of a block of terms, and of a distance.
_BLOCK, _DISTANCE = 64, 8


def row_of(axes: tuple[Axis, ...]) -> int:
    """The dimension whose pixels follow each other in a register: the last one of more than one."""
    return max((place for place, axis in enumerate(axes) if axis.out > 1), default=0)


def height_of(axes: tuple[Axis, ...]) -> int:
    """Rows of a register: equal parts of a row of the result."""
    width = axes[row_of(axes)].out
    return -(-width // -(-width // _ROWS))


def fill_registers(axes: tuple[Axis, ...]) -> bool:
    """Whether rows of the result fill registers well."""
    return height_of(axes) >= _LEAST_ROWS


def registers_of(axes: tuple[Axis, ...], height: int = 0) -> tuple[int, ...]:
    """How many registers of pixels, of so many rows or of equal parts, there are along each dimension."""
    row, height = row_of(axes), height or height_of(axes)
    return tuple(-(-axis.out // height) if place == row else axis.out for place, axis in enumerate(axes))


def copied_rows(axes: tuple[Axis, ...], registers: int, height: int = 0) -> int:
    """The most rows of the padded image that the windows of so many consecutive registers see."""
    height = height or height_of(axes)
    if row_of(axes) == 0:
        return axes[0].rows_for(min(axes[0].out, registers * height))
    width = math.prod(registers_of(axes, height)[1:])
    return axes[0].rows_for(min(axes[0].out, (registers + width - 2) // width + 1))


def reads(windows: Windows) -> bool:
    """Whether terms that lie next to each other fill whole blocks."""
    is_dense = windows.copy is not None or windows.image.feature == 1
    return is_dense and windows.run * bits_of(windows.arithmetic.element) // 8 % _BLOCK == 0


@dataclass(frozen=True)
class DirectWindows(OneRun):
    """Rows are pixels of registers, one register after the other, and terms weights by features.

    Attributes:
        windows: what rows are read from, whose arithmetic is of single elements. Its features fill whole blocks.
        depth: weights by features.
        tiles: of a chunk.
        features: of a pixel that are no zeros; 0 for all.
        own_height: rows of a register; 0 for equal parts of a row of the result.
        least: results along the first dimension of the windows that have the fewest; 0 for as many as there are.
        grid: dimensions whose pixels the registers are, where some of the last ones are none of these windows'.
        shift: bytes from a chunk's copy to that of these windows alone.
        table: bytes from the table of the first of several windows to that of these.
    """

    windows: Windows
    depth: int
    tile: Tile
    arithmetic: Arithmetic
    tiles: int
    features: int = 0
    own_height: int = 0
    least: int = 0
    grid: tuple[Axis, ...] = ()
    shift: int = 0
    table: int = 0

    @property
    def weights(self) -> tuple[int, tuple[Turn, ...]]:
        return self.features or self.windows.run, self.windows.turns

    @property
    def fills_runs(self) -> bool:
        return self.features > 0

    @property
    def _axes(self) -> tuple[Axis, ...]:
        """The dimensions whose pixels the registers are."""
        return self.grid or self.windows.axes

    @property
    def height(self) -> int:
        """Rows of a register."""
        return self.own_height or height_of(self._axes)

    @property
    def is_even(self) -> bool:
        """Whether registers divide rows of the result, so that rows are its pixels in row-major order."""
        return not self.grid and self._axes[row_of(self._axes)].out % self.height == 0

    @property
    def _registers(self) -> int:
        return math.prod(registers_of(self._axes, self.height))

    @property
    def _copied(self) -> int:
        copy = self.windows.copy
        return 0 if copy is None else -(-copy.size // _BLOCK) * _BLOCK

    @property
    def _run_blocks(self) -> int:
        return self.windows.run * bits_of(self.arithmetic.element) // 8 // _BLOCK

    @property
    def table_bytes(self) -> int:
        """Of the distances of blocks."""
        return self._run_blocks * math.prod(self.windows.most) * _DISTANCE

    @property
    def size(self) -> int:
        return self._copied + self.table_bytes

    @property
    def side(self) -> Side:
        row, size = row_of(self._axes), self.arithmetic.unit_bytes
        return Side(self.arithmetic.unit, self.windows.axes[row].stride * self.windows.strides[row], size, size)

    def prepare(self, function: Function, lhs: Value, begin: Value, end: Value, memory: Value) -> None:
        self.copy(function, lhs, begin, end, memory)
        self.write_distances(function, memory)

    def copy(self, function: Function, lhs: Value, begin: Value, end: Value, memory: Value) -> None:
        """Copy what the tiles from ``begin`` up to ``end`` see, if there is a copy."""
        windows, axis = self.windows, self.windows.axes[0]
        if windows.copy is None:
            return
        first, last = self._chunk(function, begin, end)
        origin, final = self._first_axis(function, first), self._indices(function, last - 1)[0]
        extent = self.height if row_of(self._axes) == 0 else 1
        rows = (final - origin) * axis.stride + axis.rows_for(extent)
        windows.copy.fill(function, windows.image, lhs, origin * axis.stride, rows, memory)

    def write_distances(self, function: Function, memory: Value) -> None:
        """Write the table of distances."""
        blocks, target = self._run_blocks, self.distances(function, memory)
        with ExitStack() as loops:
            number, distance = function.index(0), function.index(self.shift)
            for turn in self.windows.turns:
                place = loops.enter_context(each(function, 0, turn.count, hints=SCALAR))
                number, distance = number * turn.count + place, distance + place * turn.left
            place = loops.enter_context(each(function, 0, blocks, hints=SCALAR))
            at = function.offset(target, I64, number * blocks + place)
            function.store(distance + place * _BLOCK, at)

    def distances(self, function: Function, memory: Value) -> Value:
        """The address of the distances of blocks, in bytes."""
        return function.offset(memory, I8, self._copied + self.table)

    def _chunk(self, function: Function, begin: Value, end: Value) -> tuple[Value, Value]:
        """The first register of a chunk, and the one after its last."""
        parts = self.tile.rows // self.height
        return clamped(function, begin * parts, self._registers - parts), clamped(
            function, end * parts, self._registers
        )

    def _first_axis(self, function: Function, register: Value) -> Value:
        """The index along the first dimension of the first pixel that a chunk beginning with a register sees."""
        found = self._indices(function, register)[0]
        if 0 < self.least < self._axes[0].out:
            # Windows that end before see their last pixels again.
            found = clamped(function, found, self.least - (self.height if row_of(self._axes) == 0 else 1))
        return found

    def _indices(self, function: Function, register: Value) -> list[Value]:
        """The indices of a register's first pixel."""
        axes, row = self._axes, row_of(self._axes)
        found = split_index(function, register, registers_of(axes, self.height))
        found[row] = clamped(function, found[row] * self.height, axes[row].out - self.height)
        return found

    def indices(self, function: Function, register: Value) -> list[Value]:
        """The indices of a register's first pixel; those of the last ones for what is none of these windows'."""
        found, row = self._indices(function, register), row_of(self._axes)
        for place, (axis, own) in enumerate(zip(self._axes, self.windows.axes, strict=True)):
            if own.out < axis.out:
                found[place] = clamped(function, found[place], own.out - (self.height if place == row else 1))
        return found

    def pixel(self, function: Function, indices: Sequence[Value]) -> Value:
        """The number of a pixel among the result's in row-major order."""
        total = function.index(0)
        for index, axis in zip(indices, self.windows.axes, strict=True):
            total = total * axis.out + index
        return total

    def moved(self, indices: Sequence[Value], pixels: Value) -> list[Value]:
        """The indices of a pixel that lies so many behind one in a register."""
        row = row_of(self._axes)
        return [index + pixels if place == row else index for place, index in enumerate(indices)]

    def register(self, row: Value) -> Value:
        """The number of the register that a tile begins with."""
        return row.udiv(self.height)

    def rows(
        self, function: Function, lhs: Value, begin: Value, number: Value, row: Value, memory: Value | None
    ) -> list[Value]:
        windows, start = self.windows, lhs
        assert memory is not None
        origin: Value | None = None
        if windows.copy is not None:
            start, origin = memory, self._first_axis(function, self._chunk(function, begin, begin)[0])
        else:
            # Pixels before the first window's.
            low = sum(-axis.low * stride for axis, stride in zip(windows.axes, windows.strides, strict=True))
            start = function.offset(start, I8, low)
        steps = [axis.stride * stride for axis, stride in zip(windows.axes, windows.strides, strict=True)]
        found, register = [], self.register(row)
        for part in range(self.tile.rows // self.height):
            indices = self.indices(function, register + part if part else register)
            if origin is not None:
                indices[0] = indices[0] - origin
            found.append(strided(function, start, I8, indices, steps))
        return found
