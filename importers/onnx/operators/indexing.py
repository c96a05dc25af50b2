"""Reading and writing at indices: gathers, scatters, one-hot, caches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.values import Value
from hloforge.importers.onnx.bounded import Bounded, compacted
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.tensors import broadcast_to, cast, expand, lift, numbers, take, wrapped


@operator("Gather")
def gather(node: Node) -> Value:
    return take(node.value(0), node.value(1), node.axis(0))


@operator("GatherElements")
def gather_elements(node: Node) -> Value:
    """Each index replaces its own position along an axis."""
    x = node.value(0)
    starts = _full_places(node.value(1), x, node.axis(0))
    layout = ops.GatherDimensionNumbers([], range(x.rank), range(x.rank), starts.rank - 1)
    return ops.gather(x, starts, layout, [1] * x.rank)


def _full_places(indices: Value, operand: Value, axis: int) -> Value:
    """``[dims of indices, rank]``: where an element is in the operand: elsewhere along one axis."""
    indices = cast(wrapped(indices, operand.dims[axis]), "s64")
    parts = [indices if d == axis else numbers(indices.dims, d, "s64") for d in range(indices.rank)]
    return ops.concat_in_dim([expand(part, [indices.rank]) for part in parts], indices.rank)


@operator("GatherND")
@operator("GatherND", domain="com.microsoft")
def gather_nd(node: Node) -> Value:
    """Vectors of indices along the last dimension name slices; the first ``batch_dims`` dimensions go in parallel."""
    x, indices = node.value(0), node.value(1)
    batch = int(node.attribute("batch_dims", 0))
    depth = indices.dims[-1]
    indices = _wrapped_vectors(indices, x.dims[batch : batch + depth])
    offset = indices.rank - 1
    layout = ops.GatherDimensionNumbers(
        range(offset, offset + x.rank - batch - depth),
        range(batch, batch + depth),
        range(batch, batch + depth),
        indices.rank - 1,
        range(batch),
        range(batch),
    )
    return ops.gather(x, indices, layout, [*[1] * (batch + depth), *x.dims[batch + depth :]])


def _wrapped_vectors(indices: Value, sizes: tuple[int, ...]) -> Value:
    indices = cast(indices, "s64")
    extents = broadcast_to(lift(np.asarray(sizes, np.int64)), indices.dims)
    return ops.select(indices < 0, indices + extents, indices)


_REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "none": lambda _, new: new,
    "add": ops.add,
    "mul": ops.mul,
    "max": ops.max,
    "min": ops.min,
}


@operator("ScatterElements", "Scatter")
def scatter_elements(node: Node) -> Value:
    x, updates = node.value(0), node.value(2)
    places = _full_places(node.value(1), x, node.axis(0))
    count = int(np.prod(updates.dims, dtype=np.int64))
    layout = ops.ScatterDimensionNumbers([], range(x.rank), range(x.rank), 1)
    flat = ops.reshape(places, [count, x.rank])
    return ops.scatter(x, flat, ops.reshape(updates, [count]), _REDUCTIONS[node.attribute("reduction", "none")], layout)


@operator("ScatterND")
def scatter_nd(node: Node) -> Value:
    x, updates = node.value(0), node.value(2)
    depth = node.dims(1)[-1]
    indices = _wrapped_vectors(node.value(1), x.dims[:depth])
    window = range(indices.rank - 1, indices.rank - 1 + x.rank - depth)
    layout = ops.ScatterDimensionNumbers(window, range(depth), range(depth), indices.rank - 1)
    return ops.scatter(x, indices, updates, _REDUCTIONS[node.attribute("reduction", "none")], layout)


@operator("OneHot")
def one_hot(node: Node) -> Value:
    """``values`` are (off, on); indices out of range give no mark at all."""
    indices, values = node.value(0), node.value(2)
    depth = int(node.known(1).reshape(-1)[0])
    axis = int(node.attribute("axis", -1))
    axis = axis + indices.rank + 1 if axis < 0 else axis
    indices = cast(indices, "s64")
    indices = ops.select(indices < 0, indices + depth, indices)
    dims = [*indices.dims[:axis], depth, *indices.dims[axis:]]
    marked = numbers(dims, axis, "s64").eq(broadcast_to(expand(indices, [axis]), dims))
    off, on = (broadcast_to(ops.slice(values, [number], [number + 1]), dims) for number in (0, 1))
    return ops.select(marked, on, off)


@operator("TensorScatter")
def update_cache(node: Node) -> Value:
    """Writes new entries into a cache from a position on, for each batch; ``circular`` wraps around at the end."""
    cache, update = node.value(0), node.value(1)
    axis = node.axis(-2)
    size, length, batch = cache.dims[axis], update.dims[axis], cache.dims[0]
    starts = cast(node.value(2), "s64") if node.has(2) else full(lift(np.zeros(batch, np.int64)), 0)
    places = broadcast_to(expand(starts, [1]), [batch, length]) + numbers([batch, length], 1, "s64")
    if node.attribute("mode", "linear") == "circular":
        places = places % size
    order = [0, axis, *(d for d in range(cache.rank) if d not in (0, axis))]
    back = [int(d) for d in np.argsort(order)]
    vectors = ops.concat_in_dim([expand(numbers([batch, length], 0, "s64"), [2]), expand(places, [2])], 2)
    layout = ops.ScatterDimensionNumbers(range(2, cache.rank), [0, 1], [0, 1], 2)
    written = ops.scatter(
        ops.transpose(cache, order), vectors, ops.transpose(update, order), lambda _, new: new, layout
    )
    return ops.transpose(written, back)


@operator("Compress")
def compress(node: Node) -> Any:
    """The condition decides the size; it may be shorter than the axis."""
    x, condition = node.value(0), node.tensor(1)
    axis = node.axis(0) if node.attribute("axis") is not None else 0
    if node.attribute("axis") is None:
        x = ops.reshape(x, [int(np.prod(x.dims, dtype=np.int64))])
    if not isinstance(condition, Value) or not condition.dims[0]:
        return take(x, lift(np.flatnonzero(node.known(1)).astype(np.int32)), axis)
    places, size = compacted(condition)
    return Bounded(take(x, places, axis), axis, size)
