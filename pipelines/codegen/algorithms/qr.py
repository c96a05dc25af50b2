"""QR factorizations by reflectors, in LAPACK's storage, and their orthogonal factors.

A panel of columns as wide as a vector is reflected column by column; then its reflectors are applied to the rest at
once, as ``1 - v t v^H``. t is not computed: its inverse is a triangle, ``1 / tau`` on the diagonal and ``v^H v`` above,
so that a product with it is a substitution. Source: Golub & Van Loan, 5.2; LAPACK "geqrf", "larfg"; Puglisi (1992),
"Modification of the Householder method based on the compact WY representation".
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
    scaled,
    steps,
    subtract_product,
)
from hloforge.pipelines.codegen.algorithms.places import plus, times
from hloforge.pipelines.codegen.algorithms.scratch import InParts
from hloforge.pipelines.codegen.algorithms.vectors import flattened, like, mapped, spread
from hloforge.pipelines.codegen.elements import memory as element_memory
from hloforge.pipelines.codegen.elements.comparisons import select
from hloforge.pipelines.codegen.elements.complex_numbers import divide, multiply
from hloforge.pipelines.codegen.elements.kinds import part_of, single
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I32, Number, Value, vector_of


@dataclass(frozen=True)
class Room(InParts):
    """Memory for a matrix of m rows and some columns, and for a panel of reflectors.

    Attributes:
        columns: of the matrix that is reflected.
    """

    m: int
    columns: int
    element: str
    vector_bytes: int

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
    def _shapes(self) -> list[tuple[int, int]]:
        lanes = self.registers.lanes
        return [(self.height, self.side), (self.height, lanes), (lanes, lanes), (lanes, self.side), (1, lanes)]

    @property
    def _parts(self) -> list[int]:
        return [rows * columns * element_memory.size(self.element) for rows, columns in self._shapes]

    def matrices(self, memory: Value) -> list[Matrix]:
        """The matrix, the panel's reflectors, their products with each other and with the rest, their taus."""
        pointers = zip(self._pointers(memory), self._shapes, strict=True)
        return [Matrix(Elements(pointer, self.element), columns) for pointer, (_, columns) in pointers]


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
        return Room(self.m, self.n, self.element, self.vector_bytes)

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
    ) -> None:
        """Write the loops.

        Args:
            factors: r, with the vectors of reflectors below its diagonal: ``[b, m, n]``.
            taus: their scalar factors: ``[b, min(m, n)]``.
            memory: ``scratch`` bytes.
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
            _load(function, Matrix(source.moved(origin), self.n), work, (self.m, self.n), room)
            found = taus.moved(times(number, self.pivots))
            with steps(function, 0, self.pivots, lanes) as start:
                stop = (start + lanes).minimum(self.pivots)
                fill(function, own, (0, 1), lanes, element_memory.constant(function, self.element, 0))
                with steps(function, start, stop) as column:
                    tau = _Column(self, room, work, start, column).write(function)
                    found.put(tau, column)
                    own.put(tau, 0, column - start)
                if room.side > lanes:
                    Panel(room, matrices, start).write(function, work, stop, start + lanes, adjoint=True)
            copy(function, work, Matrix(factors.moved(origin), self.n), self.m, self.n)


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
        return Room(self.m, max(self.columns, self.reflectors), self.element, self.vector_bytes)

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
    ) -> None:
        """Write the loops.

        Args:
            factors: the vectors below the diagonal: ``[b, m, reflectors]``.
            taus: ``[b, reflectors]``.
            target: the product.
            memory: ``scratch`` bytes.
            rows: the first of the products and the one after the last; None for all.
        """
        if not self.m * self.columns:
            return
        first, last = rows or (0, self.batch)
        room = self._room
        lanes, matrices = room.registers.lanes, room.matrices(memory)
        work, own = matrices[0], matrices[4]
        zero, one = (element_memory.constant(function, self.element, number) for number in (0, 1))
        with steps(function, first, last) as number:
            fill(function, work, (0, room.height), room.side, zero)
            with steps(function, 0, min(self.m, self.columns)) as place:
                work.put(one, place, place)
            source = Matrix(factors.moved(times(number, self.m * self.reflectors)), self.reflectors)
            given = taus.moved(times(number, self.reflectors))
            panels = -(-self.reflectors // lanes)
            with steps(function, 0, panels) as panel:
                start = ((panel * -1) + (panels - 1)) * lanes
                stop = (start + lanes).minimum(self.reflectors)
                fill(function, own, (0, 1), lanes, zero)
                with steps(function, start, stop) as column:
                    own.put(given.at(column), 0, column - start)
                Panel(room, matrices, start).write(function, source, stop, start, adjoint=False)
            into = Matrix(target.moved(times(number, self.m * self.columns)), self.columns)
            copy(function, work, into, self.m, self.columns)


def _load(function: Function, source: Matrix, work: Matrix, shape: tuple[int, int], room: Room) -> None:
    """Copy a matrix; zeros follow its rows and columns."""
    m, n = shape
    zero = element_memory.constant(function, room.element, 0)
    copy(function, source, work, m, n)
    if room.side > n:
        fill(function, work.below(0, n), (0, m), room.side - n, zero)
    if room.height > m:
        fill(function, work, (m, room.height), room.side, zero)


@dataclass(frozen=True)
class Panel:
    """The reflectors of a panel, which begins in the row and column ``start``."""

    room: Room
    matrices: Sequence[Matrix]
    start: Value

    def write(self, function: Function, source: Matrix, stop: Value, column: Value, *, adjoint: bool) -> None:
        """Apply them to the matrix.

        Args:
            source: holds their vectors.
            stop: the number after the last reflector's.
            column: the first column that they are applied to, a multiple of the lanes.
            adjoint: whether the adjoint of their product is applied.
        """
        self._vectors(function, source, stop)
        self._apply(function, column, adjoint=adjoint)

    def write_whole(self, function: Function, source: Matrix, count: Value) -> None:
        """Apply their product to all columns.

        Args:
            source: their vectors by columns, whole, with zeros before them.
            count: of reflectors.
        """
        room, vectors, lanes = self.room, self.matrices[1], self.room.registers.lanes
        zero = element_memory.constant(function, room.element, 0)
        with steps(function, self.start, room.height) as row:
            for column in range(lanes):
                vectors.put(zero, row, column)
        with steps(function, 0, count) as place, steps(function, self.start, room.m) as row:
            vectors.put(source.at(row, place), row, place)
        self._apply(function, 0, adjoint=False)

    def _apply(self, function: Function, column: Number, *, adjoint: bool) -> None:
        room, registers, start = self.room, self.room.registers, self.start
        work, vectors, products, rest, _ = self.matrices
        lanes, limits = registers.lanes, (start, room.height)
        zero = element_memory.constant(function, room.element, 0)
        fill(function, products, (0, lanes), lanes, zero)
        fill(function, rest, (0, lanes), room.side, zero)
        # Both are negative.
        subtract_product(
            function, products, vectors.adjoint(), vectors, (0, lanes), (0, lanes), limits, registers, room.height
        )
        columns = column, room.side
        subtract_product(function, rest, vectors.adjoint(), work, (0, lanes), columns, limits, registers, room.height)
        self._substitute(function, columns, adjoint)
        subtract_product(function, work, vectors, rest, limits, columns, (0, lanes), registers, lanes)

    def _vectors(self, function: Function, source: Matrix, stop: Value) -> None:
        """Copy the vectors, with their ones and zeros."""
        room, vectors, lanes = self.room, self.matrices[1], self.room.registers.lanes
        zero, one = (element_memory.constant(function, room.element, number) for number in (0, 1))
        fill(function, vectors, (self.start, room.height), lanes, zero)
        with steps(function, self.start, room.m) as row:
            with steps(function, self.start, stop.minimum(row)) as column:
                vectors.put(source.at(row, column), row, column - self.start)
            with function.if_(row < stop):
                vectors.put(one, row, row - self.start)

    def _substitute(self, function: Function, columns: tuple[Number, Number], adjoint: bool) -> None:
        """Multiply the products with the rest by t, or by its adjoint."""
        _, _, products, rest, taus = self.matrices
        lanes = self.room.registers.lanes
        if not adjoint:
            products, rest, taus = products.reversed(lanes, lanes), rest.reversed_rows(lanes), taus.reversed(1, lanes)

        def strip(column: Value, vectors: int) -> None:
            own = [plus(column, place * lanes) for place in range(vectors)]
            with steps(function, 0, lanes) as row:
                (found,) = minus_products(
                    function,
                    [[rest.at(row, at, lanes) for at in own]],
                    (0, row),
                    lambda _, number: products.at(row, number),
                    lambda number, place: rest.at(number, own[place], lanes),
                    most=lanes,
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
        total, square = like(folded(function, whole, self.plan.m, flattened([total, square]), single_row), forms)
        return total, single(square)

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
