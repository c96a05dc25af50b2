"""Order statistics: medians, k-th values, modes, histograms."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hloforge.torch.registry import Call, lowers


def _sorted(x: Any, dim: int) -> tuple[Any, Any]:
    order = jnp.argsort(x, axis=dim, stable=True)
    return jnp.take_along_axis(x, order, dim), order


def _taken(values: Any, order: Any, place: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
    """The values at positions of an axis; place: with the axis, of size 1."""
    chosen, where = jnp.take_along_axis(values, place, dim), jnp.take_along_axis(order, place, dim)
    return (chosen, where) if keepdim else (jnp.squeeze(chosen, dim), jnp.squeeze(where, dim))


@lowers("aten.kthvalue")
def kthvalue(call: Call, x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    if x.ndim == 0:
        return x, jnp.zeros((), np.int64)
    values, order = _sorted(x, dim)
    return _taken(values, order, _place(x, dim, k - 1), dim, keepdim)


def _place(x: Any, dim: int, at: Any) -> Any:
    shape = list(x.shape)
    shape[dim] = 1
    return jnp.broadcast_to(jnp.asarray(at, np.int64), shape)


@lowers("aten.median.dim", "aten.nanmedian.dim")
def median_dim(call: Call, x: Any, dim: int, keepdim: bool = False) -> Any:
    if x.ndim == 0:
        return x, jnp.zeros((), np.int64)
    return median_of(x, dim, keepdim, "nanmedian" in str(call.target))


def median_of(x: Any, dim: int, keepdim: bool, skip: bool, size: Any = None) -> tuple[Any, Any]:
    """The lower one of two; a nan is the median unless it is skipped. Nans follow all others.

    Args:
        size: of how many elements; the others are padding, and the greatest ones, or nan.
    """
    values, order = _sorted(x, dim)
    missing = jnp.sum(jnp.isnan(x), dim, keepdims=True)
    if size is None:
        size = x.shape[dim]
    elif jnp.issubdtype(x.dtype, jnp.floating):
        missing -= x.shape[dim] - size
    if skip:
        place = jnp.maximum(size - missing - 1, 0) // 2
    else:
        place = jnp.where(missing > 0, size - missing, (size - 1) // 2)
    return _taken(values, order, place.astype(np.int64), dim, keepdim)


@lowers("aten.median.default", "aten.nanmedian.default")
def median(call: Call, x: Any) -> Any:
    if x.size == 0:
        return jnp.asarray(np.nan, x.dtype)
    return median_of(x.reshape(-1), 0, False, "nanmedian" in str(call.target))[0]


@lowers("aten.mode")
def mode(call: Call, x: Any, dim: int = -1, keepdim: bool = False) -> Any:
    if x.ndim == 0:
        return x, jnp.zeros((), np.int64)
    return mode_of(x, dim, keepdim, x.shape[dim])


def mode_of(x: Any, dim: int, keepdim: bool, size: Any) -> tuple[Any, Any]:
    """The most frequent one of the first elements.

    Args:
        size: of how many; the others are padding, and none is less than an element.
    """
    values, order = _sorted(x, dim)
    moved = jnp.moveaxis(values, dim, -1)
    # The length of the run of equal values that ends at each position.
    fresh = jnp.concatenate([jnp.ones_like(moved[..., :1], np.bool_), moved[..., 1:] != moved[..., :-1]], -1)
    places = jax.lax.broadcasted_iota(np.int64, moved.shape, moved.ndim - 1)
    starts = jax.lax.cummax(jnp.where(fresh, places, 0), axis=moved.ndim - 1)
    chosen = jnp.argmax(jnp.where(places < size, places - starts, -1), -1, keepdims=True)
    return _taken(values, order, jnp.moveaxis(chosen, -1, dim), dim, keepdim)


@lowers("aten.histogram.bin_ct")
def histogram(
    call: Call, x: Any, bins: int = 100, *, range: Any = None, weight: Any = None, density: bool = False
) -> Any:
    flat = x.reshape(-1)
    low, high = (jnp.min(flat), jnp.max(flat)) if range is None else (range[0], range[1])
    low, high = jnp.asarray(low, x.dtype), jnp.asarray(high, x.dtype)
    low, high = jnp.where(low == high, low - 0.5, low), jnp.where(low == high, high + 0.5, high)
    edges = low + (high - low) / bins * jnp.arange(bins + 1, dtype=x.dtype)
    return _histogram(flat, edges.at[-1].set(high), weight, density)


@lowers("aten.histogram.bins_tensor")
def histogram_of_edges(call: Call, x: Any, edges: Any, *, weight: Any = None, density: bool = False) -> Any:
    return _histogram(x.reshape(-1), edges, weight, density)


def _histogram(flat: Any, edges: Any, weight: Any, density: bool) -> tuple[Any, Any]:
    bins = edges.shape[0] - 1
    weights = jnp.ones_like(flat) if weight is None else weight.reshape(-1)
    place = jnp.clip(jnp.searchsorted(edges, flat, side="right") - 1, 0, bins - 1)
    within = (flat >= edges[0]) & (flat <= edges[-1])
    counts = jnp.zeros(bins, flat.dtype).at[place].add(jnp.where(within, weights, 0))
    return counts / (jnp.sum(counts) * jnp.diff(edges)) if density else counts, edges


@lowers("aten.bincount")
def bincount(call: Call, x: Any, weights: Any = None, minlength: int = 0) -> Any:
    values = jnp.ones(x.shape, np.int64) if weights is None else weights
    return jnp.zeros(call.shape[0], values.dtype).at[x].add(values)
