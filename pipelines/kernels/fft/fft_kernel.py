"""The loops of ``dispatch-fft``: stages and products over the points of a row, or of some columns, in vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hloforge.dialect.mlir import arith, ir, vector_dialect
from hloforge.pipelines.framework.builders import full_vector, index, read_vector, write_vector
from hloforge.pipelines.kernels.fft.butterflies import Points, splat, transform
from hloforge.pipelines.kernels.fft.fft_stages import Stage
from hloforge.pipelines.kernels.lang import loops as code


@dataclass(frozen=True)
class Memory:
    """Complex numbers in a matrix of floats ``[m, 2 n]``.

    Attributes:
        array: the matrix.
        along: whether the points of a transform are along a row, or in rows one below the other, each with n columns
            that are transformed alike.
        row: that row, or the first of these rows.
        vector_bytes: of a vector, at most.
        interleaved: whether parts of a number are beside each other, and not n apart.
        swapped: whether the imaginary part represents the real one, and the other way round.
    """

    array: Any
    along: bool
    row: Any
    vector_bytes: int
    interleaved: bool = False
    swapped: bool = False

    @property
    def columns(self) -> int:
        """How many numbers are in a row: n."""
        return int(self.array.type.shape[1]) // 2

    def lanes(self, most: int) -> int:
        """The numbers of a vector of which there are ``most``."""
        return min(most, self.vector_bytes * 8 // int(self.array.type.element_type.width))

    def splat(self, number: float, count: int) -> Any:
        """A vector of equal elements."""
        return splat(ir.VectorType.get([count], self.array.type.element_type), number)

    def read(self, point: Any, column: Any, count: int) -> Points:
        """Some points of the row from ``point`` on, or one point of some columns from ``column`` on."""
        row, start = self._place(point, column)
        if self.interleaved:
            both = read_vector(self.array, [row, _times(start, 2)], 2 * count)
            found = Points(*vector_dialect.deinterleave(both))
        else:
            found = Points(*(read_vector(self.array, [row, at], count) for at in (start, _plus(start, self.columns))))
        return found.swapped if self.swapped else found

    def write(self, points: Points, point: Any, column: Any) -> Memory:
        """The memory with some numbers replaced, from where ``read`` reads them."""
        row, start = self._place(point, column)
        real, imaginary = (points.imaginary, points.real) if self.swapped else (points.real, points.imaginary)
        if self.interleaved:
            return replace(self, array=write_vector(_interleave(real, imaginary), self.array, [row, _times(start, 2)]))
        array = write_vector(real, self.array, [row, start])
        return replace(self, array=write_vector(imaginary, array, [row, _plus(start, self.columns)]))

    def _place(self, point: Any, column: Any) -> tuple[Any, Any]:
        return (self.row, point) if self.along else (code.combine(arith.addi, self.row, point), column)


@dataclass(frozen=True)
class Factors:
    """Complex numbers in a table of floats, first the real and then the imaginary parts: one for each point."""

    table: Any
    start: int
    count: int

    def at(self, point: Any, memory: Memory, count: int) -> Points:
        """Those of some points in a row of the memory, or that of one point for all of its columns."""
        places = [_plus(point, self.start), _plus(point, self.start + self.count)]
        if memory.along:
            return Points(*(read_vector(self.table, [at], count) for at in places))
        return Points(*(full_vector(code.read(self.table, at), count) for at in places))


# From points to what is written in their place: the points, the first one, the memory, how many of them.
Finish = Callable[[Points, Any, Memory, int], Points]


def run_stage(stage: Stage, source: Memory, target: Memory, table: Any, finish: Finish | None = None) -> Memory:
    """The target after a stage, with the factors of a table ``[t]``."""
    if source.along and stage.done == 1:
        return _first_of_row(stage, source, target, table, finish)

    def turn(p: Any, target: Memory) -> Memory:
        factors = _factors_of(stage, table, p, source.lanes(stage.done if source.along else source.columns))
        first, start = _times(p, stage.done), _times(p, stage.done * stage.radix)

        def vector(q: Any, column: Any, count: int, target: Memory) -> Memory:
            found = _butterfly(stage, source, _plus(first, q), column, count, factors)
            for k, points in enumerate(found):
                to = _plus(_plus(start, q), stage.done * k)
                points = points if finish is None else finish(points, to, target, count)
                target = target.write(points, to, column)
            return target

        return each_vector(stage.done, source, target, vector)

    return _loop(stage.rest, target, turn)


# From the first point and column of a vector, how many numbers it has, and the target, to the target.
Body = Callable[[Any, Any, int, Memory], Memory]


def each_vector(stop: int, source: Memory, target: Memory, body: Body, *, start: int = 0) -> Memory:
    """The body for all points from ``start`` up to ``stop``; the last vector of a row overlaps the one before it."""
    if source.along:
        count = source.lanes(stop - start)
        return _loop(stop, target, lambda at, target: body(_up_to(at, stop, count), None, count, target), count, start)

    def line(point: Any, target: Memory) -> Memory:
        columns = source.columns
        count = source.lanes(columns)
        return _loop(columns, target, lambda at, target: body(point, _up_to(at, columns, count), count, target), count)

    return _loop(stop, target, line, 1, start)


def turn_rows(points: int, source: Memory, target: Memory) -> Memory:
    """Some rows from the source's on to the target's columns, as many as it has."""
    count, rows = source.lanes(points), range(target.columns)

    def vector(at: Any, target: Memory) -> Memory:
        p = _up_to(at, points, count)
        found = [replace(source, row=_plus(source.row, row)).read(p, None, count) for row in rows]
        woven = _weave([row.real for row in found] + [row.imaginary for row in found])
        array = target.array
        for number in range(count):
            array = write_vector(_part(woven, number, 2 * len(rows)), array, [_plus(p, number), index(0)])
        return replace(target, array=array)

    return _loop(points, target, vector, count)


def turn_columns(points: int, source: Memory, target: Memory) -> Memory:
    """All columns of the source to rows from the target's on."""
    count, rows = source.lanes(points), range(source.columns)

    def vector(at: Any, target: Memory) -> Memory:
        p = _up_to(at, points, count)
        lines = [read_vector(source.array, [_plus(p, number), index(0)], 2 * len(rows)) for number in range(count)]
        woven, first = _weave(lines), target.row
        for row in rows:
            parts = Points(*(_part(woven, part, count) for part in (row, len(rows) + row)))
            target = replace(target, row=_plus(first, row)).write(parts, p, None)
        return replace(target, row=first)

    return _loop(points, target, vector, count)


