"""Real square matrices to upper bidiagonal form, by reflectors from both sides.

A step's update of the matrix is one pass with the product that the next reflector from the left needs; the product for
the one from the right reads the matrix once more. Source: LAPACK "gebd2", "labrd"; Golub & Van Loan 5.4.
"""

from __future__ import annotations

from dataclasses import dataclass

from hloforge.pipelines.codegen.algorithms.arrays import Elements
from hloforge.pipelines.codegen.algorithms.matrices import Matrix, copy, fill, folded, pad, steps
from hloforge.pipelines.codegen.algorithms.places import times
from hloforge.pipelines.codegen.algorithms.reflector import (
    ACTIVE,
    STATE,
    STEP,
    Handed,
    begin_step,
    make_reflector,
    own_blocks,
    store_line,
    summed,
)
from hloforge.pipelines.codegen.algorithms.shared_out import SharedOut
from hloforge.pipelines.codegen.algorithms.vectors import total
from hloforge.pipelines.codegen.elements import memory as element_memory
from hloforge.pipelines.codegen.elements.kinds import single
from hloforge.pipelines.codegen.lang.functions import Array, Function
from hloforge.pipelines.codegen.lang.values import Number, Value
from hloforge.pipelines.codegen.nest_loops import Share

# Rows of the matrix at the end that one thread does alone; rows of a block, which is one workgroup's.
_ALONE, _BLOCK = 128, 8
# Diagonals and factors of reflectors, as a call gives them.
D, E, TAU_Q, TAU_P = range(4)


@dataclass(frozen=True)
class _Memory:
    """The parts of the memory that it works in.

    Attributes:
        a: the matrix, from which v w^T + y p^T of the last step is still to be taken.
        x: this step's vector v.
        products: this times the matrix, of each workgroup's rows.
    """

    a: Elements
    v: Elements
    w: Elements
    y: Elements
    p: Elements
    x: Elements
    factors: Elements
    products: Elements
    state: Array


