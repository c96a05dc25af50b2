"""Sums of products of inputs and weights: of numbers, or of the integers that represent them.

Quantized operands give sums of integers, exactly. Where no sum can leave the integers that f32 holds, they are computed
in f32, for which the target has its fastest code; else in s32. Floats by quantized weights ("dynamic range") are
quantized first, each row or image by its own range, as XNNPACK does. Source: XNNPACK, "qd8-f32-qc8w".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.values import Value
from hloforge.importers.tensors import Array, along, broadcast_to, cast, greatest, least, lift
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
    *,
    dims: Sequence[int] | None = None,
    by_range: bool = False,
) -> Value:
    """``activation(multiply(operand, weights) + bias)``, where the channels are the result's last dimension.

    Args:
        operand, weights, bias: numbers of inputs; the bias may be left out.
        multiply: of two arrays of one element type.
        order, flipped: how the weights' dimensions are permuted for it, and which are then reversed.
        dims: the operand's sizes, where it is multiplied in another shape.
        by_range: whether floats are quantized, each entry of the first dimension on its own, where known weights are.
    """
    shape = node.dims(operand) if dims is None else tuple(dims)
    x, w = node.quantization(operand), node.quantization(weights)
    narrow = node.row(operand).bits <= 8 and node.row(weights).bits <= 8
    if x is None or w is None or not narrow:
        given = _shaped(node.real(operand), shape)
        if (
            by_range
            and w is not None
            and node.row(weights).bits <= 8
            and node.constant(weights) is not None
            and shape[0]
        ):
            result = _of_codes(node, weights, w, given, multiply, order, flipped)
        else:
            result = multiply(given, _real_weights(node, weights, order, flipped))
        if node.has(bias):
            result = result + broadcast_to(node.real(bias), result.dims)
        return activated(node, result)
    return _quantized(node, (operand, weights, bias), shape, x, w, multiply, order, flipped)


def _shaped(x: Value, dims: Sequence[int]) -> Value:
    return x if x.dims == tuple(dims) else ops.reshape(x, list(dims))


def _of_codes(
    node: Node,
    weights: int,
    w: Quantization,
    x: Value,
    multiply: Callable[[Value, Value], Value],
    order: Sequence[int] | None,
    flipped: Sequence[int],
) -> Value:
    """Floats, quantized by their range, by known weights of integers."""
    codes, zero, scale = _by_range(cast(x, "f32"))
    array = node.constant(weights)
    assert array is not None
    row = "f32" if _greatest_sum(array, w, node.dims(weights), None) < _EXACT else "s32"
    left = cast(cast(codes, "s32") - _along_first(zero, x.dims), row)
    sums = cast(multiply(left, _right(node, weights, w, order, flipped, row)), "f32")
    return sums * (_along_first(scale, sums.dims) * _by_channel(w.scale, sums))


def _along_first(x: Value, dims: Sequence[int]) -> Value:
    """One number for each entry of the first dimension."""
    return broadcast_to(along(x, 0, len(dims)), dims)


def _by_range(x: Value) -> tuple[Value, Value, Value]:
    """Codes in s8, and the zero point (s32) and scale of each entry of the first dimension, whose range has a zero."""
    axes = list(range(1, x.rank))
    high, low = ops.max(greatest(x, axes), 0.0), ops.min(least(x, axes), 0.0)
    units = 255.0 / (high - low)
    units = ops.select(high.eq(low), full(units, 1.0), units)
    top, bottom = high * units, low * units
    zero = ops.select((bottom + top - 1.0) > 0.0, -128.0 - bottom, 127.0 - top)
    zero = ops.round_nearest_even(ops.clamp(-128.0, zero, 127.0))
    places = ops.round_nearest_even(x * _along_first(units, x.dims)) + _along_first(zero, x.dims)
    codes = ops.clamp(full(x, -128.0), places, full(x, 127.0))
    # Bytes, as instructions multiply them.
    return cast(cast(codes, "s32"), "s8"), cast(cast(cast(zero, "s32"), "s8"), "s32"), 1.0 / units


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
    dims: Sequence[int],
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
    left = _centered(_shaped(node.value(operand), dims), x.zero_point.astype(np.int32), 0, row)
    sums = multiply(left, _right(node, weights, w, order, flipped, row))
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


def _right(
    node: Node, weights: int, w: Quantization, order: Sequence[int] | None, flipped: Sequence[int], row: str
) -> Value:
    """The stored weights less their zero points, as they are multiplied."""
    array, points = node.constant(weights), w.zero_point.astype(np.int32)
    if array is None:
        return _arranged(_centered(node.value(weights), points, w.axis, row), order, flipped)
    arranged = node.weight(_arranged_array(array, order, flipped), node.described(weights).name)
    return _centered(arranged, points, list(order).index(w.axis) if order else w.axis, row)


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
