"""LU factorizations with partial pivoting, a panel of columns as wide as a vector after the other.

A row of a panel is one vector. The panel is eliminated column by column; then the rows of u beside it are a triangular
system, and the rest loses a product. Source: Golub & Van Loan, 3.2 and 3.4; LAPACK "getrf", "getf2".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hloforge.pipelines.codegen.algorithms.arrays import Element, Elements
from hloforge.pipelines.codegen.algorithms.matrices import (
    Matrix,
    Registers,
    copy,
    folded,
    minus_product,
    pad,
    steps,
    subtract_product,
)
from hloforge.pipelines.codegen.algorithms.places import times
from hloforge.pipelines.codegen.algorithms.scratch import InParts
from hloforge.pipelines.codegen.algorithms.shared_out import Handed, alone, own_part
from hloforge.pipelines.codegen.algorithms.triangular_solve import Substitution
from hloforge.pipelines.codegen.algorithms.vectors import spread
from hloforge.pipelines.codegen.elements import memory as element_memory
from hloforge.pipelines.codegen.elements.comparisons import select
from hloforge.pipelines.codegen.elements.complex_numbers import divide
from hloforge.pipelines.codegen.lang.functions import Array, Function
from hloforge.pipelines.codegen.lang.values import I32, I64, Number, Value, vector_of
from hloforge.pipelines.codegen.nest_loops import Share

# Columns of a block.
_BLOCK = 64
# Of the block at work: its first column and the one after its last.
_START, _END, _STATE = 0, 1, 8


@dataclass(frozen=True)
class Factorization:
    """Where the results of LU factorizations of ``[b, m, n]`` go.

    Attributes:
        factors: l, without its unit diagonal, below u: ``[b, m, n]``.
        exchanges: i32 ``[b, min(m, n)]``: with which row (from 0) each row was exchanged.
        order: i32 ``[b, m]``: the row of the matrix that is in each row.
        failed: i32 ``[b]``: the number (from 1) of the first pivot that is zero, else 0.
    """

    factors: Elements
    exchanges: Elements
    order: Elements
    failed: Elements


@dataclass(frozen=True)
class LU(InParts):
    """Factorizations ``p a = l u`` of ``batch`` matrices of m rows and n columns.

    Columns are eliminated block by block, panels of which change the block alone: what is beside a block is read and
    written once for all of its columns, by several workgroups.

    Attributes:
        element: f32, f64 or complex numbers of these.
        vector_bytes: of the processor's registers.
    """

    batch: int
    m: int
    n: int
    element: str
    vector_bytes: int = 64

    @property
    def pivots(self) -> int:
        """Columns that are eliminated."""
        return min(self.m, self.n)

    @property
    def _registers(self) -> Registers:
        return Registers.of(self.element, self.n, self.vector_bytes)

    @property
    def _pitch(self) -> int:
        """Elements of a row: rows a power of two apart share few lines of the cache."""
        return self._registers.pitch(self.n, self.element)

    @property
    def _parts(self) -> list[int]:
        return [self._registers.padded(self.m) * self._pitch * element_memory.size(self.element), _STATE * 8]

    def write(
        self,
        function: Function,
        source: Elements,
        found: Factorization,
        memory: Value,
        rows: tuple[Number, Number] | None = None,
        hand: Handed = alone,
    ) -> None:
        """Write the loops.

        Args:
            memory: ``scratch`` bytes.
            hand: shares parts of the work out.
            rows: the first of the matrices and the one after the last; None for all.
        """
        if not self.pivots:
            return
        m, n, registers = self.m, self.n, self._registers
        work, _ = self.memory(memory)
        first, last = rows or (0, self.batch)
        with steps(function, first, last) as number:
            copy(function, Matrix(source.moved(times(number, m * n)), n), work, m, n)
            pad(function, work, (m, n), (registers.padded(m), registers.padded(n)), self.element)
            own = Factorization(
                found.factors.moved(times(number, m * n)),
                found.exchanges.moved(times(number, self.pivots)),
                found.order.moved(times(number, m)),
                found.failed,
            )
            with steps(function, 0, m) as row:
                own.order.put(row.as_(I32), row)
            found.failed.put(_Elimination(self, registers, work, own).write(function, memory, hand), number)
            copy(function, work, Matrix(own.factors, n), m, n)

    def memory(self, memory: Value) -> tuple[Matrix, Array]:
        """The matrix, and numbers that workgroups read."""
        work, state = self._pointers(memory)
        return Matrix(Elements(work, self.element), self._pitch), Array(state, I64)

    def finish(self, function: Function, memory: Value, share: Share | None) -> None:
        """The columns beside a block: rows of u, and what is left of the others."""
        registers, (work, state) = self._registers, self.memory(memory)
        start, end = state.at(_START), state.at(_END)
        columns = own_part(share, end, registers.padded(self.n), registers.lanes)
        rows, square = work.below(start), work.below(start, start)
        solve = Substitution(end - start, square, rows, registers, unit_diagonal=True, most=_BLOCK)
        solve.write(function, columns)
        limits = (end, registers.padded(self.m)), columns, (start, end)
        subtract_product(function, work, work, work, *limits, registers, _BLOCK)


@dataclass(frozen=True)
class _Elimination:
    """The work on one matrix."""

    plan: LU
    registers: Registers
    work: Matrix
    found: Factorization

    def write(self, function: Function, memory: Value, hand: Handed) -> Value:
        """Factor in place; the number of the first pivot that is zero, or 0."""
        plan, side = self.plan, self.registers.padded(self.plan.n)
        none = function.constant(0, I32)
        if plan.pivots <= _BLOCK:
            return self._panels(function, 0, plan.pivots, side, none)
        _, numbers = plan.memory(memory)

        def block(start: Value, state: list[Value]) -> list[Value]:
            end = (start + _BLOCK).minimum(self.registers.padded(plan.pivots))
            failed = self._panels(function, start, end.minimum(plan.pivots), end, state[0])
            numbers.put(start, _START)
            numbers.put(end, _END)
            hand(lambda share: plan.finish(function, memory, share))
            return [failed]

        return folded(function, 0, plan.pivots, [none], block, _BLOCK)[0]

    def _panels(self, function: Function, first: Number, last: Number, side: Number, failed: Value) -> Value:
        """Eliminate columns from ``first`` to ``last``, and change those up to ``side``."""
        lanes, height = self.registers.lanes, self.registers.padded(self.plan.m)

        def panel(start: Value, state: list[Value]) -> list[Value]:
            end = start + lanes
            stop = end.minimum(last)
            failed = folded(function, start, stop, state, lambda j, state: [self._column(function, start, j, state[0])])
            if isinstance(side, Value) or side > lanes:
                rows, square = self.work.below(start), self.work.below(start, start)
                solve = Substitution(lanes, square, rows, self.registers, unit_diagonal=True)
                solve.write(function, (end, side))
                limits = (end, height), (end, side), (start, end)
                subtract_product(function, self.work, self.work, self.work, *limits, self.registers, lanes)
            return failed

        return folded(function, first, last, [failed], panel, lanes)[0]

    def _column(self, function: Function, start: Value, column: Value, failed: Value) -> Value:
        """Find the pivot of a column, exchange rows, and eliminate the column from the panel."""
        lanes, work = self.registers.lanes, self.work
        chosen = self._largest(function, column)
        self.found.exchanges.put(chosen.as_(I32), column)
        self._exchange(function, column, chosen)
        pivot_row, pivot = work.at(column, start, lanes), work.at(column, column)
        is_zero = _is_zero(pivot)
        number = (column + 1).as_(I32)
        failed = (is_zero & failed.equals(0)).where(number, failed)
        one = element_memory.constant(function, self.plan.element, 1)
        divisor = select(is_zero, one, pivot)
        places = Value(function, vector_of(I32, lanes), f"<{', '.join(f'i32 {lane}' for lane in range(lanes))}>")
        here = function.spread((column - start).as_(I32), lanes)
        is_right, is_here = places > here, places.equals(here)
        with steps(function, column + 1, self.plan.m) as row:
            factor = spread(_quotient(work.at(row, column), divisor), lanes)
            before = work.at(row, start, lanes)
            after = select(is_right, minus_product(before, factor, pivot_row), before)
            work.put(select(is_here, factor, after), row, start)
        return failed

    def _largest(self, function: Function, column: Value) -> Value:
        """The row of a column's largest element from its diagonal on, of equal ones the first; NaN counts as zero."""

        def turn(row: Value, state: list[Value]) -> Sequence[Value]:
            size = _size(self.work.at(row, column))
            is_larger = size > state[0]
            return [is_larger.where(size, state[0]), is_larger.where(row, state[1])]

        zero = _size(self.work.at(column, column)).like(0.0)
        return folded(function, column, self.plan.m, [zero, column], turn)[1]

    def _exchange(self, function: Function, row: Value, other: Value) -> None:
        lanes = self.registers.lanes
        order = self.found.order
        one, two = order.at(row), order.at(other)
        order.put(two, row)
        order.put(one, other)
        with steps(function, 0, self.registers.padded(self.plan.n), lanes) as column:
            first, second = self.work.at(row, column, lanes), self.work.at(other, column, lanes)
            self.work.put(second, row, column)
            self.work.put(first, other, column)


def _size(element: Element) -> Value:
    """As LAPACK compares pivots: a complex number by the sum of its parts' magnitudes."""
    if isinstance(element, Value):
        return element.call("fabs")
    return element[0].call("fabs") + element[1].call("fabs")


def _is_zero(element: Element) -> Value:
    if isinstance(element, Value):
        return element.equals(0.0)
    return element[0].equals(0.0) & element[1].equals(0.0)


def _quotient(element: Element, divisor: Element) -> Element:
    if isinstance(element, Value):
        assert isinstance(divisor, Value)
        return element / divisor
    assert not isinstance(divisor, Value)
    return divide(element, divisor)
