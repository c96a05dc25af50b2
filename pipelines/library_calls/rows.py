"""Matrices as rows in one buffer, for loops of many small steps.

A method that needs a number before it can say the next one (reflectors, shifted QR) has no wide operations. It is as
fast as LAPACK's if a whole iteration is one piece of code, whose inner loops take pieces of rows that fit into
registers. What that asks for is here: one buffer that every step updates in place, real planes in place of complex
numbers, rows padded to whole pieces, and loops over pieces. Every size is static and the code does not grow with it.

What later steps read is put into the buffer first and read from there: a slice of the buffer that outlives a store
makes IREE copy the whole of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.idioms import zeros
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.machine import AVX2

# Bytes of a piece that loops keep in a register: of AVX-512, or two of AVX2. Two are side by side, so that what they
# share is read once for both; these loops serve any target.
_PIECE_BYTES, _SIDE_BY_SIDE = 64, 2
# Elements that a piece is a multiple of: a register of f32.
_LANES = AVX2.vector_bytes // 4
# Bytes of the smallest buffer.
_LEAST_BYTES = 4096


@dataclass(frozen=True)
class Number:
    """Scalars or vectors by parts; ``im`` is None in real programs."""

    re: Value
    im: Value | None = None

    @property
    def parts(self) -> list[Value]:
        """The real part, and the imaginary one if there is one."""
        return [self.re] if self.im is None else [self.re, self.im]

    def __add__(self, other: Number) -> Number:
        return Number(self.re + other.re, None if self.im is None or other.im is None else self.im + other.im)

    def __sub__(self, other: Number) -> Number:
        return Number(self.re - other.re, None if self.im is None or other.im is None else self.im - other.im)

    def __neg__(self) -> Number:
        return Number(-self.re, None if self.im is None else -self.im)

    def __mul__(self, other: Number) -> Number:
        if self.im is None or other.im is None:
            return Number(self.re * other.re)
        return Number(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def times(self, factor: Value) -> Number:
        """The product with real numbers."""
        return Number(self.re * factor, None if self.im is None else self.im * factor)

    def conjugate(self) -> Number:
        return Number(self.re, None if self.im is None else -self.im)

    def squared(self) -> Value:
        """The square of the magnitude."""
        return self.re * self.re if self.im is None else self.re * self.re + self.im * self.im

    def inverse(self) -> Number:
        """1 / self, for magnitudes whose squares neither overflow nor underflow."""
        if self.im is None:
            return Number(1.0 / self.re)
        scale = 1.0 / self.squared()
        return Number(self.re * scale, -(self.im * scale))

    def where(self, flag: Value, other: Number) -> Number:
        """self where ``flag`` holds, else ``other``."""
        im = None if self.im is None or other.im is None else ops.select(flag, self.im, other.im)
        return Number(ops.select(flag, self.re, other.re), im)

    def constant(self, value: float) -> Number:
        """A scalar of the same kind."""
        element = self.re.element_type
        return Number(constant(value, element), None if self.im is None else constant(0, element))

    def spread(self, size: int) -> Number:
        """A scalar as a vector."""

        def parts(part: Value) -> Value:
            return ops.broadcast_in_dim(part, [size], [])

        return Number(parts(self.re), None if self.im is None else parts(self.im))

    def sum(self) -> Number:
        """The sum of a vector."""
        return Number(total(self.re), None if self.im is None else total(self.im))


Position: TypeAlias = "Value | int"


@dataclass(frozen=True)
class Rows:
    """The matrices of a batch, one of which is at hand.

    Attributes:
        buffer: ``[batch, planes * rows, width]`` of a real type; the imaginary parts are a second plane.
        batch: the number of the matrix at hand.
        rows: rows of a plane.
        piece: elements of a piece.
        group: pieces side by side; all of their elements divide the width.
    """

    buffer: Value
    batch: Value
    rows: int
    piece: int
    group: int

    @staticmethod
    def of(matrix: Number, more: int) -> Rows:
        """``[batch, m, n]`` by parts, with ``more`` rows of zeros below it, padded to whole pieces."""
        count, rows, columns = matrix.re.dims
        width, piece, group = pieces(columns, matrix.re.element_type.bits)
        parts = matrix.parts
        # Smaller ones may be values of a loop, all of which every store then moves.
        least = _LEAST_BYTES * 8 // (matrix.re.element_type.bits * count * len(parts) * width) + 1
        all_rows = max(rows + more, least)
        config = [(0, 0, 0), (0, all_rows - rows, 0), (0, width - columns, 0)]
        padded = [ops.pad(part, 0.0, config) for part in parts]
        buffer = padded[0] if len(parts) == 1 else ops.concat_in_dim(padded, 1)
        return Rows(buffer, constant(0, "s32"), all_rows, piece, group)

    @property
    def width(self) -> int:
        return self.buffer.dims[2]

    @property
    def is_complex(self) -> bool:
        return self.buffer.dims[1] > self.rows

    def block(self, rows: tuple[int, int], columns: int) -> Number:
        """The first columns of rows ``rows[0] ... rows[1] - 1`` of all matrices, ``[batch, m, columns]``."""
        planes = [self.buffer[:, start + rows[0] : start + rows[1], :columns] for start in self._planes()]
        return Number(*planes)

    def vector(self, row: Position, at: Position = 0, width: int | None = None) -> Number:
        """A row, or ``width`` elements of it from ``at``."""
        size = width or self.width
        return Number(*(self._read(row, start, at, size) for start in self._planes()))

    def piece_of(self, row: Position, at: Position) -> Number:
        """The piece of a row that starts at ``at``."""
        return self.vector(row, at, self.piece)

    def real(self, row: Position, column: Position) -> Value:
        """The real part of an element."""
        return ops.reshape(self._read(row, 0, column, 1), [])

    def scalar(self, row: Position, column: Position) -> Number:
        """An element."""
        return Number(*(ops.reshape(self._read(row, start, column, 1), []) for start in self._planes()))

    def with_vector(self, row: Position, value: Number, at: Position = 0) -> Rows:
        """With elements of a row from ``at`` replaced by a vector, or one by a scalar."""
        buffer = self.buffer
        for start, part in (
            zip(self._planes(), (value.re, value.im), strict=True) if self.is_complex else [(0, value.re)]
        ):
            if part is not None:
                update = ops.reshape(part, [1, 1, part.dims[0] if part.rank else 1])
                buffer = ops.dynamic_update_slice(buffer, update, [self.batch, _plus(row, start), at])
        return replace(self, buffer=buffer)

    def no_piece(self) -> Number:
        """A piece of zeros."""
        empty = zeros(self.buffer.element_type, [self.piece])
        return Number(empty, empty if self.is_complex else None)

    def with_pieces(self, row: Position, values: Sequence[Number], places: Sequence[Position]) -> Rows:
        """With pieces of a row replaced."""
        state = self
        for value, at in zip(values, places, strict=True):
            state = state.with_vector(row, value, at)
        return state

    def with_rows(self, first: Position, values: Number, at: Position) -> Rows:
        """With elements of several rows, ``[m, k]``, replaced by one store a plane."""
        buffer = self.buffer
        for start, part in zip(self._planes(), values.parts, strict=True):
            update = ops.reshape(part, [1, *part.dims])
            buffer = ops.dynamic_update_slice(buffer, update, [self.batch, _plus(first, start), at])
        return replace(self, buffer=buffer)

    def _planes(self) -> Sequence[int]:
        return (0, self.rows) if self.is_complex else (0,)

    def _read(self, row: Position, plane: int, column: Position, size: int) -> Value:
        return ops.reshape(
            ops.dynamic_slice(self.buffer, [self.batch, _plus(row, plane), column], [1, 1, size]), [size]
        )


def _plus(position: Position, offset: int) -> Position:
    return position + offset if offset else position


def pieces(columns: int, bits: int) -> tuple[int, int, int]:
    """The padded width of a row, the elements of a piece of it, and how many pieces are side by side."""
    most = _PIECE_BYTES * 8 // bits
    group = min(-(-columns // most), _SIDE_BY_SIDE)
    count = -(-columns // (most * group)) * group
    piece = -(-columns // (count * _LANES)) * _LANES
    return count * piece, piece, group


def total(vector: Value) -> Value:
    """The sum of a vector."""
    return ops.reduce(vector, 0, ops.add, [0])


# What a loop carries: arrays, numbers by parts, buffers.
Carry: TypeAlias = "Value | Number | Rows"


def loop(condition: Callable[..., Value], body: Callable[..., Sequence[Carry]], init: Sequence[Carry]) -> list[Any]:
    """XLA's "While" over values, numbers and rows."""
    state = list(init)

    def turn(*values: Value) -> list[Value]:
        return _flat(body(*_like(state, values)))

    result = ops.while_(lambda *values: condition(*_like(state, values)), turn, _flat(state))
    return _like(state, result.elements if hasattr(result, "elements") else [result])


