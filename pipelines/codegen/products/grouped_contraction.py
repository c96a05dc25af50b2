"""Sums of products over the rows of a group, as the gradients of the matrices of experts are.

    out[g, i, j] = sum over the rows r of group g of lhs[r, i] * rhs[r, j]

Which rows belong to a group is known at the call alone. The loops are those of tiles (``tiled.py``), whose terms lie
anywhere and are as many as the call says. Both factors are copied in the order of these loops, rows in groups where the
processor multiplies several terms at once (``arithmetic.py``)::

    for group:
        rows = those that belong to it
        for unit in piece:               # chunks of rows of the result, strips of columns
            copy the chunk's left factor # once for all strips
            for block of rows:
                pack the strip
                for tile in chunk: sums = those over the block's rows
            store sums

Few rows are packed once for all strips, and results written row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hloforge.pipelines.codegen.lang.values import I8, I64, Number, Value, bits_of
from hloforge.pipelines.codegen.products import packing, tiled
from hloforge.pipelines.codegen.products.arithmetic import Arithmetic
from hloforge.pipelines.codegen.products.blocking import Tile, block_depth, choose_tile, chunk_tiles
from hloforge.pipelines.codegen.products.gemm import Gemm
from hloforge.pipelines.codegen.products.left_factors import Rows
from hloforge.pipelines.codegen.products.loops import carrying, each
from hloforge.pipelines.codegen.products.members import listed, number_bytes
from hloforge.pipelines.codegen.products.micro_kernel import Turn, add_terms, wide, zeros
from hloforge.pipelines.codegen.products.operands import Matrix, clamped, split_index, strided
from hloforge.pipelines.codegen.products.results import Results
from hloforge.pipelines.codegen.products.strips import Strips
from hloforge.pipelines.codegen.products.work import Work
from hloforge.pipelines.framework.machine import Machine

# Rows of a chunk at most, and tiles that it has at least where there are as many.
_CHUNK_ROWS, _LEAST_TILES = 1024, 8
# Bytes of all strips of all rows up to which results may be written row by row.
_MOST_PACKED = 1 << 22
# Terms, or groups of them, that are copied of all tiles of a chunk before the next ones.
_GATHERED = 16


@dataclass(frozen=True)
class GroupedContraction:
    """Products of two factors, summed over the rows of each group.

    Attributes:
        gemm: whose batch are the batch and the groups, and whose terms are all rows; ``lhs`` and ``rhs`` are those of
            all groups.
        members: the address of ``[batch, groups, rows]`` bytes, which are not 0 where a row belongs to a group.
    """

    gemm: Gemm
    members: Value | None = None

    def packed(self, _: Machine) -> Strips | None:
        """None: what is packed of a constant factor depends on the groups."""
        return None

    @property
    def _mean(self) -> int:
        """Rows of a group where they are shared out."""
        return -(-self.gemm.k // self.gemm.batch[1])

    @property
    def _number_bytes(self) -> int:
        # The last one is repeated to fill a group.
        return number_bytes(self.gemm.k + 1)

    def _pieces(self, machine: Machine) -> int:
        return replace(self.gemm, k=self._mean).pieces(machine)

    def _plan(self, machine: Machine) -> tiled.TiledPlan:
        gemm = self.gemm
        tile = choose_tile(gemm.sums, gemm.m, gemm.n, self._mean, machine, has_last=tiled.has_last(gemm))
        arithmetic = tiled.arithmetic_of(gemm, tile, machine)
        tiles, strips = -(-gemm.m // tile.rows), -(-gemm.n // tile.columns)
        chunk = chunk_tiles(tiles, _CHUNK_ROWS // tile.rows, strips, self._pieces(machine), _LEAST_TILES)
        steps = packing.row_units(arithmetic, gemm.k)
        depth = arithmetic.group * block_depth(steps, tile.columns * arithmetic.unit_bytes, machine)
        by_rows = self._writes_by_rows(arithmetic, machine) and tile.columns < gemm.n
        if by_rows:
            chunk, depth = 1, gemm.k
        left = Rows(gemm.lhs, gemm.m, gemm.k, tile, arithmetic, chunk, "gathered")
        return tiled.TiledPlan(tile, arithmetic, min(depth, gemm.k), 0, True, left, chunk, by_rows=by_rows)

    def _writes_by_rows(self, arithmetic: Arithmetic, machine: Machine) -> bool:
        """Whether results are written row by row, because most of the time is theirs: strips of them lie apart."""
        gemm = self.gemm
        if gemm.count * gemm.m * gemm.n * gemm.out.bytes <= 2 * machine.l2_bytes:
            return False
        row = gemm.n * arithmetic.unit_bytes
        mean, most = (packing.row_units(arithmetic, terms) * row for terms in (self._mean, gemm.k))
        return mean <= machine.l2_bytes // 2 and most <= _MOST_PACKED

    def _packed_bytes(self, machine: Machine) -> int:
        """Of all strips of a group's rows, where results are written row by row."""
        found = self._plan(machine)
        return tiled.matrix_bytes(self.gemm, found) if found.by_rows else 0

    def scratch(self, machine: Machine) -> int:
        """Bytes that each workgroup needs for copies and row numbers, at an address that 64 divides."""
        return self._number_bytes + self._packed_bytes(machine) + tiled.scratch_bytes(self.gemm, self._plan(machine))

    def workgroups(self, machine: Machine) -> int:
        """Into how many pieces of about equal work it may be cut, each of which has a part of all groups' results."""
        return min(self._pieces(machine), self._units(machine))

    def _units(self, machine: Machine) -> int:
        _, chunks, strips = tiled.units(self.gemm, self._plan(machine))
        return chunks * strips

    def emit(self, work: Work) -> None:
        """Write the sums, or a piece of them, without a store of one's own."""
        if work.scratch is None or self.members is None or work.store is not None:
            raise ValueError("these sums need scratch, members and no store")
        function, machine, found = work.function, work.machine, self._plan(work.machine)
        results = Results(function, work.out, self.gemm.out, self.gemm.batch)
        packed = function.offset(work.scratch, I8, self._number_bytes)
        rest = function.offset(packed, I8, self._packed_bytes(machine))
        product = _GroupedContraction(
            *(function, self.gemm, found, work.lhs, work.rhs, results, rest), is_packed=found.by_rows
        )
        product.packed = packed
        piece = work.piece(self._units(machine), self.workgroups(machine))
        product.run_groups(self.members, work.scratch, *piece)


