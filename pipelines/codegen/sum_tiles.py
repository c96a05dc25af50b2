"""Sums over pairs of rows by tiles in registers: distances, kernels of pairs, and whatever else is no product.

Where no term is made of memory that depends on both of two dimensions, a load serves all terms of the other one. So a
tile of pairs is summed at once, as a product's micro-kernel does it, each pair in a vector of its own::

    for tile of 4 x 4 pairs:
        for vector of terms:                        # 8 loads for 16 terms
            sums[i, j] += (a[i, terms] - b[j, terms]) ** 2
        store the sum of each vector

One pair after the other reads two vectors for each term. The last tiles overlap those before; what is left of a vector
of terms is a vector that ends with the row, as in ``row_sums.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hloforge.pipelines.codegen import index as places
from hloforge.pipelines.codegen.chains import LONGEST
from hloforge.pipelines.codegen.elements.kinds import register, single
from hloforge.pipelines.codegen.groups import Group
from hloforge.pipelines.codegen.index import Index, Symbol
from hloforge.pipelines.codegen.lang.functions import NO_VECTORS
from hloforge.pipelines.codegen.lang.values import I1, Value, vector_of
from hloforge.pipelines.codegen.nest_loops import symbol_of
from hloforge.pipelines.codegen.products.shuffles import sums_of
from hloforge.pipelines.codegen.row_sums import RowSumLoops

# Pairs along each dimension, with 32 registers and with 16, and what a term of them may cost, in sums: the registers of
# a function's steps would push out those of the sums.
_TILE, _SMALL_TILE, _MOST_COST = (4, 4), (2, 4), 12
_MANY_REGISTERS = 64


class SumTileLoops(RowSumLoops):
    """Writes such sums of a nest."""

    def _are_sum_tiles(self, kept: Sequence[Group], reduced: Sequence[Group]) -> bool:
        """Whether two dimensions remain of which no load depends on both, and vectors of terms fit."""
        nest = self._nest
        if len(kept) < 2 or nest.maps or len(nest.reductions) != 1 or not self._are_row_sums(reduced):
            return False
        place, found = nest.analysis(self._in_memory)
        rows, columns = (symbol_of(place, group) for group in kept[-2:])
        sizes = zip(kept[-2:], self._tile, strict=True)
        if rows is None or columns is None or any(group.size < least for group, least in sizes):
            return False
        if found.cost > _MOST_COST or found.fixed or found.scattered:
            return False
        uses = [{symbol for symbol, _ in number.terms} & {rows, columns} for _, number in found.loads]
        return all(len(one) < 2 for one in uses) and {rows} in uses and {columns} in uses

    @property
    def _tile(self) -> tuple[int, int]:
        return _TILE if self._writer.vector_bytes >= _MANY_REGISTERS else _SMALL_TILE

    def _by_sum_tiles(self, rows: Group, columns: Group, row: Group) -> None:
        function, (high, wide) = self._function, self._tile
        start, stop = self._bounds(-(-rows.size // high))
        with function.loop(start, stop) as line, self._emitter.scope():
            first = _counter(rows, (line * high).minimum(rows.size - high), high)
            with function.loop(0, -(-columns.size // wide)) as number, self._emitter.scope():
                left = _counter(columns, (number * wide).minimum(columns.size - wide), wide)
                self._write_tile((rows, first), (columns, left), row)

    def _write_tile(self, rows: tuple[Group, Index], columns: tuple[Group, Index], row: Group) -> None:
        (op,) = self._nest.reductions
        lanes = self._sum_lanes
        high, wide = self._tile
        kind = vector_of(register(op.results[0].element), lanes)
        zero = self._function.constant(-0.0, kind)
        rest = row.size % lanes
        whole = row.size - rest
        sums = [zero] * (high * wide)
        if rest:
            # The last vector ends where the row ends: its first terms are those of the vector before.
            flags = ", ".join(f"i1 {lane >= lanes - rest}".lower() for lane in range(lanes))
            is_new = Value(self._function, vector_of(I1, lanes), f"<{flags}>")
            terms = self._terms_of_tile(rows, columns, row, self._function.index(row.size - lanes))
            sums = [is_new.where(term, zero) for term in terms]

        def add(begin: Value | int, end: Value | int, carried: Sequence[Value]) -> list[Value]:
            loop = self._function.loop(begin, end, lanes, carried=list(carried), hints=NO_VECTORS)
            with loop as (start, values):
                terms = self._terms_of_tile(rows, columns, row, start)
                loop.next([value + term for value, term in zip(values, terms, strict=True)])
            return loop.results

        block = lanes * LONGEST
        if whole > block:
            outer = self._function.loop(0, whole, block, carried=sums)
            with outer as (begin, carried):
                parts = add(begin, (begin + block).minimum(whole), [zero] * len(sums))
                outer.next([one + part for one, part in zip(carried, parts, strict=True)])
            sums = outer.results
        else:
            sums = add(0, whole, sums)
        totals = sums_of(self._function, sums)
        for number, _ in enumerate(self._pairs(rows, columns)):
            starts = [single(start) for start in self._starts(op)]
            (value,) = self._joined(starts, [self._function.extract(totals, number)])
            self._store(op.results[0], value, self._result_number())

    def _terms_of_tile(
        self, rows: tuple[Group, Index], columns: tuple[Group, Index], row: Group, start: Value
    ) -> list[Value]:
        return [self._vector_of_row(row, start, self._sum_lanes)[1][0] for _ in self._pairs(rows, columns)]

    def _pairs(self, rows: tuple[Group, Index], columns: tuple[Group, Index]) -> Iterator[None]:
        """Be at each pair of a tile."""
        high, wide = self._tile
        for i in range(high):
            for j in range(wide):
                self._enter(rows[0], rows[1] + i)
                self._enter(columns[0], columns[1] + j)
                yield


def _counter(group: Group, start: Value, count: int) -> Index:
    """The first place of a tile along a dimension."""
    if start.is_constant:
        return places.constant(int(start.text))
    return Index(((Symbol(group.size - count, value=start), 1),))
