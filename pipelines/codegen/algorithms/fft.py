"""Fourier transforms of complex numbers along one dimension.

Source: StableHLO spec "fft", XLA "Fft". Lanes of vectors hold several transforms: of columns that lie beside each other
in memory, or of rows, which are transposed on their way in and out. A row of many points is a rectangle, of which the
columns are transformed and then the rows, so that what is worked in fits the caches. Lengths with a large prime factor
are convolutions (``bluestein.py``). Source: Van Loan, "Computational Frameworks for the FFT", 1992, 3.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from hloforge.pipelines.codegen.algorithms.arrays import Element
from hloforge.pipelines.codegen.algorithms.butterflies import Point, times as product
from hloforge.pipelines.codegen.algorithms.matrices import steps, turned
from hloforge.pipelines.codegen.algorithms.places import divided, plus, times
from hloforge.pipelines.codegen.algorithms.scratch import InParts, part
from hloforge.pipelines.codegen.algorithms.stockham import Points, Stockham, radices
from hloforge.pipelines.codegen.elements.kinds import pair
from hloforge.pipelines.codegen.kernel_program import ENTRY
from hloforge.pipelines.codegen.lang.functions import Array, Function
from hloforge.pipelines.codegen.lang.outlining import Cut, outline
from hloforge.pipelines.codegen.lang.values import Number, Value
from hloforge.pipelines.decompose.fft_plan import roots

# Rows of so many points are rectangles.
_RECTANGLE = 64
# The side of a square that is transposed in registers.
_SQUARE = 8


class ComplexArray(Protocol):
    """Complex numbers in memory, whichever way their parts lie."""

    def at(self, place: Number, lanes: int = 0) -> Element: ...

    def put(self, value: Element, place: Number) -> None: ...

    def moved(self, place: Number) -> ComplexArray: ...

    @property
    def addresses(self) -> frozenset[str]: ...


@dataclass(frozen=True)
class Split:
    """Complex numbers whose real and imaginary parts are two arrays."""

    real: Array
    imaginary: Array

    def at(self, place: Number, lanes: int = 0) -> Element:
        return self.real.at(place, lanes), self.imaginary.at(place, lanes)

    def put(self, value: Element, place: Number) -> None:
        real, imaginary = pair(value)
        self.real.put(real, place)
        self.imaginary.put(imaginary, place)

    def moved(self, place: Number) -> Split:
        """The numbers from a place on."""
        parts = (self.real, self.imaginary)
        real, imaginary = (Array(own.pointer.function.offset(own.pointer, own.kind, place), own.kind) for own in parts)
        return Split(real, imaginary)

    @property
    def addresses(self) -> frozenset[str]:
        """The names of its pointers."""
        return frozenset((self.real.pointer.text, self.imaginary.pointer.text))


@dataclass(frozen=True)
class _Columns:
    """Some of many columns of points.

    Attributes:
        start: the place of the first point of the first column.
        point, column: steps from one point, and from one column, to the next.
        count: how many columns; as many as there are lanes, or fewer where there are fewer at all.
    """

    array: ComplexArray
    start: Number
    point: int
    column: int
    count: int

    def place(self, point: Number, column: Number) -> Number:
        return plus(self.start, times(point, self.point), times(column, self.column))

    def at_start(self) -> _Columns:
        """The same columns of an array that begins with them."""
        return replace(self, array=self.array.moved(self.start), start=0)


@dataclass(frozen=True)
class FFT(InParts):
    """Transforms of arrays ``[outer, n, inner]`` along n.

    Attributes:
        element: complex<f32> or complex<f64>.
        inverse: whether the sign of the exponent is positive.
        scale: what the results are multiplied by; None for 1 / n of an inverse transform, else 1.
        vector_bytes: of the processor's registers.
    """

    outer: int
    n: int
    inner: int
    element: str
    inverse: bool = False
    scale: float | None = None
    vector_bytes: int = 64

    @staticmethod
    def has_factors(n: int) -> bool:
        """Whether all prime factors of a length are small."""
        return radices(n) is not None

    @property
    def kind(self) -> str:
        """LLVM's type of a part."""
        return "float" if self.element == "complex<f32>" else "double"

    @property
    def _most(self) -> int:
        return self.vector_bytes // (4 if self.kind == "float" else 8)

    @cached_property
    def _sides(self) -> tuple[int, int]:
        """The sides of a row's rectangle; (n, 1) if it is none."""
        if self.inner > 1 or self.n < _RECTANGLE:
            return self.n, 1
        pairs = [(self.n // side, side) for side in range(4, int(self.n**0.5) + 1) if self.n % side == 0]
        fitting = [sides for sides in pairs if sides[1] >= self._most] or pairs
        return fitting[-1] if fitting else (self.n, 1)

    @cached_property
    def _lanes(self) -> int:
        if self._sides[1] > 1:
            return max(4, min(self._most, 1 << (self._sides[1].bit_length() - 1)))
        columns = max(1, self.inner if self.inner > 1 else self.outer)
        return max(4, min(self._most, 1 << (columns.bit_length() - 1)))

    @property
    def rows(self) -> int:
        """Parts that can be computed apart from each other."""
        if self._sides[1] > 1:
            return self.outer
        return self.outer * self._blocks(self.inner) if self.inner > 1 else self._blocks(self.outer)

    def _blocks(self, columns: int) -> int:
        return -(-columns // self._lanes)

    @property
    def _transforms(self) -> list[Stockham]:
        """Along the sides: of the columns, then of the rows."""
        first, second = self._sides
        return [Stockham(side, self._lanes, self.kind) for side in ((first, second) if second > 1 else (first,))]

    @property
    def _parts(self) -> list[int]:
        """Two buffers, and a rectangle's real and imaginary parts."""
        buffer = max(transform.buffer for transform in self._transforms)
        rectangle = self.n * (4 if self.kind == "float" else 8) if self._sides[1] > 1 else 0
        return [buffer, buffer, rectangle, rectangle]

    @cached_property
    def _tables(self) -> tuple[bytes, list[int]]:
        """The tables of the transforms, turns of a rectangle's points by lane and by block."""
        lanes, (first, second), parts = self._lanes, self._sides, []
        for transform in self._transforms:
            found = [_interleaved(*roots(numbers, rest, -1)) for numbers, rest in transform.table()]
            parts.append(np.concatenate(found) if found else np.zeros(0))
        if second > 1:
            rows = np.arange(first)[:, None]
            by_lane = roots(rows * np.arange(lanes), self.n, -1)
            parts.append(np.concatenate(by_lane, axis=1).ravel())
            starts = [min(block * lanes, second - lanes) for block in range(self._blocks(second))]
            by_block = roots(np.array(starts)[:, None] * np.arange(first), self.n, -1)
            parts.append(_interleaved(*(table.ravel() for table in by_block)))
        data, places = b"", []
        for numbers in parts:
            places.append(len(data))
            own = numbers.astype(np.float32 if self.kind == "float" else np.float64).tobytes()
            data += own + bytes(-len(own) % 64)
        return data, places

    @property
    def table(self) -> bytes:
        """Constants that a call reads."""
        return self._tables[0]

    def write(
        self,
        function: Function,
        source: ComplexArray,
        target: ComplexArray,
        memory: Value,
        table: Value,
        rows: tuple[Number, Number] | None = None,
    ) -> None:
        """Write the loops.

        Args:
            memory: ``scratch`` bytes.
            table: to the bytes of ``table``.
            rows: the first of ``rows`` and the one after the last; None for all.
        """
        if not self.outer * self.n * self.inner:
            return
        pointers = self._pointers(memory)
        tables = [part(table, place) for place in self._tables[1]]
        first, last = rows or (0, self.rows)
        with steps(function, first, last) as row:
            if self._sides[1] > 1:
                self._rectangle(function, source, target, pointers, tables, times(row, self.n))
            else:
                self._block(function, source, target, pointers, tables, row)

    def _block(
        self,
        function: Function,
        source: ComplexArray,
        target: ComplexArray,
        pointers: Sequence[Value],
        tables: Sequence[Value],
        block: Value,
    ) -> None:
        """Transform as many columns, or rows, as there are lanes."""
        n, inner = self.n, self.inner
        if inner > 1:
            outer, number = divided(block, self._blocks(inner))
            column, count = self._start(function, number, inner)
            place, steps_ = plus(times(outer, n * inner), column), (inner, 1)
        else:
            column, count = self._start(function, block, self.outer)
            place, steps_ = times(column, n), (1, n)
        own, into = (_Columns(array, place, *steps_, count) for array in (source, target))
        (transform,) = self._transforms
        self._load(function, own, transform, pointers[0], swap=self.inverse)
        found, _ = transform.write(function, pointers[0], pointers[1], tables[0])
        self._store(function, found, into, transform)

    def _start(self, function: Function, block: Number, columns: int) -> tuple[Number, int]:
        """The first column of a block, and how many it has; the last block overlaps the one before it."""
        if columns <= self._lanes:
            return 0, columns
        start = times(block, self._lanes)
        if columns % self._lanes:
            start = function.index(start).minimum(columns - self._lanes)
        return start, self._lanes

    def _rectangle(
        self,
        function: Function,
        source: ComplexArray,
        target: ComplexArray,
        pointers: Sequence[Value],
        tables: Sequence[Value],
        origin: Number,
    ) -> None:
        """Transform a row as a rectangle: its columns, then its rows."""
        first, second = self._sides
        lanes, (along, across) = self._lanes, self._transforms
        between = Split(Array(pointers[2], self.kind), Array(pointers[3], self.kind))
        with steps(function, 0, self._blocks(second)) as block:
            column, count = self._start(function, block, second)
            self._load(
                function,
                _Columns(source, plus(origin, column), second, 1, count),
                along,
                pointers[0],
                swap=self.inverse,
            )
            found, _ = along.write(function, pointers[0], pointers[1], tables[0])
            by_lane = Points(tables[2], self.kind, lanes)
            by_block = Array(function.offset(tables[3], self.kind, times(block, 2 * first)), self.kind)
            with steps(function, 0, first) as place:
                twice = place * 2
                own = [function.spread(by_block.at(plus(twice, number)), lanes) for number in (0, 1)]
                turn = product(by_lane.at(place), (own[0], own[1]))
                between.put(product(found.at(place), turn), plus(times(place, second), column))
        with steps(function, 0, self._blocks(first)) as block:
            row, count = self._start(function, block, first)
            self._load(function, _Columns(between, times(row, second), 1, second, count), across, pointers[0])
            found, _ = across.write(function, pointers[0], pointers[1], tables[1])
            self._store(function, found, _Columns(target, plus(origin, row), first, 1, count), across)

    def _load(
        self, function: Function, columns: _Columns, transform: Stockham, buffer: Value, *, swap: bool = False
    ) -> None:
        """Points of some columns into a buffer; an inverse transform is a forward one of swapped parts."""
        points, array = Points(buffer, self.kind, self._lanes), columns.array

        def read(place: Number, lanes: int) -> Point:
            real, imaginary = pair(array.at(place, lanes))
            return (imaginary, real) if swap else (real, imaginary)

        if columns.count < self._lanes or (columns.column != 1 and transform.length < self._square):
            with steps(function, 0, transform.length) as place, steps(function, 0, columns.count) as column:
                points.put(read(columns.place(place, column), 0), place, column)
        elif columns.column == 1:
            with steps(function, 0, transform.length) as place:
                points.put(read(columns.place(place, 0), self._lanes), place)
        else:
            columns = columns.at_start()
            array = columns.array
            with self._squares_apart(function, transform.length, array, buffer) as (first, lane):
                own = range(self._square)
                found = [read(columns.place(first, plus(lane, number)), self._square) for number in own]
                for number, point in enumerate(_turned(found)):
                    points.put(point, plus(first, number), lane)

    def _store(self, function: Function, points: Points, columns: _Columns, transform: Stockham) -> None:
        """Results of some columns from a buffer, scaled."""
        array, length = columns.array, transform.length
        scale = self.scale if self.scale is not None else 1 / self.n if self.inverse else 1.0

        def write(point: Point, place: Number) -> None:
            real, imaginary = (value if scale == 1.0 else value * scale for value in point)
            array.put((imaginary, real) if self.inverse else (real, imaginary), place)

        if columns.count == self._lanes and columns.column == 1:
            with steps(function, 0, length) as place:
                write(points.at(place), columns.place(place, 0))
        elif columns.count < self._lanes or length < self._square:
            with steps(function, 0, length) as place, steps(function, 0, columns.count) as column:
                write(points.at(place, column, 0), columns.place(place, column))
        else:
            columns = columns.at_start()
            array = columns.array
            with self._squares_apart(function, length, array, points.pointer) as (first, lane):
                own = range(self._square)
                found = _turned([points.at(plus(first, number), lane, self._square) for number in own])
                for number, point in enumerate(found):
                    write(point, columns.place(first, plus(lane, number)))

    @contextmanager
    def _squares_apart(
        self, function: Function, length: int, array: ComplexArray, buffer: Value
    ) -> Iterator[tuple[Number, Number]]:
        """Loops over squares as a function of its own, one for all transforms of a kernel that move points alike."""
        begin = Cut(len(function.lines), function.block)
        with _squares(function, length, self._lanes, self._square) as places:
            yield places
        outline(function, [begin], ENTRY, has_vectors=True, apart={buffer.text, *array.addresses})

    @property
    def _square(self) -> int:
        return min(_SQUARE, self._lanes)


@contextmanager
def _squares(function: Function, length: int, lanes: int, size: int) -> Iterator[tuple[Number, Number]]:
    """Loops over squares of points and lanes; the last ones overlap those before."""
    with steps(function, 0, lanes, size) as lane, steps(function, 0, length, size) as place:
        yield (place.minimum(length - size) if length % size else place), lane


def _turned(points: Sequence[Point]) -> list[Point]:
    found = [turned([point[number] for point in points]) for number in (0, 1)]
    return [(pair_[0], pair_[1]) for pair_ in zip(*found, strict=True)]


def _interleaved(cosines: Any, sines: Any) -> Any:
    return np.stack([cosines, sines], axis=-1).ravel()
