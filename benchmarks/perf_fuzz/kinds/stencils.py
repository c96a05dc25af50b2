"""Stencils: each element from its neighbours, once or in a loop of time steps."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.perf_fuzz.arguments import booleans, integers, normal, uniform
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


def _steps(draw: Draw, high: float = 2e7, most: int = 200) -> tuple[int, float]:
    """How many steps, and elements of each."""
    steps = draw.size(1, most)
    return steps, high / steps


@kind("stencils")
def game_of_life(draw: Draw) -> Drawn:
    steps, pixels = _steps(draw, 5e6)
    height, width = draw.image(pixels, least=4)
    dtype = draw.pick("int32", "int32", "int8", "uint8")

    def step(_: Any, world: Any) -> Any:
        near = sum(jnp.roll(world, (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0))
        return ((near == 3) | ((world == 1) & (near == 2))).astype(world.dtype)

    return drawn(lambda world: jax.lax.fori_loop(0, steps, step, world), integers(height, width, high=2, dtype=dtype))


@kind("stencils", gradient=True)
def heat_equation(draw: Draw) -> Drawn:
    steps, pixels = _steps(draw)
    height, width = draw.image(pixels, least=4)
    rate, dtype = draw.number(0.05, 0.24), draw.precise_type()
    form = draw.pick("slices", "rolls", "pads")

    def step(u: Any, _: Any) -> Any:
        if form == "slices":
            inner = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
            return u.at[1:-1, 1:-1].add(rate * inner), None
        if form == "rolls":
            around = sum(jnp.roll(u, shift, axis) for shift in (-1, 1) for axis in (0, 1))
            return u + rate * (around - 4 * u), None
        wide = jnp.pad(u, 1, mode="edge")
        around = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
        return u + rate * (around - 4 * u), None

    return drawn(lambda u: jax.lax.scan(step, u, None, length=steps)[0], normal(height, width, dtype=dtype))


@kind("stencils")
def wave_equation(draw: Draw) -> Drawn:
    steps, pixels = _steps(draw)
    height, width = draw.image(pixels, least=4)

    def function(u: Any, before: Any, speed: Any) -> Any:
        def step(_: Any, state: Any) -> Any:
            u, before = state
            around = sum(jnp.roll(u, shift, axis) for shift in (-1, 1) for axis in (0, 1)) - 4 * u
            return 2 * u - before + 0.2 * speed * around, u

        return jax.lax.fori_loop(0, steps, step, (u, before))

    return drawn(function, normal(height, width), normal(height, width, scale=0.1), uniform(height, width))


@kind("stencils")
def reaction_diffusion(draw: Draw) -> Drawn:
    steps, pixels = _steps(draw, 1e7)
    height, width = draw.image(pixels, least=4)
    feed, kill = draw.number(0.02, 0.06), draw.number(0.05, 0.07)

    def laplacian(u: Any) -> Any:
        near = sum(jnp.roll(u, shift, axis) for shift in (-1, 1) for axis in (0, 1))
        corners = sum(jnp.roll(u, (a, b), (0, 1)) for a in (-1, 1) for b in (-1, 1))
        return 0.2 * near + 0.05 * corners - u

    def step(_: Any, state: Any) -> Any:
        u, v = state
        reaction = u * v * v
        return u + 0.8 * laplacian(u) - reaction + feed * (1 - u), v + 0.4 * laplacian(v) + reaction - (feed + kill) * v

    return drawn(
        lambda u, v: jax.lax.fori_loop(0, steps, step, (u, v)),
        uniform(height, width, low=0.5),
        uniform(height, width, high=0.3),
    )


@kind("stencils", gradient=True)
def convolution_stencil(draw: Draw) -> Drawn:
    """A small convolution again and again, as cellular automata of neural networks."""
    steps, pixels = _steps(draw, 1e6, 40)
    height, width = draw.image(pixels, least=4)
    channels = draw.pick(1, 1, 3, 8)

    def function(image: Any, kernel: Any) -> Any:
        def step(u: Any, _: Any) -> Any:
            update = jax.lax.conv_general_dilated(u, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            return jnp.tanh(u + 0.1 * update), None

        return jax.lax.scan(step, image[None], None, length=steps)[0][0]

    return drawn(function, normal(height, width, channels), normal(3, 3, channels, channels, scale=0.2))


@kind("stencils", gradient=True)
def stencil_in_space(draw: Draw) -> Drawn:
    steps, points = _steps(draw, 2e7, 30)
    a, b, c = draw.sizes(draw.work(64, max(points, 100)), 3, least=3)

    def step(u: Any, _: Any) -> Any:
        inner = sum(
            jax.lax.slice_in_dim(
                jax.lax.slice_in_dim(jax.lax.slice_in_dim(u, x, a - 2 + x, axis=0), y, b - 2 + y, axis=1),
                z, c - 2 + z, axis=2,
            )
            for x, y, z in ((0, 1, 1), (2, 1, 1), (1, 0, 1), (1, 2, 1), (1, 1, 0), (1, 1, 2))
        )  # fmt: skip
        return 0.4 * u + 0.1 * jnp.pad(inner, 1), None

    return drawn(lambda u: jax.lax.scan(step, u, None, length=steps)[0], normal(a, b, c))


@kind("stencils")
def advection(draw: Draw) -> Drawn:
    """Upwind differences with a limiter, along a line or many."""
    steps, points = _steps(draw)
    rows, columns = draw.sizes(draw.work(20, max(points, 40)), 2, least=1)
    columns = max(4, columns)

    def step(_: Any, u: Any) -> Any:
        left, right = u - jnp.roll(u, 1, -1), jnp.roll(u, -1, -1) - u
        slope = jnp.where(left * right > 0, jnp.sign(left) * jnp.minimum(jnp.abs(left), jnp.abs(right)), 0)
        flux = 0.3 * (u + 0.35 * slope)
        return u - flux + jnp.roll(flux, 1, -1)

    return drawn(lambda u: jax.lax.fori_loop(0, steps, step, u), uniform(rows, columns))


@kind("stencils", gradient=True)
def differences(draw: Draw) -> Drawn:
    """Derivatives of a field: divergence, curl, squared gradients."""
    height, width = draw.image(3e6, least=4)
    dtype = draw.precise_type()

    def function(u: Any, v: Any) -> Any:
        def along(x: Any, axis: int) -> Any:
            return 0.5 * (jnp.roll(x, -1, axis) - jnp.roll(x, 1, axis))

        return (
            along(u, 1) + along(v, 0),
            along(v, 1) - along(u, 0),
            jnp.sqrt(along(u, 0) ** 2 + along(u, 1) ** 2 + 1e-3),
        )

    return drawn(function, normal(height, width, dtype=dtype), normal(height, width, dtype=dtype))


@kind("stencils")
def morphology(draw: Draw) -> Drawn:
    """Flood fill: a seed grows within a mask until nothing changes, or for some steps."""
    height, width = draw.image(2e5, least=4)
    most = draw.size(3, 60)

    def function(seed: Any, mask: Any) -> Any:
        def grown(x: Any) -> Any:
            around = x
            for axis in (0, 1):
                for shift in (-1, 1):
                    around = around | jnp.roll(x, shift, axis)
            return around & mask

        def step(state: Any) -> Any:
            x, _, count = state
            after = grown(x)
            return after, jnp.any(after != x), count + 1

        start = (seed & mask, jnp.bool_(True), jnp.int32(0))
        return jax.lax.while_loop(lambda state: state[1] & (state[2] < most), step, start)[::2]

    return drawn(function, booleans(height, width, share=0.01), booleans(height, width, share=0.7))
