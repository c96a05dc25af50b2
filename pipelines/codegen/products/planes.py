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

import functools
import itertools
import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hloforge.pipelines.codegen.chains import Terms, add_up, length, limit_of
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I8, I64, Number, Value, bits_of
from hloforge.pipelines.codegen.products import depthwise_planes, images
from hloforge.pipelines.codegen.products.arithmetic import one_by_one
from hloforge.pipelines.codegen.products.blocking import Tile, choose_tile, cycles_of
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
# Numbers of chunks that are compared beyond twice the least one, and bytes of an image that are copied in a cycle.
_MORE_CHUNKS, _COPIED_BYTES = 4, 16
# Sums of a tile by weights that are written out at most.
_WRITTEN_OUT = 256
_LINE = 64


@dataclass(frozen=True)
class PlanesPlan:
    """How a convolution is cut.

    Attributes:
        tile: rows are features, columns pixels.
        rows: of the result in a chunk, along the first spatial dimension.
        pitches: of the result's pixels among the columns, for each spatial dimension.
        columns: pixels of a chunk with the gaps between them.
        lines: vectors of a row of the result, where vectors begin with rows and leave gaps out; 0 where they run on
            through them.
        copy: of the image; None to read it in place.
        at_once: rows of a depthwise convolution's result that are computed together (``depthwise_planes.py``); 0 where
            rows follow each other.
    """

    tile: Tile
    rows: int
    pitches: tuple[int, ...]
    columns: int
    copy: Copy | None
    lines: int = 0
    at_once: int = 0


