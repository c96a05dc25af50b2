"""Attention, with what transformers vary about it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.perf_fuzz.arguments import Argument, booleans, integers, normal, weights
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


def _sizes(draw: Draw, products: float) -> tuple[int, int, int, int]:
    """Heads, queries, keys, features of a head; as many multiplications as that at most."""
    heads, features = draw.size(1, 16), draw.pick(8, 16, 24, 32, 40, 64, 64, 80, 128)
    queries, keys = draw.sizes(max(16.0, products / (heads * features)), 2, least=3, most=4000)
    return heads, queries, keys, features


def _type(draw: Draw) -> str:
    return draw.pick("float32", "float32", "float32", "bfloat16")


def _attend(q: Any, k: Any, v: Any, mask: Any = None, bias: Any = None) -> Any:
    """Of arrays (heads, length, features)."""
    scores = jnp.einsum("hqd,hkd->hqk", q, k) * q.shape[-1] ** -0.5
    if bias is not None:
        scores = scores + bias.astype(scores.dtype)
    if mask is not None:
        scores = jnp.where(mask, scores, jnp.finfo(scores.dtype).min)
    return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores, axis=-1), v)


def _heads(heads: int, length: int, features: int, dtype: str) -> Argument:
    return normal(heads, length, features, dtype=dtype)


@kind("attention", gradient=True)
def masked_attention(draw: Draw) -> Drawn:
    dtype = _type(draw)
    heads, queries, keys, features = _sizes(draw, draw.products(dtype) / 2)
    return drawn(
        lambda q, k, v, mask: _attend(q, k, v, mask[None, None, :]),
        _heads(heads, queries, features, dtype),
        _heads(heads, keys, features, dtype),
        _heads(heads, keys, features, dtype),
        booleans(keys, share=0.8),
    )


@kind("attention", gradient=True)
def causal_attention(draw: Draw) -> Drawn:
    dtype = _type(draw)
    heads, a, b, features = _sizes(draw, draw.products(dtype) / 2)
    length = max(3, int((a * b) ** 0.5))
    window = draw.pick(0, 0, max(1, length // 4))

    def function(q: Any, k: Any, v: Any) -> Any:
        rows, columns = jnp.arange(length)[:, None], jnp.arange(length)[None, :]
        mask = rows >= columns
        return _attend(q, k, v, mask & (rows - columns < window) if window else mask)

    return drawn(function, *(_heads(heads, length, features, dtype) for _ in range(3)))


@kind("attention", gradient=True)
def grouped_query_attention(draw: Draw) -> Drawn:
    dtype, groups = _type(draw), draw.pick(2, 3, 4, 8)
    heads, a, b, features = _sizes(draw, draw.products(dtype) / (2 * groups))
    length = max(3, int((a * b) ** 0.5))

    def function(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("qhgd,khd->hgqk", q, k) * features**-0.5
        scores = jnp.where(jnp.tri(length, dtype=bool), scores, -1e9)
        return jnp.einsum("hgqk,khd->qhgd", jax.nn.softmax(scores, -1), v)

    return drawn(
        function,
        normal(length, heads, groups, features, dtype=dtype),
        normal(length, heads, features, dtype=dtype),
        normal(length, heads, features, dtype=dtype),
    )


@kind("attention", batch=False)
def attention_with_cache(draw: Draw) -> Drawn:
    """One query of a decoder; its key and value go into the cache, which is returned."""
    dtype, heads, groups = _type(draw), draw.size(1, 8), draw.pick(1, 1, 2, 4)
    length, features = draw.size(8, 4000), draw.pick(16, 32, 64, 80, 128)

    def function(x: Any, wq: Any, wk: Any, wv: Any, keys: Any, values: Any, place: Any) -> Any:
        q = (x @ wq).reshape(heads, groups, features)
        k, v = (x @ wk).reshape(1, heads, features), (x @ wv).reshape(1, heads, features)
        keys = jax.lax.dynamic_update_slice(keys, k, (place, 0, 0))
        values = jax.lax.dynamic_update_slice(values, v, (place, 0, 0))
        scores = jnp.einsum("hgd,khd->hgk", q, keys) * features**-0.5
        scores = jnp.where(jnp.arange(length) <= place, scores, -1e9)
        return jnp.einsum("hgk,khd->hgd", jax.nn.softmax(scores, -1), values), keys, values

    model = draw.size(16, 512)
    return drawn(
        function,
        normal(1, model, dtype=dtype),
        weights(model, heads * groups * features, dtype=dtype),
        weights(model, heads * features, dtype=dtype),
        weights(model, heads * features, dtype=dtype),
        normal(length, heads, features, dtype=dtype),
        normal(length, heads, features, dtype=dtype),
        integers(high=length),
    )


@kind("attention", gradient=True)
def rotary_attention(draw: Draw) -> Drawn:
    heads, a, b, features = _sizes(draw, draw.products("float32") / 2)
    length = max(3, int((a * b) ** 0.5))

    def turned(x: Any) -> Any:
        rates = 10_000.0 ** (-jnp.arange(features // 2) * 2.0 / features)
        angles = jnp.arange(length)[:, None] * rates[None, :]
        left, right = jnp.split(x, 2, axis=-1)
        sine, cosine = jnp.sin(angles), jnp.cos(angles)
        return jnp.concatenate([left * cosine - right * sine, left * sine + right * cosine], axis=-1)

    return drawn(
        lambda q, k, v: _attend(turned(q), turned(k), v, jnp.tri(length, dtype=bool)),
        *(normal(heads, length, features) for _ in range(3)),
    )


@kind("attention", gradient=True)
def biased_attention(draw: Draw) -> Drawn:
    """Relative positions: slopes times distances, or a learned table of them."""
    heads, a, b, features = _sizes(draw, draw.products("float32") / 2)
    length = max(3, int((a * b) ** 0.5))
    is_table = draw.chance(0.5)

    def function(q: Any, k: Any, v: Any, given: Any) -> Any:
        distance = jnp.arange(length)[:, None] - jnp.arange(length)[None, :]
        bias = given[:, distance + length - 1] if is_table else -jnp.abs(distance) * given[:, :1, None]
        return _attend(q, k, v, None, bias)

    return drawn(
        function, *(normal(heads, length, features) for _ in range(3)), normal(heads, 2 * length - 1, scale=0.2)
    )


@kind("attention", gradient=True)
def linear_attention(draw: Draw) -> Drawn:
    heads, length, features = draw.size(1, 8), draw.size(8, 3000), draw.pick(8, 16, 32, 48)
    is_causal = length * features**2 * heads < 3e6 / draw.scale

    def function(q: Any, k: Any, v: Any) -> Any:
        q, k = jax.nn.elu(q) + 1, jax.nn.elu(k) + 1
        if is_causal:
            sums = jnp.cumsum(jnp.einsum("hkd,hke->hkde", k, v), axis=1)
            return jnp.einsum("hkd,hkde->hke", q, sums) / (jnp.sum(q * jnp.cumsum(k, 1), -1, keepdims=True) + 1e-6)
        state = jnp.einsum("hkd,hke->hde", k, v)
        return jnp.einsum("hkd,hde->hke", q, state) / (jnp.einsum("hkd,hd->hk", q, k.sum(1))[..., None] + 1e-6)

    return drawn(function, *(normal(heads, length, features, scale=0.5) for _ in range(3)))


@kind("attention", gradient=True)
def transformer_block(draw: Draw) -> Drawn:
    heads, size = draw.size(1, 8), draw.pick(8, 16, 24, 32, 64)
    model, length = heads * size, draw.size(4, 200)

    def norm(x: Any, scale: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale

    def function(x: Any, qkv: Any, out: Any, up: Any, down: Any, first: Any, second: Any) -> Any:
        parts = (norm(x, first) @ qkv).reshape(length, 3, heads, size)
        q, k, v = (parts[:, place].transpose(1, 0, 2) for place in range(3))
        mixed = _attend(q, k, v, jnp.tri(length, dtype=bool)).transpose(1, 0, 2).reshape(length, model)
        x = x + mixed @ out
        return x + jax.nn.gelu(norm(x, second) @ up) @ down

    return drawn(
        function,
        normal(length, model),
        weights(model, 3 * model),
        weights(model, model),
        weights(model, 4 * model),
        weights(4 * model, model),
        normal(model, scale=0.1, shift=1.0),
        normal(model, scale=0.1, shift=1.0),
    )
