"""ONNX Runtime's own operators (``com.microsoft``) of elements, rows and products, as its optimizer writes them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.element_types import ElementType
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value
from hloforge.importers.onnx.graph import Outputs
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.operators.convolution import convolve, with_bias
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.roundings import rounds_once, sums_in, widened
from hloforge.importers.onnx.window_attributes import windows_of
from hloforge.importers.tensors import broadcast_to, cast, matmul, mean, take, together, total, window

MICROSOFT = "com.microsoft"


def _gelu(x: Value) -> Value:
    return 0.5 * x * (1.0 + ops.erf(x * math.sqrt(0.5)))


def fast_gelu_of(x: Value) -> Value:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1.0 + ops.tanh(inner))


@operator("Gelu", "BiasGelu", domain=MICROSOFT)
@rounds_once
def gelu(node: Node) -> Value:
    x = node.value(0)
    if node.has(1):
        x = _sum(x, node.value(1))
    return _gelu(x)


@operator("FastGelu", domain=MICROSOFT)
@rounds_once
def fast_gelu(node: Node) -> Value:
    x = _sum(node.value(0), node.value(1)) if node.has(1) else node.value(0)
    return fast_gelu_of(x)


@operator("QuickGelu", domain=MICROSOFT)
@rounds_once
def quick_gelu(node: Node) -> Value:
    x = node.value(0)
    return x * ops.logistic(float(node.attribute("alpha", 1.702)) * x)


def _sum(x: Value, y: Value) -> Value:
    left, right = together(x, y)
    return left + right


def activated(node: Node, x: Value) -> Value:
    """The function that an attribute names, of the result of a fused product or convolution."""
    name = str(node.attribute("activation", ""))
    given = [float(number) for number in node.attribute("activation_params") or ()]
    alpha = float(node.attribute("activation_alpha", given[0] if given else 0.01))
    match name:
        case "":
            return x
        case "Relu":
            return ops.max(x, 0.0)
        case "Tanh":
            return ops.tanh(x)
        case "Sigmoid":
            return ops.logistic(x)
        case "LeakyRelu":
            return ops.select(x < 0.0, x * alpha, x)
        case "Clip":
            low, high = given or (-math.inf, math.inf)
            return ops.clamp(full(x, low), x, full(x, high))
        case "HardSigmoid":
            slope, shift = given or (0.2, 0.5)
            return ops.clamp(full(x, 0.0), x * slope + shift, full(x, 1.0))
    raise UnsupportedError(f"the activation {name!r} is not imported")


@operator("MurmurHash3", domain=MICROSOFT)
def murmur_hash(node: Node) -> Value:
    """The hash of 32 bits of each number's bytes, as MurmurHash3_x86_32 computes it."""
    x, row = node.value(0), "u32" if node.attribute("positive", 1) else "s32"
    words = ops.bitcast_convert_type(x, "u32")
    blocks = [words]
    if words.rank > x.rank:
        blocks = [ops.reshape(window(words, x.rank, part, part + 1), x.dims) for part in range(words.dims[-1])]
    state = full(blocks[0], int(node.attribute("seed", 0)) & 0xFFFFFFFF)
    for block in blocks:
        mixed = _turned(block * 0xCC9E2D51, 15) * 0x1B873593
        state = _turned(state ^ mixed, 13) * 5 + 0xE6546B64
    state = state ^ (4 * len(blocks))
    state = (state ^ ops.shift_right_logical(state, 16)) * 0x85EBCA6B
    state = (state ^ ops.shift_right_logical(state, 13)) * 0xC2B2AE35
    return ops.bitcast_convert_type(state ^ ops.shift_right_logical(state, 16), row)


def _turned(words: Value, count: int) -> Value:
    """The bits of words of 32 bits turned to the left."""
    return ops.shift_left(words, count) | ops.shift_right_logical(words, 32 - count)


# Rows ---------------------------------------------------------------------------------------------------------------


def spread_row(vector: Value, like: Value) -> Value:
    return broadcast_to(cast(vector, like.element_type), like.dims)


def layer_normal(x: Value, scale: Value | None, bias: Value | None, epsilon: float) -> tuple[Value, Value, Value]:
    """Along the last axis of f32 at least, with means and one divided by the deviations."""
    center = mean(x, [x.rank - 1], True)
    centered = x - broadcast_to(center, x.dims)
    inverse = ops.rsqrt(mean(centered * centered, [x.rank - 1], True) + epsilon)
    result = centered * broadcast_to(inverse, x.dims)
    if scale is not None:
        result = result * spread_row(scale, result)
    if bias is not None:
        result = result + spread_row(bias, result)
    return result, center, inverse


