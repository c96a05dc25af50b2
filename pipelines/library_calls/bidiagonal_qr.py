"""Singular values of real bidiagonal matrices by implicitly shifted QR.

Source: LAPACK "bdsqr", "las2"; Golub & Van Loan 8.6. As in ``tridiagonal_ql.py``, the rotations of some sweeps are
found first.
"""

from __future__ import annotations

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.matrices import ascending, identity, permuted
from hloforge.pipelines.library_calls.own_calls import bidiagonal_qr
from hloforge.pipelines.library_calls.rotations import (
    AT_ONCE,
    MARGIN,
    put_rotation,
    rotated_up,
    without_rotations,
)
from hloforge.pipelines.library_calls.rows import Position, Rows, count_up, each_matrix, loop
from hloforge.pipelines.library_calls.tridiagonal_ql import (
    ROTATIONS,
    SWEEPS,
    D,
    E,
    epsilon_of,
    negligible,
    put,
    results,
    rotation,
    with_diagonals,
)

# Of the rows of each sweep's rotations, the first ones of those from the left and from the right.
_LEFT, _RIGHT, _EACH = 0, 2, 4


def diagonalize(d: Value, e: Value, vectors: tuple[Value, Value] | None) -> tuple[Value, Value, list[Value]]:
    """The singular values of bidiagonal matrices X S Y^T, in descending order.

    Args:
        d, e: ``[batch, n]``, diagonals of magnitudes of about 1 at most, and those above them with e[n - 1] = 0.
        vectors: q and p ``[batch, n, w]``, to which X^T and Y^T are applied; None for singular values alone.

    Returns:
        the values ``[batch, n]``; pred ``[batch, n]``, true as often as one is missing; and X^T q and Y^T p.
    """
    values, left, *rows = bidiagonal_qr(d, e, vectors or ())
    order = ascending(-ops.abs(values))
    found = []
    if rows:
        q, p = rows
        # The sign of a negative value goes to one side.
        p = ops.select(ops.broadcast_in_dim(values < 0.0, p.dims, [0, 1]), -p, p)
        found = [permuted(q, order), permuted(p, order)]
    return permuted(ops.abs(values), order), ops.ne(left, 0.0), found


def vectors(d: Value, e: Value) -> list[Value]:
    """``own_calls.bidiagonal_vectors`` by loops."""
    batch, n = d.dims
    one = identity(d.element_type, (batch, n, n))
    values, left, found = diagonalize(d, e, (one, one))
    return [values, ops.convert_element_type(left, d.element_type), *found]


def by_sweeps(d: Value, e: Value, *vectors: Value) -> list[Value]:
    """``own_calls.bidiagonal_qr`` by loops."""
    n = d.dims[1]
    state, top = with_diagonals(d, e, vectors, _EACH)
    columns = vectors[0].dims[2] if vectors else 0
    state = each_matrix(state, lambda rows: _iterated(rows, n, top, columns))
    return results(state, n, top, columns)


def _iterated(state: Rows, n: int, top: int, columns: int) -> Rows:
    """Sweeps until every element of E is zero, as many at once as rows are rotated by."""

    def more(end: Value, turn: Value, _: Rows) -> Value:
        return ops.and_(end > 0, turn < SWEEPS * n)

    def sweep(number: Value, end: Value, state: Rows) -> tuple[Value, Value, Rows]:
        row = number * _EACH + (top + ROTATIONS)
        start = _start_of_block(state, end, top)
        # Of e before the block, the negligible rest is dropped; there is none before the first.
        before = ops.max(start - 1, 0)
        rest = ops.select(start > 0, constant(0, state.buffer.element_type), state.real(top + E, before))
        state = put(state, top + E, before, rest)
        if columns:
            state = without_rotations(without_rotations(state, row + _LEFT), row + _RIGHT)
        state = _find_rotations(state, start, end, top, row, number)
        return start, ops.select(ops.eq(start, end), ops.max(end - 1, 0), end), state

    def sweeps(end: Value, turn: Value, state: Rows) -> list[Value | Rows]:
        if not columns:
            _, end, state = sweep(zero, end, state)
            return [end, turn + 1, state]

        def one(number: Value, end: Value, first: Value, state: Rows) -> list[Value | Rows]:
            start, end, state = sweep(number, end, state)
            return [end, ops.min(first, start), state]

        following, first, state = count_up(0, AT_ONCE, one, [end, end, state])
        for matrix, side in ((MARGIN, _LEFT), (MARGIN + n, _RIGHT)):
            state = rotated_up(state, first, end, matrix, columns, top + ROTATIONS + side, _EACH)
        return [following, turn + AT_ONCE, state]

    zero = constant(0, "s32")
    return loop(more, sweeps, [constant(n - 1, "s32"), zero, state])[2]  # type: ignore[no-any-return]


