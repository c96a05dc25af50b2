"""Sequences made token by token: caches in loops, beams, sampling, drafts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.perf_fuzz.arguments import bits, integers, normal, weights
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


@kind("generation", batch=False)
def decoder_with_cache(draw: Draw) -> Drawn:
    """Steps of a small decoder in a scan whose carry holds the cache of keys and values."""
    layers, heads, rank = draw.size(1, 3), draw.size(1, 6), draw.size(4, 32)
    steps, room, words = draw.size(3, 24), draw.size(32, 256), draw.size(20, 1000)
    width = heads * rank

    def function(table: Any, maps: Any, up: Any, down: Any, token: Any) -> Any:
        def step(state: Any, number: Any) -> Any:
            token, keys, values = state
            x = table[token]
            for layer in range(layers):
                y = x * jax.lax.rsqrt(jnp.mean(x * x) + 1e-5)
                q, k, v = (y @ maps[layer, part] for part in range(3))
                keys = keys.at[layer, :, number].set(k.reshape(heads, rank))
                values = values.at[layer, :, number].set(v.reshape(heads, rank))
                scores = jnp.einsum("hd,htd->ht", q.reshape(heads, rank), keys[layer]) * rank**-0.5
                shares = jax.nn.softmax(jnp.where(jnp.arange(room) <= number, scores, -1e9))
                x = x + jnp.einsum("ht,htd->hd", shares, values[layer]).reshape(width) @ maps[layer, 3]
                x = x + jax.nn.gelu(x @ up[layer]) @ down[layer]
            logits = table @ x
            return (jnp.argmax(logits).astype(jnp.int32), keys, values), logits.max()

        cache = jnp.zeros((layers, heads, room, rank))
        return jax.lax.scan(step, (token, cache, cache), jnp.arange(steps))[1]

    return drawn(
        function, normal(words, width, scale=width**-0.5), weights(layers, 4, width, width),
        weights(layers, width, 2 * width), weights(layers, 2 * width, width), integers(high=words),
    )  # fmt: skip


@kind("generation", batch=False)
def beam_search(draw: Draw) -> Drawn:
    words, width, beams, steps = draw.size(8, 500), draw.size(4, 64), draw.size(2, 8), draw.size(2, 24)

    def function(table: Any, w: Any, start: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            hidden, scores = state
            logs = jax.nn.log_softmax(hidden @ table.T) + scores[:, None]
            best, places = jax.lax.top_k(logs.reshape(-1), beams)
            parent, token = places // words, places % words
            return (jnp.tanh(hidden[parent] @ w + table[token]), best), (parent, token)

        hidden = jnp.tanh(start + 0.1 * jnp.arange(beams, dtype=jnp.float32)[:, None])
        (_, scores), back = jax.lax.scan(step, (hidden, jnp.zeros(beams)), None, length=steps)
        return scores, back

    return drawn(function, normal(words, width), weights(width, width), normal(width), share=0.05)


@kind("generation", batch=False)
def sampled_tokens(draw: Draw) -> Drawn:
    """The k likeliest, a temperature, and Gumbel noise."""
    rows, words, k = draw.size(1, 32), draw.size(20, 20_000), draw.size(2, 50)

    def function(logits: Any, key: Any) -> Any:
        best, places = jax.lax.top_k(logits / 0.8, min(k, words))
        noise = jax.random.gumbel(jax.random.wrap_key_data(key), best.shape)
        return jnp.take_along_axis(places, jnp.argmax(best + noise, -1)[:, None], 1)[:, 0]

    return drawn(function, normal(rows, words), bits(2), share=0.05)


@kind("generation", batch=False)
def penalized_logits(draw: Draw) -> Drawn:
    """Words that were said before count less."""
    rows, words, said = draw.size(1, 32), draw.size(20, 30_000), draw.size(2, 300)

    def function(logits: Any, tokens: Any) -> Any:
        chosen = jnp.take_along_axis(logits, tokens, 1)
        chosen = jnp.where(chosen < 0, chosen * 1.3, chosen / 1.3)
        rows_of = jnp.arange(rows)[:, None]
        return jax.nn.log_softmax(logits.at[rows_of, tokens].set(chosen))

    return drawn(function, normal(rows, words), integers(rows, said, high=words))


@kind("generation", batch=False)
def speculative_check(draw: Draw) -> Drawn:
    """How many drafted tokens a larger model accepts."""
    drafts, words, rows = draw.size(2, 8), draw.size(20, 5000), draw.size(1, 16)

    def function(large: Any, small: Any, tokens: Any, chance: Any) -> Any:
        def chosen(logits: Any) -> Any:
            return jnp.take_along_axis(jax.nn.softmax(logits), tokens[..., None], -1)[..., 0]

        accepted = chance < chosen(large) / chosen(small)
        count = jnp.sum(jnp.cumprod(accepted.astype(jnp.int32), axis=1), axis=1)
        left = jax.nn.relu(jax.nn.softmax(large) - jax.nn.softmax(small))
        return count, left / left.sum(-1, keepdims=True)

    return drawn(
        function, normal(rows, drafts, words), normal(rows, drafts, words), integers(rows, drafts, high=words),
        normal(rows, drafts, scale=0.3, shift=0.5),
    )  # fmt: skip
