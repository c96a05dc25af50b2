"""Householder reflectors H = I - tau v v^H on rows. Source: Golub & Van Loan 5.1; LAPACK "larfg", "larf", "ung2r"."""

from __future__ import annotations

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.idioms import batch_matmul, matrix_transpose
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.matrices import from_parts, parts_of
from hloforge.pipelines.library_calls.own_calls import orthogonal
from hloforge.pipelines.library_calls.rows import (
    Number,
    Position,
    Rows,
    count_down,
    count_up,
    each_matrix,
    side_by_side,
)

# Rows from which factors are computed from LAPACK's storage, for which code generation has code.
_LEAST = 16
# Squares below it, of matrices whose largest magnitude is about 1, are taken for zero: they have lost their digits.
NEGLIGIBLE = {"f32": 1e-30, "f64": 1e-290}
# Numbers up to it are taken for zero, because their inverses are infinite.
TINY = {"f32": 1e-37, "f64": 1e-307}


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


def rows_times(
    state: Rows, weights: Position, first: Position, last: Position, result: Position, column: Position = 0
) -> Rows:
    """Put the sum of conj(w[i]) row i, first <= i < last, from a column on, into the row ``result``.

    w is the row ``weights``.
    """

    def pieces(places: list[Value], state: Rows) -> list[Rows]:
        def add(i: Value, *sums: Number) -> list[Number]:
            factor = state.scalar(weights, i).conjugate().spread(state.piece)
            return [total + factor * state.piece_of(i, at) for total, at in zip(sums, places, strict=True)]

        sums = count_up(first, last, add, [state.no_piece() for _ in places])
        return [state.with_pieces(result, sums, places)]

    return side_by_side(state, pieces, [state], column)[0]  # type: ignore[no-any-return]


def subtract_product(state: Rows, weights: Position, row: Position, first: Position, last: Position) -> Rows:
    """row i -= w[i] ``row``, first <= i < last; w is the row ``weights``."""

    def pieces(places: list[Value], state: Rows) -> list[Rows]:
        subtracted = [state.piece_of(row, at) for at in places]

        def subtract(i: Value, state: Rows) -> list[Rows]:
            factor = state.scalar(weights, i).spread(state.piece)
            new = [state.piece_of(i, at) - factor * x for at, x in zip(places, subtracted, strict=True)]
            return [state.with_pieces(i, new, places)]

        return count_up(first, last, subtract, [state])

    return side_by_side(state, pieces, [state])[0]  # type: ignore[no-any-return]


def reflect_from_right(
    state: Rows, i: Value, update: tuple[Number, int], p: int, tau: Number, column: Position
) -> Rows:
    """row i -= u w, then row i -= tau (row i . p) p^H, from a column on, before which p is zero.

    Args:
        update: u, and the row w.
        p: the row of the reflector.
    """
    u, w = update

    def subtract(places: list[Value], state: Rows, *sums: Number) -> list[Rows | Number]:
        factor = u.spread(state.piece)
        new = [state.piece_of(i, at) - factor * state.piece_of(w, at) for at in places]
        added = [total + x * state.piece_of(p, at) for total, x, at in zip(sums, new, places, strict=True)]
        return [state.with_pieces(i, new, places), *added]

    state, *sums = side_by_side(state, subtract, [state, *(state.no_piece() for _ in range(state.group))], column)
    product = sums[0]
    for more in sums[1:]:
        product = product + more
    product = product.sum() * tau

    def reflect(places: list[Value], state: Rows) -> list[Rows]:
        factor = product.spread(state.piece)
        return [
            state.with_pieces(
                i, [state.piece_of(i, at) - factor * state.piece_of(p, at).conjugate() for at in places], places
            )
        ]

    return side_by_side(state, reflect, [state], column)[0]  # type: ignore[no-any-return]


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


def reflected(vectors: Value, taus: Value, c: Value, *, offset: int) -> list[Value]:
    """``own_calls.reflected`` by an orthogonal matrix."""
    q = accumulated(parts_of(vectors), parts_of(taus), offset)
    return [batch_matmul(from_parts(q.parts), ops.optimization_barrier(matrix_transpose(c)))]


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
