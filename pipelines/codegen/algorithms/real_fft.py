"""Fourier transforms of real numbers along the last dimension, and back.

Source: StableHLO spec "fft" (RFFT, IRFFT). An even number of points is transformed as half as many complex ones, which
are taken apart afterwards, or put together before; an odd number as complex ones. Source: Van Loan, "Computational
Frameworks for the FFT", 1992, 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hloforge.pipelines.codegen.algorithms.arrays import Element, Elements
from hloforge.pipelines.codegen.algorithms.bluestein import Bluestein, complex_fft
from hloforge.pipelines.codegen.algorithms.butterflies import Point, times as product
from hloforge.pipelines.codegen.algorithms.fft import FFT
from hloforge.pipelines.codegen.algorithms.matrices import steps
from hloforge.pipelines.codegen.algorithms.places import each, minus, plus, times
from hloforge.pipelines.codegen.algorithms.scratch import Scratch, part
from hloforge.pipelines.codegen.elements import memory as element_memory
from hloforge.pipelines.codegen.elements.kinds import pair, single
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Number, Value
from hloforge.pipelines.decompose.fft_plan import roots


@dataclass(frozen=True)
class _Reals:
    """Real numbers as complex ones: imaginary parts are zero when read, and dropped when written."""

    array: Elements

    def at(self, place: Number, lanes: int = 0) -> Element:
        value = single(self.array.at(place, lanes))
        return value, value.like(0.0)

    def put(self, value: Element, place: Number) -> None:
        self.array.put(pair(value)[0], place)

    def moved(self, place: Number) -> _Reals:
        return _Reals(self.array.moved(place))

    @property
    def addresses(self) -> frozenset[str]:
        return self.array.addresses


@dataclass(frozen=True)
class RealFFT:
    """Transforms of ``outer`` rows: n real numbers to ``n // 2 + 1`` complex ones, or back.

    Attributes:
        element: of the real numbers, f32 or f64.
        inverse: whether complex numbers become real ones, scaled by 1 / n. Imaginary parts of the first one, and of
            the last one for an even n, do not count.
        vector_bytes: of the processor's registers.
    """

    outer: int
    n: int
    element: str
    inverse: bool = False
    vector_bytes: int = 64

    @property
    def count(self) -> int:
        """How many complex numbers a row has."""
        return self.n // 2 + 1

    @property
    def _complex(self) -> str:
        return f"complex<{self.element}>"

    @property
    def _points(self) -> int:
        """Of the complex transform."""
        return self.n if self.n % 2 else self.n // 2

    @cached_property
    def _chunk(self) -> int:
        """Rows that are transformed at once."""
        lanes = self.vector_bytes // element_memory.size(self.element)
        return min(self.outer, lanes) if self._points < 64 or self._several.rows < self.outer else 1

    @cached_property
    def _several(self) -> FFT | Bluestein:
        return complex_fft(self.outer, self._points, 1, self._complex, vector_bytes=self.vector_bytes)

    @cached_property
    def _transform(self) -> FFT | Bluestein:
        return complex_fft(
            self._chunk,
            self._points,
            1,
            self._complex,
            inverse=self.inverse,
            scale=1 / self.n if self.inverse else 1.0,
            vector_bytes=self.vector_bytes,
        )

    @property
    def rows(self) -> int:
        """Parts that can be computed apart from each other."""
        return -(-self.outer // self._chunk) if self.outer else 0

    @property
    def _between(self) -> int:
        """Bytes of the complex transform's operands, or of its results."""
        return self._chunk * self._points * element_memory.size(self._complex)

    @cached_property
    def scratch(self) -> int:
        """Bytes that a call works in."""
        plan = Scratch()
        plan.take(self._between)
        return plan.size + self._transform.scratch if self.outer else 0

    @property
    def table(self) -> bytes:
        """Constants that a call reads."""
        return self._turns + self._transform.table if self.outer else b""

    @cached_property
    def _turns(self) -> bytes:
        if self.n % 2:
            return b""
        numbers = np.stack(roots(np.arange(self.n // 2 + 1), self.n, -1), axis=-1)
        data = numbers.astype(np.float32 if self.element == "f32" else np.float64).tobytes()
        return data + bytes(-len(data) % 64)

    def write(
        self,
        function: Function,
        source: Elements,
        target: Elements,
        memory: Value,
        table: Value,
        rows: tuple[Number, Number] | None = None,
    ) -> None:
        """Write the loops; the arguments are those of ``FFT.write``."""
        if not self.outer:
            return
        first, last = rows or (0, self.rows)
        plan = Scratch()
        between = Elements(part(memory, plan.take(self._between)), self._complex)
        rest, own_table = part(memory, plan.size), part(table, len(self._turns))
        with steps(function, first, last) as number:
            row: Number = times(number, self._chunk)
            if self.outer % self._chunk:
                row = function.index(row).minimum(self.outer - self._chunk)
            reals = (target if self.inverse else source).moved(times(row, self.n))
            # An even row of real numbers is a row of complex ones.
            points = _Reals(reals) if self.n % 2 else Elements(reals.pointer, self._complex)
            others = (source if self.inverse else target).moved(times(row, self.count))
            if self.inverse:
                with steps(function, 0, self._chunk) as own:
                    self._join(function, others, between, own, table)
                self._transform.write(function, between, points, rest, own_table)
            else:
                self._transform.write(function, points, between, rest, own_table)
                with steps(function, 0, self._chunk) as own:
                    self._part(function, between, others, own, table)

    def _part(self, function: Function, source: Elements, target: Elements, row: Value, table: Value) -> None:
        """The transform of real numbers from that of complex ones."""
        start, into, half = times(row, self._points), times(row, self.count), self.n // 2
        if self.n % 2:
            with each(function, 0, self.count) as place:
                target.put(source.at(plus(start, place)), plus(into, place))
            return
        turns = Elements(table, self._complex)
        real, imaginary = pair(source.at(start))
        target.put((real + imaginary, real.like(0.0)), into)
        target.put((real - imaginary, real.like(0.0)), plus(into, half))
        with each(function, 1, half) as place:
            (a, b), (c, d) = pair(source.at(plus(start, place))), pair(source.at(plus(start, minus(half, place))))
            (e, f) = product((a - c, b + d), pair(turns.at(place)))
            target.put(((a + c + f) * 0.5, (b - d - e) * 0.5), plus(into, place))

    def _join(self, function: Function, source: Elements, target: Elements, row: Value, table: Value) -> None:
        """The operands of a complex transform whose results are real numbers."""
        start, into, half = times(row, self.count), times(row, self._points), self.n // 2
        if self.n % 2:
            real, _ = pair(source.at(start))
            target.put((real, real.like(0.0)), into)
            with each(function, 1, self.count) as place:
                real, imaginary = pair(source.at(plus(start, place)))
                target.put((real, imaginary), plus(into, place))
                target.put((real, -imaginary), plus(into, minus(self.n, place)))
            return
        turns = Elements(table, self._complex)
        first, last = pair(source.at(start))[0], pair(source.at(plus(start, half)))[0]
        target.put((first + last, first - last), into)
        with each(function, 1, half) as place:
            (a, b), (c, d) = pair(source.at(plus(start, place))), pair(source.at(plus(start, minus(half, place))))
            cosine, sine = pair(turns.at(place))
            (e, f) = _turned_back((a - c, b + d), (cosine, sine))
            target.put((a + c - f, b - d + e), plus(into, place))


def _turned_back(point: Point, turn: Point) -> Point:
    """Times the conjugate of a turn."""
    return product(point, (turn[0], -turn[1]))
