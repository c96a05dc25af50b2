"""The platform's lowering rules: nothing that the CPU has is missing, and linear algebra is decomposed by hloforge."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloforge

jax = pytest.importorskip("jax")
from jax._src.interpreters import mlir  # noqa: E402

jnp, linalg = jax.numpy, jax.lax.linalg
Array = np.ndarray[Any, Any]


def test_every_rule_of_the_cpu_has_one_here_or_is_portable() -> None:
    hloforge.jax.register()
    hloforge.jax.register()
    ours, portable = mlir._platform_specific_lowerings["hloforge"], mlir._lowerings
    missing = [one for one in mlir._platform_specific_lowerings["cpu"] if one not in ours and one not in portable]
    assert not missing


def test_rules_that_the_cpu_gets_later_serve_here() -> None:
    """Modules of JAX that are imported later on define primitives with rules for its own platforms alone."""
    hloforge.jax.register()
    from jax.experimental import checkify
    from jax.experimental.sparse.linalg import spsolve

    data, columns, starts = np.float32([4, 1, 3, 1, 2]), np.int32([0, 1, 1, 2, 2]), np.int32([0, 2, 4, 5])
    dense = np.array([[4, 1, 0], [0, 3, 1], [0, 0, 2]])
    b = np.arange(3, dtype=np.float32)
    np.testing.assert_allclose(hloforge.jit(spsolve)(data, columns, starts, b), np.linalg.solve(dense, b), rtol=1e-5)

    def checked(x: Any) -> Any:
        checkify.check(x > 0, "negative")
        return x + 1

    with pytest.raises(ValueError, match="not functionalized"):
        jax.jit(checked).trace(b[0]).lower(lowering_platforms=("hloforge",))


def test_branches_for_the_cpu_serve_here() -> None:
    hloforge.jax.register()

    def chosen(**branches: float) -> float:
        functions = {name: lambda x, y=number: x + y for name, number in branches.items()}
        return float(hloforge.jit(lambda x: jax.lax.platform_dependent(x, **functions))(np.float32(0)))

    assert chosen(cuda=1, cpu=2) == 2
    assert chosen(cpu=2, default=3) == 2
    assert chosen(cpu=2, hloforge=4, default=3) == 4
    assert chosen(cuda=1, default=3) == 3


def test_erf_of_small_floats_is_written_for_plugins() -> None:
    hloforge.jax.register()
    x = np.float32([0, 0.5, -1, 2]).astype(jnp.float8_e4m3fn)
    text = jax.jit(jax.lax.erf).trace(x).lower(lowering_platforms=("hloforge",)).as_text()
    assert not re.search("chlo.erf.*f8", text)
    found = hloforge.compile(text).load()(x)
    assert np.array_equal(np.asarray(found), np.asarray(jax.jit(jax.lax.erf)(x)))


def matrix(*sizes: int) -> Array:
    return np.random.RandomState(len(sizes) + sizes[-1]).randn(*sizes).astype(np.float32)


def eigh(a: Array) -> Array:
    vectors, values = linalg.eigh(a)
    return vectors * values[..., None, :] @ jnp.swapaxes(vectors, -1, -2).conj()


def svd(a: Array) -> Array:
    u, s, vh = linalg.svd(a, full_matrices=False)
    return u * s[..., None, :] @ vh


def qr(a: Array) -> Array:
    q, r = linalg.qr(a, full_matrices=False)
    return q @ r


def eig(a: Array) -> Array:
    values, vectors = linalg.eig(a, compute_left_eigenvectors=False)
    return vectors * values[..., None, :] @ jnp.linalg.inv(vectors)


def schur(a: Array) -> Array:
    t, z = linalg.schur(a)
    return z @ t @ jnp.swapaxes(z, -1, -2).conj()


def lu(a: Array) -> Array:
    factors, _, permutation = linalg.lu(a)
    lower = jnp.tril(factors, -1) + jnp.eye(a.shape[-1], dtype=a.dtype)
    product = lower @ jnp.triu(factors)
    return jnp.take_along_axis(product, jnp.argsort(permutation)[..., None], -2)


def hessenberg(a: Array) -> Array:
    h, taus = linalg.hessenberg(a)
    q = linalg.householder_product(h[..., 1:, :-1], taus)
    q = jnp.zeros_like(a).at[..., 0, 0].set(1).at[..., 1:, 1:].set(q)
    return q @ jnp.triu(h, -1) @ jnp.swapaxes(q, -1, -2).conj()


def tridiagonal(a: Array) -> Array:
    _, d, e, taus = linalg.tridiagonal(a, lower=True)
    q = linalg.householder_product(linalg.tridiagonal(a, lower=True)[0][1:, :-1], taus)
    q = jnp.eye(len(a), dtype=a.dtype).at[1:, 1:].set(q)
    return q @ (jnp.diag(d) + jnp.diag(e, 1) + jnp.diag(e, -1)) @ q.T


IDENTITIES: list[tuple[Callable[..., Any], bool]] = [
    (eigh, True),
    (svd, False),
    (qr, False),
    (eig, False),
    (schur, False),
    (lu, False),
    (hessenberg, False),
    (tridiagonal, True),
]


# Their decompositions have tests of their own; here, that JAX's rules lead to them.
@pytest.mark.parametrize(
    ("f", "symmetric"),
    [pytest.param(f, *rest, id=f.__name__, marks=[pytest.mark.slow] if f is eig else []) for f, *rest in IDENTITIES],
)
def test_factorizations_multiply_to_their_matrix(f: Callable[..., Any], symmetric: bool) -> None:
    a = matrix(4, 4)
    a = a + a.T if symmetric else a
    program = hloforge.jit(f)
    text = program.lower(a).as_text()
    assert "@lapack" not in text and "@hloforge." in text
    np.testing.assert_allclose(program(a), a, atol=3e-4)


def test_factorizations_by_algorithms_that_the_cpu_refuses() -> None:
    a = matrix(3, 3)

    def f(a: Any) -> Any:
        vectors, values = linalg.eigh(a + a.T, implementation=linalg.EighImplementation.QDWH)
        u, s, vh = linalg.svd(a, algorithm=linalg.SvdAlgorithm.POLAR)
        return vectors * values @ vectors.T, u * s @ vh

    with pytest.raises(NotImplementedError, match="QDWH"):
        jax.jit(f).trace(a).lower(lowering_platforms=("cpu",))
    for got, expected in zip(hloforge.jit(f)(a), (a + a.T, a), strict=True):
        np.testing.assert_allclose(got, expected, atol=3e-5)


def test_other_linear_algebra_is_that_of_the_cpu() -> None:
    a, b = matrix(6, 6), matrix(6, 2)
    positive = a @ a.T + 6 * np.eye(6, dtype=np.float32)

    def f(a: Any, positive: Any, b: Any) -> Any:
        return (
            jnp.linalg.cholesky(positive),
            jnp.linalg.cholesky(-positive),
            jnp.linalg.solve(a, b),
            linalg.triangular_solve(positive, b, left_side=True, lower=True, transpose_a=True),
            linalg.tridiagonal_solve(a[0].at[0].set(0), b[:, 0] + 9, a[1].at[-1].set(0), b),
            linalg.cholesky_update(jnp.linalg.cholesky(positive).T, b[:, 0]),
            jnp.linalg.slogdet(a),
            jax.scipy.linalg.qr(a, pivoting=True)[1:],
        )

    got, expected = hloforge.jit(f)(a, positive, b), jax.jit(f)(a, positive, b)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-4)


def test_products_by_algorithms_that_the_cpu_refuses() -> None:
    a, b = matrix(5, 7), matrix(7, 3)
    preset = jax.lax.DotAlgorithmPreset
    narrow = [one.astype("float8_e4m3fn") for one in (a, b)]

    def f(a: Any, b: Any, narrow: Any) -> Any:
        names = (preset.TF32_TF32_F32, preset.TF32_TF32_F32_X3, preset.BF16_BF16_F32_X9)
        wide = jnp.float32
        return [jax.lax.dot(a, b, precision=name) for name in names], [
            jax.lax.dot(*narrow, precision=preset.ANY_F8_ANY_F8_F32, preferred_element_type=wide),
            jax.lax.dot(*(one.astype("float16") for one in narrow), precision=preset.F16_F16_F32),
        ]

    of_floats, of_narrow = hloforge.jit(f)(a, b, narrow)
    for got in of_floats:
        np.testing.assert_allclose(got, a.astype(float) @ b, atol=1e-5)
    for got in of_narrow:
        np.testing.assert_allclose(
            np.float64(got), narrow[0].astype(float) @ narrow[1].astype(float), rtol=1e-3, atol=1e-3
        )
