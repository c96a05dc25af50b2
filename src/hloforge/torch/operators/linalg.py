"""Linear algebra: JAX's functions, whose calls of libraries hloforge's pipelines decompose."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import linalg

from hloforge.torch.registry import Call, lowers


def _info(x: Any) -> Any:
    """What tells that nothing failed: zeros, one a matrix."""
    return jnp.zeros(x.shape[:-2], np.int32)


def _adjoint(x: Any) -> Any:
    return jnp.conj(jnp.swapaxes(x, -1, -2))


@lowers("aten._linalg_check_errors")
def check_errors(call: Call, *_: Any, **__: Any) -> None:
    """Nothing: a matrix that has no factors gives nans."""


@lowers("aten.linalg_cholesky_ex")
def cholesky_ex(call: Call, x: Any, *, upper: bool = False, check_errors: bool = False) -> Any:
    factor = jax.lax.linalg.cholesky(x, symmetrize_input=False)
    return _adjoint(factor) if upper else factor, _info(x)


@lowers("aten.cholesky")
def cholesky(call: Call, x: Any, upper: bool = False) -> Any:
    if upper:
        return _adjoint(jax.lax.linalg.cholesky(_adjoint(x), symmetrize_input=False))
    return jax.lax.linalg.cholesky(x, symmetrize_input=False)


@lowers("aten.cholesky_solve", "aten._cholesky_solve_helper")
def cholesky_solve(call: Call, b: Any, factor: Any, upper: bool = False) -> Any:
    batch = np.broadcast_shapes(b.shape[:-2], factor.shape[:-2])
    b = jnp.broadcast_to(b, batch + b.shape[-2:])
    factor = jnp.broadcast_to(factor, batch + factor.shape[-2:])
    lower = jnp.triu(factor) if upper else jnp.tril(factor)
    lower = _adjoint(lower) if upper else lower
    half = jax.lax.linalg.triangular_solve(lower, b, left_side=True, lower=True)
    return jax.lax.linalg.triangular_solve(lower, half, left_side=True, lower=True, transpose_a=True, conjugate_a=True)


@lowers("aten.cholesky_inverse")
def cholesky_inverse(call: Call, factor: Any, upper: bool = False) -> Any:
    unit = jnp.broadcast_to(jnp.eye(factor.shape[-1], dtype=factor.dtype), factor.shape)
    return cholesky_solve(call, unit, factor, upper)


@lowers("aten.linalg_inv_ex")
def inv_ex(call: Call, x: Any, *, check_errors: bool = False) -> Any:
    return jnp.linalg.inv(x), _info(x)


def _lu(x: Any) -> tuple[Any, Any, Any]:
    """Both factors in one matrix, pivots that count from 1, and the permutation."""
    factors, pivots, permutation = jax.lax.linalg.lu(x)
    return factors, pivots + 1, permutation


@lowers("aten.linalg_lu_factor_ex", "aten._lu_with_info")
def lu_factor_ex(call: Call, x: Any, *, pivot: bool = True, check_errors: bool = False) -> Any:
    factors, pivots, _ = _lu(x)
    return factors, pivots, _info(x)


@lowers("aten.linalg_lu")
def lu(call: Call, x: Any, *, pivot: bool = True) -> Any:
    factors, _, permutation = _lu(x)
    return _unpacked(factors, permutation)


def _unpacked(factors: Any, permutation: Any) -> tuple[Any, Any, Any]:
    rows, columns = factors.shape[-2:]
    count = min(rows, columns)
    lower = jnp.tril(factors[..., :, :count], -1) + jnp.eye(rows, count, dtype=factors.dtype)
    unit = jnp.eye(rows, dtype=factors.dtype)
    return jnp.swapaxes(unit[permutation], -1, -2), lower, jnp.triu(factors[..., :count, :])


@lowers("aten.lu_unpack")
def lu_unpack(call: Call, factors: Any, pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    rows = factors.shape[-2]
    permutation = jax.lax.linalg.lu_pivots_to_permutation(pivots - 1, rows)
    found = _unpacked(factors, permutation)
    empty = jnp.zeros(0, factors.dtype)
    return (
        found[0] if unpack_pivots else empty,
        found[1] if unpack_data else empty,
        found[2] if unpack_data else empty,
    )


@lowers("aten.linalg_lu_solve", "aten.lu_solve")
def lu_solve(call: Call, factors: Any, pivots: Any, b: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    if str(call.target).startswith("aten.lu_solve"):
        factors, pivots, b = pivots, b, factors
    if not left:
        return _adjoint(_lu_solve(factors, pivots, _adjoint(b), not adjoint))
    return _lu_solve(factors, pivots, b, adjoint)


def _lu_solve(factors: Any, pivots: Any, b: Any, adjoint: bool) -> Any:
    batch = np.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    factors = jnp.broadcast_to(factors, batch + factors.shape[-2:])
    pivots = jnp.broadcast_to(pivots, (*batch, pivots.shape[-1]))
    b = jnp.broadcast_to(b, batch + b.shape[-2:])
    permutation = jax.lax.linalg.lu_pivots_to_permutation(pivots - 1, factors.shape[-1])
    solve = jax.lax.linalg.triangular_solve
    lower = {"left_side": True, "lower": True, "unit_diagonal": True}
    upper = {"left_side": True, "lower": False}
    if adjoint:
        turned = {"transpose_a": True, "conjugate_a": True}
        half = solve(factors, b, **upper, **turned)
        found = solve(factors, half, **lower, **turned)
        return jnp.take_along_axis(found, jnp.argsort(permutation, -1)[..., None], -2)
    moved = jnp.take_along_axis(b, permutation[..., None], -2)
    return solve(factors, solve(factors, moved, **lower), **upper)


@lowers("aten._linalg_solve_ex")
def solve_ex(call: Call, a: Any, b: Any, *, left: bool = True, check_errors: bool = False) -> Any:
    factors, pivots, _ = _lu(a)
    vector = b.ndim == 1 or b.shape == a.shape[:-1]
    right = b[..., None] if vector else b
    found = (
        _lu_solve(factors, pivots, right, False)
        if left
        else _adjoint(_lu_solve(factors, pivots, _adjoint(right), True))
    )
    return found[..., 0] if vector else found, factors, pivots, _info(a)


@lowers("aten.linalg_solve_triangular")
def solve_triangular(call: Call, a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return jax.lax.linalg.triangular_solve(
        jnp.broadcast_to(a, batch + a.shape[-2:]),
        jnp.broadcast_to(b, batch + b.shape[-2:]),
        left_side=left,
        lower=not upper,
        unit_diagonal=unitriangular,
    )


@lowers("aten.triangular_solve")
def triangular_solve(
    call: Call, b: Any, a: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = jnp.broadcast_to(a, batch + a.shape[-2:]), jnp.broadcast_to(b, batch + b.shape[-2:])
    found = jax.lax.linalg.triangular_solve(
        a, b, left_side=True, lower=not upper, transpose_a=transpose, unit_diagonal=unitriangular
    )
    return found, a


@lowers("aten._linalg_det")
def det(call: Call, x: Any) -> Any:
    factors, pivots, _ = _lu(x)
    swaps = jnp.sum((pivots != jnp.arange(1, x.shape[-1] + 1)).astype(np.int32), -1)
    sign = (1 - 2 * (swaps % 2)).astype(x.dtype)
    return sign * jnp.prod(jnp.diagonal(factors, axis1=-2, axis2=-1), -1), factors, pivots


@lowers("aten._linalg_slogdet")
def slogdet(call: Call, x: Any) -> Any:
    factors, pivots, _ = _lu(x)
    swaps = jnp.sum((pivots != jnp.arange(1, x.shape[-1] + 1)).astype(np.int32), -1)
    diagonal = jnp.diagonal(factors, axis1=-2, axis2=-1)
    sign = (1 - 2 * (swaps % 2)).astype(x.dtype) * jnp.prod(jnp.sign(diagonal), -1)
    return sign, jnp.sum(jnp.log(jnp.abs(diagonal)), -1), factors, pivots


@lowers("aten.linalg_qr")
def qr(call: Call, x: Any, mode: str = "reduced") -> Any:
    if mode == "r":
        return jnp.zeros(0, x.dtype), jnp.linalg.qr(x, mode="r")
    return tuple(jnp.linalg.qr(x, mode=mode))


@lowers("aten.geqrf")
def geqrf(call: Call, x: Any) -> Any:
    factors, scales = jnp.linalg.qr(x, mode="raw")
    return jnp.swapaxes(factors, -1, -2), scales


@lowers("aten.linalg_householder_product", "aten.orgqr")
def householder_product(call: Call, x: Any, scales: Any) -> Any:
    return jax.lax.linalg.householder_product(x, scales)


@lowers("aten.ormqr")
def ormqr(call: Call, x: Any, scales: Any, other: Any, left: bool = True, transpose: bool = False) -> Any:
    rows, columns = x.shape[-2:]
    square = jnp.concatenate([x, jnp.zeros((*x.shape[:-1], rows - columns), x.dtype)], -1)
    none = jnp.zeros((*scales.shape[:-1], rows - scales.shape[-1]), x.dtype)
    factor = jax.lax.linalg.householder_product(square, jnp.concatenate([scales, none], -1))
    factor = _adjoint(factor) if transpose else factor
    return factor @ other if left else other @ factor


@lowers("aten._linalg_eigh")
def eigh(call: Call, x: Any, uplo: str = "L", compute_v: bool = True) -> Any:
    vectors, values = jax.lax.linalg.eigh(x, lower=uplo == "L", symmetrize_input=False)
    return values, vectors if compute_v else jnp.zeros(0, x.dtype)


@lowers("aten.linalg_eig")
def eig(call: Call, x: Any) -> Any:
    values, vectors = jax.lax.linalg.eig(x, compute_left_eigenvectors=False)
    return values, vectors


@lowers("aten._linalg_eigvals", "aten.linalg_eigvals")
def eigvals(call: Call, x: Any) -> Any:
    return jax.lax.linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


@lowers("aten._linalg_svd")
def svd(call: Call, x: Any, full_matrices: bool = False, compute_uv: bool = True, *, driver: Any = None) -> Any:
    if not compute_uv:
        values = jnp.linalg.svd(x, compute_uv=False)
        empty = jnp.zeros(0, x.dtype)
        return empty, values, empty
    return tuple(jnp.linalg.svd(x, full_matrices=full_matrices))


@lowers("aten.linalg_matrix_exp")
def matrix_exp(call: Call, x: Any) -> Any:
    if x.size == 0:
        return x
    if x.dtype.itemsize < 4:
        x = x.astype(np.float32)
    return linalg.expm(x) if x.ndim == 2 else jax.vmap(linalg.expm)(x.reshape(-1, *x.shape[-2:])).reshape(x.shape)


@lowers("aten.linalg_lstsq")
def lstsq(call: Call, a: Any, b: Any, rcond: Any = None, *, driver: Any = None) -> Any:
    vector = b.ndim == a.ndim - 1
    right = b[..., None] if vector else b
    found = jnp.linalg.pinv(a) @ right
    empty = jnp.zeros(0, jnp.real(a).dtype)
    return found[..., 0] if vector else found, empty, jnp.zeros(0, np.int64), empty


@lowers("aten.linalg_pinv.atol_rtol_tensor")
def pinv(call: Call, x: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    if hermitian:
        vectors, signed = jax.lax.linalg.eigh(x, lower=True, symmetrize_input=False)
        left, values = vectors, jnp.abs(signed)
        right = _adjoint(vectors * jnp.where(signed < 0, -1, 1).astype(x.dtype)[..., None, :])
    else:
        left, values, right = jnp.linalg.svd(x, full_matrices=False)
    largest = jnp.max(values, -1, initial=0)
    relative = max(x.shape[-2:]) * jnp.finfo(values.dtype).eps if rtol is None else rtol
    relative = jnp.where(jnp.asarray(0.0 if atol is None else atol) > 0, 0 if rtol is None else rtol, relative)
    limit = jnp.maximum(jnp.asarray(0.0 if atol is None else atol), relative * largest)[..., None]
    kept = values > limit
    inverse = jnp.where(kept, 1 / jnp.where(kept, values, 1), 0).astype(x.dtype)
    return _adjoint(right) @ (inverse[..., None] * _adjoint(left))


@lowers("aten.linalg_cross")
def cross(call: Call, x: Any, y: Any, *, dim: int = -1) -> Any:
    x, y = jnp.broadcast_arrays(x, y)
    return jnp.cross(x, y, axis=dim)
