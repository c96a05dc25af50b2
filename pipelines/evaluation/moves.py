"""Rules for operations that move elements, make them from nothing, or fold them in any order."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.element_types import Kind
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.pipelines.evaluation.plan import Array, Kernel, Planner, Rule, UnplannedError, dims, element, integers


def _constant(_: Planner, op: ir.Operation) -> Kernel:
    # A copy: the module's memory ends with the module.
    made = np.array(constant_of(op))
    return lambda: made


def _iota(_: Planner, op: ir.Operation) -> Kernel:
    row, sizes = element(op.results[0]), dims(op.results[0])
    along = ir.IntegerAttr(op.attributes["iota_dimension"]).value
    shape = [size if d == along else 1 for d, size in enumerate(sizes)]
    made = np.broadcast_to(np.arange(sizes[along]).astype(row.dtype).reshape(shape), sizes)
    return lambda: made


def _broadcast(_: Planner, op: ir.Operation) -> Kernel:
    sizes = dims(op.results[0])
    shape = [1] * len(sizes)
    for source, target in enumerate(integers(op, "broadcast_dimensions")):
        shape[target] = dims(op.operands[0])[source]
    order = np.argsort(integers(op, "broadcast_dimensions"), kind="stable")
    return lambda x: np.broadcast_to(np.transpose(x, order).reshape(shape), sizes)


def _reshape(_: Planner, op: ir.Operation) -> Kernel:
    sizes = dims(op.results[0])
    return lambda x: np.reshape(x, sizes)


def _transpose(_: Planner, op: ir.Operation) -> Kernel:
    order = integers(op, "permutation")
    return lambda x: np.transpose(x, order)


def _reverse(_: Planner, op: ir.Operation) -> Kernel:
    along = integers(op, "dimensions")
    return lambda x: np.flip(x, along)


def _slice(_: Planner, op: ir.Operation) -> Kernel:
    bounds = (integers(op, name) for name in ("start_indices", "limit_indices", "strides"))
    index = tuple(slice(*part) for part in zip(*bounds, strict=True))
    return operator.itemgetter(index)


def _concatenate(_: Planner, op: ir.Operation) -> Kernel:
    along = ir.IntegerAttr(op.attributes["dimension"]).value
    return lambda *parts: np.concatenate(parts, along)


def _pad(_: Planner, op: ir.Operation) -> Kernel:
    row, sizes = element(op.results[0]), dims(op.results[0])
    low, between = integers(op, "edge_padding_low"), integers(op, "interior_padding")
    source, target = [], []
    for size, before, gap, whole in zip(dims(op.operands[0]), low, between, sizes, strict=True):
        # The elements that are not cut off by negative paddings.
        step = gap + 1
        first = max(0, -(before // step))
        last = min(size, (whole - before + step - 1) // step)
        source.append(slice(first, max(first, last)))
        start = before + first * step
        target.append(slice(start, start + max(0, last - first) * step, step))

    def padded(x: Array, value: Array) -> Any:
        made = np.full(sizes, value, row.dtype)
        made[tuple(target)] = x[tuple(source)]
        return made

    return padded


def _bitcast(_: Planner, op: ir.Operation) -> Kernel:
    old, new = element(op.operands[0]), element(op.results[0])
    if Kind.PRED in (old.kind, new.kind) or old.is_complex or new.is_complex:
        raise UnplannedError(op.name)
    sizes = dims(op.results[0])

    def viewed(x: Array) -> Any:
        whole = np.ascontiguousarray(x)
        if old.bits > new.bits:
            whole = whole.reshape((*whole.shape, 1))
        return whole.view(new.dtype).reshape(sizes)

    return viewed


def _starts(starts: Sequence[Array], sizes: Sequence[int], window: Sequence[int]) -> tuple[slice, ...]:
    """Where a window lies that must not reach beyond the array."""
    found = [
        min(max(int(start), 0), size - part) for start, size, part in zip(starts, sizes, window, strict=True)
    ]  # fmt: skip
    return tuple(slice(start, start + part) for start, part in zip(found, window, strict=True))


def _dynamic_slice(_: Planner, op: ir.Operation) -> Kernel:
    sizes, window = dims(op.operands[0]), integers(op, "slice_sizes")
    return lambda x, *starts: x[_starts(starts, sizes, window)]


def _dynamic_update_slice(_: Planner, op: ir.Operation) -> Kernel:
    sizes, window = dims(op.operands[0]), dims(op.operands[1])

    def updated(x: Array, update: Array, *starts: Array) -> Any:
        made = np.array(x)
        made[_starts(starts, sizes, window)] = update
        return made

    return updated


def _gather(_: Planner, op: ir.Operation) -> Kernel:
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    sizes, window = dims(op.operands[0]), integers(op, "slice_sizes")
    result = dims(op.results[0])
    vector, mapped = numbers.index_vector_dim, tuple(numbers.start_index_map)
    batching = dict(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    offsets = tuple(numbers.offset_dims)
    batch = [d for d in range(len(result)) if d not in offsets]
    kept = [d for d in range(len(sizes)) if d not in (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)]
    has_vector = vector < len(dims(op.operands[1]))
    batch_sizes = [result[d] for d in batch]

    def gathered(x: Array, indices: Array) -> Any:
        """Of each dimension of the operand, the index that each element of the result has there."""
        columns = np.moveaxis(indices, vector, -1) if has_vector else indices[..., None]
        places: list[Any] = []
        for d, (size, part) in enumerate(zip(sizes, window, strict=True)):
            index: Any = np.zeros([1] * len(result), np.int64)
            if d in mapped:
                start = columns[..., mapped.index(d)]
                start = np.minimum(np.maximum(start, 0), size - part).astype(np.int64)
                index = index + _spread(start, batch, len(result))
            if d in batching:
                along = batching[d] - (has_vector and batching[d] > vector)
                shape = [1] * len(batch)
                shape[along] = batch_sizes[along]
                index = index + _spread(np.arange(batch_sizes[along]).reshape(shape), batch, len(result))
            if d in kept:
                shape = [1] * len(result)
                shape[offsets[kept.index(d)]] = part
                index = index + np.arange(part).reshape(shape)
            places.append(index)
        return np.broadcast_to(x[tuple(places)], result)

    return gathered


def _spread(values: Array, batch: Sequence[int], rank: int) -> Array:
    """Values by the batch's dimensions, as an array of the result's rank."""
    shape = [1] * rank
    for d, size in zip(batch, np.shape(values), strict=True):
        shape[d] = size
    return np.reshape(values, shape)


def _barrier(_: Planner, op: ir.Operation) -> Kernel:
    """The operands; so are shardings on one device."""
    return (lambda x: x) if len(op.operands) == 1 else (lambda *values: values)


MOVES: dict[str, Rule] = {
    "sdy.sharding_constraint": _barrier,
    "stablehlo.bitcast_convert": _bitcast,
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.constant": _constant,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.gather": _gather,
    "stablehlo.iota": _iota,
    "stablehlo.optimization_barrier": _barrier,
    "stablehlo.pad": _pad,
    "stablehlo.reshape": _reshape,
    "stablehlo.reverse": _reverse,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
}
