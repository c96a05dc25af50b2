"""Hermitian matrices to tridiagonal form. Source: LAPACK "sytd2", "hetd2"; Golub & Van Loan 8.3.

A step's update of the matrix and the next one's product with a vector are one pass: the next vector needs one row of
the updated matrix alone. So an element is read and written once a step, instead of read twice and written.
"""

from __future__ import annotations

from hloforge.dialect import ops
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.reflectors import reflector
from hloforge.pipelines.library_calls.rows import (
    Number,
    Position,
    Rows,
    count_up,
    each_matrix,
    side_by_side,
)

# Rows below the n of a matrix: diagonal, other diagonal, factors of the reflectors, the last step's vectors v and w,
# this step's vector, and the product with that.
D, E, TAU, V, W, NEXT, PRODUCT = range(7)
_EXTRA = 7


def tridiagonalize(a: Number) -> Rows:
    """Hermitian ``[batch, n, n]`` with n >= 1, scaled to magnitudes of about 1 at most.

    Returns:
        rows k < n - 1 hold the reflectors v_k of Q = H_0 ... H_{n-2} with v_k[k + 1] = 1, and the rows n + D, n + E,
        n + TAU the diagonal and other diagonal of Q^H a Q, and the reflectors' factors.
    """
    n = a.re.dims[1]

    def reduce(state: Rows) -> Rows:
        (state,) = count_up(0, n - 1, lambda k, state: [_step(k, state, n)], [state])
        last = _updated(state, n, n - 1)
        return state.with_vector(n - 1, last).with_vector(n + D, Number(ops.reshape(last.re[n - 1 : n], [])), n - 1)

    return each_matrix(Rows.of(a, _EXTRA), reduce)


def reduced(a: Value) -> list[Value]:
    """``own_calls.tridiagonal`` by loops."""
    n = a.dims[1]
    state = tridiagonalize(Number(a))
    last = ops.pad(state.block((0, n - 1), n).re, 0.0, [(0, 0, 0), (0, 1, 0), (0, 0, 0)])
    return [last, state.block((n + D, n + TAU + 1), n).re]


def _step(k: Value, state: Rows, n: int) -> Rows:
    """a = H^H a H, where H makes the column k tridiagonal; of a the last step's v w^H + w v^H is still to be taken."""
    state = state.with_vector(k, _updated(state, n, k))
    column = state.vector(k).conjugate()
    v, beta, tau = reflector(column, k + 1)
    state = state.with_vector(n + D, Number(state.real(k, k)), k)
    state = state.with_vector(n + E, Number(beta), k).with_vector(n + TAU, tau, k)
    state = state.with_vector(k, v).with_vector(n + NEXT, v)
    (state,) = side_by_side(state, lambda at, state: _updated_and_multiplied(at, state, n, k + 1), [state], k + 1)
    # w = x - (tau / 2) (x^H v) v with x = tau a v, of which a v is the conjugate of the sum of conj(v[i]) row i.
    v, tau = state.vector(n + NEXT), state.scalar(n + TAU, k)
    after = ops.iota("s32", [state.width], 0) > k
    x = state.vector(n + PRODUCT).conjugate().where(after, v.constant(0)) * tau.spread(state.width)
    share = (tau * (x.conjugate() * v).sum()) * tau.constant(0.5)
    return state.with_vector(n + V, v).with_vector(n + W, x - v * share.spread(state.width))


def _updated(state: Rows, n: int, row: Position) -> Number:
    """A row of a - v w^H - w v^H."""
    v, w = (state.vector(n + of).conjugate() for of in (V, W))
    v_i, w_i = (state.scalar(n + of, row).spread(state.width) for of in (V, W))
    return state.vector(row) - v_i * w - w_i * v


def _updated_and_multiplied(places: list[Value], state: Rows, n: int, first: Value) -> list[Rows]:
    """Pieces of all rows from ``first`` on without the last step's v w^H + w v^H, and their sum by the next vector."""
    vs, ws = ([state.piece_of(n + of, at).conjugate() for at in places] for of in (V, W))

    def row(i: Value, state: Rows, *sums: Number) -> list[Rows | Number]:
        v_i, w_i, u_i = (state.scalar(n + of, i).spread(state.piece) for of in (V, W, NEXT))
        new = [state.piece_of(i, at) - v_i * w - w_i * v for at, v, w in zip(places, vs, ws, strict=True)]
        return [
            state.with_pieces(i, new, places),
            *(total + u_i.conjugate() * x for total, x in zip(sums, new, strict=True)),
        ]

    state, *sums = count_up(first, n, row, [state, *(state.no_piece() for _ in places)])
    return [state.with_pieces(n + PRODUCT, sums, places)]