class _GroupedContraction(tiled.TiledProduct):
    """Writes the loops.

    Attributes:
        numbers: the address of the numbers of a group's rows.
        count: how many there are.
        term: the place of the first one of the block that is packed.
        packed: the address of all strips of a group's rows, where results are written row by row.
    """

    numbers: Value
    count: Value
    term: Value
    packed: Value

    def run_groups(self, members: Value, numbers: Value, first: Value, last: Value) -> None:
        """Units of each group from ``first`` up to ``last``."""
        function, gemm, (batches, groups) = self.function, self.gemm, self.gemm.batch
        self.numbers = numbers
        with each(function, 0, batches) as batch, each(function, 0, groups) as group:
            matrix = batch * groups + group
            own = strided(function, members, I8, [matrix], [gemm.k])
            self.count = listed(function, own, gemm.k, numbers, self.arithmetic.group - 1)
            lhs, rhs = self.factors_at([batch, group])
            if self.is_packed:
                self._pack_all(rhs)
            with each(function, first, last) as unit:
                self._unit(matrix, lhs, rhs, unit, first)

    def _pack_all(self, rhs: Value) -> None:
        """Pack the rows of a group, before all tiles."""
        function, matrix, self.tile, self.term = self.function, self.gemm.rhs, self.plan.tile, self.function.index(0)
        with each(function, 0, tiled.units(self.gemm, self.plan)[2]) as strip:
            columns = [strided(function, rhs, matrix.kind, [one], [matrix.column]) for one in self._columns(strip)]
            self.strip = self._place_of(strip)
            with function.if_(self.count > 0):
                self._pack_runs(columns, self.count, ())

    def _place_of(self, strip: Value) -> Value:
        """Where a strip of a group's rows is packed."""
        return strided(self.function, self.packed, I8, [strip], [self._strip_bytes])

    def _unit(self, matrix: Value, lhs: Value, rhs: Value, unit: Value, first: Value) -> None:
        """A strip of columns of a chunk of a group's result."""
        function, gemm, (_, chunks, strips) = self.function, self.gemm, tiled.units(self.gemm, self.plan)
        chunk, strip = split_index(function, unit, (chunks, strips))
        begin = chunk * self.plan.chunk if chunks > 1 else function.index(0)
        end = (begin + self.plan.chunk).minimum(-(-gemm.m // self.plan.tile.rows))
        with function.if_(self.count.equals(0)):
            self._clear(matrix, begin, end, strip)
        if self.is_packed:
            self.strip = self._place_of(strip)
        with function.if_(self.count > 0):
            with function.if_(strip.equals(0) | unit.equals(first)):
                self._copy_left(lhs, begin, end)

            def write(tile: Tile, *, follows: bool) -> None:
                self.tile, self.follows = tile, follows
                self._sum(matrix, rhs, begin, end, self._columns(strip))

            self._by_last_tile(strip, write)

    def _clear(self, matrix: Value, begin: Value, end: Value, strip: Value) -> None:
        """What no row adds to is 0."""
        function, gemm, tile = self.function, self.gemm, self.plan.tile
        column = strip * tile.columns
        size = (column + tile.columns).minimum(gemm.n) - column
        with each(function, begin * tile.rows, (end * tile.rows).minimum(gemm.m)) as row:
            function.clear(self.results.address_of(matrix, row, column), size * gemm.out.bytes)

    def _whole_steps(self, terms: Value) -> Value:
        """Terms, or how many groups they are in."""
        group = self.arithmetic.group
        return (terms + (group - 1)).udiv(group) if group > 1 else terms

    def _copy_left(self, lhs: Value, begin: Value, end: Value) -> None:
        """Write the terms of each tile of a chunk one after the other, some terms of all tiles before the next ones."""
        function, gemm, tile, steps = self.function, self.gemm, self.plan.tile, self._whole_steps(self.count)
        assert self.copied is not None
        size = tile.rows * self.arithmetic.unit_bytes
        with each(function, 0, steps, _GATHERED) as block, each(function, begin, end) as number:
            row = clamped(function, number * tile.rows, gemm.m - tile.rows)
            start = strided(function, lhs, gemm.lhs.kind, [row], [gemm.lhs.row])
            target = function.offset(self.copied, I8, ((number - begin) * steps + block) * size)
            with carrying(function, block, (block + _GATHERED).minimum(steps), [target]) as (loop, step, (to,)):
                self._copy(gemm.lhs, [self._rows_of(start, gemm.lhs, gemm.lhs.column, step)], tile.rows, to)
                loop.next([function.offset(to, I8, size)])
        if self.arithmetic.group == 1:
            return
        with function.if_(self._ends_early(self.count)), each(function, begin, end) as number:
            row = clamped(function, number * tile.rows, gemm.m - tile.rows)
            start = strided(function, lhs, gemm.lhs.kind, [row], [gemm.lhs.row])
            target = function.offset(self.copied, I8, ((number - begin) * steps + (steps - 1)) * size)
            rows = self._rows_of(start, gemm.lhs, gemm.lhs.column, steps - 1)
            self._copy(gemm.lhs, [rows[:1]], tile.rows, target)

    def _pack_runs(self, columns: Sequence[Value], run: Number, turns: Sequence[Turn]) -> None:
        """Pack the rows of a block."""
        function, matrix, tile = self.function, self.gemm.rhs, self.tile
        assert self.strip is not None
        assert isinstance(run, Value)
        assert not turns
        size, first = self.arithmetic.unit_bytes, self.term.udiv(self.arithmetic.group)
        steps = self._whole_steps(run)
        with carrying(function, 0, steps, [self.strip]) as (loop, step, (to,)):
            rows = [self._rows_of(column, matrix, matrix.row, first + step) for column in columns]
            self._copy(matrix, rows, tile.lanes, to)
            loop.next([function.offset(to, I8, tile.columns * size)])
        if self.arithmetic.group == 1:
            return
        with function.if_(self._ends_early(run)):
            rows = [self._rows_of(column, matrix, matrix.row, first + steps - 1)[:1] for column in columns]
            self._copy(matrix, rows, tile.lanes, function.offset(self.strip, I8, (steps - 1) * (tile.columns * size)))

    def _ends_early(self, terms: Value) -> Value:
        """Whether the last group of so many terms has one term alone."""
        return terms.urem(self.arithmetic.group).differs(0)

    def _rows_of(self, start: Value, matrix: Matrix, stride: int, step: Value) -> list[Value]:
        """The addresses of the rows of a step; behind the last row of the group is the last one again.

        Args:
            start: the address of a column, or some that follow each other, in the first row of all.
            stride: between rows.
        """
        terms = [step * self.arithmetic.group + place for place in range(self.arithmetic.group)]
        return [strided(self.function, start, matrix.kind, [self._number(term)], [stride]) for term in terms]

    def _copy(self, matrix: Matrix, parts: Sequence[Sequence[Value]], lanes: int, to: Value) -> None:
        """Write a step's elements of several parts, each of so many columns, next to each other.

        Args:
            parts: the addresses of the rows of each; zeros fill the group where there is one row alone.
        """
        function, size = self.function, lanes * self.arithmetic.unit_bytes
        for place, rows in enumerate(parts):
            vectors = [packing.element(function, self.arithmetic, matrix, row, lanes) for row in rows]
            vectors += [function.constant(0, vectors[0].kind)] * (self.arithmetic.group - len(rows))
            unit = packing.grouped(function, self.arithmetic, vectors)
            function.store(unit, function.offset(to, I8, place * size), self.arithmetic.unit_bytes)

    def _number(self, term: Value) -> Value:
        """Of a row of the group."""
        return self.function.load(strided(self.function, self.numbers, I64, [term], [1]), I64)

    def _sum(self, matrix: Value, rhs: Value, begin: Value, end: Value, columns: Sequence[Value]) -> None:
        """Write a strip's sums."""
        function, gemm, tile, is_blocked = self.function, self.gemm, self.tile, self.plan.is_blocked
        kind, size = wide(self.kind, tile.lanes), tile.rows * tile.columns * bits_of(self.kind) // 8
        most, side = self.plan.depth, self.plan.left.side
        assert self.copied is not None
        assert self.waiting is not None
        if is_blocked:
            function.clear(self.waiting, (end - begin) * size)
        with each(function, 0, self.count if is_blocked else 1, most) as term:
            self.term = term
            terms = (self.count - term).minimum(most) if is_blocked else self.count
            vectors, right, _ = self._right(rhs, columns, terms, ())
            steps, first = self._whole_steps(terms), term.udiv(self.arithmetic.group)
            with each(function, begin, end) as number:
                row = clamped(function, number * tile.rows, gemm.m - tile.rows)
                panel_step = (number - begin) * self._whole_steps(self.count) + first
                panel = function.offset(self.copied, I8, panel_step * side.along)
                sums = add_terms(
                    *(function, tile, self.arithmetic, side, right, [panel], vectors, steps),
                    zeros(function, tile, self.kind),
                    most=packing.row_units(self.arithmetic, most),
                )
                if is_blocked:
                    memory = strided(function, self.waiting, I8, [number - begin], [size])
                    for place, part in enumerate(sums):
                        at = function.offset(memory, kind, place)
                        function.store(function.load(at, kind) + part, at)
                else:
                    self._store_tile(sums, matrix, row, columns)
        if is_blocked:
            with each(function, begin, end) as number:
                row = clamped(function, number * tile.rows, gemm.m - tile.rows)
                self._finish(strided(function, self.waiting, I8, [number - begin], [size]), matrix, row, columns)
