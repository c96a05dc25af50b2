"""Windows of an image as the rows of a left factor: pixels of the result by weights and input features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I8, Value
from hloforge.pipelines.codegen.products.arithmetic import Arithmetic
from hloforge.pipelines.codegen.products.blocking import Tile
from hloforge.pipelines.codegen.products.images import Axis, Copy, Image, Kernel
from hloforge.pipelines.codegen.products.micro_kernel import Side, Turn
from hloforge.pipelines.codegen.products.operands import clamped, split_index, strided


@dataclass(frozen=True)
class Windows:
    """Rows are the result's pixels in row-major order; terms are weights, and features of an image within them.

    Attributes:
        copy: of the image with its padding; None to read the image in place.
    """

    axes: tuple[Axis, ...]
    features: int
    image: Image
    kernel: Kernel
    tile: Tile
    arithmetic: Arithmetic
    copy: Copy | None

    @property
    def _strides(self) -> tuple[int, ...]:
        """Bytes between pixels that are read."""
        if self.copy is not None:
            return self.copy.strides
        return tuple(stride * self.image.bytes for stride in self.image.spatial)

    @property
    def _pixel_bytes(self) -> int:
        return -(-self.features // self.arithmetic.group) * self.arithmetic.unit_bytes

    @property
    def _merges(self) -> bool:
        """Whether the last dimension's weights and features follow each other in both factors."""
        last, kernel = self.axes[-1], self.kernel
        return (
            last.dilation == 1
            and self.features % self.arithmetic.group == 0
            and self._strides[-1] == self._pixel_bytes
            and kernel.spatial[-1] == self.features * kernel.input
        )

    @property
    def run(self) -> int:
        return self.features * (self.axes[-1].window if self._merges else 1)

    @property
    def turns(self) -> tuple[Turn, ...]:
        found = [
            Turn(axis.window, axis.dilation * stride, weights * self.kernel.bytes)
            for axis, stride, weights in zip(self.axes, self._strides, self.kernel.spatial, strict=True)
        ]
        if self._merges:
            found.pop()
        return tuple(turn for turn in found if turn.count > 1)

    @property
    def size(self) -> int:
        return self.copy.size if self.copy is not None else 0

    @property
    def _aligned(self) -> bool:
        """Whether the tiles' pixels are in one row of the result each."""
        return self.axes[-1].out % self.tile.rows == 0

    @property
    def side(self) -> Side:
        across = self.axes[-1].stride * self._strides[-1]
        if self.copy is not None or self.arithmetic.group > 1:
            align = self.image.bytes if self.copy is None else self.arithmetic.unit_bytes
            return Side(self.arithmetic.unit, across, self.arithmetic.unit_bytes, align)
        along = self.image.feature * self.image.bytes
        return Side(self.image.kind, across, along, self.image.bytes, self.image.signed)

    def prepare(self, function: Function, lhs: Value, begin: Value, end: Value, memory: Value) -> None:
        assert self.copy is not None
        count, width = math.prod(axis.out for axis in self.axes), math.prod(axis.out for axis in self.axes[1:])
        first = clamped(function, begin * self.tile.rows, count - self.tile.rows).udiv(width)
        last = (clamped(function, end * self.tile.rows, count) - 1).udiv(width)
        rows = self.axes[0].rows_for(1)
        stride = self.axes[0].stride
        self.copy.fill(function, self.image, lhs, first * stride, (last - first) * stride + rows, memory)

    def rows(
        self, function: Function, lhs: Value, begin: Value, number: Value, row: Value, memory: Value | None
    ) -> list[Value]:
        sizes = [axis.out for axis in self.axes]
        steps = [axis.stride * stride for axis, stride in zip(self.axes, self._strides, strict=True)]
        if self.copy is None:
            # Pixels before the first window's.
            skipped = sum(-axis.low * stride for axis, stride in zip(self.axes, self._strides, strict=True))
            start = function.offset(lhs, I8, skipped)
        else:
            assert memory is not None
            # The copy begins with the first tile's first row.
            width = math.prod(sizes[1:])
            first = clamped(function, begin * self.tile.rows, math.prod(sizes) - self.tile.rows).udiv(width)
            start = strided(function, memory, I8, [first], [-steps[0]])
        return [
            strided(function, start, I8, split_index(function, _plus(row, place), sizes), steps)
            for place in range(1 if self._aligned else self.tile.rows)
        ]


def copied_rows(axes: Sequence[Axis], tiles: int, tile: Tile) -> int:
    """The most rows of the padded image that so many consecutive tiles see."""
    width = math.prod(axis.out for axis in axes[1:])
    pixels = tiles * tile.rows
    return axes[0].rows_for(min(axes[0].out, (pixels + width - 2) // width + 1))


def _plus(row: Value, place: int) -> Value:
    return row + place if place else row
