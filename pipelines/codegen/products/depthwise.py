"""Depthwise convolutions whose features are contiguous: each is a vector's lane, and there is no product.

Some pixels of a row of the result are computed together, which share the weights and most pixels that they see::

    for unit in piece:                        # of the batch, chunks of rows of the result
        copy the image's rows that they see, if there is padding
        for row, vector of features, pixels:
            sums = 0; for each row of the window, for each weight: sums += weight * pixels
            store sums
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hloforge.pipelines.codegen.chains import Terms, add_up
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I8, Value, bits_of
from hloforge.pipelines.codegen.products import depthwise_bytes, images
from hloforge.pipelines.codegen.products.arithmetic import Arithmetic, one_by_one
from hloforge.pipelines.codegen.products.blocking import lanes_for
from hloforge.pipelines.codegen.products.images import Copy, Image
from hloforge.pipelines.codegen.products.loops import each
from hloforge.pipelines.codegen.products.micro_kernel import wide
from hloforge.pipelines.codegen.products.operands import clamped, split_index, strided
from hloforge.pipelines.codegen.products.packing import element
from hloforge.pipelines.codegen.products.results import Results
from hloforge.pipelines.framework.machine import Machine

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.products.convolution import Convolution

# Pixels that are computed together, and weights of a row of the window that are written out.
_PIXELS, _WRITTEN_OUT = 8, 7
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
    is_plain = all(axis.is_plain for axis in one.axes) and one.image.kind == one.sums
    lanes = lanes_for(one.sums, one.groups, machine)
    groups = depthwise_bytes.arithmetic_of(one, lanes, machine)
    while True:
        seen = one.axes[0].rows_for(rows)
        copy = images.by_pixels(one.axes, one.groups, seen, one_by_one(one.sums))
        size = copy.size if groups is None else depthwise_bytes.strides_of(one, seen)[-1]
        if is_plain or rows == 1 or size <= machine.l2_bytes // _SHARE:
            break
        rows = -(-rows // 2)
    # Of equal numbers of tiles the smallest ones, which overlap least.
    tiles = -(-width // min(width, _PIXELS))
    kept = None if is_plain else copy
    if groups is not None:
        kept = depthwise_bytes.byte_copy(one, one.axes[0].rows_for(rows))
    return DepthwisePlan(lanes, -(-width // tiles), rows, kept, groups)


def units(one: Convolution, found: DepthwisePlan) -> tuple[int, int]:
    """How many images and chunks of rows there are."""
    return one.batch, -(-one.axes[0].out // found.rows)


def _areas(one: Convolution, found: DepthwisePlan) -> tuple[int, int, int]:
    """Bytes of the copy, of packed pixels and of the weights."""
    copy, packed = found.copy.size if found.copy is not None else 0, 0
    weights = math.prod(axis.window for axis in one.axes) * one.groups * bits_of(one.sums) // 8
    if found.groups is not None:
        packed = depthwise_bytes.strides_of(one, one.axes[0].rows_for(found.rows))[-1]
        weights = depthwise_bytes.weight_bytes(one)
    return -(-copy // _LINE) * _LINE, -(-packed // _LINE) * _LINE, weights


def scratch_bytes(one: Convolution, found: DepthwisePlan) -> int:
    return sum(_areas(one, found))


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
        function, one, found = self.function, self.one, self.plan
        if found.groups is None:
            self._copy_weights()
        else:
            depthwise_bytes.pack_weights(function, one, found.groups, found.lanes, self.kernel, self.weights)
        axes, image = one.axes, self._image
        counts = [found.rows, *(axis.out for axis in axes[1:-1])]
        strides = [stride * image.bytes for stride in image.spatial] if found.copy is None else found.copy.strides
        steps = [axis.stride * stride for axis, stride in zip(axes, strides, strict=True)]
        inside = steps
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
                start = strided(function, function.offset(start, I8, skipped), I8, [begin], [steps[0]])
            else:
                rows = function.index(axes[0].rows_for(found.rows))
                found.copy.fill(function, image, start, begin * axes[0].stride, rows, self.copy)
                start = self.copy
            if found.groups is not None:
                self._pack(start, strides)
                start = self.packed
            with each(function, 0, math.prod(counts)) as line:
                row = strided(function, start, I8, split_index(function, line, counts), inside[:-1])
                pixels = (begin * math.prod(counts[1:]) + line) * axes[-1].out
                with each(function, 0, one.groups, found.lanes) as reached:
                    feature = clamped(function, reached, one.groups - found.lanes)
                    with each(function, 0, axes[-1].out, found.pixels) as place:
                        pixel = clamped(function, place, axes[-1].out - found.pixels)
                        at = strided(function, row, I8, [pixel, feature], [inside[-1], bits_of(one.sums) // 8])
                        sums = self._sums(at, feature, strides)
                        self._store(sums, number, pixels + pixel, feature)

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

    def _copy_weights(self) -> None:
        """``[window, features]`` of the sums' type."""
        function, one = self.function, self.one
        windows, kernel = [axis.window for axis in one.axes], one.kernel
        lanes = self.plan.lanes if kernel.group == 1 else 1
        with each(function, 0, math.prod(windows)) as weight, each(function, 0, one.groups, lanes) as reached:
            feature = clamped(function, reached, one.groups - lanes)
            places = [*split_index(function, weight, windows), feature]
            source = strided(function, self.kernel, kernel.kind, places, [*kernel.spatial, kernel.group])
            value = element(function, one_by_one(one.sums), kernel, source, lanes)
            function.store(value, function.offset(self.weights, one.sums, weight * one.groups + feature))

    def _sums(self, at: Value, feature: Value, strides: Sequence[int]) -> list[Value]:
        """Of some pixels, whose windows begin at an address and steps further."""
        function, one, found = self.function, self.one, self.plan
        if found.groups is not None:
            packed = depthwise_bytes.strides_of(one, one.axes[0].rows_for(found.rows))[:-1]
            return depthwise_bytes.sums(
                function, one, found.groups, found.lanes, found.pixels, at, self.weights, feature, packed
            )
        kind, size = wide(one.sums, self.plan.lanes), bits_of(one.sums) // 8
        zero = [function.constant(0, kind)] * self.plan.pixels
        weights = function.offset(self.weights, one.sums, feature)
        last = one.axes[-1]
        written = last.window if last.window <= _WRITTEN_OUT else 1
        outer = [axis.window for axis in one.axes[:-1]]
        steps = [axis.dilation * stride for axis, stride in zip(one.axes, strides, strict=True)]
        if written < last.window:
            outer.append(last.window)

        def add(turns: Sequence[Value], sums: Sequence[Value]) -> list[Value]:
            (turn,) = turns
            start = strided(function, at, I8, split_index(function, turn, outer), steps[: len(outer)])
            weight = strided(function, weights, I8, [turn], [written * one.groups * size])
            loaded: dict[int, Value] = {}
            totals = list(sums)
            for place in range(written):
                factor = function.load(function.offset(weight, one.sums, place * one.groups), kind)
                for pixel in range(self.plan.pixels):
                    distance = pixel * last.stride * strides[-1] + place * steps[-1]
                    if distance not in loaded:
                        loaded[distance] = function.load(function.offset(start, I8, distance), kind)
                    totals[pixel] = one_by_one(one.sums).multiply_add(loaded[distance], factor, totals[pixel])
            return totals

        turns = [Terms(math.prod(outer), math.prod(outer), (1,))]
        return add_up(function, turns, [function.index(0)], zero, add, weight=written)

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
