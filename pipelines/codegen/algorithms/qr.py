"""QR factorizations by reflectors, in LAPACK's storage, and their orthogonal factors.

A panel of columns as wide as a vector is reflected column by column; then its reflectors are applied to the rest at
once, as ``1 - v t v^H``. t is not computed: its inverse is a triangle, ``1 / tau`` on the diagonal and ``v^H v`` above,
so that a product with it is a substitution. Of many columns a block of panels is reflected first, and its reflectors
are applied to the rest together, which is read and written once for all of them, by several workgroups. Source: Golub
& Van Loan, 5.2; LAPACK "geqrf", "larfg"; Puglisi (1992), "Modification of the Householder method based on the compact
WY representation".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

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
    subtract_product,
)
from hloforge.pipelines.codegen.algorithms.places import minus, plus, times
from hloforge.pipelines.codegen.algorithms.scratch import InParts
from hloforge.pipelines.codegen.algorithms.shared_out import Handed, alone, own_part
from hloforge.pipelines.codegen.algorithms.vectors import flattened, like, mapped, spread
from hloforge.pipelines.codegen.elements import memory as element_memory
from hloforge.pipelines.codegen.elements.comparisons import select
from hloforge.pipelines.codegen.elements.complex_numbers import divide, multiply
from hloforge.pipelines.codegen.elements.kinds import part_of, single
from hloforge.pipelines.codegen.lang.functions import Array, Function
from hloforge.pipelines.codegen.lang.values import I32, I64, Number, Value, vector_of
from hloforge.pipelines.codegen.nest_loops import Share

# Reflectors of a block at most.
_BLOCK = 32
# Of the block at work: its first row, and the first column that it is applied to.
_START, _COLUMN, _STATE = 0, 1, 8


@dataclass(frozen=True)
class Room(InParts):
    """Memory for a matrix of m rows and some columns, and for a panel of reflectors.

    Attributes:
        columns: of the matrix that is reflected.
        reflectors: of all panels; as many as there are lanes are in a panel if none are given.
    """

    m: int
    columns: int
    element: str
    vector_bytes: int
    reflectors: int = 0

    @cached_property
    def registers(self) -> Registers:
        return Registers.of(self.element, self.columns, self.vector_bytes)

    @property
    def side(self) -> int:
        return self.registers.padded(self.columns)

    @property
    def height(self) -> int:
        return self.registers.padded(self.m)

    @property
    def width(self) -> int:
        """Reflectors of a panel, or of a block of them: a multiple of the lanes."""
        blocks = -(-self.reflectors // _BLOCK)
        return self.registers.padded(-(-self.reflectors // blocks)) if blocks > 1 else self.registers.lanes

    @property
    def _shapes(self) -> list[tuple[int, int]]:
        width, pitch = self.width, self.registers.pitch(self.columns, self.element)
        return [(self.height, pitch), (self.height, width), (width, width), (width, pitch), (1, width)]

    @property
    def _parts(self) -> list[int]:
        sizes = [rows * columns * element_memory.size(self.element) for rows, columns in self._shapes]
        return [*sizes, _STATE * 8]

    def matrices(self, memory: Value) -> list[Matrix]:
        """The matrix, the panel's reflectors, their products with each other and with the rest, their taus."""
        pointers = zip(self._pointers(memory), self._shapes, strict=False)
        return [Matrix(Elements(pointer, self.element), columns) for pointer, (_, columns) in pointers]

    def state(self, memory: Value) -> Array:
        """Numbers that workgroups read."""
        return Array(self._pointers(memory)[-1], I64)


