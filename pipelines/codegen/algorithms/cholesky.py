"""Cholesky factorizations of real and complex matrices, four rows at a time, or one small matrix in each lane.

Source: StableHLO spec "cholesky"; Golub & Van Loan, 4.2; LAPACK "potrf". The upper factor u with ``u^H u = a`` is
found, because its rows lie in memory one after the other; a lower one is transposed on its way in and out.
"""

from __future__ import annotations

from dataclasses import dataclass

from hloforge.pipelines.codegen.algorithms import across
from hloforge.pipelines.codegen.algorithms.arrays import Element, Elements
from hloforge.pipelines.codegen.algorithms.matrices import (
    ROWS,
    Matrix,
    Registers,
    conjugate,
    copy,
    each_columns,
    fill,
    folded,
    minus_product,
    minus_products,
    pad,
    scaled,
    steps,
)
from hloforge.pipelines.codegen.algorithms.places import minus, plus, times
from hloforge.pipelines.codegen.algorithms.vectors import spread
from hloforge.pipelines.codegen.elements import memory as element_memory
from hloforge.pipelines.codegen.elements.comparisons import select
from hloforge.pipelines.codegen.elements.kinds import is_complex, part_of, width
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I32, Number, Value


@dataclass(frozen=True)
class Cholesky:
    """Factorizations of ``batch`` matrices of n rows.

    Attributes:
        element: f32, f64 or complex numbers of these.
        lower: whether the lower triangle is read, and a lower factor written.
        vector_bytes: of the processor's registers.
    """

    batch: int
    n: int
    element: str
    lower: bool
    vector_bytes: int = 64

    @property
    def _registers(self) -> Registers:
        return Registers.of(self.element, self.n, self.vector_bytes)

    @property
    def _side(self) -> int:
        return self._registers.padded(self.n)

    @property
    def scratch(self) -> int:
        """Bytes that a call works in."""
        return self._side**2 * element_memory.size(self.element)

    def write(
        self,
        function: Function,
        source: Elements,
        target: Elements,
        memory: Value,
        failed: Elements | None = None,
        rows: tuple[Number, Number] | None = None,
    ) -> None:
        """Write the loops.

        Args:
            target: the factors, with zeros beside them; all NaN where there is none.
            memory: ``scratch`` bytes.
            failed: i32, for each matrix 0, or the number of the first pivot that is not positive.
            rows: the first of the matrices and the one after the last; None for all.
        """
        if not self.n:
            return
        first, last = rows or (0, self.batch)
        if across.takes(self.n, self.element, self.batch, self._lanes):
            with steps(function, first, last, self._lanes) as number:
                self._write_across(function, source, target, failed, number, minus(last, 1))
            return
        work = Matrix(Elements(memory, self.element), self._side)
        with steps(function, first, last) as number:
            origin = times(number, self.n * self.n)
            matrix, into = Matrix(source.moved(origin), self.n), Matrix(target.moved(origin), self.n)
            self._load(function, matrix, work)
            bad = self._factor(function, work)
            self._store(function, work, into)
            if failed is not None:
                failed.put(bad, number)
            with function.if_(bad.compare("ne", 0)):
                nan = element_memory.constant(
                    function, self.element, complex("nan+nanj") if self._pairs else float("nan")
                )
                fill(function, into, (0, self.n), self.n, nan)

    @property
    def _lanes(self) -> int:
        """Matrices beside each other in vectors."""
        return self.vector_bytes * 8 // width(part_of(self.element))

    def _write_across(
        self,
        function: Function,
        source: Elements,
        target: Elements,
        failed: Elements | None,
        first: Value,
        last: Number,
    ) -> None:
        """Factor as many matrices as a vector has lanes, those after the last one again in place of more."""
        n, size = self.n, self.n * self.n
        numbers = [(first + lane).minimum(last) for lane in range(self._lanes)]
        matrices, targets = (
            [Matrix(array.moved(times(number, size)), n) for number in numbers] for array in (source, target)
        )
        given = across.read(function, matrices, n)
        if self.lower:
            given = [[conjugate(row[place]) for row in given] for place in range(n)]
        bad = function.spread(function.constant(0, I32), self._lanes)
        upper: list[list[Element]] = []
        for row in range(n):
            line = given[row][row:]
            for above in upper:
                others = above[row - n :]
                factor = conjugate(others[0])
                line = [minus_product(one, factor, other) for one, other in zip(line, others, strict=True)]
            diagonal = line[0]
            pivot = diagonal if isinstance(diagonal, Value) else diagonal[0]
            bad = ((pivot > 0) | bad.compare("ne", 0)).where(bad, row + 1)
            root = pivot.call("sqrt")
            own = root if isinstance(diagonal, Value) else (root, root.like(0.0))
            upper.append([own, *(scaled(one, 1.0 / root) for one in line[1:])])
        nan = complex("nan+nanj") if self._pairs else float("nan")
        nothing, zero = (spread(element_memory.constant(function, self.element, one), self._lanes) for one in (nan, 0))
        found = [[zero] * n for _ in range(n)]
        for row, line in enumerate(upper):
            for column, one in enumerate(line, row):
                if self.lower:
                    found[column][row] = conjugate(one)
                else:
                    found[row][column] = one
        found = [[select(bad.compare("ne", 0), nothing, one) for one in line] for line in found]
        across.write(targets, found)
        if failed is not None:
            for lane, number in enumerate(numbers):
                failed.put(function.extract(bad, lane), number)

    @property
    def _pairs(self) -> bool:
        return is_complex(self.element)

    def _load(self, function: Function, source: Matrix, work: Matrix) -> None:
        """The upper triangle, and ones on the diagonal beyond it; what is below is not read."""
        n, side = self.n, self._side
        copy(function, source.transposed() if self.lower else source, work, n, n, conjugate if self.lower else None)
        if side == n:
            return
        pad(function, work, (n, n), (side, side), self.element)
        one = element_memory.constant(function, self.element, 1)
        with steps(function, n, side) as place:
            work.put(one, place, place)

    def _store(self, function: Function, work: Matrix, target: Matrix) -> None:
        zero = element_memory.constant(function, self.element, 0)
        with steps(function, 1, self.n) as row, steps(function, 0, row) as column:
            work.put(zero, row, column)
        if self.lower:
            copy(function, work, target.transposed(), self.n, self.n, conjugate)
        else:
            copy(function, work, target, self.n, self.n)

    def _factor(self, function: Function, work: Matrix) -> Value:
        """Factor in place; the number of the first pivot that is not positive, or 0."""
        registers, side = self._registers, self._side
        lanes = registers.lanes

        def turn(row: Value, state: list[Value]) -> list[Value]:
            rows = [plus(row, place) for place in range(ROWS)]
            # The vector with the diagonal first: the rows' factors are in it.
            start = row & -lanes
            self._without_rows_above(function, work, rows, [start])
            bad = self._square(work, rows, start, state[0])

            def strip(column: Value, vectors: int) -> None:
                columns = [plus(column, place * lanes) for place in range(vectors)]
                self._finish(work, rows, columns, self._without_rows_above(function, work, rows, columns, store=False))

            each_columns(function, (start + lanes, side), registers, strip)
            return [bad]

        return folded(function, 0, side, [function.constant(0, I32)], turn, ROWS)[0]

    def _without_rows_above(
        self, function: Function, work: Matrix, rows: list[Number], columns: list[Number], *, store: bool = True
    ) -> list[list[Element]]:
        """Subtract what the finished rows contribute to some."""
        lanes = self._registers.lanes
        totals = minus_products(
            function,
            [[work.at(row, column, lanes) for column in columns] for row in rows],
            (0, rows[0]),
            lambda place, number: conjugate(work.at(number, rows[place])),
            lambda number, place: work.at(number, columns[place], lanes),
            most=self.n,
        )
        if store:
            for row, elements in zip(rows, totals, strict=True):
                for column, element in zip(columns, elements, strict=True):
                    work.put(element, row, column)
        return totals

    def _square(self, work: Matrix, rows: list[Number], start: Value, bad: Value) -> Value:
        """Finish the rows within the vector that holds their diagonal; the first failure so far."""
        lanes = self._registers.lanes
        for place, row in enumerate(rows):
            vector = work.at(row, start, lanes)
            for above in rows[:place]:
                factor = spread(conjugate(work.at(above, row)), lanes)
                vector = minus_product(vector, factor, work.at(above, start, lanes))
            work.put(vector, row, start)
            diagonal = work.at(row, row)
            pivot = diagonal if isinstance(diagonal, Value) else diagonal[0]
            is_good = pivot > 0
            number = bad.function.index(plus(row, 1)).as_(I32)
            bad = (is_good | bad.compare("ne", 0)).where(bad, number)
            root = pivot.call("sqrt")
            work.put(scaled(vector, bad.function.spread(1.0 / root, lanes)), row, start)
            # Exactly the root, and no imaginary part.
            work.put(root if isinstance(diagonal, Value) else (root, diagonal[1].like(0.0)), row, row)
        return bad

    def _finish(self, work: Matrix, rows: list[Number], columns: list[Number], totals: list[list[Element]]) -> None:
        """Finish the rows in other columns, given what is left of them."""
        lanes = self._registers.lanes
        for place, row in enumerate(rows):
            factors = [spread(conjugate(work.at(above, row)), lanes) for above in rows[:place]]
            diagonal = work.at(row, row)
            root = diagonal if isinstance(diagonal, Value) else diagonal[0]
            inverse = root.function.spread(1.0 / root, lanes)
            for at, column in enumerate(columns):
                element = totals[place][at]
                for factor, above in zip(factors, totals, strict=False):
                    element = minus_product(element, factor, above[at])
                totals[place][at] = scaled(element, inverse)
                work.put(totals[place][at], row, column)
