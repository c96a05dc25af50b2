"""LU factorizations with partial pivoting of real matrices, each in one workgroup of one dispatch.

A strip of columns is finished before the next one is looked at: the rows of u above its square are found as in a
triangular system, what all of them contribute is subtracted from the rows below, and these are factored column by
column. Then the row exchanges are made in the other strips. Source: Golub & Van Loan, 3.2.11 and 3.4; LAPACK "getf2".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hloforge.dialect.mlir import arith, ir, math_dialect
from hloforge.pipelines.framework.builders import full_vector, index, read_vector, write_vector
from hloforge.pipelines.kernels.factorizations.strips import (
    ROWS,
    Strips,
    counted,
    element,
    lanes,
    minus_product,
    plus,
    times,
)
from hloforge.pipelines.kernels.lang import loops as code


def lu(a: Any, *, pivots: int) -> list[Any]:
    """p a = l u for ``[b, m, n]``, both multiples of a strip's width.

    Args:
        pivots: how many columns are eliminated, at most min(m, n); columns beyond them hold zeros.

    Returns:
        l, without its unit diagonal, below u; s32 ``[b, 1, pivots]``: with which row each row was exchanged;
        ``[b, 1, m]``: the row of a that is in each row; ``[b, 1, 1]``: the number (from 1) of the first pivot that
        is zero, else 0.
    """
    batch, m, n = map(int, a.type.shape)
    row, i32 = a.type.element_type, ir.IntegerType.get_signless(32)
    numbers = [ir.RankedTensorType.get([1, 1, count], i32) for count in (pivots, m, 1)]
    strips = Strips.type_of(1, m, n, row)

    def run(places: Sequence[Any], sources: Sequence[Any], _: Sequence[Any], targets: Sequence[Any]) -> None:
        start = [places[0], 0, 0]
        matrix, into = (
            code.load(part, ir.RankedTensorType.get([1, m, n], row), start) for part in (sources[0], targets[0])
        )
        work = code.load(targets[4], strips, [*start, 0])
        # Not on the stack, because there may be many rows.
        memory = [code.load(target, part, start) for part, target in zip(numbers, targets[1:4], strict=True)]
        *results, work = _Elimination(matrix, into, work, memory).results()
        for result, target in zip(results, targets[:4], strict=True):
            code.store(result, target, start)
        code.store(work, targets[4], [*start, 0])

    scratch = [a.type, *(ir.RankedTensorType.get([batch, *list(type_.shape)[1:]], i32) for type_ in numbers)]
    scratch.append(Strips.type_of(batch, m, n, row))
    return code.workgroups([batch], [a], (), (), run, scratch=scratch, work=batch * m * n * pivots // 2)[:4]


@dataclass(frozen=True)
class _Elimination:
    """The work on one matrix ``[1, m, n]``.

    Attributes:
        into: memory for l and u.
        work: memory for its strips.
        numbers: memory for the exchanges, the rows, and the first zero pivot.
    """

    a: Any
    into: Any
    work: Any
    numbers: Sequence[Any]

    @property
    def rows(self) -> int:
        return int(self.a.type.shape[1])

    @property
    def columns(self) -> int:
        return int(self.a.type.shape[2])

    @property
    def width(self) -> int:
        return lanes(self.a.type.element_type)

    @property
    def pivots(self) -> int:
        return int(self.numbers[0].type.shape[2])

    def results(self) -> list[Any]:
        """l and u, the exchanges, the rows, the first zero pivot, and the strips."""
        origin, zero = index(0), code.number(0, ir.IntegerType.get_signless(32))
        exchanges, order, info = self.numbers

        def count(row: Any, order: Any) -> list[Any]:
            return [code.write(code.cast(arith.index_cast, row, zero.type), order, origin, origin, row)]

        order = code.for_each(self.rows, [order], count)[0]
        work, exchanges, order, first = code.for_each(
            self.columns // self.width, [self._loaded(self.work), exchanges, order, zero], self._strip
        )
        info = code.write(first, info, origin, origin, origin)
        return [self._stored(work), exchanges, order, info, work]

    def _loaded(self, work: Any) -> Any:
        def strip(number: Any, work: Any) -> list[Any]:
            column = times(number, self.width)

            def copy(row: Any, work: Any) -> list[Any]:
                vector = read_vector(self.a, [index(0), row, column], self.width)
                return [Strips(work).with_vector(vector, number, row).array]

            return code.for_each(self.rows, [work], copy)

        return code.for_each(self.columns // self.width, [work], strip)[0]

    def _stored(self, work: Any) -> Any:
        def strip(number: Any, factors: Any) -> list[Any]:
            column = times(number, self.width)

            def copy(row: Any, factors: Any) -> list[Any]:
                return [write_vector(Strips(work).vector(number, row), factors, [index(0), row, column])]

            return code.for_each(self.rows, [factors], copy)

        return code.for_each(self.columns // self.width, [self.into], strip)[0]

    def _strip(self, strip: Any, work: Any, exchanges: Any, order: Any, first: Any) -> list[Any]:
        """Finish a strip."""
        limit = self.rows // self.width
        known = code.choose(code.compare("slt", strip, limit), strip, index(limit))
        top = times(known, self.width)
        work = code.for_each(top, [work], lambda row, work: [self._upper_rows(strip, row, work)], step=ROWS)[0]
        work = code.for_each(
            self.rows,
            [work],
            lambda row, work: [self._lower_rows(strip, known, row, work)],
            start=top,
            step=ROWS,
        )[0]
        stop = plus(top, self.width)
        stop = code.choose(code.compare("slt", stop, self.pivots), stop, index(self.pivots))
        return code.for_each(
            stop,
            [work, exchanges, order, first],
            lambda pivot, *state: self._column(strip, top, pivot, *state),
            start=top,
        )

    def _upper_rows(self, strip: Any, row: Any, work: Any) -> Any:
        """Find four rows of u above the strip's square."""
        column, lane = code.combine(arith.divui, row, self.width), code.combine(arith.remui, row, self.width)
        rows = [plus(row, r) for r in range(ROWS)]
        strips = Strips(work)
        sums = self._without(strip, column, rows, [strips.vector(strip, at) for at in rows], strips)
        sums = self._without_part(strip, column, lane, rows, sums, strips)
        found: list[Any] = []
        for at, vector in zip(rows, sums, strict=True):
            for k, before in enumerate(found):
                factor = code.read(work, index(0), column, at, plus(lane, k))
                vector = minus_product(vector, factor, before)
            found.append(vector)
        for at, vector in zip(rows, found, strict=True):
            strips = strips.with_vector(vector, strip, at)
        return strips.array

    def _lower_rows(self, strip: Any, known: Any, row: Any, work: Any) -> Any:
        """Subtract what the rows above the strip's square contribute to four rows below."""
        rows = [plus(row, r) for r in range(ROWS)]
        strips = Strips(work)
        sums = self._without(strip, known, rows, [strips.vector(strip, at) for at in rows], strips)
        for at, vector in zip(rows, sums, strict=True):
            strips = strips.with_vector(vector, strip, at)
        return strips.array

    def _without(self, strip: Any, stop: Any, rows: Sequence[Any], sums: Sequence[Any], strips: Strips) -> list[Any]:
        """Rows of the strip without what l in the strips before ``stop`` contributes."""

        def turn(column: Any, *sums: Any) -> list[Any]:
            return self._without_part(strip, column, index(self.width), rows, sums, strips)

        return code.for_each(stop, sums, turn)

    def _without_part(
        self, strip: Any, column: Any, stop: Any, rows: Sequence[Any], sums: Sequence[Any], strips: Strips
    ) -> list[Any]:
        """Rows without what the columns of l before ``stop`` in the strip ``column`` contribute."""
        origin, first = index(0), times(column, self.width)

        def turn(lane: Any, *sums: Any) -> list[Any]:
            vector = strips.vector(strip, plus(first, lane))
            factors = [code.read(strips.array, origin, column, row, lane) for row in rows]
            return [minus_product(sum_, factor, vector) for sum_, factor in zip(sums, factors, strict=True)]

        return code.for_each(stop, sums, turn)

    def _column(self, strip: Any, top: Any, pivot: Any, work: Any, exchanges: Any, order: Any, first: Any) -> list[Any]:
        """Find the pivot of a column, exchange rows, and eliminate the column from the strip."""
        origin, lane = index(0), code.combine(arith.subi, pivot, top)
        chosen = self._largest(strip, pivot, lane, work)
        exchanges = code.write(code.cast(arith.index_cast, chosen, first.type), exchanges, origin, origin, pivot)
        one, other = (code.read(order, origin, origin, at) for at in (pivot, chosen))
        order = code.write(one, code.write(other, order, origin, origin, pivot), origin, origin, chosen)
        work = code.for_each(
            self.columns // self.width, [work], lambda number, work: [_exchanged(work, number, pivot, chosen)]
        )[0]
        row = Strips(work).vector(strip, pivot)
        value = element(row, lane)
        zero = code.float_number(0.0, value.type)
        is_zero = code.compare_floats("OEQ", value, zero)
        number = code.cast(arith.index_cast, plus(pivot, 1), first.type)
        first = code.choose(is_zero, code.choose(code.compare("eq", first, 0), number, first), first)
        divisor = code.choose(is_zero, code.float_number(1.0, value.type), value)
        places, here = counted(self.width), full_vector(code.cast(arith.index_cast, lane, first.type), self.width)
        is_right, is_here = code.compare("slt", here, places), code.compare("eq", here, places)
        right = code.choose(is_right, row, full_vector(zero, self.width))

        def eliminate(at: Any, work: Any) -> list[Any]:
            strips = Strips(work)
            factor = arith.divf(code.read(work, origin, strip, at, lane), divisor)
            rest = minus_product(strips.vector(strip, at), factor, right)
            found = code.choose(is_here, full_vector(factor, self.width), rest)
            return [strips.with_vector(found, strip, at).array]

        work = code.for_each(self.rows, [work], eliminate, start=plus(pivot, 1))[0]
        return [work, exchanges, order, first]

    def _largest(self, strip: Any, pivot: Any, lane: Any, work: Any) -> Any:
        """The row of the largest element of a column from the pivot on, the first of equal ones; NaN counts as zero."""

        def turn(row: Any, largest: Any, place: Any) -> list[Any]:
            value = code.read(work, index(0), strip, row, lane)
            size = math_dialect.absf(value)
            is_larger = code.compare_floats("OGT", size, largest)
            return [code.choose(is_larger, size, largest), code.choose(is_larger, row, place)]

        start = code.float_number(0.0, self.a.type.element_type)
        return code.for_each(self.rows, [start, pivot], turn, start=pivot)[1]


def _exchanged(work: Any, strip: Any, one: Any, other: Any) -> Any:
    strips = Strips(work)
    first, second = strips.vector(strip, one), strips.vector(strip, other)
    return strips.with_vector(second, strip, one).with_vector(first, strip, other).array
