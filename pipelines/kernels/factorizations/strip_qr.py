"""QR factorizations of real matrices by reflectors, and their orthogonal factors, in one workgroup of one dispatch.

A strip of columns is finished before the next one: the blocks of reflectors found before are applied to it, one after
the other, then its own columns are reflected. A block is ``1 - v t v^T`` with one reflector a column of v; t is not
computed: it is the inverse of a triangle, ``1 / tau`` on the diagonal and ``v^T v`` above, so that a product with it is
a substitution. Source: Golub & Van Loan, 5.2; LAPACK "geqr2", "larft"; Puglisi (1992), "Modification of the
Householder method based on the compact WY representation".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hloforge.dialect.mlir import arith, ir, math_dialect
from hloforge.pipelines.framework.builders import empty, full_vector, index, read_vector, write_vector
from hloforge.pipelines.kernels.factorizations.strips import (
    ROWS,
    Strips,
    Vector,
    counted,
    element,
    lanes,
    minus_product,
    minus_products,
    plus,
    times,
)
from hloforge.pipelines.kernels.lang import loops as code
from hloforge.pipelines.kernels.lang.reals import Real, choose


def qr(a: Any, *, reflectors: int) -> list[Any]:
    """q r = a in LAPACK's storage: ``[b, m, n]``, both multiples of a strip's width, and the taus.

    Args:
        reflectors: how many columns are reflected, at most min(m, n). The number of taus ``[b, 1, k]`` is a multiple of
            a strip's width as well; those beyond are zero.
    """
    batch, m, n = map(int, a.type.shape)
    row = a.type.element_type
    blocks = -(-reflectors // lanes(row))
    taus = ir.RankedTensorType.get([1, 1, blocks * lanes(row)], row)

    parts = [taus, *_memory(m, blocks, row), Strips.type_of(1, m, n, row)]

    def run(places: Sequence[Any], sources: Sequence[Any], _: Sequence[Any], targets: Sequence[Any]) -> None:
        starts = [[places[0], *(0 for _ in part.shape[1:])] for part in parts]
        whole = ir.RankedTensorType.get([1, m, n], row)
        matrix, into = (code.load(part, whole, starts[0]) for part in (sources[0], targets[0]))
        found, *memory = map(code.load, targets[1:], parts, starts)
        method = _Reflection(m, blocks, reflectors, row)
        factors, *memory = method.factored(matrix, into, _zeros(found), *memory)
        code.store(factors, targets[0], starts[0])
        for part, target, start in zip(memory, targets[1:], starts, strict=True):
            code.store(part, target, start)

    scratch = [a.type, *(_of_batch(part, batch) for part in parts)]
    return code.workgroups([batch], [a], (), (), run, scratch=scratch, work=batch * m * n * reflectors)[:2]


def orthogonal(a: Any, taus: Any, *, columns: int) -> list[Any]:
    """The first columns of ``h0 h1 ...``: ``[b, m, columns]``, multiples of a strip's width.

    Args:
        a: ``[b, m, k]``, of which the reflectors' vectors are below the diagonal, k a multiple of a strip's width.
        taus: ``[b, 1, k]``; zero for columns that are no reflectors.
    """
    batch, m, k = map(int, a.type.shape)
    row = a.type.element_type
    width = lanes(row)
    blocks = k // width

    def run(places: Sequence[Any], sources: Sequence[Any], _: Sequence[Any], targets: Sequence[Any]) -> None:
        start = [places[0], 0, 0]
        matrix = code.load(sources[0], ir.RankedTensorType.get([1, m, k], row), start)
        factors = code.load(sources[1], ir.RankedTensorType.get([1, 1, k], row), start)
        memory = [
            code.load(target, part, [*start, 0])
            for part, target in zip(
                (*_memory(m, blocks, row), Strips.type_of(1, m, width, row)), targets[1:], strict=True
            )
        ]
        method = _Reflection(m, blocks, k, row)
        q = empty(ir.RankedTensorType.get([1, m, columns], row))
        q, *memory = method.orthogonal(matrix, factors, q, *memory)
        code.store(q, targets[0], start)
        for part, target in zip(memory, targets[1:], strict=True):
            code.store(part, target, [*start, 0])

    results = [ir.RankedTensorType.get([batch, m, columns], row)]
    scratch = [_of_batch(part, batch) for part in (*_memory(m, blocks, row), Strips.type_of(1, m, width, row))]
    return code.workgroups([batch], [a, taus], (), results, run, scratch=scratch, work=batch * m * columns * k)[:1]


def _memory(rows: int, blocks: int, row: Any) -> list[Any]:
    """The types of what is kept of blocks of reflectors: their vectors, and the products of these."""
    width = lanes(row)
    return [
        ir.RankedTensorType.get([1, blocks, rows, width], row),
        ir.RankedTensorType.get([1, blocks, width, width], row),
    ]


def _of_batch(part: Any, batch: int) -> Any:
    return ir.RankedTensorType.get([batch, *list(part.shape)[1:]], part.element_type)


def _zeros(array: Any) -> Any:
    """``[1, 1, n]`` of zeros."""
    zero = code.float_number(0.0, array.type.element_type)
    return code.for_each(
        int(array.type.shape[2]), [array], lambda at, array: [code.write(zero, array, index(0), index(0), at)]
    )[0]


@dataclass(frozen=True)
class _Reflection:
    """The work on one matrix.

    Attributes:
        rows: of the matrix.
        blocks: of reflectors.
        reflectors: how many there are.
        element: the type of its elements.

    The memory of reflectors is two arrays: ``v`` ``[1, blocks, rows, lanes]``, a block's vectors as columns, with ones
    and zeros where LAPACK's storage has none of it; and ``products`` ``[1, blocks, lanes, lanes]``, ``v^T v``.
    """

    rows: int
    blocks: int
    reflectors: int
    element: Any

    @property
    def width(self) -> int:
        return lanes(self.element)

    def factored(self, a: Any, into: Any, taus: Any, v: Any, products: Any, strips: Any) -> list[Any]:
        """The factors, in the memory ``into``, the taus, and the rest of the memory."""
        count = int(a.type.shape[2]) // self.width

        def strip(number: Any, factors: Any, taus: Any, v: Any, products: Any, strips: Any) -> list[Any]:
            column = times(number, self.width)
            strips = self._copied(a, column, strips, number)
            limit = code.compare("slt", number, self.blocks)
            known = code.choose(limit, number, index(self.blocks))
            strips = code.for_each(
                known,
                [strips],
                lambda block, strips: [self._with_block(block, Strips(strips), number, taus, v, products, True)],
            )[0]
            # Of strips after the last block no column is reflected.
            stop = code.choose(limit, plus(column, self.width), column)
            stop = code.choose(code.compare("slt", stop, self.reflectors), stop, index(self.reflectors))
            strips, taus = code.for_each(
                stop, [strips, taus], lambda pivot, *state: self._column(number, column, pivot, *state), start=column
            )
            mine = code.choose(limit, plus(number, 1), number)
            v, products = code.for_each(
                mine,
                [v, products],
                lambda block, v, products: self._with_vectors(
                    block, lambda row: Strips(strips).vector(number, row), v, products
                ),
                start=number,
            )
            return [self._stored(Strips(strips), number, factors, column), taus, v, products, strips]

        return code.for_each(count, [into, taus, v, products, strips], strip)

    def orthogonal(self, a: Any, taus: Any, q: Any, v: Any, products: Any, strip: Any) -> list[Any]:
        """The columns of the orthogonal factor, and the memory; ``strip`` is memory for one."""

        def prepare(block: Any, v: Any, products: Any) -> list[Any]:
            column = times(block, self.width)
            return self._with_vectors(
                block, lambda row: read_vector(a, [index(0), row, column], self.width), v, products
            )

        v, products = code.for_each(self.blocks, [v, products], prepare)

        def columns(number: Any, q: Any, strip: Any) -> list[Any]:
            column, origin = times(number, self.width), index(0)
            strip = self._identity(strip, column)
            # Blocks that begin below the strip's square do not touch the identity's columns.
            limit = code.compare("slt", number, self.blocks)
            count = code.choose(limit, plus(number, 1), index(self.blocks))

            def turn(turn: Any, strip: Any) -> list[Any]:
                block = code.combine(arith.subi, code.combine(arith.subi, count, turn), index(1))
                return [self._with_block(block, Strips(strip), origin, taus, v, products, False)]

            strip = code.for_each(count, [strip], turn)[0]
            return [self._stored(Strips(strip), origin, q, column), strip]

        q, strip = code.for_each(int(q.type.shape[2]) // self.width, [q, strip], columns)
        return [q, v, products, strip]

    def _copied(self, a: Any, column: Any, strips: Any, number: Any) -> Any:
        def copy(row: Any, strips: Any) -> list[Any]:
            vector = read_vector(a, [index(0), row, column], self.width)
            return [Strips(strips).with_vector(vector, number, row).array]

        return code.for_each(self.rows, [strips], copy)[0]

    def _stored(self, strips: Strips, number: Any, array: Any, column: Any) -> Any:
        def copy(row: Any, array: Any) -> list[Any]:
            return [write_vector(strips.vector(number, row), array, [index(0), row, column])]

        return code.for_each(self.rows, [array], copy)[0]

    def _identity(self, strip: Any, column: Any) -> Any:
        """A strip of the identity, whose first column this is."""
        one, zero = self._spread(1.0), self._spread(0.0)

        def fill(row: Any, strip: Any) -> list[Any]:
            here = code.compare("eq", self._places(column), self._place(row))
            return [Strips(strip).with_vector(code.choose(here, one, zero), index(0), row).array]

        return code.for_each(self.rows, [strip], fill)[0]

    def _spread(self, value: float) -> Vector:
        return full_vector(code.float_number(value, self.element), self.width)

    def _places(self, first: Any) -> Vector:
        """The numbers of a strip's columns."""
        return code.combine(arith.addi, counted(self.width), self._place(first))

    def _place(self, number: Any) -> Vector:
        return full_vector(code.cast(arith.index_cast, number, ir.IntegerType.get_signless(32)), self.width)

    def _with_vectors(self, block: Any, line: Any, v: Any, products: Any) -> list[Any]:
        """Keep the vectors of a block, whose storage ``line`` reads by rows, and their products."""
        first = times(block, self.width)
        columns = self._places(first)
        counts = code.compare("slt", columns, self._place(index(self.reflectors)))
        one, zero = self._spread(1.0), self._spread(0.0)

        def keep(row: Any, v: Any) -> list[Any]:
            here = self._place(row)
            vector = code.choose(code.compare("slt", columns, here), line(row), zero)
            vector = code.choose(code.compare("eq", columns, here), one, vector)
            return [Strips(v).with_vector(code.choose(counts, vector, zero), block, row).array]

        v = code.for_each(self.rows, [v], keep, start=first)[0]
        return [v, self._products(block, Strips(v), block, Strips(v), products, block)]

    def _products(self, block: Any, v: Strips, strip: Any, strips: Strips, into: Any, place: Any) -> Any:
        """Write ``v^T w`` for the strip w into a square."""
        first = times(block, self.width)

        def some(k: Any, into: Any) -> list[Any]:
            sums = minus_products(
                [self._spread(0.0)] * ROWS,
                self.rows,
                lambda row: [code.read(v.array, index(0), block, row, plus(k, r)) for r in range(ROWS)],
                lambda row: strips.vector(strip, row),
                start=first,
            )
            square = Strips(into)
            for r, sum_ in enumerate(sums):
                square = square.with_vector(arith.negf(sum_), place, plus(k, r))
            return [square.array]

        return code.for_each(self.width, [into], some, step=ROWS)[0]

    def _with_block(
        self, block: Any, strips: Strips, strip: Any, taus: Any, v: Any, products: Any, adjoint: bool
    ) -> Any:
        """Apply a block of reflectors, or its adjoint, to a strip."""
        first, origin = times(block, self.width), index(0)
        square = empty(ir.RankedTensorType.get([1, 1, self.width, self.width], self.element))
        square = self._products(block, Strips(v), strip, strips, square, origin)
        last = index(self.width - 1)

        def solve(turn: Any, square: Any) -> list[Any]:
            k = turn if adjoint else code.combine(arith.subi, last, turn)

            def before(turn: Any, sum_: Any) -> list[Any]:
                other = turn if adjoint else code.combine(arith.subi, last, turn)
                place = [other, k] if adjoint else [k, other]
                factor = code.read(products, origin, block, *place)
                return [minus_product(sum_, factor, Strips(square).vector(origin, other))]

            sum_ = code.for_each(turn, [Strips(square).vector(origin, k)], before)[0]
            tau = code.read(taus, origin, origin, plus(first, k))
            return [Strips(square).with_vector(self._scaled(sum_, tau), origin, k).array]

        square = code.for_each(self.width, [square], solve)[0]

        def subtract(row: Any, array: Any) -> list[Any]:
            rows, strips = [plus(row, r) for r in range(ROWS)], Strips(array)
            sums = minus_products(
                [strips.vector(strip, at) for at in rows],
                self.width,
                lambda k: [code.read(v, origin, block, at, k) for at in rows],
                lambda k: Strips(square).vector(origin, k),
            )
            for at, sum_ in zip(rows, sums, strict=True):
                strips = strips.with_vector(sum_, strip, at)
            return [strips.array]

        return code.for_each(self.rows, [strips.array], subtract, start=first, step=ROWS)[0]

    def _scaled(self, vector: Vector, by: Any) -> Vector:
        return arith.mulf(vector, full_vector(by, self.width))

    def _column(self, strip: Any, first: Any, pivot: Any, work: Any, taus: Any) -> list[Any]:
        """Reflect a column: zeros below the pivot, in whose place its vector is stored."""
        origin, lane, below = index(0), code.combine(arith.subi, pivot, first), plus(pivot, 1)
        strips = Strips(work)
        largest = Real(element(self._largest(strip, pivot, strips), lane))
        # Numbers are divided by the largest of them, so that no square overflows or vanishes.
        size = choose(largest.exceeds(self._tiny), largest, largest.like(1.0))
        inverse = largest.like(1.0) / size

        def dot(row: Any, sum_: Any) -> list[Any]:
            factor = Real(code.read(strips.array, origin, strip, row, lane)) * inverse
            return [minus_product(sum_, (-factor).ir, strips.vector(strip, row))]

        dots = code.for_each(self.rows, [self._spread(0.0)], dot, start=below)[0]
        top = strips.vector(strip, pivot)
        tail, alpha = Real(element(dots, lane)) * inverse, Real(element(top, lane)) * inverse
        one, zero = tail.like(1.0), tail.like(0.0)
        is_done = tail.equals(0.0)
        norm = (alpha * alpha + tail).sqrt()
        beta = choose(zero.exceeds(alpha), norm, -norm)
        tau = choose(is_done, zero, (beta - alpha) / choose(is_done, one, beta))
        lead = one / choose(is_done, one, alpha - beta)
        places = counted(self.width)
        is_right, is_here = (code.compare(name, self._place(lane), places) for name in ("slt", "eq"))
        product = arith.addf(top, self._scaled(dots, lead.ir))
        product = self._scaled(code.choose(is_right, product, self._spread(0.0)), tau.ir)
        image = choose(is_done, Real(element(top, lane)), beta * size)
        top = arith.subf(top, product)
        strips = strips.with_vector(code.choose(is_here, full_vector(image.ir, self.width), top), strip, pivot)
        scale = choose(is_done, zero, inverse * lead)

        def reflect(row: Any, work: Any) -> list[Any]:
            strips = Strips(work)
            factor = (Real(code.read(work, origin, strip, row, lane)) * scale).ir
            rest = minus_product(strips.vector(strip, row), factor, product)
            return [strips.with_vector(code.choose(is_here, full_vector(factor, self.width), rest), strip, row).array]

        work = code.for_each(self.rows, [strips.array], reflect, start=below)[0]
        return [work, code.write(tau.ir, taus, origin, origin, pivot)]

    @property
    def _tiny(self) -> float:
        """The least number whose inverse is finite."""
        return float(np.finfo("float32" if self.element.width == 32 else "float64").tiny) * 4

    def _largest(self, strip: Any, first: Any, strips: Strips) -> Vector:
        """The largest magnitude of each column from a row on."""

        def turn(row: Any, largest: Vector) -> list[Vector]:
            vector = strips.vector(strip, row)
            size = math_dialect.absf(vector)
            return [code.choose(code.compare_floats("OGT", size, largest), size, largest)]

        return code.for_each(self.rows, [self._spread(0.0)], turn, start=first)[0]
