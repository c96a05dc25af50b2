"""Convolutions of images with zeros between their pixels by registers for tiles, without the zeros.

Each phase (``phases.py``) is a convolution of the image itself by some of the weights, whose windows registers read
where they lie (``direct_windows.py``). Phases share the copy of an image's rows with their padding, and store their
results as far apart as phases are::

    for chunk of rows: copy the rows that any phase sees
        for strip of columns: for phase: for register of pixels: sums, stored ``base`` pixels apart

Weights are packed before, those of each phase after another's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I8, Value
from hloforge.pipelines.codegen.products import direct_windows, images, tile_registers, tiled
from hloforge.pipelines.codegen.products.arithmetic import one_by_one
from hloforge.pipelines.codegen.products.blocking import Tile
from hloforge.pipelines.codegen.products.direct_windows import DirectWindows
from hloforge.pipelines.codegen.products.images import Axis
from hloforge.pipelines.codegen.products.loops import each
from hloforge.pipelines.codegen.products.operands import split_index
from hloforge.pipelines.codegen.products.phases import Part, joined, parts_of
from hloforge.pipelines.codegen.products.results import Results
from hloforge.pipelines.codegen.products.windows import Windows

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.products.convolution import Convolution
    from hloforge.pipelines.codegen.products.gemm import Gemm

_LINE = 64
# Features of a block of terms, and rows of a register at least.
_FEATURES, _LEAST_ROWS = 32, 3
# Bytes of rows of an image that are copied at once.
_COPIED_BYTES = 1 << 20

# What stores the sums of a phase: given its convolution and the results between its own, and its first result.
MakeResults = Callable[["Convolution", "Gemm", Sequence[int]], Results]


@dataclass(frozen=True)
class TiledPhase:
    """One phase.

    Attributes:
        convolution: of the image without zeros; its results lie apart.
        first: its first result along each dimension.
        start: elements from the first result of all to its own.
    """

    convolution: Convolution
    gemm: Gemm
    plan: tiled.TiledPlan
    first: tuple[int, ...]
    start: int


@dataclass(frozen=True)
class PhasedTiles:
    """A convolution by phases.

    Attributes:
        lead: the windows of all phases together, which are copied.
        phases: of which each reads windows of its own there.
        is_packed: whether ``pack`` is called before, instead of by each piece of the work.
    """

    lead: DirectWindows
    phases: tuple[TiledPhase, ...]
    is_packed: bool

    @property
    def units(self) -> tuple[int, int, int]:
        """How many matrices, chunks of rows and strips of columns there are."""
        return tiled.units(self.phases[0].gemm, self.phases[0].plan)

    @property
    def scratch_bytes(self) -> int:
        """Of the copy and the tables, and of strips that were not packed before."""
        return self._copied + (0 if self.is_packed else self.packed_bytes)

    @property
    def _copied(self) -> int:
        size = self.lead.size + sum(_left(phase).table_bytes for phase in self.phases)
        return -(-size // _LINE) * _LINE

    @property
    def packed_bytes(self) -> int:
        return sum(tiled.packed_bytes(phase.gemm, phase.plan) for phase in self.phases)

    @property
    def packed_units(self) -> int:
        return len(self.phases) * self._strips

    @property
    def _strips(self) -> int:
        """Of all matrices of a phase."""
        return tiled.packed_units(self.phases[0].gemm, self.phases[0].plan)

    def pack(self, function: Function, kernel: Value, target: Value, first: Value, last: Value) -> None:
        """Write strips of all phases, from one up to another."""
        at, count = target, self._strips
        for number, phase in enumerate(self.phases):
            start = function.offset(kernel, phase.convolution.kernel.kind, phase.convolution.kernel.start)
            results = Results(function, target, phase.gemm.out, phase.gemm.batch)
            product = tiled.TiledProduct(function, phase.gemm, phase.plan, start, start, results, None)
            own = [place.maximum(number * count).minimum((number + 1) * count) for place in (first, last)]
            product.pack(at, *(place - number * count for place in own))
            at = function.offset(at, I8, tiled.packed_bytes(phase.gemm, phase.plan))

    def write(
        self,
        function: Function,
        image: Value,
        kernel: Value,
        scratch: Value,
        results: MakeResults,
        piece: tuple[Value, Value],
    ) -> None:
        """Write the units of a piece.

        Args:
            kernel: what ``pack`` has written, if it was called before.
        """
        packed = kernel
        if not self.is_packed:
            packed = function.offset(scratch, I8, self._copied)
            self.pack(function, kernel, packed, function.index(0), function.index(self.packed_units))
        found, at = [], packed
        for phase in self.phases:
            own = results(phase.convolution, phase.gemm, phase.first)
            own = replace(own, out=function.offset(own.out, phase.gemm.stored.kind, phase.start))
            found.append(
                tile_registers.TileRegisterProduct(
                    *(function, phase.gemm, phase.plan, image, at, own, scratch), is_packed=True
                )
            )
            at = function.offset(at, I8, tiled.packed_bytes(phase.gemm, phase.plan))
        self._run(function, found, scratch, *piece)

    def _run(
        self,
        function: Function,
        products: Sequence[tile_registers.TileRegisterProduct],
        scratch: Value,
        first: Value,
        last: Value,
    ) -> None:
        plan, gemm, counts = products[0].plan, products[0].gemm, self.units
        tiles = -(-gemm.m // plan.tile.rows)
        products[0].configure()
        for phase in self.phases:
            _left(phase).write_distances(function, scratch)
        with each(function, first, last) as unit:
            batch, chunk, strip = split_index(function, unit, counts)
            begin = chunk * plan.chunk if counts[1] > 1 else function.index(0)
            end = (begin + plan.chunk).minimum(tiles)
            with function.if_(strip.equals(0) | unit.equals(first)):
                places = split_index(function, batch, gemm.batch)
                lhs, _ = products[0].factors_at(places)
                self.lead.copy(function, lhs, begin, end, scratch)
            for product in products:
                product.strip_of(batch, begin, end, strip)
        function.do("call void @llvm.x86.tilerelease()")


def _left(phase: TiledPhase) -> DirectWindows:
    left = phase.plan.left
    assert isinstance(left, DirectWindows)
    return left


def plan(one: Convolution, pieces: int) -> PhasedTiles | None:
    """How a convolution of two spatial dimensions at least is computed so; None where it is not.

    Args:
        one: whose strips are packed before if it is ``apart``.
        pieces: of the work that are wanted.
    """
    if not any(axis.base > 1 for axis in one.axes) or any(
        axis.base > 1 and (axis.stride > 1 or axis.dilation > 1 or not axis.base <= axis.window or axis.out < axis.base)
        for axis in one.axes
    ):
        return None
    arithmetic = tile_registers.arithmetic_of(one.product)
    if arithmetic is None or arithmetic.group != 2 or one.outputs < tile_registers.HALF:
        return None
    sides = [parts_of(axis) for axis in one.axes]
    whole = tuple(joined(parts) for parts in sides)
    row = direct_windows.row_of(whole)
    # No register is longer than a row of any phase.
    height = min(direct_windows.height_of(whole), *(part.axis.out for part in sides[row]))
    count = math.prod(direct_windows.registers_of(whole, height))
    if height < _LEAST_ROWS:
        return None
    features = -(-one.inputs // _FEATURES) * _FEATURES
    gemm = replace(one.product, m=count * height)
    tile = Tile(tile_registers.lanes_of(gemm), height * min(2, count), tile_registers.tile_of(gemm).vectors)
    is_apart = one.image.feature != 1 or features != one.inputs
    copies, single = is_apart or not all(axis.is_plain for axis in whole), one_by_one(arithmetic.element)

    least = min(part.axis.out for part in sides[0])

    def copied(tiles: int) -> images.Copy:
        rows = direct_windows.copied_rows(whole, tiles * (tile.rows // height), height)
        # A chunk that begins with rows that some phases do not have begins with their last ones.
        rows = min(rows + (whole[0].out - least) * whole[0].stride, whole[0].padded)
        return images.by_pixels(whole, one.inputs, rows, single, features)

    most = -(-gemm.m // tile.rows)
    while most > 1 and copied(most).size > _COPIED_BYTES:
        most = -(-most // 2)
    chunk = tile_registers.chunk_of(gemm, tile, most * tile.rows, pieces)
    copy = copied(chunk) if copies else None

    def left_of(axes: tuple[Axis, ...], shift: int, table: int) -> DirectWindows:
        depth = features * math.prod(axis.window for axis in axes)
        windows = tuple(axis.window for axis in axes)
        own = 0 if features == one.inputs else one.inputs
        source = Windows(
            axes, windows, features, one.image, one.kernel, tile, single, chunk, copy, is_filled=own > 0
        )  # fmt: skip
        return DirectWindows(source, depth, tile, arithmetic, chunk, own, height, least, whole, shift, table)

    lead = left_of(whole, 0, 0)
    phases, table = [], lead.table_bytes
    for parts in itertools.product(*sides):
        phase = _phase(one, parts)
        shift = 0
        if copy is not None:
            lows = zip(whole, parts, copy.strides, strict=True)
            shift = sum((axis.low - part.axis.low) * stride for axis, part, stride in lows)
        left = left_of(phase.axes, shift, table)
        left = replace(left, windows=replace(left.windows, kernel=phase.kernel))
        table += left.table_bytes
        own = replace(phase.product, m=gemm.m, k=left.depth)
        own = replace(own, out=replace(own.out, row=phase.out.spatial[row]))
        found = tiled.TiledPlan(tile, arithmetic, left.depth, 0, True, left, chunk)
        start = sum(part.first * stride for part, stride in zip(parts, one.out.spatial, strict=True))
        phases.append(TiledPhase(phase, own, found, tuple(part.first for part in parts), start))
    return PhasedTiles(lead, tuple(phases), one.apart)


def _phase(one: Convolution, parts: Sequence[Part]) -> Convolution:
    """The convolution of one phase."""
    bases = [axis.base for axis in one.axes]
    start = sum(part.weight * stride for part, stride in zip(parts, one.kernel.spatial, strict=True))
    kernel = replace(one.kernel, spatial=_times(one.kernel.spatial, bases), start=one.kernel.start + start)
    out = replace(one.out, spatial=_times(one.out.spatial, bases))
    return replace(one, axes=tuple(part.axis for part in parts), kernel=kernel, out=out)


def _times(strides: Sequence[int], counts: Sequence[int]) -> tuple[int, ...]:
    return tuple(stride * count for stride, count in zip(strides, counts, strict=True))
