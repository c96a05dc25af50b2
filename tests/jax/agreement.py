"""Whether results agree with those of JAX's CPU backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from hloforge.runtime.reference.compare import compare_arrays
from hloforge.runtime.reference.tolerances import tolerance_of
from tests.jax.cases import Case

# Rounding grows with the condition of their matrix, and is as large in small elements as in large ones.
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
    if group == "approx_top_k":
        left, right = [left[0], *_chosen(case, left[1])], [right[0], *_chosen(case, right[1])]
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
    tolerance = (
        10 * tolerance_of(found.dtype, is_one_operation=True).relative * max(1.0, float(np.abs(a).max(initial=0)))
    )
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


def _chosen(case: Case, positions: Any) -> list[Any]:
    """What stands at the positions, and how many differ in each row: which of equal numbers is chosen is open."""
    rows = np.sort(positions, -1)
    return [np.take_along_axis(np.asarray(case.arguments()[0]), np.asarray(positions), -1), (np.diff(rows) > 0).sum(-1)]


def _of_arrays(group: str, expected: Any, got: Any) -> str:
    if jax.dtypes.issubdtype(getattr(expected, "dtype", None), jax.dtypes.prng_key):
        expected, got = map(jax.random.key_data, (expected, got))
    a, b = np.asarray(expected), np.asarray(got)
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"got {b.dtype}{list(b.shape)}, not {a.dtype}{list(a.shape)}"
    if not a.size or jax.dtypes.issubdtype(a.dtype, np.integer) or a.dtype == np.bool_:  # int4 is of numpy's kind "V"
        differs = a != b
        return f"{differs.sum()} of {a.size} elements differ" if differs.any() else ""
    if group in _UP_TO_PHASES:
        a, b = np.abs(a), np.abs(b)
    tolerance = tolerance_of(a.dtype, is_one_operation=True)
    if group in _UP_TO_PHASES | _CONDITIONED:
        tolerance = replace(tolerance, absolute=tolerance.relative * float(np.max(np.abs(a), initial=0)))
    compared = [compare_arrays(got, want, tolerance=tolerance) for want, got in _comparable(a, b)]
    return " ".join(next((result.text() for result in compared if not result.agrees), "").split())


def _comparable(a: Any, b: Any) -> list[tuple[Any, Any]]:
    """Pairs of arrays, for complex numbers whose parts are not both finite have each part by itself."""
    if a.dtype.kind != "c":
        return [(a, b)]
    finite = np.isfinite(a) & np.isfinite(b)
    a_special, b_special = a[~finite], b[~finite]
    return [(a[finite], b[finite]), (a_special.real, b_special.real), (a_special.imag, b_special.imag)]
