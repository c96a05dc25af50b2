"""Programs that JAX makes of linear systems: residuals in float64, and JAX's own answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.pipelines.library_calls.test_factorizations import ELEMENTS, adjoint, assert_small, definite, random, wide
from tests.support_jax import by_jax, evaluated

jax = pytest.importorskip("jax")
jnp, lax, linalg = jax.numpy, jax.lax.linalg, jax.scipy.linalg

# (lower, transposed, conjugated, with a unit diagonal)
FORMS = (
    (True, False, False, False),
    (False, False, False, True),
    (True, True, False, False),
    (False, True, True, False),
)


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("left", [True, False], ids=["left", "right"])
def test_triangular_systems(left: bool, element: str) -> None:
    # The other triangle is not read, and holds what would show. A block of rows ends at 64.
    shape = (70, 70) if left else (3, 4, 4)
    n = shape[-1]
    a = (random(shape, element) / n + 2 * np.eye(n)).astype(element)
    b = random((*shape[:-2], n, 3) if left else (*shape[:-2], 2, n), element)

    def solved(a: Any, b: Any, form: tuple[bool, ...]) -> Any:
        lower, transposed, conjugated, unit = form
        return lax.triangular_solve(
            a, b, left_side=left, lower=lower, transpose_a=transposed, conjugate_a=conjugated, unit_diagonal=unit
        )

    def program(a: Any, b: Any) -> list[Any]:
        return [solved(a, b, form) for form in FORMS]

    for (lower, transposed, conjugated, unit), x in zip(FORMS, evaluated(program, a, b), strict=True):
        matrix, right = wide(a, b)
        matrix = np.tril(matrix) if lower else np.triu(matrix)
        if unit:
            matrix = matrix - np.eye(n) * matrix + np.eye(n)
        if transposed:
            matrix = adjoint(matrix) if conjugated else np.swapaxes(matrix, -1, -2)
        elif conjugated:
            matrix = np.conj(matrix)
        (found,) = wide(x)
        assert_small((matrix @ found if left else found @ matrix) - right, found * np.linalg.norm(matrix), n, element)


def solutions(a: Any, b: Any, batch: Any, d: Any) -> list[Any]:
    return [jnp.linalg.solve(a, b), jnp.linalg.slogdet(batch), linalg.cho_solve(linalg.cho_factor(d), d)]


def inverses(a: Any, b: Any, batch: Any, d: Any) -> list[Any]:
    transposed = linalg.lu_solve(linalg.lu_factor(a), b, trans=1)
    return [jnp.linalg.inv(batch), jnp.linalg.det(batch), transposed, linalg.expm(d / 8)]


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("program", [solutions, pytest.param(inverses, marks=pytest.mark.slow)])
def test_what_is_built_of_factors(program: Callable[..., Any], element: str) -> None:
    a, b = random((6, 6), element) + 3 * np.eye(6).astype(element), random((6, 2), element)
    batch, d = random((2, 5, 5), element), definite((5, 5), element)
    eps = np.finfo(element).eps
    for got, want in zip(evaluated(program, a, b, batch, d), by_jax(program, a, b, batch, d), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=2000 * eps, atol=2000 * eps * np.max(np.abs(want)))


@pytest.mark.parametrize("element", ELEMENTS)
def test_tridiagonal_systems(element: str) -> None:
    # The third system needs an exchange in each row, and the last has no solution.
    diagonals = [random((4, 9), element) for _ in range(3)]
    diagonals[1][2] /= 100
    for diagonal in diagonals:
        diagonal[3] = 0
    b = random((4, 9, 2), element)

    def program(*operands: Any) -> Any:
        return lax.tridiagonal_solve(*operands)

    (got,), (want,) = evaluated(program, *diagonals, b), by_jax(program, *diagonals, b)
    assert np.isnan(got[3]).all()
    np.testing.assert_allclose(got[:3], want[:3], rtol=0, atol=500 * np.finfo(element).eps * np.max(np.abs(want[:3])))


@pytest.mark.parametrize("element", ELEMENTS)
def test_tridiagonal_systems_that_may_be_singular(element: str) -> None:
    # The first is regular. Of the second a row is zero; the third is singular, and its x is dominated by a null vector.
    below, main, above = (random((3, 7), element) for _ in range(3))
    below[1, 3] = main[1, 3] = above[1, 3] = 0
    below[2], above[2], main[2] = -1, -1, [1, 2, 2, 2, 2, 2, 1]
    b = random((3, 7, 2), element)

    def program(*operands: Any) -> Any:
        return lax.tridiagonal_solve(*operands, perturb_singular=True)

    (got,), (want,) = evaluated(program, below, main, above, b), by_jax(program, below, main, above, b)
    assert np.isfinite(got).all()
    eps = np.finfo(element).eps
    np.testing.assert_allclose(got[0], want[0], rtol=0, atol=500 * eps * np.max(np.abs(want[0])))
    first, second = (x[1:] / np.linalg.norm(x[1:], axis=1, keepdims=True) for x in (got, want))
    np.testing.assert_allclose(np.abs(np.sum(np.conj(first) * second, axis=1)), 1, atol=1e-3)


def test_eigenvectors_by_inverse_iteration() -> None:
    d, e = random((12,), "float64"), random((11,), "float64")
    a = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)

    def program(d: Any, e: Any) -> Any:
        return linalg.eigh_tridiagonal(d, e)

    w, v = evaluated(program, d, e)
    np.testing.assert_allclose(w, np.linalg.eigvalsh(a), atol=1e-12)
    np.testing.assert_allclose(a @ v, v * w, atol=1e-12)
    np.testing.assert_allclose(v.T @ v, np.eye(12), atol=1e-12)


@pytest.mark.parametrize("element", ["float32", "complex64", "int32"])
def test_sparse_rows_times_a_dense_matrix(element: str) -> None:
    sparse = pytest.importorskip("jax.experimental.sparse")
    a = np.random.default_rng(0).integers(-3, 4, (9, 6)).astype(element)
    a[np.random.default_rng(1).random((9, 6)) < 0.6] = 0
    a[4] = 0
    b = np.arange(24).reshape(6, 4).astype(element)
    # Two entries more than needed are padding.
    packed = sparse.BCSR.fromdense(a, nse=np.count_nonzero(a) + 2)
    parts = [np.asarray(part) for part in (packed.data, packed.indices, packed.indptr)]

    def program(data: Any, indices: Any, starts: Any, b: Any) -> Any:
        matrix = sparse.BCSR((data, indices, starts), shape=(9, 6))
        return matrix @ b, matrix @ b[:, 0]

    for got, want in zip(evaluated(program, *parts, b), (a @ b, a @ b[:, 0]), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_singular_system_has_infinities_from_its_pivot_on() -> None:
    a = np.tril(np.ones((70, 70))) + np.eye(70)
    a[66, 66] = 0
    b = np.arange(1.0, 141).reshape(70, 2)

    def program(a: Any, b: Any) -> Any:
        return lax.triangular_solve(a, b, left_side=True, lower=True)

    (got,), (want,) = evaluated(program, a, b), by_jax(program, a, b)
    np.testing.assert_allclose(got[:66], want[:66], rtol=1e-12)
    assert np.isinf(got[66]).all()


def test_the_largest_elements_by_a_comparator() -> None:
    x = np.random.default_rng(0).permutation(120).reshape(4, 30).astype(np.float32)

    def program(x: Any) -> list[Any]:
        return [
            jax.lax.approx_max_k(x, 5),
            jax.lax.approx_min_k(x, 3, reduction_dimension=0),
            jax.lax.approx_max_k(x, 7, aggregate_to_topk=False),
        ]

    for got, want in zip(evaluated(program, x), by_jax(program, x), strict=True):
        np.testing.assert_array_equal(got, want)


def test_exchanges_as_a_permutation() -> None:
    pivots = np.array([[3, 1, 4, 4, 6], [0, 1, 2, 3, 5]], np.int32)

    def program(pivots: Any) -> Any:
        return lax.lu_pivots_to_permutation(pivots, 7)

    np.testing.assert_array_equal(evaluated(program, pivots)[0], by_jax(program, pivots)[0])
