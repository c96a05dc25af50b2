"""Sums of products of inputs and weights: of numbers, or of the integers that represent them.

Quantized operands give sums of integers, exactly. Where no sum can leave the integers that f32 holds, they are computed
in f32, for which the target has its fastest code; else in s32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.values import Value
from hloforge.importers.tensors import Array, along, broadcast_to, cast, lift
from hloforge.importers.tflite.activations import activated, bounds
from hloforge.importers.tflite.load import Quantization
from hloforge.importers.tflite.node import Node
from hloforge.importers.tflite.quantization import per_place, stored

# Integers of up to so many bits are exact in f32.
_EXACT = 1 << 24


def linear(
    node: Node,
    operand: int,
    weights: int,
    bias: int,
    multiply: Callable[[Value, Value], Value],
    order: Sequence[int] | None = None,
    flipped: Sequence[int] = (),
) -> Value:
    """``activation(multiply(operand, weights) + bias)``, where the channels are the result's last dimension.

    Args:
        operand, weights, bias: numbers of inputs; the bias may be left out.
        multiply: of two arrays of one element type.
        order, flipped: how the weights' dimensions are permuted for it, and which are then reversed.
    """
    x, w = node.quantization(operand), node.quantization(weights)
    narrow = node.row(operand).bits <= 8 and node.row(weights).bits <= 8
    if x is None or w is None or not narrow:
        result = multiply(node.real(operand), _real_weights(node, weights, order, flipped))
        if node.has(bias):
            result = result + broadcast_to(node.real(bias), result.dims)
        return activated(node, result)
    return _quantized(node, (operand, weights, bias), x, w, multiply, order, flipped)


def _real_weights(node: Node, number: int, order: Sequence[int] | None, flipped: Sequence[int]) -> Value:
    """Weights as numbers. Those that alone are quantized are turned into numbers, and the operand is left as it is."""
    array, quantization = node.constant(number), node.quantization(number)
    if array is None or quantization is not None:
        return _arranged(node.real(number), order, flipped)
    return node.weight(_arranged_array(array, order, flipped), node.described(number).name)


def _arranged(w: Value, order: Sequence[int] | None, flipped: Sequence[int]) -> Value:
    w = ops.transpose(w, list(order)) if order else w
    return ops.rev(w, list(flipped)) if flipped else w


def _arranged_array(w: Array, order: Sequence[int] | None, flipped: Sequence[int]) -> Array:
    return np.flip(np.transpose(w, order) if order else w, tuple(flipped))


def _quantized(
    node: Node,
    numbers: tuple[int, int, int],
    x: Quantization,
    w: Quantization,
    multiply: Callable[[Value, Value], Value],
    order: Sequence[int] | None,
    flipped: Sequence[int],
) -> Value:
    operand, weights, bias = numbers
    array, biases = node.constant(weights), node.constant(bias) if node.has(bias) else None
    exact = _greatest_sum(array, w, node.dims(weights), biases) < _EXACT
    row = "f32" if exact else "s32"
    points = w.zero_point.astype(np.int32)
    left = _centered(node.value(operand), x.zero_point.astype(np.int32), 0, row)
    if array is None:
        right = _arranged(_centered(node.value(weights), points, w.axis, row), order, flipped)
    else:
        arranged = node.weight(_arranged_array(array, order, flipped), node.described(weights).name)
        axis = list(order).index(w.axis) if order else w.axis
        right = _centered(arranged, points, axis, row)
    sums = multiply(left, right)
    if node.has(bias):
        sums = sums + broadcast_to(cast(node.value(bias), row), sums.dims)
    wanted = node.result().quantization
    scale = x.scale * w.scale
    if wanted is None:
        return activated(node, cast(sums, "f32") * _by_channel(scale, sums))
    units = cast(sums, "f32") * _by_channel(scale / wanted.scale, sums)
    low, high = bounds(node)
    unit = float(wanted.scale[0])
    units = units if low is None else ops.max(units, low / unit)
    units = units if high is None else ops.min(units, high / unit)
    return stored(units, wanted, node.result().row)


def _greatest_sum(array: Array | None, w: Quantization, dims: Sequence[int], biases: Array | None) -> float:
    """What no partial sum exceeds, whatever the operand is."""
    if array is None:
        return 255.0 * 255.0 * float(np.prod(dims))
    points = w.zero_point
    axis = w.axis if points.size > 1 else 0
    shaped = points.reshape([-1 if d == axis else 1 for d in range(array.ndim)]) if points.size > 1 else points
    magnitudes = np.abs(array.astype(np.float64) - shaped)
    # The channels are the axis of the scales; with one scale, all dimensions but the largest count as one channel.
    if w.scale.size > 1:
        most = magnitudes.sum(tuple(d for d in range(array.ndim) if d != w.axis)).max(initial=0)
    else:
        most = max(magnitudes.sum(tuple(range(1, array.ndim))).max(initial=0), 0)
        most = most if array.shape[0] > 1 else magnitudes.sum(tuple(range(array.ndim - 1))).max(initial=0)
    extra = 0.0 if biases is None else float(np.abs(biases.astype(np.float64)).max(initial=0))
    return float(255 * most + extra)


def _centered(x: Value, points: Array, axis: int, row: str) -> Value:
    """Stored integers less their zero points."""
    if not points.any():
        return cast(x, row)
    return cast(cast(x, "s32") - per_place(points, axis, x.dims), row)


def _by_channel(scale: Array, sums: Value) -> Value:
    if scale.size == 1:
        return per_place(scale.astype(np.float32), 0, sums.dims)
    return broadcast_to(along(lift(scale.astype(np.float32)), sums.rank - 1, sums.rank), sums.dims)
