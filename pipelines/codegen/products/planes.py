"""Convolutions whose pixels are contiguous: products whose rows are features and whose columns are pixels.

A row of the right factor is a plane of the image, moved by a weight's place in the window, and weights are read in
place. Pixels of several rows are taken together, with the gaps that the window leaves between them in the image: sums
of pixels in gaps are computed, and nobody reads them. Strides are no gaps, because the copy of the image deals its
pixels out (``images.by_planes``)::

    for unit in piece:                       # of the batch, groups, chunks of rows of the result
        copy the image's rows that they see
        for strip of pixels, tile of features:
            sums = 0; for each weight, for each input feature: sums += weight * pixels
            keep sums
        for feature, row of pixels: store sums
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hloforge.pipelines.codegen.chains import Terms, add_up, length, limit_of
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I8, I64, Number, Value, bits_of
from hloforge.pipelines.codegen.products import images
from hloforge.pipelines.codegen.products.arithmetic import one_by_one
from hloforge.pipelines.codegen.products.blocking import Tile, choose_tile
from hloforge.pipelines.codegen.products.images import Copy
from hloforge.pipelines.codegen.products.loops import each
from hloforge.pipelines.codegen.products.micro_kernel import Side, add_terms, loops_of, wide, zeros
from hloforge.pipelines.codegen.products.operands import clamped, split_index, strided
from hloforge.pipelines.codegen.products.phases import Phase
from hloforge.pipelines.codegen.products.results import Results
from hloforge.pipelines.framework.machine import Machine

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.products.convolution import Convolution

# Of the second-level cache, what the copy of an image's rows and what the sums of a chunk may fill each.
_SHARE = 3
# Rows that are cut into two chunks so that there are pieces for workers.
_LEAST_ROWS = 8
_LINE = 64


@dataclass(frozen=True)
class PlanesPlan:
    """How a convolution is cut.

    Attributes:
        tile: rows are features, columns pixels.
        rows: of the result in a chunk, along the first spatial dimension.
        pitches: of the result's pixels among the columns, for each spatial dimension.
        columns: pixels of a chunk with the gaps between them.
        copy: of the image; None to read it in place.
    """

    tile: Tile
    rows: int
    pitches: tuple[int, ...]
    columns: int
    copy: Copy | None


def plan(one: Convolution, machine: Machine) -> PlanesPlan:
    """A plan for two spatial dimensions at least."""
    rows, size = one.axes[0].out, bits_of(one.sums) // 8
    wanted = one.pieces(machine)
    while wanted > 1 and rows >= _LEAST_ROWS and -(-one.axes[0].out // rows) * one.batch * one.groups < 2 * wanted:
        rows = -(-rows // 2)
    while True:
        rows = -(-one.axes[0].out // -(-one.axes[0].out // rows))
        copy = images.by_planes(one.axes, one.inputs, one.axes[0].rows_for(rows), 0, one_by_one(one.sums))
        in_place = _is_in_place(one)
        pitches = one.image.spatial if in_place else tuple(stride // size for stride in copy.strides)
        counts = [rows, *(axis.out for axis in one.axes[1:])]
        columns = 1 + sum((count - 1) * pitch for count, pitch in zip(counts, pitches, strict=True))
        largest = max(0 if in_place else copy.size, one.outputs * columns * size)
        if rows == 1 or largest <= machine.l2_bytes // _SHARE:
            break
        rows = -(-rows // 2)
    terms = one.inputs * math.prod(axis.window for axis in one.axes)
    tile = choose_tile(one.sums, one.outputs, columns, terms, machine)
    return PlanesPlan(tile, rows, pitches, columns, None if in_place else copy)


def _is_in_place(one: Convolution) -> bool:
    return (
        all(axis.is_plain and axis.stride == 1 for axis in one.axes)
        and one.image.spatial[-1] == 1
        and one.image.kind == one.sums
        and all(pitch > 0 for pitch in one.image.spatial[1:])
    )


def units(one: Convolution, found: PlanesPlan, phases: Sequence[Phase]) -> tuple[int, ...]:
    """How many images, groups, phases of each dimension and chunks of rows there are."""
    return one.batch, one.groups, *(phase.count for phase in phases), -(-one.axes[0].out // found.rows)


def _areas(one: Convolution, found: PlanesPlan) -> tuple[int, int, int]:
    """Bytes of the copy, of a chunk's sums and of the table of weights."""
    copy = found.copy.size if found.copy is not None else 0
    sums = one.outputs * found.columns * bits_of(one.sums) // 8
    table = math.prod(axis.window for axis in one.axes) * 16
    return _whole(copy), _whole(sums), table


