"""Iterations: loops within loops, rank-1 updates, solvers, fixed points, and complex numbers in loops."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.perf_fuzz.arguments import dominant, integers, normal, positive_definite, stochastic, uniform
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


@kind("iterations")
def mandelbrot(draw: Draw) -> Drawn:
    steps = draw.size(5, 100)
    height, width = draw.image(1e7 / steps, least=4)
    dtype = draw.pick("complex64", "complex64", "complex128")
    is_julia = draw.chance(0.3)

    def function(c: Any) -> Any:
        def step(_: Any, state: Any) -> Any:
            z, count = state
            is_near = jnp.real(z) ** 2 + jnp.imag(z) ** 2 < 4
            moved = z * z + (-0.4 + 0.6j if is_julia else c)
            return jnp.where(is_near, moved, z), count + is_near.astype(jnp.int32)

        start = (c if is_julia else jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32))
        return jax.lax.fori_loop(0, steps, step, start)[1]

    return drawn(function, normal(height, width, dtype=dtype, scale=0.7), share=0.01)


@kind("iterations", batch=False)
def nested_loops(draw: Draw) -> Drawn:
    """A loop over vectors in a loop."""
    outer, inner, size = draw.size(2, 40), draw.size(2, 40), draw.size(2, 600)
    form = draw.pick("sum", "matrix", "index")

    def function(x: Any, matrix: Any) -> Any:
        def body(number: Any, state: Any) -> Any:
            def step(place: Any, state: Any) -> Any:
                if form == "matrix":
                    return jnp.tanh(state + 0.1 * matrix[place % 8])
                if form == "index":
                    return state.at[(place + number) % size].add(0.5 * state[place % size])
                return state * 0.99 + jnp.sum(state) / size * 0.01 + 0.001 * place

            return jax.lax.fori_loop(0, inner, step, state) + 0.1 * x

        return jax.lax.fori_loop(0, outer, body, x)

    return drawn(function, normal(size), normal(8, size))


@kind("iterations", batch=False)
def triangular_loops(draw: Draw) -> Drawn:
    """The inner loop's length is the outer one's counter: a factorization by hand."""
    size = draw.size(3, 48)

    def function(a: Any) -> Any:
        def column(j: Any, factor: Any) -> Any:
            def less(k: Any, column: Any) -> Any:
                return column - factor[:, k] * factor[j, k]

            left = jax.lax.fori_loop(0, j, less, a[:, j])
            left = jnp.where(jnp.arange(size) >= j, left, 0) / jnp.sqrt(left[j])
            return factor.at[:, j].set(left)

        return jax.lax.fori_loop(0, size, column, jnp.zeros_like(a))

    return drawn(function, positive_definite(size, size))


@kind("iterations")
def rank_one_updates(draw: Draw) -> Drawn:
    rows, columns, steps = draw.size(4, 300), draw.size(4, 300), draw.size(2, 120)
    form = draw.pick("outer", "sherman", "elimination")
    if form != "outer":
        columns = rows
        steps = min(steps, rows) if form == "elimination" else steps

    def function(a: Any, u: Any, v: Any) -> Any:
        def outer(a: Any, given: Any) -> Any:
            return 0.95 * a + given[0][:, None] * given[1][None, :], None

        def sherman(a: Any, given: Any) -> Any:
            left, right = a @ given[0], given[1] @ a
            return a - left[:, None] * right[None, :] / (1 + given[1] @ left), None

        def elimination(k: Any, a: Any) -> Any:
            factors = jnp.where(jnp.arange(rows) > k, a[:, k] / a[k, k], 0)
            return a - factors[:, None] * a[k][None, :]

        if form == "elimination":
            return jax.lax.fori_loop(0, steps - 1, elimination, a)
        return jax.lax.scan(outer if form == "outer" else sherman, a, (u, v))[0]

    matrix = normal(rows, columns) if form == "outer" else dominant(rows, columns)
    scale = 1.0 if form == "outer" else 0.1 * rows**-0.5
    return drawn(function, matrix, normal(steps, rows, scale=scale), normal(steps, columns, scale=scale))


@kind("iterations")
def power_iteration(draw: Draw) -> Drawn:
    size, steps = draw.size(3, 1200), draw.size(3, 60)
    dtype = draw.precise_type()

    def function(a: Any, x: Any) -> Any:
        def step(_: Any, x: Any) -> Any:
            y = a @ x
            return y / jnp.linalg.norm(y)

        x = jax.lax.fori_loop(0, steps, step, x)
        return x @ (a @ x), x

    return drawn(function, stochastic(size, size, dtype=dtype), uniform(size, dtype=dtype, low=0.5))


@kind("iterations")
def conjugate_gradients(draw: Draw) -> Drawn:
    size, steps = draw.size(4, 900), draw.size(3, 30)
    is_grid = draw.chance(0.4)

    def function(b: Any, a: Any) -> Any:
        def apply(x: Any) -> Any:
            if is_grid:
                return 2.5 * x - jnp.roll(x, 1) - jnp.roll(x, -1)
            return a @ x

        def step(state: Any) -> Any:
            x, r, p, square, count = state
            ap = apply(p)
            alpha = square / (p @ ap)
            x, r = x + alpha * p, r - alpha * ap
            after = r @ r
            return x, r, r + after / square * p, after, count + 1

        start = (jnp.zeros_like(b), b, b, b @ b, jnp.int32(0))
        return jax.lax.while_loop(lambda s: (s[3] > 1e-6) & (s[4] < steps), step, start)[0]

    return drawn(function, normal(size), positive_definite(*((1, 1) if is_grid else (size, size))))


@kind("iterations")
def newton_roots(draw: Draw) -> Drawn:
    """Elementwise, some steps or until all are near: Kepler's equation, roots, inverse functions."""
    shape, steps = draw.shape(draw.pick(1, 2), 1e6), draw.size(3, 10)
    is_while, dtype = draw.chance(0.4), draw.precise_type()

    def function(m: Any, e: Any) -> Any:
        def better(x: Any) -> Any:
            return x - (x - e * jnp.sin(x) - m) / (1 - e * jnp.cos(x))

        if not is_while:
            return jax.lax.fori_loop(0, steps, lambda _, x: better(x), m)

        def step(state: Any) -> Any:
            x, _, count = state
            after = better(x)
            return after, jnp.max(jnp.abs(after - x)), count + 1

        start = (m, jnp.ones((), m.dtype), jnp.int32(0))
        return jax.lax.while_loop(lambda s: (s[1] > 1e-4) & (s[2] < 20), step, start)[0]

    return drawn(function, uniform(*shape, dtype=dtype, high=3.0), uniform(*shape, dtype=dtype, high=0.7))


