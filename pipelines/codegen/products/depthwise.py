"""Depthwise convolutions whose features are contiguous: each is a vector's lane, and there is no product.

Some pixels of a row of the result are computed together, which share the weights and most pixels that they see::

    for unit in piece:                        # of the batch, chunks of rows of the result
        copy the image's rows that they see, if they have to be of another type
        for row, vector of features, pixels:
            sums = 0; for each row of the window in the image, for each weight: sums += weight * pixels
            store sums

Padding is not read: rows of the window outside of the image are left out, and the first and last pixels of a row have
loops of their own, without the weights that see no pixel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hloforge.pipelines.codegen.chains import Terms, add_up
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import BFLOAT, FLOAT, HALF, I8, Value, bits_of
from hloforge.pipelines.codegen.products import depthwise_bytes, images, packing
from hloforge.pipelines.codegen.products.arithmetic import BF16, Arithmetic, one_by_one
from hloforge.pipelines.codegen.products.blocking import Tile, lanes_for
from hloforge.pipelines.codegen.products.images import Axis, Copy, Image
from hloforge.pipelines.codegen.products.loops import each
from hloforge.pipelines.codegen.products.micro_kernel import wide
from hloforge.pipelines.codegen.products.operands import Matrix, clamped, split_index, strided
from hloforge.pipelines.codegen.products.results import Results
from hloforge.pipelines.framework.machine import Machine

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.products.convolution import Convolution

# Pixels that are computed together, and weights of a row of the window that are written out.
_PIXELS, _WRITTEN_OUT = 8, 7
# Tiles of pixels at the borders of a row that have code of their own at most.
_BORDERS = 3
# Of the second-level cache, what the copy of an image's rows may fill.
_SHARE = 3
# Pieces for workers are chunks of rows: so many of them at least where there are rows.
_CHUNKS = 8
_LINE = 64


@dataclass(frozen=True)
class DepthwisePlan:
    """How a convolution is cut.

    Attributes:
        lanes: features of a vector.
        pixels: of the result in a row that are computed together.
        rows: of the result in a chunk, along the first spatial dimension.
        copy: of the image; None to read it in place.
        groups: the instruction that multiplies four bytes (``depthwise_bytes.py``), whose copy is of bytes; None for
            terms one by one.
    """

    lanes: int
    pixels: int
    rows: int
    copy: Copy | None
    groups: Arithmetic | None = None


def takes(one: Convolution) -> bool:
    """Whether each group has one feature, next to those of other groups."""
    if (one.inputs, one.outputs) != (1, 1) or one.groups == 1:
        return False
    return one.out.group == 1 and one.image.group == 1


def plan(one: Convolution, machine: Machine) -> DepthwisePlan:
    """A plan for two spatial dimensions at least."""
    width, rows = one.axes[-1].out, one.axes[0].out
    rows = -(-rows // min(_CHUNKS, rows))
    lanes = lanes_for(one.sums, one.groups, machine)
    groups = depthwise_bytes.arithmetic_of(one, lanes, machine)
    # Of equal numbers of tiles the smallest ones, which overlap least.
    pixels = -(-width // -(-width // min(width, _PIXELS)))
    is_plain = _is_read_in_place(one) and (
        all(axis.is_plain for axis in one.axes) or (groups is None and _may_read_in_place(one, pixels))
    )
    while True:
        seen = one.axes[0].rows_for(rows)
        copy = images.by_pixels(one.axes, one.groups, seen, one_by_one(one.sums))
        size = copy.size if groups is None else depthwise_bytes.strides_of(one, seen)[-1]
        if is_plain or rows == 1 or size <= machine.l2_bytes // _SHARE:
            break
        rows = -(-rows // 2)
    kept = None if is_plain else copy
    if groups is not None:
        kept = depthwise_bytes.byte_copy(one, one.axes[0].rows_for(rows))
    return DepthwisePlan(lanes, pixels, rows, kept, groups)


def _is_read_in_place(one: Convolution) -> bool:
    """Whether elements are of the sums' type, or become it by an instruction or two, for a few weights each."""
    return one.image.kind == one.sums or (one.sums == FLOAT and one.image.kind in (BFLOAT, HALF))


