"""Sampling of volumes at places that come with the call."""

from __future__ import annotations

from itertools import product
from typing import Any

import jax.numpy as jnp
import numpy as np

from hloforge.torch.registry import Call, lowers

_NEAREST = 1
_ZEROS, _BORDER = 0, 1


@lowers("aten.grid_sampler_3d")
def grid_sampler_3d(call: Call, x: Any, grid: Any, mode: int, padding: int, corners: bool) -> Any:
    """x: [batch, channels, depth, height, width]; grid: [batch, …, 3], of x, y, z between -1 and 1."""
    sizes = x.shape[:1:-1]
    places = [_place(grid[..., n], size, padding, corners) for n, size in enumerate(sizes)]
    if mode == _NEAREST:
        return _taken(x, [jnp.round(place) for place in places], sizes)
    lows = [jnp.floor(place) for place in places]
    total = jnp.zeros(call.shape, x.dtype)
    for corner in product((0, 1), repeat=3):
        weight = jnp.ones_like(places[0])
        for place, low, side in zip(places, lows, corner, strict=True):
            weight = weight * (place - low if side else 1 - (place - low))
        total = total + _taken(x, [low + side for low, side in zip(lows, corner, strict=True)], sizes) * weight[:, None]
    return total


def _place(value: Any, size: int, padding: int, corners: bool) -> Any:
    """Where a number between -1 and 1 lies on an axis."""
    place = (value + 1) / 2 * (size - 1) if corners else ((value + 1) * size - 1) / 2
    if padding == _ZEROS:
        return place
    if padding != _BORDER:
        low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
        span = high - low
        if span <= 0:
            return jnp.zeros_like(place)
        distance = jnp.mod(jnp.abs(place - low), 2 * span)
        place = jnp.where(distance > span, 2 * span - distance, distance) + low
    return jnp.clip(place, 0, size - 1)


def _taken(x: Any, places: list[Any], sizes: tuple[int, ...]) -> Any:
    """The elements at whole places, x first; zeros outside."""
    within = jnp.ones(places[0].shape, np.bool_)
    index = []
    for place, size in zip(places, sizes, strict=True):
        within &= (place >= 0) & (place <= size - 1)
        index.append(jnp.clip(place, 0, size - 1).astype(np.int64))
    batch = jnp.arange(x.shape[0]).reshape(-1, *[1] * (places[0].ndim - 1))
    # [batch, …, channels], for the indices stand on both sides of a slice.
    found = jnp.moveaxis(x[batch, :, index[2], index[1], index[0]], -1, 1)
    return jnp.where(within[:, None], found, 0)
