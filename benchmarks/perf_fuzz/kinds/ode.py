"""Integrators of differential equations: small operations in loops."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.perf_fuzz.arguments import bits, normal, uniform, weights
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, Function, drawn, kind


def _runge_kutta(slope: Function, y: Any, h: float) -> Any:
    a = slope(y)
    b = slope(y + 0.5 * h * a)
    c = slope(y + 0.5 * h * b)
    d = slope(y + h * c)
    return y + h / 6 * (a + 2 * b + 2 * c + d)


@kind("ode", gradient=True)
def lorenz(draw: Draw) -> Drawn:
    steps, rows = draw.size(10, 500), draw.size(1, 2000)
    is_kept, dtype = draw.chance(0.4), draw.precise_type()

    def slope(y: Any) -> Any:
        a, b, c = y[..., 0], y[..., 1], y[..., 2]
        return jnp.stack([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c], axis=-1)

    def function(y: Any) -> Any:
        def step(y: Any, _: Any) -> Any:
            y = _runge_kutta(slope, y, 2e-3)
            return y, (y if is_kept else None)

        last, all_ = jax.lax.scan(step, y, None, length=steps)
        return all_ if is_kept else last

    return drawn(function, normal(rows, 3, dtype=dtype))


@kind("ode")
def adaptive_solver(draw: Draw) -> Drawn:
    """Heun with Euler inside, steps by the error, until the end of time."""
    size, end, allowed = draw.size(1, 500), draw.number(0.5, 3.0), draw.pick(1e-2, 1e-3)

    def function(y: Any, rates: Any) -> Any:
        def slope(y: Any) -> Any:
            return jnp.sin(rates) - rates * y + 0.1 * y * y

        def step(state: Any) -> Any:
            t, h, y, count = state
            h = jnp.minimum(h, end - t)
            a = slope(y)
            euler = y + h * a
            heun = y + 0.5 * h * (a + slope(euler))
            error = jnp.max(jnp.abs(heun - euler)) + 1e-9
            is_good = error < allowed
            after = h * jnp.clip(0.9 * jnp.sqrt(allowed / error), 0.3, 3.0)
            return jnp.where(is_good, t + h, t), after, jnp.where(is_good, heun, y), count + 1

        start = (jnp.float32(0), jnp.float32(0.05), y, jnp.int32(0))
        return jax.lax.while_loop(lambda state: (state[0] < end - 1e-6) & (state[3] < 3000), step, start)[2]

    return drawn(function, normal(size), uniform(size, low=0.5, high=4.0))


@kind("ode", gradient=True)
def leapfrog(draw: Draw) -> Drawn:
    """Hamiltonian Monte Carlo's steps on a normal distribution."""
    steps, rows, size = draw.size(3, 100), draw.size(1, 100), draw.size(2, 60)

    def function(q: Any, p: Any, precision: Any) -> Any:
        matrix = precision @ precision.T + jnp.eye(size)

        def step(state: Any, _: Any) -> Any:
            q, p = state
            p = p - 0.02 * (q @ matrix)
            q = q + 0.04 * p
            return (q, p - 0.02 * (q @ matrix)), None

        return jax.lax.scan(step, (q, p), None, length=steps)[0]

    return drawn(function, normal(rows, size), normal(rows, size), weights(size, size))


@kind("ode", batch=False)
def stochastic_steps(draw: Draw) -> Drawn:
    """Euler and Maruyama, with random numbers drawn in the loop."""
    steps, paths = draw.size(3, 150), draw.size(4, 3000)
    rate, noise = draw.number(0.2, 2.0), draw.number(0.1, 0.5)

    def function(key: Any, x: Any) -> Any:
        def step(number: Any, x: Any) -> Any:
            z = jax.random.normal(jax.random.fold_in(key, number), (paths,))
            return x + 0.01 * rate * (1 - x) + 0.1 * noise * z

        return jax.lax.fori_loop(0, steps, step, x)

    return drawn(function, bits(2), normal(paths))


@kind("ode", gradient=True)
def neural_ode(draw: Draw) -> Drawn:
    steps, rows, size, hidden = draw.size(2, 30), draw.size(1, 64), draw.size(2, 32), draw.size(4, 96)

    def function(y: Any, w: Any, v: Any) -> Any:
        def step(y: Any, _: Any) -> Any:
            return _runge_kutta(lambda y: jnp.tanh(y @ w) @ v, y, 0.05), None

        return jax.lax.scan(step, y, None, length=steps)[0]

    return drawn(function, normal(rows, size), weights(size, hidden), weights(hidden, size))


@kind("ode")
def implicit_steps(draw: Draw) -> Drawn:
    """Backward Euler of a stiff equation, each step by some of Newton's, elementwise."""
    steps, size, turns = draw.size(3, 120), draw.size(1, 5000), draw.size(2, 6)

    def function(y: Any, rate: Any) -> Any:
        def step(_: Any, before: Any) -> Any:
            def newton(_: Any, y: Any) -> Any:
                value = y - before + 0.05 * rate * (y * y * y - y)
                return y - value / (1 + 0.05 * rate * (3 * y * y - 1))

            return jax.lax.fori_loop(0, turns, newton, before)

        return jax.lax.fori_loop(0, steps, step, y)

    return drawn(function, normal(size), uniform(size, low=0.5, high=8.0))


@kind("ode")
def coupled_oscillators(draw: Draw) -> Drawn:
    """Kuramoto's model: sines of all differences of phases."""
    steps, size = draw.size(2, 100), draw.size(4, 200)

    def function(phases: Any, rates: Any) -> Any:
        def step(_: Any, x: Any) -> Any:
            pull = jnp.mean(jnp.sin(x[None, :] - x[:, None]), axis=1)
            return x + 0.02 * (rates + 0.8 * pull)

        return jax.lax.fori_loop(0, steps, step, phases)

    return drawn(function, normal(size), normal(size))
