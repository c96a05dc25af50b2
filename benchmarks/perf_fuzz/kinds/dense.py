"""Products of matrices with what stands around them in networks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.perf_fuzz.arguments import integers, normal, weights
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


def activation(draw: Draw) -> Callable[[Any], Any]:
    """One that networks have."""
    return draw.pick(jax.nn.relu, jax.nn.gelu, jax.nn.silu, jnp.tanh, jax.nn.sigmoid, jax.nn.elu, jax.nn.softplus)


@kind("dense", gradient=True)
def dense_layer(draw: Draw) -> Drawn:
    dtype, act = draw.float_type(), activation(draw)
    rows, inputs, outputs = draw.sizes(draw.products(dtype), 3, least=3)
    return drawn(
        lambda x, w, b: act(x @ w + b),
        normal(rows, inputs, dtype=dtype),
        weights(inputs, outputs, dtype=dtype),
        normal(outputs, dtype=dtype),
    )


@kind("dense", gradient=True)
def mlp(draw: Draw) -> Drawn:
    dtype, act, layers = draw.float_type(), activation(draw), draw.size(2, 4)
    rows, side = draw.sizes(draw.products(dtype) / layers, 2, least=4)
    widths = [max(2, int(side ** (0.5 + 0.2 * draw.random.random()))) for _ in range(layers + 1)]

    def function(x: Any, *parameters: Any) -> Any:
        for number in range(layers):
            x = x @ parameters[2 * number] + parameters[2 * number + 1]
            x = act(x) if number < layers - 1 else x
        return x

    parts = [part for a, b in pairwise(widths) for part in (weights(a, b, dtype=dtype), normal(b, dtype=dtype))]
    return drawn(function, normal(rows, widths[0], dtype=dtype), parts)


@kind("dense", gradient=True)
def gated_mlp(draw: Draw) -> Drawn:
    dtype = draw.float_type()
    rows, inputs, hidden = draw.sizes(draw.products(dtype) / 3, 3, least=3)
    return drawn(
        lambda x, up, gate, down: (jax.nn.silu(x @ gate) * (x @ up)) @ down,
        normal(rows, inputs, dtype=dtype),
        weights(inputs, hidden, dtype=dtype),
        weights(inputs, hidden, dtype=dtype),
        weights(hidden, inputs, dtype=dtype),
    )


@kind("dense")
def one_row_product(draw: Draw) -> Drawn:
    """A step of a decoder: as many bytes as multiplications."""
    dtype = draw.float_type()
    inputs, outputs = draw.shape(2, 8e6, 1e2)
    is_transposed = draw.chance(0.5)
    return drawn(
        lambda x, w: jax.nn.silu(x @ (w.T if is_transposed else w)),
        normal(1, inputs, dtype=dtype),
        weights(*((outputs, inputs) if is_transposed else (inputs, outputs)), dtype=dtype, inputs=inputs),
    )


@kind("dense", gradient=True)
def batched_products(draw: Draw) -> Drawn:
    dtype = draw.float_type()
    batch, m, k, n = draw.sizes(draw.products(dtype), 4, least=2)
    form, left, right = draw.pick(
        ("bmk,bkn->bmn", (batch, m, k), (batch, k, n)),
        ("bmk,bnk->bmn", (batch, m, k), (batch, n, k)),
        ("bkm,bkn->bmn", (batch, k, m), (batch, k, n)),
        ("mbk,nbk->bmn", (m, batch, k), (n, batch, k)),
    )
    return drawn(
        lambda x, y: jnp.einsum(form, x, y), normal(*left, dtype=dtype), weights(*right, dtype=dtype, inputs=k)
    )


@kind("dense", gradient=True)
def transposed_product(draw: Draw) -> Drawn:
    dtype = draw.float_type()
    m, k, n = draw.sizes(draw.products(dtype), 3, least=3)
    return drawn(
        lambda x, y, z: (x.T @ y).T * 0.5 + z, normal(k, m, dtype=dtype), weights(k, n, dtype=dtype),
        normal(n, m, dtype=dtype),
    )  # fmt: skip


@kind("dense", gradient=True)
def low_rank_adapter(draw: Draw) -> Drawn:
    dtype, rank = draw.float_type(), draw.size(1, 32)
    rows, inputs, outputs = draw.sizes(draw.products(dtype), 3, least=4)
    return drawn(
        lambda x, w, a, b: x @ w + 0.5 * ((x @ a) @ b),
        normal(rows, inputs, dtype=dtype),
        weights(inputs, outputs, dtype=dtype),
        weights(inputs, rank, dtype=dtype),
        weights(rank, outputs, dtype=dtype),
    )


@kind("dense", gradient=True, batch=False)
def mixture_of_experts(draw: Draw) -> Drawn:
    experts, chosen = draw.size(2, 12), draw.pick(1, 2)
    rows, inputs, hidden = draw.sizes(draw.products("float32") / (2 * experts), 3, least=4)

    def function(x: Any, router: Any, up: Any, down: Any) -> Any:
        scores, places = jax.lax.top_k(jax.nn.softmax(x @ router), min(chosen, experts))
        shares = jnp.einsum("rc,rce->re", scores, jax.nn.one_hot(places, experts))
        hidden_values = jax.nn.relu(jnp.einsum("ri,eih->erh", x, up))
        return jnp.einsum("erh,ehi,re->ri", hidden_values, down, shares)

    return drawn(
        function,
        normal(rows, inputs),
        weights(inputs, experts),
        weights(experts, inputs, hidden),
        weights(experts, hidden, inputs),
    )


@kind("dense", gradient=True)
def bilinear_form(draw: Draw) -> Drawn:
    rows, a, b = draw.sizes(draw.products("float32"), 3, least=2)
    return drawn(lambda x, w, y: jnp.sum((x @ w) * y, axis=-1), normal(rows, a), weights(a, b), normal(rows, b))


@kind("dense", gradient=True)
def product_and_reduction(draw: Draw) -> Drawn:
    dtype = draw.precise_type()
    m, k, n = draw.sizes(draw.products(dtype), 3, least=3)
    reduce = draw.pick(jnp.max, jnp.sum, jnp.mean, jax.nn.logsumexp)
    axis = draw.pick(0, 1)
    return drawn(
        lambda x, w: reduce(jnp.square(x @ w) + 1.0, axis=axis), normal(m, k, dtype=dtype), weights(k, n, dtype=dtype)
    )


@kind("dense", gradient=True, batch=False)
def factorization_machine(draw: Draw) -> Drawn:
    """Recommender: embeddings of fields and the products of all pairs."""
    words, rank = draw.size(50, 20_000), draw.size(3, 40)
    rows, fields = draw.sizes(draw.work(50, 2e5), 2, least=2)

    def function(table: Any, bias: Any, fields_of: Any) -> Any:
        chosen = table[fields_of]
        pairs = jnp.square(chosen.sum(1)) - jnp.square(chosen).sum(1)
        return jax.nn.sigmoid(0.5 / fields * pairs.sum(-1) + bias[fields_of].mean(-1))

    return drawn(function, normal(words, rank, scale=0.2), normal(words, scale=0.2), integers(rows, fields, high=words))
