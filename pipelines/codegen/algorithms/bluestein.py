"""Fourier transforms of any length as convolutions with a chirp.

``2 j k = j² + k² - (k - j)²``: the points times a chirp are convolved with another one, by two transforms of a length
with small factors. Source: L. Bluestein, "A linear filtering approach to the computation of discrete Fourier transform"
(1970); Van Loan, "Computational Frameworks for the FFT", 1992, 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hloforge.pipelines.codegen.algorithms.arrays import Elements
from hloforge.pipelines.codegen.algorithms.butterflies import Point, times as product
from hloforge.pipelines.codegen.algorithms.fft import FFT, ComplexArray
from hloforge.pipelines.codegen.algorithms.matrices import steps
from hloforge.pipelines.codegen.algorithms.places import divided, each, plus, times
from hloforge.pipelines.codegen.algorithms.scratch import Scratch, part
from hloforge.pipelines.codegen.elements import memory as element_memory
from hloforge.pipelines.codegen.elements.kinds import pair
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Number, Value
from hloforge.pipelines.decompose.fft_plan import roots

# Convolutions of fewer points are computed for several transforms at once, in the lanes of vectors.
_SHORT = 256


@dataclass(frozen=True)
class Bluestein:
    """Transforms of arrays ``[outer, n, inner]`` along n; the fields are those of ``FFT``."""

    outer: int
    n: int
    inner: int
    element: str
    inverse: bool = False
    scale: float | None = None
    vector_bytes: int = 64

    @cached_property
    def _length(self) -> int:
        """Of the convolution."""
        length = 2 * self.n - 1
        while not _is_smooth(length):
            length += 1
        return length

    @property
    def _columns(self) -> int:
        return self.outer * self.inner

    @property
    def _lanes(self) -> int:
        """Transforms at once."""
        if self._length >= _SHORT:
            return 1
        return max(1, min(self.vector_bytes // (element_memory.size(self.element) // 2), self._columns))

    @property
    def rows(self) -> int:
        """Parts that can be computed apart from each other."""
        return -(-self._columns // self._lanes)

    @cached_property
    def _transform(self) -> FFT:
        return FFT(1, self._length, self._lanes, self.element, vector_bytes=self.vector_bytes)

    def _plan(self) -> tuple[Scratch, list[int]]:
        """The convolution's input and output; the rest is the transform's."""
        plan, size = Scratch(), self._length * self._lanes * element_memory.size(self.element)
        return plan, [plan.take(size), plan.take(size)]

    @cached_property
    def scratch(self) -> int:
        """Bytes that a call works in."""
        return self._plan()[0].size + self._transform.scratch

    @cached_property
    def _tables(self) -> tuple[bytes, list[int]]:
        """The chirp, what the first transform's results are multiplied by, and the second's; the transform's table."""
        n, length = self.n, self._length
        cosines, sines = roots(np.arange(n, dtype=np.int64) ** 2 % (2 * n), 2 * n, -1)
        chirp = cosines + 1j * sines
        other = np.zeros(length, np.complex128)
        other[:n] = chirp.conj()
        other[length - n + 1 :] = chirp.conj()[:0:-1]
        last = np.zeros(length, np.complex128)
        last[:n] = chirp.conj()
        data, places = b"", []
        dtype = np.complex64 if self.element == "complex<f32>" else np.complex128
        for numbers in (chirp, np.concatenate([np.fft.fft(other) / length, last])):
            places.append(len(data))
            own = numbers.astype(dtype).tobytes()
            data += own + bytes(-len(own) % 64)
        return data + self._transform.table, [*places, len(data)]

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
        """Write the loops; the arguments are those of ``FFT.write``."""
        if not self._columns:
            return
        first, last = rows or (0, self.rows)
        plan, starts = self._plan()
        given, found = (Elements(part(memory, start), self.element) for start in starts)
        chirp, factors = (Elements(part(table, start), self.element) for start in self._tables[1][:2])
        rest, own_table = part(memory, plan.size), part(table, self._tables[1][2])
        scale = self.scale if self.scale is not None else 1 / self.n if self.inverse else 1.0
        with steps(function, first, last) as row:
            column: Number = times(row, self._lanes)
            if self._columns % self._lanes:
                column = function.index(column).minimum(self._columns - self._lanes)
            self._load(function, source, column, chirp, given)
            with steps(function, 0, 2) as turn:
                self._transform.write(function, given, found, rest, own_table)
                with each(function, 0, self._length) as place:
                    factor = pair(factors.at(plus(times(turn, self._length), place)))
                    with each(function, 0, self._lanes) as lane:
                        at = plus(times(place, self._lanes), lane)
                        real, imaginary = product(pair(found.at(at)), factor)
                        given.put((real, -imaginary), at)
            with each(function, 0, self.n) as place, each(function, 0, self._lanes) as lane:
                point = pair(given.at(plus(times(place, self._lanes), lane)))
                if scale != 1.0:
                    point = point[0] * scale, point[1] * scale
                target.put(self._swapped(point), self._place(column, lane, place))

    def _load(self, function: Function, source: ComplexArray, column: Number, chirp: Elements, given: Elements) -> None:
        """The points times the chirp, and zeros behind them."""
        with each(function, 0, self.n) as place:
            factor = pair(chirp.at(place))
            with each(function, 0, self._lanes) as lane:
                point = self._swapped(pair(source.at(self._place(column, lane, place))))
                given.put(product(point, factor), plus(times(place, self._lanes), lane))
        zero = element_memory.constant(function, self.element, 0)
        with each(function, self.n * self._lanes, self._length * self._lanes) as at:
            given.put(zero, at)

    def _swapped(self, point: Point) -> Point:
        """An inverse transform is a forward one of swapped parts."""
        return (point[1], point[0]) if self.inverse else point

    def _place(self, column: Number, lane: Number, place: Number) -> Number:
        """Where a point of a transform is."""
        outer, inner = divided(plus(column, lane), self.inner)
        return plus(times(outer, self.n * self.inner), times(place, self.inner), inner)


def _is_smooth(length: int) -> bool:
    for radix in (2, 3, 5):
        while length % radix == 0:
            length //= radix
    return length == 1


def complex_fft(
    outer: int,
    n: int,
    inner: int,
    element: str,
    *,
    inverse: bool = False,
    scale: float | None = None,
    vector_bytes: int = 64,
) -> FFT | Bluestein:
    """The best transform of arrays ``[outer, n, inner]`` along n."""
    kind = FFT if FFT.has_factors(n) else Bluestein
    return kind(outer, n, inner, element, inverse, scale, vector_bytes)