def _first_of_row(stage: Stage, source: Memory, target: Memory, table: Any, finish: Finish | None) -> Memory:
    """The first stage of a row, whose vectors run along p: results are woven."""
    count = source.lanes(stage.rest)

    def vector(at: Any, target: Memory) -> Memory:
        p = _up_to(at, stage.rest, count)
        found = transform([source.read(_plus(p, stage.rest * j), None, count) for j in range(stage.radix)])
        if stage.rest > 1:
            starts = [stage.factors + 2 * stage.rest * k for k in range(stage.radix - 1)]
            factors = [Factors(table, start, stage.rest).at(p, source, count) for start in starts]
            found = [found[0], *(points * factor for points, factor in zip(found[1:], factors, strict=True))]
        to = _times(p, stage.radix)
        woven = Points(_weave([points.real for points in found]), _weave([points.imaginary for points in found]))
        woven = woven if finish is None else finish(woven, to, target, count * stage.radix)
        return target.write(woven, to, None)

    return _loop(stage.rest, target, vector, count)


def _butterfly(
    stage: Stage, source: Memory, at: Any, column: Any, count: int, factors: Sequence[Points]
) -> list[Points]:
    step = stage.done * stage.rest
    found = transform([source.read(_plus(at, step * j), column, count) for j in range(stage.radix)])
    return (
        [found[0], *(points * factor for points, factor in zip(found[1:], factors, strict=True))] if factors else found
    )


def _factors_of(stage: Stage, table: Any, p: Any, count: int) -> list[Points]:
    """The twiddle factors of one p, each in all elements of a vector; none in the last stage."""
    if stage.rest == 1:
        return []
    pairs = stage.radix - 1
    start = _plus(_times(p, 2 * pairs), stage.factors)
    numbers = [full_vector(code.read(table, _plus(start, number)), count) for number in range(2 * pairs)]
    return [Points(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)]


def _loop(stop: int, target: Memory, body: Callable[[Any, Memory], Memory], step: int = 1, start: int = 0) -> Memory:
    """``for at in range(start, stop, step): target = body(at, target)``."""

    def turn(at: Any, array: Any) -> list[Any]:
        return [body(at, replace(target, array=array)).array]

    return replace(target, array=code.for_each(stop, [target.array], turn, start=start, step=step)[0])


def _up_to(at: Any, stop: int, count: int) -> Any:
    """Where a vector that would start ``at`` starts, so that it ends at ``stop`` at the latest."""
    return code.combine(arith.minsi, at, stop - count)


def reverse(points: Points) -> Points:
    """The points of a vector from the last to the first."""
    count = int(points.real.type.shape[0])
    return Points(*(_shuffle(part, part, range(count - 1, -1, -1)) for part in (points.real, points.imaginary)))


def _weave(vectors: Sequence[Any]) -> Any:
    """The first elements of all vectors, then the second ones, and so on."""
    if len(vectors) == 1:
        return vectors[0]
    if len(vectors) % 2 == 0:
        return _interleave(_weave(vectors[::2]), _weave(vectors[1::2]))
    woven = vectors[0]
    count = int(woven.type.shape[0])
    for width, vector in enumerate(vectors[1:], start=1):
        order = [n for at in range(count) for n in (*range(at * width, (at + 1) * width), count * width + at)]
        woven = _shuffle(woven, vector, order)
    return woven


def _part(vector: Any, number: int, size: int) -> Any:
    """The part of a vector after ``number`` others of this size."""
    return _shuffle(vector, vector, range(number * size, (number + 1) * size))


def _interleave(one: Any, other: Any) -> Any:
    """The elements of two vectors in turn."""
    return vector_dialect.interleave(one, other)


def _shuffle(one: Any, other: Any, order: Sequence[int]) -> Any:
    """Elements of two vectors by their numbers in both."""
    return vector_dialect.shuffle(one, other, list(order))


def _plus(one: Any, other: Any) -> Any:
    return one if isinstance(other, int) and other == 0 else code.combine(arith.addi, one, other)


def _times(one: Any, other: int) -> Any:
    return code.combine(arith.muli, one, other)
