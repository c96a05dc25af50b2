"""Square matrices to Hessenberg form, and Hermitian ones to tridiagonal form, as LAPACK returns them.

Source: LAPACK "gehrd", "sytrd", "hetrd"; Golub & Van Loan 7.4; JAX ``jax.lax.linalg.hessenberg``, ``tridiagonal``.
"""

from __future__ import annotations

from math import prod

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.idioms import matrix_transpose, zeros
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls import own_calls, tridiagonal
from hloforge.pipelines.library_calls.matrices import from_parts, hermitian, not_finite, parts_of, poisoned, scaled
from hloforge.pipelines.library_calls.reflectors import reflect_from_right, reflector, rows_times
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target, lapack, solver
from hloforge.pipelines.library_calls.rows import Number, Rows, count_up, each_matrix

# Rows below the n of a matrix and the n of reflectors: their factors, and two for a step's own.
TAU, V, W = range(3)
_EXTRA = 3


@custom_call_target(*lapack("gehrd"))
def gehrd(call: CustomCall) -> list[Value]:
    """a ``[..., n, n]`` -> its Hessenberg form with the vectors of reflectors below, their factors, info (0)."""
    (a,) = call.operands
    *batch, n, _ = a.dims
    if (call.setting("low"), call.setting("high")) != (1, n):
        raise UnsupportedError(f"@{call.target} of rows {call.setting('low')} to {call.setting('high')} of {n}")
    info = zeros("s32", batch)
    if n < 2 or not prod(batch):
        return [a, zeros(a.element_type, [*batch, max(n - 1, 0)]), info]
    flat = ops.reshape(a, [prod(batch), n, n])
    bad = not_finite(flat)
    flat, scale = scaled(flat, bad)
    form, vectors, taus = (from_parts(found.parts) for found in hessenberg(flat))
    scale = ops.broadcast_in_dim(scale, form.dims, [0])
    form = form * (ops.complex(scale, full(scale, 0)) if form.element_type.is_complex else scale)
    rows, columns = (ops.iota("s32", form.dims, axis) for axis in (1, 2))
    packed = ops.select(rows > columns + 1, matrix_transpose(vectors), form)
    taus = ops.reshape(taus[:, :, : n - 1], [prod(batch), n - 1])
    return [ops.reshape(poisoned(packed, bad), a.dims), ops.reshape(poisoned(taus, bad), [*batch, n - 1]), info]


@custom_call_target(*lapack("sytrd", prefixes="sd"), *lapack("hetrd", prefixes="cz"), *solver("sytrd"))
def sytrd(call: CustomCall) -> list[Value]:
    """a ``[..., n, n]`` -> vectors of reflectors beside a's other triangle, diagonal, other diagonal, factors, info.

    The reduction of an upper triangle, from the last row up, is that of a lower one with rows and columns reversed.
    """
    (a,) = call.operands
    lower = call.lower
    *batch, n, _ = a.dims
    real = parts_of(a).re.element_type
    info = zeros("s32", batch)
    if not prod(a.dims):
        short = [*batch, max(n - 1, 0)]
        return [a, zeros(real, [*batch, n]), zeros(real, short), zeros(a.element_type, short), info]
    flat = ops.reshape(a, [prod(batch), n, n])
    turned = flat if lower else ops.optimization_barrier(ops.rev(flat, [1, 2]))
    whole = hermitian(turned, lower=True)
    bad = not_finite(whole)
    whole, scale = scaled(whole, bad)
    state = tridiagonal.tridiagonalize(parts_of(whole))

    def extra(row: int, size: int) -> Value:
        found = state.block((n + row, n + row + 1), size)
        parts = found.parts if row == tridiagonal.TAU else [found.re]
        return ops.reshape(from_parts(parts), [prod(batch), size])

    d, e, taus = extra(tridiagonal.D, n), extra(tridiagonal.E, n - 1), extra(tridiagonal.TAU, n - 1)
    d, e = (x * ops.broadcast_in_dim(scale, x.dims, [0]) for x in (d, e))
    vectors = matrix_transpose(from_parts(state.block((0, n), n).parts))
    rows, columns = (ops.iota("s32", vectors.dims, axis) for axis in (1, 2))
    packed = ops.select(rows > columns + 1, vectors, turned)
    packed = _with_diagonals(packed, d, e)
    if not lower:
        packed, d, e, taus = ops.rev(packed, [1, 2]), ops.rev(d, [1]), ops.rev(e, [1]), ops.rev(taus, [1])
    found = [packed, d, e, taus]
    shapes = [shape.dimensions for shape in call.shapes]
    return [*(ops.reshape(poisoned(x, bad), dims) for x, dims in zip(found, shapes, strict=False)), info]


