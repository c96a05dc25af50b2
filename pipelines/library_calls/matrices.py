"""Scaling, splitting and NaN handling of batches of matrices, around factorizations."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.element_types import ElementType
from hloforge.dialect.idioms import conjugate, lower_triangle, matrix_transpose, take_rows, within
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.rows import Number


def parts_of(a: Value) -> Number:
    """A real or complex array by parts."""
    return Number(ops.real(a), ops.imag(a)) if a.element_type.is_complex else Number(a)


def from_parts(parts: Sequence[Value]) -> Value:
    """An array from its parts, one or two."""
    return parts[0] if len(parts) == 1 else ops.complex(parts[0], parts[1])


def not_finite(a: Value) -> Value:
    """``[b, m, n]`` to pred ``[b]``: whether a matrix has infinite elements or NaN."""
    parts = parts_of(a)
    finite = ops.is_finite(parts.re)
    if parts.im is not None:
        finite = ops.and_(finite, ops.is_finite(parts.im))
    return ops.not_(ops.reduce(finite, True, ops.and_, [1, 2]))


def scaled(a: Value, bad: Value) -> tuple[Value, Value]:
    """Matrices with magnitudes from 1 to 2 at most, and the powers of two ``[b]`` that they were divided by.

    Squares of their elements neither overflow nor, where they matter, underflow. Dividing by a power of two is exact.

    Args:
        bad: pred ``[b]``: matrices to take for zero.
    """
    parts = [part for part in (parts_of(a).re, parts_of(a).im) if part is not None]
    keep = ops.not_(ops.broadcast_in_dim(bad, a.dims, [0]))
    parts = [ops.select(keep, part, full(part, 0)) for part in parts]
    largest = ops.abs(parts[0])
    if len(parts) > 1:
        largest = ops.max(largest, ops.abs(parts[1]))
    largest = ops.reduce(ops.optimization_barrier(largest), 0, ops.max, [1, 2])
    scale = _power_of_two(largest)
    # IREE fails to fuse what makes small complex matrices with the search of their largest element.
    scale = ops.optimization_barrier(scale)
    spread = ops.broadcast_in_dim(scale, a.dims, [0])
    return from_parts(kept(Number(*(part / spread for part in parts))).parts), scale


def _power_of_two(value: Value) -> Value:
    """The largest power of two that is no larger than a value; 1 for 0."""
    row = value.element_type
    # The bits of infinity are those of the exponent alone.
    mask = int(np.array(np.inf, row.dtype).view(f"i{row.bits // 8}"))
    integer = f"s{row.bits}"
    exponent = ops.and_(ops.bitcast_convert_type(value, integer), constant(mask, integer))
    power = ops.bitcast_convert_type(exponent, row)
    return ops.select(ops.eq(power, 0.0), full(power, 1), power)


def hermitian(a: Value, lower: bool) -> Value:
    """The Hermitian matrices ``[b, n, n]`` of which a triangle is given."""
    inside = lower_triangle(a.dims)
    if not lower:
        inside = matrix_transpose(inside)
    whole = ops.select(inside, a, conjugate(matrix_transpose(a)))
    if not a.element_type.is_complex:
        return whole
    diagonal = ops.eq(ops.iota("s32", a.dims, 1), ops.iota("s32", a.dims, 2))
    imaginary = ops.imag(whole)
    return ops.complex(ops.real(whole), ops.select(diagonal, full(imaginary, 0), imaginary))


def poisoned(value: Value, bad: Value) -> Value:
    """NaN in place of the results of matrices that are not finite."""
    nan = full(value, float("nan"))
    if value.element_type.is_complex:
        real = full(ops.real(value), float("nan"))
        nan = ops.complex(real, real)
    return ops.select(ops.broadcast_in_dim(bad, value.dims, [0]), nan, value)


def ascending(keys: Value) -> Value:
    """The s32 permutations ``[b, n]`` that put the rows ``[b, n]`` in ascending order, equal ones as they are."""
    batch, n = keys.dims
    dims = [batch, n, n]
    mine, other = (ops.broadcast_in_dim(keys, dims, [0, axis]) for axis in (1, 2))
    place, before = (ops.iota("s32", dims, axis) for axis in (1, 2))
    precedes = (other < mine) | (ops.eq(other, mine) & (before < place))
    rank = ops.reduce(ops.convert_element_type(precedes, "s32"), 0, ops.add, [2])
    is_here = ops.eq(ops.broadcast_in_dim(rank, dims, [0, 2]), place)
    return ops.reduce(ops.select(is_here, before, full(before, 0)), 0, ops.add, [2])


def permuted(rows: Value, order: Value) -> Value:
    """``[b, n, ...]`` with the rows of each batch in an order ``[b, n]``."""
    batch, n = order.dims
    places = within(order, n) + ops.iota("s32", order.dims, 0) * n
    # IREE gathers wrongly from what it has not put into memory as a whole.
    flat = ops.optimization_barrier(ops.reshape(rows, [batch * n, prod(rows.dims[2:])]))
    taken = ops.optimization_barrier(take_rows(flat, ops.reshape(places, [batch * n])))
    return ops.reshape(taken, rows.dims)


def identity(dtype: ElementType, dims: tuple[int, int, int]) -> Value:
    """Ones on the diagonals of ``[b, m, n]``."""
    ones = ops.eq(ops.iota("s32", dims, 1), ops.iota("s32", dims, 2))
    return ops.convert_element_type(ones, dtype)


def prepared(a: Value) -> tuple[Value, Value, Value]:
    """``[..., m, n]`` as one batch, scaled; which matrices are not finite, ``[b]``; and their scales, ``[b]``."""
    flat = ops.reshape(a, [prod(a.dims[:-2]), *a.dims[-2:]])
    bad = not_finite(flat)
    flat, scale = scaled(flat, bad)
    return flat, bad, scale


def unscaled(value: Value, scale: Value) -> Value:
    """Real ``[b, ...]`` multiplied by what ``scaled`` has divided by."""
    return value * ops.broadcast_in_dim(scale, value.dims, [0])


def kept(a: Number) -> Number:
    """The same arrays, made before what uses them: IREE fails to fuse some uses of several with what makes them."""
    return Number(*(ops.optimization_barrier(part) for part in a.parts))
