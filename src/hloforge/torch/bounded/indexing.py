"""Gathers and scatters: positions that are padding are read from anywhere, and written nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hloforge.dialect.errors import UnsupportedError
from hloforge.torch.bounded.compaction import true_places
from hloforge.torch.bounded.reductions import last
from hloforge.torch.bounded.registry import OpenCall, bounded, made, within
from hloforge.torch.bounded.sizes import fit, open_dims
from hloforge.torch.interpreter import converted
from hloforge.torch.types import dtype_of


def _inside(call: OpenCall, said: Any, array: Any) -> Any:
    """Where an array's elements are no padding; None if all are."""
    counts = {d: call.sizes.real(said.shape[d]) for d in open_dims(said)}
    return within(array.shape, counts) if counts else None


def _positions(call: OpenCall, x: Any, indices: Sequence[Any]) -> tuple[tuple[Any, ...], Any]:
    """An index of numpy's whose padding is out of bounds, and the number of true elements of its masks."""
    said = call.said[1]
    inside = [None if i is None else _inside(call, s, i) for i, s in zip(indices, said, strict=True)]
    fitting = [i if i is None or i.dtype != np.bool_ else (i, m) for i, m in zip(indices, inside, strict=True)]
    wanted: list[Any] = []
    axis = 0
    count = None
    for each, ok in zip(fitting, inside, strict=True):
        if each is None:
            wanted.append(slice(None))
            axis += 1
        elif isinstance(each, tuple):
            mask, ok = each
            mask = mask if ok is None else mask & ok
            mask = fit(mask, x.shape[axis : axis + mask.ndim])
            places, count = true_places(mask)
            wanted += places
            axis += mask.ndim
        else:
            size = call.count(0, axis)
            place = jnp.where(each < 0, each + size, each)
            wanted.append(place if ok is None else jnp.where(ok, place, x.shape[axis]))
            axis += 1
    arrays = [i for i in wanted if not isinstance(i, slice)]
    rank = max(i.ndim for i in arrays)
    largest = [max((i.shape[d - rank + i.ndim] for i in arrays if d >= rank - i.ndim), default=1) for d in range(rank)]
    fitted = []
    for index in wanted:
        if not isinstance(index, slice):
            extents = [1 if s == 1 else e for s, e in zip(index.shape, largest[rank - index.ndim :], strict=True)]
            index = fit(index, extents)
        fitted.append(index)
    return tuple(fitted), count


@bounded("aten.index.Tensor", "aten._unsafe_index.Tensor")
def index(call: OpenCall, x: Any, indices: Sequence[Any]) -> Any:
    where, count = _positions(call, x, indices)
    found = x[where] if x.size else jnp.zeros(jax.eval_shape(lambda: x[where]).shape, x.dtype)
    if count is None:
        return found
    axis = next((d for d, size in enumerate(call.result.shape) if not call.sizes.knows(size)), None)
    if axis is not None:
        call.sizes.bind(call.result.shape[axis], found.shape[axis], count)
    return found


