"""Products of rows with the matrix of their group, as mixtures of experts have them.

    out[r, c] = sum over the groups g that row r belongs to, over t of lhs[r, t] * rhs[g, t, c]

Which rows belong to a group is known at the call alone. The loops are those of tiles (``tiled.py``), whose rows lie
anywhere, or in a copy where terms are widened or grouped::

    for group:
        rows = the rows that belong to it
        for block of terms, strip of columns:
            pack the strip's block, if it is copied
            for tile of rows: results = terms, or += terms

Rows of bf16 that fill the processor's registers for tiles are copied block by block of terms, and each strip of a
matrix is packed for them (``GroupedTiles``).

Results are stored at once where all terms are one block and no row belongs to several groups, which is seen at the
call. Else terms are added to memory: to the results, or where these are narrower than sums to an array of sums, which
is rounded at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from hloforge.pipelines.codegen.lang.values import I8, I64, Number, Value, bits_of
from hloforge.pipelines.codegen.products import packing, tile_registers, tiled
from hloforge.pipelines.codegen.products.arithmetic import BF16
from hloforge.pipelines.codegen.products.blocking import Tile
from hloforge.pipelines.codegen.products.gemm import Gemm
from hloforge.pipelines.codegen.products.left_factors import BlockedRows, rows_of
from hloforge.pipelines.codegen.products.loops import each
from hloforge.pipelines.codegen.products.members import listed, look_over, number_bytes
from hloforge.pipelines.codegen.products.micro_kernel import Side, add_terms, wide, zeros
from hloforge.pipelines.codegen.products.operands import strided
from hloforge.pipelines.codegen.products.results import Results
from hloforge.pipelines.codegen.products.strips import Strips, strips_of
from hloforge.pipelines.codegen.products.work import Work
from hloforge.pipelines.framework.machine import Machine

# Tiles of rows that are enough for whatever strips pay for.
_MANY_TILES = 64
# Rows that are copied at once, where rows are copied; bytes of sums that wait at most, if there is a strip of them.
_COPIED_ROWS, _WAITING_BYTES = 256, 1 << 22
# Terms of a block of a right factor in place: as many rows of it are read at once, from their first to their last
# columns, as the processor fetches by itself.
_IN_PLACE = 32


@dataclass(frozen=True)
class GroupedGemm:
    """A product of rows with the matrix of their group.

    Attributes:
        gemm: whose batch are the batch and the groups, and whose rows are as many as a group has in the mean; ``lhs``
            and ``out`` are those of all rows. Vectors fill the columns, since what is stored is added.
        rows: of all groups.
        members: the address of ``[batch, groups, rows]`` bytes, which are not 0 where a row belongs to a group.
    """

    gemm: Gemm
    rows: int
    members: Value | None = None

    def packed(self, machine: Machine) -> Strips | None:
        """How constant right factors are packed when the program is compiled; None where that does not pay."""
        found = self._by_vectors(machine)
        # A group's matrix comes from memory for its few rows: strips are read from end to end.
        return strips_of(replace(self.gemm, m=max(self.gemm.m, _MANY_TILES * found.tile.rows)), found, has_blocks=False)

    def _takes_registers(self, machine: Machine) -> bool:
        """Whether the processor's registers for tiles multiply rows of the groups, which whole registers store."""
        gemm = self.gemm
        is_dense = gemm.lhs.column == 1 and gemm.out.column == 1 and gemm.n % tile_registers.LANES == 0
        return gemm.strips is None and is_dense and tile_registers.takes(gemm, machine)

    def _plan(self, machine: Machine) -> tiled.TiledPlan:
        if not self._takes_registers(machine):
            return self._by_vectors(machine)
        gemm, arithmetic = self.gemm, tile_registers.arithmetic_of(self.gemm)
        assert arithmetic is not None
        tile = tile_registers.tile_of(gemm)
        # Registers are full, whatever rows a group has.
        tile = replace(tile, rows=tile_registers.ROWS * (1 + (tile.rows > tile_registers.ROWS)))
        tiles = -(-min(self.rows, _COPIED_ROWS) // tile.rows)
        left = BlockedRows(gemm.lhs, self.rows, gemm.k, tile, arithmetic, tiles)
        return tiled.TiledPlan(tile, arithmetic, gemm.k, 0, True, left, tiles)

    def _by_vectors(self, machine: Machine) -> tiled.TiledPlan:
        gemm = tile_registers.by_vectors(self.gemm)
        found = tiled.plan(gemm, machine)
        if not found.left.size:
            return found
        tiles = -(-min(self.rows, _COPIED_ROWS) // found.tile.rows)
        return replace(found, left=rows_of(gemm, found.tile, found.arithmetic, tiles), chunk=tiles)

    def _areas(self, found: tiled.TiledPlan) -> tuple[int, int, int]:
        """Bytes of row numbers, of copies, and of sums that wait."""
        sums = self.rows * self._waiting_strips(found) * found.tile.columns * bits_of(self.gemm.sums) // 8
        return number_bytes(self.rows + found.tile.rows), tiled.scratch_bytes(self.gemm, found), sums

    def _waiting_strips(self, found: tiled.TiledPlan) -> int:
        """Strips of which sums wait at once; 0 where terms are added to results."""
        if self.gemm.out.kind == self.gemm.sums:
            return 0
        strip = self.rows * found.tile.columns * bits_of(self.gemm.sums) // 8
        return min(max(1, _WAITING_BYTES // strip), tiled.units(self.gemm, found)[2])

    def scratch(self, machine: Machine) -> int:
        """Bytes that each workgroup needs for copies, sums and row numbers, at an address that 64 divides."""
        return max(sum(self._areas(found)) for found in (self._plan(machine), self._by_vectors(machine)))

    def workgroups(self, machine: Machine) -> int:
        """Into how many pieces of about equal work it may be cut, each of which has some columns of all groups."""
        return min(self.gemm.pieces(machine), self._strips(machine))

    def _strips(self, machine: Machine) -> int:
        return tiled.units(self.gemm, self._plan(machine))[2]

    def emit(self, work: Work) -> None:
        """Write the product, or a piece of it, without a store of one's own."""
        if work.scratch is None or self.members is None or work.store is not None:
            raise ValueError("this product needs scratch, members and no store")
        function, lhs, rhs, machine = work.function, work.lhs, work.rhs, work.machine
        all_of_it = work.piece(self._strips(machine), self.workgroups(machine))
        members, results = self.members, Results(function, work.out, self.gemm.out, self.gemm.batch)
        memory, gemm = work.scratch, tile_registers.by_vectors(self.gemm)

        def run(product: GroupedProduct, found: tiled.TiledPlan, piece: tuple[Value, Value]) -> None:
            numbers, copies, _ = self._areas(found)
            product.numbers, product.rows = memory, self.rows
            product.waiting_strips = self._waiting_strips(found)
            product.sums = function.offset(memory, I8, numbers + copies)
            product.run_groups(members, *piece)

        def by_vectors(piece: tuple[Value, Value]) -> None:
            found = self._by_vectors(machine)
            copied = function.offset(memory, I8, self._areas(found)[0])
            run(GroupedProduct(function, gemm, found, lhs, rhs, results, copied), found, piece)

        def by_registers(piece: tuple[Value, Value]) -> None:
            found = self._plan(machine)
            copied = function.offset(memory, I8, self._areas(found)[0])
            run(GroupedTiles(function, self.gemm, found, lhs, rhs, results, copied), found, piece)

        if not self._takes_registers(machine):
            by_vectors(all_of_it)
            return
        totals = self._strips(machine), tiled.units(self.gemm, self._by_vectors(machine))[2]
        rounds = BF16 in self.gemm.extensions
        tile_registers.run_if_allowed(function, by_registers, all_of_it, totals, by_vectors, rounds=rounds)


class GroupedProduct(tiled.TiledProduct):
    """Writes the loops.

    Attributes:
        rows: of a batch.
        numbers: the address of the numbers of a group's rows, of which the last one is repeated to fill a tile.
        count: how many there are.
        waiting_strips: of which sums wait at once; 0 where terms are added to results.
        sums: the address where they wait, ``[rows, columns of these strips]``.
        begin, end: columns of the strips that are computed before others.
        out: the address of the results of a batch's rows.
        adds: whether terms are added to memory; None if they always are.
    """

    rows: int
    numbers: Value
    count: Value
    waiting_strips: int
    sums: Value
    begin: Value
    end: Value
    out: Value
    adds: Value | None = None

    @property
    def _block(self) -> int:
        """Terms of a block at most: what is not packed is read row by row."""
        run = self.plan.left.run
        return self.plan.depth if self.plan.packs_right else min(_IN_PLACE, run)

    def run_groups(self, members: Value, first: Value, last: Value) -> None:
        """Columns of the strips from ``first`` up to ``last``."""
        function, gemm, (batches, groups) = self.function, self.gemm, self.gemm.batch
        with each(function, 0, batches) as batch:
            own = strided(function, members, I8, [batch], [groups * self.rows])
            self.out = strided(function, self.results.out, gemm.out.kind, [batch], [gemm.out.batch[0]])
            if self._block == self.plan.left.run:
                columns = first * self.plan.tile.columns, (last * self.plan.tile.columns).minimum(gemm.n)
                self.adds = look_over(function, own, groups, self.rows, lambda row: self._clear(row, *columns))
            with self._in_turn(first, last) as strips:
                self.begin, self.end = (strip * self.plan.tile.columns for strip in strips)
                self.end = self.end.minimum(gemm.n)
                self._if_adds(self._clear_all)
                with each(function, 0, groups) as group:
                    mine = strided(function, own, I8, [group], [self.rows])
                    self.count = listed(function, mine, self.rows, self.numbers, self.plan.tile.rows - 1)
                    with function.if_(self.count > 0):
                        self._group([batch, group], *strips)
                if self.waiting_strips:
                    self._if_adds(self._round)

    @contextmanager
    def _in_turn(self, first: Value, last: Value) -> Iterator[tuple[Value, Value]]:
        """The strips of a piece, or so many of them after the others whose sums may wait."""
        if not self.waiting_strips:
            yield first, last
            return
        function, most = self.function, self.function.index(self.waiting_strips)
        count = last - first
        size = most if self.adds is None else self.adds.where(most, count)
        with each(function, 0, (count + (size - 1)).udiv(size)) as part:
            start = first + part * size
            yield start, (start + size).minimum(last)

    def _clear(self, row: Value, begin: Value, end: Value) -> None:
        """Let a row of the results be 0."""
        function, matrix = self.function, self.gemm.out
        start = strided(function, self.out, matrix.kind, [row, begin], [matrix.row, 1])
        function.clear(start, (end - begin) * matrix.bytes)

    def _clear_all(self) -> None:
        """Let what terms are added to be 0."""
        function, size = self.function, bits_of(self.kind) // 8
        if self.waiting_strips:
            columns = self.waiting_strips * self.plan.tile.columns
            function.clear(self.sums, self.rows * columns * size)
            return
        with each(function, 0, self.rows) as row:
            self._clear(row, self.begin, self.end)

    def _if_adds(self, write: Callable[[], None]) -> None:
        """Instructions that run where terms are added to memory."""
        if self.adds is None:
            write()
            return
        with self.function.if_(self.adds):
            write()

    def _waiting(self, row: Value, column: Value) -> Value:
        """The address that terms are added to."""
        function, matrix, columns = self.function, self.gemm.out, self.waiting_strips * self.plan.tile.columns
        if not columns:
            return strided(function, self.out, matrix.kind, [row, column], [matrix.row, 1])
        return strided(function, self.sums, self.kind, [row, column - self.begin], [columns, 1])

    def _round(self) -> None:
        """Store the sums that waited."""
        function, matrix, lanes = self.function, self.gemm.out, self.plan.tile.lanes
        with each(function, 0, self.rows) as row, each(function, self.begin, self.end, lanes) as column:
            total = function.load(self._waiting(row, column), wide(self.kind, lanes), bits_of(self.kind) // 8)
            place = strided(function, self.out, matrix.kind, [row, column], [matrix.row, 1])
            function.store(total.as_(matrix.kind), place, matrix.bytes)

    def _group(self, places: Sequence[Value], first: Value, last: Value) -> None:
        """The products of a group's rows.

        Args:
            places: of the group in the batch.
        """
        function, left, most = self.function, self.plan.left, self._block
        lhs, rhs = self.factors_at(places)
        with ExitStack() as loops:
            start, count = function.index(0), self.count
            if left.size:
                rows = self.plan.chunk * self.plan.tile.rows
                start = loops.enter_context(each(function, 0, self.count, rows))
                count = (self.count - start).minimum(rows)
                self._copy_rows(lhs, start, count)
            term = loops.enter_context(each(function, 0, left.run, most))
            strip = loops.enter_context(each(function, first, last))
            terms = most if left.run % most == 0 else (function.index(left.run) - term).minimum(most)

            def write(tile: Tile, *, follows: bool) -> None:
                self.tile, self.follows = tile, follows
                columns = self._columns(strip)
                if self.plan.strips is not None:
                    self.vectors = self._vectors(self.plan.strips, places, strip)
                at_right = strided(function, rhs, self.gemm.rhs.kind, [term], [self.gemm.rhs.row])
                right = self._right(at_right, columns, terms, ())[:2]
                self._tiles(lhs, right, (start, count), (term, terms), columns)

            self._by_last_tile(strip, write)

    def _tiles(
        self,
        lhs: Value,
        right: tuple[Sequence[Value], Side],
        rows: tuple[Value, Value],
        block: tuple[Value, Number],
        columns: Sequence[Value],
    ) -> None:
        """Products of a group's rows with a block of a strip.

        Args:
            right: the addresses of the strip's vectors, and how they are read.
            rows: the first one's place among the group's, and how many there are.
            block: its first term, and how many it has.
        """
        function, tile, arithmetic, side = self.function, self.tile, self.arithmetic, self.plan.left.side
        (vectors, right_side), (start, count), (term, terms) = right, rows, block
        step = term.udiv(arithmetic.group) if arithmetic.group > 1 else term
        with each(function, 0, (count + (tile.rows - 1)).udiv(tile.rows)) as number:
            first = strided(function, self.numbers, I64, [start + number * tile.rows], [1])
            sums = add_terms(
                *(function, tile, arithmetic, side, right_side),
                self._tile_rows(lhs, number, first, step * side.along),
                *(vectors, self._steps(terms), zeros(function, tile, self.kind)),
                most=packing.row_units(arithmetic, self._block),
            )
            self._put(sums, first, columns)

    def _chosen(self, first: Value) -> list[Value]:
        """The numbers of a tile's rows."""
        return [self.function.load(self.function.offset(first, I64, place), I64) for place in range(self.tile.rows)]

    def _tile_rows(self, lhs: Value, number: Value, first: Value, distance: Value) -> list[Value]:
        """The addresses of a tile's rows, so many bytes from their first terms."""
        function, matrix, left = self.function, self.gemm.lhs, self.plan.left
        if left.size:
            zero = function.index(0)
            starts = left.rows(function, lhs, zero, number, number * self.tile.rows, self.copied)
        else:
            starts = [strided(function, lhs, matrix.kind, [row], [matrix.row]) for row in self._chosen(first)]
        return [function.offset(start, I8, distance) for start in starts]

    def _copy_rows(self, lhs: Value, start: Value, count: Value) -> None:
        """Copy rows of a group, and the last one again to fill a tile."""
        function, left, tile, matrix = self.function, self.plan.left, self.plan.tile, self.gemm.lhs
        assert self.copied is not None
        size = left.side.across
        with each(function, 0, (count + (tile.rows - 1)).udiv(tile.rows) * tile.rows) as place:
            row = function.load(strided(function, self.numbers, I64, [start + place], [1]), I64)
            source = strided(function, lhs, matrix.kind, [row], [matrix.row])
            target = strided(function, self.copied, I8, [place], [size])
            packing.widen_rows(function, self.arithmetic, matrix, source, 1, left.run, target)

    def _put(self, sums: Sequence[Value], first: Value, columns: Sequence[Value]) -> None:
        """Store a tile, or add it to memory."""
        function, size = self.function, bits_of(self.kind) // 8
        rows = self._chosen(first)

        def add() -> Sequence[Value]:
            # All is read before anything is written, since rows and columns may be there twice.
            kind = wide(self.kind, self.tile.lanes)
            places = [self._waiting(row, column) for row in rows for column in columns]
            totals = [function.load(at, kind, size) + total for at, total in zip(places, sums, strict=True)]
            for total, place in zip(totals, places, strict=True):
                function.store(total, place, size)
            return ()

        def store() -> Sequence[Value]:
            matrix = self.gemm.out
            places = [
                strided(function, self.out, matrix.kind, [row, column], [matrix.row, 1])
                for row in rows
                for column in columns
            ]
            for total, place in zip(sums, places, strict=True):
                function.store(total.as_(matrix.kind), place, matrix.bytes)
            return ()

        if self.adds is None:
            add()
        else:
            function.branch(self.adds, add, store)


class GroupedTiles(GroupedProduct, tile_registers.TileRegisterProduct):
    """Writes the loops with the processor's registers for tiles, for all terms at once."""

    def run_groups(self, members: Value, first: Value, last: Value) -> None:
        self.configure()
        super().run_groups(members, first, last)
        self.function.do("call void @llvm.x86.tilerelease()")

    def _group(self, places: Sequence[Value], first: Value, last: Value) -> None:
        function, left, tile = self.function, self.plan.left, self.plan.tile
        _, rhs = self.factors_at(places)
        lhs, _ = self.factors_at(places)
        memory, rows = function.stack(self.kind, tile.rows * tile.columns), self.plan.chunk * tile.rows
        with each(function, 0, self.count, rows) as start:
            count = (self.count - start).minimum(rows)
            self._copy_rows(lhs, start, count)
            with each(function, first, last) as strip:
                columns = self._columns(strip)
                self.packs = None
                strips, _, _ = self._right(rhs, columns, left.run, ())
                with each(function, 0, (count + (tile.rows - 1)).udiv(tile.rows)) as number:
                    zero = function.index(0)
                    (at,) = left.rows(function, lhs, zero, number, number * tile.rows, self.copied)
                    parts = [function.offset(at, I8, part * left.side.across) for part in self._parts]
                    self._sum_into(memory, parts, strips, self.plan.steps // tile_registers.ROWS, None)
                    self._put_rows(memory, start, number * tile.rows, count, columns)

    def _copy_rows(self, lhs: Value, start: Value, count: Value) -> None:
        function, tile, matrix = self.function, self.plan.tile, self.gemm.lhs
        assert self.copied is not None
        size = self.plan.left.size // self.plan.chunk
        with (
            each(function, 0, (count + (tile.rows - 1)).udiv(tile.rows)) as number,
            each(function, 0, tile.rows) as own,
        ):
            row = function.load(strided(function, self.numbers, I64, [start, number, own], [1, tile.rows, 1]), I64)
            source = strided(function, lhs, matrix.kind, [row], [matrix.row])
            block = tile_registers.BYTES
            target = strided(function, self.copied, I8, [number, own], [size, block])
            packing.block_row(function, self.arithmetic, self.gemm.k * matrix.bytes, source, tile.rows, target)

    def _put_rows(self, memory: Value, start: Value, first: Value, count: Value, columns: Sequence[Value]) -> None:
        """Store a tile that waits in memory, or add it to what waits."""
        function, tile, size = self.function, self.tile, bits_of(self.kind) // 8
        assert self.adds is not None
        # A row that is repeated to fill the tile is added once.
        rows = (count - first).minimum(tile.rows)

        def row_of(own: Value) -> Value:
            return function.load(strided(function, self.numbers, I64, [start, first, own], [1, 1, 1]), I64)

        def add() -> Sequence[Value]:
            kind = wide(self.kind, tile.lanes)
            with each(function, 0, rows) as own:
                row = row_of(own)
                places = [self._waiting(row, column) for column in columns]
                at = function.offset(memory, self.kind, own * tile.columns)
                sums = [function.load(function.offset(at, kind, n), kind) for n in range(tile.vectors)]
                totals = [function.load(place, kind, size) + own for place, own in zip(places, sums, strict=True)]
                for total, place in zip(totals, places, strict=True):
                    function.store(total, place, size)
            return ()

        def store() -> Sequence[Value]:
            matrix = self.gemm.out
            with each(function, 0, rows) as own:
                row = row_of(own)
                at = function.offset(memory, self.kind, own * tile.columns)
                for _, value, column in self._rounded_row(at, columns):
                    place = strided(function, self.out, matrix.kind, [row, column], [matrix.row, 1])
                    function.store(value.as_(matrix.kind), place, matrix.bytes)
            return ()

        function.branch(self.adds, add, store)
