"""Eigenvalues of Hermitian matrices against numpy's in float64, and the equations that define the vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloforge
from tests.pipelines.library_calls.spectral import (
    SLACK,
    Array,
    adjoint,
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
    """Hermitian 6 x 6: random, diagonal, repeated, of rank 1, zero, large, small, with a graded diagonal."""
    a = random(dtype, 6, 6)
    q, _ = np.linalg.qr(random(dtype, 6, 6, seed=1))
    v = random(dtype, 6, 1, seed=2)
    repeated = q @ np.diag([1, 1, 1, 2, 2, -1]) @ adjoint(q)
    grades = np.diag(10.0 ** np.arange(-6, 6, 2)) + 1e-7 * (a + adjoint(a))
    found = [a, np.diag(np.arange(6.0)[::-1]), repeated, v @ adjoint(v), 0 * a, 1e30 * a, 1e-30 * a, grades]
    return np.stack([(b + adjoint(b)) / 2 for b in found]).astype(dtype)


def check(a: Array, w: Array, v: Array) -> None:
    wide = a.astype(np.complex128 if np.iscomplexobj(a) else np.float64)
    scale = norms(a)
    assert np.all(np.diff(w) >= 0)
    assert error(w, np.linalg.eigvalsh(wide), scale[..., 0], a) < SLACK
    assert error(wide @ v, v * w[..., None, :].astype(np.float64), scale, a) < SLACK
    assert non_orthogonality(v) < SLACK


@pytest.mark.parametrize("dtype", ["f4", "c16", *(pytest.param(name, marks=pytest.mark.slow) for name in ("f8", "c8"))])
def test_hard_matrices_meet_their_equations(dtype: str) -> None:
    a = hard_matrices(dtype)
    w, v = evaluated(lambda a: jax.numpy.linalg.eigh(a, symmetrize_input=False), a)
    check(a, w, v)
    assert np.array_equal(w[1], np.arange(6)), "a diagonal matrix has its diagonal for eigenvalues"
    assert not np.any(w[4])


@pytest.mark.parametrize(
    ("dtype", "n"), [("f4", 5), ("f8", 40), ("f4", 150), pytest.param("f8", 260, marks=pytest.mark.slow)]
)
def test_divide_and_conquer_keeps_what_is_close_apart(dtype: str, n: int) -> None:
    found = families(n, dtype)
    program = lowered(lambda a: jax.numpy.linalg.eigh(a, symmetrize_input=False), found["zero"])
    session = hloforge.compile(program).load()
    for name, a in found.items():
        w, v = (np.asarray(part) for part in session(a))
        check(a[None], w[None], v[None])
        if name in ("zero", "identity"):
            assert np.array_equal(w, np.diag(a)), name


@pytest.mark.parametrize(("dtype", "n"), [("f8", 12), ("f4", 40), ("f4", 93)])
def test_sparse_matrices(dtype: str, n: int) -> None:
    a = sparse(dtype, 200, n)
    a = (a + adjoint(a)) / 2
    check(a, *evaluated(lambda a: jax.numpy.linalg.eigh(a, symmetrize_input=False), a))


@pytest.mark.parametrize("dtype", ["f4", "c8"])
def test_a_batch_is_shared_out(dtype: str) -> None:
    a = random(dtype, 9, 70, 70)
    a = (a + adjoint(a)) / 2
    a[3], a[5, 2, 1] = 0, np.nan
    w, v = evaluated(lambda a: jax.numpy.linalg.eigh(a, symmetrize_input=False), a)
    good = np.arange(9) != 5
    check(a[good], w[good], v[good])
    assert np.all(np.isnan(w[5])) and np.all(np.isnan(v[5]))


def test_only_the_named_triangle_is_read_and_sizes_from_0_to_2_and_64_do() -> None:
    a = random("f4", 7, 7)
    lower, upper = np.tril(a) + np.triu(np.full_like(a, np.nan), 1), np.triu(a) + np.tril(np.full_like(a, np.nan), -1)
    sizes = [random("f8", n, n) for n in (0, 1, 2, 64)]
    sizes = [b + b.T for b in sizes]

    def function(lower: Any, upper: Any, *sizes: Any) -> Any:
        eigh = jax.numpy.linalg.eigh
        found = [eigh(lower, UPLO="L", symmetrize_input=False), eigh(upper, UPLO="U", symmetrize_input=False)]
        return found, [eigh(b, symmetrize_input=False) for b in sizes]

    results = evaluated(function, lower, upper, *sizes)
    symmetric = [np.tril(a) + np.tril(a, -1).T, np.triu(a) + np.triu(a, 1).T, *sizes]
    for number, b in enumerate(symmetric):
        if b.size:
            check(b, results[2 * number], results[2 * number + 1])
        else:
            assert results[2 * number].shape == (0,)


def test_nan_ends_and_makes_nan_of_its_matrix_alone() -> None:
    a = np.stack([np.full((5, 5), np.nan), np.eye(5), np.full((5, 5), np.inf)]).astype("f4")
    w, v, values = evaluated(lambda a: (*jax.numpy.linalg.eigh(a), jax.numpy.linalg.eigvalsh(a)), a)
    for found in (w, v, values):
        assert np.all(np.isnan(found[[0, 2]]))
        assert not np.any(np.isnan(found[1]))
    assert np.array_equal(values[1], np.ones(5))


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "n"), [("f4", 256), ("f8", 301), ("c8", 129), ("f4", 512)])
def test_large_matrices_meet_their_equations(dtype: str, n: int) -> None:
    a = random(dtype, n, n)
    a = (a + adjoint(a)) / 2
    w, v = evaluated(lambda a: jax.numpy.linalg.eigh(a, symmetrize_input=False), a)
    check(a[None], w[None], v[None])


@pytest.mark.slow
def test_loops_stay_fused_where_the_triangle_is_cut_out_first() -> None:
    """IREE fuses the cut with the loops' matrix at O2, and needs more stack than there is."""
    a = random("c8", 50, 50)
    a = (a + adjoint(a)) / 2
    w, v = evaluated(lambda a: jax.numpy.linalg.eigh(jax.numpy.tril(a), symmetrize_input=False), a)
    check(a[None], w[None], v[None])
