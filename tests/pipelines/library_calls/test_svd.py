"""Singular values against numpy's in float64, and the equations that define the vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloforge
from tests.pipelines.library_calls.spectral import (
    SLACK,
    Array,
    error,
    families,
    non_orthogonality,
    norms,
    random,
    sparse,
)
from tests.support_jax import evaluated, lowered

jax = pytest.importorskip("jax")


def hard_matrices(dtype: str) -> Array:
    """6 x 6: random, diagonal, of rank 2, zero, large, small, a nilpotent one, repeated values, a zero column."""
    a = random(dtype, 6, 6)
    thin = random(dtype, 6, 2, seed=1)
    q, _ = np.linalg.qr(random(dtype, 6, 6, seed=2))
    column = a.copy()
    column[:, 2] = 0
    found = [
        a,
        np.diag([3.0, -5, 1, 0, 4, 2]),
        thin @ thin.T,
        0 * a,
        1e30 * a,
        1e-30 * a,
        np.eye(6, k=1),
        2 * q,
        column,
    ]
    return np.stack(found).astype(dtype)


def check(a: Array, u: Array, s: Array, vt: Array) -> None:
    wide = a.astype(np.complex128 if np.iscomplexobj(a) else np.float64)
    scale = norms(a)
    k = s.shape[-1]
    assert np.all(s >= 0)
    assert np.all(np.diff(s) <= 0)
    assert error(s, np.linalg.svd(wide, compute_uv=False), scale[..., 0], a) < SLACK
    product = (u[..., :k].astype(wide.dtype) * s[..., None, :]) @ vt[..., :k, :].astype(wide.dtype)
    assert error(product, wide, scale, a) < SLACK
    assert non_orthogonality(u) < SLACK
    assert non_orthogonality(vt.swapaxes(-1, -2)) < SLACK


@pytest.mark.parametrize("dtype", ["f4", "c16", *(pytest.param(name, marks=pytest.mark.slow) for name in ("f8", "c8"))])
def test_hard_matrices_meet_their_equations(dtype: str) -> None:
    a = hard_matrices(dtype)
    check(a, *evaluated(jax.numpy.linalg.svd, a))


def divided(n: int, dtype: str) -> dict[str, Array]:
    """What divide and conquer could lose: ``families``, and graded, rank-deficient, triangular and nilpotent ones."""
    generator = np.random.default_rng(n)
    a = generator.standard_normal((n, n))
    (q, _), (p, _) = (np.linalg.qr(generator.standard_normal((n, n))) for _ in range(2))
    more = {
        "geometric": (q * 10.0 ** -np.linspace(0, 14, n)) @ p,
        "half the rank": (q * np.where(np.arange(n) < n // 2, 1.0 + np.arange(n), 0)) @ p,
        "orthogonal": q,
        "bidiagonal": np.eye(n) + np.eye(n, k=1),
        "triangular": np.triu(np.full((n, n), -0.3), 1) + np.eye(n),
        "nilpotent": np.eye(n, k=1),
        "zero rows": np.where(np.arange(n)[:, None] % 3 == 0, 0, a),
    }
    return {**families(n, dtype), **{name: b.astype(dtype) for name, b in more.items()}}


@pytest.mark.parametrize(
    ("dtype", "n"), [("f4", 5), ("f8", 2), ("f8", 40), ("f4", 150), pytest.param("f8", 260, marks=pytest.mark.slow)]
)
def test_divide_and_conquer_keeps_what_is_close_apart(dtype: str, n: int) -> None:
    found = divided(n, dtype)
    session = hloforge.compile(lowered(jax.numpy.linalg.svd, found["zero"])).load()
    for name, a in found.items():
        u, s, vt = (np.asarray(part)[None] for part in session(a))
        check(a[None], u, s, vt)
        if name == "zero":
            assert not np.any(s)


@pytest.mark.parametrize(("dtype", "n"), [("f8", 6), ("f8", 12), ("f4", 40), ("f4", 93)])
def test_sparse_matrices(dtype: str, n: int) -> None:
    """Roots that lie so near a pole that its distance has no inverse, or none from the last one."""
    a = sparse(dtype, 200, n)
    check(a, *evaluated(lambda a: jax.numpy.linalg.svd(a, full_matrices=False), a))


@pytest.mark.parametrize(("dtype", "m", "n"), [("f8", 9, 5), pytest.param("c8", 5, 9, marks=pytest.mark.slow)])
def test_full_and_thin_vectors_and_values_alone_agree(dtype: str, m: int, n: int) -> None:
    a = random(dtype, 2, m, n)

    def function(a: Any) -> Any:
        svd = jax.numpy.linalg.svd
        return svd(a), svd(a, full_matrices=False), svd(a, compute_uv=False)

    results = evaluated(function, a)
    check(a, *results[:3])
    check(a, *results[3:6])
    assert results[0].shape == (2, m, m)
    assert results[3].shape == (2, m, min(m, n))
    assert error(results[6], results[1], norms(a)[..., 0], a) < SLACK


def test_empty_and_single_matrices_and_one_of_64() -> None:
    arguments = [np.zeros((0, 3), "f4"), np.zeros((3, 0), "f4"), random("f4", 1, 1), random("f4", 64, 64)]
    results = evaluated(lambda *a: [jax.numpy.linalg.svd(b) for b in a], *arguments)
    assert [result.shape for result in results[:6]] == [(0, 0), (0,), (3, 3), (3, 3), (0,), (0, 0)]
    assert np.array_equal(results[2], np.eye(3))
    for number in (2, 3):
        check(arguments[number], *results[3 * number : 3 * number + 3])


def test_nan_ends_and_makes_nan_of_its_matrix_alone() -> None:
    a = np.stack([np.full((4, 3), np.nan), np.eye(4, 3)]).astype("f4")
    for found in evaluated(jax.numpy.linalg.svd, a):
        assert np.all(np.isnan(found[0]))
        assert not np.any(np.isnan(found[1]))


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "m", "n"), [("f4", 256, 256), ("f8", 300, 200), ("f4", 512, 512)])
def test_large_matrices_meet_their_equations(dtype: str, m: int, n: int) -> None:
    a = random(dtype, 1, m, n)
    check(a, *evaluated(jax.numpy.linalg.svd, a))
