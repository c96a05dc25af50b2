"""Gathers and scatters: indices stay inside of the real array, and padding is written nowhere."""

from __future__ import annotations

from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.emission import flag
from hloforge.dialect.mlir import stablehlo
from hloforge.dialect.operations import integers
from hloforge.dialect.values import Value
from hloforge.pipelines.padding.frame import Frame, refuse, rule
from hloforge.pipelines.padding.layouts import Dim, plain, prefix


@rule("gather")
def gather(frame: Frame, op: Any) -> None:
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    x, places = Value(op.operands[0]), Value(op.operands[1])
    taken = frame.attribute(op, "slice_sizes", integers(op, "slice_sizes"))
    sizes = frame.extents(x)
    collapsed, batched = list(numbers.collapsed_slice_dims), list(numbers.operand_batching_dims)
    paired = list(numbers.start_indices_batching_dims)
    indexed = list(numbers.start_index_map)
    for d, e in zip(batched, paired, strict=True):
        dim = frame.common([frame.layout(x)[d], frame.layout(places)[e]])
        if dim is not None:
            x, places = frame.relaid(x, d, dim), frame.relaid(places, e, dim)
    vector = numbers.index_vector_dim
    if vector < places.rank and frame.layout(places)[vector] is not None:
        raise refuse(op, "an index has an open number of parts")
    windows: list[Dim | None] = []
    for d, size in enumerate(sizes):
        whole = all(size.at(point) == taken[d].at(point) for point in (*frame.family.fits.points, frame.point))
        if d not in batched and not whole:
            x = frame.with_room(frame.as_prefix(x, [d]), d, size, taken[d])
        if d not in batched and d not in collapsed:
            part = None if taken[d].number is not None else prefix(integers(op, "slice_sizes")[d], taken[d])
            windows.append(frame.layout(x)[d] if whole else part)
    places = _clamped(frame, places, vector, {d: (sizes[d], taken[d]) for d in indexed}, indexed)
    op.operands[0], op.operands[1] = x.ir, places.ir
    outer = [dim for d, dim in enumerate(frame.layout(places)) if d != vector]
    offsets = list(numbers.offset_dims)
    rank = len(op.results[0].type.shape)
    rest, inner = iter(outer), iter(windows)
    frame.set(op.results[0], [next(inner) if d in offsets else next(rest) for d in range(rank)])


def _clamped(frame: Frame, places: Value, vector: int, sizes: dict[int, Any], indexed: list[int]) -> Value:
    """Indices that are inside of the real array, as a gather's are."""
    if all(size.number is not None for size, _ in sizes.values()):
        return places
    row = places.element_type
    lasts = []
    for d in indexed:
        size, taken = sizes[d]
        lasts.append(ops.reshape(ops.convert_element_type(frame.size(size - taken), row), [1]))
    if vector < places.rank:
        wide = ops.broadcast_in_dim(ops.concat_in_dim(lasts, 0), list(places.dims), [vector])
    else:
        wide = ops.broadcast_in_dim(ops.reshape(lasts[0], []), list(places.dims), [])
    zero = ops.broadcast_in_dim(constant(0, row), list(places.dims), [])
    made = ops.max(ops.min(places, wide), zero)
    frame.set(made, frame.layout(places))
    return made


@rule("scatter")
def scatter(frame: Frame, op: Any) -> None:
    numbers = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    count = (len(op.operands) - 1) // 2
    given = [Value(operand) for operand in op.operands]
    arrays, places, updates = given[:count], given[count], given[count + 1 :]
    arrays, _ = frame.together(arrays)
    updates, _ = frame.together(updates)
    vector = numbers.index_vector_dim
    if vector < places.rank and frame.layout(places)[vector] is not None:
        raise refuse(op, "an index has an open number of parts")
    inserted, batched = list(numbers.inserted_window_dims), list(numbers.input_batching_dims)
    paired = list(numbers.scatter_indices_batching_dims)
    window = list(numbers.update_window_dims)
    indexed = list(numbers.scattered_dims_to_operand_dims)
    outer = [d for d in range(updates[0].rank) if d not in window]
    steps = [d for d in range(places.rank) if d != vector]
    # The dimensions of the indices are those of the updates, in order, but for the windows'.
    for d, e in zip(outer, steps, strict=True):
        mates = [frame.layout(updates[0])[d], frame.layout(places)[e]]
        along = next((batched[n] for n, p in enumerate(paired) if p == e), None)
        if along is not None:
            mates.append(frame.layout(arrays[0])[along])
        dim = frame.common(mates)
        if dim is None:
            continue
        places = frame.relaid(places, e, dim)
        updates = [frame.relaid(update, d, dim) for update in updates]
        if along is not None:
            arrays = [frame.relaid(array, along, dim) for array in arrays]
    inner = [d for d in range(arrays[0].rank) if d not in inserted and d not in batched]
    for d, w in zip(inner, window, strict=True):
        dim = frame.layout(updates[0])[w]
        mate = frame.layout(arrays[0])[d]
        if dim is None:
            if mate is not None:
                arrays = [frame.as_prefix(array, [d]) for array in arrays]
            continue
        if mate is None or d in indexed or dim.real != mate.real:
            raise refuse(op, "the parts that it updates have an open size")
        shared = frame.common([dim, mate])
        assert shared is not None
        arrays = [frame.relaid(array, d, shared) for array in arrays]
        updates = [frame.relaid(update, w, shared) for update in updates]
    arrays = [frame.as_prefix(array, indexed) for array in arrays]
    open_steps = {e: dim for e in steps if (dim := frame.layout(places)[e]) is not None and e not in paired}
    if open_steps:
        if not indexed:
            raise refuse(op, "it updates all of an array as often as an open size says")
        outside = constant(max(arrays[0].dims[d] for d in indexed), places.element_type)
        inside = frame.inside(places.dims, open_steps)
        layout = frame.layout(places)
        places = ops.select(inside, places, ops.broadcast_in_dim(outside, list(places.dims), []))
        frame.set(places, layout)
        for name in ("indices_are_sorted", "unique_indices"):
            op.attributes[name] = flag(False)
    for number, value in enumerate([*arrays, places, *updates]):
        op.operands[number] = value.ir
    for result, array in zip(op.results, arrays, strict=True):
        frame.set(result, plain(frame.layout(array)))
