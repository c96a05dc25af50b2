"""Implicit QL and QR steps on two diagonals, each matrix in one workgroup of one dispatch.

They are the algorithms of ``library_calls/tridiagonal_ql.py`` and ``library_calls/bidiagonal_qr.py``. A rotation waits
for a root and a quotient of the one before, some fifty cycles, which is as long as it takes to apply it to rows of 256
vectors' elements: each is applied as soon as it is found, while the processor is at work on the next. Source: as there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from hloforge.dialect.mlir import arith, ir, vector_dialect
from hloforge.pipelines.framework.builders import full_vector, index, read_vector, write_vector
from hloforge.pipelines.framework.machine import AVX2
from hloforge.pipelines.kernels.factorizations.strips import plus
from hloforge.pipelines.kernels.lang import loops as code
from hloforge.pipelines.kernels.lang.reals import Real, choose, fold
from hloforge.pipelines.library_calls.reflectors import NEGLIGIBLE
from hloforge.pipelines.library_calls.tridiagonal_ql import SWEEPS

# Bytes of a row that are turned at once: four vectors of AVX2 of each of two rows.
_PIECE_BYTES = AVX2.unrolled_bytes // 2
# Multiplications for a row of vectors, by its length: two sweeps of a half of the rows, four for each element. That is
# what the method needs, on any processor.
_WORK = 4


def tridiagonal_ql(d: Any, e: Any, *rows: Any) -> list[Any]:
    """The diagonals ``[b, n]`` after the iteration, and vectors ``[b, n, w]``, w a multiple of 16, if there are any."""
    return _iterated(d, e, rows, _Ql)


def bidiagonal_qr(d: Any, e: Any, *rows: Any) -> list[Any]:
    """The same for bidiagonal matrices, with the vectors of both sides or none."""
    return _iterated(d, e, rows, _Qr)


def _iterated(d: Any, e: Any, rows: Sequence[Any], method: Callable[[int, Any], _Method]) -> list[Any]:
    batch, n = map(int, d.type.shape)
    arrays = [d, e, *rows]
    parts = [ir.RankedTensorType.get([1, *array.type.shape[1:]], array.type.element_type) for array in arrays]
    width = sum(int(array.type.shape[2]) for array in rows)

    def run(places: Sequence[Any], sources: Sequence[Any], _: Sequence[Any], targets: Sequence[Any]) -> None:
        starts = [[places[0], *(0 for _ in part.shape[1:])] for part in parts]
        state = [
            _copied(code.load(source, part, start), code.load(target, part, start))
            for source, target, part, start in zip(sources, targets, parts, starts, strict=True)
        ]
        state = method(n, d.type.element_type).results(state)
        for part, target, start in zip(state, targets, starts, strict=True):
            code.store(part, target, start)

    types = [array.type for array in arrays]
    return code.workgroups([batch], arrays, (), (), run, scratch=types, work=batch * n * n * max(n, _WORK * width))


def _copied(array: Any, target: Any) -> Any:
    """An array written over another."""
    *outer, last = (int(size) for size in array.type.shape)
    length = gcd(last, _PIECE_BYTES * 8 // int(array.type.element_type.width))

    def along(row: Sequence[Any], into: Any) -> Any:
        def copy(column: Any, into: Any) -> list[Any]:
            position = [index(0), *row, column]
            return [write_vector(read_vector(array, position, length), into, position)]

        return code.for_each(last, [into], copy, step=length)[0]

    if len(outer) == 1:
        return along((), target)
    return code.for_each(outer[1], [target], lambda row, into: [along([row], into)])[0]


def _get(array: Any, place: Any) -> Real:
    return Real(code.read(array, index(0), place))


def _put(array: Any, place: Any, value: Real) -> Any:
    return code.write(value.ir, array, index(0), place)


@dataclass(frozen=True)
class _Method(ABC):
    """Sweeps over one matrix.

    Attributes:
        n: its size.
        element: the type of its elements.
    """

    n: int
    element: Any

    @abstractmethod
    def results(self, state: Sequence[Any]) -> list[Any]:
        """The diagonals and vectors after the last sweep."""

    @property
    def epsilon(self) -> float:
        return float(np.finfo(self._name).eps)

    @property
    def _name(self) -> str:
        return "float32" if self.element.width == 32 else "float64"

    def is_large(self, d: Any, e: Any, place: Any) -> Any:
        """Whether an element of e counts; the second term ends the work on a block of rounding errors."""
        size = abs(_get(d, place)) + abs(_get(d, plus(place, 1)))
        return abs(_get(e, place)).exceeds(size * (self.epsilon / 2) + self.epsilon / 16)

    def rotation(self, f: Real, g: Real) -> tuple[Real, Real, Real]:
        """c, s, r with c f + s g = r and c g = s f; the identity where both are negligible (LAPACK "lartg")."""
        square = f * f + g * g
        counts = square.exceeds(NEGLIGIBLE["f32" if self.element.width == 32 else "f64"])
        r = square.sqrt()
        inverse = r.like(1.0) / r
        return (
            choose(counts, f * inverse, f.like(1.0)),
            choose(counts, g * inverse, f.like(0.0)),
            choose(counts, r, f),
        )

    def rotated(self, rows: Any, first: Any, second: Any, c: Real, s: Real) -> Any:
        """Rows x, y as c x + s y, c y - s x."""
        width = int(rows.type.shape[2])
        length = gcd(width, _PIECE_BYTES * 8 // int(self.element.width))
        cosines, sines = (full_vector(value.ir, length) for value in (c, s))

        def turn(column: Any, rows: Any) -> list[Any]:
            here, there = [index(0), first, column], [index(0), second, column]
            x, y = read_vector(rows, here, length), read_vector(rows, there, length)
            rows = write_vector(_combined(cosines, x, sines, y), rows, here)
            return [write_vector(_combined(cosines, y, arith.negf(sines), x), rows, there)]

        return code.for_each(width, [rows], turn, step=length)[0]


def _combined(a: Any, x: Any, b: Any, y: Any) -> Any:
    """a x + b y."""
    return vector_dialect.fma(a, x, arith.mulf(b, y))


class _Ql(_Method):
    """Implicit QL of symmetric tridiagonal matrices: d, e and perhaps vectors."""

    def results(self, state: Sequence[Any]) -> list[Any]:
        def more(start: Any, turn: Any, *_: Any) -> Any:
            return _both(code.compare("slt", start, self.n - 1), code.compare("slt", turn, SWEEPS * self.n))

        return code.while_([index(0), index(0), *state], more, self._sweep)[2:]

    def _sweep(self, start: Any, turn: Any, d: Any, e: Any, *rows: Any) -> list[Any]:
        end = self._end(start, d, e)
        p, beside = _get(d, start), _get(e, start)
        ratio = (_get(d, plus(start, 1)) - p) / (beside * 2.0)
        root = (ratio * ratio + 1.0).sqrt()
        g = _get(d, end) - p + beside / (ratio + choose(ratio.like(0.0).exceeds(ratio), -root, root))
        one, zero = g.like(1.0), g.like(0.0)
        init = [d, e, g.ir, one.ir, one.ir, zero.ir, *rows]
        count = code.combine(arith.subi, end, start)
        d, e, g_, _, _, p_, *rows_ = code.for_each(count, init, lambda number, *state: self._step(end, number, *state))
        d = _put(d, start, _get(d, start) - Real(p_))
        # Of a block of one element the last line holds.
        e = _put(_put(e, start, Real(g_)), end, zero)
        following = code.choose(code.compare("eq", end, start), plus(start, 1), start)
        return [following, plus(turn, 1), d, e, *rows_]

    def _end(self, start: Any, d: Any, e: Any) -> Any:
        """The first i >= start with a negligible e[i]; n - 1 if there is none."""
        last = self.n - 1

        def more(place: Any) -> Any:
            # The last place has none beside it, and is not looked at.
            inside = code.compare("slt", place, last)
            here = code.choose(inside, place, index(last - 1))
            return _both(inside, self.is_large(d, e, here))

        return code.while_([start], more, lambda place: [plus(place, 1)])[0]

    def _step(self, end: Any, number: Any, d: Any, e: Any, *rest: Any) -> list[Any]:
        g, s, c, p = map(Real, rest[:4])
        above = code.combine(arith.subi, end, number)
        i = code.combine(arith.subi, above, index(1))
        beside = _get(e, i)
        f, b = s * beside, c * beside
        c, s, r = self.rotation(g, f)
        e = _put(e, above, r)
        g = _get(d, above) - p
        r = (_get(d, i) - g) * s + c * b * 2.0
        p = s * r
        d = _put(d, above, g + p)
        rows = [self.rotated(part, above, i, c, s) for part in rest[4:]]
        return [d, e, (c * r - b).ir, s.ir, c.ir, p.ir, *rows]


class _Qr(_Method):
    """Implicit QR of upper bidiagonal matrices: d, e and perhaps the vectors of both sides."""

    def results(self, state: Sequence[Any]) -> list[Any]:
        def more(end: Any, turn: Any, *_: Any) -> Any:
            return _both(code.compare("slt", index(0), end), code.compare("slt", turn, SWEEPS * self.n))

        return code.while_([index(self.n - 1), index(0), *state], more, self._sweep)[2:]

    def _sweep(self, end: Any, turn: Any, d: Any, e: Any, *rows: Any) -> list[Any]:
        start = self._start(end, d, e)
        # Of e before the block, the negligible rest is dropped; there is none before the first.
        is_first = code.compare("eq", start, 0)
        before = code.choose(is_first, index(0), code.combine(arith.subi, start, index(1)))
        e = _put(e, before, choose(is_first, _get(e, before), Real(code.float_number(0.0, self.element))))
        first, g = _get(d, start), _get(e, start)
        shift = self._shift(start, end, d, e)
        sign = choose(first.like(0.0).exceeds(first), first.like(-1.0), first.like(1.0))
        f = choose(shift.equals(0.0), first, (abs(first) - shift) * (sign + shift / first))
        d, e, _, _, *rows_ = code.for_each(
            end, [d, e, f.ir, g.ir, *rows], lambda i, *state: self._step(start, i, *state), start=start
        )
        is_done = code.compare("eq", start, end)
        return [code.choose(is_done, code.combine(arith.subi, end, index(1)), end), plus(turn, 1), d, e, *rows_]

    def _start(self, end: Any, d: Any, e: Any) -> Any:
        """One beyond the last i < end with a negligible e[i], or 0."""

        def more(place: Any) -> Any:
            inside = code.compare("slt", index(0), place)
            before = code.choose(inside, code.combine(arith.subi, place, index(1)), index(0))
            return _both(inside, self.is_large(d, e, before))

        return code.while_([end], more, lambda place: [code.combine(arith.subi, place, index(1))])[0]

    def _shift(self, start: Any, end: Any, d: Any, e: Any) -> Real:
        """The smaller singular value of the last two rows of a block; 0 if that loses nothing, or a value is zero."""
        before = code.choose(code.compare("eq", end, 0), index(0), code.combine(arith.subi, end, index(1)))
        f, g, h = abs(_get(d, before)), abs(_get(e, before)), abs(_get(d, end))
        least, most = f.min(h), f.max(h)
        high, low, share = least / most + 1.0, (most - least) / most, g / most
        share = share * share
        shift = least * (f.like(2.0) / ((high * high + share).sqrt() + (low * low + share).sqrt()))
        smallest = fold(start, plus(end, 1), f.like(float("inf")), lambda i, least: least.min(abs(_get(d, i))))
        ratio = shift / abs(_get(d, start))
        is_useful = _both(smallest.exceeds(self.epsilon * self.epsilon), (ratio * ratio).exceeds(self.epsilon))
        return choose(is_useful, shift, f.like(0.0))

    def _step(self, start: Any, i: Any, d: Any, e: Any, *rest: Any) -> list[Any]:
        f, g = map(Real, rest[:2])
        following, is_first = plus(i, 1), code.compare("eq", i, start)
        value, beside, below = _get(d, i), _get(e, i), _get(d, following)
        c, s, r = right = self.rotation(f, g)
        # What is before the block is zero, or at the first place, which the next store of e replaces.
        before = code.choose(code.compare("eq", i, 0), index(0), code.combine(arith.subi, i, index(1)))
        e = _put(e, before, choose(is_first, r.like(0.0), r))
        f, above, g, below = c * value + s * beside, c * beside - s * value, s * below, c * below
        c, s, r = left = self.rotation(f, g)
        d = _put(_put(d, i, r), following, c * below - s * above)
        f = c * above + s * below
        last = _get(e, following)
        e = _put(_put(e, i, f), following, c * last)
        rows = [
            self.rotated(part, i, following, *pair[:2]) for part, pair in zip(rest[2:], (left, right), strict=False)
        ]
        return [d, e, f.ir, (s * last).ir, *rows]


def _both(one: Any, other: Any) -> Any:
    return code.combine(arith.andi, one, other)
