"""Schur forms, eigenvalues and eigenvectors of square matrices by the equations that define them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.pipelines.library_calls.spectral import SLACK, Array, adjoint, error, non_orthogonality, norms, random, wide
from tests.support_jax import evaluated

jax = pytest.importorskip("jax")


def hard_matrices(dtype: str) -> Array:
    """5 x 5: random, diagonal, a cycle, a Jordan block, zero, large, small, of rank 1."""
    a = random(dtype, 5, 5)
    cycle = np.roll(np.eye(5), 1, axis=0)
    jordan = np.eye(5) + np.eye(5, k=1)
    v = random(dtype, 5, 1, seed=2)
    found = [a, np.diag([3.0, -5, 1, 0, 4]), cycle, jordan, 0 * a, 1e30 * a, 1e-30 * a, v @ v.T]
    return np.stack(found).astype(dtype)


def check_vectors(a: Array, w: Array, left: Array, right: Array) -> None:
    scale = norms(a)
    assert error(wide(a) @ wide(right), wide(right) * wide(w)[..., None, :], scale, a) < SLACK
    assert error(adjoint(wide(left)) @ wide(a), wide(w)[..., None] * adjoint(wide(left)), scale, a) < SLACK
    for vectors in (left, right):
        assert np.allclose(np.linalg.norm(vectors, axis=-2), 1, atol=1e-5)


def distance(found: Array, expected: Array) -> float:
    """The distance of each value from the nearest of those expected, and the other way round."""
    gaps = np.abs(wide(found)[:, None] - wide(expected)[None, :])
    return float(max(gaps.min(axis=0).max(), gaps.min(axis=1).max()))


@pytest.mark.parametrize("dtype", ["f4", *(pytest.param(name, marks=pytest.mark.slow) for name in ("f8", "c8", "c16"))])
def test_eigenvectors_of_hard_matrices_meet_their_equations(dtype: str) -> None:
    a = hard_matrices(dtype)
    w, left, right = evaluated(lambda a: jax.lax.linalg.eig(a), a)
    check_vectors(a, w, left, right)
    # Those of a normal matrix are as exact as the matrix.
    expected = np.linalg.eigvals(a[2].astype(np.complex128))
    assert distance(w[2], expected) < SLACK * 5 * np.finfo(dtype).eps
    if dtype.startswith("f"):
        assert np.array_equal(w[1].imag, np.zeros(5)), "real eigenvalues are real"
        assert np.array_equal(right[1].imag, np.zeros((5, 5)))


@pytest.mark.parametrize("dtype", ["f4", pytest.param("c16", marks=pytest.mark.slow)])
def test_values_of_badly_scaled_matrices_are_as_exact_as_those_of_scaled_ones(dtype: str) -> None:
    generator = np.random.default_rng(3)
    scales, order = 10 ** generator.uniform(-4, 4, 7), generator.permutation(7)
    companion = np.eye(7, k=-1)
    companion[0, :3] = [-2, 1, 3]
    triangle = np.triu(random(dtype, 7, 7))[order][:, order]
    a = np.stack([random(dtype, 7, 7) * scales[:, None] / scales, companion, triangle]).astype(dtype)
    w, left, right = evaluated(lambda a: jax.lax.linalg.eig(a), a)
    for found, each in zip(w, a, strict=True):
        expected = np.linalg.eigvals(wide(each))
        assert distance(found, expected) < SLACK * 7 * np.finfo(dtype).eps * np.abs(expected).max()
    # Multiple ones of a triangle, too: the four zeros of the polynomial, and a diagonal.
    assert np.count_nonzero(w[1] == 0) == 4
    assert np.array_equal(np.sort_complex(w[2]), np.sort_complex(np.diag(triangle)))
    check_vectors(a, w, left, right)


@pytest.mark.parametrize("dtype", ["f4", pytest.param("c16", marks=pytest.mark.slow)])
def test_schur_forms_of_hard_matrices_meet_their_equations(dtype: str) -> None:
    a = hard_matrices(dtype)
    t, z, alone = evaluated(
        lambda a: (*jax.lax.linalg.schur(a), jax.lax.linalg.schur(a, compute_schur_vectors=False)[0]), a
    )
    assert error(wide(z) @ wide(t) @ adjoint(wide(z)), a, norms(a), a) < SLACK
    assert non_orthogonality(z) < SLACK
    assert error(alone, t, norms(a), a) < SLACK
    below = np.diagonal(t, -1, -2, -1)
    assert not np.any(np.tril(t, -2))
    if dtype.startswith("c"):
        assert not np.any(below)
        return
    assert not np.any(below[:, 1:] * below[:, :-1]), "blocks of at most two rows"
    pairs = np.argwhere(below)
    for matrix, row in pairs:
        (a11, a12), (a21, a22) = t[matrix, row : row + 2, row : row + 2]
        assert a11 == a22
        assert np.sign(a12) * np.sign(a21) < 0


@pytest.mark.parametrize("n", [2, 3, 6])
def test_schur_forms_of_small_integers_and_of_close_eigenvalues_far_from_zero(n: int) -> None:
    generator = np.random.default_rng(n)
    whole = generator.integers(-1, 2, (60, n, n)).astype(np.float64)
    beside = 1 / (np.add.outer(np.arange(n), np.arange(n)) + 1 + generator.random((60, 1, 1)))
    close = beside * 10.0 ** -generator.integers(0, 12, (60, 1, 1)) + np.eye(n)
    a = np.concatenate([whole, whole - adjoint(whole) + np.eye(n), close])
    t, z = evaluated(jax.lax.linalg.schur, a)
    assert error(z @ t @ adjoint(z), a, norms(a), a) < SLACK
    assert non_orthogonality(z) < SLACK


def test_values_of_24_rows_of_sizes_0_to_2_and_of_nan() -> None:
    arguments = [random("f8", 24, 24), random("f4", 1, 1), random("f8", 2, 2), np.zeros((0, 0), "f4")]
    arguments.append(np.full((3, 3), np.nan, "f4"))
    results = evaluated(lambda *a: [jax.numpy.linalg.eigvals(b) for b in a], *arguments)
    for found, a in zip(results[:3], arguments, strict=False):
        # Values of matrices that are not normal may be less exact than the matrix.
        assert distance(found, np.linalg.eigvals(wide(a))) < 100 * len(a) * np.finfo(a.dtype).eps
    assert results[3].shape == (0,)
    assert np.all(np.isnan(results[4]))


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "n"), [("f4", 64), ("f8", 256), ("c8", 100)])
def test_large_matrices_meet_their_equations(dtype: str, n: int) -> None:
    a = random(dtype, 1, n, n)
    w, left, right = evaluated(lambda a: jax.lax.linalg.eig(a), a)
    check_vectors(a, w, left, right)
