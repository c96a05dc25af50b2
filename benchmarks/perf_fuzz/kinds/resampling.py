"""Images at other places: interpolation by gathers as PyTorch's functions are written out, whose gradients scatter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from benchmarks.perf_fuzz.arguments import integers, normal, uniform
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


def _places(count: int, size: int, *, corners: bool) -> Any:
    """Where samples lie along a dimension, with corners on corners or edges on edges."""
    numbers = jnp.arange(count, dtype=jnp.float32)
    return numbers * ((size - 1) / max(count - 1, 1)) if corners else (numbers + 0.5) * (size / count) - 0.5


def _sizes(draw: Draw, elements: float) -> tuple[tuple[int, int, int, int], tuple[int, int]]:
    """Of a batch of images with features first, and of the images that they become."""
    batch, channels = draw.size(1, 4), draw.size(1, 24)
    height, width = draw.image(elements / (batch * channels), least=6)
    factor = draw.pick(0.4, 0.7, 1.3, 2.0, 2.5)
    return (batch, channels, height, width), (max(2, int(height * factor)), max(2, int(width * factor)))


def _cubic(distance: Any) -> Sequence[Any]:
    """Weights of four neighbours."""

    def near(t: Any) -> Any:
        return (1.25 * t - 2.25) * t * t + 1

    def far(t: Any) -> Any:
        return ((-0.75 * t + 3.75) * t - 6.0) * t + 3.0

    return far(distance + 1), near(distance), near(1 - distance), far(2 - distance)


@kind("resampling", gradient=True)
def bicubic_by_gathers(draw: Draw) -> Drawn:
    shape, to = _sizes(draw, 4e5)
    corners = draw.chance(0.5)

    def function(image: Any) -> Any:
        sizes = image.shape[-2:]
        found = [_places(count, size, corners=corners) for count, size in zip(to, sizes, strict=True)]
        firsts = [jnp.floor(place).astype(jnp.int32) for place in found]
        down, across = (_cubic(place - first) for place, first in zip(found, firsts, strict=True))
        rows = []
        for i in range(4):
            y = jnp.clip(firsts[0] + i - 1, 0, sizes[0] - 1)[:, None]
            x = [jnp.clip(firsts[1] + j - 1, 0, sizes[1] - 1)[None] for j in range(4)]
            rows.append(sum(image[..., y, x[j]] * across[j] for j in range(4)))
        return sum(row * weight[:, None] for row, weight in zip(rows, down, strict=True))

    return drawn(function, uniform(*shape))


@kind("resampling", gradient=True)
def bilinear_by_gathers(draw: Draw) -> Drawn:
    shape, to = _sizes(draw, 1e6)
    corners, at_once = draw.chance(0.5), draw.chance(0.5)

    def function(image: Any) -> Any:
        height, width = image.shape[-2:]
        y, x = (jnp.maximum(_places(n, size, corners=corners), 0) for n, size in zip(to, (height, width), strict=True))
        top, left = jnp.floor(y).astype(jnp.int32), jnp.floor(x).astype(jnp.int32)
        below, right = jnp.minimum(top + 1, height - 1), jnp.minimum(left + 1, width - 1)
        down, across = (y - top)[:, None], x - left

        def at(rows: Any, columns: Any) -> Any:
            if at_once:
                return image[..., rows[:, None], columns[None]]
            return jnp.take(jnp.take(image, rows, axis=-2), columns, axis=-1)

        first = at(top, left) * (1 - across) + at(top, right) * across
        second = at(below, left) * (1 - across) + at(below, right) * across
        return first * (1 - down) + second * down

    return drawn(function, uniform(*shape))


@kind("resampling", gradient=True)
def nearest_by_gathers(draw: Draw) -> Drawn:
    shape, to = _sizes(draw, 2e6)
    shift = draw.pick(0.0, 0.5)

    def function(image: Any) -> Any:
        y, x = (
            jnp.floor((jnp.arange(count) + shift) * (size / count)).astype(jnp.int32)
            for count, size in zip(to, image.shape[-2:], strict=True)
        )
        return image[..., y[:, None], x[None]]

    return drawn(function, uniform(*shape))


@kind("resampling", gradient=True, batch=False)
def grid_sample(draw: Draw) -> Drawn:
    """At places that the caller gives, from -1 to 1."""
    (batch, channels, height, width), to = _sizes(draw, 3e5)
    has_borders = draw.chance(0.5)

    def function(images: Any, grid: Any) -> Any:
        x, y = ((grid[..., 0] + 1) * width - 1) / 2, ((grid[..., 1] + 1) * height - 1) / 2
        if has_borders:
            x, y = jnp.clip(x, 0, width - 1), jnp.clip(y, 0, height - 1)
        left, top = jnp.floor(x), jnp.floor(y)
        number, last = jnp.arange(batch)[:, None, None], images.transpose(0, 2, 3, 1)

        def at(rows: Any, columns: Any, weight: Any) -> Any:
            i, j = rows.astype(jnp.int32), columns.astype(jnp.int32)
            is_inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
            found = last[number, jnp.clip(i, 0, height - 1), jnp.clip(j, 0, width - 1)]
            return jnp.where(is_inside[..., None], found, 0) * weight[..., None]

        across, down = x - left, y - top
        first = at(top, left, (1 - across) * (1 - down)) + at(top, left + 1, across * (1 - down))
        second = at(top + 1, left, (1 - across) * down) + at(top + 1, left + 1, across * down)
        return (first + second).transpose(0, 3, 1, 2)

    return drawn(function, uniform(batch, channels, height, width), uniform(batch, *to, 2, low=-1.1, high=1.1))


@kind("resampling")
def luma_and_chroma(draw: Draw) -> Drawn:
    """Bytes of three colours as brightness, and two differences of half the resolution, in integers."""
    height, width = draw.image(3e5)
    matrix = np.array([[66, 129, 25], [-38, -74, 112], [112, -94, -18]], np.int32)

    def function(image: Any) -> Any:
        mixed = (image.astype(jnp.int32) @ matrix.T + 128) >> 8
        halves = mixed[..., 1:].reshape(height // 2, 2, width // 2, 2, 2).sum((1, 3)) >> 2
        return (mixed[..., 0] + 16).astype(jnp.uint8), (halves + 128).astype(jnp.uint8)

    height, width = height // 2 * 2, width // 2 * 2
    return drawn(function, integers(height, width, 3, high=256, dtype="uint8"))


@kind("resampling", gradient=True)
def small_matrices(draw: Draw) -> Drawn:
    """Points in another frame: by one matrix, or each by its own."""
    dtype = draw.pick("float32", "float32", "float64", "int32")
    terms, columns, count = draw.size(2, 6), draw.size(1, 6), draw.elements(1e6, 100)

    def one(points: Any, matrix: Any) -> Any:
        return points @ matrix

    def each(points: Any, matrices: Any) -> Any:
        return jnp.einsum("nij,nj->ni", matrices, points)

    def fill(*shape: int) -> Any:
        return integers(*shape, high=99, dtype=dtype) if dtype == "int32" else normal(*shape, dtype=dtype)

    if draw.chance(0.6):
        return drawn(one, fill(max(1, count // terms), terms), fill(terms, columns))
    pairs = max(1, count // (terms * (columns + 1)))
    return drawn(each, fill(pairs, terms), fill(pairs, columns, terms))
