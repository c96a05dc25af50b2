"""Physics, chemistry, finance, graphics."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.perf_fuzz.arguments import bits, integers, normal, uniform
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


@kind("science", gradient=True)
def n_body(draw: Draw) -> Drawn:
    bodies, steps, dtype = draw.size(2, 300), draw.size(1, 20), draw.precise_type()

    def function(x: Any, v: Any, mass: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            x, v = state
            apart = x[None] - x[:, None]
            square = jnp.sum(apart * apart, -1) + 0.1
            pull = jnp.einsum("ijd,ij,j->id", apart, square**-1.5, mass)
            v = v + 1e-3 * pull
            return (x + 1e-3 * v, v), None

        return jax.lax.scan(step, (x, v), None, length=steps)[0]

    return drawn(function, normal(bodies, 3, dtype=dtype), normal(bodies, 3, dtype=dtype), uniform(bodies, dtype=dtype))


@kind("science")
def molecules(draw: Draw) -> Drawn:
    """Energy and forces of a Lennard-Jones liquid in a periodic box, with a cutoff."""
    atoms = draw.size(4, 600)
    box = round(draw.number(1.1, 1.6) * atoms ** (1 / 3), 2)

    def energy(x: Any) -> Any:
        apart = x[None] - x[:, None]
        apart = apart - box * jnp.round(apart / box)
        square = jnp.sum(apart * apart, -1) + 0.8 + 10 * jnp.eye(atoms)
        sixth = square**-3
        return 2 * jnp.sum(jnp.where(square < 6.25, sixth * sixth - sixth, 0.0))

    return drawn(jax.value_and_grad(energy), uniform(atoms, 3, high=box))


@kind("science", batch=False)
def ising(draw: Draw) -> Drawn:
    steps = draw.size(1, 60)
    height, width = draw.image(2e6 / steps, least=4)
    height, width = height + height % 2, width + width % 2
    heat = draw.number(1.0, 4.0)

    def function(key: Any, spins: Any) -> Any:
        board = (jnp.arange(height)[:, None] + jnp.arange(width)[None]) % 2

        def step(number: Any, spins: Any) -> Any:
            near = sum(jnp.roll(spins, shift, axis) for shift in (-1, 1) for axis in (0, 1))
            luck = jax.random.uniform(jax.random.fold_in(key, number), (height, width))
            flips = (luck < jnp.exp(-2.0 / heat * (spins * near).astype(jnp.float32))) & (board == number % 2)
            return jnp.where(flips, -spins, spins)

        spins = jax.lax.fori_loop(0, steps, step, 2 * spins - 1)
        return spins, spins.sum()

    return drawn(function, bits(2), integers(height, width, high=2))


@kind("science", gradient=True)
def option_prices(draw: Draw) -> Drawn:
    """Black and Scholes."""
    shape, dtype = draw.shape(draw.pick(1, 2), 2e6), draw.precise_type()

    def function(spot: Any, strike: Any, time: Any, noise: Any) -> Any:
        root = noise * jnp.sqrt(time)
        d = (jnp.log(spot / strike) + (0.02 + 0.5 * noise**2) * time) / root
        cdf = jax.scipy.stats.norm.cdf
        return spot * cdf(d) - strike * jnp.exp(-0.02 * time) * cdf(d - root)

    return drawn(
        function,
        *(
            uniform(*shape, dtype=dtype, low=low, high=high)
            for low, high in ((50, 150), (50, 150), (0.1, 2), (0.1, 0.5))
        ),
    )


@kind("science", batch=False)
def monte_carlo(draw: Draw) -> Drawn:
    paths, steps = draw.size(10, 5000), draw.size(2, 60)
    barrier = draw.number(0.7, 0.95)

    def function(key: Any, start: Any) -> Any:
        noise = jax.random.normal(key, (steps, paths))
        logs = jnp.cumsum(0.01 * noise - 5e-5, axis=0)
        prices = start * jnp.exp(logs)
        alive = jnp.min(prices, axis=0) > barrier * start
        return jnp.mean(jnp.where(alive, jnp.maximum(prices[-1] - start, 0), 0)), prices[-1]

    return drawn(function, bits(2), uniform(low=0.5, high=2.0))


@kind("science")
def spheres_and_rays(draw: Draw) -> Drawn:
    rays, spheres = draw.size(10, 50_000), draw.size(1, 30)

    def function(directions: Any, centers: Any, sizes: Any) -> Any:
        rays_of = directions / (jnp.linalg.norm(directions, axis=-1, keepdims=True) + 1e-3)
        along = rays_of @ centers.T
        inside = along**2 - jnp.sum(centers**2, -1) + sizes**2
        depth = jnp.where(inside > 0.01, along - jnp.sqrt(jnp.maximum(inside, 0.01)), 1e3)
        nearest = jnp.min(jnp.where(depth > 0, depth, 1e3), axis=1)
        return jnp.where(nearest < 1e3, 1 / (1 + nearest), 0.0)

    return drawn(function, normal(rays, 3), normal(spheres, 3, scale=3.0), uniform(spheres, low=0.5, high=2.0))


@kind("science", gradient=True)
def distances(draw: Draw) -> Drawn:
    rows, columns, features = draw.size(2, 1500), draw.size(2, 1000), draw.size(1, 40)
    form = draw.pick("square", "product", "absolute")
    if form != "product":
        rows = max(2, min(rows, int(1e7 / (columns * features * draw.scale))))

    def function(x: Any, y: Any) -> Any:
        if form == "product":
            return jnp.sum(x * x, -1)[:, None] + jnp.sum(y * y, -1)[None] - 2 * x @ y.T
        apart = x[:, None] - y[None]
        return jnp.sqrt(jnp.sum(apart**2, -1) + 1e-3) if form == "square" else jnp.sum(jnp.abs(apart), -1)

    return drawn(function, normal(rows, features), normal(columns, features))


@kind("science", gradient=True)
def kernel_regression(draw: Draw) -> Drawn:
    points, wanted, features = draw.size(3, 800), draw.size(1, 800), draw.size(1, 10)

    def function(x: Any, y: Any, at: Any) -> Any:
        square = jnp.sum((at[:, None] - x[None]) ** 2, -1)
        return jax.nn.softmax(-square / (0.3 * features), axis=-1) @ y

    return drawn(function, normal(points, features), normal(points), normal(wanted, features))


@kind("science")
def nearest_neighbours(draw: Draw) -> Drawn:
    points, wanted, features = draw.size(8, 3000), draw.size(1, 200), draw.size(1, 24)
    count = draw.size(1, min(8, points))

    def function(at: Any, x: Any, y: Any) -> Any:
        square = jnp.sum(x * x, -1)[None] - 2 * at @ x.T
        near, places = jax.lax.top_k(-square, count)
        return near, y[places].mean(-1)

    return drawn(function, normal(wanted, features), normal(points, features), normal(points))


@kind("science", batch=False)
def flocking(draw: Draw) -> Drawn:
    birds, steps = draw.size(3, 250), draw.size(1, 15)

    def function(x: Any, v: Any) -> Any:
        def step(_: Any, state: Any) -> Any:
            x, v = state
            apart = x[None] - x[:, None]
            near = jnp.exp(-jnp.sum(apart**2, -1) / 0.5)
            weight = near.sum(1, keepdims=True)
            v = v + 0.05 * ((near @ v) / weight - v) + 0.02 * jnp.einsum("ij,ijd->id", near, apart) / weight
            v = v / jnp.maximum(jnp.linalg.norm(v, axis=-1, keepdims=True), 0.3)
            return (x + 0.02 * v) % 4.0, v

        return jax.lax.fori_loop(0, steps, step, (x, v))

    return drawn(function, uniform(birds, 2, high=4.0), normal(birds, 2))


@kind("science", gradient=True)
def positional_features(draw: Draw) -> Drawn:
    """Sines and cosines of many frequencies, as of radiance fields, into a layer."""
    rows, features, bands = draw.size(2, 8000), draw.pick(2, 3), draw.size(2, 10)
    width = draw.size(4, 64)

    def function(x: Any, w: Any) -> Any:
        angles = (x[..., None] * 2.0 ** jnp.arange(bands)).reshape(rows, -1)
        return jax.nn.relu(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1) @ w)

    return drawn(function, uniform(rows, features, low=-1), normal(2 * features * bands, width, scale=0.3))


@kind("science", gradient=True)
def splats(draw: Draw) -> Drawn:
    """Gaussians blended into an image from front to back."""
    pixels, splats_ = draw.size(20, 4000), draw.size(2, 60)

    def function(pixel: Any, center: Any, sharpness: Any, colour: Any) -> Any:
        def step(state: Any, splat: Any) -> Any:
            image, clear = state
            place, sharp, tint = splat
            alpha = 0.9 * jnp.exp(-sharp * jnp.sum((pixel - place) ** 2, -1))
            return (image + (clear * alpha)[:, None] * tint, clear * (1 - alpha)), None

        start = (jnp.zeros((pixels, 3)), jnp.ones(pixels))
        return jax.lax.scan(step, start, (center, sharpness, colour))[0][0]

    return drawn(
        function, uniform(pixels, 2), uniform(splats_, 2), uniform(splats_, low=1.0, high=30.0), uniform(splats_, 3)
    )
