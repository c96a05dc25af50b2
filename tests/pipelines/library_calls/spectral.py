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
