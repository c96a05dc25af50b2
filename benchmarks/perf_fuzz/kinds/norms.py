"""Normalizations, softmax and embeddings."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.perf_fuzz.arguments import booleans, normal, skewed, uniform
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


@kind("norms", gradient=True)
def layer_norm(draw: Draw) -> Drawn:
    dtype = draw.float_type()
    shape = draw.shape(draw.pick(2, 3), 5e6)

    def function(x: Any, scale: Any, shift: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale + shift

    return drawn(function, normal(*shape, dtype=dtype), normal(shape[-1], dtype=dtype), normal(shape[-1], dtype=dtype))


@kind("norms", gradient=True)
def rms_norm(draw: Draw) -> Drawn:
    dtype = draw.float_type()
    shape = draw.shape(2, 8e6)

    def function(x: Any, scale: Any) -> Any:
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        return (wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)).astype(x.dtype) * scale

    return drawn(function, normal(*shape, dtype=dtype), normal(shape[-1], dtype=dtype))


@kind("norms", gradient=True)
def residual_norm(draw: Draw) -> Drawn:
    rows, features = draw.shape(2, 4e6)
    keep = draw.number(0.6, 0.95)

    def function(x: Any, y: Any, mask: Any, scale: Any) -> Any:
        total = x + jnp.where(mask, y / keep, 0)
        return total, total * jax.lax.rsqrt(jnp.mean(jnp.square(total), -1, keepdims=True) + 1e-6) * scale

    return drawn(
        function, normal(rows, features), normal(rows, features), booleans(rows, features, share=keep), normal(features)
    )


@kind("norms", gradient=True)
def batch_norm(draw: Draw) -> Drawn:
    batch, height, width, channels = draw.shape(4, 5e6)
    is_training = draw.chance(0.6)

    def function(x: Any, scale: Any, shift: Any, mean: Any, variance: Any) -> Any:
        if is_training:
            mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        return jax.nn.relu((x - mean) / jnp.sqrt(variance + 1e-3) * scale + shift), mean, variance

    vectors = [normal(channels), normal(channels), normal(channels), uniform(channels, low=0.5, high=2.0)]
    return drawn(function, normal(batch + 1, height, width + 1, channels), vectors)


@kind("norms", gradient=True)
def group_norm(draw: Draw) -> Drawn:
    groups, size = draw.size(1, 16), draw.size(1, 12)
    batch, pixels = draw.shape(2, 3e6 / (groups * size), 4)
    is_first = draw.chance(0.4)
    channels = groups * size
    shape = (batch, channels, pixels) if is_first else (batch, pixels, channels)

    def function(x: Any, scale: Any) -> Any:
        split = x.reshape((batch, groups, size, pixels) if is_first else (batch, pixels, groups, size))
        axes = (2, 3) if is_first else (1, 3)
        split = (split - split.mean(axes, keepdims=True)) / jnp.sqrt(split.var(axes, keepdims=True) + 1e-5)
        return split.reshape(shape) * (scale[:, None] if is_first else scale)

    return drawn(function, normal(*shape), normal(channels))


@kind("norms", gradient=True)
def softmax(draw: Draw) -> Drawn:
    dtype, rank = draw.float_type(), draw.pick(1, 2, 3, 4)
    shape = draw.shape(rank, 6e6)
    axis, heat = int(draw.random.integers(rank)), draw.number(0.3, 2.0)
    return drawn(lambda x: jax.nn.softmax(x / heat, axis=axis), normal(*shape, dtype=dtype))


@kind("norms", gradient=True)
def masked_softmax(draw: Draw) -> Drawn:
    rows, columns = draw.shape(2, 4e6)

    def function(x: Any, mask: Any) -> Any:
        return jax.nn.softmax(x, axis=-1, where=mask | (jnp.arange(columns) == 0))

    return drawn(function, normal(rows, columns), booleans(rows, columns, share=0.7))


@kind("norms", gradient=True)
def log_sum_exp(draw: Draw) -> Drawn:
    dtype, rank = draw.precise_type(), draw.pick(2, 3)
    shape = draw.shape(rank, 6e6)
    axis = int(draw.random.integers(rank))
    return drawn(
        lambda x, b: jax.nn.logsumexp(x, axis=axis, b=b), normal(*shape, dtype=dtype),
        uniform(*shape, dtype=dtype, low=0.1),
    )  # fmt: skip


@kind("norms", gradient=True, batch=False)
def embedding(draw: Draw) -> Drawn:
    dtype = draw.float_type()
    words, features = draw.shape(2, 5e6, 50)
    rows, length = draw.sizes(max(4.0, draw.work(10, 3e6) / features), 2)

    def function(table: Any, places: Any, words_of: Any) -> Any:
        return table[words_of] * jnp.asarray(features**0.5, table.dtype) + places[None, : words_of.shape[1]]

    return drawn(
        function,
        normal(words, features, dtype=dtype),
        normal(length + draw.size(1, 50), features, dtype=dtype),
        skewed(rows, length, high=words),
    )


@kind("norms", gradient=True)
def weight_standardization(draw: Draw) -> Drawn:
    a, b, c = draw.shape(3, 4e6)

    def function(x: Any) -> Any:
        centered = x - x.mean((0, 1), keepdims=True)
        return centered / (jnp.linalg.norm(centered, axis=(0, 1), keepdims=True) + 1e-4)

    return drawn(function, normal(a + 1, b + 1, c))
