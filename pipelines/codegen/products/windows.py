"""Windows of an image as the rows of a left factor: pixels of the result by weights and input features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I8, I64, Value
from hloforge.pipelines.codegen.products.arithmetic import Arithmetic
from hloforge.pipelines.codegen.products.blocking import Tile
from hloforge.pipelines.codegen.products.images import Axis, Copy, Image, Kernel
from hloforge.pipelines.codegen.products.loops import SCALAR, each
from hloforge.pipelines.codegen.products.micro_kernel import Side, Turn
from hloforge.pipelines.codegen.products.operands import clamped, split_index

# Of a number in the table of windows' places.
_PLACE_BYTES = 8


@dataclass(frozen=True)
class Windows:
    """Rows are the result's pixels in row-major order; terms are weights, and features of an image within them.

    Attributes:
        windows: weights of each dimension at most.
        tiles: of a chunk.
        is_whole: whether all windows have all weights.
        is_filled: whether some features are zeros, which have no weights.
        copy: of the image with its padding; None to read the image in place.
    """

    axes: tuple[Axis, ...]
    windows: tuple[int, ...]
    features: int
    image: Image
    kernel: Kernel
    tile: Tile
    arithmetic: Arithmetic
    tiles: int
    copy: Copy | None
    is_whole: bool = True
    is_filled: bool = False

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes between pixels that are read."""
        if self.copy is not None:
            return self.copy.strides
        return tuple(stride * self.image.bytes for stride in self.image.spatial)

    @property
    def _pixel_bytes(self) -> int:
        return -(-self.features // self.arithmetic.group) * self.arithmetic.unit_bytes

    @property
    def _merged(self) -> int:
        """How many of the last dimensions have weights that follow each other, and features, in both factors."""
        # The stride of features is that of all terms; of one feature it may be any number.
        is_dense = self.copy is not None or self.image.feature == 1
        if not self.is_whole or self.is_filled or not is_dense or self.features % self.arithmetic.group:
            return 0
        in_image, in_kernel = self._pixel_bytes, self.features * self.kernel.input
        found = zip(self.axes, self.windows, self.strides, self.kernel.spatial, strict=True)
        for number, (axis, count, stride, weight) in enumerate(reversed(list(found))):
            if count != 1 and (axis.dilation, stride, weight) != (1, in_image, in_kernel):
                return number
            in_image, in_kernel = in_image * count, in_kernel * count
        return len(self.axes)

    @property
    def run(self) -> int:
        return self.features * math.prod(self.windows[len(self.axes) - self._merged :])

    @property
    def turns(self) -> tuple[Turn, ...]:
        found = [
            Turn(count, axis.dilation * stride, weights * self.kernel.bytes, count)
            for axis, count, stride, weights in zip(
                self.axes, self.windows, self.strides, self.kernel.spatial, strict=True
            )
        ]
        left = found[: len(found) - self._merged]
        return tuple(turn for turn in left if turn.count != 1) if self.is_whole else tuple(left)

    @property
    def most(self) -> tuple[int, ...]:
        return tuple(turn.most for turn in self.turns)

    @property
    def size(self) -> int:
        table = 0 if self._aligned else self.tiles * self.tile.rows * _PLACE_BYTES
        return self._copy_bytes + table

    @property
    def _copy_bytes(self) -> int:
        size = self.copy.size if self.copy is not None else 0
        return -(-size // _PLACE_BYTES) * _PLACE_BYTES

    @property
    def _row(self) -> int:
        """The dimension whose pixels follow each other: the last one of more than one."""
        return max((place for place, axis in enumerate(self.axes) if axis.out > 1), default=0)

    @property
    def _aligned(self) -> bool:
        """Whether the tiles' pixels are in one row of the result each."""
        row = self._row
        return self.axes[row].out % self.tile.rows == 0 or all(axis.out == 1 for axis in self.axes[:row])

    @property
    def side(self) -> Side:
        across = self.axes[self._row].stride * self.strides[self._row]
        if self.copy is not None or self.arithmetic.group > 1:
            align = self.image.bytes if self.copy is None else self.arithmetic.unit_bytes
            return Side(self.arithmetic.unit, across, self.arithmetic.unit_bytes, align)
        along = self.image.feature * self.image.bytes
        return Side(self.image.kind, across, along, self.image.bytes, self.image.signed)

    def prepare(self, function: Function, lhs: Value, begin: Value, end: Value, memory: Value) -> None:
        sizes = [axis.out for axis in self.axes]
        count, width = math.prod(sizes), math.prod(sizes[1:])
        first = clamped(function, begin * self.tile.rows, count - self.tile.rows)
        last = clamped(function, end * self.tile.rows, count)
        if self.copy is not None:
            origin = first.udiv(width)
            rows = ((last - 1).udiv(width) - origin) * self.axes[0].stride + self.axes[0].rows_for(1)
            self.copy.fill(function, self.image, lhs, origin * self.axes[0].stride, rows, memory)
        if self._aligned:
            return
        table = function.offset(memory, I8, self._copy_bytes)
        with each(function, first, last, hints=SCALAR) as pixel:
            function.store(self._place(function, pixel, first), function.offset(table, I64, pixel - first))

    def rows(
        self, function: Function, lhs: Value, begin: Value, number: Value, row: Value, memory: Value | None
    ) -> list[Value]:
        count = math.prod(axis.out for axis in self.axes)
        first = clamped(function, begin * self.tile.rows, count - self.tile.rows)
        start = lhs
        if self.copy is not None:
            assert memory is not None
            start = memory
        if self._aligned:
            return [function.offset(start, I8, self._place(function, row, first))]
        assert memory is not None
        # Divisions for each row of a tile would take LLVM longer than the rest of the loops.
        table = function.offset(function.offset(memory, I8, self._copy_bytes), I64, row - first)
        places = [function.load(function.offset(table, I64, place), I64) for place in range(self.tile.rows)]
        return [function.offset(start, I8, place) for place in places]

    def window(self, function: Function, lhs: Value, pixel: Value, first: Value, memory: Value) -> Value:
        """The address of a pixel's window, after ``prepare`` for pixels from ``first`` on."""
        start = memory if self.copy is not None else lhs
        if self._aligned:
            return function.offset(start, I8, self._place(function, pixel, first))
        table = function.offset(memory, I8, self._copy_bytes)
        return function.offset(start, I8, function.load(function.offset(table, I64, pixel - first), I64))

    def _place(self, function: Function, pixel: Value, first: Value) -> Value:
        """The distance of a pixel's window from the image, or from the copy, which begins with the row of ``first``."""
        sizes = [axis.out for axis in self.axes]
        steps = [axis.stride * stride for axis, stride in zip(self.axes, self.strides, strict=True)]
        indices = split_index(function, pixel, sizes)
        if self.copy is not None:
            indices[0] = indices[0] - first.udiv(math.prod(sizes[1:]))
        total = function.index(0)
        for index, step in zip(indices, steps, strict=True):
            total = total + index * step
        if self.copy is None:
            # Pixels before the first window's.
            total = total + sum(-axis.low * stride for axis, stride in zip(self.axes, self.strides, strict=True))
        return total


def copied_rows(axes: Sequence[Axis], tiles: int, tile: Tile) -> int:
    """The most rows of the padded image that so many consecutive tiles see."""
    width = math.prod(axis.out for axis in axes[1:])
    pixels = tiles * tile.rows
    return axes[0].rows_for(min(axes[0].out, (pixels + width - 2) // width + 1))