@dataclass(frozen=True)
class Bidiagonal(SharedOut):
    """Reductions of ``batch`` matrices of n rows, which are scaled to magnitudes of about 1 at most."""

    @property
    def _side(self) -> int:
        unit = max(self.lanes, _BLOCK)
        return -(-self.n // unit) * unit

    @property
    def _pitch(self) -> int:
        return self._side + max(self.lanes, _BLOCK)

    @property
    def _parts(self) -> list[int]:
        numbers = [self._side**2, *[self._pitch] * 5, 2, self.shares * self._pitch]
        return [*(count * self._size for count in numbers), STATE * 8]

    def _memory(self, memory: Value) -> _Memory:
        return self._laid_out(_Memory, memory)

    def write(
        self,
        function: Function,
        source: Elements,
        left: Elements,
        right: Elements,
        diagonals: Elements,
        memory: Value,
        hand: Handed,
        rows: tuple[Number, Number] | None = None,
    ) -> None:
        """Write the loops.

        Args:
            left, right: ``[b, n, n]``, row k is the vector of a reflector, with 1 at k and at k + 1. The last ones are
                zero.
            diagonals: ``[b, 4, n]``: the diagonal, the one above it, the factors of the reflectors.
            memory: ``scratch`` bytes.
            hand: shares parts of the work out.
            rows: the first of the matrices and the one after the last; None for all.
        """
        n, side = self.n, self._side
        first, last = rows or (0, self.batch)
        zero = element_memory.constant(function, self.element, 0)
        with steps(function, first, last) as number:
            room, origin = self._memory(memory), times(number, n * n)
            work = Matrix(room.a, side)
            copy(function, Matrix(source.moved(origin), n), work, n, n)
            pad(function, work, (n, n), (side, side), self.element)
            for array in (room.v, room.w, room.y, room.p, room.x):
                fill(function, Matrix(array, 0), (0, 1), self._pitch, zero)
            lines = left.moved(origin), right.moved(origin)
            found = Matrix(diagonals.moved(times(number, 4 * n)), n)
            with steps(function, 0, n - 1) as step:
                self._column(function, room, step)
                beta, tau = make_reflector(function, room.x, step, side, self.lanes)
                self._note(function, room, found, (D, TAU_Q), step, beta, tau)
                store_line(function, room.x, step & -self.lanes, lines[0].moved(step * n), n)
                active = begin_step(room.state, step, n, self.shares, _ALONE)
                hand(lambda share: self._update(function, memory, share), active)
                self._row(function, room, step)
                beta, tau = make_reflector(function, room.p, step + 1, side, self.lanes)
                self._note(function, room, found, (E, TAU_P), step, beta, tau)
                store_line(function, room.p, (step + 1) & -self.lanes, lines[1].moved(step * n), n)
                self._prepare(function, room, step)
                hand(lambda share: self._multiply(function, memory, share), active)
            end = function.index(n - 1)
            self._column(function, room, end)
            found.put(room.x.at(end), D, end)
            fill(function, found.below(E, end), (0, 3), 1, zero)
            for line in lines:
                fill(function, Matrix(line, n).below(end), (0, 1), n, zero)

    def _note(
        self,
        function: Function,
        room: _Memory,
        found: Matrix,
        rows: tuple[int, int],
        step: Value,
        beta: Value,
        tau: Value,
    ) -> None:
        found.put(beta, rows[0], step)
        found.put(tau, rows[1], step)
        room.factors.put(tau, 0)

    def _column(self, function: Function, room: _Memory, step: Value) -> None:
        """x = the step's column of the matrix."""
        w, p = room.w.number(step), room.p.number(step)
        zero = element_memory.constant(function, self.element, 0)
        with steps(function, step & -_BLOCK, step) as row:
            room.x.put(zero, row)
        with steps(function, step, self.n) as row:
            element = room.a.number(row * self._side + step)
            room.x.put(element - room.v.number(row) * w - room.y.number(row) * p, row)

    def _update(self, function: Function, memory: Value, share: Share | None) -> None:
        """Update a share of the rows from the step's on, and multiply them by x."""
        room, lanes, side = self._memory(memory), self.lanes, self._side
        step = room.state.at(STEP)
        if share is None:
            room.state.put(function.index(1), ACTIVE)
        number = share.number if share is not None else function.index(0)
        products = room.products.moved(number * self._pitch)
        zero = function.spread(single(element_memory.constant(function, self.element, 0)), lanes)
        begin = (step + 1) & -lanes
        with steps(function, begin, side, lanes) as place:
            products.put(zero, place)
        blocks = own_blocks(function, share, room.state, step & -_BLOCK, side, _BLOCK)
        with blocks as block, steps(function, block, block + _BLOCK, self._rows) as row:
            rows = [row + place for place in range(self._rows)]
            lines = [room.a.moved(at * side) for at in rows]
            own = [[function.spread(array.number(at), lanes) for array in (room.v, room.y, room.x)] for at in rows]
            with steps(function, begin, side, lanes) as place:
                w, p, product = (single(array.at(place, lanes)) for array in (room.w, room.p, products))
                for line, (v_i, y_i, x_i) in zip(lines, own, strict=True):
                    element = single(line.at(place, lanes)) - v_i * w - y_i * p
                    line.put(element, place)
                    product = product + element * x_i
                products.put(product, place)

    def _row(self, function: Function, room: _Memory, step: Value) -> None:
        """w = tau x^T a, p = the step's row of the reflected matrix."""
        lanes, side = self.lanes, self._side
        active, tau = room.state.at(ACTIVE), function.spread(room.factors.number(0), lanes)
        line = room.a.moved(step * side)
        with steps(function, (step + 1) & -lanes, side, lanes) as place:
            value = summed(room.products, place, lanes, self._pitch, self.shares, active) * tau
            room.w.put(value, place)
            room.p.put(single(line.at(place, lanes)) - value, place)

    def _prepare(self, function: Function, room: _Memory, step: Value) -> None:
        """v = x, and w^T p for the rows' products."""
        lanes, side = self.lanes, self._side
        with steps(function, step & -lanes, side, lanes) as place:
            room.v.put(room.x.at(place, lanes), place)

        def add(place: Value, state: list[Value]) -> list[Value]:
            w, p = (single(array.at(place, lanes)) for array in (room.w, room.p))
            return [state[0] + w * p]

        zero = function.spread(single(element_memory.constant(function, self.element, 0)), lanes)
        (sums,) = folded(function, (step + 1) & -lanes, side, [zero], add, lanes)
        room.factors.put(total(sums), 1)

    def _multiply(self, function: Function, memory: Value, share: Share | None) -> None:
        """y = tau (a - v w^T) p of a share of the rows."""
        room, lanes, side = self._memory(memory), self.lanes, self._side
        step = room.state.at(STEP)
        tau, product = (room.factors.number(which) for which in (0, 1))
        zero = function.spread(single(element_memory.constant(function, self.element, 0)), lanes)
        with own_blocks(function, share, room.state, step & -_BLOCK, side, _BLOCK) as block:
            for half in range(0, _BLOCK, 4):
                rows = [block + (half + place) for place in range(4)]
                lines = [room.a.moved(at * side) for at in rows]

                def add(place: Value, state: list[Value], lines: list[Elements] = lines) -> list[Value]:
                    p = single(room.p.at(place, lanes))
                    return [
                        before + single(line.at(place, lanes)) * p for before, line in zip(state, lines, strict=True)
                    ]

                sums = folded(function, (step + 1) & -lanes, side, [zero] * 4, add, lanes)
                for at, vector in zip(rows, sums, strict=True):
                    room.y.put((total(vector) - room.v.number(at) * product) * tau, at)
