"""Points, rays, regions of images, noise."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.perf_fuzz.arguments import booleans, integers, normal, uniform
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


@kind("geometry", batch=False)
def farthest_points(draw: Draw) -> Drawn:
    count, chosen = draw.size(20, 5000), draw.size(2, 40)

    def function(points: Any) -> Any:
        def step(number: Any, state: Any) -> Any:
            places, least, last = state
            least = jnp.minimum(least, jnp.sum(jnp.square(points - points[last]), -1))
            last = jnp.argmax(least).astype(jnp.int32)
            return places.at[number].set(last), least, last

        start = (jnp.zeros(chosen, jnp.int32), jnp.full(count, jnp.inf), jnp.int32(0))
        return jax.lax.fori_loop(1, chosen, step, start)[0]

    return drawn(function, normal(count, 3), share=0.3)


@kind("geometry", gradient=True)
def chamfer_distance(draw: Draw) -> Drawn:
    a, b, rank = draw.size(4, 700), draw.size(4, 700), draw.pick(2, 3, 3)

    def function(x: Any, y: Any) -> Any:
        distances = jnp.sum(jnp.square(x[:, None] - y[None]), -1)
        return distances.min(0).mean() + distances.min(1).mean()

    return drawn(function, normal(a, rank), normal(b, rank))


@kind("geometry")
def ray_marching(draw: Draw) -> Drawn:
    """Distances of a scene, step by step along each ray."""
    height, width = draw.image(2e4)
    steps = draw.size(4, 40)

    def function(origin: Any) -> Any:
        y, x = jnp.mgrid[-1.0 : 1.0 : height * 1j, -1.0 : 1.0 : width * 1j]
        way = jnp.stack([x, y, jnp.full_like(x, 1.5)], -1)
        way = way / jnp.linalg.norm(way, axis=-1, keepdims=True)

        def distance(p: Any) -> Any:
            ball = jnp.linalg.norm(p - jnp.array([0.0, 0.0, 4.0]), axis=-1) - 1.0
            box = jnp.max(jnp.abs(p - jnp.array([1.0, 0.5, 5.0])), axis=-1) - 0.7
            return jnp.minimum(jnp.minimum(ball, box), p[..., 1] + 1.5)

        def step(_: Any, t: Any) -> Any:
            return t + 0.8 * distance(origin + t[..., None] * way)

        return jax.lax.fori_loop(0, steps, step, jnp.zeros((height, width)))

    return drawn(function, normal(3, scale=0.1))


@kind("geometry")
def gradient_noise(draw: Draw) -> Drawn:
    """Perlin's: hashed corners and smooth interpolation, in octaves."""
    height, width = draw.image(5e4)
    octaves = draw.size(1, 4)

    def function(table: Any, offset: Any) -> Any:
        y, x = jnp.mgrid[0 : 8.0 : height * 1j, 0 : 8.0 : width * 1j]
        total = jnp.zeros((height, width))
        for octave in range(octaves):
            u, v = (x + offset[0]) * 2**octave, (y + offset[1]) * 2**octave
            iu, iv = jnp.floor(u).astype(jnp.int32), jnp.floor(v).astype(jnp.int32)
            fu, fv = u - iu, v - iv

            def corner(a: Any, b: Any, iu: Any = iu, iv: Any = iv, fu: Any = fu, fv: Any = fv) -> Any:
                angle = table[(table[(iu + a) & 255] + iv + b) & 255].astype(jnp.float32)
                return jnp.cos(angle) * (fu - a) + jnp.sin(angle) * (fv - b)

            su, sv = (f * f * (3 - 2 * f) for f in (fu, fv))
            low = corner(0, 0) * (1 - su) + corner(1, 0) * su
            high = corner(0, 1) * (1 - su) + corner(1, 1) * su
            total = total + (low * (1 - sv) + high * sv) * 0.5**octave
        return total

    return drawn(function, integers(256, high=256), uniform(2, high=100.0))


@kind("geometry")
def components(draw: Draw) -> Drawn:
    """Labels of regions: the least number among neighbours until nothing changes."""
    height, width = draw.image(4e3)

    def function(mask: Any) -> Any:
        first = jnp.where(mask, jnp.arange(height * width, dtype=jnp.int32).reshape(height, width), height * width)

        def step(state: Any) -> Any:
            labels, _, count = state
            padded = jnp.pad(labels, 1, constant_values=height * width)
            least = labels
            for part in (padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]):
                least = jnp.minimum(least, part)
            after = jnp.where(mask, least, height * width)
            return after, jnp.any(after != labels), count + 1

        return jax.lax.while_loop(lambda s: s[1] & (s[2] < 100), step, (first, jnp.bool_(True), jnp.int32(0)))[0]

    return drawn(function, booleans(height, width, share=0.6))