def _start_of_block(state: Rows, end: Value, top: int) -> Value:
    """One beyond the last i < end with a negligible e[i], or 0."""
    places, is_small = negligible(state, top)
    return ops.reduce(ops.select(is_small & (places < end), places + 1, full(places, 0)), 0, ops.max, [0])


def _find_rotations(state: Rows, start: Value, end: Value, top: int, row: Position, lag: Value) -> Rows:
    """An implicit QR step of the block start ... end; its rotations go to the rows from ``row`` on."""
    first, g = state.real(top + D, start), state.real(top + E, start)
    shift = _shift(state, start, end, top)
    sign = ops.select(first < 0.0, full(first, -1), full(first, 1))
    f = ops.select(ops.eq(shift, 0.0), first, (ops.abs(first) - shift) * (sign + shift / first))
    zero = constant(0, f.element_type)

    def turn(i: Value, state: Rows, f: Value, g: Value) -> list[Value | Rows]:
        d, e, below = state.real(top + D, i), state.real(top + E, i), state.real(top + D, i + 1)
        c, s, r = rotation(f, g)
        # What is before the block is zero, or at the first place, which the next store of E replaces.
        state = put(state, top + E, ops.max(i - 1, 0), ops.select(i > start, r, zero))
        state = put_rotation(state, row + _RIGHT, i, lag, c, s)
        f, above, g, below = c * d + s * e, c * e - s * d, s * below, c * below
        c, s, r = rotation(f, g)
        state = put_rotation(state, row + _LEFT, i, lag, c, s)
        state = put(put(state, top + D, i, r), top + D, i + 1, c * below - s * above)
        f = c * above + s * below
        following = state.real(top + E, i + 1)
        state = put(put(state, top + E, i, f), top + E, i + 1, c * following)
        return [state, f, s * following]

    return count_up(start, end, turn, [state, f, g])[0]  # type: ignore[no-any-return]


def _shift(state: Rows, start: Value, end: Value, top: int) -> Value:
    """The smaller singular value of the last two rows of a block; 0 if that loses nothing, or a value is zero."""
    before = ops.max(end - 1, 0)
    f, g, h = (ops.abs(state.real(row, i)) for row, i in ((top + D, before), (top + E, before), (top + D, end)))
    least, most = ops.min(f, h), ops.max(f, h)
    high, low, share = 1.0 + least / most, (most - least) / most, g / most
    share = share * share
    shift = least * (2.0 / (ops.sqrt(high * high + share) + ops.sqrt(low * low + share)))
    d = ops.abs(state.vector(top + D).re)
    places = ops.iota("s32", d.dims, 0)
    inside = (places >= start) & (places <= end)
    smallest = ops.reduce(ops.select(inside, d, full(d, 1)), float("inf"), ops.min, [0])
    epsilon = epsilon_of(d)
    ratio = shift / ops.abs(state.real(top + D, start))
    is_useful = ops.and_(smallest > epsilon * epsilon, ratio * ratio > epsilon)
    return ops.select(is_useful, shift, full(shift, 0))
