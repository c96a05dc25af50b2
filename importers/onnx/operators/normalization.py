"""Softmax and similar functions; batch, instance, layer and other normalizations."""

from __future__ import annotations

import math
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.values import Value
from hloforge.importers.onnx.graph import Outputs
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.roundings import rounds_once, widened
from hloforge.importers.tensors import along, broadcast_to, cast, greatest, least, mean, numbers, total


def softmax(x: Value, axes: list[int], *, log: bool = False) -> Value:
    """Exponentials divided by their sums along axes, or their logarithms."""
    shifted = x - broadcast_to(greatest(x, axes, True), x.dims)
    powers = ops.exp(shifted)
    sums = broadcast_to(total(powers, axes, True), x.dims)
    return shifted - ops.log(sums) if log else powers / sums


@operator("Softmax", "LogSoftmax", since=13)
def softmax_along(node: Node) -> Value:
    if node.name == "Softmax" and node.row(0).name == "f16":
        return _softmax_of_f16(node.value(0), node.axis(-1))
    return _softmax_along(node)


@rounds_once
def _softmax_along(node: Node) -> Value:
    return softmax(node.value(0), [node.axis(-1)], log=node.name == "LogSoftmax")


def _softmax_of_f16(x: Value, axis: int) -> Value:
    """With steps in f16 but for sums, as in the values that ONNX's own tests expect."""
    powers = ops.exp(x - broadcast_to(greatest(x, [axis], True), x.dims))
    sums = cast(total(widened(powers), [axis], True), "f16")
    return powers / broadcast_to(sums, x.dims)


@operator("Softmax", "LogSoftmax")
@rounds_once
def softmax_of_rows(node: Node) -> Value:
    """Before version 13 all dimensions from ``axis`` on are one."""
    x = node.value(0)
    return softmax(x, list(range(node.axis(1), x.rank)), log=node.name == "LogSoftmax")


@operator("Hardmax")
def hardmax(node: Node) -> Value:
    """1 at the first of the greatest elements, 0 elsewhere."""
    x = node.value(0)
    axis = node.axis(-1 if node.version >= 13 else 1)
    axes = [axis] if node.version >= 13 else list(range(axis, x.rank))
    lines = ops.reshape(x, [*x.dims[:axis], math.prod(x.dims[d] for d in axes), *x.dims[axis + len(axes) :]])
    place = numbers(lines.dims, axis)
    best = lines.eq(broadcast_to(greatest(lines, [axis], True), lines.dims))
    first = least(ops.select(best, place, full(place, lines.dims[axis])), [axis], True)
    return ops.reshape(cast(place.eq(broadcast_to(first, lines.dims)), x.element_type), x.dims)


@operator("BatchNormalization")
def batch_norm(node: Node) -> Any:
    """With ``training_mode`` by the batch's own statistics, which are also mixed into the running ones."""
    x = node.value(0)
    scale, bias, running_mean, running_variance = (node.value(number) for number in range(1, 5))
    epsilon = float(node.attribute("epsilon", 1e-5))
    row = x.element_type
    wide = widened(running_mean).element_type
    if not node.attribute("training_mode", 0):
        return _normalized(x, running_mean, running_variance, scale, bias, epsilon)
    axes = [d for d in range(x.rank) if d != 1]
    batch_mean = mean(cast(x, wide), axes)
    centered = cast(x, wide) - broadcast_to(along(batch_mean, 1, x.rank), x.dims)
    variance = mean(centered * centered, axes)
    momentum = float(node.attribute("momentum", 0.9))
    outputs = [_normalized(x, batch_mean, variance, scale, bias, epsilon)]
    outputs += [
        cast(cast(old, wide) * momentum + cast(new, wide) * (1 - momentum), old.element_type)
        for old, new in ((running_mean, batch_mean), (running_variance, variance))
    ]
    return Outputs([cast(outputs[0], row), *outputs[1:]])