@operator("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_norm(node: Node) -> Any:
    """Of a sum, which is the fourth output."""
    combined = _added(node, 4)
    bias = node.value(3) if node.has(3) else None
    epsilon, row = float(node.attribute("epsilon", 1e-12)), node.row()
    result, center, inverse = layer_normal(combined, node.value(2), bias, epsilon)
    return Outputs([cast(result, row), center, inverse, cast(combined, row)])


def _added(node: Node, bias: int) -> Value:
    """The sum of two arrays and perhaps a bias, not rounded yet."""
    combined = widened(node.value(0)) + broadcast_to(widened(node.value(1)), node.dims(0))
    return combined + spread_row(node.value(bias), combined) if node.has(bias) else combined


@operator("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_rms_norm(node: Node) -> Any:
    combined = _added(node, 3)
    result, inverse = _rms(combined, node.value(2), combined.rank - 1, float(node.attribute("epsilon", 1e-12)))
    return Outputs([result, None, inverse, cast(combined, node.row())])


@operator("SimplifiedLayerNormalization")
def simplified_layer_norm(node: Node) -> Any:
    """Without the mean. ONNX Runtime has it in ONNX's own domain."""
    x = node.value(0)
    node.attribute("stash_type")  # of the steps: f32 at least, whatever it says
    return Outputs(_rms(x, node.value(1), node.axis(-1), float(node.attribute("epsilon", 1e-5))))


def _rms(x: Value, scale: Value, axis: int, epsilon: float) -> tuple[Value, Value]:
    wide = widened(x)
    inverse = ops.rsqrt(mean(wide * wide, list(range(axis, x.rank)), True) + epsilon)
    result = wide * broadcast_to(inverse, x.dims) * spread_row(scale, wide)
    return cast(result, scale.element_type), inverse


@operator("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_norm(node: Node) -> Any:
    """The sum of the embeddings of words, positions and segments, normalized; and how many words each mask has."""
    return embedded(node, lambda _, x: widened(x), node.value(8) if node.has(8) else None, node.row(2))


def embedded(node: Node, real: Callable[[int, Value], Value], places: Value | None, row: ElementType) -> Any:
    """The outputs of an embedding of words (input 0), which is normalized.

    Args:
        real: from the number of an input (a table, the scale or the bias) and elements of it to floats.
        places: of the words; None if they count from 0.
        row: the element type of the result.
    """
    words = node.value(0)
    batch, length = words.dims
    places = ops.iota("s32", [1, length], 1) if places is None else places
    combined = real(2, take(node.value(2), words, 0))
    combined = combined + spread_row(real(3, take(node.value(3), places, 0)), combined)
    if node.has(1) and node.has(4):
        combined = combined + spread_row(real(4, take(node.value(4), node.value(1), 0)), combined)
    scale, bias = (real(number, node.value(number)) for number in (5, 6))
    result, _, _ = layer_normal(combined, scale, bias, float(node.attribute("epsilon", 1e-12)))
    counts = total(cast(node.value(7), "s32"), [1]) if node.has(7) else full(ops.iota("s32", [batch], 0), 0)
    return Outputs([cast(result, row), counts, cast(combined, row)])


# Products -----------------------------------------------------------------------------------------------------------


@operator("FusedMatMul", "TransposeMatMul", domain=MICROSOFT)
def fused_matmul(node: Node) -> Value:
    """``alpha * A @ B`` with the last two dimensions of A and B exchanged, or the first moved before the last."""
    sides = []
    for number, side in enumerate("AB"):
        x = node.value(number)
        if node.attribute(f"transBatch{side}", 0) and x.rank > 2:
            x = ops.transpose(x, [*range(1, x.rank - 1), 0, x.rank - 1])
        if node.attribute(f"trans{side}", 0) and x.rank > 1:
            x = ops.transpose(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2])
        sides.append(x)
    row = sides[0].element_type
    product = matmul(sides[0], sides[1], sums_in(sides[0]))
    alpha = float(node.attribute("alpha", 1.0))
    return cast(product if alpha == 1.0 else product * alpha, row)


@operator("FusedGemm", domain=MICROSOFT)
def fused_gemm(node: Node) -> Value:
    sides = [0 if node.attribute("transA", 0) else 1], [1 if node.attribute("transB", 0) else 0]
    a, b = node.value(0), node.value(1)
    product = ops.dot_general(a, b, ops.DotDimensionNumbers(*sides), "HIGHEST", sums_in(a))
    product = product * float(node.attribute("alpha", 1.0))
    if node.has(2):
        product = product + spread_row(node.value(2), product) * float(node.attribute("beta", 1.0))
    return cast(activated(node, product), a.element_type)


@operator("FusedConv", domain=MICROSOFT)
def fused_convolution(node: Node) -> Value:
    """A convolution, to which another array may be added before the activation."""
    x, kernel = node.value(0), node.value(1)
    window = windows_of(node, x.dims[2:], kernel.dims[2:])
    groups = int(node.attribute("group", 1))
    result = convolve(x, kernel, window.strides, window.pads, window.dilations, groups, preferred=sums_in(x))
    result = with_bias(result, node, 2)
    if node.has(3):
        result = result + widened(node.value(3))
    return cast(activated(node, result), x.element_type)