@kind("geometry")
def integral_image(draw: Draw) -> Drawn:
    """Sums of any rectangle by four reads."""
    height, width = draw.image(3e5)
    count = draw.size(3, 3000)

    def function(image: Any, boxes: Any) -> Any:
        table = jnp.pad(jnp.cumsum(jnp.cumsum(image, 0), 1), ((1, 0), (1, 0)))
        top, left = boxes[:, 0], boxes[:, 1]
        bottom, right = jnp.minimum(top + boxes[:, 2], height), jnp.minimum(left + boxes[:, 3], width)
        return table[bottom, right] - table[top, right] - table[bottom, left] + table[top, left]

    return drawn(function, uniform(height, width), integers(count, 4, high=min(height, width)))


@kind("geometry", gradient=True)
def bilateral_filter(draw: Draw) -> Drawn:
    height, width = draw.image(1e4)
    reach = draw.pick(1, 1, 2)

    def function(image: Any) -> Any:
        padded = jnp.pad(image, reach, mode="edge")
        total = norm = jnp.zeros_like(image)
        for dy in range(2 * reach + 1):
            for dx in range(2 * reach + 1):
                other = padded[dy : dy + height, dx : dx + width]
                weight = jnp.exp(-jnp.square(other - image) / 0.1 - 0.2 * ((dy - reach) ** 2 + (dx - reach) ** 2))
                total, norm = total + weight * other, norm + weight
        return total / norm

    return drawn(function, uniform(height, width))


@kind("geometry", gradient=True)
def regions_of_interest(draw: Draw) -> Drawn:
    """ROI align: bilinear samples of boxes."""
    height, width = draw.image(4e3, least=10)
    features, count, side = draw.size(1, 32), draw.size(1, 60), draw.size(2, 8)

    def function(image: Any, boxes: Any) -> Any:
        grid = (jnp.arange(side) + 0.5) / side

        def one(box: Any) -> Any:
            y = (box[0] + box[2] * grid) * (height - 2)
            x = (box[1] + box[3] * grid) * (width - 2)
            iy, ix = jnp.floor(y).astype(jnp.int32), jnp.floor(x).astype(jnp.int32)
            fy, fx = (y - iy)[:, None, None], (x - ix)[None, :, None]
            top = image[iy[:, None], ix] * (1 - fx) + image[iy[:, None], ix + 1] * fx
            bottom = image[iy[:, None] + 1, ix] * (1 - fx) + image[iy[:, None] + 1, ix + 1] * fx
            return top * (1 - fy) + bottom * fy

        return jax.vmap(one)(boxes)

    return drawn(function, normal(height, width, features), uniform(count, 4, high=0.5))


@kind("geometry")
def histogram_equalization(draw: Draw) -> Drawn:
    height, width = draw.image(2e5)

    def function(image: Any) -> Any:
        counts = jnp.bincount(image.reshape(-1), length=256)
        table = jnp.cumsum(counts)
        table = (255 * (table - table[0])) // jnp.maximum(height * width - table[0], 1)
        return table.astype(jnp.uint8)[image]

    return drawn(function, integers(height, width, high=256))


@kind("geometry")
def lines_by_voting(draw: Draw) -> Drawn:
    """Hough's transform of some edge points."""
    points, angles, bins = draw.size(5, 2000), draw.size(4, 60), draw.size(8, 200)

    def function(x: Any, y: Any) -> Any:
        angle = jnp.arange(angles) * (jnp.pi / angles)
        radius = x[:, None] * jnp.cos(angle) + y[:, None] * jnp.sin(angle)
        place = jnp.clip(((radius + 1.5) / 3 * bins).astype(jnp.int32), 0, bins - 1)
        votes = jnp.zeros((angles, bins), jnp.int32)
        return votes.at[jnp.broadcast_to(jnp.arange(angles), place.shape), place].add(1)

    return drawn(function, uniform(points), uniform(points), share=0.02)


@kind("geometry")
def dithering(draw: Draw) -> Drawn:
    """Errors diffused row by row: a loop in a loop."""
    height, width = draw.image(5e3)

    def function(image: Any) -> Any:
        def row(below: Any, values: Any) -> Any:
            def pixel(error: Any, value: Any) -> Any:
                value = value + error
                out = jnp.round(value)
                rest = value - out
                return rest * 0.4375, (out, rest)

            _, (out, rest) = jax.lax.scan(pixel, jnp.float32(0), values + below)
            near = jnp.pad(rest, 1)
            return near[:-2] * 0.1875 + near[1:-1] * 0.3125 + near[2:] * 0.0625, out

        return jax.lax.scan(row, jnp.zeros(width), image)[1]

    return drawn(function, uniform(height, width), share=0.05)
