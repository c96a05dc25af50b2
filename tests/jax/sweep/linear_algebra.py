"""jax.numpy.linalg, jax.scipy.linalg and jax.lax.linalg, by what does not depend on signs and phases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp
from jax import lax

from tests.jax.sweep.table import COMPLEX, rows
from tests.sweep.case import Case, array

_ALL = ("float32", "float64", *COMPLEX)
_L, _S = jnp.linalg, jsp.linalg


def _t(x: Any) -> Any:
    return jnp.swapaxes(x, -1, -2).conj()


def _positive(x: Any) -> Any:
    return x @ _t(x) + 6 * jnp.eye(x.shape[-1], dtype=x.dtype)


def cases() -> Iterator[Case]:
    square, tall = array(5, 5), array(6, 4)
    functions: dict[str, Any] = {
        "det": lambda x: [_L.det(x), _L.slogdet(x), _L.det(x[:3, :3]), _L.det(x[:2, :2])],
        "inv": lambda x: [
            _L.inv(x + 5 * jnp.eye(5)),
            _S.inv(x + 5 * jnp.eye(5)),
            _L.matrix_power(x, 3),
            _L.matrix_power(x, -2),
        ],
        "solve": lambda x: [
            _L.solve(x, x[0]),
            _L.solve(x, x[:, :2] * x[:, 2:4]),
            _S.solve(_positive(x), x, assume_a="pos"),
            _S.solve_triangular(x + 9 * jnp.eye(5), x, lower=True),
            _S.solve_triangular(x + 9 * jnp.eye(5), x, trans=2, unit_diagonal=True),
        ],
        "cholesky": lambda x: [
            _L.cholesky(_positive(x)),
            _L.cholesky(_positive(x), upper=True),
            _S.cho_solve(_S.cho_factor(_positive(x)), x),
        ],
        "qr": lambda x: [jnp.abs(_L.qr(x, mode="r")), _L.qr(x).Q @ _L.qr(x).R, _S.qr(x, pivoting=True)[2]],
        "svdvals": lambda x: [
            _L.svdvals(x),
            _L.cond(x),
            _L.matrix_rank(x),
            _L.norm(x, 2),
            _L.norm(x, "nuc"),
            _L.norm(x, -2),
        ],
        "svd": lambda x: (lambda s: [(s[0] * s[1]) @ s[2]])(_L.svd(x, full_matrices=False)),
        "eigh": lambda x: (
            lambda w, v: [
                w,
                (v * w) @ _t(v),
                _L.eigvalsh(x + _t(x)),
                _S.eigh(x + _t(x), eigvals_only=True),
                _L.eigvalsh(x, UPLO="U"),
            ]
        )(*_L.eigh(x + _t(x))),
        "pinv": lambda x: [_L.pinv(x), _L.pinv(x[:, :3]), _L.pinv(x + _t(x), hermitian=True)],
        "lu": lambda x: [*_S.lu(x), _S.lu_factor(x), _S.lu_solve(_S.lu_factor(x), x) + 1],
        "expm": lambda x: [_S.expm(x), _S.expm(x * 0.01), _S.expm_frechet(x, x.T * 0.5)],
        "sqrtm": lambda x: [_S.sqrtm(_positive(x))],
        "norms": lambda x: [
            _L.norm(x),
            _L.norm(x, "fro"),
            _L.norm(x, 1),
            _L.norm(x, jnp.inf),
            _L.norm(x[0], 3),
            _L.norm(x[0], 0),
            _L.norm(x, axis=0, keepdims=True),
            _L.vector_norm(x, ord=-jnp.inf),
            _L.matrix_norm(x, ord=-1),
        ],
        "products": lambda x: [
            _L.multi_dot([x, x, x]),
            _L.outer(x[0], x[1]),
            _L.cross(x[0, :3], x[1, :3]),
            _L.tensordot(x, x),
            _L.vecdot(x, x),
            _L.trace(x),
            _L.matrix_transpose(x),
            _L.diagonal(x),
        ],
        "lstsq": lambda x: _L.lstsq(x[:, :3], x[:, 3:]),
        "tensorsolve": lambda x: [_L.tensorsolve(x.reshape(5, 5), x[0]), _L.tensorinv(x, ind=1)],
        "schur": lambda x: (lambda t, z: [z @ t @ _t(z)])(*_S.schur(x)),
        "hessenberg": lambda x: (lambda h, q: [q @ h @ _t(q)])(*_S.hessenberg(x, calc_q=True)),
        "polar": lambda x: _S.polar(x),
        "special": lambda x: (
            [
                _S.toeplitz(x[0], x[1]),
                _S.block_diag(x, x[:2]),
                _S.hilbert(4),
                _S.pascal(5),
                _S.hankel(x[0], x[1]),
                _S.circulant(x[0]),
            ]
            if hasattr(_S, "circulant")
            else [_S.toeplitz(x[0], x[1]), _S.block_diag(x, x[:2]), _S.hilbert(4), _S.pascal(5)]
        ),
    }
    for name, function in functions.items():
        yield from rows(name, function, square, dtypes=_ALL if name != "polar" else ("float32", "float64"))
    batched: dict[str, Any] = {
        "batched": lambda x: [
            _L.det(x),
            _L.inv(x + 5 * jnp.eye(4)),
            _L.solve(x, x) + 1,
            _L.cholesky(_positive(x)),
            lax.linalg.triangular_solve(x + 9 * jnp.eye(4), x, left_side=False, lower=True),
        ],
        "batched_spectra": lambda x: [_L.svdvals(x), _L.eigvalsh(x + _t(x)), jnp.abs(_L.qr(x, mode="r"))],
    }
    for name, function in batched.items():
        yield from rows(name, function, array(3, 4, 4), dtypes=("float32", "complex64"))
    yield from rows(
        "tall",
        lambda x: [
            _L.svdvals(x),
            jnp.abs(_L.qr(x, mode="r")),
            _L.pinv(x),
            _L.matrix_rank(x),
            _L.svd(x, full_matrices=True)[1],
            _L.svdvals(x.T),
            _L.lstsq(x, x[:, 0])[0] + 1,
        ],
        tall,
        dtypes=_ALL,
    )
    yield from rows(
        "eig",
        lambda x: [jnp.sort_complex(_L.eigvals(x)), (lambda w, v: x @ v - v * w + 1)(*_L.eig(x))],
        square,
        dtypes=_ALL,
    )
    yield from rows(
        "grads",
        lambda x: [
            jax.grad(lambda x: _L.det(x))(x),
            jax.grad(lambda x: _L.slogdet(_positive(x))[1])(x),
            jax.grad(lambda x: _L.cholesky(_positive(x)).sum())(x),
            jax.grad(lambda x: _L.eigvalsh(x + x.T)[0])(x),
            jax.grad(lambda x: _L.svdvals(x).sum())(x),
            jax.grad(lambda x: _L.solve(x, x[0]).sum())(x),
            jax.grad(lambda x: _L.inv(x).sum())(x),
        ],
        square,
        dtypes=("float32", "float64"),
    )
    yield from rows(
        "tridiagonal",
        lambda x: [
            lax.linalg.tridiagonal_solve(x[0].at[0].set(0), x[1] + 9, x[2].at[-1].set(0), x[:, :2]),
            _S.eigh_tridiagonal(x[0], x[1, 1:], eigvals_only=True),
        ],
        square,
        dtypes=("float32", "float64"),
    )
    yield from rows(
        "householder",
        lambda x: (lambda a, t: [jnp.abs(jnp.triu(a)), lax.linalg.householder_product(a, t) @ jnp.triu(a)])(
            *lax.linalg.geqrf(x)
        ),
        square,
        dtypes=_ALL,
    )
    yield from rows(
        "special_matrices",
        lambda x: [
            _L.cholesky(-_positive(x)),
            _L.det(x * 0),
            jnp.abs(_L.inv(x * 0)),
            _L.svdvals(x * jnp.nan),
            _L.eigvalsh(x * jnp.inf),
            _L.matrix_rank(x * 0),
            jnp.abs(_L.solve(x * 0, x[0])),
        ],
        square,
        dtypes=("float32", "float64"),
    )
    yield from rows(
        "empty",
        lambda x: [
            _L.det(x[:0, :0]),
            _L.svdvals(x[:0]),
            _L.cholesky(x[:0, :0]),
            _L.inv(x[:0, :0]),
            _L.eigvalsh(x[:0, :0]),
            _L.norm(x[:, :0]),
            _L.qr(x[:0], mode="r"),
            _L.solve(x[:0, :0], x[:0]),
        ],
        square,
        dtypes=_ALL,
    )
    yield from rows(
        "one",
        lambda x: [
            _L.det(x[:1, :1]),
            _L.svdvals(x[:1]),
            _L.cholesky(jnp.abs(x[:1, :1])),
            _L.inv(x[:1, :1]),
            _L.eigvalsh(x[:1, :1]),
            jnp.abs(_L.qr(x[:1], mode="r")),
            _L.eigvals(x[:1, :1]),
        ],
        square,
        dtypes=_ALL,
    )
    yield from rows(
        "half_types",
        lambda x: [_L.norm(x), _L.norm(x, 1), _L.matrix_power(x, 2), _L.multi_dot([x, x])],
        square,
        dtypes=("bfloat16", "float16", "int32"),
    )
