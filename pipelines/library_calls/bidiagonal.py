"""Square matrices to real upper bidiagonal form. Source: LAPACK "gebd2"; Golub & Van Loan 5.4."""

from __future__ import annotations

from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.reflectors import reflect_from_right, reflector, rows_times
from hloforge.pipelines.library_calls.rows import Number, Rows, count_up, each_matrix

# Rows below the 2 n of reflectors: diagonal, upper diagonal, factors of the reflectors, and three for a step's own.
D, E, TAU_Q, TAU_P, V, P, W = range(7)
_EXTRA = 7


def bidiagonalize(a: Number) -> Rows:
    """``[batch, n, n]`` with n >= 1, scaled to magnitudes of about 1 at most.

    Returns:
        rows k < n hold the reflectors of P, with 1 at k + 1, the rows n + k those of Q, with 1 at k, and the rows
        2 n + D ... 2 n + TAU_P the diagonals of Q^H a P and the reflectors' factors.
    """
    n = a.re.dims[1]
    state = Rows.of(a, n + _EXTRA)
    return each_matrix(state, lambda rows: count_up(0, n, lambda k, rows: [_step(k, rows, n)], [rows])[0])


def reduced(a: Value) -> list[Value]:
    """``own_calls.bidiagonal`` by loops."""
    n = a.dims[1]
    state = bidiagonalize(Number(a))
    return [state.block(rows, n).re for rows in ((n, 2 * n), (0, n), (2 * n + D, 2 * n + TAU_P + 1))]


def _step(k: Value, state: Rows, n: int) -> Rows:
    """Reflect the column k from the left, then the row k from the right."""
    extra = 2 * n
    (state,) = count_up(k, n, lambda i, rows: [rows.with_vector(extra + V, rows.scalar(i, k), i)], [state])
    v, beta, tau = reflector(state.vector(extra + V), k)
    state = state.with_vector(extra + D, Number(beta), k).with_vector(extra + TAU_Q, tau, k)
    state = state.with_vector(extra + V, v).with_vector(n + k, v)
    state = rows_times(state, extra + V, k, n, extra + W, k)
    factor = state.scalar(extra + TAU_Q, k).conjugate().spread(state.width)
    state = state.with_vector(extra + W, state.vector(extra + W) * factor)
    row = (state.vector(k) - state.vector(extra + W)).conjugate()
    p, beta, tau = reflector(row, k + 1)
    state = state.with_vector(extra + E, Number(beta), k).with_vector(extra + TAU_P, tau, k)
    state = state.with_vector(extra + P, p).with_vector(k, p)

    tau = state.scalar(extra + TAU_P, k)

    def reflect(i: Value, state: Rows) -> list[Rows]:
        return [reflect_from_right(state, i, (state.scalar(extra + V, i), extra + W), extra + P, tau, k)]

    return count_up(k + 1, n, reflect, [state])[0]  # type: ignore[no-any-return]