@kind("iterations")
def jacobi_solver(draw: Draw) -> Drawn:
    size, columns, steps = draw.size(3, 500), draw.size(1, 8), draw.size(3, 50)

    def function(a: Any, b: Any) -> Any:
        diagonal = jnp.diagonal(a)[:, None]
        rest = a - jnp.diag(jnp.diagonal(a))
        return jax.lax.fori_loop(0, steps, lambda _, x: (b - rest @ x) / diagonal, jnp.zeros_like(b))

    return drawn(function, dominant(size, size), normal(size, columns))


@kind("iterations", gradient=True)
def sinkhorn(draw: Draw) -> Drawn:
    rows, columns, steps = draw.size(3, 400), draw.size(3, 400), draw.size(2, 40)
    is_log = draw.chance(0.5)

    def function(cost: Any) -> Any:
        def in_logs(state: Any, _: Any) -> Any:
            f, g = state
            f = -jax.nn.logsumexp(g[None, :] - cost, axis=1)
            return (f, -jax.nn.logsumexp(f[:, None] - cost, axis=0)), None

        def scaled(state: Any, _: Any) -> Any:
            kernel = jnp.exp(-cost)
            u = 1 / (kernel @ state[1])
            return (u, 1 / (u @ kernel)), None

        start = (jnp.zeros(rows), jnp.zeros(columns)) if is_log else (jnp.ones(rows), jnp.ones(columns))
        f, g = jax.lax.scan(in_logs if is_log else scaled, start, None, length=steps)[0]
        return jnp.exp(f[:, None] + g[None, :] - cost) if is_log else f[:, None] * jnp.exp(-cost) * g[None, :]

    return drawn(function, uniform(rows, columns, high=4.0))


@kind("iterations")
def k_means(draw: Draw) -> Drawn:
    points, features, groups, steps = draw.size(10, 5000), draw.size(1, 16), draw.size(2, 32), draw.size(1, 12)

    def function(x: Any, centers: Any) -> Any:
        def step(_: Any, centers: Any) -> Any:
            distances = jnp.sum(jnp.square(x[:, None, :] - centers[None]), -1)
            chosen = jax.nn.one_hot(distances.argmin(1), groups)
            return (chosen.T @ x) / (chosen.sum(0)[:, None] + 1e-3)

        return jax.lax.fori_loop(0, steps, step, centers)

    return drawn(function, normal(points, features), normal(groups, features))


