"""Products of rows with the matrix of their group, as mixtures of experts have them.

    out[r, c] = sum over the groups g that row r belongs to, over t of lhs[r, t] * rhs[g, t, c]

Which rows belong to a group is known at the call alone. The loops are those of tiles (``tiled.py``), whose rows lie
anywhere, and results are added to memory, a block of terms of a group after the other::

    results = 0
    for group:
        rows = the rows that belong to it
        for strip of columns, block of terms:
            pack the strip's block, if it is copied
            for tile of rows: results += terms
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I8, I64, Number, Value
from hloforge.pipelines.codegen.products import packing, tiled
from hloforge.pipelines.codegen.products.blocking import Tile
from hloforge.pipelines.codegen.products.gemm import Gemm
from hloforge.pipelines.codegen.products.loops import carrying, each, piece_of
from hloforge.pipelines.codegen.products.micro_kernel import add_terms, wide, zeros
from hloforge.pipelines.codegen.products.operands import strided
from hloforge.pipelines.codegen.products.results import Results, Store
from hloforge.pipelines.codegen.products.strips import Strips, strips_of
from hloforge.pipelines.framework.machine import Machine

# Parts of scratch memory begin at multiples of it; bytes of a row's number.
_LINE, _NUMBER = 64, 8
# Tiles of rows that are enough for whatever strips pay for.
_MANY_TILES = 64
# Terms of a block of a right factor in place: as many rows of it are read at once, from their first to their last
# columns, as the processor fetches by itself.
_IN_PLACE = 32


def number_bytes(rows: int) -> int:
    """Of the numbers of so many rows, in whole lines."""
    return -(-rows * _NUMBER // _LINE) * _LINE


def listed(function: Function, members: Value, rows: int, numbers: Value) -> Value:
    """Write the numbers of the rows that belong to a group. Returns how many do.

    Args:
        members: the address of a byte for each row.
        numbers: where they are written.
    """
    with carrying(function, 0, rows, [function.index(0)]) as (loop, row, (count,)):
        # The one that does not belong is overwritten by the next.
        function.store(row, strided(function, numbers, I64, [count], [1]))
        belongs = function.load(function.offset(members, I8, row), I8).differs(0)
        loop.next([count + belongs.as_(I64, signed=False)])
    (total,) = loop.results
    return total


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
        found = self._plan(machine)
        # A group's matrix comes from memory for its few rows: strips are read from end to end.
        return strips_of(replace(self.gemm, m=max(self.gemm.m, _MANY_TILES * found.tile.rows)), found, has_blocks=False)

    def _plan(self, machine: Machine) -> tiled.TiledPlan:
        return tiled.plan(self.gemm, machine)

    def scratch(self, machine: Machine) -> int:
        """Bytes that each workgroup needs for copies and row numbers, at an address that 64 divides."""
        return number_bytes(self.rows) + tiled.scratch_bytes(self.gemm, self._plan(machine))

    def workgroups(self, machine: Machine) -> int:
        """Into how many pieces of about equal work it may be cut, each of which has some columns of all groups."""
        return min(self.gemm.pieces(machine), self._strips(machine))

    def _strips(self, machine: Machine) -> int:
        return tiled.units(self.gemm, self._plan(machine))[2]

    def emit(
        self,
        function: Function,
        lhs: Value,
        rhs: Value,
        out: Value,
        scratch: Value | None,
        workgroup: Value | None,
        *,
        machine: Machine,
        store: Store | None = None,
    ) -> None:
        """Write the product, or a piece of it; arguments as for ``Gemm.emit``, without a store of one's own."""
        if scratch is None or self.members is None or store is not None:
            raise ValueError("this product needs scratch, members and no store")
        first, last = piece_of(function, self._strips(machine), workgroup, self.workgroups(machine))
        results = Results(function, out, self.gemm.out, self.gemm.batch)
        rest = function.offset(scratch, I8, number_bytes(self.rows))
        product = _GroupedProduct(function, self.gemm, self._plan(machine), lhs, rhs, results, rest)
        product.run_groups(self, scratch, first, last)


