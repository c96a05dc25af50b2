"""True elements one after the other: what makes sizes that depend on elements."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np


def compacted(mask: Any) -> tuple[Any, Any]:
    """The places of the true elements of a vector, ascending, then its length as padding; and their number."""
    (extent,) = mask.shape
    ranks = jnp.cumsum(mask.astype(np.int32))
    target = jnp.where(mask, ranks - 1, extent)
    places = jnp.full(extent, extent, np.int64).at[target].set(jnp.arange(extent), mode="drop")
    return places, ranks[-1].astype(np.int64) if extent else jnp.zeros((), np.int64)


def true_places(mask: Any) -> tuple[list[Any], Any]:
    """The indices of the true elements of an array, a vector for each dimension, and their number.

    Padding of the first vector is out of the array's bounds.
    """
    flat, count = compacted(mask.reshape(-1))
    found: list[Any] = []
    stride = 1
    for size in reversed(mask.shape):
        found.append(flat // stride % max(size, 1) if len(found) < mask.ndim - 1 else flat // stride)
        stride *= max(size, 1)
    return found[::-1], count