def _with_diagonals(a: Value, d: Value, e: Value) -> Value:
    """``[b, n, n]`` with the real diagonals d ``[b, n]`` and below it e ``[b, n - 1]``."""
    rows, columns = (ops.iota("s32", a.dims, axis) for axis in (1, 2))
    e = ops.pad(e, 0.0, [(0, 0, 0), (0, 1, 0)])
    d, e = (ops.broadcast_in_dim(x, a.dims, [0, 2]) for x in (d, e))
    if a.element_type.is_complex:
        d, e = (ops.complex(x, full(x, 0)) for x in (d, e))
    return ops.select(ops.eq(rows, columns), d, ops.select(ops.eq(rows, columns + 1), e, a))


def hessenberg(a: Value) -> tuple[Number, Number, Number]:
    """``own_calls.hessenberg``, of complex matrices too, by parts."""
    if a.element_type.is_complex:
        return _by_loops(parts_of(a))
    form, reflectors, taus = own_calls.hessenberg(a)
    return Number(form), Number(reflectors), Number(taus)


def reduced(a: Value) -> list[Value]:
    """``own_calls.hessenberg`` by loops."""
    return [found.re for found in _by_loops(Number(a))]


def _by_loops(a: Number) -> tuple[Number, Number, Number]:
    n = a.re.dims[1]
    state = _reduced(a)
    return state.block((0, n), n), state.block((n, 2 * n), n), state.block((2 * n + TAU, 2 * n + TAU + 1), n)


def _reduced(a: Number) -> Rows:
    """``[batch, n, n]`` with n >= 2, scaled to magnitudes of about 1 at most.

    Returns:
        the rows k < n of Q^H a Q, where what is below the other diagonal is to be taken for zero; rows n + k with
        the reflectors v_k of Q = H_0 ... H_{n-2}, with v_k[k + 1] = 1; and their factors in the row 2 n + TAU.
    """
    n = a.re.dims[1]
    state = Rows.of(a, n + _EXTRA)
    return each_matrix(state, lambda rows: count_up(0, n - 1, lambda k, rows: [_step(k, rows, n)], [rows])[0])


def _step(k: Value, state: Rows, n: int) -> Rows:
    """a = H^H a H, where H makes the column k zero below the element k + 1."""
    extra = 2 * n
    (state,) = count_up(k + 1, n, lambda i, rows: [rows.with_vector(extra + V, rows.scalar(i, k), i)], [state])
    v, _, tau = reflector(state.vector(extra + V), k + 1)
    state = state.with_vector(extra + TAU, tau, k)
    state = state.with_vector(extra + V, v).with_vector(n + k, v)
    state = rows_times(state, extra + V, k + 1, n, extra + W, k)
    factor = state.scalar(extra + TAU, k).conjugate().spread(state.width)
    state = state.with_vector(extra + W, state.vector(extra + W) * factor)

    tau = state.scalar(extra + TAU, k)

    def reflect(i: Value, state: Rows) -> list[Rows]:
        return [reflect_from_right(state, i, (state.scalar(extra + V, i), extra + W), extra + V, tau, k)]

    return count_up(0, n, reflect, [state])[0]  # type: ignore[no-any-return]
