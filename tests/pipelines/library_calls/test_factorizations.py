"""Factorizations by programs of JAX: backward errors in float64, and JAX's own answers where only one is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.support_jax import by_jax, evaluated

Array = np.ndarray[Any, Any]

jax = pytest.importorskip("jax")
jnp, lax, linalg = jax.numpy, jax.lax.linalg, jax.scipy.linalg

slow = pytest.mark.slow
ELEMENTS = ["float32", *(pytest.param(name, marks=slow) for name in ("float64", "complex64", "complex128"))]
# A block ends at 64: these are empty, one element, within a block, and over its edge.
SQUARES: Sequence[tuple[int, ...]] = ((0, 0), (1, 1), (70, 70), (3, 8, 8))
OBLONGS: Sequence[tuple[int, ...]] = ((0, 3), (5, 9), (70, 66), (2, 7, 4))
# LAPACK's bounds are c n eps with a c of a few units.
SLACK = 4


def random(shape: tuple[int, ...], element: str) -> Array:
    found = np.random.default_rng(shape)
    x = found.normal(size=shape)
    return (x + 1j * found.normal(size=shape) if "complex" in element else x).astype(element)


def adjoint(x: Array) -> Array:
    return np.conj(np.swapaxes(x, -1, -2))


def definite(shape: tuple[int, ...], element: str) -> Array:
    x = random(shape, element)
    return (x @ adjoint(x) + np.eye(shape[-1])).astype(element)


def assert_small(residual: Array, scale: Array, n: int, element: str) -> None:
    """Whether each matrix of residuals is within the bound of a backward stable algorithm."""
    if residual.size:
        sizes = np.linalg.norm(residual, axis=(-2, -1)) / np.linalg.norm(scale, axis=(-2, -1))
        assert np.max(sizes) <= SLACK * max(n, 1) * np.finfo(element).eps


def wide(*arrays: Array) -> list[Array]:
    return [array.astype("complex128") for array in arrays]


@pytest.mark.parametrize("element", ELEMENTS)
def test_cholesky(element: str) -> None:
    matrices = [definite(shape, element) for shape in SQUARES]
    failing = np.stack([np.diag([1, 2, -3, 4]), np.full((4, 4), np.nan)]).astype(element)

    def program(*a: Any) -> list[Any]:
        return [jnp.linalg.cholesky(x) for x in a] + [jnp.linalg.cholesky(a[2], upper=True)]

    *factors, failed, upper = evaluated(program, *matrices, failing)
    for factor, a in zip([*factors, adjoint(upper)], [*matrices, matrices[2]], strict=True):
        low, right = wide(factor, a)
        assert_small(low @ adjoint(low) - right, right, a.shape[-1], element)
        assert not np.any(np.triu(factor, 1))
    assert np.isnan(failed[:, *np.tril_indices(4)]).all()


@pytest.mark.parametrize("element", ELEMENTS)
def test_lu(element: str) -> None:
    singular = random((6, 6), element)
    singular[:, 2] = 0
    matrices = [*(random(shape, element) for shape in OBLONGS), singular]

    def program(*a: Any) -> list[Any]:
        return [lax.lu(x) for x in a]

    found = evaluated(program, *matrices)
    for a, factors, pivots, rows in zip(matrices, found[::3], found[1::3], found[2::3], strict=True):
        m, n = a.shape[-2:]
        k = min(m, n)
        both, right = wide(factors, a)
        low, up = np.tril(both[..., :k], -1) + np.eye(m, k), np.triu(both[..., :k, :])
        assert_small(low @ up - np.take_along_axis(right, rows[..., None], -2), right, k, element)
        assert pivots.shape == (*a.shape[:-2], k)
        assert np.all(np.abs(np.tril(both[..., :k], -1)) <= (1.5 if "complex" in element else 1))
    for got, want in zip(found, by_jax(program, *matrices), strict=True):
        if got.dtype == np.int32:
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("element", ELEMENTS)
def test_qr(element: str) -> None:
    matrices = [*(random(shape, element) for shape in OBLONGS), np.eye(4, dtype=element), np.zeros((3, 2), element)]

    def program(*a: Any) -> list[Any]:
        return [jnp.linalg.qr(x) for x in a] + [jnp.linalg.qr(a[1], mode="complete")]

    found = evaluated(program, *matrices)
    for a, q, r in zip([*matrices, matrices[1]], found[::2], found[1::2], strict=True):
        m = a.shape[-2]
        left, right, whole = wide(q, r, a)
        assert not np.any(np.tril(r, -1))
        if a.any():
            assert_small(left @ right - whole, whole, m, element)
        identity = np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1]))
        assert_small(adjoint(left) @ left - identity, identity, m, element)
    for got, want in zip(found, by_jax(program, *matrices), strict=True):
        np.testing.assert_allclose(got, want, atol=100 * np.finfo(element).eps)


@pytest.mark.parametrize("element", ELEMENTS)
def test_reflectors_multiply_from_both_sides(element: str) -> None:
    a, c = random((2, 9, 4), element), random((2, 9, 9), element)

    def program(a: Any, c: Any) -> list[Any]:
        transposed, taus = jnp.linalg.qr(a, mode="raw")
        factors = jnp.swapaxes(transposed, -1, -2)
        products = [
            lax.ormqr(factors, taus, c, left=left, transpose=t) for left in (True, False) for t in (True, False)
        ]
        return [*products, lax.householder_product(factors, taus)]

    for got, want in zip(evaluated(program, a, c), by_jax(program, a, c), strict=True):
        np.testing.assert_allclose(got, want, atol=100 * np.finfo(element).eps)


@pytest.mark.parametrize("element", ELEMENTS)
def test_qr_with_pivoting(element: str) -> None:
    # Columns of falling lengths in another order, so that rounding chooses none of them.
    matrices = [
        random(shape, element) * 1.5 ** np.random.default_rng(1).permutation(shape[-1]) for shape in OBLONGS[1:]
    ]
    matrices = [matrix.astype(element) for matrix in matrices if matrix.shape[-1] < 60]

    def program(*a: Any) -> list[Any]:
        return [lax.qr(x, pivoting=True, full_matrices=False) for x in a]

    found = evaluated(program, *matrices)
    for a, q, r, columns in zip(matrices, found[::3], found[1::3], found[2::3], strict=True):
        left, right, whole = wide(q, r, a)
        assert_small(left @ right - np.take_along_axis(whole, columns[..., None, :], -1), whole, a.shape[-2], element)
    for got, want in zip(found[2::3], by_jax(program, *matrices)[2::3], strict=True):
        np.testing.assert_array_equal(got, want)


def test_complex_matrices() -> None:
    """Those that the quick suite tries: small, of every factorization."""
    a, d = random((5, 4), "complex128"), definite((5, 5), "complex128")

    def program(a: Any, d: Any) -> list[Any]:
        return [jnp.linalg.cholesky(d), jnp.linalg.qr(a), lax.lu(a), jnp.linalg.solve(d, a)]

    for got, want in zip(evaluated(program, a, d), by_jax(program, a, d), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-13)


def test_a_complex_matrix_of_one_row() -> None:
    # The imaginary parts are the larger ones: IREE took the real part for the largest.
    row, batch = random((1, 3), "complex64") * (1 + 9j), random((2, 1, 1), "complex64") * (1 + 9j)
    found = evaluated(lambda *a: [jnp.linalg.qr(x, mode="r") for x in a], row, batch)
    for a, r in zip((row, batch), found, strict=True):
        np.testing.assert_allclose(abs(r), abs(a), rtol=1e-6)
