"""Products by tiles of sums in registers.

A unit of work is a strip of columns for a chunk of rows of one matrix of the batch. Its right factor is packed if that
pays; then the tiles of the chunk follow each other, each through all terms::

    for unit in piece:                   # of the batch, chunks of rows, strips of columns
        copy the chunk's left factor     # if need be, once for all strips, which follow each other then
        pack the strip's right factor    # [terms, tile.columns], once for all chunks otherwise
        for tile in chunk:
            sums = 0; for each term: sums += column * row
            store sums

Terms are cut into blocks if a strip's right factor fills the second-level cache; sums wait in the scratch area between
blocks. The last tile of rows and the last vector of columns begin early enough to end with the matrix: some results
are computed and stored twice with the same value, and nothing outside of the matrices is read or written.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import BFLOAT, I8, Number, Value, bits_of, is_float
from hloforge.pipelines.codegen.products import packing
from hloforge.pipelines.codegen.products.arithmetic import Arithmetic, PairArithmetic, groups_of, one_by_one
from hloforge.pipelines.codegen.products.blocking import (
    Tile,
    block_depth,
    choose_tile,
    chunk_tiles,
    cycles_of,
    last_tile,
)
from hloforge.pipelines.codegen.products.left_factors import Left, OneRun, rows_of
from hloforge.pipelines.codegen.products.loops import each
from hloforge.pipelines.codegen.products.micro_kernel import Ahead, Side, Turn, add_terms, wide, zeros
from hloforge.pipelines.codegen.products.operands import clamped, split_index, strided
from hloforge.pipelines.codegen.products.results import Results
from hloforge.pipelines.codegen.products.strips import Strips, read_by
from hloforge.pipelines.framework.machine import Machine

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.products.gemm import Gemm

# Rows of a chunk at most; and what it has at least, where the right factor is packed again for each: rows, else tiles.
_CHUNK_ROWS, _LEAST_ROWS, _LEAST_TILES = 1024, 256, 8
# Bytes between terms up to which the processor fetches the next ones by itself.
_NEAR = 1024
# Bytes after which sets of the first-level cache repeat, and ways of the second-level one at least.
_L1_WAY, _L2_WAYS = 4096, 8
# Terms up to which a strip is read in place for each tile of rows, where results are written row by row: 1000x64x1000
# takes 0.9 of the time with a packed strip, 700x64x1900 0.4.
_FEW_TERMS = 64
# Tiles of rows from which on blocks of terms pay: two read a strip nearly as often as blocks write it.
_BLOCKED_TILES = 4
_LINE = 64
# Lanes of vectors for which positions of windows are turned.
_LEAST_TURNED = 4
# Of the time with one tile for all strips, what a tile for the last one has to be below.
_LEAST_GAIN = 0.97
# Bytes of strips from which on the next one is fetched while this one is multiplied.
_FAR = 1 << 20


@dataclass(frozen=True)
class TiledPlan:
    """How a product is cut.

    Attributes:
        depth: terms of the innermost loop in a block, a number of whole groups unless it is all of them.
        outer: loops of terms that are around blocks.
        packs_right: whether strips of the right factor are copied.
        chunk: tiles of rows in a unit.
        by_rows: whether all strips of a tile of rows follow each other, so that results are written row by row.
        strips: how the right factor was packed when the program was compiled; None where it is read as it is.
        keeps: whether a piece of the work packs each strip once and keeps all of them, instead of one for each chunk.
    """

    tile: Tile
    arithmetic: Arithmetic
    depth: int
    outer: int
    packs_right: bool
    left: Left
    chunk: int
    by_rows: bool = False
    strips: Strips | None = None
    keeps: bool = False

    @property
    def follow_strips(self) -> bool:
        """Whether all strips of a chunk follow each other, instead of all chunks of a strip."""
        return self.by_rows or self.keeps or self.left.size > 0 or self.is_blocked

    @property
    def is_blocked(self) -> bool:
        """Whether sums wait between blocks of terms."""
        return self.outer > 0 or self.depth < self.left.run

    @property
    def steps(self) -> int:
        """Of a packed strip: terms or groups of terms."""
        return packing.row_units(self.arithmetic, self.depth) * math.prod(self.left.most[self.outer :])


@functools.lru_cache(maxsize=64)
def plan(gemm: Gemm, machine: Machine) -> TiledPlan:
    wanted = gemm.pieces(machine)

    def shared(tile: Tile) -> float:
        chunks = max(1, -(-gemm.m // tile.rows) // _LEAST_TILES)
        return gemm.count * chunks * gemm.n / tile.columns

    tile = choose_tile(
        gemm.sums,
        gemm.m,
        gemm.n,
        gemm.k,
        machine,
        is_complex=gemm.is_complex,
        has_last=has_last(gemm),
        # Strips in place are cut by rows as well.
        units=shared if wanted > 1 and gemm.rhs.column != 1 else None,
    )
    arithmetic = arithmetic_of(gemm, tile, machine)
    tiles = -(-gemm.m // tile.rows)
    is_short = gemm.k <= min(_FEW_TERMS, _rows_in_l1(gemm, machine)) and gemm.rhs.kind == gemm.sums
    in_place = is_short and gemm.rhs.column == 1 and _writes_much(gemm, machine)
    packs = arithmetic.group > 1 or (not in_place and packs_right(gemm, tiles, machine))
    strips = gemm.count * -(-gemm.n // tile.columns)

    def cut(least: int, packs: bool = packs, wanted: int = wanted) -> TiledPlan:
        chunk = chunk_tiles(tiles, _CHUNK_ROWS // tile.rows, strips, wanted, least)
        left = rows_of(gemm, tile, arithmetic, chunk)
        depth, outer = cut_terms(left, tile, arithmetic, machine) if tiles >= _BLOCKED_TILES else (left.run, 0)
        return TiledPlan(tile, arithmetic, depth, outer, packs, left, chunk)

    if gemm.strips is not None:
        # Strips of f32 are read from memory again for each chunk.
        return read_by(cut(1 if gemm.strips.group > 1 else _LEAST_ROWS // tile.rows), gemm.strips)
    # A strip in place costs a unit nothing: few rows of many terms are shared out as well.
    found = cut(_LEAST_TILES if packs else 1)
    if not packs and not found.follow_strips and _writes_much(gemm, machine):
        return replace(found, chunk=1, by_rows=True)
    if not packs and found.is_blocked:
        # What blocks are for, a strip that stays in a cache, takes a copy of it: its rows are in as many pages.
        packs, found = True, cut(_LEAST_TILES, packs=True)
    if not (packs and found.follow_strips):
        return found
    # Where strips are packed for each chunk, chunks have enough tiles to pay for it, unless workers would have none.
    few = cut(_LEAST_ROWS // tile.rows, packs)
    needed = min(wanted, machine.workers)
    return few if math.prod(units(gemm, few)) >= needed else cut(_LEAST_TILES, packs, needed)


def has_last(gemm: Gemm) -> bool:
    """Whether the last strip of a product of floats one by one has a tile of its own if that saves time."""
    is_grouped = gemm.lhs.kind == gemm.rhs.kind == BFLOAT
    return is_float(gemm.sums) and not gemm.is_complex and not is_grouped and gemm.out.column == 1


def _writes_much(gemm: Gemm, machine: Machine) -> bool:
    """Whether results fill the second-level cache, and a right factor of few terms fits in it.

    Strips of results would be written a page apart.
    """
    is_large = gemm.m * gemm.n * gemm.out.bytes > 2 * machine.l2_bytes
    return is_large and gemm.out.column == 1 and gemm.k * gemm.n * gemm.rhs.bytes <= machine.l2_bytes


def cut_terms(left: Left, tile: Tile, arithmetic: Arithmetic, machine: Machine) -> tuple[int, int]:
    """Terms of the innermost loop in a block, and how many of the loops around it are around blocks.

    A block's part of a strip stays in the second-level cache while the tiles of a chunk go by.
    """
    if arithmetic.flips:
        return left.run, 0
    size = tile.columns * arithmetic.unit_bytes
    run, outer = packing.row_units(arithmetic, left.run), 0
    while outer < len(left.most) and block_depth(steps := run * math.prod(left.most[outer:]), size, machine) < steps:
        outer += 1
    depth = block_depth(run, size, machine) if outer == len(left.most) else run
    # The number of terms in a group is known where it is written, so that all blocks are equal.
    while arithmetic.group > 1 and run % depth:
        depth += 1
    return left.run if depth == run else depth * arithmetic.group, outer


class _Packed(NamedTuple):
    """From how many tiles that read a strip on packing it pays, where columns are next to each other.

    Rows have room in those sets of a cache that their distance allows: of rows some KiB apart few have.

    Attributes:
        shared: where rows lie a multiple of a way of the first-level cache apart.
        beyond_l2: where they leave the second-level cache, of which so many bytes are counted on.
        beyond_l1: where they leave the first-level one.
        within_l1: elsewhere.
        narrow: bytes up to which a row is read as fast as a strip.
    """

    shared: int
    beyond_l2: int
    beyond_l1: int
    within_l1: int
    narrow: int
    l2_bytes: int


# Vectors of 64 bytes multiply in half the time in which packing moves a strip, and what is fetched ahead is there in
# time (a Xeon and a Zen 5); with 32 bytes (Zen 3) packed strips are faster from few tiles on.
_WIDE = _Packed(4, 16, 128, 128, narrow=_NEAR, l2_bytes=1 << 21)
_USUAL = _Packed(4, 8, 16, 128, narrow=255, l2_bytes=1 << 19)


def packs_right(gemm: Gemm, tiles: int, machine: Machine) -> bool:
    """Whether copying a strip of the right factor for so many tiles of rows pays."""
    row, packed = gemm.rhs.row * gemm.rhs.bytes, _WIDE if machine.vector_bytes > 32 else _USUAL
    if row % _L1_WAY == 0:
        least = packed.shared
    elif gemm.k >= packed.l2_bytes // math.gcd(row, packed.l2_bytes // _L2_WAYS):
        least = packed.beyond_l2
    else:
        least = packed.within_l1 if gemm.k <= _rows_in_l1(gemm, machine) else packed.beyond_l1
    return (
        gemm.rhs.column != 1
        or (gemm.rhs.kind != gemm.sums and tiles > 2)
        or (tiles >= least and row > packed.narrow and gemm.k > 32)
    )


def _rows_in_l1(gemm: Gemm, machine: Machine) -> int:
    """How many rows of a strip of the right factor stay in the first-level cache, by their distance."""
    return machine.l1_bytes // math.gcd(gemm.rhs.row * gemm.rhs.bytes, _L1_WAY)


def arithmetic_of(gemm: Gemm, tile: Tile, machine: Machine) -> Arithmetic:
    """How the terms of a product are multiplied."""
    lhs, rhs = gemm.lhs, gemm.rhs
    if gemm.is_complex:
        return PairArithmetic(gemm.sums, gemm.sums)
    found = groups_of(lhs.kind, lhs.signed, rhs.kind, rhs.signed, gemm.sums, tile.lanes, machine, gemm.extensions)
    if found is None or gemm.k < found.group or 1 not in (lhs.row, lhs.column):
        return one_by_one(gemm.sums)
    return found


def units(gemm: Gemm, found: TiledPlan) -> tuple[int, int, int]:
    """How many matrices, chunks of rows and strips of columns there are."""
    tile = found.tile
    tiles = -(-gemm.m // tile.rows)
    return gemm.count, -(-tiles // found.chunk), -(-gemm.n // tile.columns)


def packed_bytes(gemm: Gemm, found: TiledPlan) -> int:
    """Of the strips of all of the right factor."""
    return math.prod(own_matrices(gemm)) * matrix_bytes(gemm, found)


def matrix_bytes(gemm: Gemm, found: TiledPlan) -> int:
    """Of the strips of a matrix."""
    return units(gemm, found)[2] * _whole(packing.strip_bytes(found.tile, found.arithmetic, found.steps))


def packed_units(gemm: Gemm, found: TiledPlan) -> int:
    """Strips of all matrices of the right factor."""
    return math.prod(own_matrices(gemm)) * units(gemm, found)[2]


def own_matrices(gemm: Gemm) -> tuple[int, ...]:
    """How many matrices of the right factor there are along each dimension of the batch."""
    return tuple(size if stride else 1 for size, stride in zip(gemm.batch, gemm.rhs.batch, strict=True))


def gains_by_strips(gemm: Gemm, found: TiledPlan) -> bool:
    """Whether strips that are packed already are read faster than the right factor in place."""
    return found.packs_right or gemm.rhs.row * gemm.rhs.bytes > _NEAR


def scratch_bytes(gemm: Gemm, found: TiledPlan) -> int:
    return sum(_areas(gemm, found))


def _areas(gemm: Gemm, found: TiledPlan) -> tuple[int, int, int]:
    """Bytes of a packed strip, of a chunk's left factor and of waiting sums."""
    size, tile = bits_of(gemm.sums) // 8, found.tile
    packs = found.packs_right and found.strips is None
    right = packing.strip_bytes(tile, found.arithmetic, found.steps) if packs else 0
    if found.keeps:
        right = _whole(right) * -(-gemm.n // tile.columns)
    waiting = found.chunk * tile.rows * tile.columns * size if found.is_blocked else 0
    return _whole(right), _whole(found.left.size), _whole(waiting)


def _whole(size: int) -> int:
    return -(-size // _LINE) * _LINE


class _WriteStrip(Protocol):
    """Writes a strip by a tile."""

    def __call__(self, tile: Tile, *, follows: bool) -> None: ...


class TiledProduct:
    """Writes the loops of a product.

    Attributes:
        turns: loops of terms around the innermost one, of the matrix that is being computed.
        shift: bytes by which its rows begin later than the left factor says.
        tile: of the strip that is being computed.
        follows: whether its vectors follow each other in the right factor.
        packs: whether the unit's strip has to be packed; None if it always has.
        first_packs: of strips that are kept from run to run, whether this one packs them; None to pack in each.
        is_packed: whether the right factor is the strips that ``pack`` has written before (``packed.py``).
        vectors: the addresses of a strip's vectors in a right factor that was packed when the program was compiled.
    """

    def __init__(
        self,
        function: Function,
        gemm: Gemm,
        found: TiledPlan,
        lhs: Value,
        rhs: Value,
        results: Results,
        scratch: Value | None,
        *,
        is_packed: bool = False,
        packs: Value | None = None,
    ) -> None:
        self.first_packs = packs
        self.function, self.gemm, self.plan, self.tile = function, gemm, found, found.tile
        self.is_packed = is_packed
        self.lhs, self.rhs, self.results = lhs, rhs, results
        self.kind, self.arithmetic = gemm.sums, found.arithmetic
        self.turns = found.left.turns
        self.follows = False
        self.shift: Value | None = None
        self.packs: Value | None = None
        self.vectors: list[Value] = []
        right, left, _ = _areas(gemm, found)
        right = 0 if is_packed else right
        self.strip = self.kept = self.copied = self.waiting = scratch
        if scratch is not None:
            self.copied = function.offset(scratch, I8, right)
            self.waiting = function.offset(scratch, I8, right + left)

    def run(self, first: Value, last: Value) -> None:
        """Units from ``first`` up to ``last``."""
        function, gemm = self.function, self.gemm
        counts = units(gemm, self.plan)
        tiles = -(-gemm.m // self.tile.rows)
        with each(function, first, last) as unit:
            if self.plan.follow_strips:
                batch, chunk, strip = split_index(function, unit, counts)
                self.packs = None
                if self.plan.keeps:
                    # The piece's first turn through the strips packs them, and so does each further matrix's.
                    self.packs = unit - first < counts[2]
                    if any(gemm.rhs.batch):
                        self.packs = self.packs | chunk.equals(0)
                    if self.first_packs is not None:
                        self.packs = self.packs & self.first_packs
                    assert self.kept is not None
                    self.strip = strided(function, self.kept, I8, [strip], [self._strip_bytes])
            else:
                batch, strip, chunk = split_index(function, unit, (counts[0], counts[2], counts[1]))
                self.packs = chunk.equals(0) | unit.equals(first)
            places = split_index(function, batch, gemm.batch)
            lhs, rhs = self.factors_at(places)
            begin = chunk * self.plan.chunk if counts[1] > 1 else function.index(0)
            end = function.index(tiles) if counts[1] == 1 else (begin + self.plan.chunk).minimum(tiles)
            if self.plan.left.size:
                assert self.copied is not None
                with function.if_(strip.equals(0) | unit.equals(first)):
                    self.plan.left.prepare(function, lhs, begin, end, self.copied)
            if self.is_packed:
                self.strip = self._packed(places, strip)

            def write(tile: Tile, *, follows: bool) -> None:
                self.tile, self.follows = tile, follows
                columns = self._columns(strip)
                if self.plan.strips is not None:
                    self.vectors = self._vectors(self.plan.strips, places, strip)
                if self.plan.is_blocked:
                    self._blocks(batch, lhs, rhs, begin, end, columns)
                else:
                    self._whole_depth(batch, lhs, rhs, begin, end, columns)

            self._by_last_tile(strip, write)

    def _by_last_tile(self, strip: Value, write: _WriteStrip) -> None:
        """Write a strip by its tile: that of the last one may be another."""
        function, gemm, count = self.function, self.gemm, units(self.gemm, self.plan)[2]
        ending = self._last_tile()
        if ending == self.plan.tile or count == 1:
            write(ending, follows=gemm.n % ending.columns == 0)
            return
        with function.if_(strip.equals(count - 1)):
            write(ending, follows=gemm.n % ending.lanes == 0)
        with function.if_(strip < count - 1):
            write(self.plan.tile, follows=True)

    def _last_tile(self) -> Tile:
        """The tile of the last strip: one of its own where this saves time."""
        whole = self.plan.tile
        if not has_last(self.gemm) or self.plan.is_blocked or not self.results.takes_vectors:
            return whole
        last = last_tile(whole, self.gemm.n)
        if self.gemm.n <= whole.columns:
            return last
        # Code for two tiles takes twice as long to compile.
        one, two = (cycles_of(whole, self.gemm.m, self.gemm.n, self.gemm.k, has_last=has) for has in (False, True))
        return last if two < one * _LEAST_GAIN else whole

    def pack(self, target: Value, first: Value, last: Value) -> None:
        """Write strips of the right factor, from one up to another, of each of its matrices."""
        function, left = self.function, self.plan.left
        assert isinstance(left, OneRun)
        matrices, strips = own_matrices(self.gemm), units(self.gemm, self.plan)[2]
        with each(function, first, last) as unit:
            number, strip = split_index(function, unit, (math.prod(matrices), strips))
            _, rhs = self.factors_at(split_index(function, number, matrices))
            self.strip = strided(function, target, I8, [unit], [self._strip_bytes])
            matrix = self.gemm.rhs
            places = [strided(function, rhs, matrix.kind, [one], [matrix.column]) for one in self._columns(strip)]
            self._pack_runs(places, *left.weights)

    def _packed(self, places: Sequence[Value], strip: Value) -> Value:
        """The address of a strip that ``pack`` has written."""
        steps, step = [self._strip_bytes], self._strip_bytes * units(self.gemm, self.plan)[2]
        for size in reversed(own_matrices(self.gemm)):
            steps.insert(0, step if size > 1 else 0)
            step *= size
        return strided(self.function, self.rhs, I8, [*places, strip], steps)

    @property
    def _strip_bytes(self) -> int:
        return _whole(packing.strip_bytes(self.plan.tile, self.arithmetic, self.plan.steps))

    def _columns(self, strip: Value) -> list[Value]:
        """The first columns of a strip's vectors."""
        lanes = self.tile.lanes
        return [
            clamped(self.function, _plus(strip, self.plan.tile.columns, place * lanes), self.gemm.n - lanes)
            for place in range(self.tile.vectors)
        ]

    def _vectors(self, strips: Strips, places: Sequence[Value], strip: Value) -> list[Value]:
        """The addresses of a strip's vectors in strips that were packed before, or of the first where they follow."""
        function, stride = self.function, self.plan.tile.vectors
        matrix = strided(function, self.rhs, I8, places, strips.batch_strides(self.gemm.batch, self.gemm.rhs.batch))
        numbers = [clamped(function, _plus(strip, stride, n), strips.vectors - 1) for n in range(self.tile.vectors)]
        return [strided(function, matrix, I8, [number], [strips.vector_bytes]) for number in numbers]

    def _ahead(self, tile: Value) -> Ahead | None:
        """What a tile fetches of the next strip, where strips of f32 do not stay in a cache."""
        function, gemm, strips = self.function, self.gemm, self.plan.strips
        shift = min(self.plan.chunk, -(-gemm.m // self.tile.rows)).bit_length() - 1
        if strips is None or strips.group > 1 or gemm.k * gemm.n * gemm.rhs.bytes < _FAR or not shift:
            return None
        count = self.plan.tile.vectors
        size = count * strips.vector_bytes
        start = function.offset(self.vectors[0], I8, size)
        return Ahead(function.offset(start, I8, tile * (size >> shift)), count, shift)

    def factors_at(self, places: Sequence[Value]) -> tuple[Value, Value]:
        """The addresses of a matrix of the batch in both factors."""
        function, lhs, rhs = self.function, self.gemm.lhs, self.gemm.rhs
        return (
            strided(function, self.lhs, lhs.kind, places, lhs.batch),
            strided(function, self.rhs, rhs.kind, places, rhs.batch),
        )

    def _right(
        self, rhs: Value, columns: Sequence[Value], terms: Number, turns: Sequence[Turn]
    ) -> tuple[list[Value], Side, tuple[Turn, ...]]:
        """The addresses of a strip's vectors, packed if need be, and the loops of terms with their distances there.

        Args:
            rhs: the address of the first term's row.
            terms: of the innermost loop.
            turns: loops around it.
        """
        function, matrix, tile = self.function, self.gemm.rhs, self.tile
        places = [strided(function, rhs, matrix.kind, [column], [matrix.column]) for column in columns]
        if not self.plan.packs_right:
            if self.follows:
                places = places[:1]
            row = matrix.row * matrix.bytes
            side = Side(matrix.kind, tile.lanes * matrix.bytes, row, matrix.bytes, matrix.signed, is_far=row > _NEAR)
            return places, side, tuple(turns)
        size, along = self.arithmetic.unit_bytes, self.plan.tile.columns if self.is_packed else tile.columns
        if self.plan.strips is not None:
            starts, across, along = self.vectors, 0, tile.lanes
        else:
            assert self.strip is not None
            starts, across = [self.strip], tile.lanes * size
        if self.is_packed or self.plan.strips is not None:
            pass
        elif self.packs is None:
            self._pack_runs(places, terms, turns)
        else:
            with function.if_(self.packs):
                self._pack_runs(places, terms, turns)
        side = Side(self.arithmetic.unit, across, along * size, size)
        found: list[Turn] = []
        distance = self._steps(terms) * (along * size)
        for turn in reversed(turns):
            found.append(replace(turn, right=distance))
            distance = turn.count * distance
        return starts, side, tuple(reversed(found))

    def _steps(self, terms: Number) -> Number:
        """Of the innermost loop."""
        return packing.row_units(self.arithmetic, terms) if isinstance(terms, int) else terms

    def _pack_runs(self, columns: Sequence[Value], run: Number, turns: Sequence[Turn]) -> None:
        """Pack a strip, each run of terms by itself where runs do not follow each other."""
        function, tile, row = self.function, self.tile, self.gemm.rhs.row
        assert self.strip is not None
        if isinstance(self.plan.left, OneRun) and self.plan.left.fills_runs:
            self._pack_each(columns, run, turns)
            return
        while turns and isinstance(run, int) and run % self.arithmetic.group == 0:
            count, right = turns[-1].count, turns[-1].right
            if not isinstance(count, int) or right != run * row * self.gemm.rhs.bytes:
                break
            run, turns = run * count, turns[:-1]
        positions = 0 if self.gemm.is_complex else packing.positions_of(self.gemm.rhs, turns)
        if isinstance(run, int) and positions and tile.lanes >= _LEAST_TURNED:
            packing.pack_windows(function, tile, self.arithmetic, self.gemm.rhs, columns, positions, run, self.strip)
        else:
            self._pack_each(columns, run, turns)
        if self.arithmetic.flips:
            packing.sum_terms(function, tile, self.arithmetic, self.plan.steps, self.strip)

    def _pack_each(self, columns: Sequence[Value], run: Number, turns: Sequence[Turn]) -> None:
        """Pack a strip, run by run."""
        function, tile = self.function, self.tile
        assert self.strip is not None
        size = self._steps(run) * (tile.columns * self.arithmetic.unit_bytes)
        with ExitStack() as loops:
            number: Value | None = None
            starts = list(columns)
            for turn in turns:
                place = loops.enter_context(each(function, 0, turn.count))
                number = place if number is None else number * turn.count + place
                starts = [function.offset(start, I8, place * turn.right) for start in starts]
            target = self.strip if number is None else function.offset(self.strip, I8, number * size)
            packing.pack_strip(function, tile, self.arithmetic, self.gemm.rhs, starts, run, target)

    def _beginning(self) -> list[Value]:
        """What sums are before the first term."""
        function, tile = self.function, self.tile
        if not self.arithmetic.flips:
            return zeros(function, tile, self.kind)
        kind = wide(self.kind, tile.lanes)
        if (strips := self.plan.strips) is not None:
            behind = strips.steps * tile.lanes
            ends = [function.offset(vector, self.arithmetic.unit, behind) for vector in self.vectors]
            return [function.load(end, kind, 4) for end in ends] * tile.rows
        assert self.strip is not None
        start = function.offset(self.strip, self.arithmetic.unit, self.plan.steps * tile.columns)
        vectors = [function.load(function.offset(start, kind, place), kind, 4) for place in range(tile.vectors)]
        return vectors * tile.rows

    def _whole_depth(
        self, batch: Value, lhs: Value, rhs: Value, begin: Value, end: Value, columns: Sequence[Value]
    ) -> None:
        function, gemm, tile, left = self.function, self.gemm, self.tile, self.plan.left
        vectors, right, turns = self._right(rhs, columns, left.run, self.turns)
        sums, steps = self._beginning(), self._steps(left.run)
        with each(function, begin, end) as number:
            row = clamped(function, number * tile.rows, gemm.m - tile.rows)
            rows = self._rows(lhs, begin, number, row, self.shift)
            ahead = self._ahead(number - begin)
            totals = add_terms(
                function, tile, self.arithmetic, left.side, right, rows, vectors, steps, sums, turns, ahead=ahead
            )
            if self.results.stores_tiles and (self.results.takes_vectors or tile.lanes == 1):
                self._store_tile(totals, batch, row, columns)
            else:
                kind = wide(self.kind, tile.lanes)
                memory = function.stack(kind, len(totals))
                for place, total in enumerate(totals):
                    function.store(total, function.offset(memory, kind, place))
                self._finish(memory, batch, row, columns)

    def _blocks(self, batch: Value, lhs: Value, rhs: Value, begin: Value, end: Value, columns: Sequence[Value]) -> None:
        function, gemm, tile, left = self.function, self.gemm, self.tile, self.plan.left
        assert self.waiting is not None
        kind, side = wide(self.kind, tile.lanes), left.side
        count = tile.rows * tile.vectors
        bytes_of_tile = tile.rows * tile.columns * bits_of(self.kind) // 8
        function.clear(self.waiting, (end - begin) * bytes_of_tile)
        run, depth = left.run, self.plan.depth
        with ExitStack() as loops:
            at_left, at_right = self.shift or function.index(0), rhs
            for turn in self.turns[: self.plan.outer]:
                place = loops.enter_context(each(function, 0, turn.count))
                at_left = at_left + place * turn.left
                at_right = function.offset(at_right, I8, place * turn.right)
            term = loops.enter_context(each(function, 0, run, depth))
            terms = depth if run % depth == 0 else (function.index(run) - term).minimum(depth)
            step = term.udiv(self.arithmetic.group) if self.arithmetic.group > 1 else term
            at_left = at_left + step * side.along
            at_right = strided(function, at_right, gemm.rhs.kind, [term], [gemm.rhs.row])
            vectors, right, turns = self._right(at_right, columns, terms, self.turns[self.plan.outer :])
            with each(function, begin, end) as number:
                row = clamped(function, number * tile.rows, gemm.m - tile.rows)
                rows = self._rows(lhs, begin, number, row, at_left)
                memory = strided(function, self.waiting, I8, [number - begin], [bytes_of_tile])
                places = [function.offset(memory, kind, place) for place in range(count)]
                steps, most = self._steps(terms), packing.row_units(self.arithmetic, depth)
                start = zeros(function, tile, self.kind)
                parts = add_terms(
                    function, tile, self.arithmetic, side, right, rows, vectors, steps, start, turns, most=most
                )
                for part, at in zip(parts, places, strict=True):
                    function.store(function.load(at, kind) + part, at)
        with each(function, begin, end) as number:
            row = clamped(function, number * tile.rows, gemm.m - tile.rows)
            memory = strided(function, self.waiting, I8, [number - begin], [bytes_of_tile])
            self._finish(memory, batch, row, columns)

    def _rows(self, lhs: Value, begin: Value, number: Value, row: Value, distance: Value | None) -> list[Value]:
        """The addresses of a tile's rows, so many bytes from their first terms."""
        rows = self.plan.left.rows(self.function, lhs, begin, number, row, self.copied)
        return rows if distance is None else [self.function.offset(start, I8, distance) for start in rows]

    def _store_tile(self, sums: Sequence[Value], batch: Value, row: Value, columns: Sequence[Value]) -> None:
        function, matrix, tile = self.function, self.results.matrix, self.tile
        start = strided(function, self.results.address(batch), matrix.kind, [row], [matrix.row])
        for place, column in enumerate(columns):
            at = strided(function, start, matrix.kind, [column + tile.skipped(place)], [matrix.column])
            for number in range(tile.rows):
                total = sums[number * tile.vectors + place]
                function.store(total.as_(matrix.kind), function.offset(at, matrix.kind, number * matrix.row))

    def _finish(self, memory: Value, batch: Value, row: Value, columns: Sequence[Value]) -> None:
        """Store a tile that waits in memory, by one text for all of its vectors, or for all of its rows."""
        function, tile = self.function, self.tile
        # Results whose columns lie apart are stored one by one.
        lanes = tile.lanes if self.results.takes_vectors else 1
        kind = wide(self.kind, lanes)
        if lanes == tile.lanes and (tile.tail or not self.results.is_plain):
            # What is computed of a row alone is computed once for its vectors.
            with each(function, 0, tile.rows) as number:
                for part, column in enumerate(columns):
                    start = function.offset(memory, self.kind, number * tile.columns + part * lanes)
                    value = function.load(start, wide(self.kind, tile.lanes_of(part)))
                    self.results.put(value, batch, row + number, column + tile.skipped(part))
            return
        with each(function, 0, tile.rows) as number, each(function, 0, tile.vectors) as place:
            column = columns[0]
            if tile.vectors > 1:
                column = clamped(function, columns[0] + place * tile.lanes, self.gemm.n - tile.lanes)
            with each(function, 0, tile.lanes, lanes) as lane:
                at = (number * tile.vectors + place) * tile.lanes + lane
                value = function.load(function.offset(memory, self.kind, at), kind)
                self.results.put(value, batch, row + number, column + lane)


def _plus(strip: Value, columns: int, place: int) -> Value:
    first = strip * columns if strip.text != "0" else strip
    return first + place if place else first
