"""Householder reflectors H = I - tau v v^H on rows. Source: Golub & Van Loan 5.1; LAPACK "larfg", "larf", "ung2r"."""

from __future__ import annotations

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.idioms import matrix_transpose, zeros
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.own_calls import orthogonal
from hloforge.pipelines.library_calls.rows import Number, Position, Rows, count_down, count_up, each_matrix, each_piece

# Rows from which factors are computed from LAPACK's storage, for which code generation has code.
_LEAST = 16
# Squares below it, of matrices whose largest magnitude is about 1, are taken for zero: they have lost their digits.
NEGLIGIBLE = {"f32": 1e-30, "f64": 1e-290}


def reflector(x: Number, first: Position) -> tuple[Number, Value, Number]:
    """v, beta and tau with (I - conj(tau) v v^H) x = beta e_first, as LAPACK's "larfg".

    Args:
        x: a vector, of which the elements before ``first`` are not read.

    Returns:
        v with v[first] = 1 and zeros before it, beta, and tau.
    """
    places = ops.iota("s32", x.re.dims, 0)
    zero, one = x.constant(0), x.constant(1)
    tail = x.where(places > first, zero)
    alpha = x.where(ops.eq(places, first), zero).sum()
    rest = ops.reduce(tail.squared(), 0, ops.add, [0])
    if alpha.im is not None:
        rest = rest + alpha.im * alpha.im
    is_done = rest <= NEGLIGIBLE[x.re.element_type.name]
    norm = ops.sqrt(rest + alpha.re * alpha.re)
    beta = ops.select(is_done, alpha.re, ops.select(alpha.re < 0.0, norm, -norm))
    difference = Number(alpha.re - beta, alpha.im)
    tau = zero.where(is_done, -difference.times(1.0 / ops.select(is_done, one.re, beta)))
    scale = zero.where(is_done, one.where(is_done, difference).inverse())
    return one.where(ops.eq(places, first), tail * scale), beta, tau


def rows_times(state: Rows, weights: Position, first: Position, last: Position, result: Position) -> Rows:
    """Put the sum of conj(w[i]) row i, first <= i < last, into the row ``result``; w is the row ``weights``."""

    def piece(at: Value, state: Rows) -> list[Rows]:
        empty = zeros(state.buffer.element_type, [state.piece])
        start = Number(empty, empty if state.is_complex else None)

        def add(i: Value, total: Number) -> list[Number]:
            return [total + state.scalar(weights, i).conjugate().spread(state.piece) * state.piece_of(i, at)]

        (total,) = count_up(first, last, add, [start])
        return [state.with_vector(result, total, at)]

    return each_piece(state, piece, [state])[0]  # type: ignore[no-any-return]


def subtract_product(state: Rows, weights: Position, row: Position, first: Position, last: Position) -> Rows:
    """row i -= w[i] ``row``, first <= i < last; w is the row ``weights``."""

    def piece(at: Value, state: Rows) -> list[Rows]:
        def subtract(i: Value, state: Rows) -> list[Rows]:
            product = state.scalar(weights, i).spread(state.piece) * state.piece_of(row, at)
            return [state.with_vector(i, state.piece_of(i, at) - product, at)]

        return count_up(first, last, subtract, [state])

    return each_piece(state, piece, [state])[0]  # type: ignore[no-any-return]


def accumulated(vectors: Number, taus: Number, offset: int) -> Number:
    """Q = H_0 H_1 ... , ``[b, n, n]``.

    Args:
        vectors: ``[b, n, n]``, whose row k < n - offset is v_k, with v_k[k + offset] = 1 and zeros before it.
        taus: ``[b, 1, n]``.
        offset: how far before its first element a reflector is stored.
    """
    n = vectors.re.dims[1]
    if vectors.im is None and n - offset >= _LEAST:
        return Number(_orthogonal(vectors.re, taus.re, offset))
    parts = [ops.concat_in_dim(pair, 1) for pair in zip(vectors.parts, taus.parts, strict=True)]
    state = Rows.of(Number(*parts), 2)
    tau, v, w = n, n + 1, n + 2

    def step(k: Value, state: Rows) -> list[Rows]:
        """Row k is the reflector until Q replaces it: no later step needs it."""
        state = state.with_vector(v, state.vector(k))
        state = rows_times(state.with_vector(k, _unit(state, k)), v, k + offset, n, w)
        state = state.with_vector(w, state.vector(w) * state.scalar(tau, k).spread(state.width))
        return [subtract_product(state, v, w, k + offset, n)]

    def whole(state: Rows) -> Rows:
        (state,) = count_up(n - offset, n, lambda k, state: [state.with_vector(k, _unit(state, k))], [state])
        return count_down(n - 1 - offset, 0, step, [state])[0]  # type: ignore[no-any-return]

    return each_matrix(state, whole).block((0, n), n)


def _orthogonal(vectors: Value, taus: Value, offset: int) -> Value:
    """Q of real reflectors, by way of LAPACK's storage of those of ``n - offset`` rows."""
    n = vectors.dims[1]
    columns = matrix_transpose(vectors[:, : n - offset, offset:])
    q = orthogonal(columns, taus[:, :, : n - offset], n - offset)
    if not offset:
        return q
    padded = ops.pad(q, 0, [(0, 0, 0), (offset, 0, 0), (offset, 0, 0)])
    rows, places = (ops.iota("s32", padded.dims, axis) for axis in (1, 2))
    return ops.select(ops.eq(rows, places) & (rows < offset), full(padded, 1), padded)


def _unit(state: Rows, place: Value) -> Number:
    """The row ``place`` of the identity."""
    places = ops.iota("s32", [state.width], 0)
    one = ops.convert_element_type(ops.eq(places, place), state.buffer.element_type)
    return Number(one, full(one, 0) if state.is_complex else None)
