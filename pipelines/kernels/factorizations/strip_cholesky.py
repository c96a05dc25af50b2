"""Cholesky factorizations ``u^T u = a`` of real matrices, each in one workgroup of one dispatch.

A strip of the upper factor u is found row by row: what the rows above contribute is subtracted, four rows per
iteration, and the four are solved among themselves; in the strip's own square, roots of the pivots come between. A
lower factor is transposed on its way into memory and out of it. Source: Golub & Van Loan, 4.2.5; LAPACK "potrf".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hloforge.dialect.mlir import arith, ir, math_dialect
from hloforge.pipelines.framework.builders import empty, full_vector, index, read_vector, write_vector
from hloforge.pipelines.framework.machine import AVX2
from hloforge.pipelines.kernels.factorizations.strips import (
    ROWS,
    Strips,
    Vector,
    counted,
    divided,
    element,
    lanes,
    minus_product,
    minus_products,
    plus,
    split,
    times,
    transposed_block,
)
from hloforge.pipelines.kernels.lang import loops as code

# The side of a square that is transposed in registers, in bytes: of f32, eight registers of AVX2.
_BLOCK_BYTES = AVX2.vector_bytes


def cholesky(a: Any, *, lower: bool) -> list[Any]:
    """The factors of ``[b, n, n]``, n a multiple of a strip's width: NaN where there is none.

    Args:
        lower: reads the lower triangle, and returns u^T.

    Returns:
        zeros beside the factor, and s32 ``[b, 1]``: 0, or the number of the first pivot that was not positive.
    """
    batch, n, _ = map(int, a.type.shape)
    row = a.type.element_type
    i32 = ir.IntegerType.get_signless(32)
    # What is loaded stays memory of the dispatch though nobody reads it; else IREE puts the factor onto the stack.
    scratch = [a.type, ir.RankedTensorType.get([batch, 1], i32), Strips.type_of(batch, n, n, row)]

    def run(places: Sequence[Any], sources: Sequence[Any], _: Sequence[Any], targets: Sequence[Any]) -> None:
        (place,) = places
        whole = ir.RankedTensorType.get([1, n, n], row)
        source = code.load(sources[0], whole, [place, 0, 0])
        strips = code.load(targets[2], Strips.type_of(1, n, n, row), [place, 0, 0, 0])
        into = code.load(targets[0], whole, [place, 0, 0])
        factor, failed, work = _Factorization(source, into, strips, lower).result()
        failed = code.write(failed, empty(ir.RankedTensorType.get([1, 1], i32)), index(0), index(0))
        code.store(factor, targets[0], [place, 0, 0])
        code.store(failed, targets[1], [place, 0])
        code.store(work, targets[2], [place, 0, 0, 0])

    return code.workgroups([batch], [a], (), (), run, scratch=scratch, work=batch * n**3 // 6)[:2]


@dataclass(frozen=True)
class _Factorization:
    """The work on one matrix ``[1, n, n]``.

    Attributes:
        into: memory for the factor.
        work: memory for its strips.
    """

    a: Any
    into: Any
    work: Any
    lower: bool

    @property
    def n(self) -> int:
        return int(self.a.type.shape[1])

    @property
    def width(self) -> int:
        return lanes(self.a.type.element_type)

    def result(self) -> tuple[Any, Any, Any]:
        """The factor, the number of the first pivot that failed, and the strips."""
        row = self.a.type.element_type
        none = code.number(0, ir.IntegerType.get_signless(32))
        work, failed, factor = code.for_each(self.n // self.width, [self.work, none, self.into], self._strip)
        nan = full_vector(code.float_number(float("nan"), row), self.width)
        rows = code.choose(code.compare("eq", failed, 0), index(0), index(self.n))

        def spoil(row: Any, factor: Any) -> list[Any]:
            return code.for_each(
                self.n,
                [factor],
                lambda column, factor: [write_vector(nan, factor, [index(0), row, column])],
                step=self.width,
            )

        return code.for_each(rows, [factor], spoil)[0], failed, work

    def _strip(self, strip: Any, work: Any, failed: Any, factor: Any) -> list[Any]:
        first = times(strip, self.width)
        end = plus(first, self.width)
        strips = self._loaded(strip, first, end, Strips(work))
        work = code.for_each(
            first, [strips.array], lambda row, work: [self._rows(strip, row, Strips(work)).array], step=ROWS
        )[0]
        work, failed = code.for_each(
            end,
            [work, failed],
            lambda row, work, failed: self._pivot_rows(strip, first, row, Strips(work), failed),
            start=first,
            step=ROWS,
        )
        strips = self._cleared(strip, first, Strips(work))
        return [strips.array, failed, self._stored(strip, first, strips, factor)]

    def _loaded(self, strip: Any, first: Any, end: Any, strips: Strips) -> Strips:
        """Copy the strip down to the diagonal."""
        if not self.lower:

            def copy(row: Any, work: Any) -> list[Any]:
                vector = read_vector(self.a, [index(0), row, first], self.width)
                return [Strips(work).with_vector(vector, strip, row).array]

            return Strips(code.for_each(end, [strips.array], copy)[0])
        size = self._block

        def turned(row: Any, work: Any) -> list[Any]:
            for lane in range(0, self.width, size):
                work = transposed_block(
                    self.a, [index(0), plus(first, lane), row], work, [index(0), strip, row, index(lane)], size
                )
            return [work]

        return Strips(code.for_each(end, [strips.array], turned, step=size)[0])

    @property
    def _block(self) -> int:
        return _BLOCK_BYTES * 8 // int(self.a.type.element_type.width)

    def _without_found(self, strip: Any, row: Any, strips: Strips) -> list[Vector]:
        """Four rows of the strip without what the rows above contribute."""
        column, lane = split(row, self.width)
        sums = [strips.vector(strip, plus(row, r)) for r in range(ROWS)]
        return minus_products(
            sums,
            row,
            lambda k: [code.read(strips.array, index(0), column, k, plus(lane, r)) for r in range(ROWS)],
            lambda k: strips.vector(strip, k),
        )

    def _rows(self, strip: Any, row: Any, strips: Strips) -> Strips:
        """Find four rows above the strip's square."""
        column, lane = split(row, self.width)
        found: list[Vector] = []
        for r, vector in enumerate(self._without_found(strip, row, strips)):
            factors = [code.read(strips.array, index(0), column, plus(row, k), plus(lane, r)) for k in range(r + 1)]
            for factor, before in zip(factors, found, strict=False):
                vector = minus_product(vector, factor, before)
            found.append(divided(vector, factors[r]))
        for r, vector in enumerate(found):
            strips = strips.with_vector(vector, strip, plus(row, r))
        return strips

    def _pivot_rows(self, strip: Any, first: Any, row: Any, strips: Strips, failed: Any) -> list[Any]:
        """Find four rows in the strip's square."""
        lane = code.combine(arith.subi, row, first)
        found: list[Vector] = []
        for r, vector in enumerate(self._without_found(strip, row, strips)):
            column = plus(lane, r)
            for before in found:
                vector = minus_product(vector, element(before, column), before)
            pivot = element(vector, column)
            found.append(divided(vector, math_dialect.sqrt(pivot)))
            failed = _first_failure(failed, pivot, plus(row, r))
        for r, vector in enumerate(found):
            strips = strips.with_vector(vector, strip, plus(row, r))
        return [strips.array, failed]

    def _cleared(self, strip: Any, first: Any, strips: Strips) -> Strips:
        """Zeros below the diagonal."""
        i32 = ir.IntegerType.get_signless(32)
        places = counted(self.width)
        columns = code.combine(arith.addi, places, full_vector(code.cast(arith.index_cast, first, i32), self.width))
        zeros = full_vector(code.float_number(0.0, self.a.type.element_type), self.width)

        def clear(row: Any, work: Any) -> list[Any]:
            strips = Strips(work)
            here = full_vector(code.cast(arith.index_cast, row, i32), self.width)
            kept = code.choose(code.compare("sle", here, columns), strips.vector(strip, row), zeros)
            return [strips.with_vector(kept, strip, row).array]

        return Strips(code.for_each(self.n, [strips.array], clear, start=first)[0])

    def _stored(self, strip: Any, first: Any, strips: Strips, factor: Any) -> Any:
        if not self.lower:

            def copy(row: Any, factor: Any) -> list[Any]:
                return [write_vector(strips.vector(strip, row), factor, [index(0), row, first])]

            return code.for_each(self.n, [factor], copy)[0]
        size = self._block

        def turned(row: Any, factor: Any) -> list[Any]:
            for lane in range(0, self.width, size):
                factor = transposed_block(
                    strips.array,
                    [index(0), strip, row, index(lane)],
                    factor,
                    [index(0), plus(first, lane), row],
                    size,
                )
            return [factor]

        return code.for_each(self.n, [factor], turned, step=size)[0]


def _first_failure(failed: Any, pivot: Any, row: Any) -> Any:
    """The number of the first pivot that is not positive; NaN is not."""
    zero = code.float_number(0.0, pivot.type)
    number = code.cast(arith.index_cast, plus(row, 1), failed.type)
    is_good = code.compare_floats("OGT", pivot, zero)
    return code.choose(is_good, failed, code.choose(code.compare("eq", failed, 0), number, failed))