def _may_read_in_place(one: Convolution, pixels: int) -> bool:
    """Whether few tiles of pixels see padding before and after a row."""
    if len(one.axes) != 2 or any(axis.base != 1 for axis in one.axes) or one.axes[-1].window > _WRITTEN_OUT:
        return False
    return sum(not _is_inside(one.axes[-1], first, pixels) for first in _tiles(one.axes[-1], pixels)) <= _BORDERS


def _tiles(axis: Axis, pixels: int) -> list[int]:
    """The first pixels of a row's tiles, of which the last one ends with the row."""
    return [min(first, axis.out - pixels) for first in range(0, axis.out, pixels)]


def _is_inside(axis: Axis, first: int, pixels: int) -> bool:
    """Whether the windows of some pixels see the image alone."""
    start = first * axis.stride - axis.low
    return start >= 0 and start + axis.rows_for(pixels) <= axis.size


def units(one: Convolution, found: DepthwisePlan) -> tuple[int, int]:
    """How many images and chunks of rows there are."""
    return one.batch, -(-one.axes[0].out // found.rows)


def _areas(one: Convolution, found: DepthwisePlan) -> tuple[int, int, int]:
    """Bytes of the copy, of packed pixels and of the weights."""
    copy, packed = found.copy.size if found.copy is not None else 0, 0
    features = -(-one.groups // found.lanes) * found.lanes
    weights = math.prod(axis.window for axis in one.axes) * features * bits_of(one.sums) // 8
    if found.groups is not None:
        packed = depthwise_bytes.strides_of(one, one.axes[0].rows_for(found.rows))[-1]
        weights = depthwise_bytes.weight_bytes(one)
    return -(-copy // _LINE) * _LINE, -(-packed // _LINE) * _LINE, weights


def scratch_bytes(one: Convolution, found: DepthwisePlan) -> int:
    return sum(_areas(one, found))


def _distance(function: Function, places: Sequence[Value], strides: Sequence[int]) -> Value:
    """Bytes to a place."""
    total = function.index(0)
    for place, stride in zip(places, strides, strict=True):
        total = total + place * stride
    return total


class DepthwiseProduct:
    """Writes the loops of a convolution.

    Args:
        results: of one group, whose rows are pixels of all spatial dimensions together and whose columns features.
    """

    def __init__(
        self,
        function: Function,
        one: Convolution,
        found: DepthwisePlan,
        image: Value,
        kernel: Value,
        results: Results,
        scratch: Value,
    ) -> None:
        self.function, self.one, self.plan = function, one, found
        self.image, self.kernel, self.results = image, kernel, results
        copy, packed, _ = _areas(one, found)
        self.copy, self.packed = scratch, function.offset(scratch, I8, copy)
        self.weights = function.offset(scratch, I8, copy + packed)

    @property
    def _image(self) -> Image:
        """The groups as features of one."""
        return replace(self.one.image, feature=self.one.image.group)

    def run(self, first: Value, last: Value) -> None:
        """Units from ``first`` up to ``last``."""
        self.function.rounds_bfloat = BF16 in self.one.extensions
        self._run(first, last)
        self.function.rounds_bfloat = False

    def _run(self, first: Value, last: Value) -> None:
        function, one, found = self.function, self.one, self.plan
        if found.groups is None:
            self._pack_weights()
        else:
            depthwise_bytes.pack_weights(function, one, found.groups, found.lanes, self.kernel, self.weights)
        axes, image = one.axes, self._image
        counts = [found.rows, *(axis.out for axis in axes[1:-1])]
        window = math.prod(axis.window for axis in axes)
        strides = [stride * image.bytes for stride in image.spatial] if found.copy is None else found.copy.strides
        steps = [axis.stride * stride for axis, stride in zip(axes, strides, strict=True)]
        inside, size = steps, bits_of(one.sums) // 8
        if found.copy is None and found.groups is None:
            size = image.bytes
        if found.groups is not None:
            packed = depthwise_bytes.strides_of(one, axes[0].rows_for(found.rows))[:-1]
            # Packed pixels of a row are a window's stride apart.
            inside = [*(axis.stride * stride for axis, stride in zip(axes[:-1], packed, strict=False)), packed[-1]]
        with each(function, first, last) as unit:
            number, chunk = split_index(function, unit, units(one, found))
            begin = clamped(function, chunk * found.rows, axes[0].out - found.rows)
            start = strided(function, self.image, image.kind, [number], [image.batch])
            if found.copy is None:
                skipped = sum(-axis.low * stride for axis, stride in zip(axes, strides, strict=True))
                start = function.moved(start, begin * steps[0] + skipped)
            else:
                rows = function.index(axes[0].rows_for(found.rows))
                found.copy.fill(function, image, start, begin * axes[0].stride, rows, self.copy)
                start = self.copy
            if found.groups is not None:
                self._pack(start, strides)
                start = self.packed
            with each(function, 0, math.prod(counts)) as line:
                places = split_index(function, line, counts)
                row = function.moved(start, _distance(function, places, inside[:-1]))
                rows_of_window = self._rows_of_window(begin + places[0])
                pixels = (begin * math.prod(counts[1:]) + line) * axes[-1].out
                with each(function, 0, one.groups, found.lanes) as reached:
                    feature = clamped(function, reached, one.groups - found.lanes)
                    weights = strided(function, self.weights, one.sums, [reached], [window])
                    for begun, stop in self._runs():
                        with each(function, begun, stop, found.pixels) as place:
                            pixel = clamped(function, place, axes[-1].out - found.pixels)
                            distance = _distance(function, [pixel, feature], [inside[-1], size])
                            at = function.moved(row, distance)
                            sums = self._sums(at, feature, weights, strides, rows_of_window, pixel)
                            self._store(sums, number, pixels + pixel, feature)

    def _runs(self) -> list[tuple[int, int]]:
        """Pixels of a row whose tiles are one loop: those that see no padding, and each of the others."""
        axis, count = self.one.axes[-1], self.plan.pixels
        if self.plan.copy is not None:
            return [(0, axis.out)]
        runs: list[tuple[int, int]] = []
        is_joined = False
        for number, first in enumerate(_tiles(axis, count)):
            begin, is_inside = number * count, _is_inside(axis, first, count)
            if is_inside and is_joined:
                runs[-1] = runs[-1][0], min(begin + count, axis.out)
            else:
                runs.append((begin, min(begin + count, axis.out)))
            is_joined = is_inside
        return runs

    def _rows_of_window(self, row: Value) -> tuple[Value, Value] | None:
        """The first row of the window that is in the image, and how many are, for a row of the result; None for all."""
        function, axis = self.function, self.one.axes[0]
        if self.plan.copy is not None or axis.is_plain or self.plan.groups is not None:
            return None
        start = row * axis.stride - axis.low
        # Numbers stay positive for the divisions.
        above = (function.index(0) - start).maximum(0) + (axis.dilation - 1)
        below = (function.index(axis.size) - start).maximum(0) + (axis.dilation - 1)
        first = above.udiv(axis.dilation).minimum(axis.window)
        return first, (below.udiv(axis.dilation).minimum(axis.window) - first).maximum(0)

    def _pack(self, start: Value, strides: Sequence[int]) -> None:
        """Pack the rows that a chunk sees, from the address of their first pixel on."""
        function, one, found = self.function, self.one, self.plan
        assert found.groups is not None
        rows = [one.axes[0].rows_for(found.rows), *(axis.padded for axis in one.axes[1:-1])]
        packed = depthwise_bytes.strides_of(one, rows[0])
        with each(function, 0, math.prod(rows)) as line:
            place = split_index(function, line, rows)
            row = strided(function, start, I8, place, strides[:-1])
            to = strided(function, self.packed, I8, place, packed[: len(rows)])
            depthwise_bytes.pack_row(function, one, found.groups, found.lanes, row, strides[-1], to)

    def _pack_weights(self) -> None:
        """``[vectors of features, window, lanes]`` of the sums' type; the last vector ends with the features."""
        function, one, lanes = self.function, self.one, self.plan.lanes
        kernel, windows = one.kernel, [axis.window for axis in one.axes]
        # Windows' dimensions that follow each other are one run of terms.
        run, outer = windows[-1], len(windows) - 1
        while outer and kernel.spatial[outer - 1] == run * kernel.spatial[-1]:
            outer -= 1
            run *= windows[outer]
        matrix = Matrix(kernel.kind, (), kernel.spatial[-1], kernel.group, kernel.signed)
        tile, arithmetic = Tile(lanes, 1, 1), one_by_one(one.sums)
        with each(function, 0, one.groups, lanes) as reached, each(function, 0, math.prod(windows[:outer])) as turn:
            feature = clamped(function, reached, one.groups - lanes)
            places = [feature, *split_index(function, turn, windows[:outer])]
            source = strided(function, self.kernel, kernel.kind, places, [kernel.group, *kernel.spatial[:outer]])
            target = strided(function, self.weights, one.sums, [reached, turn], [math.prod(windows), run * lanes])
            packing.pack_strip(function, tile, arithmetic, matrix, [source], run, target)

    def _sums(
        self,
        at: Value,
        feature: Value,
        weights: Value,
        strides: Sequence[int],
        rows_of_window: tuple[Value, Value] | None,
        begin: Value,
    ) -> list[Value]:
        """Of some pixels, from ``begin`` on, whose windows begin at an address and steps further.

        Args:
            weights: the address of those of a vector of features.
        """
        function, one, found = self.function, self.one, self.plan
        if found.groups is not None:
            packed = depthwise_bytes.strides_of(one, one.axes[0].rows_for(found.rows))[:-1]
            return depthwise_bytes.sums(
                function, one, found.groups, found.lanes, found.pixels, at, self.weights, feature, packed
            )
        kind, size = wide(one.sums, self.plan.lanes), bits_of(one.sums) // 8
        stored = wide(one.image.kind, self.plan.lanes) if found.copy is None else kind
        zero = [function.constant(0, kind)] * self.plan.pixels
        last = one.axes[-1]
        is_border = found.copy is None and not last.is_plain and begin.is_constant
        written = last.window if last.window <= _WRITTEN_OUT else 1
        outer = [axis.window for axis in one.axes[:-1]]
        steps = [axis.dilation * stride for axis, stride in zip(one.axes, strides, strict=True)]
        if written < last.window:
            outer.append(last.window)

        def is_seen(pixel: int, place: int) -> bool:
            if not is_border:
                return True
            return 0 <= (int(begin.text) + pixel) * last.stride + place * last.dilation - last.low < last.size

        def add(turns: Sequence[Value], sums: Sequence[Value]) -> list[Value]:
            (turn,) = turns
            start = function.moved(at, _distance(function, split_index(function, turn, outer), steps[: len(outer)]))
            weight = strided(function, weights, I8, [turn], [written * self.plan.lanes * size])
            loaded: dict[int, Value] = {}
            totals = list(sums)
            for place in range(written):
                pixels = [pixel for pixel in range(self.plan.pixels) if is_seen(pixel, place)]
                if not pixels:
                    continue
                factor = function.load(function.offset(weight, one.sums, place * self.plan.lanes), kind)
                for pixel in pixels:
                    distance = pixel * last.stride * strides[-1] + place * steps[-1]
                    if distance not in loaded:
                        pixels_at = function.moved(start, function.index(distance))
                        loaded[distance] = function.load(pixels_at, stored).as_(one.sums)
                    totals[pixel] = one_by_one(one.sums).multiply_add(loaded[distance], factor, totals[pixel])
            return totals

        count, most = math.prod(outer), math.prod(outer)
        if rows_of_window is None:
            return add_up(function, [Terms(count, most, (1,))], [function.index(0)], zero, add, weight=written)
        first, rows = rows_of_window
        return add_up(function, [Terms(rows, most, (1,))], [first], zero, add, weight=written)

    def _store(self, sums: Sequence[Value], batch: Value, row: Value, column: Value) -> None:
        function, out = self.function, self.one.out
        start = self.results.address_of(batch, row, column)
        if self.results.is_plain:
            for place, total in enumerate(sums):
                function.store(total.as_(out.kind), function.offset(start, out.kind, place * out.spatial[-1]))
            return
        memory = function.stack(sums[0].kind, len(sums))
        for place, total in enumerate(sums):
            function.store(total, function.offset(memory, total.kind, place))
        with each(function, 0, len(sums)) as number:
            value = function.load(function.offset(memory, sums[0].kind, number), sums[0].kind)
            address = strided(function, start, out.kind, [number], [out.spatial[-1]])
            self.results.put(value, batch, row + number, column, address)