def count_up(start: Position, end: Position, body: Callable[..., Sequence[Carry]], init: Sequence[Carry]) -> list[Any]:
    """``body(i, *state)`` for i = start ... end - 1."""
    first = start if isinstance(start, Value) else constant(start, "s32")
    return loop(lambda i, *_: i < end, lambda i, *state: [i + 1, *body(i, *state)], [first, *init])[1:]


def count_down(
    start: Position, end: Position, body: Callable[..., Sequence[Carry]], init: Sequence[Carry]
) -> list[Any]:
    """``body(i, *state)`` for i = start, start - 1 ... end."""
    first = start if isinstance(start, Value) else constant(start, "s32")
    return loop(lambda i, *_: i >= end, lambda i, *state: [i - 1, *body(i, *state)], [first, *init])[1:]


def each_matrix(rows: Rows, body: Callable[[Rows], Rows]) -> Rows:
    """``body`` on one matrix of the batch after the other."""
    if rows.buffer.dims[0] == 1:
        return body(rows)
    (done,) = count_up(
        0,
        rows.buffer.dims[0],
        lambda batch, state: [replace(body(replace(state, batch=batch)), batch=rows.batch)],
        [rows],
    )
    return done  # type: ignore[no-any-return]


def side_by_side(
    rows: Rows,
    body: Callable[..., Sequence[Carry]],
    init: Sequence[Carry],
    first: Position = 0,
    columns: int | None = None,
) -> list[Any]:
    """``body(places, *state)`` for pieces side by side that have the columns from ``first`` on, and maybe some before.

    Args:
        places: of the first elements of the pieces.
        columns: the end of the columns, if not of all.
    """
    elements = rows.group * rows.piece
    end = -(-(rows.width if columns is None else columns) // elements)

    def each(number: Value, *state: Carry) -> Sequence[Carry]:
        return body([number * elements + piece * rows.piece for piece in range(rows.group)], *state)

    return count_up(_quotient(first, elements), end, each, init)


def _quotient(position: Position, size: int) -> Position:
    return ops.div(position, constant(size, "s32")) if isinstance(position, Value) else position // size


def _flat(state: Sequence[Carry]) -> list[Value]:
    found: list[Value] = []
    for value in state:
        if isinstance(value, Number):
            found += [value.re] if value.im is None else [value.re, value.im]
        else:
            found.append(value.buffer if isinstance(value, Rows) else value)
    return found


def _like(state: Sequence[Carry], values: Sequence[Value]) -> list[Any]:
    rest = iter(values)
    found: list[Any] = []
    for value in state:
        if isinstance(value, Number):
            found.append(Number(next(rest), None if value.im is None else next(rest)))
        else:
            found.append(replace(value, buffer=next(rest)) if isinstance(value, Rows) else next(rest))
    return found
