"""Householder reflectors, alone and in blocks.

A reflector is ``h = 1 - tau v adjoint(v)``, with ``v`` zero above its place and one there; a block of them is
``h0 h1 ... = 1 - v t adjoint(v)``, with one reflector a column of v and t upper triangular.

Source: LAPACK "larfg", "larft", "larfb"; Golub & Van Loan, 5.1; Schreiber & Van Loan (1989), "A storage-efficient WY
representation for products of Householder transformations".
"""

from __future__ import annotations

from dataclasses import dataclass

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.idioms import batch_matmul, conjugate, lower_triangle, matrix_transpose
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.blocks import (
    columns_at,
    element_at,
    real_part,
    spread,
    squares,
    typed_as,
    zero_unless,
)


@dataclass(frozen=True)
class Reflector:
    """What maps a vector to one that is zero below a position.

    Attributes:
        v: ``[b, 1, m]``: zeros, one at the place, and numbers beyond it.
        tau: ``[b]``, 0 for the identity.
        image: ``[b, 1, m]``: the vector, with the real number that it is mapped to at the place, and v beyond it.
    """

    v: Value
    tau: Value
    image: Value


def reflector(vector: Value, place: Value) -> Reflector:
    """The h with ``adjoint(h) x = [..., beta, 0, ...]`` for the part x of ``[b, 1, m]`` from ``place`` on.

    Numbers are divided by the largest of them, so that no square overflows or vanishes. As in LAPACK, a vector that is
    zero beyond the place, and real there, is left as it is.
    """
    dims = vector.dims
    places = ops.iota("s32", dims, 2)
    here, beyond = places.eq(spread(place, dims)), places > spread(place, dims)
    size = ops.abs(vector)
    if vector.element_type.is_complex:
        size = ops.max(ops.abs(ops.real(vector)), ops.abs(ops.imag(vector)))
    largest = ops.reduce(zero_unless(here | beyond, size), 0, ops.max, [1, 2])
    largest = ops.select(largest > 0, largest, full(largest, 1))
    if dims[2] == 1:
        # IREE takes the one number's real part for it: a loop over a matrix of a single row.
        largest = ops.optimization_barrier(largest)
    scaled = vector / spread(typed_as(largest, vector), dims)
    tail = ops.reduce(zero_unless(beyond, squares(scaled)), 0, ops.add, [1, 2])
    alpha = element_at(scaled, ops.constant(0, "s32"), place)
    is_identity = ops.eq(squares(alpha) - squares(real_part(alpha)) + tail, 0)
    norm = ops.sqrt(squares(alpha) + tail)
    beta = ops.select(real_part(alpha) < 0, norm, -norm)
    beta = ops.select(is_identity, full(beta, 1), beta)
    tau = zero_unless(~is_identity, (typed_as(beta, alpha) - alpha) / typed_as(beta, alpha))
    # Not zero: beta has the opposite sign of alpha's real part.
    lead = ops.select(is_identity, full(alpha, 1), alpha - typed_as(beta, alpha))
    below = zero_unless(beyond, scaled / spread(lead, dims))
    at_place = ops.select(spread(is_identity, dims), vector, spread(typed_as(beta * largest, vector), dims))
    return Reflector(
        ops.select(here, full(below, 1), below),
        tau,
        ops.select(beyond, below, ops.select(here, at_place, vector)),
    )


def block_vectors(columns: Value, start: Value, stop: Value) -> Value:
    """The v of the block whose columns LAPACK's storage holds in ``[b, m, w]``; columns from ``stop`` on are zero.

    Args:
        start: the number of the block's first column, which is its position.
    """
    rows, numbers = ops.iota("s32", columns.dims, 1), ops.iota("s32", columns.dims, 2)
    places = numbers + spread(start, numbers.dims)
    counts = places < spread(stop, places.dims)
    return ops.select(counts & ops.eq(rows, places), full(columns, 1), zero_unless(counts & (rows > places), columns))


def block_triangle(v: Value, taus: Value) -> Value:
    """The t of a block: ``[b, m, w]`` and ``[b, 1, w]`` to ``[b, w, w]``.

    It solves ``(1 + tau u) t = tau`` with the upper triangle u, above its diagonal, of ``adjoint(v) v``.
    """
    width = v.dims[2]
    column = matrix_transpose(taus)
    products = batch_matmul(conjugate(matrix_transpose(v)), v)
    batch = v.dims[0]
    numbers = lower_triangle((batch, width, width))
    above = zero_unless(~numbers, products * ops.broadcast_in_dim(column, products.dims, [0, 1, 2]))
    is_diagonal = numbers & matrix_transpose(numbers)
    diagonal = zero_unless(is_diagonal, ops.broadcast_in_dim(column, products.dims, [0, 1, 2]))
    return ops.triangular_solve(above, diagonal, lower=False, unit_diagonal=True)


def with_block(operand: Value, v: Value, t: Value, *, adjoint: bool) -> Value:
    """``(1 - v t adjoint(v)) operand``, or of the adjoint of that."""
    t = conjugate(matrix_transpose(t)) if adjoint else t
    return operand - batch_matmul(v, batch_matmul(t, batch_matmul(conjugate(matrix_transpose(v)), operand)))


def block_at(a: Value, taus: Value, start: Value, width: int) -> tuple[Value, Value]:
    """The v and t of the block of columns from ``start`` on, of LAPACK's storage ``[b, m, n]`` and ``[b, 1, k]``.

    The numbers of columns and taus are multiples of the block's width; taus beyond the last reflector are zero.
    """
    v = block_vectors(columns_at(a, start, width), start, start + width)
    return v, block_triangle(v, columns_at(taus, start, width))
