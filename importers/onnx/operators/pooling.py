"""Pooling: maximum, mean or norm of each window; unpooling; pooling of regions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.values import Value
from hloforge.importers.onnx.graph import Outputs
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.roundings import rounds_once
from hloforge.importers.onnx.window_attributes import Windows, windows_of
from hloforge.importers.tensors import cast, fill, greatest, lift, lowest, mean, pair, total


def window_fields(window: Windows, spatial: tuple[int, ...], *, is_last: bool = False) -> dict[str, Any]:
    """The arguments of ``reduce_window``: padding up to where the last place ends.

    Args:
        is_last: whether channels are the last dimension, not the second.
    """
    pads = []
    for d, (low, _) in enumerate(window.pads):
        reach = (window.sizes[d] - 1) * window.dilations[d] + 1
        pads.append((low, (window.places[d] - 1) * window.strides[d] + reach - low - spatial[d]))

    def placed(numbers: Sequence[Any], other: Any) -> list[Any]:
        return [other, *numbers, other] if is_last else [other, other, *numbers]

    return {
        "window_dimensions": placed(window.sizes, 1),
        "window_strides": placed(window.strides, 1),
        "padding": placed(pads, (0, 0)),
        "window_dilations": placed(window.dilations, 1),
    }


@operator("MaxPool")
def max_pool(node: Node) -> Any:
    """The second output: where each maximum is in the whole input, flattened."""
    x = node.value(0)
    window = windows_of(node, x.dims[2:], node.attribute("kernel_shape"))
    fields = window_fields(window, x.dims[2:])
    start = lowest(x.element_type)
    if not node.wants(1):
        return ops.reduce_window(x, start, ops.max, **fields)
    order = list(range(x.rank))
    if node.attribute("storage_order", 0):
        order = [0, 1, *reversed(range(2, x.rank))]
    place = np.zeros((1,) * x.rank, np.int64)
    stride = 1
    for d in reversed(order):
        place = place + stride * np.arange(x.dims[d]).reshape([-1 if axis == d else 1 for axis in range(x.rank)])
        stride *= x.dims[d]

    def better(value: Value, at: Value, other: Value, other_at: Value) -> tuple[Value, Value]:
        first = (value > other) | (value.eq(other) & (at < other_at))
        return ops.select(first, value, other), ops.select(first, at, other_at)

    beyond = np.iinfo(np.int64).max
    found, at = pair(ops.reduce_window([x, lift(place)], [start, beyond], better, **fields))
    return Outputs([found, at])


@operator("AveragePool")
def average_pool(node: Node) -> Value:
    return averages(node, node.value(0))


def averages(node: Node, x: Value) -> Value:
    """The means of windows, by the attributes of a node.

    Padding counts with ``count_include_pad``; what lies beyond the padding never does.
    """
    spatial = x.dims[2:]
    window = windows_of(node, spatial, node.attribute("kernel_shape"))
    row = x.element_type
    wide = cast(x, "f32") if row.bits < 32 else x
    sums = ops.reduce_window(wide, 0.0, ops.add, **window_fields(window, spatial))
    counts = np.ones((), np.int64)
    for d, extent in enumerate(spatial):
        low, high = window.pads[d]
        first, last = (-low, extent + high) if node.attribute("count_include_pad", 0) else (0, extent)
        starts = np.arange(window.places[d]) * window.strides[d] - low
        reads = starts[:, None] + np.arange(window.sizes[d]) * window.dilations[d]
        counts = np.multiply.outer(counts, ((reads >= first) & (reads < last)).sum(1))
    divisor = np.broadcast_to(counts, sums.dims).astype(wide.element_type.dtype)
    return cast(sums / lift(divisor), row)


@operator("LpPool")
@rounds_once
def norm_pool(node: Node) -> Value:
    x = node.value(0)
    order = float(node.attribute("p", 2))
    window = windows_of(node, x.dims[2:], node.attribute("kernel_shape"))
    sums = ops.reduce_window(ops.pow(ops.abs(x), order), 0.0, ops.add, **window_fields(window, x.dims[2:]))
    return ops.pow(sums, 1.0 / order)


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
@rounds_once
def global_pool(node: Node) -> Value:
    x = node.value(0)
    axes = list(range(2, x.rank))
    if node.name == "GlobalMaxPool":
        return greatest(x, axes, True)
    if node.name == "GlobalAveragePool":
        return mean(x, axes, True)
    order = float(node.attribute("p", 2))
    return ops.pow(total(ops.pow(ops.abs(x), order), axes, True), 1.0 / order)


@operator("MaxUnpool")
def max_unpool(node: Node) -> Value:
    """Each element goes where its maximum was; the positions count in the padded size that the attributes imply."""
    x, places = node.value(0), node.value(1)
    rank = x.rank - 2
    sizes = list(node.attribute("kernel_shape"))
    strides = list(node.attribute("strides") or [1] * rank)
    pads = list(node.attribute("pads") or [0] * (2 * rank))
    implied = [(x.dims[2 + d] - 1) * strides[d] + sizes[d] - pads[d] - pads[rank + d] for d in range(rank)]
    dims = [*x.dims[:2], *implied]
    flat = fill([math.prod(dims)], 0, x.element_type)
    count = math.prod(x.dims)
    layout = ops.ScatterDimensionNumbers([], [0], [0], 1)
    filled = ops.scatter(flat, ops.reshape(places, [count, 1]), ops.reshape(x, [count]), lambda _, new: new, layout)
    result = ops.reshape(filled, dims)
    if not node.has(2):
        return result
    target = node.integers(2)
    return ops.pad(
        result,
        full(fill([], 0, x.element_type), 0),
        [(0, size - had, 0) for size, had in zip(target, dims, strict=True)],
    )
