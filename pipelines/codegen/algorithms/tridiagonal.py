"""Real symmetric matrices to tridiagonal form, by reflectors.

A step's update of the matrix and the next one's product with a vector are one pass over the blocks of the upper
triangle: the next vector needs one row of the updated matrix alone. Source: LAPACK "sytd2"; Golub & Van Loan 8.3.
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

# Rows of the matrix at the end that one thread does alone: a pass over them is as short as handing it out.
_ALONE = 192
# Diagonals and factors of reflectors, as a call gives them.
D, E, TAU = range(3)


@dataclass(frozen=True)
class _Memory:
    """The parts of the memory that it works in.

    Attributes:
        a: the matrix, of which blocks on and above the diagonal are used.
        v, w: of the last step, a - v w^T - w v^T is to come.
        x: this step's vector.
        products: a times that, of each workgroup's rows.
    """

    a: Elements
    v: Elements
    w: Elements
    x: Elements
    products: Elements
    state: Array


@dataclass(frozen=True)
class Tridiagonal(SharedOut):
    """Reductions of ``batch`` matrices of n rows, which are scaled to magnitudes of about 1 at most."""

    @property
    def _side(self) -> int:
        return -(-self.n // self.lanes) * self.lanes

    @property
    def _parts(self) -> list[int]:
        numbers = [self._side**2, *[self._side + self.lanes] * 3, self.shares * (self._side + self.lanes)]
        return [*(count * self._size for count in numbers), STATE * 8]

    def _memory(self, memory: Value) -> _Memory:
        return self._laid_out(_Memory, memory)

    def write(
        self,
        function: Function,
        source: Elements,
        reflectors: Elements,
        diagonals: Elements,
        memory: Value,
        hand: Handed,
        rows: tuple[Number, Number] | None = None,
    ) -> None:
        """Write the loops.

        Args:
            reflectors: ``[b, n, n]``, row k is the vector of the reflector k, with 1 at k + 1; the last is zero.
            diagonals: ``[b, 3, n]``: the diagonal, the one beside it, the factors of the reflectors.
            memory: ``scratch`` bytes.
            hand: shares parts of the work out.
            rows: the first of the matrices and the one after the last; None for all.
        """
        n = self.n
        first, last = rows or (0, self.batch)
        zero = element_memory.constant(function, self.element, 0)
        with steps(function, first, last) as number:
            room, origin = self._memory(memory), times(number, n * n)
            work = Matrix(room.a, self._side)
            copy(function, Matrix(source.moved(origin), n), work, n, n)
            pad(function, work, (n, n), (self._side, self._side), self.element)
            fill(function, Matrix(room.v, 0), (0, 1), self._side, zero)
            fill(function, Matrix(room.w, 0), (0, 1), self._side, zero)
            lines = reflectors.moved(origin)
            found = Matrix(diagonals.moved(times(number, 3 * n)), n)
            with steps(function, 0, n - 1) as step:
                self._reflect(function, room, Elements(lines.pointer, self.element, lines.access), found, step)
                active = begin_step(room.state, step, n, self.shares, _ALONE)
                hand(lambda share: self._pass(function, memory, share), active)
                self._finish(function, room, found, step)
            self._update_row(function, room, function.index(n - 1))
            found.put(room.x.at(n - 1), D, n - 1)
            fill(function, found.below(E, n - 1), (0, 2), 1, zero)
            fill(function, Matrix(lines, n).below(n - 1), (0, 1), n, zero)

    def _update_row(self, function: Function, room: _Memory, row: Value) -> None:
        """x = a row, from its vector on."""
        lanes = self.lanes
        own = [function.spread(array.number(row), lanes) for array in (room.v, room.w)]
        line = room.a.moved(row * self._side)
        with steps(function, row & -lanes, self._side, lanes) as place:
            v, w = (single(array.at(place, lanes)) for array in (room.v, room.w))
            room.x.put(single(line.at(place, lanes)) - own[0] * w - own[1] * v, place)

    def _reflect(self, function: Function, room: _Memory, lines: Elements, found: Matrix, step: Value) -> None:
        """x = the reflector of a row, with zeros before it; it is stored, and with it the diagonals."""
        lanes, n = self.lanes, self.n
        self._update_row(function, room, step)
        found.put(room.x.at(step), D, step)
        beta, tau = make_reflector(function, room.x, step + 1, self._side, lanes)
        found.put(beta, E, step)
        found.put(tau, TAU, step)
        store_line(function, room.x, (step + 1) & -lanes, lines.moved(step * n), n)

    def _pass(self, function: Function, memory: Value, share: Share | None) -> None:
        """Update a share of the rows below the step's, and multiply them by x."""
        room, lanes, side = self._memory(memory), self.lanes, self._side
        begin = (room.state.at(STEP) + 1) & -lanes
        if share is None:
            room.state.put(function.index(1), ACTIVE)
        number = share.number if share is not None else function.index(0)
        products = room.products.moved(number * (side + lanes))
        zero = function.spread(single(element_memory.constant(function, self.element, 0)), lanes)
        with steps(function, begin, side, lanes) as place:
            products.put(zero, place)
        blocks = own_blocks(function, share, room.state, begin, side, lanes)
        with blocks as block, steps(function, block, block + lanes, self._rows) as row:
            rows = [row + place for place in range(self._rows)]
            self._rows_at(function, room, products, rows, block)

    def _rows_at(self, function: Function, room: _Memory, products: Elements, rows: list[Value], block: Value) -> None:
        """Some rows, from the block on the diagonal on."""
        lanes, side = self.lanes, self._side
        lines = [room.a.moved(row * side) for row in rows]
        own = [tuple(function.spread(array.number(row), lanes) for array in (room.v, room.w, room.x)) for row in rows]

        def columns(place: Value, sums: list[Value], *, crosses: bool) -> list[Value]:
            v, w, x = (single(array.at(place, lanes)) for array in (room.v, room.w, room.x))
            product = single(products.at(place, lanes)) if crosses else None
            found = []
            for line, (v_i, w_i, x_i), before in zip(lines, own, sums, strict=True):
                element = single(line.at(place, lanes)) - v_i * w - w_i * v
                line.put(element, place)
                found.append(before + element * x)
                product = product + element * x_i if product is not None else None
            if product is not None:
                products.put(product, place)
            return found

        zero = single(element_memory.constant(function, self.element, 0))
        sums = columns(block, [function.spread(zero, lanes)] * len(rows), crosses=False)
        sums = folded(
            function, block + lanes, side, sums, lambda place, state: columns(place, state, crosses=True), lanes
        )
        for row, vector in zip(rows, sums, strict=True):
            products.put(products.number(row) + total(vector), row)

    def _finish(self, function: Function, room: _Memory, found: Matrix, step: Value) -> None:
        """v = x, w = p - (tau / 2) (p^T v) v with p = tau a v."""
        lanes, side = self.lanes, self._side
        tau = function.spread(single(found.at(TAU, step)), lanes)
        begin = (step + 1) & -lanes
        active = room.state.at(ACTIVE)

        def product(place: Value) -> Value:
            return summed(room.products, place, lanes, side + lanes, self.shares, active) * tau

        def add(place: Value, state: list[Value]) -> list[Value]:
            value, x = product(place), single(room.x.at(place, lanes))
            room.v.put(x, place)
            room.w.put(value, place)
            return [state[0] + value * x]

        zero = single(element_memory.constant(function, self.element, 0))
        (sums,) = folded(function, begin, side, [function.spread(zero, lanes)], add, lanes)
        share = function.spread(total(sums), lanes) * tau * 0.5
        with steps(function, begin, side, lanes) as place:
            room.w.put(single(room.w.at(place, lanes)) - share * single(room.v.at(place, lanes)), place)
        with steps(function, begin, step + 1) as place:
            room.w.put(zero, place)
