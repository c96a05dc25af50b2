"""What tests of spectral decompositions share: matrices that are hard for one step or another, and error measures."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
# Errors may be so many times n eps; LAPACK's stay below 5 for these matrices.
SLACK = 8


def random(dtype: str, *dims: int, seed: int = 0) -> Array:
    """Normally distributed numbers, of complex types by both parts."""
    generator = np.random.default_rng(seed)
    real = generator.standard_normal(dims)
    return (real + 1j * generator.standard_normal(dims) if dtype.startswith("c") else real).astype(dtype)


def adjoint(a: Array) -> Array:
    return a.conj().swapaxes(-1, -2)


def wide(a: Array) -> Array:
    """In 64-bit parts."""
    return a.astype(np.complex128 if np.iscomplexobj(a) else np.float64)


def error(found: Array, expected: Array, scale: Array | float, like: Array) -> float:
    """The largest difference of two batches in units of n eps of the matrices ``like``, relative to ``scale``."""
    size = max(1, *like.shape[-2:]) * np.finfo(like.dtype).eps
    return float(
        np.max(np.abs(wide(found) - wide(expected)) / np.maximum(scale, np.finfo(np.float64).tiny), initial=0) / size
    )


def norms(a: Array) -> Array:
    """The spectral norm of each matrix, ``[b, 1, 1]``; by scaling, of large and small ones too."""
    largest = np.max(np.abs(wide(a)), axis=(-2, -1), keepdims=True)
    safe = np.where(largest == 0, 1, largest)
    return largest * np.linalg.norm(wide(a) / safe, 2, axis=(-2, -1), keepdims=True)


def non_orthogonality(q: Array) -> float:
    """How far from orthonormal columns are, in units of n eps."""
    return error(adjoint(wide(q)) @ wide(q), np.eye(q.shape[-1]), 1.0, q)


def families(n: int, dtype: str) -> dict[str, Array]:
    """Real symmetric matrices whose eigenvalues divide and conquer could lose: graded, clustered, repeated, glued."""
    generator = np.random.default_rng(n)
    q, _ = np.linalg.qr(generator.standard_normal((n, n)))
    grades = 10.0 ** -np.linspace(0, 12, n)
    beside = np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    glued = np.diag(np.abs(np.arange(n) % 21 - 10.0)) + beside
    for place in range(20, n - 1, 21):
        glued[place, place + 1] = glued[place + 1, place] = 1e-7
    graded = np.diag(grades) + 1e-3 * np.sqrt(np.outer(grades, grades)) * (q + q.T)
    found = {
        "graded": graded,
        "graded upwards": graded[::-1, ::-1],
        "clustered": (q * (1 + 1e-6 * generator.standard_normal(n))) @ q.T,
        "repeated": (q * generator.integers(-1, 3, n)) @ q.T,
        "two clusters": (q * np.where(np.arange(n) < n // 2, 1, 1e-5 * generator.standard_normal(n))) @ q.T,
        "zero": np.zeros((n, n)),
        "identity": np.eye(n),
        "ones": np.ones((n, n)),
        "Wilkinson's": np.diag(np.abs(np.arange(n) - n // 2)) + beside,
        "second differences": 2 * np.eye(n) - beside,
        "zero diagonal": beside,
        "glued": glued,
        "equal blocks": np.kron(np.eye(-(-n // 7)), np.ones((7, 7)))[:n, :n],
        "large": 1e30 * (q + q.T),
        "small": 1e-30 * (q + q.T),
    }
    return {name: ((a + a.T) / 2).astype(dtype) for name, a in found.items()}


def sparse(dtype: str, batch: int, n: int) -> Array:
    """Few numbers in each row: many singular values are zero, as far as digits tell, and couple with little."""
    generator = np.random.default_rng(n)
    found = np.zeros((batch, n, n))
    for number, each in enumerate(generator.choice([1, 2, 3, 5], batch)):
        a = np.where(generator.random((n, n)) < each / n, generator.standard_normal((n, n)), 0)
        found[number] = np.sign(a) if number % 5 == 0 else a
    return found.astype(dtype)
