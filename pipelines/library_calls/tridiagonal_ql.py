"""Eigenvalues of real symmetric tridiagonal matrices by implicitly shifted QL.

Source: LAPACK "steqr"; Golub & Van Loan 8.3. A sweep's rotations are found first and applied afterwards to the vectors,
a piece of all rows after the other, so that a row is read and written once a rotation.
"""

from __future__ import annotations

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.matrices import ascending, permuted
from hloforge.pipelines.library_calls.own_calls import tridiagonal_ql
from hloforge.pipelines.library_calls.reflectors import NEGLIGIBLE
from hloforge.pipelines.library_calls.rows import Number, Rows, count_down, each_matrix, each_piece, loop

# Rows below the n of vectors: diagonal, other diagonal, and the cosines and sines of a sweep.
D, E, C, S = range(4)
# Sweeps for an eigenvalue; LAPACK gives up after as many. Two are usual.
SWEEPS = 30


def diagonalize(d: Value, e: Value, z: Value | None) -> tuple[Value, Value, Value | None]:
    """The eigenvalues of tridiagonal matrices in ascending order.

    Args:
        d, e: ``[batch, n]``, diagonals of magnitudes of about 1 at most, and those beside them with e[n - 1] = 0.
        z: ``[batch, n, w]``, what to apply the eigenvectors to; None for eigenvalues alone.

    Returns:
        the eigenvalues ``[batch, n]``; pred ``[batch, n]``, true as often as one is missing; and W^T z for the
        eigenvectors W.
    """
    found, left, *rows = tridiagonal_ql(d, e, [] if z is None else [z])
    order = ascending(found)
    return permuted(found, order), ops.ne(left, 0.0), permuted(rows[0], order) if rows else None


def by_sweeps(d: Value, e: Value, *vectors: Value) -> list[Value]:
    """``own_calls.tridiagonal_ql`` by loops."""
    batch, n = d.dims
    width = vectors[0].dims[2] if vectors else n
    diagonals = [ops.pad(ops.reshape(x, [batch, 1, n]), 0.0, [(0, 0, 0), (0, 0, 0), (0, width - n, 0)]) for x in (d, e)]
    state = Rows.of(Number(ops.concat_in_dim([*vectors, *diagonals], 1)), 2)
    top = n if vectors else 0
    state = each_matrix(state, lambda rows: _iterated(rows, n, top))
    found = [ops.reshape(state.block((top + row, top + row + 1), n).re, [batch, n]) for row in (D, E)]
    return [*found, *(state.block((0, n), width).re for _ in vectors)]


def _iterated(state: Rows, n: int, top: int) -> Rows:
    """Sweeps until every element of E is zero."""

    def more(start: Value, turn: Value, _: Rows) -> Value:
        return ops.and_(start < n - 1, turn < SWEEPS * n)

    def sweep(start: Value, turn: Value, state: Rows) -> list[Value | Rows]:
        end = _end_of_block(state, start, n, top)
        state = _find_rotations(state, start, end, top)
        if top:
            state = _rotate(state, start, end, top)
        return [ops.select(ops.eq(end, start), start + 1, start), turn + 1, state]

    zero = constant(0, "s32")
    return loop(more, sweep, [zero, zero, state])[2]  # type: ignore[no-any-return]


def _end_of_block(state: Rows, start: Value, n: int, top: int) -> Value:
    """The first i >= start with a negligible e[i]."""
    d, e = ops.abs(state.vector(top + D).re), ops.abs(state.vector(top + E).re)
    epsilon = epsilon_of(d)
    following = ops.concat_in_dim([d[1:], d[:1]], 0)
    places = ops.iota("s32", d.dims, 0)
    # The second term ends the work on a block of rounding errors.
    is_small = e <= (d + following) * (epsilon / 2) + epsilon / 16
    return ops.reduce(ops.select(is_small & (places >= start), places, full(places, n - 1)), n - 1, ops.min, [0])


def epsilon_of(value: Value) -> float:
    """The relative spacing of an element type."""
    return float(np.finfo(value.element_type.dtype).eps)


def _find_rotations(state: Rows, start: Value, end: Value, top: int) -> Rows:
    """An implicit QL step of the block start ... end; its rotations go to the rows C and S."""
    p, e = state.real(top + D, start), state.real(top + E, start)
    ratio = (state.real(top + D, start + 1) - p) / (2.0 * e)
    root = ops.sqrt(ratio * ratio + 1.0)
    g = state.real(top + D, end) - p + e / (ratio + ops.select(ratio < 0.0, -root, root))
    one, zero = constant(1, g.element_type), constant(0, g.element_type)

    def turn(i: Value, state: Rows, g: Value, s: Value, c: Value, p: Value) -> list[Value | Rows]:
        e = state.real(top + E, i)
        f, b = s * e, c * e
        c, s, r = rotation(g, f)
        state = put(put(put(state, top + E, i + 1, r), top + C, i, c), top + S, i, s)
        g = state.real(top + D, i + 1) - p
        r = (state.real(top + D, i) - g) * s + 2.0 * c * b
        p = s * r
        return [put(state, top + D, i + 1, g + p), c * r - b, s, c, p]

    state, g, _, _, p = count_down(end - 1, start, turn, [state, g, one, one, zero])
    state = put(state, top + D, start, state.real(top + D, start) - p)
    # Of a block of one element the last line holds.
    return put(put(state, top + E, start, g), top + E, end, zero)


def _rotate(state: Rows, start: Value, end: Value, top: int) -> Rows:
    """Apply a sweep's rotations to the vectors; of a block of one element there are none."""

    def piece(at: Value, state: Rows) -> list[Rows]:
        def turn(i: Value, state: Rows, high: Number) -> list[Rows | Number]:
            c, s = (state.scalar(top + row, i).spread(state.piece) for row in (C, S))
            low = state.piece_of(i, at)
            return [state.with_vector(i + 1, s * low + c * high, at), c * low - s * high]

        state, last = count_down(end - 1, start, turn, [state, state.piece_of(end, at)])
        return [state.with_vector(start, last, at)]

    return each_piece(state, piece, [state])[0]  # type: ignore[no-any-return]


def put(state: Rows, row: int, column: Value, value: Value) -> Rows:
    return state.with_vector(row, Number(value), column)


def rotation(f: Value, g: Value) -> tuple[Value, Value, Value]:
    """c, s, r with c f + s g = r and c g = s f; the identity where both are negligible (LAPACK "lartg")."""
    square = f * f + g * g
    is_done = square <= NEGLIGIBLE[f.element_type.name]
    r = ops.sqrt(square)
    inverse = 1.0 / r
    one, zero = constant(1, f.element_type), constant(0, f.element_type)
    return ops.select(is_done, one, f * inverse), ops.select(is_done, zero, g * inverse), ops.select(is_done, f, r)
