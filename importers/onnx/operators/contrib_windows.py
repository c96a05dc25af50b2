"""ONNX Runtime's operators (``com.microsoft``) of windows, distances, inverses and repetition."""

from __future__ import annotations

import math

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.operators.contrib import MICROSOFT
from hloforge.importers.onnx.operators.pooling import window_fields
from hloforge.importers.onnx.operators.quantized import quantized_convolution
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.roundings import rounds_once
from hloforge.importers.onnx.window_attributes import windows_of
from hloforge.importers.tensors import (
    axis_of,
    broadcast_to,
    cast,
    expand,
    fill,
    lift,
    lowest,
    matmul,
    numbers,
    take,
    total,
    window,
)


@operator("NhwcMaxPool", domain=MICROSOFT)
def max_pool_of_last(node: Node) -> Value:
    """MaxPool of images whose channels are last."""
    x = node.value(0)
    spatial = x.dims[1:-1]
    fields = window_fields(windows_of(node, spatial, node.attribute("kernel_shape")), spatial, is_last=True)
    return ops.reduce_window(x, lowest(x.element_type), ops.max, **fields)


@operator("QLinearConv", domain=MICROSOFT)
def quantized_convolution_of_last(node: Node) -> Value:
    """ONNX's operator, also of images whose channels are last."""
    if not node.attribute("channels_last", 0):
        return _convolved(node)
    return channels_last(_convolved(node.with_input(0, channels_first(node.value(0)))))


def _convolved(node: Node) -> Value:
    found: Value = quantized_convolution(node)
    return found


def channels_first(x: Value) -> Value:
    return ops.transpose(x, [0, x.rank - 1, *range(1, x.rank - 1)])


def channels_last(x: Value) -> Value:
    return ops.transpose(x, [0, *range(2, x.rank), 1])


@operator("MatMulInteger16", domain=MICROSOFT)
def product_of_words(node: Node) -> Value:
    return matmul(cast(node.value(0), "s32"), cast(node.value(1), "s32"))


@operator("CDist", domain=MICROSOFT)
@rounds_once
def distances(node: Node) -> Value:
    """Between the rows of two arrays."""
    metric = node.attribute("metric", "sqeuclidean")
    if metric not in ("sqeuclidean", "euclidean"):
        raise UnsupportedError(f"the metric {metric!r} is not imported")
    left, right = node.value(0), node.value(1)
    dims = [left.dims[0], right.dims[0], left.dims[1]]
    apart = ops.broadcast_in_dim(left, dims, [0, 2]) - ops.broadcast_in_dim(right, dims, [1, 2])
    squares = total(apart * apart, [2])
    return ops.sqrt(squares) if metric == "euclidean" else squares


@operator("ExpandDims", domain=MICROSOFT)
def expand_dims(node: Node) -> Value:
    x = node.value(0)
    axis = axis_of(node.integers(1)[0], x.rank + 1)
    return ops.reshape(x, [*x.dims[:axis], 1, *x.dims[axis:]])


@operator("UnfoldTensor", domain=MICROSOFT)
def unfold(node: Node) -> Value:
    """Windows along an axis, their elements as a last dimension."""
    x = node.value(0)
    axis, size = axis_of(int(node.attribute("dim", -1)), x.rank), int(node.attribute("size"))
    step = int(node.attribute("step", 1))
    places = np.arange((x.dims[axis] - size) // step + 1)[:, None] * step + np.arange(size)
    taken = take(x, lift(places.astype(np.int32)), axis)
    order = [d for d in range(taken.rank) if d != axis + 1]
    return ops.transpose(taken, [*order, axis + 1])


@operator("NGramRepeatBlock", domain=MICROSOFT)
def block_repeated(node: Node) -> Value:
    """Scores of words, -inf where a word would end a group of ``ngram_size`` words that the row has already."""
    words, scores, size = node.value(0), node.value(1), int(node.attribute("ngram_size"))
    batch, length = words.dims
    if length < size:
        return scores
    groups = length - size + 1
    matches = fill([batch, groups], True, "pred")
    for place in range(size - 1):
        last = window(words, 1, groups + place, groups + place + 1)
        matches = matches & window(words, 1, place, place + groups).eq(broadcast_to(last, matches.dims))
    ends = cast(window(words, 1, size - 1, length), "s32")
    never, any_ = (fill(ends.dims, sign * math.inf, scores.element_type) for sign in (-1, 1))
    places = ops.concat_in_dim([expand(each, [2]) for each in (numbers(ends.dims, 0), ends)], 2)
    layout = ops.ScatterDimensionNumbers([], [0, 1], [0, 1], 2)
    return ops.scatter(scores, places, ops.select(matches, never, any_), ops.min, layout)