def _normalized(x: Value, center: Value, variance: Value, scale: Value, bias: Value, epsilon: float) -> Value:
    """By channel; a factor and an addend for each are computed of vectors, and applied to the array."""
    variance = widened(variance)
    wide = variance.element_type
    factor = cast(scale, wide) / ops.sqrt(variance + epsilon)
    addend = cast(bias, wide) - cast(center, wide) * factor
    spread = (broadcast_to(along(vector, 1, x.rank), x.dims) for vector in (factor, addend))
    return cast(cast(x, wide) * next(spread) + next(spread), x.element_type)


@operator("InstanceNormalization")
@rounds_once
def instance_norm(node: Node) -> Value:
    x, scale, bias = node.value(0), node.value(1), node.value(2)
    normal = standardized(x, list(range(2, x.rank)), float(node.attribute("epsilon", 1e-5)))
    return normal * broadcast_to(along(scale, 1, x.rank), x.dims) + broadcast_to(along(bias, 1, x.rank), x.dims)


def standardized(x: Value, axes: list[int], epsilon: float) -> Value:
    """Mean 0 and variance 1 along axes."""
    centered = x - broadcast_to(mean(x, axes, True), x.dims)
    return centered / broadcast_to(ops.sqrt(mean(centered * centered, axes, True) + epsilon), x.dims)


@operator("LayerNormalization")
def layer_norm(node: Node) -> Any:
    """Outputs: the result, the means, and one divided by the deviations; computed in f32 at least."""
    x = node.value(0)
    axes = list(range(node.axis(-1), x.rank))
    row = x.element_type
    wide = cast(x, "f32") if row.bits < 32 else x
    center = mean(wide, axes, True)
    centered = wide - broadcast_to(center, x.dims)
    inverse = ops.rsqrt(mean(centered * centered, axes, True) + float(node.attribute("epsilon", 1e-5)))
    result = centered * broadcast_to(inverse, x.dims)
    result = result * broadcast_to(cast(node.value(1), result.element_type), x.dims)
    if node.has(2):
        result = result + broadcast_to(cast(node.value(2), result.element_type), x.dims)
    return Outputs([cast(result, row), center, inverse])


@operator("RMSNormalization")
def rms_norm(node: Node) -> Value:
    x = node.value(0)
    axes = list(range(node.axis(-1), x.rank))
    row = x.element_type
    wide = cast(x, "f32") if row.bits < 32 else x
    inverse = ops.rsqrt(mean(wide * wide, axes, True) + float(node.attribute("epsilon", 1e-5)))
    result = cast(wide * broadcast_to(inverse, x.dims), row)
    scale = node.value(1)
    return cast(result, scale.element_type) * broadcast_to(scale, x.dims)


@operator("LpNormalization")
@rounds_once
def norm_to_one(node: Node) -> Value:
    """Divided by the norm along an axis; zero where that is zero."""
    x = node.value(0)
    axis = node.axis(-1)
    length = total(ops.abs(x), [axis], True) if node.attribute("p", 2) == 1 else ops.sqrt(total(x * x, [axis], True))
    length = broadcast_to(length, x.dims)
    return ops.select(length.eq(0), full(x, 0), x / length)


@operator("LRN")
@rounds_once
def local_response(node: Node) -> Value:
    """Divided by a power of the sum of squares of the channels around."""
    x = node.value(0)
    size = int(node.attribute("size"))
    alpha, beta, bias = (
        float(node.attribute(name, value)) for name, value in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
    )
    window, padding = [1] * x.rank, [(0, 0)] * x.rank
    window[1], padding[1] = size, ((size - 1) // 2, size // 2)
    squares = ops.reduce_window(x * x, 0.0, ops.add, window, padding=padding)
    return x / ops.pow(squares * (alpha / size) + bias, beta)


@operator("MeanVarianceNormalization")
@rounds_once
def mean_variance(node: Node) -> Value:
    x = node.value(0)
    axes = [int(axis) % x.rank for axis in node.attribute("axes") or [0, 2, 3]]
    centered = x - broadcast_to(mean(x, axes, True), x.dims)
    deviation = ops.sqrt(mean(centered * centered, axes, True))
    return centered / (broadcast_to(deviation, x.dims) + 1e-9)
