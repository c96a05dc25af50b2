"""Products of bytes and of bf16 by the processor's registers of 16x64 bytes (Intel's AMX).

A unit of work is that of ``tiled.py``, with the same packed strip of the right factor; the rows of the left factor are
read where they lie if their terms fill whole registers, else from a copy. One instruction adds 16 units of terms
(``Arithmetic.block``) to 16x16 sums; a tile has up to 2x2 such registers of sums, so that each register of a factor is
used twice::

    for tile in chunk:
        sums = 0; for each block of units: read 2 registers of rows, 2 of columns; multiply 4 times
        store sums

Linux lends these registers to a process that asks for them, which each kernel does that uses them: a system call of
0.6 µs. Where the answer is no, the same product is computed by vectors.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18 ("Programming with Intel
AMX"); Linux, Documentation/arch/x86/xstate.rst.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hloforge.pipelines.codegen.chains import limit_of
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import BFLOAT, FLOAT, I8, I32, I64, Number, Value, bits_of
from hloforge.pipelines.codegen.products.arithmetic import AMX_BF16, BF16, Arithmetic
from hloforge.pipelines.codegen.products.blocking import Tile, chunk_tiles
from hloforge.pipelines.codegen.products.direct_windows import DirectWindows
from hloforge.pipelines.codegen.products.left_factors import BlockedRows, OneRun, Rows
from hloforge.pipelines.codegen.products.loops import carrying, each
from hloforge.pipelines.codegen.products.micro_kernel import wide
from hloforge.pipelines.codegen.products.operands import clamped, split_index, strided
from hloforge.pipelines.codegen.products.packing import row_units
from hloforge.pipelines.codegen.products.tiled import TiledPlan, TiledProduct
from hloforge.pipelines.framework.machine import Machine

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.products.gemm import Gemm

# Extensions by LLVM's names.
AMX_INT8 = "amx-int8"
EXTENSIONS = frozenset({AMX_INT8, AMX_BF16})
# Rows of a register, bytes of one, and lanes of sums.
ROWS, BYTES, LANES = 16, 64, 16
# Columns from which on registers that they half fill pay, where rows are read in place.
HALF = 8
# Rows from which on it pays to pack the right factor for the instruction: 8x768x3072 bytes take half of the time of
# ``row_products.py``, pairs twice of it.
_LEAST_ROWS = {I8: 5, BFLOAT: 9}
# Multiplications that pay for asking and setting up.
_LEAST_WORK = 1 << 16
# Rows of the left factor that are copied at once: with a strip, they fit the second-level cache.
_CHUNK_ROWS = 512
# Bytes of rows that stay in the second-level cache, which processors with these registers have 2 MiB of, beside strips;
# and of strips that a piece of the work keeps at most.
_ROWS_BYTES, _KEPT_BYTES = 1 << 19, 1 << 23
# Bytes of a tile of rows that stay in the first-level cache beside a strip, and rows that are copied in blocks at once.
_NEAR_BYTES, _BLOCKED_ROWS = 1 << 15, 64
# Strips, and tiles of rows, from which on strips are packed apart, if the second-level cache holds them: 4096x256x256
# takes 0.85 of its time, 197x768x768 1.6 times as long.
_LEAST_TILES, _MANY_TILES, _APART_BYTES = 4, 32, 1 << 21
# Multiplications of bytes or pairs in the time of one by vectors of f32.
FASTER = 8
# Registers: of sums from 0 on, of rows, of columns.
_OF_ROWS, _OF_COLUMNS, _COUNT = 4, 6, 8
# arch_prctl, ARCH_REQ_XCOMP_PERM, the number of the registers' state.
_CALL, _REQUEST, _STATE = 158, 0x1023, 18


def arithmetic_of(gemm: Gemm) -> Arithmetic | None:
    """The instruction for a product's types, or None."""
    lhs, rhs = gemm.lhs, gemm.rhs
    if lhs.kind != rhs.kind:
        return None
    if gemm.sums == FLOAT and lhs.kind == BFLOAT and AMX_BF16 in gemm.extensions:
        return Arithmetic(gemm.sums, BFLOAT, 2, "tdpbf16ps", block=ROWS)
    if gemm.sums == I32 and lhs.kind == I8 and AMX_INT8 in gemm.extensions:
        signs = "".join("s" if one.signed else "u" for one in (lhs, rhs))
        return Arithmetic(gemm.sums, I8, 4, f"tdpb{signs}d", block=ROWS)
    return None