@functools.lru_cache(maxsize=64)
def plan(one: Convolution, machine: Machine) -> PlanesPlan:
    """A plan for two spatial dimensions at least, with the chunks of rows that take the fewest cycles together."""
    out = one.axes[0].out
    least, wanted = 1, one.pieces(machine)
    while wanted > 1 and -(-out // least) >= _LEAST_ROWS and least * one.batch * one.groups < 2 * wanted:
        least *= 2
    while -(-out // least) > 1 and _chunk(one, -(-out // least), machine)[1] > machine.l2_bytes // _SHARE:
        least *= 2
    rows = {-(-out // count) for count in range(least, 2 * least + _MORE_CHUNKS)}
    terms = one.inputs * math.prod(axis.window for axis in one.axes)

    def cycles(found: PlanesPlan) -> float:
        copied = found.copy.size if found.copy is not None else 0
        multiplied = _in_lines(one, found.rows, found.lines) * found.tile.lanes if found.lines else found.columns
        each = cycles_of(found.tile, one.outputs, multiplied, terms) + copied / _COPIED_BYTES
        return -(-out // found.rows) * each

    return min((_chunk(one, count, machine)[0] for count in sorted(rows, reverse=True)), key=cycles)


def _chunk(one: Convolution, rows: int, machine: Machine) -> tuple[PlanesPlan, int]:
    """The plan for chunks of so many rows, and the bytes of the larger of its copy and its sums."""
    size = bits_of(one.sums) // 8
    copy = images.by_planes(one.axes, one.inputs, one.axes[0].rows_for(rows), one_by_one(one.sums))
    in_place = _is_in_place(one)
    pitches = one.image.spatial if in_place else tuple(stride // size for stride in copy.strides)
    counts = [rows, *(axis.out for axis in one.axes[1:])]
    columns = 1 + sum((count - 1) * pitch for count, pitch in zip(counts, pitches, strict=True))
    terms = one.inputs * math.prod(axis.window for axis in one.axes)
    tile = choose_tile(one.sums, one.outputs, columns, terms, machine)
    lines = -(-one.axes[-1].out // tile.lanes)
    vectors = _in_lines(one, rows, lines)
    # As many vectors as through the gaps, or fewer: rows of whole vectors, or nearly so.
    if one.axes[-1].out < tile.lanes or vectors * tile.lanes > columns:
        lines = 0
    else:
        tile = choose_tile(one.sums, one.outputs, vectors * tile.lanes, terms, machine)
    largest = max(0 if in_place else copy.size, one.outputs * columns * size)
    at_once = depthwise_planes.rows_at_once(one, rows, pitches[0], tile.lanes)
    return PlanesPlan(tile, rows, pitches, columns, None if in_place else copy, lines, at_once), largest


def _in_lines(one: Convolution, rows: int, lines: int) -> int:
    """Vectors of a chunk where so many are in a row of the result."""
    return rows * math.prod(axis.out for axis in one.axes[1:-1]) * lines


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
        if not self.phases and self._looped:
            self._write_table(counts[: self._looped])
        # Chunks of whole images all have their padding at the same places.
        is_whole = self.plan.rows == out
        if self.plan.copy is not None and is_whole:
            self.plan.copy.clear(function, self.copy)
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
                origin = begin * one.axes[0].stride
                self.plan.copy.fill(function, image, start, origin, rows, self.copy, is_cleared=is_whole)
                start = self.copy
            weights = strided(function, self.kernel, one.kernel.kind, [group], [one.kernel.group])
            batch = number * one.groups + group
            if self.phases:
                start, weights, counts = self._choose(chosen, start, weights)
                for phase, place in zip(self.phases, chosen, strict=True):
                    batch = batch * phase.count + place
                self._write_table(counts)
            if self.plan.at_once and not self.phases:
                self._rows_at_once(start, weights)
            else:
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

    def _rows_at_once(self, image: Value, kernel: Value) -> None:
        """Sums of a depthwise convolution."""
        function, one, lanes = self.function, self.one, self.tile.lanes
        count, pitch, width = self.plan.at_once, self.plan.pitches[0], one.axes[1].out
        vectors, row_bytes = depthwise_planes.vectors_of(width, lanes), pitch * bits_of(one.sums) // 8
        with each(function, 0, self.plan.rows, count) as reached:
            row = clamped(function, reached, self.plan.rows - count)
            with each(function, 0, width, vectors * lanes) as strip:
                columns = [clamped(function, strip + place * lanes, width - lanes) for place in range(vectors)]
                places = [row * pitch + column for column in columns]
                starts = [function.offset(image, one.sums, place) for place in places]
                totals = depthwise_planes.sums(function, one, count, row_bytes, lanes, kernel, starts, self._distances)
                for number, total in enumerate(totals):
                    to = function.offset(self.sums, one.sums, places[number % vectors])
                    function.store(total, function.offset(to, one.sums, number // vectors * pitch))

    def _tiles(self, image: Value, kernel: Value, counts: Sequence[Number]) -> None:
        function, one, tile = self.function, self.one, self.tile
        weights, kind = one.kernel, wide(one.sums, tile.lanes)
        end, step = self.plan.columns, tile.columns
        if self.plan.lines:
            end, step = _in_lines(one, self.plan.rows, self.plan.lines), tile.vectors
        with each(function, 0, end, step) as strip:
            columns = [self._column(strip, place) for place in range(tile.vectors)]
            vectors = [function.offset(image, one.sums, column) for column in columns]
            with each(function, 0, one.outputs, tile.rows) as reached:
                row = clamped(function, reached, one.outputs - tile.rows)
                start = strided(function, kernel, weights.kind, [row], [weights.output])
                totals = self._sums_by_weights(start, vectors, counts) if self.phases else self._sums(start, vectors)
                kept = strided(function, self.sums, one.sums, [row], [self.plan.columns])
                for place, column in enumerate(columns):
                    at = function.offset(kept, one.sums, column)
                    for number_of_row in range(tile.rows):
                        total = totals[number_of_row * tile.vectors + place]
                        assert total.kind == kind
                        function.store(total, function.offset(at, one.sums, number_of_row * self.plan.columns))

    def _column(self, strip: Value, place: int) -> Value:
        """Where a vector of a strip begins among the columns."""
        function, lanes = self.function, self.tile.lanes
        lines, width = self.plan.lines, self.one.axes[-1].out
        if not lines:
            return clamped(function, strip + place * lanes, self.plan.columns - lanes)
        counts = [self.plan.rows, *(axis.out for axis in self.one.axes[1:-1])]
        vector = clamped(function, strip + place, math.prod(counts) * lines - 1)
        *indices, number = split_index(function, vector, [*counts, lines])
        # The last vector of a row begins early enough to end with it.
        column = clamped(function, number * lanes, width - lanes)
        for index, pitch in zip(indices, self.plan.pitches[:-1], strict=True):
            column = column + index * pitch
        return column

    @property
    def _sides(self) -> tuple[Side, Side]:
        """How weights of a feature, and planes of the image, are read."""
        one, weights = self.one, self.one.kernel
        size = bits_of(one.sums) // 8
        left = Side(
            weights.kind, weights.output * weights.bytes, weights.input * weights.bytes, weights.bytes, weights.signed
        )
        plane = self.plan.copy.feature if self.plan.copy is not None else one.image.feature * one.image.bytes
        return left, Side(one.sums, self.tile.lanes * size, plane, size)

    def _sums(self, start: Value, vectors: Sequence[Value]) -> list[Value]:
        """Of a tile, feature by feature of the image: all weights of one read about the same lines of the cache.

        Args:
            start: the address of the first weight.
            vectors: the address of each vector's first pixel.
        """
        function, one, tile = self.function, self.one, self.tile
        arithmetic, (left, right) = one_by_one(one.sums), self._sides
        outer = self._looped
        windows = [axis.window for axis in one.axes]
        count = math.prod(windows[:outer])
        loops = [Terms(one.inputs, one.inputs, (left.along, right.along, 0)), Terms(count, count, (0, 0, 1))]

        def add(places: Sequence[Value], sums: Sequence[Value]) -> list[Value]:
            at, moved_by, number = places
            if outer:
                entry = function.offset(self.table, I64, number * 2)
                at = at + function.load(entry, I64)
                moved_by = moved_by + function.load(function.offset(entry, I64, 1), I64)
            rows = function.offset(start, I8, at)
            moved = [function.offset(vector, I8, moved_by) for vector in vectors]
            totals = list(sums)
            for weight in itertools.product(*map(range, windows[outer:])):
                distances = [self._distances(axis, place) for axis, place in enumerate(weight, outer)]
                in_kernel, in_image = (sum(side) for side in zip((0, 0), *distances, strict=True))
                loaded = [
                    arithmetic.right(
                        function.load(function.offset(vector, I8, in_image), wide(right.kind, tile.lanes), right.align),
                        signed=right.signed,
                    )
                    for vector in moved
                ]
                for row in range(tile.rows):
                    address = function.offset(rows, I8, row * left.across + in_kernel)
                    factor = function.load(address, left.kind, left.align)
                    spread = arithmetic.left(factor, tile.lanes, signed=left.signed)
                    for number_of_vector, vector in enumerate(loaded):
                        slot = row * tile.vectors + number_of_vector
                        totals[slot] = arithmetic.multiply_add(spread, vector, totals[slot])
            return totals

        zero = zeros(function, tile, one.sums)
        return add_up(function, loops, [function.index(0)] * 3, zero, add, weight=math.prod(windows[outer:]))

    @property
    def _looped(self) -> int:
        """How many of the window's dimensions, from the first one on, are a loop; the others are written out."""
        sums, windows = self.tile.rows * self.tile.vectors, [axis.window for axis in self.one.axes]
        outer = len(windows)
        while outer and math.prod(windows[outer - 1 :]) * sums <= _WRITTEN_OUT:
            outer -= 1
        return outer

    def _distances(self, axis: int, weight: int) -> tuple[int, int]:
        """Bytes from the first weight of a dimension to another one, in the kernel and in the image."""
        one, position = self.one, weight * self.one.axes[axis].dilation
        in_kernel = weight * one.kernel.spatial[axis] * one.kernel.bytes
        if self.plan.copy is not None:
            return in_kernel, self.plan.copy.place_of(axis, position)
        return in_kernel, position * one.image.spatial[axis] * one.image.bytes

    def _sums_by_weights(self, start: Value, vectors: Sequence[Value], counts: Sequence[Number]) -> list[Value]:
        """Of a tile, weight by weight, of which there are so many along each dimension."""
        function, one, tile = self.function, self.one, self.tile
        arithmetic, (left, right) = one_by_one(one.sums), self._sides
        total_count: Number = 1
        for window in counts:
            total_count = window * total_count
        most = math.prod(axis.window for axis in one.axes)
        weight = length(loops_of(one.inputs, left, right, ()), arithmetic.group, limit_of(one.sums))

        def add(number: Sequence[Value], sums: Sequence[Value]) -> list[Value]:
            entry = function.offset(self.table, I64, number[0] * 2)
            rows = [function.offset(start, I8, function.load(entry, I64))]
            moved = function.load(function.offset(entry, I64, 1), I64)
            places = [function.offset(vector, I8, moved) for vector in vectors]
            return add_terms(function, tile, arithmetic, left, right, rows, places, one.inputs, sums)

        zero, weights_of_all = zeros(function, tile, one.sums), [Terms(total_count, most, (1,))]
        return add_up(function, weights_of_all, [function.index(0)], zero, add, weight=weight)

    def _finish(self, batch: Value, begin: Value) -> None:
        """Store the sums of a chunk, without those in gaps."""
        function, one = self.function, self.one
        counts, width = [self.plan.rows, *(axis.out for axis in one.axes[1:-1])], one.axes[-1].out
        # Rows of one pixel that follow each other are one row.
        is_line = width == len(counts) == self.plan.pitches[0] == 1 and one.out.spatial[0] == one.out.spatial[-1]
        if is_line:
            counts, width = [1], self.plan.rows
        lanes = min(self.tile.lanes, 1 << (width.bit_length() - 1)) if self.results.takes_vectors else 1
        with each(function, 0, one.outputs) as feature, each(function, 0, math.prod(counts)) as line:
            indices = split_index(function, line, counts)
            start = strided(
                function, self.sums, one.sums, [feature, *indices], [self.plan.columns, *self.plan.pitches[:-1]]
            )
            before = [begin + indices[0], *indices[1:]]
            pixels = begin if is_line else (begin * math.prod(counts[1:]) + line) * width
            row = self.results.address_of(batch, feature, pixels)
            with each(function, 0, width, lanes) as reached:
                column = clamped(function, reached, width - lanes) if width % lanes else reached
                value = function.load(
                    strided(function, start, one.sums, [column], [self.plan.pitches[-1]]), wide(one.sums, lanes)
                )
                address = strided(function, row, one.out.kind, [column], [one.out.spatial[-1]])
                places = [begin + column, line] if is_line else [*before, column]
                self.results.put(value, batch, feature, pixels + column, address, places)
