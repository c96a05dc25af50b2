"""Statistics, and random numbers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.perf_fuzz.arguments import bits, booleans, normal, ordered, uniform
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


@kind("statistics", gradient=True)
def covariance(draw: Draw) -> Drawn:
    features, samples = draw.sizes(draw.work(20, 2e6), 2, least=2, most=200_000)
    features = min(features, 400)
    dtype, is_scaled = draw.precise_type(), draw.chance(0.4)

    def function(x: Any) -> Any:
        x = x - x.mean(1, keepdims=True)
        if is_scaled:
            x = x / (x.std(1, keepdims=True) + 1e-2)
        return x @ x.T / (samples - 1)

    return drawn(function, normal(features, samples, dtype=dtype))


@kind("statistics")
def quantiles(draw: Draw) -> Drawn:
    rows, columns = draw.shape(2, 2e5)
    columns, axis = max(columns, 2), draw.pick(0, 1)
    shares = sorted(draw.number(0.0, 1.0) for _ in range(draw.size(1, 5)))
    return drawn(lambda x: jnp.quantile(x, jnp.array(shares), axis=axis), normal(rows, columns))


@kind("statistics", gradient=True)
def moments(draw: Draw) -> Drawn:
    shape = draw.shape(draw.pick(1, 2, 3), 5e6)
    axis = draw.pick(None, 0, len(shape) - 1)

    def function(x: Any) -> Any:
        mean = x.mean(axis, keepdims=True)
        d = x - mean
        variance = jnp.mean(d * d, axis) + 1e-2
        return jnp.squeeze(mean), variance, jnp.mean(d**3, axis) / variance**1.5, jnp.mean(d**4, axis) / variance**2

    return drawn(function, normal(*shape))


@kind("statistics", batch=False)
def bootstrap(draw: Draw) -> Drawn:
    size, times = draw.size(4, 2000), draw.size(2, 120)

    def function(key: Any, x: Any) -> Any:
        def one(key: Any) -> Any:
            return x[jax.random.randint(key, (size,), 0, size)].mean()

        means = jax.vmap(one)(jax.random.split(key, times))
        return means.mean(), means.std()

    return drawn(function, bits(2), normal(size))


@kind("statistics", gradient=True)
def mixture_step(draw: Draw) -> Drawn:
    """Expectation and maximization of a mixture of normal distributions."""
    points, groups, features = draw.size(5, 8000), draw.size(2, 24), draw.size(1, 12)

    def function(x: Any, means: Any, scales: Any) -> Any:
        scaled = (x[:, None] - means[None]) / scales[None]
        logs = -0.5 * jnp.sum(scaled**2, -1) - jnp.sum(jnp.log(scales), -1)
        shares = jax.nn.softmax(logs, axis=1)
        weight = shares.sum(0)[:, None] + 1e-2
        after = shares.T @ x / weight
        return after, jnp.sqrt(shares.T @ (x * x) / weight - after * after + 0.5), jax.nn.logsumexp(logs, 1).mean()

    return drawn(
        function, normal(points, features), normal(groups, features), uniform(groups, features, low=0.5, high=2.0)
    )


@kind("statistics", gradient=True)
def kernel_density(draw: Draw) -> Drawn:
    points, wanted = draw.size(3, 2000), draw.size(2, 1000)
    width = draw.number(0.1, 0.6)

    def function(at: Any, x: Any) -> Any:
        return jnp.mean(jnp.exp(-0.5 * jnp.square((at[:, None] - x[None]) / width)), axis=1) / width

    return drawn(function, normal(wanted), normal(points))


@kind("statistics", batch=False)
def random_numbers(draw: Draw) -> Drawn:
    shape = draw.shape(draw.pick(1, 2), 5e5)
    form = draw.pick("normal", "uniform", "bernoulli", "randint", "gumbel", "exponential", "categorical")

    def function(key: Any) -> Any:
        if form == "bernoulli":
            return jax.random.bernoulli(key, 0.3, shape)
        if form == "randint":
            return jax.random.randint(key, shape, 0, 1000)
        if form == "categorical":
            logits = jnp.linspace(-1.0, 1.0, 16)
            return jax.random.categorical(key, logits, shape=(max(1, shape[0] // 16),))
        return getattr(jax.random, form)(key, shape)

    return drawn(function, bits(2), share=1e-3)


@kind("statistics", gradient=True, batch=False)
def dropout_layer(draw: Draw) -> Drawn:
    rows, features = draw.shape(2, 5e5)
    keep = draw.number(0.5, 0.95)

    def function(x: Any, key: Any, scale: Any) -> Any:
        mask = jax.random.bernoulli(key, keep, (rows, features))
        return jnp.where(mask, jax.nn.gelu(x * scale) / keep, 0)

    return drawn(function, normal(rows, features), bits(2), normal(features))


@kind("statistics")
def newton_logistic(draw: Draw) -> Drawn:
    """Iteratively reweighted least squares."""
    samples, features, steps = draw.size(10, 2000), draw.size(1, 16), draw.size(2, 8)

    def function(x: Any, y: Any) -> Any:
        def step(_: Any, w: Any) -> Any:
            share = jax.nn.sigmoid(x @ w)
            slope = x.T @ (share - y) + 0.1 * w
            curve = (x * (share * (1 - share))[:, None]).T @ x + (0.1 + 0.02 * samples) * jnp.eye(features)
            return w - jnp.linalg.solve(curve, slope)

        return jax.lax.fori_loop(0, steps, step, jnp.zeros(features))

    return drawn(function, normal(samples, features), booleans(samples))


@kind("statistics")
def binned(draw: Draw) -> Drawn:
    size, bins = draw.elements(1e5), draw.size(3, 200)

    def function(x: Any, edges: Any) -> Any:
        place = jnp.clip(jnp.searchsorted(edges, x) - 1, 0, bins - 1)
        return jnp.zeros(bins, jnp.int32).at[place].add(1), jnp.zeros(bins).at[place].add(x)

    return drawn(function, uniform(size), ordered(bins + 1))


@kind("statistics", gradient=True)
def moving_deviation(draw: Draw) -> Drawn:
    rows, length, window = draw.size(1, 100), draw.size(40, 8000), draw.size(2, 32)

    def function(x: Any) -> Any:
        def mean(x: Any) -> Any:
            return jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, window), (1, 1), "VALID") / window

        average = mean(x)
        return (x[:, window - 1 :] - average) / jnp.sqrt(jnp.maximum(mean(x * x) - average**2, 0) + 1e-2)

    return drawn(function, normal(rows, length))


@kind("statistics")
def metropolis(draw: Draw) -> Drawn:
    """Chains of a Markov sampler; their random numbers are given."""
    steps, chains, size = draw.size(5, 200), draw.size(1, 200), draw.size(1, 12)

    def function(x: Any, moves: Any, luck: Any) -> Any:
        def density(x: Any) -> Any:
            return -0.5 * jnp.sum(x * x, -1) + 0.3 * jnp.sum(jnp.cos(2 * x), -1)

        def step(state: Any, given: Any) -> Any:
            x, here = state
            move, chance = given
            there = density(x + 0.3 * move)
            taken = jnp.log(chance) < there - here
            x = jnp.where(taken[:, None], x + 0.3 * move, x)
            return (x, jnp.where(taken, there, here)), x.mean(0)

        return jax.lax.scan(step, (x, density(x)), (moves, luck))[1]

    return drawn(function, normal(chains, size), normal(steps, chains, size), uniform(steps, chains, low=0.01))
