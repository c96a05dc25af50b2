"""Implicit QL and QR steps on two diagonals: eigenvalues, and singular values.

They are the algorithms of ``library_calls/tridiagonal_ql.py`` and ``library_calls/bidiagonal_qr.py``. A rotation waits
for a root and a quotient of the one before, some fifty cycles, which is as long as it takes to apply it to rows of 256
vectors' elements: each is applied as soon as it is found. Source: as there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hloforge.pipelines.codegen.algorithms.arrays import Elements
from hloforge.pipelines.codegen.algorithms.matrices import folded, steps
from hloforge.pipelines.codegen.algorithms.places import both, times, while_
from hloforge.pipelines.codegen.elements import memory as element_memory
from hloforge.pipelines.codegen.elements.kinds import single
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Number, Value
from hloforge.pipelines.library_calls.reflectors import NEGLIGIBLE
from hloforge.pipelines.library_calls.tridiagonal_ql import SWEEPS


@dataclass(frozen=True)
class _Diagonals(ABC):
    """``batch`` matrices of n rows, given by two diagonals.

    Attributes:
        element: f32 or f64.
        width: of the rows of the vectors that rotations are applied to; 0 for none.
        vector_bytes: of the processor's registers.
    """

    batch: int
    n: int
    element: str
    width: int = 0
    vector_bytes: int = 64

    def write(
        self,
        function: Function,
        d: Elements,
        e: Elements,
        vectors: Sequence[Elements],
        rows: tuple[Number, Number] | None = None,
    ) -> None:
        """Write the loops, which change the arrays in place.

        Args:
            d, e: ``[b, n]``: diagonals of magnitudes of about 1 at most, and those beside them with e[n - 1] = 0.
            vectors: ``[b, n, width]`` each.
            rows: the first of the matrices and the one after the last; None for all.
        """
        if self.n < 2:
            return
        first, last = rows or (0, self.batch)
        with steps(function, first, last) as number:
            own = [array.moved(times(number, self.n)) for array in (d, e)]
            others = [array.moved(times(number, self.n * self.width)) for array in vectors]
            self._iterate(function, own[0], own[1], others if self.width else [])

    @abstractmethod
    def _iterate(self, function: Function, d: Elements, e: Elements, vectors: Sequence[Elements]) -> None:
        """Sweep over a matrix until nothing is left beside its diagonal."""

    @property
    def _epsilon(self) -> float:
        return float(np.finfo("float32" if self.element == "f32" else "float64").eps)

    def _is_large(self, d: Elements, e: Elements, place: Value) -> Value:
        """Whether an element of e counts; the second term ends the work on a block of rounding errors."""
        size = _abs(d.number(place)) + _abs(d.number(place + 1))
        return _abs(e.number(place)) > size * (self._epsilon / 2) + self._epsilon / 16

    def _rotation(self, f: Value, g: Value) -> tuple[Value, Value, Value]:
        """c, s, r with c f + s g = r and c g = s f; the identity where both are negligible (LAPACK "lartg")."""
        square = f * f + g * g
        counts = square > NEGLIGIBLE[self.element]
        r = square.call("sqrt")
        inverse = 1.0 / r
        return counts.where(f * inverse, 1.0), counts.where(g * inverse, 0.0), counts.where(r, f)

    def _rotate(self, function: Function, rows: Elements, first: Value, second: Value, c: Value, s: Value) -> None:
        """Rows x, y become c x + s y, c y - s x."""
        lanes = self.vector_bytes // element_memory.size(self.element)
        whole = self.width // lanes * lanes
        here, there = first * self.width, second * self.width
        for start, stop, count in ((0, whole, lanes), (whole, self.width, 0)):
            if start == stop:
                continue
            with steps(function, start, stop, count or 1) as column:
                places = here + column, there + column
                x, y = (single(rows.at(place, count)) for place in places)
                rows.put(x * c + y * s, places[0])
                rows.put(y * c - x * s, places[1])


@dataclass(frozen=True)
class TridiagonalQL(_Diagonals):
    """Implicit QL of real symmetric matrices; the vectors are none, or one array.

    The diagonals become the eigenvalues, in no order, and zeros except for eigenvalues that were not found.
    """

    def _iterate(self, function: Function, d: Elements, e: Elements, vectors: Sequence[Elements]) -> None:
        zero = function.index(0)

        def more(state: list[Value]) -> Value:
            return (state[0] < self.n - 1) & (state[1] < SWEEPS * self.n)

        while_(function, [zero, zero], more, lambda state: self._sweep(function, d, e, vectors, *state))

    def _sweep(
        self, function: Function, d: Elements, e: Elements, vectors: Sequence[Elements], start: Value, turn: Value
    ) -> list[Value]:
        (end,) = while_(
            function,
            [start],
            lambda state: both(function, state[0] < self.n - 1, lambda: self._is_large(d, e, state[0])),
            lambda state: [state[0] + 1],
        )
        is_single = end.equals(start)
        with function.if_(~is_single):
            self._step(function, d, e, vectors, start, end)
        e.put(function.constant(0, d.number(0).kind), end)
        return [start + is_single.as_("i64", signed=False), turn + 1]

    def _step(
        self, function: Function, d: Elements, e: Elements, vectors: Sequence[Elements], start: Value, end: Value
    ) -> None:
        """Turn a block, from its end to its start."""
        p, beside = d.number(start), e.number(start)
        ratio = (d.number(start + 1) - p) / (beside * 2.0)
        root = (ratio * ratio + 1.0).call("sqrt")
        g = d.number(end) - p + beside / (ratio + (ratio < 0.0).where(-root, root))

        def turn(number: Value, state: list[Value]) -> list[Value]:
            g, s, c, p = state
            above = end - number
            i = above - 1
            beside = e.number(i)
            f, b = s * beside, c * beside
            c, s, r = self._rotation(g, f)
            e.put(r, above)
            g = d.number(above) - p
            r = (d.number(i) - g) * s + c * b * 2.0
            p = s * r
            d.put(g + p, above)
            for rows in vectors:
                self._rotate(function, rows, above, i, c, s)
            return [c * r - b, s, c, p]

        one, zero = g.like(1.0), g.like(0.0)
        g, _, _, p = folded(function, 0, end - start, [g, one, one, zero], turn)
        d.put(d.number(start) - p, start)
        e.put(g, start)


@dataclass(frozen=True)
class BidiagonalQR(_Diagonals):
    """Implicit QR of real upper bidiagonal matrices; the vectors are none, or those of the left and the right side.

    The diagonals become the singular values, in no order and with any sign, and zeros except for those not found.
    """

    def _iterate(self, function: Function, d: Elements, e: Elements, vectors: Sequence[Elements]) -> None:
        def more(state: list[Value]) -> Value:
            return (state[0] > 0) & (state[1] < SWEEPS * self.n)

        first = [function.index(self.n - 1), function.index(0)]
        while_(function, first, more, lambda state: self._sweep(function, d, e, vectors, *state))

    def _sweep(
        self, function: Function, d: Elements, e: Elements, vectors: Sequence[Elements], end: Value, turn: Value
    ) -> list[Value]:
        (start,) = while_(
            function,
            [end],
            lambda state: both(function, state[0] > 0, lambda: self._is_large(d, e, state[0] - 1)),
            lambda state: [state[0] - 1],
        )
        # Of e before the block, the negligible rest is dropped; there is none before the first.
        with function.if_(start > 0):
            e.put(function.constant(0, d.number(0).kind), start - 1)
        is_single = end.equals(start)
        with function.if_(~is_single):
            self._step(function, d, e, vectors, start, end)
        return [end - is_single.as_("i64", signed=False), turn + 1]

    def _step(
        self, function: Function, d: Elements, e: Elements, vectors: Sequence[Elements], start: Value, end: Value
    ) -> None:
        """Turn a block, from its start to its end."""
        first, g = d.number(start), e.number(start)
        shift = self._shift(function, d, e, start, end)
        sign = (first < 0.0).where(first.like(-1.0), 1.0)
        f = shift.equals(0.0).where(first, (_abs(first) - shift) * (sign + shift / first))

        def turn(i: Value, state: list[Value]) -> list[Value]:
            f, g = state
            following = i + 1
            value, beside, below = d.number(i), e.number(i), d.number(following)
            right = self._rotation(f, g)
            c, s, r = right
            with function.if_(i > start):
                e.put(r, i - 1)
            f, above = c * value + s * beside, c * beside - s * value
            g, below = s * below, c * below
            left = self._rotation(f, g)
            c, s, r = left
            d.put(r, i)
            d.put(c * below - s * above, following)
            f = c * above + s * below
            last = e.number(following)
            e.put(f, i)
            e.put(c * last, following)
            for rows, (cosine, sine, _) in zip(vectors, (left, right), strict=False):
                self._rotate(function, rows, i, following, cosine, sine)
            return [f, s * last]

        folded(function, start, end, [f, g], turn)

    def _shift(self, function: Function, d: Elements, e: Elements, start: Value, end: Value) -> Value:
        """The smaller singular value of the last two rows of a block; 0 if that loses nothing, or a value is zero."""
        f, g, h = _abs(d.number(end - 1)), _abs(e.number(end - 1)), _abs(d.number(end))
        least, most = _less(f, h), (f > h).where(f, h)
        high, low, share = least / most + 1.0, (most - least) / most, g / most
        share = share * share
        roots = (high * high + share).call("sqrt") + (low * low + share).call("sqrt")
        shift = least * (2.0 / roots)
        (smallest,) = folded(
            function, start, end + 1, [f.like(float("inf"))], lambda i, state: [_less(state[0], _abs(d.number(i)))]
        )
        ratio = shift / _abs(d.number(start))
        is_useful = (smallest > self._epsilon * self._epsilon) & (ratio * ratio > self._epsilon)
        return is_useful.where(shift, 0.0)


def _abs(value: Value) -> Value:
    return value.call("fabs")


def _less(one: Value, other: Value) -> Value:
    return (one < other).where(one, other)
