"""Derivatives that are not one gradient: Hessians, Jacobians, per example, and updates of many small arrays."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.perf_fuzz.arguments import Argument, normal, weights
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


def _small_net(draw: Draw, most: int) -> tuple[Callable[..., Any], int, list[Argument]]:
    """A perceptron of one number, its inputs and its parameters."""
    widths = [draw.size(2, most), *(draw.size(2, most) for _ in range(draw.size(1, 2))), 1]
    parts = [part for a, b in pairwise(widths) for part in (weights(a, b), normal(b))]

    def net(x: Any, *parameters: Any) -> Any:
        for number in range(len(widths) - 1):
            x = x @ parameters[2 * number] + parameters[2 * number + 1]
            x = jnp.tanh(x) if number < len(widths) - 2 else x
        return x[..., 0]

    return net, widths[0], parts


@kind("derivatives")
def hessian_of_net(draw: Draw) -> Drawn:
    net, inputs, parts = _small_net(draw, 32)
    return drawn(jax.hessian(net), normal(inputs), parts)


@kind("derivatives")
def jacobian_of_net(draw: Draw) -> Drawn:
    """Of a vector of results by the inputs, for several examples."""
    inputs, hidden, outputs, rows = draw.size(2, 24), draw.size(2, 48), draw.size(2, 24), draw.size(1, 32)
    take = draw.pick(jax.jacfwd, jax.jacrev)

    def net(x: Any, up: Any, down: Any) -> Any:
        return jnp.tanh(x @ up) @ down

    return drawn(
        jax.vmap(take(net), in_axes=(0, None, None)), normal(rows, inputs), weights(inputs, hidden),
        weights(hidden, outputs), 
    )  # fmt: skip


@kind("derivatives")
def curvature_product(draw: Draw) -> Drawn:
    """A Hessian times a vector: forward over reverse."""
    net, inputs, parts = _small_net(draw, 64)
    rows = draw.size(1, 64)

    def function(x: Any, direction: Any, *parameters: Any) -> Any:
        def loss(first: Any) -> Any:
            return jnp.mean(jnp.square(net(x, first, *parameters[1:])))

        return jax.jvp(jax.grad(loss), (parameters[0],), (direction,))[1]

    return drawn(function, normal(rows, inputs), normal(*parts[0].shape), parts)


@kind("derivatives")
def gradients_by_example(draw: Draw) -> Drawn:
    """As private training clips them: a gradient of each example, scaled to a norm."""
    net, inputs, parts = _small_net(draw, 40)
    rows = draw.size(2, 64)

    def function(x: Any, *parameters: Any) -> Any:
        def one(example: Any) -> Any:
            gradients = jax.grad(lambda p: jnp.square(net(example, *p)))(parameters)
            size = jnp.sqrt(sum(jnp.sum(part * part) for part in gradients))
            return [part / jnp.maximum(1.0, size) for part in gradients]

        return [part.mean(0) for part in jax.vmap(one)(x)]

    return drawn(function, normal(rows, inputs), parts)


@kind("derivatives", batch=False)
def many_small_updates(draw: Draw) -> Drawn:
    """LAMB or Adam over tens of small parameters."""
    count = draw.size(4, 40)
    is_scaled = draw.chance(0.5)
    shapes = [draw.shape(draw.pick(1, 2, 2), 5e3) for _ in range(count)]

    def function(step: Any, *values: Any) -> Any:
        parameters, gradients, first, second = (values[n * count : (n + 1) * count] for n in range(4))
        results = []
        for p, g, m, v in zip(parameters, gradients, first, second, strict=True):
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            update = (m / (1 - 0.9**step)) / (jnp.sqrt(v / (1 - 0.999**step)) + 1e-6) + 0.01 * p
            if is_scaled:
                update = update * (jnp.linalg.norm(p) / (jnp.linalg.norm(update) + 1e-6))
            results.append((p - 1e-3 * update, m, v))
        return results

    return drawn(
        function, normal(shift=5, scale=0.1), [normal(*shape) for _ in range(2) for shape in shapes],
        [normal(*shape) for shape in shapes], [normal(*shape, scale=0.01, shift=0.1) for shape in shapes],
    )  # fmt: skip


@kind("derivatives", batch=False)
def steps_of_newton(draw: Draw) -> Drawn:
    """Rosenbrock's function by its Hessian and a solve, in a loop."""
    size, steps = draw.size(2, 16), draw.size(2, 10)

    def function(x: Any) -> Any:
        def value(x: Any) -> Any:
            return jnp.sum(100 * jnp.square(x[1:] - x[:-1] ** 2) + jnp.square(1 - x[:-1]))

        def step(x: Any, _: Any) -> Any:
            curvature = jax.hessian(value)(x) + 200 * jnp.eye(size)
            return x - jnp.linalg.solve(curvature, jax.grad(value)(x)), value(x)

        return jax.lax.scan(step, x, None, length=steps)[1]

    return drawn(function, normal(size, scale=0.3))


@kind("derivatives")
def residual_of_equation(draw: Draw) -> Drawn:
    """A physics-informed network: second derivatives at many points, and the gradient of their squares."""
    points, hidden = draw.size(2, 200), draw.size(4, 32)

    def function(x: Any, first: Any, bias: Any, last: Any) -> Any:
        def loss(first: Any, bias: Any, last: Any) -> Any:
            def field(t: Any) -> Any:
                return jnp.tanh(t * first + bias) @ last

            second = jax.vmap(jax.grad(jax.grad(field)))(x)
            return jnp.mean(jnp.square(second + jax.vmap(field)(x)))

        return jax.grad(loss, argnums=(0, 1, 2))(first, bias, last)

    return drawn(function, normal(points), normal(hidden), normal(hidden), normal(hidden, scale=0.3))
