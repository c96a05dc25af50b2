"""Pooling: means, maxima and norms of windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.values import Value
from hloforge.importers.tensors import cast, highest, lift, lowest
from hloforge.importers.tflite.activations import activated, bounds
from hloforge.importers.tflite.node import Node
from hloforge.importers.tflite.quantization import stored
from hloforge.importers.tflite.registry import operator
from hloforge.importers.tflite.window_padding import pads_of


def _window(node: Node) -> dict[str, Any]:
    sizes = [int(node.option("FilterHeight")), int(node.option("FilterWidth"))]
    strides = [int(node.option("StrideH")), int(node.option("StrideW"))]
    pads = pads_of(node.option("Padding"), node.dims()[1:3], sizes, strides)
    return {
        "window_dimensions": [1, *sizes, 1],
        "window_strides": [1, *strides, 1],
        "padding": [(0, 0), *pads, (0, 0)],
    }


@operator("MAX_POOL_2D")
def max_pool(node: Node) -> Value:
    """Stored integers are compared as they are: the input's scale is the output's."""
    x = node.aligned(0)
    result = ops.reduce_window(x, lowest(x.element_type), ops.max, **_window(node))
    if x.element_type.is_float:
        return activated(node, result)
    return _bounded(node, cast(result, "f32"))


@operator("AVERAGE_POOL_2D")
def average_pool(node: Node) -> Value:
    """What lies in the padding does not count."""
    x, window = node.value(0), _window(node)
    counts = np.ones((), np.float32)
    for axis, (extent, (low, _)) in enumerate(zip(x.dims, window["padding"], strict=True)):
        size, stride = window["window_dimensions"][axis], window["window_strides"][axis]
        places = (extent + sum(window["padding"][axis]) - size) // stride + 1
        starts = np.arange(places) * stride - low
        inside = np.minimum(starts + size, extent) - np.maximum(starts, 0)
        counts = np.multiply.outer(counts, inside.astype(np.float32))
    sums = ops.reduce_window(cast(x, "f32"), 0.0, ops.add, **window)
    means = sums / lift(counts * np.ones(sums.dims, np.float32))
    return activated(node, means) if x.element_type.is_float else _bounded(node, ops.round(means))


def _bounded(node: Node, whole: Value) -> Value:
    """Stored integers, given as floats, between what the activation keeps them."""
    quantization, row = node.result().quantization, node.result().row
    if quantization is None:
        return cast(whole, row)
    zero = float(quantization.zero_point[0])
    units = whole - zero
    low, high = bounds(node)
    scale = float(quantization.scale[0])
    units = units if low is None else ops.max(units, low / scale)
    units = units if high is None else ops.min(units, high / scale)
    return stored(units, quantization, row)


@operator("L2_POOL_2D")
def length_pool(node: Node) -> Value:
    x, window = node.value(0), _window(node)
    squares = ops.reduce_window(x * x, 0.0, ops.add, **window)
    counts = ops.reduce_window(x * 0 + 1.0, 0.0, ops.add, **window)
    return activated(node, ops.sqrt(squares / counts))


# Source: ReduceWindowFunction of schema.fbs.
_FUNCTIONS: dict[int, Any] = {
    1: (ops.add, lambda row: 0.0 if row.is_float else 0),
    2: (ops.mul, lambda row: 1.0 if row.is_float else 1),
    3: (ops.min, highest),
    4: (ops.max, lowest),
    5: (ops.and_, lambda row: True),
    6: (ops.or_, lambda row: False),
}


@operator("REDUCE_WINDOW")
def reduce_window(node: Node) -> Value:
    """Windows of a shape, strides and dilations that are inputs."""
    x = node.value(0)
    combine, _ = _FUNCTIONS[node.option("ReduceFunction")]
    start = ops.reshape(node.value(1), [])
    sizes, strides, base, dilations = (node.integers(number) for number in range(2, 6))
    return ops.reduce_window(x, start, combine, sizes, strides, "VALID", base, dilations)
