"""Dynamic programming: recurrences over vectors and tables."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.perf_fuzz.arguments import integers, normal, stochastic, uniform
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


@kind("dynamic programming")
def edit_distance(draw: Draw) -> Drawn:
    """A row at a time; insertions by a running minimum or by an inner loop."""
    is_nested = draw.chance(0.4)
    rows, columns = (draw.size(4, 120) if is_nested else draw.size(4, 600) for _ in range(2))

    def function(a: Any, b: Any) -> Any:
        def by_minimum(row: Any, x: Any) -> Any:
            best = jnp.minimum(row[1:] + 1, row[:-1] + (b != x))
            best = jnp.concatenate([row[:1] + 1, best])
            place = jnp.arange(columns + 1, dtype=jnp.int32)
            return place + jax.lax.cummin(best - place), None

        def by_loop(row: Any, x: Any) -> Any:
            def cell(left: Any, given: Any) -> Any:
                above, corner, y = given
                value = jnp.minimum(jnp.minimum(above, left) + 1, corner + (x != y).astype(jnp.int32))
                return value, value

            _, rest = jax.lax.scan(cell, row[0] + 1, (row[1:], row[:-1], b))
            return jnp.concatenate([row[:1] + 1, rest]), None

        start = jnp.arange(columns + 1, dtype=jnp.int32)
        return jax.lax.scan(by_loop if is_nested else by_minimum, start, a)[0][-1]

    return drawn(function, integers(rows, high=5), integers(columns, high=5))


@kind("dynamic programming")
def viterbi(draw: Draw) -> Drawn:
    steps, states = draw.size(3, 300), draw.size(2, 80)

    def function(scores: Any, moves: Any) -> Any:
        def forward(best: Any, score: Any) -> Any:
            all_ = best[:, None] + moves
            return all_.max(0) + score, all_.argmax(0).astype(jnp.int32)

        best, back = jax.lax.scan(forward, scores[0], scores[1:])
        last = best.argmax().astype(jnp.int32)
        _, path = jax.lax.scan(lambda state, row: (row[state], state), last, back, reverse=True)
        return best, path

    return drawn(function, normal(steps, states), normal(states, states), share=0.05)


@kind("dynamic programming", gradient=True)
def forward_algorithm(draw: Draw) -> Drawn:
    steps, states = draw.size(3, 200), draw.size(2, 100)
    is_log = draw.chance(0.5)

    def function(scores: Any, moves: Any) -> Any:
        def in_logs(alpha: Any, score: Any) -> Any:
            return jax.nn.logsumexp(alpha[:, None] + jnp.log(moves), axis=0) + score, None

        def scaled(state: Any, score: Any) -> Any:
            alpha, total = state
            alpha = (alpha @ moves) * jnp.exp(score)
            size = alpha.sum()
            return (alpha / size, total + jnp.log(size)), None

        if is_log:
            return jax.nn.logsumexp(jax.lax.scan(in_logs, scores[0], scores[1:])[0])
        start = (jax.nn.softmax(scores[0]), jnp.float32(0))
        return jax.lax.scan(scaled, start, scores[1:])[0][1]

    return drawn(function, normal(steps, states), stochastic(states, states))


@kind("dynamic programming")
def knapsack(draw: Draw) -> Drawn:
    items, room = draw.size(3, 200), draw.size(10, 10_000)

    def function(values: Any, sizes: Any) -> Any:
        def step(best: Any, item: Any) -> Any:
            value, size = item
            place = jnp.arange(room + 1)
            taken = jnp.where(place >= size, best[jnp.maximum(place - size, 0)] + value, -1)
            return jnp.maximum(best, taken), None

        return jax.lax.scan(step, jnp.zeros(room + 1, jnp.int32), (values, sizes))[0]

    return drawn(function, integers(items, low=1, high=100), integers(items, low=1, high=max(2, room // 3)))


@kind("dynamic programming")
def time_warping(draw: Draw) -> Drawn:
    """By antidiagonals: all cells of one at once."""
    size = draw.size(4, 300)

    def function(a: Any, b: Any) -> Any:
        place = jnp.arange(size)

        def step(number: Any, state: Any) -> Any:
            before, last = state
            column = number - place
            is_in = (column >= 0) & (column < size)
            cost = jnp.abs(a - b[jnp.clip(column, 0, size - 1)])
            shifted = jnp.concatenate([jnp.full(1, 1e9), last[:-1]])
            corner = jnp.concatenate([jnp.full(1, 1e9), before[:-1]])
            least = jnp.minimum(jnp.minimum(shifted, last), corner)
            return last, jnp.where(is_in, cost + jnp.where((number == 0) & (place == 0), 0.0, least), 1e9)

        start = (jnp.full(size, 1e9), jnp.full(size, 1e9))
        return jax.lax.fori_loop(0, 2 * size - 1, step, start)[1][-1]

    return drawn(function, normal(size), normal(size))


@kind("dynamic programming")
def shortest_paths(draw: Draw) -> Drawn:
    """Floyd and Warshall: a rank-1 update of a minimum for each node."""
    nodes = draw.size(4, 220)
    dtype = draw.pick("float32", "float32", "int32")

    def function(distances: Any) -> Any:
        def step(number: Any, d: Any) -> Any:
            row = jax.lax.dynamic_index_in_dim(d, number, 0)
            column = jax.lax.dynamic_index_in_dim(d, number, 1)
            return jnp.minimum(d, column + row)

        return jax.lax.fori_loop(0, nodes, step, distances)

    return drawn(function, uniform(nodes, nodes, dtype=dtype, low=1, high=100))


@kind("dynamic programming")
def alignment(draw: Draw) -> Drawn:
    """Smith and Waterman, a table of scores cell by cell along antidiagonals."""
    rows, columns = draw.size(4, 250), draw.size(4, 250)

    def function(a: Any, b: Any, scores: Any) -> Any:
        place = jnp.arange(rows)

        def step(state: Any, number: Any) -> Any:
            before, last, best = state
            column = number - place
            is_in = (column >= 0) & (column < columns)
            match = scores[a, b[jnp.clip(column, 0, columns - 1)]]
            up = jnp.pad(last, (1, 0))[:-1]
            corner = jnp.pad(before, (1, 0))[:-1]
            value = jnp.maximum(jnp.maximum(corner + match, 0), jnp.maximum(up, last) - 2)
            value = jnp.where(is_in, value, 0)
            return (last, value, jnp.maximum(best, value.max())), None

        zero = jnp.zeros(rows, jnp.int32)
        start = (zero, zero, jnp.int32(0))
        return jax.lax.scan(step, start, jnp.arange(rows + columns - 1))[0][2]

    return drawn(function, integers(rows, high=4), integers(columns, high=4), integers(4, 4, low=-3, high=6))


@kind("dynamic programming", gradient=True)
def connectionist_loss(draw: Draw) -> Drawn:
    """CTC: the forward pass in logarithms over labels with blanks."""
    steps, labels, classes = draw.size(6, 150), draw.size(2, 40), draw.size(3, 60)

    def function(logits: Any, target: Any) -> Any:
        logs = jax.nn.log_softmax(logits)
        path = jnp.zeros(2 * labels + 1, jnp.int32).at[1::2].set(target)
        may_skip = (path != 0) & (path != jnp.roll(path, 2))
        low = jnp.float32(-1e9)
        start = jnp.where(jnp.arange(2 * labels + 1) < 2, logs[0, path], low)

        def step(alpha: Any, row: Any) -> Any:
            one = jnp.concatenate([jnp.full(1, low), alpha[:-1]])
            two = jnp.where(may_skip, jnp.concatenate([jnp.full(2, low), alpha[:-2]]), low)
            return jnp.logaddexp(jnp.logaddexp(alpha, one), two) + row[path], None

        alpha = jax.lax.scan(step, start, logs[1:])[0]
        return -jnp.logaddexp(alpha[-1], alpha[-2]) / steps

    return drawn(function, normal(steps + labels, classes), integers(labels, low=1, high=classes))


@kind("dynamic programming")
def value_iteration(draw: Draw) -> Drawn:
    """Of a Markov decision process, until it changes little."""
    states, actions = draw.size(3, 150), draw.size(2, 6)

    def function(moves: Any, rewards: Any) -> Any:
        def step(state: Any) -> Any:
            values, _, count = state
            after = jnp.max(rewards + 0.9 * jnp.einsum("ast,t->as", moves, values), axis=0)
            return after, jnp.max(jnp.abs(after - values)), count + 1

        start = (jnp.zeros(states), jnp.float32(1), jnp.int32(0))
        return jax.lax.while_loop(lambda state: (state[1] > 1e-3) & (state[2] < 200), step, start)[0]

    return drawn(function, stochastic(actions, states, states), normal(actions, states))
