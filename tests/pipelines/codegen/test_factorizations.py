"""Linear algebra of JAX, whose factorizations are code of our own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy import linalg as scipy_linalg

from tests.pipelines.codegen.jax_programs import check, normal


def _positive(*shape: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    a = normal(*shape, dtype=dtype)
    found = a @ a.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])
    return np.asarray(found.astype(dtype))


def _solved(**options: Any) -> Callable[..., Any]:
    return lambda a, b: jax.lax.linalg.triangular_solve(a, b, **options)


_PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "cholesky, small": (jnp.linalg.cholesky, (_positive(50, 3, 3),)),
    "cholesky": (jnp.linalg.cholesky, (_positive(40, 40),)),
    "cholesky, complex": (jnp.linalg.cholesky, (_positive(9, 9, dtype=np.complex64),)),
    "solve, small": (jnp.linalg.solve, (_positive(50, 3, 3), normal(50, 3, 1))),
    "solve": (jnp.linalg.solve, (_positive(40, 40), normal(40, 4))),
    "solve, f64": (jnp.linalg.solve, (_positive(9, 9, dtype=np.float64), normal(9, 2, dtype=np.float64))),
    "left": (_solved(left_side=True, lower=True), (_positive(2, 9, 9), normal(2, 9, 5))),
    "left, transposed": (_solved(left_side=True, lower=False, transpose_a=True), (_positive(9, 9), normal(9, 5))),
    "right, ones": (
        _solved(left_side=False, lower=True, transpose_a=True, unit_diagonal=True),
        (_positive(2, 6, 6) / 9, normal(2, 5, 6)),
    ),
    "adjoint": (
        _solved(left_side=True, lower=True, transpose_a=True, conjugate_a=True),
        (_positive(6, 6, dtype=np.complex64), normal(6, 3, dtype=np.complex64)),
    ),
    "no right side": (_solved(left_side=True, lower=True), (_positive(6, 6), normal(6, 0))),
    "inverse": (jnp.linalg.inv, (_positive(20, 4, 4),)),
    "determinant": (jnp.linalg.slogdet, (_positive(20, 20),)),
    "lu": (scipy_linalg.lu_factor, (normal(30, 30),)),
    "qr": (jnp.linalg.qr, (normal(30, 20),)),
    "inverse, shared out": (jnp.linalg.inv, (_positive(150, 150),)),
    "qr, shared out": (jnp.linalg.qr, (normal(170, 150),)),
    "hessenberg": (lambda a: jax.lax.linalg.hessenberg(a), (normal(3, 17, 17, dtype=np.float64),)),
    "hessenberg, shared out": (lambda a: scipy_linalg.hessenberg(a, calc_q=True), (normal(150, 150),)),
    "qr, complete": (lambda a: jnp.linalg.qr(a, mode="complete"), (normal(4, 10, 6),)),
    "eigenvalues": (jnp.linalg.eigvalsh, (_positive(20, 20),)),
    "singular values": (lambda a: jnp.linalg.svd(a, compute_uv=False), (normal(12, 9),)),
    "gradient": (jax.grad(lambda a, b: jnp.sum(jnp.linalg.solve(a, b) ** 2)), (_positive(8, 8), normal(8, 2))),
}


@pytest.mark.wide(4)
@pytest.mark.parametrize("name", _PROGRAMS)
def test_results_are_lapacks(name: str) -> None:
    function, arguments = _PROGRAMS[name]
    check(function, *arguments, tolerance=None if "f64" in name else 2e-4)
