"""Running values: associative scans of pairs and matrices, tridiagonal systems, extremes, products."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.perf_fuzz.arguments import integers, normal, uniform
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


@kind("scans", gradient=True)
def associative_recurrence(draw: Draw) -> Drawn:
    """``x = a x + b`` by an associative scan of pairs."""
    steps, width = draw.sizes(draw.elements(2e5), 2)
    axis = draw.pick(0, 1)

    def combine(first: Any, second: Any) -> Any:
        return first[0] * second[0], second[0] * first[1] + second[1]

    return drawn(
        lambda a, b: jax.lax.associative_scan(combine, (a, b), axis=axis)[1],
        uniform(steps, width),
        normal(steps, width),
    )


@kind("scans")
def running_extremes(draw: Draw) -> Drawn:
    shape = draw.shape(draw.pick(1, 2, 2, 3), 1e6)
    axis = int(draw.random.integers(len(shape)))
    dtype = draw.pick("float32", "float32", "int32", "float64")
    scan, is_reversed = draw.pick(jax.lax.cummax, jax.lax.cummin), draw.chance(0.3)
    return drawn(lambda x: x - scan(x, axis, is_reversed), normal(*shape, dtype=dtype, scale=100))


@kind("scans", gradient=True)
def running_products(draw: Draw) -> Drawn:
    """Products, or sums of exponentials, up to each place."""
    shape = draw.shape(draw.pick(1, 2, 2), 1e6)
    axis = int(draw.random.integers(len(shape)))
    scan = draw.pick(jnp.cumprod, jax.lax.cumlogsumexp)
    return drawn(lambda x: scan(x, axis=axis), uniform(*shape, low=0.9, high=1.1))


@kind("scans", gradient=True)
def running_matrices(draw: Draw) -> Drawn:
    """Products of small matrices up to each place."""
    steps, size = draw.size(2, 2000), draw.pick(2, 2, 3, 4)
    return drawn(
        lambda a: jax.lax.associative_scan(lambda x, y: y @ x, a), normal(steps, size, size, scale=0.6 * size**-0.5)
    )


@kind("scans", gradient=True)
def tridiagonal_systems(draw: Draw) -> Drawn:
    """Thomas's algorithm: a scan down and one up, for many right sides."""
    size, columns = draw.size(3, 800), draw.size(1, 200)

    def function(low: Any, high: Any, d: Any) -> Any:
        def down(state: Any, given: Any) -> Any:
            c, y = state
            a, h, row = given
            m = 4 - a * c
            c, y = h / m, (row - a * y) / m
            return (c, y), (c, y)

        def up(x: Any, given: Any) -> Any:
            c, y = given
            x = y - c * x
            return x, x

        start = (jnp.float32(0), jnp.zeros(columns))
        _, rows = jax.lax.scan(down, start, (low, high, d))
        return jax.lax.scan(up, jnp.zeros(columns), rows, reverse=True)[1]

    return drawn(function, uniform(size), uniform(size), normal(size, columns))


@kind("scans")
def run_lengths(draw: Draw) -> Drawn:
    """Where runs begin, how long each is, and its value."""
    count = draw.elements(2e5)

    def function(x: Any) -> Any:
        starts = jnp.concatenate([jnp.ones(1, bool), x[1:] != x[:-1]])
        group = jnp.cumsum(starts) - 1
        lengths = jnp.zeros(count, jnp.int32).at[group].add(1)
        values = jnp.zeros(count, x.dtype).at[group].set(x)
        return lengths, values, starts.sum()

    return drawn(function, integers(count, high=3))


@kind("scans", gradient=True)
def segmented_sums(draw: Draw) -> Drawn:
    """Sums that begin anew where a flag says so."""
    count, width = draw.sizes(draw.elements(1e5), 2)

    def combine(first: Any, second: Any) -> Any:
        return first[0] | second[0], jnp.where(second[0], second[1], first[1] + second[1])

    def function(x: Any, flags: Any) -> Any:
        begins = jnp.broadcast_to((flags == 0)[:, None], x.shape)
        return jax.lax.associative_scan(combine, (begins, x))[1]

    return drawn(function, normal(count, width), integers(count, high=8))


@kind("scans")
def exponential_averages(draw: Draw) -> Drawn:
    """Two averages of prices and a signal where they cross, in a scan."""
    steps, width = draw.size(10, 2000), draw.size(1, 300)

    def function(prices: Any) -> Any:
        def step(state: Any, price: Any) -> Any:
            fast, slow, held, money = state
            fast, slow = 0.2 * price + 0.8 * fast, 0.05 * price + 0.95 * slow
            wanted = jnp.where(fast > slow, 1.0, -1.0)
            money = money - (wanted - held) * price - 0.001 * jnp.abs(wanted - held)
            return (fast, slow, wanted, money), fast - slow

        start = (prices[0], prices[0], jnp.zeros(width), jnp.zeros(width))
        state, signal = jax.lax.scan(step, start, prices)
        return state[3], signal

    return drawn(function, normal(steps, width, shift=10), share=0.02)


@kind("scans")
def particle_filter(draw: Draw) -> Drawn:
    """Weights, a running sum, and systematic resampling by search."""
    particles, steps = draw.size(10, 2000), draw.size(2, 20)

    def function(state: Any, seen: Any, noise: Any) -> Any:
        def step(x: Any, given: Any) -> Any:
            y, shake = given
            x = 0.9 * x + 0.3 * shake
            share = jax.nn.softmax(-jnp.square(x - y) * 4)
            places = (jnp.arange(particles) + 0.5) / particles
            chosen = jnp.minimum(jnp.searchsorted(jnp.cumsum(share), places), particles - 1)
            return x[chosen], jnp.sum(share * x)

        return jax.lax.scan(step, state, (seen, noise))[1]

    return drawn(function, normal(particles), normal(steps), normal(steps, particles), share=0.2)