@kind("iterations")
def page_rank(draw: Draw) -> Drawn:
    """By segment sums over edges."""
    nodes, edges, steps = draw.size(5, 5000), draw.size(10, 20_000), draw.size(3, 20)

    def function(ranks: Any, source: Any, target: Any) -> Any:
        degree = jnp.zeros(nodes).at[source].add(1.0)

        def step(_: Any, rank: Any) -> Any:
            sent = (rank / jnp.maximum(degree, 1))[source]
            return 0.15 / nodes + 0.85 * jax.ops.segment_sum(sent, target, nodes)

        return jax.lax.fori_loop(0, steps, step, ranks)

    return drawn(function, uniform(nodes, high=2.0 / nodes), integers(edges, high=nodes), integers(edges, high=nodes))


@kind("iterations")
def bisection(draw: Draw) -> Drawn:
    size = draw.size(1, 100_000)

    def function(target: Any) -> Any:
        def step(_: Any, state: Any) -> Any:
            low, high = state
            middle = 0.5 * (low + high)
            is_low = middle + jnp.tanh(middle) < target
            return jnp.where(is_low, middle, low), jnp.where(is_low, high, middle)

        low, high = jax.lax.fori_loop(0, 24, step, (jnp.full(size, -20.0), jnp.full(size, 20.0)))
        return 0.5 * (low + high)

    return drawn(function, uniform(size, low=-10, high=10))


@kind("iterations", batch=False)
def batched_while(draw: Draw) -> Drawn:
    """A while loop for each element, made one by vmap."""
    size, most = draw.size(1, 30_000), draw.size(20, 200)

    def one(start: Any) -> Any:
        def step(state: Any) -> Any:
            n, count = state
            return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1

        return jax.lax.while_loop(lambda s: (s[0] != 1) & (s[1] < most), step, (start, jnp.int32(0)))[1]

    return drawn(jax.vmap(one), integers(size, low=1, high=3000))


@kind("iterations", batch=False)
def line_search(draw: Draw) -> Drawn:
    """Descent whose step is halved in an inner while loop."""
    size, steps = draw.size(2, 3000), draw.size(2, 40)

    def function(x: Any, scales: Any) -> Any:
        def value(x: Any) -> Any:
            return jnp.mean(scales * x * x) + 0.1 * jnp.mean(jnp.cos(3 * x))

        def step(_: Any, x: Any) -> Any:
            here, slope = jax.value_and_grad(value)(x)
            square = slope @ slope

            def is_long(state: Any) -> Any:
                return (value(x - state[0] * slope) > here - 0.3 * state[0] * square) & (state[1] < 20)

            start = (jnp.float32(0.3 * size), jnp.int32(0))
            length, _ = jax.lax.while_loop(is_long, lambda s: (0.5 * s[0], s[1] + 1), start)
            return x - length * slope

        return jax.lax.fori_loop(0, steps, step, x)

    return drawn(function, normal(size), uniform(size, low=0.2, high=5.0))


@kind("iterations")
def gram_schmidt(draw: Draw) -> Drawn:
    rows, columns = draw.size(8, 800), draw.size(2, 40)
    rows = max(rows, columns + 4)

    def function(a: Any) -> Any:
        def column(j: Any, q: Any) -> Any:
            v = jax.lax.dynamic_index_in_dim(a, j, 1, keepdims=False)
            v = v - q @ (q.T @ v)
            return q.at[:, j].set(v / jnp.linalg.norm(v))

        return jax.lax.fori_loop(0, columns, column, jnp.zeros_like(a))

    return drawn(function, normal(rows, columns))


@kind("iterations", gradient=True)
def invariant_work(draw: Draw) -> Drawn:
    """A loop that computes the same from its weights in each step, as people write it."""
    steps, size = draw.size(3, 80), draw.size(4, 250)

    def function(x: Any, w: Any, scale: Any) -> Any:
        def step(x: Any, _: Any) -> Any:
            unit = w / (jnp.sqrt(jnp.sum(jnp.square(w), axis=0)) + 1e-3)
            gate = jax.nn.softmax(scale)
            return x * 0.9 + jnp.tanh(x @ unit) * gate, None

        return jax.lax.scan(step, x, None, length=steps)[0]

    return drawn(function, normal(size), normal(size, size), normal(size))


@kind("iterations")
def complex_steps(draw: Draw) -> Drawn:
    """Amplitudes of a quantum circuit, or rotors: products of complex numbers in a loop."""
    steps, size = draw.size(3, 150), draw.size(2, 50_000)
    dtype = draw.pick("complex64", "complex64", "complex128")

    def function(z: Any, turn: Any) -> Any:
        unit = turn / (jnp.abs(turn) + 0.1).astype(turn.dtype)

        def step(_: Any, z: Any) -> Any:
            z = z * unit + 0.1 * jnp.conj(z)
            return z / (1 + 0.1 * (jnp.real(z) ** 2 + jnp.imag(z) ** 2))

        return jax.lax.fori_loop(0, steps, step, z)

    return drawn(function, normal(size, dtype=dtype), normal(size, dtype=dtype))
