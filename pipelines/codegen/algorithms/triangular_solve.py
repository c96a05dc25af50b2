"""Triangular systems by substitution, four rows at a time, a strip of right sides after the other.

Source: StableHLO spec "triangular_solve"; Golub & Van Loan, 3.1; BLAS "trsm".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hloforge.pipelines.codegen.algorithms.arrays import Element, Elements
from hloforge.pipelines.codegen.algorithms.matrices import (
    ROWS,
    Matrix,
    Registers,
    copy,
    each_columns,
    fill,
    minus_product,
    minus_products,
    steps,
)
from hloforge.pipelines.codegen.algorithms.places import divided, plus, times
from hloforge.pipelines.codegen.algorithms.vectors import spread
from hloforge.pipelines.codegen.elements import memory as element_memory
from hloforge.pipelines.codegen.elements.complex_numbers import divide
from hloforge.pipelines.codegen.elements.kinds import single
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Number, Value


@dataclass(frozen=True)
class Substitution:
    """``l x = b`` for a lower triangle l of n rows; b becomes x in memory.

    Attributes:
        n: if it is not known, a multiple of ``ROWS``.
        unit_diagonal: whether the diagonal holds ones, whatever is in memory.
        most: rows at most.
    """

    n: Number
    triangle: Matrix
    right: Matrix
    registers: Registers
    unit_diagonal: bool = False
    most: int = 0

    def write(self, function: Function, columns: tuple[Number, Number]) -> None:
        """Write the loops for some columns, a multiple of the lanes; their rows lie along memory."""
        whole: Number = self.n
        rest: list[int] = []
        if not isinstance(self.n, Value):
            whole = int(self.n) // ROWS * ROWS
            rest = list(range(int(whole), int(self.n)))

        def strip(column: Value, vectors: int) -> None:
            own = [plus(column, place * self.registers.lanes) for place in range(vectors)]
            if isinstance(whole, Value) or whole:
                with steps(function, 0, whole, ROWS) as row:
                    self._rows(function, [plus(row, place) for place in range(ROWS)], own)
            if rest:
                self._rows(function, rest, own)

        each_columns(function, columns, self.registers, strip)

    def _rows(self, function: Function, rows: Sequence[Number], columns: Sequence[Number]) -> None:
        """Find some rows."""
        lanes = self.registers.lanes
        found = minus_products(
            function,
            [[self.right.at(row, column, lanes) for column in columns] for row in rows],
            (0, rows[0]),
            lambda place, number: self.triangle.at(rows[place], number),
            lambda number, place: self.right.at(number, columns[place], lanes),
            most=self.most or int(self.n),  # type: ignore[arg-type]
        )
        for place, row in enumerate(rows):
            factors = [spread(self.triangle.at(row, above), lanes) for above in rows[:place]]
            divisor = None if self.unit_diagonal else self.triangle.at(row, row)
            for at, column in enumerate(columns):
                element = found[place][at]
                for factor, above in zip(factors, found, strict=False):
                    element = minus_product(element, factor, above[at])
                found[place][at] = element if divisor is None else _divided(element, divisor, lanes)
                self.right.put(found[place][at], row, column)


def _divided(element: Element, divisor: Element, lanes: int) -> Element:
    if isinstance(divisor, Value):
        return single(element) / divisor.function.spread(divisor, lanes)
    one = divisor[0].like(1.0), divisor[0].like(0.0)
    assert not isinstance(element, Value)
    (a, b), (c, d) = element, [part.function.spread(part, lanes) for part in divide(one, divisor)]
    return a * c - b * d, a * d + b * c


@dataclass(frozen=True)
class TriangularSolve:
    """``op(a) x = b`` or ``x op(a) = b`` for ``batch`` matrices a of n rows and b of ``rows`` and ``columns``.

    Attributes:
        element: f32, f64 or complex numbers of these.
        left_side: whether a stands on the left.
        lower: the triangle of a that is read.
        unit_diagonal: take a's diagonal for ones, whatever it holds.
        transposed, adjoint: what op does; an adjoint is not ``transposed``.
        vector_bytes: of the processor's registers.
    """

    batch: int
    shape: tuple[int, int]
    element: str
    left_side: bool
    lower: bool
    unit_diagonal: bool
    transposed: bool = False
    adjoint: bool = False
    vector_bytes: int = 64

    @property
    def _n(self) -> int:
        return self.shape[0 if self.left_side else 1]

    @property
    def _rights(self) -> int:
        """Right sides."""
        return self.shape[1 if self.left_side else 0]

    @property
    def _registers(self) -> Registers:
        return Registers.of(self.element, self._rights, self.vector_bytes)

    @property
    def _width(self) -> int:
        """Right sides of a strip, which are found together: their numbers are in registers."""
        return min(self._rights, self._registers.lanes * self._registers.vectors)

    @property
    def strips(self) -> int:
        """Of all systems; each is found by itself. The last of a system overlaps the one before."""
        return self.batch * -(-self._rights // self._width) if self._rights else 0

    @property
    def scratch(self) -> int:
        """Bytes that a call works in."""
        return self._n * self._registers.padded(self._width) * element_memory.size(self.element)

    def write(
        self,
        function: Function,
        a: Elements,
        b: Elements,
        target: Elements,
        memory: Value,
        rows: tuple[Number, Number] | None = None,
    ) -> None:
        """Write the loops.

        Args:
            target: x.
            memory: ``scratch`` bytes.
            rows: the first of the strips and the one after the last; None for all.
        """
        n, rights = self._n, self._rights
        if not n * rights:
            return
        registers, width = self._registers, self._width
        side = registers.padded(width)
        first, last = rows or (0, self.strips)
        work = Matrix(Elements(memory, self.element), side)
        with steps(function, first, last) as item:
            number, strip = divided(item, self.strips // self.batch)
            column = (
                times(strip, width) if width == rights else function.index(times(strip, width)).minimum(rights - width)
            )
            matrix = Matrix(a.moved(times(number, n * n)), n)
            arrays = [Matrix(array.moved(times(number, n * rights)), self.shape[1]) for array in (b, target)]
            right, into = arrays if self.left_side else [array.transposed() for array in arrays]
            copy(function, right.below(0, column), work, n, width)
            if side > width:
                zero = element_memory.constant(function, self.element, 0)
                fill(function, work.below(0, width), (0, n), side - width, zero)
            self._substitution(matrix, work, registers).write(function, (0, side))
            copy(function, work, into.below(0, column), n, width)

    def _substitution(self, matrix: Matrix, work: Matrix, registers: Registers) -> Substitution:
        """The system as one of a lower triangle, to which x stands on the right."""
        turned = (self.transposed or self.adjoint) == self.left_side
        is_lower = self.lower != turned
        matrix = replace(matrix.transposed() if turned else matrix, conjugated=self.adjoint)
        if not is_lower:
            matrix, work = matrix.reversed(self._n, self._n), work.reversed_rows(self._n)
        return Substitution(self._n, matrix, work, registers, self.unit_diagonal)
