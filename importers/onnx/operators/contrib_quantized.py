"""ONNX Runtime's operators of quantized arrays (``com.microsoft``), computed in f32 between their integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.values import Value
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.operators.contrib import MICROSOFT, embedded
from hloforge.importers.onnx.operators.normalization import softmax
from hloforge.importers.onnx.operators.pooling import averages
from hloforge.importers.onnx.operators.quantized import by_range, dequantize_linear, quantize_linear, stored
from hloforge.importers.onnx.operators.recurrent import Cell, layer
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.roundings import widened
from hloforge.importers.tensors import along, axis_of, broadcast_to, cast, matmul, mean, together

# Scales of which multiples by bytes are normal numbers, and the reciprocals of such.
_LEAST_UNIT = 1e-30

operator("QuantizeLinear", domain=MICROSOFT)(quantize_linear)
operator("DequantizeLinear", domain=MICROSOFT)(dequantize_linear)


def parameter(node: Node, number: int, like: Value, axis: int) -> Value:
    """A scale or zero point for each element of an array, in f32: one for all, or one a position along an axis."""
    x = node.value(number)
    given = widened(x) if x.element_type.is_float else cast(cast(x, "s32"), "f32")
    return spread(given, like, axis)


def spread(given: Value, like: Value, axis: int) -> Value:
    """One number for all, or one a position along an axis, for each element of an array."""
    if given.rank == 0 or given.dims == (1,):
        return broadcast_to(ops.reshape(given, []), like.dims)
    return broadcast_to(along(given, axis_of(axis, like.rank), like.rank) if given.rank == 1 else given, like.dims)


def _real(node: Node, number: int, scale: int, zero: int, axis: int = -1) -> Value:
    """The numbers that integers represent."""
    x = cast(cast(node.value(number), "s32"), "f32")
    if node.has(zero):
        x = x - parameter(node, zero, x, axis)
    return x * parameter(node, scale, x, axis)


def _integers(node: Node, x: Value, scale: int, zero: int, like: int = 0) -> Value:
    """The integers that represent numbers, of the type of the zero point; without one, of input ``like``."""
    ratio = ops.round_nearest_even(x / parameter(node, scale, x, -1))
    if not node.has(zero):
        return stored(ratio, node.row(like))
    return stored(ratio + parameter(node, zero, x, -1), node.row(zero))


@operator("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def quantized_pair(node: Node) -> Value:
    left, right = together(_real(node, 0, 1, 2), _real(node, 3, 4, 5))
    return _integers(node, left + right if node.name == "QLinearAdd" else left * right, 6, 7)


@operator("QLinearSigmoid", domain=MICROSOFT)
def quantized_sigmoid(node: Node) -> Value:
    return _integers(node, ops.logistic(_real(node, 0, 1, 2)), 3, 4)


@operator("QLinearLeakyRelu", domain=MICROSOFT)
def quantized_leaky_relu(node: Node) -> Value:
    x = _real(node, 0, 1, 2)
    return _integers(node, ops.select(x < 0.0, x * float(node.attribute("alpha", 0.01)), x), 3, 4)


@operator("QLinearSoftmax", domain=MICROSOFT)
def quantized_softmax(node: Node) -> Value:
    """Along one axis; of models before version 13 along all from there on, which are one.

    The result's scale counts as one divided by a whole number, as in ONNX Runtime: 250 steps for 0.00399.
    """
    x = _real(node, 0, 1, 2)
    axis = axis_of(int(node.attribute("axis", -1)), x.rank)
    is_new = int(node.attribute("opset", 13)) >= 13
    shares = softmax(x, [axis] if is_new else list(range(axis, x.rank)))
    units = ops.round_nearest_even(shares * ops.floor(1.0 / parameter(node, 3, x, -1)))
    return stored(units + parameter(node, 4, x, -1), node.row(4)) if node.has(4) else stored(units, node.row(0))


@operator("QLinearAveragePool", domain=MICROSOFT)
def quantized_average_pool(node: Node) -> Value:
    x = _real(node, 0, 1, 2)
    last = bool(node.attribute("channels_last", 0))
    if last:
        x = ops.transpose(x, [0, x.rank - 1, *range(1, x.rank - 1)])
    pooled = averages(node, x)
    if last:
        pooled = ops.transpose(pooled, [0, *range(2, x.rank), 1])
    return _integers(node, pooled, 3, 4)


class _QuantizedCell(Cell):
    """Weights in bytes. Inputs are quantized by the range of all steps, states by that of each, as ONNX Runtime does
    with one thread; with several it quantizes groups of the batch on their own."""

    def __init__(self, node: Node, direction: int, hidden: int) -> None:
        super().__init__(node, direction, hidden)
        self.scales = [_of_gates(self.part(number, direction)) for number in (8, 10)]
        for place, zero in enumerate((9, 11)):
            weights = cast(self.weights[place], "s32")
            if node.has(zero):
                point = _of_gates(cast(self.part(zero, direction), "s32"))
                weights = weights - broadcast_to(point, weights.dims)
            self.weights[place] = weights

    def product(self, x: Value, number: int) -> Value:
        return by_quantized(x, self.weights[number], self.scales[number])


def _of_gates(given: Value) -> Value:
    """One number, or one for each gate."""
    return ops.reshape(given, []) if given.dims == (1,) else given


@operator("DynamicQuantizeLSTM", domain=MICROSOFT)
def quantized_recurrent(node: Node) -> Any:
    proto = onnx_node(node.proto, "LSTM")
    return layer(Node(proto, node.version, node.inputs, node.attributes, node.scope), _QuantizedCell)


def onnx_node(proto: Any, name: str) -> Any:
    """A copy of a node that calls another operator."""
    copy = type(proto)()
    copy.CopyFrom(proto)
    copy.op_type, copy.domain = name, ""
    return copy


@operator("QLinearGlobalAveragePool", domain=MICROSOFT)
def quantized_mean(node: Node) -> Value:
    x = _real(node, 0, 1, 2)
    axes = list(range(1, x.rank - 1)) if node.attribute("channels_last", 0) else list(range(2, x.rank))
    return _integers(node, mean(x, axes, True), 3, 4)


@operator("QEmbedLayerNormalization", domain=MICROSOFT)
def quantized_embeddings(node: Node) -> Any:
    """Tables, scale and bias are integers with a scale and a zero point each; rows become floats as they are read."""
    scales, zeros = {2: 8, 3: 9, 4: 10, 5: 11, 6: 12}, {2: 13, 3: 14, 4: 15, 5: 16, 6: 17}

    def real(number: int, x: Value) -> Value:
        x = cast(cast(x, "s32"), "f32")
        if node.has(zeros[number]):
            x = x - parameter(node, zeros[number], x, -1)
        return x * parameter(node, scales[number], x, -1)

    return embedded(node, real, None, node.row(8))


@operator("QLinearConcat", domain=MICROSOFT)
def quantized_concatenation(node: Node) -> Value:
    """Inputs: scale and zero point of the result, then each array with its own.

    Integers of the result's scale and zero point stay as they are: a product by a number, divided by it, rounds to the
    integer that it was.
    """
    numbers = range(2, len(node.inputs), 3)
    axis = axis_of(int(node.attribute("axis")), node.rank(2))
    parts = [
        node.value(number) if _has_same_units(node, number + 1) else _requantized(node, number) for number in numbers
    ]
    return ops.concat_in_dim(parts, axis)


def _requantized(node: Node, number: int) -> Value:
    return _integers(node, _real(node, number, number + 1, number + 2), 0, 1)


def _has_same_units(node: Node, scale: int) -> bool:
    """Whether a scale and the zero point after it are known to be those of the result, which come first."""
    zero = scale + 1
    if not (node.has(1) and node.has(zero)) or node.row(1) != node.row(zero):
        return False
    pairs = [(node.tensor(own), node.tensor(result)) for own, result in ((scale, 0), (zero, 1))]
    # Products by these neither vanish nor overflow.
    return all(
        isinstance(own, np.ndarray) and isinstance(result, np.ndarray) and np.array_equal(own, result)
        for own, result in pairs
    ) and bool(np.all((node.known(scale) > _LEAST_UNIT) & (node.known(scale) < 1 / _LEAST_UNIT)))


@operator("QLinearWhere", domain=MICROSOFT)
def quantized_choice(node: Node) -> Value:
    chosen, left, right = together(node.value(0), _real(node, 1, 2, 3), _real(node, 4, 5, 6))
    return _integers(node, ops.select(chosen, left, right), 7, 8, like=1)


def centered(node: Node, number: int, zero: int) -> Value:
    """Integers less their zero point, in s32; one for each column, if it is a vector."""
    x = cast(node.value(number), "s32")
    if not node.has(zero):
        return x
    point = cast(node.value(zero), "s32")
    return x - broadcast_to(ops.reshape(point, []) if point.dims == (1,) else point, x.dims)


@operator("QGemm", domain=MICROSOFT)
def quantized_gemm(node: Node) -> Value:
    """The sums in f32 if the result has no scale; C is an addend in s32, of the product's own scale."""
    a = centered(node, 0, 2)
    b = None if node.attribute("transB", 0) else centered(node, 3, 5)
    if node.attribute("transA", 0):
        a = ops.transpose(a, [1, 0])
    if b is None:
        b = ops.transpose(cast(node.value(3), "s32"), [1, 0])
        b = b - _column(node, 5, b) if node.has(5) else b
    sums = matmul(a, b)
    if node.has(6):
        sums = sums + broadcast_to(node.value(6), sums.dims)
    result = cast(sums, "f32") * parameter(node, 1, sums, -1) * parameter(node, 4, sums, -1)
    result = result * float(node.attribute("alpha", 1.0))
    return _integers(node, result, 7, 8) if node.has(7) else result


