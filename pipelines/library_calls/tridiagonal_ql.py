"""Eigenvalues of real symmetric tridiagonal matrices by implicitly shifted QL.

Source: LAPACK "steqr"; Golub & Van Loan 8.3. The rotations of some sweeps are found first and applied to the vectors
afterwards (``rotations.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.matrices import ascending, identity, permuted
from hloforge.pipelines.library_calls.own_calls import tridiagonal_ql
from hloforge.pipelines.library_calls.reflectors import NEGLIGIBLE
from hloforge.pipelines.library_calls.rotations import (
    AT_ONCE,
    MARGIN,
    put_rotation,
    rotated_down,
    without_rotations,
)
from hloforge.pipelines.library_calls.rows import (
    Number,
    Position,
    Rows,
    count_down,
    count_up,
    each_matrix,
    loop,
)

# Rows below those of vectors: diagonal, other diagonal, and the cosines and sines of each sweep.
D, E, ROTATIONS = range(3)
_EACH = 2
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
    n = d.dims[1]
    state, top = with_diagonals(d, e, vectors, _EACH)
    columns = vectors[0].dims[2] if vectors else 0
    state = each_matrix(state, lambda rows: _iterated(rows, n, top, columns))
    return results(state, n, top, columns)


def eigenvectors(d: Value, e: Value) -> list[Value]:
    """``own_calls.tridiagonal_eigenvectors`` by loops."""
    batch, n = d.dims
    found, left, rows = by_sweeps(d, e, identity(d.element_type, (batch, n, n)))
    order = ascending(found)
    return [permuted(found, order), left, permuted(rows, order)]


def with_diagonals(d: Value, e: Value, vectors: Sequence[Value], each: int) -> tuple[Rows, int]:
    """Vectors ``[batch, n, w]`` below a margin, the diagonals below them, and room for rotations; the row of D.

    Args:
        each: rows of rotations for a sweep.
    """
    batch, n = d.dims
    columns = vectors[0].dims[2] if vectors else 0
    margin = MARGIN if vectors else 0
    width = max(columns, n + 2 * margin)
    parts = [ops.pad(x, 0.0, [(0, 0, 0), (0, 0, 0), (0, width - columns, 0)]) for x in vectors]
    diagonals = [ops.pad(ops.reshape(x, [batch, 1, n]), 0.0, [(0, 0, 0), (0, 0, 0), (0, width - n, 0)]) for x in (d, e)]
    stacked = ops.pad(ops.concat_in_dim([*parts, *diagonals], 1), 0.0, [(0, 0, 0), (margin, 0, 0), (0, 0, 0)])
    rotations = each * (AT_ONCE if vectors else 1)
    return Rows.of(Number(stacked), rotations), margin + n * len(vectors)


def results(state: Rows, n: int, top: int, columns: int) -> list[Value]:
    """The diagonals ``[batch, n]`` and the vectors ``[batch, n, w]`` of ``with_diagonals``."""
    batch = state.buffer.dims[0]
    found = [ops.reshape(state.block((top + row, top + row + 1), n).re, [batch, n]) for row in (D, E)]
    return [*found, *(state.block((first, first + n), columns).re for first in range(MARGIN, top, n) if columns)]


def _iterated(state: Rows, n: int, top: int, columns: int) -> Rows:
    """Sweeps until every element of E is zero, as many at once as rows are rotated by."""

    def more(start: Value, turn: Value, _: Rows) -> Value:
        return ops.and_(start < n - 1, turn < SWEEPS * n)

    def sweep(number: Value, start: Value, state: Rows) -> tuple[Value, Value, Rows]:
        row = number * _EACH + (top + ROTATIONS)
        end = _end_of_block(state, start, n, top)
        state = _find_rotations(without_rotations(state, row) if columns else state, start, end, top, row, -number)
        return end, ops.select(ops.eq(end, start), ops.min(start + 1, n - 1), start), state

    def sweeps(start: Value, turn: Value, state: Rows) -> list[Value | Rows]:
        if not columns:
            _, start, state = sweep(zero, start, state)
            return [start, turn + 1, state]

        def one(number: Value, start: Value, last: Value, state: Rows) -> list[Value | Rows]:
            end, start, state = sweep(number, start, state)
            return [start, ops.max(last, end), state]

        following, last, state = count_up(0, AT_ONCE, one, [start, start, state])
        state = rotated_down(state, start, last, MARGIN, columns, top + ROTATIONS, _EACH)
        return [following, turn + AT_ONCE, state]

    zero = constant(0, "s32")
    return loop(more, sweeps, [zero, zero, state])[2]  # type: ignore[no-any-return]


def _end_of_block(state: Rows, start: Value, n: int, top: int) -> Value:
    """The first i >= start with a negligible e[i]."""
    places, is_small = negligible(state, top)
    return ops.reduce(ops.select(is_small & (places >= start), places, full(places, n - 1)), n - 1, ops.min, [0])


def negligible(state: Rows, top: int) -> tuple[Value, Value]:
    """The numbers of the places of a row, and where E is negligible beside the diagonal."""
    d, e = ops.abs(state.vector(top + D).re), ops.abs(state.vector(top + E).re)
    epsilon = epsilon_of(d)
    following = ops.concat_in_dim([d[1:], d[:1]], 0)
    # The second term ends the work on a block of rounding errors.
    return ops.iota("s32", d.dims, 0), e <= (d + following) * (epsilon / 2) + epsilon / 16


def epsilon_of(value: Value) -> float:
    """The relative spacing of an element type."""
    return float(np.finfo(value.element_type.dtype).eps)


def _find_rotations(state: Rows, start: Value, end: Value, top: int, row: Position, lag: Value) -> Rows:
    """An implicit QL step of the block start ... end; its rotations go to ``row`` and the next one."""
    p, e = state.real(top + D, start), state.real(top + E, start)
    ratio = (state.real(top + D, start + 1) - p) / (2.0 * e)
    root = ops.sqrt(ratio * ratio + 1.0)
    g = state.real(top + D, end) - p + e / (ratio + ops.select(ratio < 0.0, -root, root))
    one, zero = constant(1, g.element_type), constant(0, g.element_type)

    def turn(i: Value, state: Rows, g: Value, s: Value, c: Value, p: Value) -> list[Value | Rows]:
        e = state.real(top + E, i)
        f, b = s * e, c * e
        c, s, r = rotation(g, f)
        state = put_rotation(put(state, top + E, i + 1, r), row, i, lag, c, s)
        g = state.real(top + D, i + 1) - p
        r = (state.real(top + D, i) - g) * s + 2.0 * c * b
        p = s * r
        return [put(state, top + D, i + 1, g + p), c * r - b, s, c, p]

    state, g, _, _, p = count_down(end - 1, start, turn, [state, g, one, one, zero])
    state = put(state, top + D, start, state.real(top + D, start) - p)
    # Of a block of one element the last line holds.
    return put(put(state, top + E, start, g), top + E, end, zero)


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
