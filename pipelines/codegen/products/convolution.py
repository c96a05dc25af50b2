"""Convolutions of images of one to three spatial dimensions, in any order of dimensions.

    out[n, o, f] = sum over w, c of image[n, o * stride + w * dilation - low, c] * kernel[w, c, f]

The loops depend on which dimension of the result is contiguous and on the features of a group (``form``):
- ``matrix``: windows of one pixel, in features that are contiguous: a product of matrices (``gemm.py``);
- ``pixels``: a product whose rows are the result's pixels and whose columns are its features (``windows.py``), where
  features are contiguous; the image is read in place, or copied with its padding part by part; of bytes and bf16
  the processor's registers for tiles read windows in place (``direct_windows.py``), or these are laid out for them
  (``laid_windows.py``);
- ``planes``: a product whose rows are features and whose columns are pixels (``planes.py``), where pixels are;
- ``depthwise``: one feature in and out of a group: no product (``depthwise.py``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value, bits_of
from hloforge.pipelines.codegen.products import (
    depthwise,
    direct_windows,
    images,
    packing,
    phased_tiles,
    planes,
    tile_registers,
    tiled,
)
from hloforge.pipelines.codegen.products.arithmetic import BF16, Arithmetic, groups_of, one_by_one
from hloforge.pipelines.codegen.products.blocking import Tile, choose_tile, chunk_tiles, pieces_for
from hloforge.pipelines.codegen.products.gemm import Gemm
from hloforge.pipelines.codegen.products.images import Axis, Image, Kernel
from hloforge.pipelines.codegen.products.laid_windows import LaidWindows
from hloforge.pipelines.codegen.products.loops import piece_of
from hloforge.pipelines.codegen.products.operands import Matrix, split_index, strided, sum_kind
from hloforge.pipelines.codegen.products.phases import Phase, PhasedProduct, phases_of, without_zeros
from hloforge.pipelines.codegen.products.results import Results
from hloforge.pipelines.codegen.products.strips import Strips, read_by, strips_of
from hloforge.pipelines.codegen.products.windows import Windows, copied_rows
from hloforge.pipelines.codegen.products.work import Work
from hloforge.pipelines.framework.machine import Machine

# Of the second-level cache, what the copy of a part of an image fills if there are still enough rows to pay for
# packing weights again, and rows of a chunk at most.
_COPY_SHARE, _LEAST_CHUNK_ROWS, _CHUNK_ROWS = 2, 256, 1024
# Bytes that would be packed beyond once from which on a kernel is packed apart, and those of a piece of that.
_PACKED_APART, _PACKED_PIECE = 1 << 17, 1 << 15
# Bytes of windows that are laid out at once. Processors with registers for tiles have a second-level cache of 2 MiB.
_LAID_BYTES = 1 << 20
# Rows of a tile that is full.
_FULL = 8
# Output features that fill a vector badly, and pixels of a row that make up for it.
THIN, _WIDE = (1, 2, 3, 5, 6, 7), 8


@dataclass(frozen=True)
class Convolution:
    """A convolution.

    Attributes:
        batch: images.
        groups: of features; each has its own input and output features.
        inputs: input features of a group.
        outputs: output features of a group.
        axes: spatial dimensions, at least one, in the order of the result's memory.
        extensions: of the processor that may be used, as for ``Gemm``.
        strips: how the kernel was packed when the program was compiled, as for ``Gemm``.
        apart: whether the kernel is packed by ``pack`` before.
        rounds: whether sums are stored as bf16, as for ``Gemm``.
    """

    batch: int
    groups: int
    inputs: int
    outputs: int
    axes: tuple[Axis, ...]
    image: Image
    kernel: Kernel
    out: Image
    extensions: frozenset[str] = frozenset()
    strips: Strips | None = None
    apart: bool = False
    rounds: bool = False

    @property
    def sums(self) -> str:
        """LLVM's type in which terms are added, which an epilogue is given."""
        return sum_kind(self.image.kind, self.kernel.kind, self.out.kind)

    @property
    def multiplications(self) -> int:
        pixels = math.prod(axis.out for axis in self.axes)
        weights = math.prod(axis.window for axis in self.axes)
        if phases := phases_of(self):
            weights = max(1, weights // math.prod(phase.count for phase in phases))
        return self.batch * self.groups * self.outputs * self.inputs * pixels * weights

    def form(self) -> str:
        """Which loops are written."""
        if depthwise.takes(self):
            return "depthwise"
        if self._is_matrix:
            return "matrix"
        if self.out.feature != 1 and self.out.spatial[-1] == 1:
            return "planes"
        # Vectors of so few features are narrow, or overlap.
        is_thin = self.outputs in THIN and self.groups == 1 and self.axes[-1].out >= _WIDE and not phases_of(self)
        return "planes" if is_thin else "pixels"

    def packed(self, machine: Machine) -> Strips | None:
        """How a constant kernel is packed when the program is compiled; None where that does not pay."""
        whole = self._in_planes()
        if self.form() == "matrix":
            return whole._matrix.packed(machine)
        if self.form() != "pixels" or phases_of(self):
            return None
        return strips_of(*whole._product(machine), has_blocks=whole._registers(machine) is not None)

    def packs_apart(self, machine: Machine) -> bool:
        """Whether it pays to pack the kernel before: pieces of the work would pack it again for themselves."""
        if self._phased(machine):
            return True
        registers = self._in_planes()._registers(machine) if self.form() == "pixels" else None
        if self.strips is not None or registers is None:
            return False
        gemm, found = registers
        count, chunks, _ = tiled.units(gemm, found)
        # How often each matrix is packed.
        times = (min(self.pieces(machine), count * chunks) if found.keeps else count * chunks) // self.groups
        return (times - 1) * tiled.packed_bytes(gemm, found) > _PACKED_APART

    def packed_bytes(self, machine: Machine) -> int:
        """Of what ``pack`` writes."""
        if phased := self._phased(machine):
            return phased.packed_bytes
        registers = self._in_planes()._registers(machine)
        assert registers is not None
        return tiled.packed_bytes(*registers)

    def pack_workgroups(self, machine: Machine) -> int:
        """Into how many pieces packing may be cut."""
        return max(
            1, min(self._packed_units(machine), self.packed_bytes(machine) // _PACKED_PIECE, 4 * machine.workers)
        )

    def _packed_units(self, machine: Machine) -> int:
        if phased := self._phased(machine):
            return phased.packed_units
        registers = self._in_planes()._registers(machine)
        assert registers is not None
        return tiled.packed_units(*registers)

    def pack(
        self, function: Function, kernel: Value, target: Value, workgroup: Value | None, *, machine: Machine
    ) -> None:
        """Write the kernel's strips, or a piece of them, for ``emit``."""
        piece = piece_of(function, self._packed_units(machine), workgroup, self.pack_workgroups(machine))
        if phased := self._phased(machine):
            phased.pack(function, kernel, target, *piece)
            return
        registers = self._in_planes()._registers(machine)
        assert registers is not None
        results = Results(function, target, registers[0].out, registers[0].batch)
        start = function.offset(kernel, self.kernel.kind, self.kernel.start)
        product = tiled.TiledProduct(function, *registers, start, start, results, None)
        product.pack(target, *piece)

    @property
    def _is_matrix(self) -> bool:
        """Whether pixels are rows of a matrix both in the image and in the result, of which windows are one each."""
        if self.out.feature != 1 or not all(
            (axis.window, axis.stride, axis.low, axis.base) == (1, 1, 0, 1) and axis.out == axis.size
            for axis in self.axes
        ):
            return False
        return all(
            outer == inner * axis.size
            for spatial in (self.image.spatial, self.out.spatial)
            for outer, inner, axis in zip(spatial, spatial[1:], self.axes[1:], strict=False)
        )

    @property
    def _matrix(self) -> Gemm:
        """The product of pixels by features."""
        gemm = self._gemm((self.batch, self.groups))
        return replace(gemm, lhs=replace(gemm.lhs, row=self.image.spatial[-1]))

    def scratch(self, machine: Machine) -> int:
        """Bytes that each workgroup needs for copies, at an address that 64 divides."""
        whole = self._in_planes()
        if self.form() == "matrix":
            return self._matrix.scratch(machine)
        if self.form() == "planes":
            dense, _ = whole._without_zeros()
            return planes.scratch_bytes(dense, planes.plan(dense, machine))
        if self.form() == "depthwise":
            return depthwise.scratch_bytes(whole, depthwise.plan(whole, machine))
        size = tiled.scratch_bytes(*whole._product(machine))
        if phased := self._phased(machine):
            return max(size, phased.scratch_bytes)
        registers = whole._registers(machine)
        return max(size, tiled.scratch_bytes(*registers)) if registers else size

    def workgroups(self, machine: Machine) -> int:
        """Into how many pieces of about equal work it may be cut; 1 if that does not pay."""
        return min(self.pieces(machine), self._units(machine))

    def in_registers(self, machine: Machine) -> bool:
        """Whether it is computed by the processor's registers for tiles."""
        if self.form() == "matrix":
            return self._in_planes()._matrix.form(machine) == "registers"
        return self.form() == "pixels" and (
            self._phased(machine) is not None or self._in_planes()._registers(machine) is not None
        )

    def pieces(self, machine: Machine) -> int:
        """Into how many pieces it pays to cut the convolution, whether or not it can be."""
        if self.form() not in ("planes", "depthwise") and (
            self._phased(machine) or self._in_planes()._registers(machine)
        ):
            return self._pieces_by_registers(machine)
        return pieces_for(self.multiplications, 0, machine.vector_bytes * 8 // bits_of(self.sums), machine)

    def _units(self, machine: Machine) -> int:
        whole = self._in_planes()
        if self.form() == "matrix":
            return self._matrix.units(machine)
        if self.form() == "planes":
            dense, phases = whole._without_zeros()
            return math.prod(planes.units(dense, planes.plan(dense, machine), phases))
        if self.form() == "depthwise":
            return math.prod(depthwise.units(whole, depthwise.plan(whole, machine)))
        if phased := self._phased(machine):
            return math.prod(phased.units)
        return math.prod(tiled.units(*(whole._registers(machine) or whole._product(machine))))

    def emit(self, work: Work) -> None:
        """Write the convolution, or a piece of it."""
        function, image, kernel, out = work.function, work.lhs, work.rhs, work.out
        scratch, machine, epilogue, store, packed = work.scratch, work.machine, work.epilogue, work.store, work.packed
        if scratch is None and (needed := self.scratch(machine)):
            raise ValueError(f"this convolution needs {needed} bytes of scratch")
        all_of_it = work.piece(self._units(machine), self.workgroups(machine))
        whole, whole_kernel = self._in_planes(), kernel
        if self.strips is None:
            kernel = function.offset(kernel, self.kernel.kind, self.kernel.start)
        dense, phases = whole._without_zeros()
        counts, rank = tuple(phase.count for phase in phases), len(self.axes)
        kept = tuple(range(rank + 1))
        if rank == 1 and not self._has_single_pixels:
            kept = (1, 2) if self._has_rows_of_images else (0, 2)
        gemm = dense._gemm((self.batch, self.groups, *counts))
        form = self.form()
        if form == "depthwise":
            assert scratch is not None
            matrix = Matrix(self.out.kind, (self.out.batch, 0), 0, self.out.group, self.out.signed)
            one_group = replace(whole, out=replace(whole.out, feature=self.out.group))
            results = _Pixels(function, out, matrix, (self.batch, 1), epilogue, store, False, one_group, kept)
            loops = depthwise.plan(whole, machine)
            depthwise.DepthwiseProduct(function, whole, loops, image, kernel, results, scratch).run(*all_of_it)
            return
        if form == "matrix":
            product = whole._matrix
            results = _Pixels(function, out, product.stored, product.batch, epilogue, store, False, whole, kept)
            product.write(replace(work, rhs=kernel, packed=None), results, all_of_it)
            return
        if form == "planes":
            assert scratch is not None
            matrix = gemm.out.transposed()
            results = _Pixels(function, out, matrix, gemm.batch, epilogue, store, True, dense, kept, counts, True)
            found = planes.plan(dense, machine)
            planes.PlaneProduct(function, dense, found, phases, image, kernel, results, scratch).run(*all_of_it)
            return
        gemm, cut = whole._product(machine)
        results = _Pixels(function, out, gemm.stored, gemm.batch, epilogue, store, False, dense, kept, counts)
        kind = PhasedProduct if phases else tiled.TiledProduct
        loops_of_pixels = kind(function, gemm, cut, image, kernel, results, scratch)
        if isinstance(loops_of_pixels, PhasedProduct):
            loops_of_pixels.phases = phases
        rounds = BF16 in self.extensions
        if phased := self._phased(machine):
            assert scratch is not None
            bases = tuple(axis.base for axis in whole.axes)

            def of_phase(part: Convolution, own: Gemm, phase: Sequence[int]) -> Results:
                hooks = own.stored, own.batch, epilogue, store, False, part, kept, bases
                return _Pixels(function, out, *hooks, False, tuple(phase))

            def write(piece: tuple[Value, Value]) -> None:
                phased.write(function, image, whole_kernel if packed is None else packed, scratch, of_phase, piece)

            totals = math.prod(phased.units), math.prod(tiled.units(gemm, cut))
            tile_registers.run_if_allowed(
                function, write, all_of_it, totals, lambda piece: loops_of_pixels.run(*piece), rounds=rounds
            )
        elif registers := whole._registers(machine):
            rows = whole._by_rows(machine)
            if rows is not whole:
                # The image's number is the first index of space.
                kept = tuple(place + 1 for place in kept)
                matrix, batch = registers[0].stored, registers[0].batch
                results = _Pixels(function, out, matrix, batch, epilogue, store, False, rows, kept)
            right = kernel if packed is None else packed
            tiles = tile_registers.TileRegisterProduct(
                *(function, *registers, image, right, results, scratch), is_packed=packed is not None
            )
            totals = self._units(machine), math.prod(tiled.units(gemm, cut))
            tile_registers.run_if_allowed(
                function,
                lambda piece: tiles.run(*piece),
                all_of_it,
                totals,
                lambda piece: loops_of_pixels.run(*piece),
                rounds=rounds,
            )
        else:
            loops_of_pixels.run(*all_of_it)

    def _without_zeros(self) -> tuple[Convolution, tuple[Phase, ...]]:
        """The convolution of all phases of an image with zeros between its pixels; of others the same."""
        phases = phases_of(self)
        return (without_zeros(self, phases) if phases else self), phases

    def _in_planes(self) -> Convolution:
        """The same with two spatial dimensions at least.

        One that is added has one pixel. Chunks are rows of the first dimension: those of a single one are its pixels.
        Images whose results are few pixels are rows of one image, so that tiles are full.
        """
        if len(self.axes) > 1:
            return self
        if self._has_rows_of_images:
            return self._images_first()
        one = Axis(1, 1, 1)
        if not self._has_single_pixels:
            return replace(
                self,
                axes=(one, *self.axes),
                image=replace(self.image, spatial=(0, *self.image.spatial)),
                kernel=replace(self.kernel, spatial=(0, *self.kernel.spatial)),
                out=replace(self.out, spatial=(0, *self.out.spatial)),
            )
        # The only pixel of a row is as far from the next one as rows are, also of phases' results.
        apart = self.out.spatial[0] * math.prod(phase.count for phase in phases_of(self))
        return replace(
            self,
            axes=(*self.axes, one),
            image=replace(self.image, spatial=self.image.spatial * 2),
            kernel=replace(self.kernel, spatial=self.kernel.spatial * 2),
            out=replace(self.out, spatial=(*self.out.spatial, apart)),
        )

    @property
    def _has_single_pixels(self) -> bool:
        """Whether the dimension that is added to a single one is the last.

        Pixels of a row whose features lie apart are woven (``images.py``), and depthwise loops go along a row.
        """
        if len(self.axes) > 1 or self.form() not in ("pixels", "planes") or self._has_rows_of_images:
            return False
        return self.form() == "planes" or self.image.feature == 1 or self.inputs == 1

    @property
    def _has_rows_of_images(self) -> bool:
        """Whether the dimension that is added to a single one are the images."""
        is_short = len(self.axes) == 1 < self.batch and self.axes[0].out < _FULL
        return is_short and self.form() == "pixels" and not phases_of(self)

    def _phased(self, machine: Machine) -> phased_tiles.PhasedTiles | None:
        """The phases of an image with zeros between its pixels by the processor's registers for tiles."""
        if self.form() != "pixels" or self.strips is not None or machine.vector_bytes < tile_registers.BYTES:
            return None
        return phased_tiles.plan(self._in_planes(), self._pieces_by_registers(machine))

    @property
    def product(self) -> Gemm:
        """The product of each image and group of features, with the zeros between pixels."""
        return self._gemm((self.batch, self.groups))

    def _gemm(self, batch: tuple[int, ...]) -> Gemm:
        """The product whose rows are pixels of the result, and whose terms are weights by input features.

        Args:
            batch: images, groups, and the phases of each spatial dimension if there are some.
        """
        image, kernel, out = self.image, self.kernel, self.out
        pixels, weights = math.prod(axis.out for axis in self.axes), math.prod(axis.window for axis in self.axes)
        phases = batch[2:]
        # Results of phases are next to each other.
        between = tuple(stride // count for stride, count in zip(out.spatial, phases, strict=False))
        return Gemm(
            batch,
            pixels,
            self.outputs,
            weights * self.inputs,
            Matrix(image.kind, (image.batch, image.group, *(0 for _ in phases)), 0, image.feature, image.signed),
            Matrix(kernel.kind, (0, kernel.group, *(0 for _ in phases)), kernel.input, kernel.output, kernel.signed),
            Matrix(out.kind, (out.batch, out.group, *between), out.spatial[-1], out.feature, out.signed),
            self.extensions,
            strips=self.strips,
            rounds=self.rounds,
        )

    def _product(self, machine: Machine) -> tuple[Gemm, tiled.TiledPlan]:
        """The product of pixels by features, and how it is cut."""
        dense, phases = self._without_zeros()
        if phases:
            counts = tuple(phase.count for phase in phases)
            gemm = dense._gemm((self.batch, self.groups, *counts))
            return gemm, dense._plan(gemm, tuple(phase.weights for phase in phases), machine, is_whole=False)
        gemm = self._gemm((self.batch, self.groups))
        return gemm, self._plan(gemm, tuple(axis.window for axis in self.axes), machine)

    def _registers(self, machine: Machine) -> tuple[Gemm, tiled.TiledPlan] | None:
        """The product by the processor's registers for tiles, where each position's weights at least are a matrix."""
        rows = self._by_rows(machine)
        return rows._in_registers(machine) if rows is not self else self._in_registers(machine)

    def _by_rows(self, machine: Machine) -> Convolution:
        """The convolution with images as a further dimension of space, where several fit into a chunk of rows.

        A chunk of one image of few pixels would have few tiles, the last of them half empty, for all weights.
        """
        pixels, terms = math.prod(axis.out for axis in self.axes), math.prod(axis.window for axis in self.axes)
        row_bytes = terms * self.inputs * self.image.bytes
        if self.batch == 1 or 2 * pixels * row_bytes > _LAID_BYTES:
            return self
        return self._images_first()

    def _images_first(self) -> Convolution:
        """The same as one image, whose first dimension are the images."""
        return replace(
            self,
            batch=1,
            axes=(Axis(self.batch, self.batch, 1), *self.axes),
            image=replace(self.image, spatial=(self.image.batch, *self.image.spatial)),
            kernel=replace(self.kernel, spatial=(0, *self.kernel.spatial)),
            out=replace(self.out, spatial=(self.out.batch, *self.out.spatial)),
        )

    def _features_in_space(self) -> Convolution:
        """The same with input features as a dimension of windows, because weights of a position are no groups.

        The terms of a window are in the order of the weights in memory then (``laid_windows.py``).
        """
        steps = [abs(step) for step, axis in zip(self.kernel.spatial, self.axes, strict=True) if axis.window > 1]

        def with_second(values: tuple[int, ...], second: int) -> tuple[int, ...]:
            return (values[0], second, *values[1:])

        return replace(
            self,
            inputs=1,
            axes=(self.axes[0], Axis(self.inputs, 1, self.inputs), *self.axes[1:]),
            image=replace(self.image, spatial=with_second(self.image.spatial, self.image.feature), feature=1),
            kernel=replace(
                self.kernel,
                spatial=with_second(self.kernel.spatial, self.kernel.input),
                input=min([*steps, self.kernel.input]),
            ),
            out=replace(self.out, spatial=with_second(self.out.spatial, 0)),
        )

    def _in_registers(self, machine: Machine) -> tuple[Gemm, tiled.TiledPlan] | None:
        gemm = self._gemm((self.batch, self.groups))
        windows = tuple(axis.window for axis in self.axes)
        # The left factor's rows are laid out, whatever their strides are.
        laid = replace(gemm, lhs=replace(gemm.lhs, row=gemm.k, column=1))
        arithmetic = tile_registers.arithmetic_of(gemm)
        if arithmetic is None or phases_of(self) or not tile_registers.takes(laid, machine, tile_registers.HALF):
            return None
        if direct := self._read_in_place(gemm, arithmetic, machine):
            return direct
        if gemm.n < tile_registers.LANES:
            return None
        tile, single = tile_registers.tile_of(gemm), one_by_one(arithmetic.element)
        rows = max(_LAID_BYTES // (gemm.k * gemm.lhs.bytes), tile.rows)
        chunk = tile_registers.chunk_of(gemm, tile, rows, self._pieces_by_registers(machine))
        # Pixels of a feature alone are next to each other in a copy.
        is_apart = self.image.feature != 1 or (self.inputs == 1 and self.image.spatial[-1] != 1)
        copies = is_apart or not all(axis.is_plain for axis in self.axes)
        copy = images.by_pixels(self.axes, self.inputs, copied_rows(self.axes, chunk, tile), single)
        source = Windows(
            self.axes, windows, self.inputs, self.image, self.kernel, tile, single, chunk, copy if copies else None
        )
        is_matrix, step = True, self.inputs * self.kernel.input
        for weight, count in sorted(one for one in zip(self.kernel.spatial, windows, strict=True) if one[1] > 1):
            is_matrix, step = is_matrix and weight == step, step * count
        if not is_matrix and self.inputs > 1 and self.inputs % arithmetic.group:
            return self._features_in_space()._in_registers(machine)
        if not is_matrix and (self.inputs % arithmetic.group or not packing.positions_of(gemm.rhs, source.turns)):
            return None
        left = LaidWindows(source, gemm.m, gemm.k, tile, arithmetic, chunk, is_matrix)
        found = tiled.TiledPlan(tile, arithmetic, gemm.k, 0, True, left, chunk, strips=self.strips)
        return gemm, found if self.apart else tile_registers.keeping(gemm, found, self._pieces_by_registers(machine))

    def _read_in_place(
        self, gemm: Gemm, arithmetic: Arithmetic, machine: Machine
    ) -> tuple[Gemm, tiled.TiledPlan] | None:
        """The product with registers that read windows where they lie, if rows of results and features fill them."""
        axes, single = self.axes, one_by_one(arithmetic.element)
        if not direct_windows.fill_registers(axes):
            return None
        height = direct_windows.height_of(axes)
        registers = math.prod(direct_windows.registers_of(axes))
        gemm = replace(gemm, m=registers * height)
        columns = tile_registers.tile_of(gemm).vectors
        tile = Tile(tile_registers.lanes_of(gemm), height * min(2, registers), columns)
        copies = self.image.feature != 1 or not all(axis.is_plain for axis in axes)
        windows, chunk = tuple(axis.window for axis in axes), -(-gemm.m // tile.rows)
        wanted = self._pieces_by_registers(machine)
        while True:
            rows = direct_windows.copied_rows(axes, chunk * (tile.rows // height))
            copy = images.by_pixels(axes, self.inputs, rows, single)
            if copy.size <= _LAID_BYTES or chunk == 1:
                break
            chunk = -(-chunk // 2)
        chunk = tile_registers.chunk_of(gemm, tile, chunk * tile.rows, wanted)
        rows = direct_windows.copied_rows(axes, chunk * (tile.rows // height))
        copy = images.by_pixels(axes, self.inputs, rows, single)
        source = Windows(
            axes, windows, self.inputs, self.image, self.kernel, tile, single, chunk, copy if copies else None
        )
        if not direct_windows.reads(source):
            return None
        if 1 not in (gemm.rhs.row, gemm.rhs.column) and not packing.positions_of(gemm.rhs, source.turns):
            return None
        left = direct_windows.DirectWindows(source, gemm.k, tile, arithmetic, chunk)
        found = tiled.TiledPlan(tile, arithmetic, gemm.k, 0, True, left, chunk, strips=self.strips)
        return gemm, found if self.apart else tile_registers.keeping(gemm, found, wanted)

    def _pieces_by_registers(self, machine: Machine) -> int:
        lanes = machine.vector_bytes * 8 // bits_of(self.sums)
        return pieces_for(self.multiplications // tile_registers.FASTER, 0, lanes, machine)

    def _plan(
        self, gemm: Gemm, windows: tuple[int, ...], machine: Machine, *, is_whole: bool = True
    ) -> tiled.TiledPlan:
        """How the product is cut.

        Args:
            windows: weights of each dimension at most.
            is_whole: whether all windows have all of them.
        """
        image, kernel = self.image, self.kernel
        tile = choose_tile(gemm.sums, gemm.m, gemm.n, gemm.k, machine, has_last=tiled.has_last(gemm))
        arithmetic = groups_of(
            image.kind, image.signed, kernel.kind, kernel.signed, gemm.sums, tile.lanes, machine, self.extensions
        )
        if arithmetic is None or self.inputs < arithmetic.group or (arithmetic.flips and not is_whole):
            arithmetic = one_by_one(gemm.sums)
        tiles = -(-gemm.m // tile.rows)
        copies = (
            not all(axis.is_plain for axis in self.axes)
            or (arithmetic.group > 1 and (image.feature != 1 or self.inputs % arithmetic.group != 0))
            or image.kind != arithmetic.element
        )
        least = 1 if self.strips is not None and self.strips.group > 1 else max(1, _LEAST_CHUNK_ROWS // tile.rows)
        strips = gemm.count * -(-gemm.n // tile.columns)
        chunk = chunk_tiles(tiles, _CHUNK_ROWS // tile.rows, strips, self.pieces(machine), least)
        while True:
            copy = images.by_pixels(self.axes, self.inputs, copied_rows(self.axes, chunk, tile), arithmetic)
            if not copies or copy.size <= machine.l2_bytes // _COPY_SHARE or chunk < 2 * least:
                break
            chunk = chunk_tiles(tiles, chunk // 2, strips, 1, least)
        left = Windows(
            self.axes,
            windows,
            self.inputs,
            image,
            kernel,
            tile,
            arithmetic,
            chunk,
            copy if copies else None,
            is_whole,
        )
        packs = arithmetic.group > 1 or tiled.packs_right(gemm, tiles, machine)
        depth, outer = tiled.cut_terms(left, tile, arithmetic, machine) if tiles > 1 else (left.run, 0)
        return read_by(tiled.TiledPlan(tile, arithmetic, depth, outer, packs, left, chunk), self.strips)


@dataclass(frozen=True)
class _Pixels(Results):
    """Results whose rows are pixels and whose columns are features, or the other way round where they are exchanged.

    Attributes:
        convolution: with two spatial dimensions at least.
        kept: which of the image's number and the spatial dimensions hooks are told of.
        bases: phases of each dimension, which are the last ones of the batch.
        phase: the only one that there is here, along each dimension; none if there are all.
        along_pixels: whether hooks may be given vectors of pixels.
    """

    convolution: Convolution | None = None
    kept: tuple[int, ...] = (0, 1, 2)
    bases: tuple[int, ...] = ()
    along_pixels: bool = False
    phase: tuple[int, ...] = ()

    @property
    def stores_tiles(self) -> bool:
        assert self.convolution is not None
        out, axes = self.convolution.out, self.convolution.axes
        is_linear = all(
            outer == inner * axis.out
            for outer, inner, axis in zip(out.spatial, out.spatial[1:], axes[1:], strict=False)
        )
        return self.is_plain and (is_linear or math.prod(axis.out for axis in axes) == axes[-1].out)

    @property
    def takes_vectors(self) -> bool:
        if self.exchanged and not self.along_pixels and not self.is_plain:
            return False
        return self.store is not None or self.matrix.column == 1

    def places(self, batch: Value, row: Value, column: Value, pixel: Sequence[Value] | None = None) -> list[Value]:
        assert self.convolution is not None
        number, group, *phases = split_index(self.function, batch, self.batch)
        flat, feature = (column, row) if self.exchanged else (row, column)
        spatial = list(pixel) if pixel is not None else self._spatial(flat)
        if self.phase:
            spatial = [one * base + first for one, base, first in zip(spatial, self.bases, self.phase, strict=True)]
        elif self.bases:
            spatial = [one * base + phase for one, base, phase in zip(spatial, self.bases, phases, strict=True)]
        feature = _in_groups(feature, group, self.convolution.outputs)
        found = [number, *spatial]
        return [*(found[place] for place in self.kept), feature]

    def address_of(self, batch: Value, row: Value, column: Value, pixel: Sequence[Value] | None = None) -> Value:
        assert self.convolution is not None
        out = self.convolution.out
        flat, feature = (column, row) if self.exchanged else (row, column)
        places = [*(pixel if pixel is not None else self._spatial(flat)), feature]
        return strided(self.function, self.address(batch), self.matrix.kind, places, [*out.spatial, out.feature])

    def _spatial(self, pixel: Value) -> list[Value]:
        assert self.convolution is not None
        return split_index(self.function, pixel, [axis.out for axis in self.convolution.axes])


def _in_groups(place: Value, group: Value, size: int) -> Value:
    """The place in all groups."""
    return place if group.text == "0" else group * size + place
