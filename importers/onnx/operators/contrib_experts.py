"""ONNX Runtime's mixtures of experts (``com.microsoft``): each row is sent through a few of many perceptrons."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value, leaves
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.operators.contrib import MICROSOFT, fast_gelu_of
from hloforge.importers.onnx.operators.contrib_weights import product_of_packed, unpacked
from hloforge.importers.onnx.operators.normalization import softmax
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.roundings import widened
from hloforge.importers.tensors import broadcast_to, cast, element_at, expand, fill, numbers, pair, take, total, window

# The most rows of one expert that are multiplied together.
_MOST_ROWS = 64

# From rows ``[rows, in]`` and the number of an expert (s32) to its product ``[rows, out]``, f32.
Layer: TypeAlias = Callable[[Value, Value], Value]


@operator("MoE", domain=MICROSOFT)
def mixture(node: Node) -> Value:
    """Inputs: rows, a score of each expert for each row, and weights and biases of two or three layers."""
    return _mixture(node, *(_layer(node, number, number + 1) for number in (2, 4, 6)))


def _layer(node: Node, weights: int, bias: int) -> Layer | None:
    """The layer whose weights ``[experts, out, in]`` and biases are these inputs; None if it has none."""
    if not node.has(weights):
        return None
    factor, shift = node.value(weights), node.value(bias) if node.has(bias) else None

    def product(rows: Value, expert: Value) -> Value:
        mine = widened(element_at(factor, 0, expert))
        if rows.dims[0] == 1:
            # A sum reads the expert's weights where they are; a product has them in memory of their own first.
            found = expand(total(mine * broadcast_to(rows, mine.dims), [1]), [0])
        else:
            found = ops.dot_general(rows, mine, ops.DotDimensionNumbers([1], [1]), "HIGHEST")
        return _shifted(found, shift, expert)

    return product


def _shifted(found: Value, biases: Value | None, expert: Value) -> Value:
    if biases is None:
        return found
    return found + ops.broadcast_in_dim(widened(element_at(biases, 0, expert)), found.dims, [1])


@operator("QMoE", domain=MICROSOFT)
def quantized_mixture(node: Node) -> Value:
    """The same of weights of few bits, with a scale for each row or for each block of one."""
    if node.attribute("quant_type", "int") != "int":
        raise UnsupportedError(f"QMoE with quant_type {node.attribute('quant_type')!r} is not imported")
    return _mixture(node, *(_packed_layer(node, first, zeros) for first, zeros in ((2, 11), (5, 12), (8, 13))))


def _packed_layer(node: Node, number: int, zero: int) -> Layer | None:
    """The layer of weights ``[experts, out, bytes]``, which hold a row's weights in order; None if it has none."""
    if not node.has(number):
        return None
    bits, block = int(node.attribute("expert_weight_bits", 4)), int(node.attribute("block_size", 0))
    if not node.has(number + 1):
        raise UnsupportedError(f"{node.name} without scales is not imported")
    stored, scales = node.value(number), node.value(number + 1)
    blocks = scales.dims[2] if scales.rank == 3 else 1
    whole = blocks * (block * bits // 8) if blocks > 1 else stored.dims[2]
    zeros = node.value(zero) if node.has(zero) else None
    biases = node.value(number + 2) if node.has(number + 2) else None

    def product(rows: Value, expert: Value) -> Value:
        # Weights get their form here: one that they get before the loop is one more copy of all experts.
        mine, size = element_at(stored, 0, expert), stored.dims[1]
        if whole > stored.dims[2]:
            filler = fill([size, whole - stored.dims[2]], 0, mine.element_type)
            mine = ops.concat_in_dim([mine, filler], 1)
        mine = ops.reshape(mine, [size, blocks, whole // blocks])
        scale = ops.reshape(widened(element_at(scales, 0, expert)), [size, blocks])
        shift: Value | float = float(1 << bits - 1)
        if zeros is not None:
            each = element_at(zeros, 0, expert)
            shift = window(unpacked(each, bits, [each.dims[0]]), 1, 0, blocks)
        return _shifted(product_of_packed(rows, mine, scale, shift, bits), biases, expert)

    return product


def _mixture(node: Node, first: Layer | None, second: Layer | None, third: Layer | None) -> Value:
    """Rows of one expert are multiplied together, in blocks of a fixed size: a loop visits those that there are.

    The pairs of a row and an expert are sorted by expert. The last block of an expert may reach into the rows of the
    next one; what it writes there is overwritten, because blocks are visited in that order.
    """
    if first is None or second is None:
        raise UnsupportedError(f"{node.name} without weights is not imported")
    x = node.value(0)
    rows = ops.reshape(widened(x), [math.prod(x.dims[:-1]), x.dims[-1]])
    scores = widened(node.value(1))
    experts, shares = _chosen(node, ops.reshape(scores, [rows.dims[0], scores.dims[-1]]))
    plan = _plan(experts, scores.dims[-1])
    zero = fill([], 0, "s32")

    def some(number: Value, _: Value) -> Value:
        return number < plan.blocks

    def visit(number: Value, found: Value) -> tuple[Value, Value]:
        expert = total(cast(plan.ends <= broadcast_to(number, plan.ends.dims), "s32"), [0])
        start = element_at(plan.starts, 0, expert) + number * plan.size
        mine = take(rows, ops.dynamic_slice(plan.rows, [start], [plan.size]), 0)
        made = second(_activated(node, first(mine, expert), third(mine, expert) if third else None), expert)
        return number + 1, ops.dynamic_update_slice(found, made, [start, zero])

    buffer = fill([plan.rows.dims[0], x.dims[-1]], 0.0, "f32")
    _, found = pair(ops.while_(some, visit, [zero, buffer]))
    each = take(found, plan.places, 0)
    weighted = each * ops.broadcast_in_dim(shares, each.dims, [0, 1])
    return cast(ops.reshape(total(weighted, [1]), x.dims), x.element_type)


@dataclass(frozen=True)
class _Plan:
    """Blocks of rows of one expert.

    Attributes:
        size: of a block.
        blocks: how many there are.
        ends: for each expert, how many blocks it and those before it have.
        starts: for each expert, what to add to ``size`` times the number of a block for the place of its first row.
        rows: the rows in the order of their experts, and padding of a block.
        places: where a row's results are in that order, ``[rows, k]``.
    """

    size: int
    blocks: Value
    ends: Value
    starts: Value
    rows: Value
    places: Value


def _plan(experts: Value, count: int) -> _Plan:
    """The blocks for the experts of each row, ``[rows, k]``, of which there are ``count``."""
    pairs = math.prod(experts.dims)
    # Twice the mean: most experts have one block, and each block costs a pass over weights.
    mean = -(-pairs // count)
    size = 1 if mean == 1 else 1 << (min(_MOST_ROWS, 2 * mean) - 1).bit_length()
    flat, place = ops.reshape(experts, [pairs]), numbers([pairs], 0)

    def before(a: Value, b: Value, place_a: Value, place_b: Value) -> Value:
        return (a < b) | (a.eq(b) & (place_a < place_b))

    _, order = pair(ops.sort([flat, place], before, 0))
    _, places = pair(ops.sort([order, place], before, 0))
    dims = [count, pairs]
    is_its = ops.broadcast_in_dim(flat, dims, [1]).eq(numbers(dims, 0))
    rows_of = total(cast(is_its, "s32"), [1])
    blocks_of = (rows_of + (size - 1)) / size
    # How many there are of this expert and those before it.
    is_before = numbers([count, count], 1) <= numbers([count, count], 0)

    def summed(numbers_of: Value) -> Value:
        return total(ops.select(is_before, ops.broadcast_in_dim(numbers_of, is_before.dims, [1]), 0), [1])

    ends = summed(blocks_of)
    starts = summed(rows_of) - rows_of - (ends - blocks_of) * size
    rows = ops.concat_in_dim([order / experts.dims[1], fill([size], 0, "s32")], 0)
    return _Plan(size, total(blocks_of, [0]), ends, starts, rows, ops.reshape(places, experts.dims))


def _chosen(node: Node, scores: Value) -> tuple[Value, Value]:
    """The ``k`` experts of each row, and how much of its result is of each."""
    if node.attribute("use_sparse_mixer", 0) or node.has(14):
        raise UnsupportedError(f"{node.name} with a sparse mixer or weights of the router is not imported")
    place = numbers(scores.dims, 1)

    def before(a: Value, b: Value, place_a: Value, place_b: Value) -> Value:
        return (a > b) | (a.eq(b) & (place_a < place_b))

    normalized = bool(node.attribute("normalize_routing_weights", 0))
    found = leaves(ops.sort([scores if normalized else softmax(scores, [1]), place], before, 1))
    shares, experts = (window(each, 1, 0, int(node.attribute("k", 1))) for each in found)
    return experts, softmax(shares, [1]) if normalized else shares


def _activated(node: Node, x: Value, line: Value | None) -> Value:
    """The function of the first layer, times the third layer where there is one."""
    match str(node.attribute("activation_type", "relu")):
        case "relu":
            found = ops.max(x, 0.0)
        case "gelu":
            found = fast_gelu_of(x)
        case "silu":
            found = x * ops.logistic(x)
        case "identity":
            found = x
        case "swiglu":
            return _gated(node, x, line)
        case unknown:
            raise UnsupportedError(f"the activation {unknown!r} is not imported")
    return found if line is None else found * line


def _gated(node: Node, x: Value, line: Value | None) -> Value:
    """``g * sigmoid(alpha * g) * (l + beta)`` of pairs (g, l), of two halves, or of two layers."""
    fusion, last = int(node.attribute("swiglu_fusion", 0)), x.rank - 1
    if (fusion == 0) != (line is not None):
        raise UnsupportedError(f"swiglu with swiglu_fusion={fusion} and {3 if line else 2} layers is not imported")
    size = x.dims[last]
    if line is not None:
        gate = x
    elif fusion == 1:
        gate, line = (window(x, last, first, size, 2) for first in range(2))
    else:
        gate, line = window(x, last, 0, size // 2), window(x, last, size // 2, size)
    limit = node.attribute("swiglu_limit")
    if limit is not None:
        bound = float(limit)
        gate, line = ops.min(gate, bound), ops.clamp(full(line, -bound), line, full(line, bound))
    alpha, beta = float(node.attribute("activation_alpha", 1.0)), float(node.attribute("activation_beta", 0.0))
    return gate * ops.logistic(alpha * gate) * (line + beta)
