"""Singular values and vectors. Source: LAPACK "gesdd", "gesvd"; JAX ``jnp.linalg.svd``."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.idioms import batch_matmul, conjugate, matrix_transpose, zeros
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls import own_calls
from hloforge.pipelines.library_calls.bidiagonal import TAU_P, TAU_Q, D, E, bidiagonalize
from hloforge.pipelines.library_calls.bidiagonal_qr import diagonalize
from hloforge.pipelines.library_calls.matrices import from_parts, identity, kept, not_finite, parts_of, poisoned, scaled
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target, lapack, solver
from hloforge.pipelines.library_calls.rows import Number

_JOBS = {"A": "full", "S": "thin", "N": "none"}


@custom_call_target(*lapack("gesdd", "gesvd"))
def gesdd(call: CustomCall) -> list[Value]:
    """a ``[..., m, n]`` -> a, descending singular values, u, the adjoint of v, info."""
    (a,) = call.operands
    return [a, *_of_any_batch(a, call.choice("mode", _JOBS), _dims(call))]


@custom_call_target(*solver("gesvd", "gesdd"))
def gesvd(call: CustomCall) -> list[Value]:
    """The same; of a transposed matrix the adjoint of v is before u."""
    (a,) = call.operands
    values, first, second, info = _dims(call)
    if not call.setting("transposed"):
        return [a, *_of_any_batch(a, _job(call), [values, first, second, info])]
    found = _of_any_batch(a, _job(call), [values, second, first, info])
    return [a, found[0], found[2], found[1], found[3]]


@custom_call_target(*solver("gesvdj", "gesvdp"))
def gesvdj(call: CustomCall) -> list[Value]:
    """The same, with v in place of its adjoint."""
    (a,) = call.operands
    dims = _dims(call)
    *batch, n, k = dims[2]
    values, u, vt, info = _of_any_batch(a, _job(call), [dims[0], dims[1], (*batch, k, n), dims[3]])
    v = ops.transpose(vt, [*range(len(batch)), len(batch) + 1, len(batch)])
    return [a, values, u, conjugate(v), info]


def _dims(call: CustomCall) -> list[tuple[int, ...]]:
    """The sizes of the results after the first."""
    return [shape.dimensions for shape in call.shapes[1:]]


def _job(call: CustomCall) -> str:
    wanted, full_size = call.setting("compute_uv"), call.setting("full_matrices")
    return ("full" if full_size else "thin") if wanted else "none"


def _of_any_batch(a: Value, vectors: str, dims: Sequence[tuple[int, ...]]) -> list[Value]:
    """The values, u, the adjoint of v and info in these sizes; vectors that are not wanted are zeros."""
    *batch, m, n = a.dims
    if not min(m, n) or not prod(batch):
        return [
            zeros(parts_of(a).re.element_type, dims[0]),
            *(_identities(a, sizes) for sizes in dims[1:3]),
            zeros("s32", dims[3]),
        ]
    values, u, vt, info = svd(ops.reshape(a, [prod(batch), m, n]), vectors)
    found = [
        zeros(a.element_type, sizes) if x is None else ops.reshape(x[:, : sizes[-2], : sizes[-1]], sizes)
        for x, sizes in zip((u, vt), dims[1:3], strict=True)
    ]
    return [ops.reshape(values, dims[0]), *found, ops.reshape(info, dims[3])]


def _identities(a: Value, dims: tuple[int, ...]) -> Value:
    """The vectors of empty matrices."""
    if not dims or not prod(dims):
        return zeros(a.element_type, dims)
    one = identity(a.element_type, (prod(dims[:-2]), dims[-2], dims[-1]))
    return ops.reshape(one, dims)


def svd(a: Value, vectors: str) -> tuple[Value, Value | None, Value | None, Value]:
    """The values ``[b, k]``, u, the adjoint of v, and how many values are missing ``[b]``, of ``[b, m, n]``.

    By a QR factorization unless the matrix is square, reduction to bidiagonal form, and implicit QR.

    Args:
        vectors: ``full``: all of the square u and v; ``thin``: the first k = min(m, n) columns; ``none``.
    """
    batch, m, n = a.dims
    if m < n:
        values, v, ut, info = svd(conjugate(matrix_transpose(a)), vectors)
        u, vt = (None if x is None else conjugate(matrix_transpose(x)) for x in (ut, v))
        return values, u, vt, info
    bad = not_finite(a)
    a, scale = scaled(a, bad)
    if m == n:
        values, u, vt, left = _of_square(a, vectors != "none")
    else:
        factors, taus = own_calls.qr(a)
        upper = ops.iota("s32", (batch, n, n), 1) <= ops.iota("s32", (batch, n, n), 2)
        top = factors[:, :n, :]
        values, u, vt, left = _of_square(ops.select(upper, top, full(top, 0)), vectors != "none")
        if u is not None:
            q = own_calls.orthogonal(factors, taus, m if vectors == "full" else n)
            inner = batch_matmul(q[:, :, :n], ops.optimization_barrier(u))
            u = ops.concat_in_dim([inner, q[:, :, n:]], 2) if vectors == "full" else inner
    info = ops.reduce(ops.convert_element_type(left, "s32"), 0, ops.add, [1])
    info = ops.select(bad, full(info, 1), info)
    values = poisoned(values * ops.broadcast_in_dim(scale, values.dims, [0]), bad)
    u, vt = (None if x is None else poisoned(x, bad) for x in (u, vt))
    return values, u, vt, info


def _of_square(a: Value, vectors: bool) -> tuple[Value, Value | None, Value | None, Value]:
    batch, n, _ = a.dims
    if a.element_type.is_complex:
        reduced = bidiagonalize(kept(parts_of(a)))
        left, right = reduced.block((n, 2 * n), n), reduced.block((0, n), n)
        rows = [reduced.block((2 * n + row, 2 * n + row + 1), n) for row in (D, E, TAU_Q, TAU_P)]
    else:
        *both, diagonals = own_calls.bidiagonal(a)
        left, right = map(Number, both)
        rows = [Number(diagonals[:, row : row + 1]) for row in (D, E, TAU_Q, TAU_P)]
    d, e = (ops.reshape(row.re, [batch, n]) for row in rows[:2])
    if not vectors:
        values, missing, _ = diagonalize(d, e, None)
        return values, None, None, missing
    values, missing, *sides = own_calls.bidiagonal_vectors(d, e)
    if a.element_type.is_complex:
        sides = [ops.complex(side, full(side, 0)) for side in sides]
    u = own_calls.reflected(*_joined(left, rows[2]), sides[0], offset=0)
    v = own_calls.reflected(*_joined(right, rows[3]), sides[1], offset=1)
    return values, u, conjugate(matrix_transpose(v)), ops.ne(missing, 0.0)


def _joined(reflectors: Number, taus: Number) -> tuple[Value, Value]:
    """Reflectors and their factors by numbers instead of parts."""
    return from_parts(kept(reflectors).parts), from_parts(kept(taus).parts)