@dataclass(frozen=True)
class QR:
    """Factorizations ``q r = a`` of ``batch`` matrices of m rows and n columns.

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
        """How many reflectors there are."""
        return min(self.m, self.n)

    @property
    def _room(self) -> Room:
        return Room(self.m, self.n, self.element, self.vector_bytes, self.pivots)

    @property
    def scratch(self) -> int:
        """Bytes that a call works in."""
        return self._room.scratch

    def write(
        self,
        function: Function,
        source: Elements,
        factors: Elements,
        taus: Elements,
        memory: Value,
        rows: tuple[Number, Number] | None = None,
        hand: Handed = alone,
    ) -> None:
        """Write the loops.

        Args:
            factors: r, with the vectors of reflectors below its diagonal: ``[b, m, n]``.
            taus: their scalar factors: ``[b, min(m, n)]``.
            memory: ``scratch`` bytes.
            hand: shares parts of the work out.
            rows: the first of the matrices and the one after the last; None for all.
        """
        if not self.pivots:
            return
        first, last = rows or (0, self.batch)
        room = self._room
        lanes, matrices = room.registers.lanes, room.matrices(memory)
        work, own = matrices[0], matrices[4]
        with steps(function, first, last) as number:
            origin = times(number, self.m * self.n)
            copy(function, Matrix(source.moved(origin), self.n), work, self.m, self.n)
            pad(function, work, (self.m, self.n), (room.height, room.side), self.element)
            found = taus.moved(times(number, self.pivots))
            if room.width == lanes:
                with steps(function, 0, self.pivots, lanes) as start:
                    self._panel(function, matrices, found, start, room.side)
            else:
                with steps(function, 0, self.pivots, room.width) as block:
                    end = (block + room.width).minimum(room.registers.padded(self.pivots))
                    with steps(function, block, end, lanes) as start:
                        self._panel(function, matrices, found, start, end)
                    zero = element_memory.constant(function, self.element, 0)
                    fill(function, own, (0, 1), room.width, zero)
                    with steps(function, block, end.minimum(self.pivots)) as column:
                        own.put(found.at(column), 0, column - block)
                    panel = Panel(room, matrices, block, room.width)
                    panel.hand_out(function, work, end.minimum(self.pivots), end, memory, hand, adjoint=True)
            copy(function, work, Matrix(factors.moved(origin), self.n), self.m, self.n)

    def _panel(
        self, function: Function, matrices: Sequence[Matrix], found: Elements, start: Value, side: Number
    ) -> None:
        """Reflect the columns of a panel, and those after it up to ``side``."""
        room, lanes, (work, *_, own) = self._room, self._room.registers.lanes, matrices
        stop = (start + lanes).minimum(self.pivots)
        fill(function, own, (0, 1), lanes, element_memory.constant(function, self.element, 0))
        with steps(function, start, stop) as column:
            tau = _Column(self, room, work, start, column).write(function)
            found.put(tau, column)
            own.put(tau, 0, column - start)
        if isinstance(side, Value) or side > lanes:
            panel = Panel(room, matrices, start, lanes)
            panel.write(function, work, stop, (start + lanes, side), adjoint=True)


@dataclass(frozen=True)
class Orthogonal:
    """The first columns of products of reflectors, ``[b, m, columns]``.

    Attributes:
        reflectors: how many there are.
        element: f32, f64 or complex numbers of these.
        vector_bytes: of the processor's registers.
    """

    batch: int
    m: int
    reflectors: int
    columns: int
    element: str
    vector_bytes: int = 64

    @property
    def _room(self) -> Room:
        columns = max(self.columns, self.reflectors)
        return Room(self.m, columns, self.element, self.vector_bytes, self.reflectors)

    @property
    def scratch(self) -> int:
        """Bytes that a call works in."""
        return self._room.scratch

    def write(
        self,
        function: Function,
        factors: Elements,
        taus: Elements,
        target: Elements,
        memory: Value,
        rows: tuple[Number, Number] | None = None,
        hand: Handed = alone,
    ) -> None:
        """Write the loops.

        Args:
            factors: the vectors below the diagonal: ``[b, m, reflectors]``.
            taus: ``[b, reflectors]``.
            target: the product.
            memory: ``scratch`` bytes.
            hand: shares parts of the work out.
            rows: the first of the products and the one after the last; None for all.
        """
        if not self.m * self.columns:
            return
        first, last = rows or (0, self.batch)
        room = self._room
        width, matrices = room.width, room.matrices(memory)
        work, own = matrices[0], matrices[4]
        zero, one = (element_memory.constant(function, self.element, number) for number in (0, 1))
        with steps(function, first, last) as number:
            fill(function, work, (0, room.height), room.side, zero)
            with steps(function, 0, min(self.m, self.columns)) as place:
                work.put(one, place, place)
            source = Matrix(factors.moved(times(number, self.m * self.reflectors)), self.reflectors)
            given = taus.moved(times(number, self.reflectors))
            panels = -(-self.reflectors // width)
            with steps(function, 0, panels) as number_of:
                start = ((number_of * -1) + (panels - 1)) * width
                stop = (start + width).minimum(self.reflectors)
                fill(function, own, (0, 1), width, zero)
                with steps(function, start, stop) as column:
                    own.put(given.at(column), 0, column - start)
                panel = Panel(room, matrices, start, width)
                panel.hand_out(function, source, stop, start, memory, hand, adjoint=False)
            into = Matrix(target.moved(times(number, self.m * self.columns)), self.columns)
            copy(function, work, into, self.m, self.columns)


@dataclass(frozen=True)
class Panel:
    """The reflectors of a panel, which begins in the row and column ``start``.

    Attributes:
        width: how many they are, a multiple of the lanes; factors of those that are not there are zero.
    """

    room: Room
    matrices: Sequence[Matrix]
    start: Value
    width: int

    def write(
        self, function: Function, source: Matrix, stop: Value, columns: tuple[Number, Number], *, adjoint: bool
    ) -> None:
        """Apply them to the matrix.

        Args:
            source: holds their vectors.
            stop: the number after the last reflector's.
            columns: the first column that they are applied to and the one after the last, multiples of the lanes.
            adjoint: whether the adjoint of their product is applied.
        """
        self._vectors(function, source, stop)
        self._multiply(function)
        self._apply(function, columns, adjoint=adjoint)

    def hand_out(
        self,
        function: Function,
        source: Matrix,
        stop: Value,
        column: Value,
        memory: Value,
        hand: Handed,
        *,
        adjoint: bool,
    ) -> None:
        """The same, for all columns from one on, which are shared out.

        Args:
            memory: of the room.
        """
        room = self.room
        self._vectors(function, source, stop)
        self._multiply(function)
        state = room.state(memory)
        state.put(self.start, _START)
        state.put(column, _COLUMN)

        def part(share: Share | None) -> None:
            numbers = room.state(memory)
            columns = own_part(share, numbers.at(_COLUMN), room.side, room.registers.lanes)
            own = Panel(room, room.matrices(memory), numbers.at(_START), self.width)
            own._apply(function, columns, adjoint=adjoint)

        hand(part)

    def write_whole(self, function: Function, source: Matrix, count: Value) -> None:
        """Apply their product to all columns.

        Args:
            source: their vectors by columns, whole, with zeros before them.
            count: of reflectors.
        """
        room, vectors = self.room, self.matrices[1]
        zero = element_memory.constant(function, room.element, 0)
        with steps(function, self.start, room.height) as row:
            for column in range(self.width):
                vectors.put(zero, row, column)
        with steps(function, 0, count) as place, steps(function, self.start, room.m) as row:
            vectors.put(source.at(row, place), row, place)
        self._multiply(function)
        self._apply(function, (0, room.side), adjoint=False)

    def _multiply(self, function: Function) -> None:
        """Their products with each other, which are negative."""
        room, (_, vectors, products, _, _), own = self.room, self.matrices, (0, self.width)
        fill(function, products, own, self.width, element_memory.constant(function, room.element, 0))
        limits = own, own, (self.start, room.height)
        subtract_product(function, products, vectors.adjoint(), vectors, *limits, room.registers, room.height)

    def _apply(self, function: Function, columns: tuple[Number, Number], *, adjoint: bool) -> None:
        room, registers, own, limits = self.room, self.room.registers, (0, self.width), (self.start, self.room.height)
        work, vectors, _, rest, _ = self.matrices
        first, last = columns
        fill(
            function, rest.below(0, first), own, minus(last, first), element_memory.constant(function, room.element, 0)
        )
        # They are negative.
        subtract_product(function, rest, vectors.adjoint(), work, own, columns, limits, registers, room.height)
        self._substitute(function, columns, adjoint)
        subtract_product(function, work, vectors, rest, limits, columns, own, registers, self.width)

    def _vectors(self, function: Function, source: Matrix, stop: Value) -> None:
        """Copy the vectors, with their ones and zeros."""
        room, vectors = self.room, self.matrices[1]
        zero, one = (element_memory.constant(function, room.element, number) for number in (0, 1))
        fill(function, vectors, (self.start, room.height), self.width, zero)
        with steps(function, self.start, room.m) as row:
            with steps(function, self.start, stop.minimum(row)) as column:
                vectors.put(source.at(row, column), row, column - self.start)
            with function.if_(row < stop):
                vectors.put(one, row, row - self.start)

    def _substitute(self, function: Function, columns: tuple[Number, Number], adjoint: bool) -> None:
        """Multiply the products with the rest by t, or by its adjoint."""
        _, _, products, rest, taus = self.matrices
        lanes, width = self.room.registers.lanes, self.width
        if not adjoint:
            products, rest, taus = products.reversed(width, width), rest.reversed_rows(width), taus.reversed(1, width)

        def strip(column: Value, vectors: int) -> None:
            own = [plus(column, place * lanes) for place in range(vectors)]
            with steps(function, 0, width) as row:
                (found,) = minus_products(
                    function,
                    [[rest.at(row, at, lanes) for at in own]],
                    (0, row),
                    lambda _, number: products.at(row, number),
                    lambda number, place: rest.at(number, own[place], lanes),
                    most=width,
                )
                tau = taus.at(0, row)
                factor = spread(mapped(conjugate(tau) if adjoint else tau, lambda value: -value), lanes)
                for at, element in zip(own, found, strict=True):
                    rest.put(_product(element, factor), row, at)

        each_columns(function, columns, self.room.registers, strip)


@dataclass(frozen=True)
class _Column:
    """The reflector of a column, applied to its panel, which begins in the row and column ``start``."""

    plan: QR
    room: Room
    work: Matrix
    start: Value
    column: Value

    def write(self, function: Function) -> Element:
        """Write the code; the scalar factor."""
        work, column, lanes = self.work, self.column, self.room.registers.lanes
        scale = self._scale(function, column - self.start)
        inverse = 1.0 / scale
        sums, rest = self._products(function, inverse)
        row = work.at(column, self.start, lanes)
        # All beside the scale: numbers that underflow would lose digits.
        alpha = scaled(work.at(column, column), inverse)
        real = _real(alpha)
        square = rest
        for value in flattened([alpha]):
            square = square + value * value
        beta = -square.call("sqrt").call("copysign", real)
        is_plain = rest.equals(0.0)
        if not isinstance(alpha, Value):
            is_plain = is_plain & alpha[1].equals(0.0)
        # v = (x / scale) factor, factor = 1 / (alpha - beta), tau = (beta - alpha) / beta.
        factor: Element = 1.0 / (real - beta)
        tau: Element = (beta - real) / beta
        if not isinstance(alpha, Value):
            factor = divide((real.like(1.0), real.like(0.0)), (real - beta, alpha[1]))
            tau = (beta - real) / beta, -alpha[1] / beta
        zero = element_memory.constant(function, self.room.element, 0)
        tau, factor = select(is_plain, zero, tau), select(is_plain, zero, factor)
        beta = beta * scale
        first = beta if isinstance(alpha, Value) else (beta, beta.like(0.0))
        first = select(is_plain, work.at(column, column), first)
        # What v has to do with each column, times the scalar factor.
        products = _product(spread(conjugate(factor), lanes), sums)
        products = _sum(row, products)
        products = _product(spread(conjugate(tau), lanes), products)
        self._apply(function, inverse, factor, first, row, products)
        return tau

    def _scale(self, function: Function, lane: Value) -> Value:
        """The largest magnitude of the column's parts, or a number near it whose inverse does not underflow."""
        lanes, work = self.room.registers.lanes, self.work

        def turn(row: Value, state: list[Value]) -> list[Value]:
            found = state[0]
            for value in flattened([work.at(row, self.start, lanes)]):
                size = value.call("fabs")
                found = (size > found).where(size, found)
            return [found]

        kind = vector_of(_kind(self.room.element), lanes)
        (largest,) = folded(function, self.column, self.plan.m, [function.constant(0, kind)], turn)
        dtype = "float32" if part_of(self.room.element) == "f32" else "float64"
        least = float(np.finfo(dtype).tiny) * 4
        found = function.extract(largest, lane)
        found = (found > least).where(found, least)
        return (found < 1 / least).where(found, 1 / least)

    def _products(self, function: Function, inverse: Value) -> tuple[Element, Value]:
        """What the column below the diagonal, times ``inverse``, has to do with the panel's columns; its square."""
        lanes, work, column = self.room.registers.lanes, self.work, self.column
        zero = spread(element_memory.constant(function, self.room.element, 0), lanes)
        forms = [zero, inverse.like(0.0)]

        def join(row: Value, total: Element, square: Value) -> list[Element]:
            element = scaled(conjugate(work.at(row, column)), -inverse)
            for value in flattened([element]):
                square = square + value * value
            return [minus_product(total, spread(element, lanes), work.at(row, self.start, lanes)), square]

        def turn(row: Value, values: list[Value]) -> list[Value]:
            totals = like(values, forms * ROWS)
            pairs = zip(totals[::2], totals[1::2], strict=True)
            return flattened(
                [
                    part
                    for place, (total, square) in enumerate(pairs)
                    for part in join(row + place, total, single(square))
                ]
            )

        def single_row(row: Value, values: list[Value]) -> list[Value]:
            total, square = like(values, forms)
            return flattened(join(row, total, single(square)))

        first = column + 1
        whole = first + ((function.index(self.plan.m) - first) & -ROWS)
        totals = like(folded(function, first, whole, flattened(forms * ROWS), turn, ROWS), forms * ROWS)
        total, square = totals[0], single(totals[1])
        for other, more in zip(totals[2::2], totals[3::2], strict=True):
            total, square = _sum(total, other), square + single(more)
        found = like(folded(function, whole, self.plan.m, flattened([total, square]), single_row), forms)
        return found[0], single(found[1])

    def _apply(
        self, function: Function, inverse: Value, factor: Element, first: Element, row: Element, products: Element
    ) -> None:
        lanes, work, column = self.room.registers.lanes, self.work, self.column
        places = Value(function, vector_of(I32, lanes), f"<{', '.join(f'i32 {lane}' for lane in range(lanes))}>")
        here = function.spread((column - self.start).as_(I32), lanes)
        is_right, is_here = places > here, places.equals(here)
        minus = mapped(products, lambda value: -value)
        work.put(select(is_here, spread(first, lanes), select(is_right, _sum(row, minus), row)), column, self.start)
        with steps(function, column + 1, self.plan.m) as at:
            own = spread(_product(scaled(work.at(at, column), inverse), factor), lanes)
            before = work.at(at, self.start, lanes)
            after = select(is_right, minus_product(before, own, products), before)
            work.put(select(is_here, own, after), at, self.start)


def _kind(element: str) -> str:
    return "float" if part_of(element) == "f32" else "double"


def _real(element: Element) -> Value:
    return element if isinstance(element, Value) else element[0]


def _sum(one: Element, other: Element) -> Element:
    if isinstance(one, Value):
        return one + single(other)
    assert not isinstance(other, Value)
    return one[0] + other[0], one[1] + other[1]


def _product(one: Element, other: Element) -> Element:
    if isinstance(one, Value):
        return one * single(other)
    assert not isinstance(other, Value)
    return multiply(one, other)