def _column(node: Node, zero: int, like: Value) -> Value:
    point = cast(node.value(zero), "s32")
    return broadcast_to(ops.reshape(point, []) if point.dims in ((), (1,)) else point, like.dims)


@operator("MatMulIntegerToFloat", domain=MICROSOFT)
def product_to_floats(node: Node) -> Value:
    sums = cast(matmul(centered(node, 0, 4), centered(node, 1, 5)), "f32")
    result = sums * (parameter(node, 2, sums, -2) * parameter(node, 3, sums, -1))
    return result + broadcast_to(node.value(6), result.dims) if node.has(6) else result


@operator("DynamicQuantizeMatMul", domain=MICROSOFT)
def product_of_quantized(node: Node) -> Value:
    result = by_quantized(node.value(0), centered(node, 1, 3), node.value(2))
    return result + broadcast_to(node.value(4), result.dims) if node.has(4) else result


def by_quantized(x: Value, weights: Value, factor: Value) -> Value:
    """Floats by weights of integers: the floats are quantized to u8 by their range, as ``DynamicQuantizeLinear`` does.

    Args:
        weights: less their zero points, in s32.
        factor: the scale of the weights: one, or one for each column.
    """
    scale, zero = by_range(x)
    units = ops.round_nearest_even(x / broadcast_to(scale, x.dims)) + broadcast_to(zero, x.dims)
    units = ops.clamp(full(x, 0.0), units, full(x, 255.0))
    # Bytes, as instructions multiply them.
    codes, place = (cast(cast(cast(one, "s32"), "u8"), "s32") for one in (units, zero))
    sums = cast(matmul(codes - broadcast_to(place, x.dims), weights), "f32")
    return sums * (broadcast_to(scale, sums.dims) * spread(factor, sums, -1))