def takes(gemm: Gemm, machine: Machine, least: int = LANES) -> bool:
    """Whether a product of many rows is computed so, and of so many columns at least."""
    arithmetic = arithmetic_of(gemm)
    if arithmetic is None or machine.vector_bytes < BYTES or gemm.n < least:
        return False
    if gemm.m < _LEAST_ROWS[gemm.lhs.kind] or gemm.m * gemm.n * gemm.k < _LEAST_WORK:
        return False
    # The left factor is read where it lies, or its rows are copied.
    return gemm.k * gemm.lhs.bytes >= BYTES and 1 in (gemm.lhs.row, gemm.lhs.column)


def takes_exchanged(gemm: Gemm, machine: Machine) -> bool:
    """Whether it is so with the factors exchanged, because columns do not fill a register."""
    return gemm.n < LANES and takes(gemm.transposed(), machine)


@functools.lru_cache(maxsize=64)
def plan(gemm: Gemm, machine: Machine) -> TiledPlan:
    arithmetic = arithmetic_of(gemm)
    assert arithmetic is not None
    tile = tile_of(gemm)
    fills = gemm.k % (arithmetic.group * ROWS) == 0
    form = "turned" if gemm.lhs.column != 1 else "place" if fills else "widened"
    row_bytes, pieces = gemm.k * gemm.lhs.bytes, gemm.pieces(machine)
    # Rows in place stay in the cache beside all strips, or are read again for each of them.
    stays = form == "place" and gemm.m * row_bytes > _ROWS_BYTES >= strips_bytes(gemm, tile, arithmetic)
    rows: int | None = _CHUNK_ROWS
    if gemm.apart:
        is_near = form == "place" and tile.rows * row_bytes <= _NEAR_BYTES and gemm.lhs.row == gemm.k
        rows = max(_NEAR_BYTES // row_bytes, tile.rows) if is_near else _BLOCKED_ROWS
        if not is_near and BlockedRows.takes(gemm.lhs, tile, gemm.k):
            form = "blocked"
    elif form == "place":
        rows = max(_ROWS_BYTES // row_bytes, tile.rows) if stays else None
    chunk = chunk_of(gemm, tile, rows, pieces)
    if form == "blocked":
        left: Rows | BlockedRows = BlockedRows(gemm.lhs, gemm.m, gemm.k, tile, arithmetic, chunk)
    else:
        left = Rows(gemm.lhs, gemm.m, gemm.k, tile, arithmetic, chunk, form)
    found = TiledPlan(tile, arithmetic, gemm.k, 0, True, left, chunk, by_rows=gemm.apart, strips=gemm.strips)
    if gemm.apart or not (stays or form != "place"):
        return found
    return keeping(gemm, found, 0 if stays else pieces)


def packs_apart(gemm: Gemm, machine: Machine) -> bool:
    """Whether the right factor is packed once for all pieces of the work, which have some rows of it each.

    Then each strip is read by the tiles of a chunk of rows that stays in the first-level cache, or that lies there as
    the registers read it; few rows read strips as they are packed.
    """
    if gemm.strips is not None or gemm.keeps or gemm.pieces(machine) == 1:
        return False
    tile, arithmetic = tile_of(gemm), arithmetic_of(gemm)
    assert arithmetic is not None
    size = strips_bytes(gemm, tile, arithmetic)
    # Pieces of a factor that is turned would turn all of its rows each, for some strips.
    least = _LEAST_TILES if gemm.lhs.column != 1 else _MANY_TILES
    return gemm.m >= least * tile.rows and gemm.n >= _LEAST_TILES * tile.columns and size <= _APART_BYTES


def strips_bytes(gemm: Gemm, tile: Tile, arithmetic: Arithmetic) -> int:
    """Of all strips of a matrix, packed."""
    columns = -(-gemm.n // tile.columns) * tile.columns
    return row_units(arithmetic, gemm.k) * columns * arithmetic.unit_bytes


def keeping(gemm: Gemm, found: TiledPlan, pieces: int) -> TiledPlan:
    """The plan, with all strips kept where pieces would pack them for several chunks and there is room for them."""
    tiles = -(-gemm.m // found.tile.rows)
    chunks = -(-tiles // found.chunk)
    times = chunks * (1 if any(gemm.rhs.batch) else gemm.count)
    # A piece that goes once through many strips at most would only spread them over more memory.
    if found.strips is not None or times == 1 or chunks * gemm.count <= pieces:
        return found
    if strips_bytes(gemm, found.tile, found.arithmetic) > _KEPT_BYTES:
        return found
    return replace(found, keeps=True)


def tile_of(gemm: Gemm) -> Tile:
    """Up to two registers in both directions."""
    lanes = lanes_of(gemm)
    return Tile(lanes, min(gemm.m, 2 * ROWS), 1 if gemm.n == lanes else 2)


def lanes_of(gemm: Gemm) -> int:
    """Columns of a register."""
    return LANES if gemm.n >= LANES else HALF


def chunk_of(gemm: Gemm, tile: Tile, rows: int | None, wanted: int) -> int:
    """Tiles of a unit.

    Args:
        rows: that a chunk may have; None for all.
        wanted: pieces of the work.
    """
    tiles = -(-gemm.m // tile.rows)
    strips = gemm.count * -(-gemm.n // tile.columns)
    return chunk_tiles(tiles, tiles if rows is None else rows // tile.rows, strips, wanted, 2)


def permission(function: Function) -> Value:
    """Whether the process may use the registers, for which a function asks once, where it begins."""
    clobbers = "={rax},{rax},{rdi},{rsi},~{rcx},~{r11},~{memory}"
    answer = Value(function, I64, "%tile_registers")
    request = f"i64 {_CALL}, i64 {_REQUEST}, i64 {_STATE}"
    function.prologue(f'{answer.text} = call {I64} asm sideeffect "syscall", "{clobbers}"({request})')
    return answer.equals(0)


class TileRegisterProduct(TiledProduct):
    """Writes the loops of a product with tiles in these registers."""

    def run(self, first: Value, last: Value) -> None:
        self.configure()
        super().run(first, last)
        self.function.do("call void @llvm.x86.tilerelease()")

    def strip_of(self, batch: Value, begin: Value, end: Value, strip: Value) -> None:
        """The tiles from ``begin`` up to ``end`` of a strip that was packed before, of rows that are copied already."""
        places = split_index(self.function, batch, self.gemm.batch)
        lhs, rhs = self.factors_at(places)
        self.strip = self._packed(places, strip)
        self._whole_depth(batch, lhs, rhs, begin, end, self._columns(strip))

    def configure(self) -> None:
        """Tell the processor the rows and bytes of the registers."""
        function, rows = self.function, self._height
        found = bytearray(BYTES)
        # The palette; then the bytes of a row of each register in 16 bits, and their rows.
        found[0] = 1
        for number in range(_COUNT):
            # Of a register of rows its terms, of others its columns.
            found[16 + 2 * number] = BYTES if _OF_ROWS <= number < _OF_COLUMNS else 4 * self.tile.lanes
            found[48 + number] = ROWS if number >= _OF_COLUMNS else rows
        table = function.stack(I64, BYTES // 8)
        for place, word in enumerate(struct.unpack(f"<{BYTES // 8}q", found)):
            function.store(function.constant(word, I64), function.offset(table, I64, place))
        function.do(f"call void @llvm.x86.ldtilecfg(ptr {table.text})")

    def _whole_depth(
        self, batch: Value, lhs: Value, rhs: Value, begin: Value, end: Value, columns: Sequence[Value]
    ) -> None:
        function, tile, left = self.function, self.tile, self.plan.left
        assert isinstance(left, OneRun)
        strips, _, _ = self._right(rhs, columns, *left.weights)
        matrix, blocks = self.results.matrix, self.plan.steps // ROWS
        # Rows of a register are pixels of one row of the result.
        has_strides = self.results.stores_tiles or (self._direct is not None and self.results.is_plain)
        is_stored = has_strides and matrix.kind == self.kind and matrix.column == 1
        is_cut = blocks > limit_of(self.kind)
        memory = None if is_stored and not is_cut else function.stack(self.kind, tile.rows * tile.columns)
        direct = self._direct
        distances = direct.distances(function, self._copy) if direct else None
        with each(function, begin, end) as number:
            row = clamped(function, number * tile.rows, self.gemm.m - tile.rows)
            rows = self._rows(lhs, begin, number, row, None)
            if distances is None:
                rows = [function.offset(rows[0], I8, first * left.side.across) for first in self._parts]
            if memory is not None:
                self._sum_into(memory, rows, strips, blocks, distances)
                self._finish_registers(memory, batch, row, columns)
            else:
                self._sum(rows, strips, blocks, distances)
                self._keep(lambda first, place: self._address(batch, row + first, columns[place]), matrix.row)

    @property
    def _direct(self) -> DirectWindows | None:
        left: object = self.plan.left
        return left if isinstance(left, DirectWindows) else None

    @property
    def _copy(self) -> Value:
        assert self.copied is not None
        return self.copied

    def _address(self, batch: Value, row: Value, column: Value) -> Value:
        """Of the result that a register begins with.

        Args:
            row: of the tile's, which counts registers' pixels of direct windows.
        """
        direct = self._direct
        if direct is None:
            return self.results.address_of(batch, row, column)
        pixel = direct.indices(self.function, direct.register(row))
        return self.results.address_of(batch, row, column, pixel)

    def _finish_registers(self, memory: Value, batch: Value, row: Value, columns: Sequence[Value]) -> None:
        """Store a tile, each register by itself where its rows are pixels of one row of the result."""
        function, tile, direct, results = self.function, self.tile, self._direct, self.results
        if direct is None:
            self._finish(memory, batch, row, columns)
            return
        height, step, lanes = self._height, results.matrix.row, tile.lanes if results.takes_vectors else 1
        with each(function, 0, tile.rows, height) as first:
            pixel = direct.indices(function, direct.register(row + first))
            flat = direct.pixel(function, pixel)
            starts: list[Value] = []
            if results.store is None:
                starts = [results.address_of(batch, flat, column, pixel) for column in columns]
            at = function.offset(memory, self.kind, first * tile.columns)
            with each(function, 0, height) as number:
                start = function.offset(at, self.kind, number * tile.columns)
                here = direct.moved(pixel, number)
                for place, value, column in self._rounded_row(start, columns):
                    address = None
                    if starts and lanes > 1:
                        address = strided(function, starts[place], results.matrix.kind, [number], [step])
                    results.put(value, batch, flat + number, column, address, here)

    def _rounded_row(self, start: Value, columns: Sequence[Value]) -> Iterator[tuple[int, Value, Value]]:
        """What is stored of a row of sums, as the numbers of vectors, their lanes and their first columns.

        Sums that are stored as bf16 are rounded by the processor's instruction. It takes subnormal numbers for zero,
        as multiplying by these registers does, and rounds as ``Value.as_``.
        """
        function, tile, results = self.function, self.tile, self.results
        # Results whose columns lie apart are stored one by one.
        lanes = tile.lanes if results.takes_vectors else 1
        if lanes == 1:
            for place, column in enumerate(columns):
                for lane in range(tile.lanes):
                    at = function.offset(start, self.kind, place * tile.lanes + lane)
                    yield place, function.load(at, self.kind), column + lane
            return
        kind = wide(self.kind, tile.lanes)
        sums = [function.load(function.offset(start, self.kind, n * tile.lanes), kind) for n in range(tile.vectors)]
        if not (self._is_rounded and results.is_plain):
            yield from zip(range(tile.vectors), sums, columns, strict=True)
            return
        # Two vectors become one where the second one always follows the first.
        joins = tile.vectors == 2 and self.gemm.n % tile.columns == 0
        for place, column in enumerate(columns[:1] if joins else columns):
            name, given = "cvtneps2bf16", sums[place : place + 1]
            if joins:
                name, given = "cvtne2ps2bf16", sums[::-1]
            rounded = wide(BFLOAT, len(given) * tile.lanes)
            call = f"call {rounded} @llvm.x86.avx512bf16.{name}.{tile.lanes * 32}({', '.join(map(str, given))})"
            yield place, function.emit(call, rounded), column

    @property
    def _is_rounded(self) -> bool:
        """Whether sums are stored as bf16, for which the processor has an instruction."""
        return self.results.matrix.kind == BFLOAT and self.kind == FLOAT and BF16 in self.gemm.extensions

    def _sum_into(
        self, memory: Value, rows: Sequence[Value], strips: Sequence[Value], blocks: int, distances: Value | None
    ) -> None:
        """Write the sums of a tile, in chains of limited length: each instruction adds its terms as one number."""
        function, tile, longest = self.function, self.tile, limit_of(self.kind)
        size = tile.rows * tile.columns

        def at(tile_memory: Value) -> Callable[[int, int], Value]:
            return lambda first, place: function.offset(
                tile_memory, self.kind, first * tile.columns + place * tile.lanes
            )

        if blocks <= longest:
            self._sum(rows, strips, blocks, distances)
            self._keep(at(memory), tile.columns)
            return
        part, kind = function.stack(self.kind, size), wide(self.kind, tile.lanes)
        function.clear(memory, size * bits_of(self.kind) // 8)
        with each(function, 0, blocks, longest) as first_block:
            left, places = rows, distances
            if distances is None:
                left = [function.offset(part, I8, first_block * self._step) for part in rows]
            else:
                places = function.offset(distances, I64, first_block)
            right = [function.offset(strip, I8, first_block * (ROWS * self._along)) for strip in strips]
            self._sum(left, right, (function.index(blocks) - first_block).minimum(longest), places)
            self._keep(at(part), tile.columns)
            with each(function, 0, size, tile.lanes) as number:
                total, more = (function.offset(one, self.kind, number) for one in (memory, part))
                function.store(function.load(total, kind) + function.load(more, kind), total)

    def _finish(self, memory: Value, batch: Value, row: Value, columns: Sequence[Value]) -> None:
        """Store a tile that waits in memory."""
        function, tile, matrix, results = self.function, self.tile, self.results.matrix, self.results
        if not (self._is_rounded and results.is_plain and matrix.column == 1):
            super()._finish(memory, batch, row, columns)
            return
        start = results.address(batch)
        with each(function, 0, tile.rows) as number:
            at = function.offset(memory, FLOAT, number * tile.columns)
            for _, value, column in self._rounded_row(at, columns):
                address = None
                if results.stores_tiles:
                    address = strided(function, start, BFLOAT, [row + number, column], [matrix.row, 1])
                results.put(value, batch, row + number, column, address)

    def _keep(self, address: Callable[[int, int], Value], row: int) -> None:
        """Store the registers of sums.

        Args:
            address: given the first row and the number of the vector of a register.
            row: elements between two rows there.
        """
        step = row * bits_of(self.kind) // 8
        for part, first in enumerate(self._parts):
            for place in range(self.tile.vectors):
                number = part * self.tile.vectors + place
                at = address(first, place)
                self.function.do(f"call void @llvm.x86.tilestored64(i8 {number}, ptr {at.text}, i64 {step})")

    @property
    def _height(self) -> int:
        """Rows of a register of sums."""
        direct = self._direct
        return direct.height if direct else min(self.tile.rows, ROWS)

    @property
    def _parts(self) -> list[int]:
        """The first row of each register of sums; the last one ends with the tile."""
        rows, height = self.tile.rows, self._height
        return [0] if rows == height else [0, rows - height]

    @property
    def _step(self) -> int:
        """Bytes from one block of a row's terms to the next."""
        left = self.plan.left
        assert isinstance(left, OneRun)
        return left.step

    @property
    def _along(self) -> int:
        """Bytes from one unit of terms to the next in a strip."""
        columns = self.tile.columns if self.plan.strips is None else self.tile.lanes
        return columns * self.arithmetic.unit_bytes

    def _sum(self, rows: Sequence[Value], strips: Sequence[Value], blocks: Number, distances: Value | None) -> None:
        """The sums of a tile, of so many blocks of units.

        Args:
            rows: the addresses of the first row of each register.
            strips: those of the strip's vectors, or of the first one alone where the others follow it.
            distances: the address of what each block lies apart from the first; None where they follow each other.
        """
        function, tile, across = self.function, self.tile, self.plan.left.side.across
        vectors, name, count = tile.vectors, self.arithmetic.instruction, len(rows)
        for number in range(count * vectors):
            function.do(f"call void @llvm.x86.tilezero(i8 {number})")
        along, moving = self._along, rows if distances is None else []
        with carrying(function, 0, blocks, [*moving, *strips]) as (loop, block, carried):
            left, right = carried[: len(moving)], carried[len(moving) :]
            places: Sequence[Value] = left
            if distances is not None:
                distance = function.load(function.offset(distances, I64, block), I64)
                places = [function.offset(part, I8, distance) for part in rows]
            for place in range(vectors):
                at = right[place] if len(right) == vectors else function.offset(right[0], I8, place * tile.lanes * 4)
                function.do(f"call void @llvm.x86.tileloadd64(i8 {_OF_COLUMNS + place}, ptr {at.text}, i64 {along})")
            for part, at in enumerate(places):
                function.do(f"call void @llvm.x86.tileloadd64(i8 {_OF_ROWS + part}, ptr {at.text}, i64 {across})")
                for place in range(vectors):
                    numbers = part * vectors + place, _OF_ROWS + part, _OF_COLUMNS + place
                    function.do(f"call void @llvm.x86.{name}({', '.join(f'i8 {number}' for number in numbers)})")
            following = [function.offset(start, I8, ROWS * along) for start in right]
            loop.next([*(function.offset(part, I8, self._step) for part in left), *following])


def run_if_allowed(
    function: Function,
    run: Callable[[tuple[Value, Value]], None],
    piece: tuple[Value, Value],
    totals: tuple[int, int],
    otherwise: Callable[[tuple[Value, Value]], None],
    *,
    rounds: bool,
) -> None:
    """The units of a piece, or the same part of the product by vectors where the registers are not to be had.

    Args:
        run: writes the units of a piece by registers.
        totals: units of the product, and of the other one.
        otherwise: writes a piece of the other one.
        rounds: whether the processor has an instruction that rounds to bf16.
    """
    own, other = totals

    def with_registers() -> Sequence[Value]:
        function.rounds_bfloat = rounds
        run(piece)
        function.rounds_bfloat = False
        return ()

    def with_vectors() -> Sequence[Value]:
        first, last = piece if own == other else ((place * other).udiv(own) for place in piece)
        otherwise((first, last))
        return ()

    function.branch(permission(function), with_registers, with_vectors)


def by_vectors(gemm: Gemm) -> Gemm:
    """The product where the registers are not to be had."""
    without = EXTENSIONS | {BF16} if AMX_BF16 in gemm.extensions else EXTENSIONS
    return replace(gemm, extensions=gemm.extensions - without, apart=False)
