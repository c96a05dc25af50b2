"""Hermitian matrices to tridiagonal form. Source: LAPACK "sytd2", "hetd2"; Golub & Van Loan 8.3."""

from __future__ import annotations

from hloforge.dialect import ops
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.reflectors import reflector, rows_times
from hloforge.pipelines.library_calls.rows import Number, Rows, count_up, each_matrix, each_piece

# Rows below the n of a matrix: diagonal, other diagonal, factors of the reflectors, and two for a step's own.
D, E, TAU, V, W = range(5)
_EXTRA = 5


def tridiagonalize(a: Number) -> Rows:
    """Hermitian ``[batch, n, n]`` with n >= 1, scaled to magnitudes of about 1 at most.

    Returns:
        rows k < n - 1 hold the reflectors v_k of Q = H_0 ... H_{n-2} with v_k[k + 1] = 1, and the rows n + D, n + E,
        n + TAU the diagonal and other diagonal of Q^H a Q, and the reflectors' factors.
    """
    n = a.re.dims[1]

    def reduce(state: Rows) -> Rows:
        (state,) = count_up(0, n - 1, lambda k, state: [_step(k, state, n)], [state])
        return state.with_vector(n + D, Number(state.real(n - 1, n - 1)), n - 1)

    return each_matrix(Rows.of(a, _EXTRA), reduce)


def _step(k: Value, state: Rows, n: int) -> Rows:
    """a = H^H a H, where H makes the column k tridiagonal."""
    column = state.vector(k).conjugate()
    v, beta, tau = reflector(column, k + 1)
    state = state.with_vector(n + D, Number(state.real(k, k)), k)
    state = state.with_vector(n + E, Number(beta), k).with_vector(n + TAU, tau, k)
    state = state.with_vector(k, v).with_vector(n + V, v)
    state = rows_times(state, n + V, k + 1, n, n + W)
    # w = x - (tau / 2) (x^H v) v with x = tau a v, of which a v is the conjugate of what rows_times finds.
    v, tau = state.vector(n + V), state.scalar(n + TAU, k)
    after = ops.iota("s32", [state.width], 0) > k
    x = state.vector(n + W).conjugate().where(after, v.constant(0)) * tau.spread(state.width)
    share = (tau * (x.conjugate() * v).sum()) * tau.constant(0.5)
    state = state.with_vector(n + W, x - v * share.spread(state.width))
    return _subtract_both(state, n, k + 1)


def _subtract_both(state: Rows, n: int, first: Value) -> Rows:
    """a -= v w^H + w v^H."""

    def piece(at: Value, state: Rows) -> list[Rows]:
        def subtract(i: Value, state: Rows) -> list[Rows]:
            v, w = (state.piece_of(n + row, at).conjugate() for row in (V, W))
            v_i, w_i = (state.scalar(n + row, i).spread(state.piece) for row in (V, W))
            return [state.with_vector(i, state.piece_of(i, at) - v_i * w - w_i * v, at)]

        return count_up(first, n, subtract, [state])

    return each_piece(state, piece, [state])[0]  # type: ignore[no-any-return]
