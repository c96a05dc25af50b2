"""Gathers, scatters, argmax and argmin, sorting and top-k."""

from __future__ import annotations

from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value, leaves
from hloforge.importers.tensors import axis_of, cast, expand, fill, highest, lowest, numbers, pair, take, window
from hloforge.importers.tflite.graph import Outputs
from hloforge.importers.tflite.node import Node
from hloforge.importers.tflite.registry import operator


@operator("GATHER")
def gather(node: Node) -> Value:
    x, places = node.value(0), node.value(1)
    axis = axis_of(node.option("Axis"), x.rank)
    batch = node.option("BatchDims")
    batch = axis_of(batch, places.rank) if batch < 0 else batch
    if not batch:
        return take(x, places, axis)
    # The first dimensions of both go along with each other.
    dims = [*places.dims, 1]
    window_ = [1 if d == axis or d < batch else extent for d, extent in enumerate(x.dims)]
    kept = [d for d in range(x.rank) if d != axis and d >= batch]
    offsets = [d if d < axis else d + places.rank - batch - 1 for d in kept]
    layout = ops.GatherDimensionNumbers(offsets, [axis], [axis], places.rank, list(range(batch)), list(range(batch)))
    return ops.gather(x, ops.reshape(places, dims), layout, window_)


@operator("GATHER_ND")
def gather_nd(node: Node) -> Value:
    """The last dimension of the positions holds an index for each of the first dimensions."""
    x, places = node.value(0), node.value(1)
    depth, lead = places.dims[-1], places.rank - 1
    window_ = [1] * depth + list(x.dims[depth:])
    offsets = list(range(lead, lead + x.rank - depth))
    layout = ops.GatherDimensionNumbers(offsets, list(range(depth)), list(range(depth)), lead)
    return ops.gather(x, places, layout, window_)


@operator("EMBEDDING_LOOKUP")
def embedding(node: Node) -> Value:
    return take(node.real(1), node.value(0), 0)


@operator("SCATTER_ND")
def scatter_nd(node: Node) -> Value:
    """Updates at positions of an array of zeros, added where they meet."""
    places, updates, dims = node.value(0), node.value(1), node.integers(2)
    depth, lead = places.dims[-1], places.rank - 1
    layout = ops.ScatterDimensionNumbers(list(range(lead, updates.rank)), list(range(depth)), list(range(depth)), lead)
    return ops.scatter(fill(dims, 0, updates.element_type), places, updates, ops.add, layout)


@operator("SPARSE_TO_DENSE")
def sparse_to_dense(node: Node) -> Value:
    places, dims = node.value(0), node.integers(1)
    values, filler = node.value(2), ops.reshape(node.value(3), [])
    places = ops.reshape(places, [-1 if places.rank == 0 else places.dims[0], 1]) if places.rank == 1 else places
    if places.rank == 0:
        places = ops.reshape(places, [1, 1])
    values = ops.broadcast_in_dim(values, [places.dims[0]], [0] if values.rank else [])
    layout = ops.ScatterDimensionNumbers([], list(range(len(dims))), list(range(len(dims))), 1)
    return ops.scatter(ops.broadcast_in_dim(filler, dims, []), places, values, lambda _, new: new, layout)


@operator("ARG_MAX", "ARG_MIN")
def place_of_extreme(node: Node) -> Value:
    """The first of equal elements."""
    x = node.value(0)
    axis, largest = node.axis(1, x.rank), node.name == "ARG_MAX"
    if not x.element_type.is_float:
        x = cast(x, "s64" if x.element_type.bits > 16 else "s32")

    def better(value: Value, place: Value, other: Value, other_place: Value) -> tuple[Value, Value]:
        first = (value > other if largest else value < other) | (value.eq(other) & (place < other_place))
        return ops.select(first, value, other), ops.select(first, place, other_place)

    start = lowest(x.element_type) if largest else highest(x.element_type)
    found = ops.reduce([x, numbers(x.dims, axis)], [start, np.iinfo(np.int32).max], better, [axis])
    return cast(pair(found)[1], node.result().row)


@operator("TOPK_V2")
def top_k(node: Node) -> Any:
    """Of equal elements the one of lower index goes first."""
    x = node.value(0)
    count, axis = node.integers(1)[0], x.rank - 1

    def before(a: Value, b: Value, place_a: Value, place_b: Value) -> Value:
        return (a > b) | (a.eq(b) & (place_a < place_b))

    values, places = leaves(ops.sort([x, numbers(x.dims, axis)], before, axis))
    return Outputs([window(values, axis, 0, count), window(places, axis, 0, count)])


@operator("REVERSE_SEQUENCE")
def reverse_sequence(node: Node) -> Value:
    """The first elements of each batch in reverse, as many as its length says; the others as they are."""
    x, lengths = node.value(0), cast(node.value(1), "s32")
    batch, time = node.option("BatchDim"), node.option("SeqDim")
    sizes = [x.dims[time], x.dims[batch]]
    place, length = numbers(sizes, 0), ops.broadcast_in_dim(lengths, sizes, [1])
    source = ops.select(place < length, length - 1 - place, place)
    order = [time, batch, *(d for d in range(x.rank) if d not in (time, batch))]
    ordered = ops.transpose(x, order)
    starts = ops.concat_in_dim([expand(source, [2]), expand(numbers(sizes, 1), [2])], 2)
    layout = ops.GatherDimensionNumbers(range(2, x.rank), [0, 1], [0, 1], 2)
    taken = ops.gather(ordered, starts, layout, [1, 1, *ordered.dims[2:]])
    return ops.transpose(taken, [int(d) for d in np.argsort(order)])


_SEGMENTS: dict[str, tuple[Any, Any]] = {
    "UNSORTED_SEGMENT_SUM": (ops.add, lambda row: 0),
    "UNSORTED_SEGMENT_PROD": (ops.mul, lambda row: 1),
    "UNSORTED_SEGMENT_MAX": (ops.max, lowest),
    "UNSORTED_SEGMENT_MIN": (ops.min, highest),
}


@operator(*_SEGMENTS)
def segments(node: Node) -> Value:
    """Elements of one segment are combined; what belongs to none (a negative number) is left out."""
    x, numbers_, count = node.value(0), node.value(1), node.integers(2)[0]
    combine, start = _SEGMENTS[node.name]
    lead = numbers_.rank
    first = start(x.element_type)
    if x.element_type.is_float and node.name.endswith(("MAX", "MIN")):
        first = float(np.finfo(x.element_type.dtype).min if node.name.endswith("MAX") else np.finfo("f4").max)
    buffer = fill([count, *x.dims[lead:]], first, x.element_type)
    layout = ops.ScatterDimensionNumbers(list(range(lead, x.rank)), [0], [0], lead)
    places = ops.select(numbers_ < 0, numbers_ * 0 + count, numbers_)
    return ops.scatter(buffer, ops.reshape(places, [*numbers_.dims, 1]), x, combine, layout)


@operator("WHERE", "UNIQUE", "SEGMENT_SUM")
def of_data(node: Node) -> Any:
    """The size of the result depends on elements: WHERE of known ones is computed, the others are refused."""
    if node.name == "WHERE":
        return np.argwhere(node.known(0)).astype(np.int64)
    raise UnsupportedError(
        f"{node.name} gives as many elements as its data says, and a program's sizes are fixed",
        hint="end the model before this operator, and compute it with numpy",
    )
