"""Random numbers from a seed, the same in each call."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.emission import emit
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import TupleValue, Value
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.tensors import broadcast_to, cast, expand, fill, lift, numbers


def uniform(node: Node, dims: Sequence[int], dtype: Any) -> Value:
    """Numbers in [0, 1) of Philox, 23 bits of each; without ``seed`` one is made of the node's name."""
    seed = node.attribute("seed")
    text = f"{node.proto.name}/{','.join(node.proto.output)}"
    number = zlib.crc32(text.encode()) if seed is None else np.float32(seed).view(np.uint32).item()
    state = lift(np.asarray([number, 0, 0], np.uint64))
    generated = ops.rng_bit_generator("PHILOX", state, Shape.array("u32", *dims))
    assert isinstance(generated, TupleValue)
    bits = ops.shift_right_logical(generated.elements[1], fill(dims, 9, "u32"))
    return cast(cast(bits, "f32") * 2.0**-23, dtype)


@operator("RandomUniform", "RandomUniformLike")
def random_uniform(node: Node) -> Value:
    dims = node.attribute("shape") if node.name == "RandomUniform" else node.dims(0)
    low, high = float(node.attribute("low", 0.0)), float(node.attribute("high", 1.0))
    row = node.dtype("dtype", "f32" if node.name == "RandomUniform" else node.row(0))
    return cast(uniform(node, dims, "f32") * (high - low) + low, row)


@operator("RandomNormal", "RandomNormalLike")
def random_normal(node: Node) -> Value:
    """By the inverse of the normal distribution function."""
    dims = node.attribute("shape") if node.name == "RandomNormal" else node.dims(0)
    row = node.dtype("dtype", "f32" if node.name == "RandomNormal" else node.row(0))
    centered = uniform(node, dims, "f32") * 2.0 + (2.0**-23 - 1.0)
    normal = emit("chlo.erf_inv", [centered], centered.shape) * float(np.sqrt(2.0))
    return cast(normal * float(node.attribute("scale", 1.0)) + float(node.attribute("mean", 0.0)), row)


@operator("Bernoulli")
def bernoulli(node: Node) -> Value:
    chance = cast(node.value(0), "f32")
    return cast(uniform(node, chance.dims, "f32") < chance, node.dtype("dtype", node.row(0)))


@operator("Multinomial")
def multinomial(node: Node) -> Value:
    """Samples of classes by logarithms of their chances: the greatest after Gumbel noise is added."""
    logits = cast(node.value(0), "f32")
    batch, classes = logits.dims
    dims = [batch, int(node.attribute("sample_size", 1)), classes]
    noise = -ops.log(-ops.log(uniform(node, dims, "f32") + 2.0**-24))
    scores = broadcast_to(expand(logits, [1]), dims) + noise

    def better(a: Value, place_a: Value, b: Value, place_b: Value) -> tuple[Value, Value]:
        return ops.select(a >= b, a, b), ops.select(a >= b, place_a, place_b)

    found = ops.reduce([scores, numbers(dims, 2)], [float("-inf"), 0], better, [2])
    assert isinstance(found, TupleValue)
    return cast(found.elements[1], node.dtype("dtype", "s32"))
