"""What JAX calls libraries of GPUs for, in programs that it lowers for CUDA, compiled for the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloforge
from tests.pipelines.library_calls.test_factorizations import definite, random
from tests.support_jax import by_jax

jax = pytest.importorskip("jax")
jnp, lax, linalg = jax.numpy, jax.lax.linalg, jax.scipy.linalg
ALGORITHM = lax.SvdAlgorithm


def for_cuda(function: Any, *arguments: Any) -> str:
    """The program that JAX lowers for CUDA; no GPU is needed."""
    with jax.enable_x64(True):
        text: str = jax.jit(function).trace(*arguments).lower(lowering_platforms=("cuda",)).as_text()
    return text


def factors(a: Any, d: Any, t: Any, b: Any) -> Any:
    tridiagonal = [lax.tridiagonal_solve(t, t + 4, t, b, perturb_singular=p) for p in (False, True)]
    products = [] if jnp.iscomplexobj(a) else [lax.symmetric_product(a, d, alpha=2.0, beta=-1.0)]
    return [linalg.lu_factor(a), jnp.linalg.qr(a), jnp.linalg.cholesky(d), tridiagonal, products]


def spectra(d: Any, tall: Any) -> Any:
    """Values, and what vectors rebuild: vectors have no signs of their own."""
    values, vectors = jnp.linalg.eigh(d)
    rebuilt = [(vectors * values) @ vectors.conj().T]
    for a in (tall, tall.T):
        for algorithm in (ALGORITHM.DEFAULT, ALGORITHM.QR):
            u, s, vt = lax.svd(a, full_matrices=False, algorithm=algorithm)
            rebuilt += [s, (u * s) @ vt, lax.svd(a, compute_uv=False, algorithm=algorithm)]
    return [values, rebuilt]


def hybrids(a: Any) -> Any:
    return [linalg.qr(a, pivoting=True), jnp.linalg.eigvals(a)]


def check(function: Any, names: list[str], *arguments: Any) -> None:
    text = for_cuda(function, *arguments)
    assert [name for name in names if name not in text] == []
    eps = np.finfo(arguments[0].dtype).eps
    found = jax.tree.leaves(hloforge.compile(text).load()(*arguments))
    for got, want in zip(found, by_jax(function, *arguments), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=500 * eps * np.max(np.abs(want)))


@pytest.mark.parametrize("element", ["float32", pytest.param("complex128", marks=pytest.mark.slow)])
def test_factors_and_solutions(element: str) -> None:
    arguments = [random((5, 5), element), definite((5, 5), element), random((5,), element), random((5, 2), element)]
    names = ["cusolver_getrf_ffi", "cusolver_geqrf_ffi", "cusolver_orgqr_ffi", "cusolver_potrf_ffi"]
    check(factors, [*names, "cusparse_gtsv2_ffi", "cu_tridiagonal_solve_perturbed"], *arguments)


@pytest.mark.parametrize("element", ["float64", pytest.param("complex64", marks=pytest.mark.slow)])
def test_spectra(element: str) -> None:
    names = ["cusolver_syevd_ffi", "cusolver_gesvdj_ffi", "cusolver_gesvd_ffi", "transposed = true"]
    check(spectra, names, definite((5, 5), element), random((6, 4), element))


def test_what_gpus_leave_to_the_host() -> None:
    # Values far from each other have one order.
    a = np.diag([1.0, 5, -9, 20]) + random((4, 4), "float64") / 8
    q, r, p, values = hloforge.compile(for_cuda(hybrids, a)).load()(a)
    np.testing.assert_allclose(q @ r, a[:, p], atol=1e-13)
    np.testing.assert_allclose(np.sort(values.real), np.sort(np.linalg.eigvals(a)), atol=1e-12)
