"""ONNX Runtime's mixtures of experts (``com.microsoft``): each row is sent through a few of many perceptrons."""

from __future__ import annotations

import math

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value, leaves
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.operators.contrib import MICROSOFT, fast_gelu_of, widened
from hloforge.importers.onnx.operators.contrib_weights import repeated, unpacked
from hloforge.importers.onnx.operators.normalization import softmax
from hloforge.importers.onnx.registry import operator
from hloforge.importers.tensors import broadcast_to, cast, greatest, matmul, numbers, total, window


@operator("MoE", domain=MICROSOFT)
def mixture(node: Node) -> Value:
    """Inputs: rows, a score of each expert for each row, and weights and biases of two layers."""
    if node.has(6):
        raise UnsupportedError("MoE with a third layer (fc3) is not imported")
    biases = [widened(node.value(number)) if node.has(number) else None for number in (3, 5)]
    return _mixture(node, [widened(node.value(2)), widened(node.value(4))], biases)


@operator("QMoE", domain=MICROSOFT)
def quantized_mixture(node: Node) -> Value:
    """The same of weights of few bits, with a scale for each row or for each block of one."""
    if node.has(8):
        raise UnsupportedError("QMoE with a third layer (fc3) is not imported")
    if node.attribute("quant_type", "int") != "int":
        raise UnsupportedError(f"QMoE with quant_type {node.attribute('quant_type')!r} is not imported")
    weights = [_weights(node, first, first + 1, zeros) for first, zeros in ((2, 11), (5, 12))]
    biases = [widened(node.value(number)) if node.has(number) else None for number in (4, 7)]
    return _mixture(node, weights, biases)


def _weights(node: Node, number: int, scale: int, zero: int) -> Value:
    """``[experts, out, in]`` of bytes that hold a row's weights in order."""
    bits, block = int(node.attribute("expert_weight_bits", 4)), int(node.attribute("block_size", 0))
    stored = node.value(number)
    units = unpacked(stored, bits, list(stored.dims[:2]))
    if not node.has(scale):
        raise UnsupportedError(f"{node.name} without scales is not imported")
    scales = widened(node.value(scale))
    if scales.rank == 2:
        scales, block = ops.reshape(scales, [*scales.dims, 1]), units.dims[2]
    if node.has(zero):
        given = node.value(zero)
        zeros = window(unpacked(given, bits, [*scales.dims[:2]]), 2, 0, scales.dims[2])
        units = units - repeated(zeros, 2, block, units)
    else:
        units = units - float(1 << bits - 1)
    return units * repeated(scales, 2, block, units)


def _mixture(node: Node, weights: list[Value], biases: list[Value | None]) -> Value:
    x = node.value(0)
    rows = ops.reshape(widened(x), [math.prod(x.dims[:-1]), x.dims[-1]])
    shares = _shares(node, ops.reshape(widened(node.value(1)), [rows.dims[0], weights[0].dims[0]]))
    experts = shares.dims[1]
    hidden = broadcast_to(ops.reshape(rows, [1, *rows.dims]), [experts, *rows.dims])
    hidden = _activated(node, _layer(hidden, weights[0], biases[0]))
    found = _layer(hidden, weights[1], biases[1])
    spread = ops.broadcast_in_dim(ops.transpose(shares, [1, 0]), found.dims, [0, 1])
    # What an expert makes of rows that are not its own may be no number.
    chosen = ops.select(spread > 0.0, found * spread, full(found, 0.0))
    return cast(ops.reshape(total(chosen, [0]), x.dims), x.element_type)


def _layer(x: Value, weights: Value, bias: Value | None) -> Value:
    found = matmul(x, ops.transpose(weights, [0, 2, 1]))
    return found if bias is None else found + ops.broadcast_in_dim(bias, found.dims, [0, 2])


def _shares(node: Node, scores: Value) -> Value:
    """How much of each row's result is of each expert: that of ``k`` of them, and 0."""
    if node.attribute("use_sparse_mixer", 0) or node.has(14):
        raise UnsupportedError(f"{node.name} with a sparse mixer or weights of the router is not imported")
    experts, count = scores.dims[1], int(node.attribute("k", 1))
    place = numbers(scores.dims, 1)

    def before(a: Value, b: Value, place_a: Value, place_b: Value) -> Value:
        return (a > b) | (a.eq(b) & (place_a < place_b))

    _, order = leaves(ops.sort([scores, place], before, 1))
    first = ops.reshape(window(order, 1, 0, count), [scores.dims[0], 1, count])
    dims = [scores.dims[0], experts, count]
    is_one = broadcast_to(first, dims).eq(ops.broadcast_in_dim(place, dims, [0, 1]))
    chosen = ops.reduce(is_one, False, ops.or_, [2])
    if node.attribute("normalize_routing_weights", 0):
        powers = ops.exp(scores - broadcast_to(greatest(scores, [1], True), scores.dims))
        kept = ops.select(chosen, powers, full(powers, 0.0))
        return kept / broadcast_to(total(kept, [1], True), kept.dims)
    return ops.select(chosen, softmax(scores, [1]), full(scores, 0.0))


def _activated(node: Node, x: Value) -> Value:
    match str(node.attribute("activation_type", "relu")):
        case "relu":
            return ops.max(x, 0.0)
        case "gelu":
            return fast_gelu_of(x)
        case "silu":
            return x * ops.logistic(x)
        case "identity":
            return x
        case "swiglu":
            return _gated(node, x)
    raise UnsupportedError(f"the activation {node.attribute('activation_type')!r} is not imported")


def _gated(node: Node, x: Value) -> Value:
    """``g * sigmoid(alpha * g) * (l + beta)`` of pairs (g, l), or of two halves."""
    fusion, last = int(node.attribute("swiglu_fusion", 0)), x.rank - 1
    if fusion not in (1, 2):
        raise UnsupportedError("swiglu with its two factors in two layers is not imported")
    size = x.dims[last]
    if fusion == 1:
        gate, line = (window(x, last, first, size, 2) for first in range(2))
    else:
        gate, line = window(x, last, 0, size // 2), window(x, last, size // 2, size)
    limit = node.attribute("swiglu_limit")
    if limit is not None:
        bound = float(limit)
        gate, line = ops.min(gate, bound), ops.clamp(full(line, -bound), line, full(line, bound))
    alpha, beta = float(node.attribute("activation_alpha", 1.0)), float(node.attribute("activation_beta", 0.0))
    return gate * ops.logistic(alpha * gate) * (line + beta)