@bounded("aten.index_put", "aten._unsafe_index_put")
def index_put(call: OpenCall, x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    masks = [i for i in indices if i is not None and i.dtype == np.bool_]
    if masks and len(indices) == 1 and all(isinstance(size, int) and size == 1 for size in call.said[2].shape):
        return call.plain(x, [fit(masks[0], x.shape[: masks[0].ndim])], values, accumulate)
    where, _ = _positions(call, x, indices)
    shape = jax.eval_shape(lambda: x[where]).shape
    said = call.said[2].shape
    extents = shape[len(shape) - values.ndim :]
    pairs = zip(values.shape, said, extents, strict=True)
    values = fit(converted(values, x.dtype), [1 if isinstance(s, int) and s == 1 else e for _, s, e in pairs])
    place = x.at[where]
    if not accumulate:
        return place.set(values, mode="drop")
    return place.max(values, mode="drop") if x.dtype == np.bool_ else place.add(values, mode="drop")


@bounded("aten.index_select", "aten.gather")
def gather(call: OpenCall, x: Any, dim: int, positions: Any, **named: Any) -> Any:
    return call.plain(x, dim, positions, **named)


@bounded(
    *("aten.scatter.src", "aten.scatter.value", "aten.scatter.reduce", "aten.scatter.value_reduce"),
    *("aten.scatter_add", "aten.scatter_reduce.two", "aten.index_reduce"),
)
def scatter(call: OpenCall, x: Any, dim: int, positions: Any, source: Any, *arguments: Any, **named: Any) -> Any:
    inside = _inside(call, call.said[2], positions)
    if inside is not None:
        positions = jnp.where(inside, positions, x.shape[dim % x.ndim])
    if hasattr(source, "ndim") and source.ndim == positions.ndim and "index_reduce" not in str(call.target):
        source = fit(source, [max(s, p) for s, p in zip(source.shape, positions.shape, strict=True)])
    return call.plain(x, dim, positions, source, *arguments, **named)


@bounded("aten.masked_scatter")
def masked_scatter(call: OpenCall, x: Any, mask: Any, source: Any) -> Any:
    mask = jnp.broadcast_to(call.fitted(mask), call.shape)
    counts = {d: call.sizes.real(size) for d, size in enumerate(call.result.shape)}
    mask &= within(call.shape, {d: counts[d] for d in open_dims(call.result)})
    if any(d > 0 for d in call.open(2)):
        raise UnsupportedError("the source has an inner dimension whose size depends on elements")
    return call.plain(call.fitted(x), mask, source)


@bounded("aten.searchsorted")
def searchsorted(call: OpenCall, sequence: Any, values: Any, **named: Any) -> Any:
    if named.get("sorter") is not None:
        raise UnsupportedError("it looks up in an order of an open size")
    return call.plain(last(call, sequence, -1, descending=False), values, **named)


@bounded("aten.bucketize")
def bucketize(call: OpenCall, values: Any, sequence: Any, **named: Any) -> Any:
    if call.open(1):
        raise UnsupportedError("its boundaries have an open size")
    return call.plain(values, sequence, **named)


@bounded("aten.take")
def take(call: OpenCall, x: Any, positions: Any) -> Any:
    if any(d > 0 for d in call.open(0)):
        raise UnsupportedError("it takes from an array with an inner dimension whose size depends on elements")
    return call.plain(x, positions)


@bounded("aten.nonzero")
def nonzero(call: OpenCall, x: Any) -> Any:
    mask = x != 0
    inside = _inside(call, call.said[0], x)
    places, count = true_places(mask if inside is None else mask & inside)
    rows = jnp.stack(places, -1) if places else jnp.zeros((1, 0), np.int64)
    return made(call, rows, rows.shape[0], count if x.ndim else mask.reshape(()).astype(np.int64))


@bounded("aten.masked_select")
def masked_select(call: OpenCall, x: Any, mask: Any) -> Any:
    rank = max(x.ndim, mask.ndim)
    shapes = [(1,) * (rank - each.ndim) + each.shape for each in (x, mask)]
    extents = [max(pair) if min(pair) else 0 for pair in zip(*shapes, strict=True)]
    inside = []
    for said, each in zip(call.said, (x, mask), strict=True):
        ok = _inside(call, said, each)
        ok = jnp.ones(each.shape, np.bool_) if ok is None else ok
        inside.append(fit(ok, _to(each.shape, extents)))
    x, mask = (jnp.broadcast_to(fit(each, _to(each.shape, extents)), extents) for each in (x, mask))
    places, count = true_places((mask & inside[0] & inside[1]).reshape(-1))
    found = jnp.take(x.reshape(-1), places[0], mode="clip") if x.size else x.reshape(-1)
    return made(call, found, found.shape[0], count)


def _to(shape: Sequence[int], extents: Sequence[int]) -> list[int]:
    """The sizes of an array beside others, of which it has the last dimensions."""
    return [1 if s == 1 else e for s, e in zip(shape, extents[len(extents) - len(shape) :], strict=True)]


# --- What equal elements have in common.


def _groups(starts: Any, inside: Any) -> tuple[Any, Any, Any, Any]:
    """Runs of a sequence: the number of each element's run, where runs begin, how long they are, and their number."""
    begins = starts & inside
    runs = jnp.cumsum(begins.astype(np.int64)) - 1
    where = jnp.where(inside, runs, inside.shape[0])
    lengths = jnp.zeros(inside.shape[0], np.int64).at[where].add(1, mode="drop")
    (first,), count = true_places(begins)
    return runs, first, lengths, count


def _begins(x: Any) -> Any:
    """Where an element of a vector, or a row of a matrix, differs from the one before."""
    differs = x[1:] != x[:-1]
    differs = differs if differs.ndim == 1 else jnp.any(differs, 1)
    return jnp.concatenate([jnp.ones(min(1, x.shape[0]), np.bool_), differs])


@bounded("aten._unique2", "aten.unique_dim", "aten._unique")
def unique(call: OpenCall, x: Any, *arguments: Any, **named: Any) -> Any:
    """Values in order, where each element went, and how many went to each."""
    rows, inside = _rows(call, x, arguments)
    keys = [rows] if rows.ndim == 1 else [rows[:, d] for d in reversed(range(rows.shape[1]))]
    order = jnp.lexsort([*keys, ~inside]) if rows.shape[0] else jnp.zeros(0, np.int64)
    ordered, real = rows[order], inside[order]
    runs, first, lengths, count = _groups(_begins(ordered), real)
    values = jnp.take(ordered, first, 0, mode="clip") if rows.shape[0] else ordered
    went = jnp.zeros(rows.shape[0], np.int64).at[order].set(runs)
    return _unique_results(call, x, values, went, lengths, count, arguments)


@bounded("aten.unique_consecutive", "aten.unique_dim_consecutive")
def unique_consecutive(call: OpenCall, x: Any, *arguments: Any, **named: Any) -> Any:
    dim = named.get("dim", arguments[2] if len(arguments) > 2 else None)
    rows, inside = _rows(call, x, () if dim is None else (dim,))
    if len(call.open(0)) > 1 or (dim is None and call.open(0) and call.open(0) != [0]):
        raise UnsupportedError("runs over an inner dimension whose size depends on elements")
    runs, first, lengths, count = _groups(_begins(rows), inside)
    values = jnp.take(rows, first, 0, mode="clip") if rows.shape[0] else rows
    return _unique_results(call, x, values, runs, lengths, count, () if dim is None else (dim,))


def _rows(call: OpenCall, x: Any, arguments: Sequence[Any]) -> tuple[Any, Any]:
    """What is compared: elements of a vector, or rows of a matrix, and which of them are real."""
    inside = _inside(call, call.said[0], x)
    if not _is_by_rows(call, arguments):
        return x.reshape(-1), jnp.ones(x.size, np.bool_) if inside is None else inside.reshape(-1)
    dim = arguments[0] % x.ndim
    if set(call.open(0)) - {dim}:
        raise UnsupportedError("rows whose size depends on elements are compared")
    rows = jnp.moveaxis(x, dim, 0).reshape(x.shape[dim], -1)
    return rows, jnp.arange(rows.shape[0]) < call.count(0, dim)


def _is_by_rows(call: OpenCall, arguments: Sequence[Any]) -> bool:
    is_flat = "unique2" in str(call.target) or "_unique." in str(call.target)
    return not is_flat and bool(arguments) and isinstance(arguments[0], int) and not isinstance(arguments[0], bool)


def _unique_results(
    call: OpenCall, x: Any, values: Any, went: Any, lengths: Any, count: Any, arguments: Sequence[Any]
) -> Any:
    axis = 0
    if _is_by_rows(call, arguments):
        axis = arguments[0] % x.ndim
        others = [size for d, size in enumerate(x.shape) if d != axis]
        values = jnp.moveaxis(values.reshape(values.shape[0], *others), 0, axis)
    call.sizes.bind(call.result[0].shape[axis], values.shape[axis], count)
    results = []
    for said, result in zip(call.result, (values, went, lengths), strict=False):
        if not open_dims(said) and tuple(said.shape) == (0,):
            result = jnp.zeros(0, np.int64)  # not asked for
        elif result is went and said.ndim != 1:
            result = result.reshape(x.shape)
        results.append(result)
    return tuple(results)


@bounded("aten.repeat_interleave.Tensor")
def repeat_interleave(call: OpenCall, repeats: Any, *, output_size: Any = None) -> Any:
    inside = _inside(call, call.said[0], repeats)
    ends = jnp.cumsum(repeats if inside is None else jnp.where(inside, repeats, 0))
    total = ends[-1] if repeats.shape[0] else jnp.zeros((), np.int64)
    call.sizes.bind(call.result.shape[0], None, total)
    places = jnp.arange(call.sizes.extent(call.result.shape[0]))
    return jnp.searchsorted(ends, places, side="right").astype(np.int64)


@bounded("aten.bincount")
def bincount(call: OpenCall, x: Any, weights: Any = None, minlength: Any = 0) -> Any:
    inside = _inside(call, call.said[0], x)
    largest = jnp.max(x if inside is None else jnp.where(inside, x, -1), initial=-1)
    call.sizes.bind(call.result.shape[0], None, jnp.maximum(largest.astype(np.int64) + 1, minlength))
    extent = call.sizes.extent(call.result.shape[0])
    places = x if inside is None else jnp.where(inside, x, extent)
    added = jnp.ones((), np.int64) if weights is None else converted(weights, dtype_of(call.result.dtype))
    return jnp.zeros(extent, dtype_of(call.result.dtype)).at[places].add(added, mode="drop")
