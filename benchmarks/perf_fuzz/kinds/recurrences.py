"""Recurrences over a sequence: networks, filters, cumulative operations."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.perf_fuzz.arguments import normal, uniform, weights
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


def _cell(draw: Draw, gates: int) -> tuple[int, int, int, int]:
    """Steps, rows, inputs, hidden."""
    steps = draw.size(3, 150)
    rows, inputs, hidden = draw.size(1, 40), draw.size(2, 128), draw.size(2, 160)
    while steps * rows * (inputs + hidden) * hidden * gates * draw.scale > 3e8:
        rows, hidden = max(1, rows // 2), max(2, hidden // 2)
    return steps, rows, inputs, hidden


@kind("recurrences", gradient=True)
def rnn(draw: Draw) -> Drawn:
    steps, rows, inputs, hidden = _cell(draw, 1)

    def function(xs: Any, h: Any, w: Any, u: Any, b: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = jnp.tanh(x @ w + h @ u + b)
            return h, h

        return jax.lax.scan(step, jnp.broadcast_to(h, (rows, hidden)), xs)

    return drawn(
        function, normal(steps, rows, inputs), normal(hidden), weights(inputs, hidden), weights(hidden, hidden),
        normal(hidden),
    )  # fmt: skip


@kind("recurrences", gradient=True)
def gru(draw: Draw) -> Drawn:
    steps, rows, inputs, hidden = _cell(draw, 3)

    def function(xs: Any, h: Any, w: Any, u: Any, b: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            a, c = jnp.split(x @ w + b, 3, -1), jnp.split(h @ u, 3, -1)
            reset, update = jax.nn.sigmoid(a[0] + c[0]), jax.nn.sigmoid(a[1] + c[1])
            h = update * h + (1 - update) * jnp.tanh(a[2] + reset * c[2])
            return h, h

        return jax.lax.scan(step, jnp.broadcast_to(h, (rows, hidden)), xs)[1]

    return drawn(
        function, normal(steps, rows, inputs), normal(hidden), weights(inputs, 3 * hidden),
        weights(hidden, 3 * hidden), normal(3 * hidden),
    )  # fmt: skip


@kind("recurrences", gradient=True)
def lstm(draw: Draw) -> Drawn:
    steps, rows, inputs, hidden = _cell(draw, 4)
    is_last = draw.chance(0.5)

    def function(xs: Any, h: Any, w: Any, b: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            h, c = state
            i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ w + b, 4, -1)
            c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), (None if is_last else h)

        start = jnp.broadcast_to(h, (rows, hidden))
        (h, _), hs = jax.lax.scan(step, (start, start), xs)
        return h if is_last else hs

    return drawn(
        function, normal(steps, rows, inputs), normal(hidden), weights(inputs + hidden, 4 * hidden),
        normal(4 * hidden),
    )  # fmt: skip


@kind("recurrences")
def kalman_filter(draw: Draw) -> Drawn:
    steps, size = draw.size(5, 300), draw.size(2, 6)
    seen = draw.size(1, min(size, 3))

    def function(observed: Any, move: Any, look: Any) -> Any:
        def step(state: Any, y: Any) -> Any:
            x, p = state
            x, p = move @ x, move @ p @ move.T + 0.1 * jnp.eye(size)
            s = look @ p @ look.T + 0.5 * jnp.eye(seen)
            gain = jnp.linalg.solve(s, look @ p).T
            x, p = x + gain @ (y - look @ x), p - gain @ look @ p
            return (x, p), x

        return jax.lax.scan(step, (jnp.zeros(size), jnp.eye(size)), observed)[1]

    return drawn(
        function, normal(steps, seen), normal(size, size, scale=0.5 * size**-0.5), normal(seen, size, scale=0.5)
    )


@kind("recurrences", gradient=True)
def cumulative(draw: Draw) -> Drawn:
    dtype, rank = draw.precise_type(), draw.pick(1, 2, 2, 3)
    shape = draw.shape(rank, 2e6)
    axis = int(draw.random.integers(rank))
    function = draw.pick(
        jnp.cumsum,
        lambda x, axis: jax.lax.cummax(x, axis=axis),
        lambda x, axis: jax.lax.cumsum(x, axis=axis, reverse=True),
        lambda x, axis: jnp.cumprod(1 + 0.01 * x, axis=axis),
        lambda x, axis: jax.lax.cumlogsumexp(x, axis=axis),
    )
    return drawn(lambda x: function(x, axis=axis), normal(*shape, dtype=dtype, scale=0.1))


@kind("recurrences", gradient=True)
def linear_recurrence(draw: Draw) -> Drawn:
    """h = a·h + b by an associative scan."""
    steps, features = draw.shape(2, 5e5)

    def function(a: Any, b: Any) -> Any:
        def joined(left: Any, right: Any) -> Any:
            return left[0] * right[0], right[0] * left[1] + right[1]

        return jax.lax.associative_scan(joined, (jax.nn.sigmoid(a), b))[1]

    return drawn(function, normal(steps, features), normal(steps, features))


@kind("recurrences")
def recursive_filter(draw: Draw) -> Drawn:
    """A biquad along time, for several channels."""
    steps, channels = draw.size(10, 3000), draw.size(1, 64)
    a, b = draw.number(-0.8, 0.8), draw.number(-0.1, 0.1)

    def function(x: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            p, q = state
            y = 0.2 * x + p
            return (0.4 * x - a * y + q, 0.2 * x - b * y), y

        zero = jnp.zeros(channels)
        return jax.lax.scan(step, (zero, zero), x)[1]

    return drawn(function, normal(steps, channels))


@kind("recurrences", gradient=True)
def moving_average(draw: Draw) -> Drawn:
    steps, rows = draw.size(5, 1000), draw.size(1, 500)
    keep = draw.number(0.5, 0.99)

    def function(x: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            mean, square = state
            mean, square = keep * mean + (1 - keep) * x, keep * square + (1 - keep) * x * x
            return (mean, square), (x - mean) * jax.lax.rsqrt(jnp.maximum(square - mean * mean, 0) + 1e-2)

        return jax.lax.scan(step, (x[0], x[0] * x[0] + 1), x)[1]

    return drawn(function, normal(steps, rows))


@kind("recurrences", gradient=True)
def state_space(draw: Draw) -> Drawn:
    """Selective scan of a state-space model."""
    steps, channels, states = draw.size(4, 400), draw.size(2, 128), draw.pick(4, 8, 16)

    def function(x: Any, delta: Any, b: Any, c: Any) -> Any:
        rates = -jnp.exp(jnp.linspace(-1.0, 1.0, states))

        def step(h: Any, given: Any) -> Any:
            x, delta, b, c = given
            h = h * jnp.exp(delta[:, None] * rates) + (delta * x)[:, None] * b[None, :]
            return h, h @ c

        return jax.lax.scan(step, jnp.zeros((channels, states)), (x, jax.nn.softplus(delta), b, c))[1]

    return drawn(
        function, normal(steps, channels), normal(steps, channels), normal(steps, states), normal(steps, states)
    )


@kind("recurrences", gradient=True)
def return_to_go(draw: Draw) -> Drawn:
    """Advantages of reinforcement learning, backward in time."""
    steps, rows = draw.size(5, 800), draw.size(1, 300)

    def function(rewards: Any, values: Any, ends: Any) -> Any:
        def step(advantage: Any, given: Any) -> Any:
            reward, value, after, end = given
            error = reward + 0.99 * after * (1 - end) - value
            advantage = error + 0.95 * 0.99 * (1 - end) * advantage
            return advantage, advantage

        after = jnp.concatenate([values[1:], values[-1:]])
        return jax.lax.scan(step, jnp.zeros(rows), (rewards, values, after, ends), reverse=True)[1]

    return drawn(function, normal(steps, rows), normal(steps, rows), uniform(steps, rows, high=np.float32(0.2)))
