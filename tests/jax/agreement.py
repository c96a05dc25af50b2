"""Whether results agree with those of JAX's CPU backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from tests.jax.cases import Case

# Of the largest element, for the narrowest type of results and arguments.
_TOLERANCES = {
    "float64": 1e-12,
    "complex128": 1e-12,
    "float32": 1e-5,
    "complex64": 1e-5,
    "float16": 4e-3,
    "bfloat16": 3e-2,
}
_NARROW = 0.13
# Rounding grows with the condition of their matrix.
_CONDITIONED = frozenset(
    {"cholesky", "custom_linear_solve", "lu", "product", "qr", "triangular_solve", "tridiagonal_solve"}
)
# Their vectors are known up to a factor of magnitude 1 each.
_UP_TO_PHASES = frozenset({"eigh", "eig", "svd"})
# How many arrays a factorization consists of.
_PARTS = {"eigh": 2, "svd": 3}


def disagreement(case: Case, expected: Any, got: Any) -> str:
    """What differs, in a line; empty if nothing does."""
    left, tree = jax.tree.flatten(expected)
    right, other = jax.tree.flatten(got)
    group = case.group
    if tree != other:
        return f"the result is {other}, not {tree}"
    if group == "eig":
        return _of_eig(case, left[0], right)
    if group == "cholesky":  # the primitive leaves open what stands above the diagonal
        left, right = ([np.tril(array) for array in arrays] for arrays in (left, right))
    if group == "sort" and "isstable_False" in case.name:
        left, right = _records(left), _records(right)
    if len(left) == _PARTS.get(group):
        # Magnitudes leave out the signs within a vector; what the parts multiply to does not.
        whole = _of_arrays("product", _product(left), _product(right))
        if whole:
            return f"the product of the parts: {whole}"
    return next(filter(None, map(lambda e, g: _of_arrays(group, e, g), left, right)), "")


def _product(arrays: Sequence[Any]) -> Any:
    """The matrix that eigenvectors and eigenvalues, or singular values and vectors, multiply to."""
    if len(arrays) == 2:
        v, w = map(np.asarray, arrays)
        return (v * w[..., None, :]) @ np.swapaxes(v, -1, -2).conj()
    s, u, vt = map(np.asarray, arrays)
    return (u[..., : s.shape[-1]] * s[..., None, :]) @ vt[..., : s.shape[-1], :]


def _of_eig(case: Case, values: Any, got: Sequence[Any]) -> str:
    """Eigenvalues in any order, and whether left and right eigenvectors are ones."""
    a = np.asarray(case.arguments()[0])
    found, *vectors = map(np.asarray, got)
    tolerance = 100 * _TOLERANCES[found.dtype.name] * max(1.0, float(np.abs(a).max(initial=0)))
    distances = np.abs(np.asarray(values)[..., :, None] - found[..., None, :])
    worst = [distances.min(-1), distances.min(-2)] if a.size else []
    # Left vectors are the right ones of the adjoint matrix, for conjugate values.
    sides = [a, a] if len(vectors) < 2 else [np.swapaxes(a, -1, -2).conj(), a]
    if "left" in case.name.replace("computelefteigenvectors_False", "") and len(vectors) == 1:
        sides = [np.swapaxes(a, -1, -2).conj()]
    for matrix, v in zip(sides, vectors, strict=False):
        w = found if matrix is a else found.conj()
        worst.append(np.abs(matrix @ v - v * w[..., None, :]))
    error = max((float(part.max(initial=0)) for part in worst), default=0.0)
    return f"error {error:.2g}, allowed {tolerance:.2g}" if not error <= tolerance else ""


def _records(arrays: Sequence[Any]) -> list[Any]:
    """The first array, which is sorted, and the records of all in an order of their own: that of equal keys is open."""
    flat = [np.asarray(array).ravel() for array in arrays]
    order = np.lexsort(flat)
    return [arrays[0], *(array[order] for array in flat)]


def _of_arrays(group: str, expected: Any, got: Any) -> str:
    if jax.dtypes.issubdtype(getattr(expected, "dtype", None), jax.dtypes.prng_key):
        expected, got = map(jax.random.key_data, (expected, got))
    a, b = np.asarray(expected), np.asarray(got)
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"got {b.dtype}{list(b.shape)}, not {a.dtype}{list(a.shape)}"
    if not a.size or jax.dtypes.issubdtype(a.dtype, np.integer) or a.dtype == np.bool_:  # int4 is of numpy's kind "V"
        differs = a != b
        return f"{differs.sum()} of {a.size} elements differ" if differs.any() else ""
    tolerance = _TOLERANCES.get(a.dtype.name, _NARROW)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    a, b = a.astype(wide), b.astype(wide)
    if group in _UP_TO_PHASES:
        a, b = np.abs(a), np.abs(b)
    if group in _UP_TO_PHASES | _CONDITIONED:
        tolerance *= 20
    return _difference(a, b, tolerance)


def _difference(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], tolerance: float) -> str:
    parts: Sequence[Any] = [(a.real, b.real), (a.imag, b.imag)] if a.dtype.kind == "c" else [(a, b)]
    for x, y in parts:
        special = ~(np.isfinite(x) & np.isfinite(y))
        if not np.array_equal(x[special], y[special], equal_nan=True):
            return f"not finite: {y[special].ravel()[:4]} for {x[special].ravel()[:4]}"
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(np.where(np.isfinite(a) & np.isfinite(b), a - b, 0))
    allowed = tolerance * max(1.0, float(np.max(np.abs(a[np.isfinite(a)]), initial=0)))
    worst = float(error.max())
    return f"error {worst:.2g}, allowed {allowed:.2g}" if worst > allowed else ""
