"""Edges of JAX's functions: arrays without elements, special values in orders and sums, integers of few bits, matrices
that are empty or singular.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import ml_dtypes
import numpy as np
from jax import lax

from tests.jax.sweep.table import rows
from tests.sweep.case import NARROW_INTEGERS, Array, Case

_EMPTY = {
    "vector": np.zeros(0, np.float32),
    "no_rows": np.zeros((0, 3), np.float32),
    "no_columns": np.zeros((3, 0), np.float32),
    "integers": np.zeros(0, np.int32),
    "booleans": np.zeros((2, 0), bool),
    "complex": np.zeros((0, 2), np.complex64),
}
_OF_EMPTY = """
sum prod mean var std any all cumsum cumprod sort argsort nansum nanmean count_nonzero flip ravel transpose diff cov
corrcoef exp diag
"""
_SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1, np.nan, 0.0, -0.0, 3, 2, 2], np.float32)
_MATRICES = {
    "empty": np.zeros((0, 0), np.float32),
    "no_matrices": np.zeros((0, 3, 3), np.float32),
    "empty_ones": np.zeros((2, 0, 0), np.float32),
    "zero": np.zeros((3, 3), np.float32),
    "singular": np.array([[1, 2], [2, 4]], np.float32),
    "some_positive": np.stack([np.eye(3), -np.eye(3), np.diag([1, 0, 1])]).astype(np.float32),
}
_OF_MATRICES: dict[str, Callable[..., Any]] = {
    "slogdet": jnp.linalg.slogdet,
    "inv": jnp.linalg.inv,
    "cholesky": jnp.linalg.cholesky,
    "eigvalsh": jnp.linalg.eigvalsh,
    "svdvals": jnp.linalg.svdvals,
    "rank": jnp.linalg.matrix_rank,
    "pinv": jnp.linalg.pinv,
    "lu_factor": jsp.linalg.lu_factor,
    "solve": lambda a: jnp.linalg.solve(a, jnp.ones(a.shape[-1], a.dtype)),
}


def cases() -> Iterator[Case]:
    for label, array in _EMPTY.items():
        for name in _OF_EMPTY.split():
            yield from rows(f"empty_{label}", getattr(jnp, name), array, dtypes=(name,))
        yield from rows(f"empty_{label}", _joined, array, dtypes=("joined",))
        yield from rows(f"empty_{label}", _indexed, array, dtypes=("indexed",))
    yield from rows(
        "empty_products", _products, np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32), dtypes=("",)
    )
    for dtype in ("float32", "bfloat16", "float16"):
        special = _SPECIAL.astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
        for function in (_orders, _sums, _parts):
            yield from rows(f"special{function.__name__}", function, special, dtypes=(dtype,))
    for dtype in NARROW_INTEGERS:
        yield from rows("narrow", _narrow, *_pairs(dtype), dtypes=(dtype,))
    for name, of_matrix in _OF_MATRICES.items():
        for label, matrix in _MATRICES.items():
            yield from rows(f"matrix_{name}", of_matrix, matrix, dtypes=(label,))


def _pairs(dtype: str) -> tuple[Array, Array]:
    """All pairs of an element type of a few bits."""
    info = ml_dtypes.iinfo(dtype)
    every = np.arange(int(info.min), int(info.max) + 1)
    one, other = (axis.ravel() for axis in np.meshgrid(every, every))
    return one.astype(getattr(ml_dtypes, dtype)), other.astype(getattr(ml_dtypes, dtype))


def _joined(x: Any) -> list[Any]:
    return [
        jnp.concatenate([x, x]),
        jnp.concatenate([x, jnp.ones((2, *x.shape[1:]), x.dtype)]),
        jnp.stack([x] * 2),
        jnp.tile(x, 2),
        jnp.repeat(x, 2),
        jnp.pad(x, 1),
        jnp.outer(x, x),
        jnp.broadcast_to(x, (4, *x.shape)),
        jnp.tensordot(x, x, axes=x.ndim),
    ]


def _indexed(x: Any) -> list[Any]:
    none = jnp.zeros(0, int)
    return [
        x[none],
        x[:, None],
        x[::-1],
        x.at[none].set(1),
        x.at[:].add(1),
        jnp.take(x, none, axis=0, mode="fill"),
        lax.scan(lambda carry, row: (carry + 1, row), 0, x),
        lax.map(lambda row: row & True if row.dtype == bool else row * 2, x),
    ]


def _products(a: Any, b: Any) -> list[Any]:
    return [a @ b, b.T @ a.T, jnp.einsum("ij,jk->", a, b), jnp.vdot(a, a), jnp.einsum("ij,jk->ik", b, jnp.ones((3, 2)))]


def _orders(x: Any) -> list[Any]:
    return [
        jnp.sort(x),
        jnp.argsort(x),
        jnp.argsort(x, descending=True),
        lax.sort((x, jnp.arange(len(x))), num_keys=2),
        lax.top_k(x, 7),
        jnp.argmax(x),
        jnp.nanargmin(x),
        jnp.unique(x, size=8, return_index=True, return_inverse=True, return_counts=True),
        jnp.searchsorted(jnp.sort(x), x),
        jnp.digitize(x, jnp.array([-1.0, 0.0, 1.0])),
        jnp.nanmedian(x),
    ]


def _sums(x: Any) -> list[Any]:
    infinities = jnp.full(3, -jnp.inf, x.dtype)
    return [
        jnp.sum(x),
        jnp.nansum(x),
        jnp.nanvar(x[3:]),
        jnp.cumsum(x),
        lax.cummax(x),
        lax.cumlogsumexp(x),
        jax.nn.logsumexp(x[1:7]),
        jax.nn.logsumexp(infinities),
        jax.nn.softmax(infinities),
        jnp.linalg.norm(x[1:]),
    ]


def _parts(x: Any) -> list[Any]:
    other = jnp.flip(x)
    return [
        jnp.frexp(x),
        jnp.modf(x),
        jnp.signbit(x),
        jnp.nextafter(x, other),
        jnp.copysign(x, other),
        jnp.maximum(x, other),
        jnp.fmin(x, other),
        jnp.nan_to_num(x),
        jnp.clip(x, -1, 1),
        lax.reduce_precision(x, 5, 3),
        jnp.sign(x),
    ]


def _narrow(x: Any, y: Any) -> list[Any]:
    """Operations of every pair, as integers of 32 bits, by which they are compared."""
    made = [op(x, y) for op in (lax.add, lax.sub, lax.mul, lax.max, lax.min, lax.bitwise_xor)]
    made += [jnp.sort(x), jnp.where(x > y, x, y), x[jnp.array([0, 2, 100, -1])]]
    return [*(one.astype(jnp.int32) for one in made), x.astype(jnp.float32), x < y]