class _GroupedProduct(tiled.TiledProduct):
    """Writes the loops.

    Attributes:
        numbers: the address of the numbers of a group's rows.
        count: how many there are.
        out: the address of the results of a batch's rows.
        chosen: the numbers of a tile's rows.
    """

    numbers: Value
    count: Value
    out: Value
    chosen: Sequence[Value] = ()

    def run_groups(self, one: GroupedGemm, numbers: Value, first: Value, last: Value) -> None:
        """Columns of the strips from ``first`` up to ``last``."""
        function, gemm, columns = self.function, self.gemm, self.plan.tile.columns
        members, (batches, groups) = one.members, gemm.batch
        assert members is not None
        self.numbers = numbers
        begin, end = first * columns, (last * columns).minimum(gemm.n)
        with each(function, 0, batches * one.rows) as row:
            start = strided(function, self.results.out, gemm.out.kind, [row, begin], [gemm.out.row, 1])
            function.clear(start, (end - begin) * gemm.out.bytes)
        with each(function, 0, batches) as batch, each(function, 0, groups) as group:
            own = strided(function, members, I8, [batch, group], [groups * one.rows, one.rows])
            self.count = listed(function, own, one.rows, numbers)
            self.out = strided(function, self.results.out, gemm.out.kind, [batch], [gemm.out.batch[0]])
            # What is not packed is read row by row.
            run = self.plan.left.run
            depth = self.plan.depth if self.plan.packs_right else min(_IN_PLACE, run)
            with (
                function.if_(self.count > 0),
                each(function, 0, run, depth) as term,
                each(function, first, last) as strip,
            ):
                lhs, rhs = self._factors([batch, group])
                terms = depth if run % depth == 0 else (function.index(run) - term).minimum(depth)

                def write(tile: Tile, *, follows: bool) -> None:
                    self.tile, self.follows = tile, follows
                    self._block([batch, group], lhs, rhs, strip, (term, terms, depth))

                self._by_last_tile(strip, write)

    def _block(
        self, places: Sequence[Value], lhs: Value, rhs: Value, strip: Value, block: tuple[Value, Number, int]
    ) -> None:
        """Add the products of a group's rows with a block of a strip.

        Args:
            places: of the matrix in the batch.
            block: its first term, how many it has, and how many it has at most.
        """
        function, left, (term, terms, most) = self.function, self.plan.left, block
        columns = self._columns(strip)
        if self.plan.strips is not None:
            self.vectors = self._vectors(self.plan.strips, places, strip)
        at_right = strided(function, rhs, self.gemm.rhs.kind, [term], [self.gemm.rhs.row])
        vectors, right, _ = self._right(at_right, columns, terms, ())
        with each(function, 0, (self.count + (self.tile.rows - 1)).udiv(self.tile.rows)) as number:
            rows = self._rows(lhs, function.index(0), number, number, term * left.side.along)
            sums = add_terms(
                *(function, self.tile, self.arithmetic, left.side, right, rows, vectors, self._steps(terms)),
                zeros(function, self.tile, self.kind),
                most=packing.row_units(self.arithmetic, most),
            )
            self._add(sums, columns)

    def _rows(self, lhs: Value, begin: Value, number: Value, row: Value, distance: Value | None) -> list[Value]:
        function, matrix = self.function, self.gemm.lhs
        # A tile that is not full has its last row several times.
        places = [(number * self.tile.rows + place).minimum(self.count - 1) for place in range(self.tile.rows)]
        self.chosen = [function.load(strided(function, self.numbers, I64, [place], [1]), I64) for place in places]
        starts = [strided(function, lhs, matrix.kind, [row], [matrix.row]) for row in self.chosen]
        return starts if distance is None else [function.offset(start, I8, distance) for start in starts]

    def _add(self, sums: Sequence[Value], columns: Sequence[Value]) -> None:
        """Add a tile to what is stored; all is read before anything is written, since rows may be there twice."""
        function, matrix, tile = self.function, self.results.matrix, self.tile
        kind = wide(self.kind, tile.lanes)
        places = [
            strided(function, self.out, matrix.kind, [row, column], [matrix.row, 1])
            for row in self.chosen
            for column in columns
        ]
        totals = [function.load(place, kind, matrix.bytes) + total for place, total in zip(places, sums, strict=True)]
        for total, place in zip(totals, places, strict=True):
            function.store(total, place, matrix.bytes)
