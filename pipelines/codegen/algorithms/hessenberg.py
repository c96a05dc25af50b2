"""Real square matrices to Hessenberg form, by reflectors.

A step's update of the matrix and the next one's products with a vector from both sides are one pass over its rows: the
next vector needs one column of the updated matrix alone. Source: LAPACK "gehd2"; Golub & Van Loan 7.4.
"""

from __future__ import annotations

from dataclasses import dataclass

from hloforge.pipelines.codegen.algorithms.arrays import Elements
from hloforge.pipelines.codegen.algorithms.matrices import Matrix, Registers, copy, fill, folded, pad, steps
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

# Columns of the matrix at the end that one thread does alone; rows of a block, which is one workgroup's.
_ALONE, _BLOCK = 64, 8


@dataclass(frozen=True)
class _Memory:
    """The parts of the memory that it works in.

    Attributes:
        a: the matrix, from which v p^T + q v^T of the last step is still to be taken.
        x: this step's vector v.
        right: the matrix times that.
        left: that times the matrix, of each workgroup's rows.
    """

    a: Elements
    v: Elements
    p: Elements
    q: Elements
    x: Elements
    right: Elements
    left: Elements
    state: Array


@dataclass(frozen=True)
class Hessenberg(SharedOut):
    """Reductions of ``batch`` matrices of n rows, which are scaled to magnitudes of about 1 at most."""

    @property
    def _side(self) -> int:
        """Columns, and rows, with zeros that follow them."""
        unit = max(self.lanes, _BLOCK)
        return -(-self.n // unit) * unit

    @property
    def _pitch(self) -> int:
        return Registers(self.lanes, 1).pitch(self._side, self.element)

    @property
    def _parts(self) -> list[int]:
        line = self._side + max(self.lanes, _BLOCK)
        numbers = [self._side * self._pitch, *[line] * 5, self.shares * line]
        return [*(count * self._size for count in numbers), STATE * 8]

    def _memory(self, memory: Value) -> _Memory:
        return self._laid_out(_Memory, memory)

    def write(
        self,
        function: Function,
        source: Elements,
        form: Elements,
        reflectors: Elements,
        taus: Elements,
        memory: Value,
        hand: Handed,
        rows: tuple[Number, Number] | None = None,
    ) -> None:
        """Write the loops.

        Args:
            form: ``[b, n, n]``; what is below the other diagonal is any number.
            reflectors: ``[b, n, n]``, row k is the vector of the reflector k, with 1 at k + 1; the last is zero.
            taus: ``[b, n]``, the factors of the reflectors.
            memory: ``scratch`` bytes.
            hand: shares parts of the work out.
            rows: the first of the matrices and the one after the last; None for all.
        """
        n, side, pitch = self.n, self._side, self._pitch
        first, last = rows or (0, self.batch)
        zero = element_memory.constant(function, self.element, 0)
        with steps(function, first, last) as number:
            room, origin = self._memory(memory), times(number, n * n)
            work = Matrix(room.a, pitch)
            copy(function, Matrix(source.moved(origin), n), work, n, n)
            pad(function, work, (n, n), (side, side), self.element)
            for array in (room.v, room.p, room.q, room.x):
                fill(function, Matrix(array, 0), (0, 1), side, zero)
            lines, found = reflectors.moved(origin), taus.moved(times(number, n))
            lines = Elements(lines.pointer, self.element, lines.access)
            with steps(function, 0, n - 1) as step:
                self._column(function, room, step)
                beta, tau = make_reflector(function, room.x, step + 1, side, self.lanes)
                found.put(tau, step)
                store_line(function, room.x, (step + 1) & -self.lanes, lines.moved(step * n), n)
                active = begin_step(room.state, step, n, self.shares, _ALONE)
                hand(lambda share: self._pass(function, memory, share), active)
                work.put(beta, step + 1, step)
                self._finish(function, room, step, tau)
            found.put(zero, n - 1)
            fill(function, Matrix(lines, n).below(n - 1), (0, 1), n, zero)
            copy(function, work, Matrix(form.moved(origin), n), n, n)

    def _column(self, function: Function, room: _Memory, step: Value) -> None:
        """x = the column of the step, below the diagonal."""
        p, v = room.p.number(step), room.v.number(step)
        room.x.put(element_memory.constant(function, self.element, 0), step)
        with steps(function, step + 1, self.n) as row:
            element = room.a.number(row * self._pitch + step)
            room.x.put(element - room.v.number(row) * p - room.q.number(row) * v, row)

    def _pass(self, function: Function, memory: Value, share: Share | None) -> None:
        """Update a share of the rows, and multiply them by x, and x by them."""
        room, lanes, side = self._memory(memory), self.lanes, self._side
        begin = room.state.at(STEP) & -lanes
        if share is None:
            room.state.put(function.index(1), ACTIVE)
        number = share.number if share is not None else function.index(0)
        products = room.left.moved(number * (side + max(lanes, _BLOCK)))
        zero = function.spread(single(element_memory.constant(function, self.element, 0)), lanes)
        with steps(function, begin, side, lanes) as place:
            products.put(zero, place)
        blocks = own_blocks(function, share, room.state, function.index(0), side, _BLOCK)
        with blocks as block, steps(function, block, block + _BLOCK, self._rows) as row:
            rows = [row + place for place in range(self._rows)]
            lines = [room.a.moved(at * self._pitch) for at in rows]
            own = [[function.spread(array.number(at), lanes) for array in (room.v, room.q, room.x)] for at in rows]

            def columns(
                place: Value,
                sums: list[Value],
                lines: list[Elements] = lines,
                own: list[list[Value]] = own,
            ) -> list[Value]:
                p, v, x, product = (single(array.at(place, lanes)) for array in (room.p, room.v, room.x, products))
                found = []
                for line, (v_i, q_i, x_i), before in zip(lines, own, sums, strict=True):
                    element = single(line.at(place, lanes)) - v_i * p - q_i * v
                    line.put(element, place)
                    found.append(before + element * x)
                    product = product + element * x_i
                products.put(product, place)
                return found

            sums = folded(function, begin, side, [zero] * len(rows), columns, lanes)
            for at, vector in zip(rows, sums, strict=True):
                room.right.put(total(vector), at)

    def _finish(self, function: Function, room: _Memory, step: Value, tau: Value) -> None:
        """v = x, q = tau a v, p = tau (a^T v - tau (v^T a v) v)."""
        lanes, side = self.lanes, self._side
        factor = function.spread(tau, lanes)
        begin, zero = (step + 1) & -lanes, single(element_memory.constant(function, self.element, 0))

        def multiply(place: Value, state: list[Value]) -> list[Value]:
            value = single(room.right.at(place, lanes)) * factor
            room.q.put(value, place)
            return [state[0] + value * single(room.x.at(place, lanes))]

        with steps(function, 0, begin, lanes) as place:
            room.q.put(single(room.right.at(place, lanes)) * factor, place)
        (sums,) = folded(function, begin, side, [function.spread(zero, lanes)], multiply, lanes)
        share, active = function.spread(total(sums), lanes), room.state.at(ACTIVE)
        pitch = side + max(lanes, _BLOCK)
        with steps(function, begin, side, lanes) as place:
            x = single(room.x.at(place, lanes))
            product = summed(room.left, place, lanes, pitch, self.shares, active)
            room.p.put((product - share * x) * factor, place)
            room.v.put(x, place)
        room.v.put(zero, step)
        with steps(function, begin, step + 1) as place:
            room.p.put(zero, place)