def scratch_bytes(one: Convolution, found: PlanesPlan) -> int:
    return sum(_areas(one, found))


def _whole(size: int) -> int:
    return -(-size // _LINE) * _LINE


class PlaneProduct:
    """Writes the loops of a convolution.

    Args:
        phases: of each dimension where the image has zeros between its pixels, which ``one`` is without.
        results: whose rows are features and whose columns are pixels of all spatial dimensions together.
    """

    def __init__(
        self,
        function: Function,
        one: Convolution,
        found: PlanesPlan,
        phases: Sequence[Phase],
        image: Value,
        kernel: Value,
        results: Results,
        scratch: Value,
    ) -> None:
        self.function, self.one, self.plan, self.tile, self.phases = function, one, found, found.tile, phases
        self.image, self.kernel, self.results = image, kernel, results
        copy, sums, _ = _areas(one, found)
        self.copy, self.sums = scratch, function.offset(scratch, I8, copy)
        self.table = function.offset(scratch, I8, copy + sums)

    def run(self, first: Value, last: Value) -> None:
        """Units from ``first`` up to ``last``."""
        function, one = self.function, self.one
        image, out = one.image, one.axes[0].out
        counts: Sequence[Number] = [axis.window for axis in one.axes]
        if not self.phases:
            self._write_table(counts)
        with each(function, first, last) as unit:
            number, group, *chosen, chunk = split_index(function, unit, units(one, self.plan, self.phases))
            begin = chunk * self.plan.rows
            # The last chunk begins early enough to be as large as the others.
            begin = clamped(function, begin, out - self.plan.rows)
            start = strided(function, self.image, image.kind, [number, group], [image.batch, image.group])
            if self.plan.copy is None:
                skipped = sum(-axis.low * stride for axis, stride in zip(one.axes, image.spatial, strict=True))
                start = function.offset(start, image.kind, skipped)
                start = strided(function, start, image.kind, [begin], [image.spatial[0]])
            else:
                rows = function.index(one.axes[0].rows_for(self.plan.rows))
                self.plan.copy.fill(function, image, start, begin * one.axes[0].stride, rows, self.copy)
                start = self.copy
            weights = strided(function, self.kernel, one.kernel.kind, [group], [one.kernel.group])
            batch = number * one.groups + group
            if self.phases:
                start, weights, counts = self._choose(chosen, start, weights)
                for phase, place in zip(self.phases, chosen, strict=True):
                    batch = batch * phase.count + place
                self._write_table(counts)
            self._tiles(start, weights, counts)
            self._finish(batch, begin)

    def _choose(self, chosen: Sequence[Value], image: Value, kernel: Value) -> tuple[Value, Value, list[Number]]:
        """Where windows and weights of some phases begin, and the weights of each dimension."""
        function, one = self.function, self.one
        counts: list[Number] = []
        for axis, (phase, place) in enumerate(zip(self.phases, chosen, strict=True)):
            if phase.count == 1:
                counts.append(phase.axis.window)
                continue
            weight = phase.weight(place)
            kernel = strided(function, kernel, one.kernel.kind, [weight], [one.kernel.spatial[axis] // phase.count])
            image = strided(function, image, I8, [self._distance(axis, phase.pixel(place))], [1])
            counts.append(phase.weights_from(weight))
        return image, kernel, counts

    def _distance(self, axis: int, pixels: Value) -> Value:
        """Bytes from a window's first pixel to one some pixels further."""
        if self.plan.copy is not None:
            return self.plan.copy.place(axis, pixels)
        return pixels * (self.one.image.spatial[axis] * self.one.image.bytes)

    def _write_table(self, counts: Sequence[Number]) -> None:
        """The distances of each weight in the kernel and of its pixels in the image."""
        function, one = self.function, self.one
        with ExitStack() as loops:
            number, left, right = (function.index(0) for _ in range(3))
            for axis, count in enumerate(counts):
                weight = loops.enter_context(each(function, 0, count))
                number = number * count + weight
                left = left + weight * (one.kernel.spatial[axis] * one.kernel.bytes)
                right = right + self._distance(axis, weight * one.axes[axis].dilation)
            entry = function.offset(self.table, I64, number * 2)
            function.store(left, entry)
            function.store(right, function.offset(entry, I64, 1))

    def _tiles(self, image: Value, kernel: Value, counts: Sequence[Number]) -> None:
        function, one, tile = self.function, self.one, self.tile
        arithmetic, size = one_by_one(one.sums), bits_of(one.sums) // 8
        weights = one.kernel
        left = Side(
            weights.kind, weights.output * weights.bytes, weights.input * weights.bytes, weights.bytes, weights.signed
        )
        plane = self.plan.copy.feature if self.plan.copy is not None else one.image.feature * one.image.bytes
        right = Side(one.sums, tile.lanes * size, plane, size)
        kind = wide(one.sums, tile.lanes)
        total_count: Number = 1
        for window in counts:
            total_count = window * total_count
        most = math.prod(axis.window for axis in one.axes)
        weight = length(loops_of(one.inputs, left, right, ()), arithmetic.group, limit_of(one.sums))
        with each(function, 0, self.plan.columns, tile.columns) as strip:
            columns = [
                clamped(function, strip + place * tile.lanes, self.plan.columns - tile.lanes)
                for place in range(tile.vectors)
            ]
            vectors = [function.offset(image, one.sums, column) for column in columns]
            with each(function, 0, one.outputs, tile.rows) as reached:
                row = clamped(function, reached, one.outputs - tile.rows)
                start = strided(function, kernel, weights.kind, [row], [weights.output])

                def add(number: Sequence[Value], sums: Sequence[Value], start: Value = start) -> list[Value]:
                    entry = function.offset(self.table, I64, number[0] * 2)
                    rows = [function.offset(start, I8, function.load(entry, I64))]
                    moved = function.load(function.offset(entry, I64, 1), I64)
                    places = [function.offset(vector, I8, moved) for vector in vectors]
                    return add_terms(function, tile, arithmetic, left, right, rows, places, one.inputs, sums)

                zero, weights_of_all = zeros(function, tile, one.sums), [Terms(total_count, most, (1,))]
                totals = add_up(function, weights_of_all, [function.index(0)], zero, add, weight=weight)
                kept = strided(function, self.sums, one.sums, [row], [self.plan.columns])
                for place, column in enumerate(columns):
                    at = function.offset(kept, one.sums, column)
                    for number_of_row in range(tile.rows):
                        total = totals[number_of_row * tile.vectors + place]
                        assert total.kind == kind
                        function.store(total, function.offset(at, one.sums, number_of_row * self.plan.columns))

    def _finish(self, batch: Value, begin: Value) -> None:
        """Store the sums of a chunk, without those in gaps."""
        function, one = self.function, self.one
        width = one.axes[-1].out
        lanes = min(self.tile.lanes, 1 << (width.bit_length() - 1)) if self.results.takes_vectors else 1
        counts = [self.plan.rows, *(axis.out for axis in one.axes[1:-1])]
        with each(function, 0, one.outputs) as feature, each(function, 0, math.prod(counts)) as line:
            indices = split_index(function, line, counts)
            start = strided(
                function, self.sums, one.sums, [feature, *indices], [self.plan.columns, *self.plan.pitches[:-1]]
            )
            before = [begin + indices[0], *indices[1:]]
            pixels = (begin * math.prod(counts[1:]) + line) * width
            row = self.results.address_of(batch, feature, pixels)
            with each(function, 0, width, lanes) as reached:
                column = clamped(function, reached, width - lanes) if width % lanes else reached
                value = function.load(
                    strided(function, start, one.sums, [column], [self.plan.pitches[-1]]), wide(one.sums, lanes)
                )
                address = strided(function, row, one.out.kind, [column], [one.out.spatial[-1]])
                self.results.put(value, batch, feature, pixels + column, address, [*before, column])
