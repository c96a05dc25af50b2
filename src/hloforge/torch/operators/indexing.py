"""Gathers, scatters, embeddings and sorts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hloforge.torch.bounded.compaction import true_places
from hloforge.torch.bounded.sizes import fit
from hloforge.torch.interpreter import converted
from hloforge.torch.registry import Call, lowers, number


@lowers("aten.index.Tensor", "aten._unsafe_index.Tensor")
def index(call: Call, x: Any, indices: Sequence[Any]) -> Any:
    return x[_index(x, indices)]


def _index(x: Any, indices: Sequence[Any]) -> tuple[Any, ...]:
    """An index of numpy's: nothing is a whole axis, booleans are the places of those that are true."""
    found: list[Any] = []
    for index in indices:
        if index is None:
            found.append(slice(None))
        elif index.dtype == np.bool_:
            found += true_places(index)[0]
        else:
            found.append(_wrapped(index, x.shape[len(found)]))
    return tuple(found)


def _wrapped(positions: Any, size: int) -> Any:
    """Positions counted from the end become ones from the beginning."""
    return jnp.where(positions < 0, positions + size, positions)


@lowers("aten.index_put", "aten._unsafe_index_put")
def index_put(call: Call, x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    values = converted(values, x.dtype)
    masks = [i for i in indices if i is not None and i.dtype == np.bool_]
    if masks and len(indices) == 1 and values.size == 1:
        mask = masks[0].reshape(*masks[0].shape, *[1] * (x.ndim - masks[0].ndim))
        value = values.reshape(())
        return jnp.where(mask, x + value if accumulate else value, x)
    where = _index(x, indices)
    if masks:
        # A value for each true element, as a caller knows their number; the places behind them are outside of ``x``.
        extents = jax.eval_shape(lambda: x[where]).shape
        pairs = zip(values.shape, extents[len(extents) - values.ndim :], strict=True)
        values = fit(values, [1 if size == 1 else extent for size, extent in pairs])
    place = x.at[where]
    return _added(x, place, values) if accumulate else place.set(values)


def _added(x: Any, place: Any, values: Any) -> Any:
    return place.max(values) if x.dtype == np.bool_ else place.add(values)


def _multiplied(x: Any, place: Any, values: Any) -> Any:
    return place.min(values) if x.dtype == np.bool_ else place.multiply(values)


@lowers("aten.index_select", "aten.index_select_backward")
def index_select(call: Call, x: Any, dim: int, positions: Any) -> Any:
    if x.ndim == 0:
        return x
    taken = jnp.take(x, positions, dim, mode="wrap")
    return taken if positions.ndim else jnp.expand_dims(taken, dim)


@lowers("aten.embedding")
def embedding(call: Call, weight: Any, positions: Any, *_: Any, **__: Any) -> Any:
    return jnp.take(weight, positions, 0, mode="clip")


@lowers("aten.gather")
def gather(call: Call, x: Any, dim: int, positions: Any, *, sparse_grad: bool = False) -> Any:
    if x.ndim == 0 or positions.ndim == 0:
        return jnp.broadcast_to(x.reshape(-1)[0], positions.shape) if x.ndim == 0 else x[positions]
    return x[places(x, dim, positions)]


def places(x: Any, dim: int, positions: Any) -> tuple[Any, ...]:
    """The index of numpy's that PyTorch's gather and scatter mean: positions along one axis."""
    dim %= x.ndim
    return tuple(
        _wrapped(positions, x.shape[dim]) if axis == dim else jax.lax.broadcasted_iota(np.int64, positions.shape, axis)
        for axis in range(x.ndim)
    )


@lowers("aten.scatter.src", "aten.scatter.value", "aten.scatter.reduce", "aten.scatter.value_reduce")
def scatter(call: Call, x: Any, dim: int, positions: Any, source: Any, *, reduce: str | None = None) -> Any:
    place, values = _scattered(x, dim, positions, source)
    if reduce is None:
        result = place.set(values)
    elif reduce == "add":
        result = _added(x, place, values)
    else:
        result = _multiplied(x, place, values)
    return result.reshape(x.shape)


def _scattered(x: Any, dim: int, positions: Any, source: Any) -> tuple[Any, Any]:
    target = x.reshape(-1) if x.ndim == 0 else x
    positions = positions.reshape(-1) if positions.ndim == 0 else positions
    if hasattr(source, "dtype"):
        source = source.reshape(-1) if source.ndim == 0 else source
        values = converted(source[tuple(slice(0, size) for size in positions.shape)], x.dtype)
    else:
        values = jnp.broadcast_to(number(source, x.dtype), positions.shape)
    return target.at[places(target, dim, positions)], values


@lowers("aten.scatter_add")
def scatter_add(call: Call, x: Any, dim: int, positions: Any, source: Any) -> Any:
    place, values = _scattered(x, dim, positions, source)
    return _added(x, place, values).reshape(x.shape)


@lowers("aten.scatter_reduce.two")
def scatter_reduce(
    call: Call, x: Any, dim: int, positions: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    _, values = _scattered(x, dim, positions, source)
    target = x.reshape(-1) if x.ndim == 0 else x
    where = places(target, dim, positions.reshape(values.shape))
    return _reduced(target, where, values, reduce, include_self).reshape(x.shape)


def _reduced(x: Any, where: tuple[Any, ...], values: Any, reduce: str, include_self: bool) -> Any:
    """Values that meet at an element, and the element itself if it is included, reduced."""
    if not include_self:
        x = x.at[where].set(number(_neutral(reduce, x.dtype), x.dtype))
    place = x.at[where]
    if reduce in ("sum", "add"):
        return _added(x, place, values)
    if reduce == "prod":
        return _multiplied(x, place, values)
    if reduce == "amax":
        return place.max(values)
    if reduce == "amin":
        return place.min(values)
    count = jnp.zeros(x.shape, np.int32).at[where].add(1) + (1 if include_self else 0)
    count = jnp.maximum(count, 1).astype(x.dtype)
    summed = place.add(values)
    return summed / count if x.dtype.kind not in "iu" else jnp.floor_divide(summed, count)


def _neutral(reduce: str, dtype: Any) -> Any:
    if reduce == "prod":
        return 1
    if reduce not in ("amax", "amin"):
        return 0
    if dtype == np.bool_:
        return reduce == "amin"
    info: Any = jnp.finfo(dtype) if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype)
    if jnp.issubdtype(dtype, jnp.floating):
        return -np.inf if reduce == "amax" else np.inf
    return info.min if reduce == "amax" else info.max


@lowers("aten.index_reduce")
def index_reduce(
    call: Call, x: Any, dim: int, positions: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    where = (*[slice(None)] * (dim % max(x.ndim, 1)), positions)
    if x.ndim == 0:
        return _reduced(x.reshape(1), (positions.reshape(-1),), source.reshape(-1), reduce, include_self).reshape(())
    return _reduced(x, where, source, reduce, include_self)


@lowers("aten.take")
def take(call: Call, x: Any, positions: Any) -> Any:
    return x.reshape(-1)[_wrapped(positions, x.size)]


@lowers("aten.put")
def put(call: Call, x: Any, positions: Any, source: Any, accumulate: bool = False) -> Any:
    place = x.reshape(-1).at[_wrapped(positions, x.size).reshape(-1)]
    values = source.reshape(-1)
    return (_added(x, place, values) if accumulate else place.set(values)).reshape(x.shape)


@lowers("aten.masked_scatter_backward")
def masked_scatter_backward(call: Call, gradient: Any, mask: Any, sizes: Sequence[int]) -> Any:
    """The gradient of the source: the chosen elements one after the other, then zeros."""
    count = int(np.prod(sizes))
    chosen = jnp.broadcast_to(mask, gradient.shape).ravel()
    places = jnp.where(chosen, jnp.cumsum(chosen) - 1, count)
    return jnp.zeros(count, gradient.dtype).at[places].add(gradient.ravel(), mode="drop").reshape(tuple(sizes))


@lowers("aten.masked_scatter")
def masked_scatter(call: Call, x: Any, mask: Any, source: Any) -> Any:
    x, mask = jnp.broadcast_arrays(x, mask)
    rank = jnp.cumsum(mask.reshape(-1).astype(np.int64)) - 1
    flat = source.reshape(-1)
    taken = flat[jnp.clip(rank, 0, max(flat.size - 1, 0))].reshape(x.shape) if flat.size else x
    return jnp.where(mask, taken, x)


@lowers("aten.sort", "aten.sort.stable")
def sort(call: Call, x: Any, dim: Any = -1, descending: Any = False, *, stable: Any = False) -> Any:
    if x.ndim == 0:
        return x, jnp.zeros((), np.int64)
    order = _order(x, dim, descending)
    return jnp.take_along_axis(x, order, dim), order


def _order(x: Any, dim: int, descending: bool) -> Any:
    return jnp.argsort(x, axis=dim, stable=True, descending=descending)


@lowers("aten.argsort")
def argsort(call: Call, x: Any, dim: int = -1, descending: bool = False, **_: Any) -> Any:
    return _order(x, dim, descending) if x.ndim else jnp.zeros((), np.int64)


@lowers("aten.topk")
def topk(call: Call, x: Any, count: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """NaN is the largest, whatever its sign; of equal elements the one of lower index goes first."""
    if x.ndim == 0:
        return x, jnp.zeros((), np.int64)
    rows = jnp.moveaxis(x, dim, -1)
    _, places = jax.lax.top_k(_ranked(rows, largest), count)
    values = jnp.take_along_axis(rows, places, -1)
    return jnp.moveaxis(values, -1, dim), jnp.moveaxis(places.astype(np.int64), -1, dim)


def _ranked(x: Any, largest: bool) -> Any:
    """Keys whose largest ones in XLA's total order are the largest elements, or the smallest ones."""
    if x.dtype == np.bool_:
        x = x.astype(np.uint8)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x if largest else ~x
    # Zeros of both signs are equal.
    key = (x if largest else -x) + jnp.zeros((), x.dtype)
    last = jnp.full((), np.nan, x.dtype)
    return jnp.where(jnp.isnan(x), last if largest else -last, key)


@lowers("aten.searchsorted")
def searchsorted(
    call: Call,
    sequence: Any,
    values: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    if sorter is not None:
        sequence = jnp.take_along_axis(sequence, sorter, -1)
    wanted = "right" if right or side == "right" else "left"
    values = jnp.asarray(values)
    if sequence.ndim == 1:
        return jnp.searchsorted(sequence, values, side=wanted)
    rows = sequence.reshape(-1, sequence.shape[-1])
    flat = values.reshape(-1, values.shape[-1])
    return jax.vmap(lambda s, v: jnp.searchsorted(s, v, side=wanted))(rows, flat).reshape(values.shape)


@lowers("aten.bucketize")
def bucketize(call: Call, values: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    return jnp.searchsorted(boundaries, jnp.asarray(values), side="right" if right else "left")


@lowers("aten.histc")
def histc(call: Call, x: Any, bins: int = 100, low: Any = 0, high: Any = 0) -> Any:
    low, high = (jnp.min(x), jnp.max(x)) if low == high else (low, high)
    return histogram_of(x, bins, low, high, True)


def histogram_of(x: Any, bins: int, low: Any, high: Any, counted: Any) -> Any:
    """How many of the numbers that are ``counted`` lie in each of ``bins`` equal parts from ``low`` to ``high``.

    Args:
        x: an array of any shape; the result has its element type.
        low, high: of one number around it if they are equal.
        counted: booleans for the numbers.
    """
    low, high = (number(each, x.dtype) for each in (low, high))
    low, high = jnp.where(low == high, low - 1, low), jnp.where(low == high, high + 1, high)
    within = ((x >= low) & (x <= high) & counted).reshape(-1)
    # In PyTorch's order, because a rounding decides about numbers at an edge.
    place = jnp.clip(((x - low) * number(bins, x.dtype) / (high - low)).astype(np.int64), 0, bins - 1).reshape(-1)
    return jnp.zeros(bins, x.dtype).at[place].add(within.astype(x.dtype))


@lowers("aten.nonzero_static")
def nonzero_static(call: Call, x: Any, *, size: int, fill_value: int = -1) -> Any:
    if x.ndim == 0:
        return jnp.zeros((size, 0), np.int64)
    return jnp.stack(jnp.nonzero(x, size=size, fill_value=fill_value), -1)


@lowers("aten.segment_reduce")
def segment_reduce(
    call: Call,
    x: Any,
    reduce: str,
    *,
    lengths: Any = None,
    indices: Any = None,
    offsets: Any = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Any:
    ends = jnp.cumsum(lengths, -1) if offsets is None else offsets[..., 1:]
    starts = ends - lengths if offsets is None else offsets[..., :-1]
    places = jnp.arange(x.shape[axis])
    within = (places >= starts[..., None]) & (places < ends[..., None])
    tail = x.ndim - axis - 1
    within = within.reshape(*within.shape, *[1] * tail)
    neutral = number(_neutral({"max": "amax", "min": "amin"}.get(reduce, reduce), x.dtype), x.dtype)
    chosen = jnp.where(within, jnp.expand_dims(x, axis), neutral)
    combine: Any = {"sum": jnp.sum, "mean": jnp.sum, "prod": jnp.prod, "max": jnp.max, "min": jnp.min}[reduce]
    found = combine(chosen, axis + 1)
    sizes = (ends - starts).reshape(*ends.shape, *[1] * tail)
    start = None if initial is None else number(initial, x.dtype)
    if start is not None:
        pairs: dict[str, Any] = {"prod": jnp.multiply, "max": jnp.maximum, "min": jnp.minimum}
        found = pairs.get(reduce, jnp.add)(found, start)
    if reduce == "mean":
        found = jnp.where(sizes > 0, found / jnp.maximum(sizes, 1), np.nan if start is None else start)
    return found


@lowers("aten.embedding_renorm")
def embedding_renorm(call: Call, weight: Any, positions: Any, most: float, order: float) -> Any:
    """Rows that are looked up, and longer than ``most``, are shortened to it."""
    lengths = jnp.linalg.norm(weight, ord=order, axis=1)
    used = jnp.zeros(weight.shape[0], np.bool_).at[positions.reshape(-1)].set(True)
    scale = jnp.where(used & (lengths > most), most / (lengths + 1e-7), 1)
    return weight * scale.astype(weight.dtype)[:, None]
