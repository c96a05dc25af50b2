"""Sampling of volumes at indices that are arguments of the call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hloforge.torch.registry import Call, lowers

_NEAREST, _CUBIC = 1, 2
_ZEROS, _BORDER = 0, 1


@lowers("aten.grid_sampler_3d")
def grid_sampler_3d(call: Call, x: Any, grid: Any, mode: int, padding: int, corners: bool) -> Any:
    """x: [batch, channels, depth, height, width]; grid: [batch, …, 3], of x, y, z between -1 and 1."""
    return _sampled(x, grid, mode, padding, corners)


@lowers("aten.grid_sampler_2d_backward", "aten.grid_sampler_3d_backward")
def grid_sampler_backward(
    call: Call, gradient: Any, x: Any, grid: Any, mode: int, padding: int, corners: bool, wanted: Sequence[bool]
) -> Any:
    """The gradients of x and of the grid."""
    _, backward = jax.vjp(lambda x, grid: _sampled(x, grid, mode, padding, corners), x, grid)
    return tuple(each if is_wanted else None for each, is_wanted in zip(backward(gradient), wanted, strict=True))


def _sampled(x: Any, grid: Any, mode: int, padding: int, corners: bool) -> Any:
    """The elements of x, [batch, channels, …], at the positions of a grid, [batch, …, rank]: [batch, channels, …]."""
    sizes = x.shape[:1:-1]
    places = [_scaled(grid[..., n], size, corners) for n, size in enumerate(sizes)]
    if mode != _CUBIC:
        places = [_within(place, size, padding, corners) for place, size in zip(places, sizes, strict=True)]
    if mode == _NEAREST:
        return _taken(x, [jnp.round(place) for place in places], sizes)
    lows = [jnp.floor(place) for place in places]
    shares = [(_cubic if mode == _CUBIC else _linear)(place - low) for place, low in zip(places, lows, strict=True)]
    total: Any = 0
    for corner in product(*map(dict.items, shares)):
        taps = [low + offset for low, (offset, _) in zip(lows, corner, strict=True)]
        if mode == _CUBIC:
            taps = [_within(tap, size, padding, corners) for tap, size in zip(taps, sizes, strict=True)]
        weight = math.prod(share for _, share in corner)
        total = total + _taken(x, taps, sizes) * jnp.expand_dims(jnp.asarray(weight), 1)
    return total


def _linear(part: Any) -> dict[int, Any]:
    """The shares of the neighbours of a place, by their distances from the one below it."""
    return {0: 1 - part, 1: part}


def _cubic(part: Any) -> dict[int, Any]:
    """The same of Keys' cubic convolution with a = -0.75."""
    a = -0.75

    def near(t: Any) -> Any:
        return ((a + 2) * t - (a + 3)) * t * t + 1

    def far(t: Any) -> Any:
        return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a

    return {-1: far(part + 1), 0: near(part), 1: near(1 - part), 2: far(2 - part)}


def _scaled(value: Any, size: int, corners: bool) -> Any:
    """Where a number between -1 and 1 lies on an axis."""
    return (value + 1) / 2 * (size - 1) if corners else ((value + 1) * size - 1) / 2


def _within(place: Any, size: int, padding: int, corners: bool) -> Any:
    """A position moved to the axis, if nothing but zeros is beyond it. PyTorch's gradient is 0 at both ends."""
    if padding == _ZEROS:
        return place
    if padding != _BORDER:
        low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
        span = high - low
        if span <= 0:
            return jnp.zeros_like(place)
        distance = jnp.mod(jnp.where(place < low, low - place, place - low), 2 * span)
        place = jnp.where(distance >= span, 2 * span - distance, distance) + low
    ends = jax.lax.stop_gradient(jnp.clip(place, 0, size - 1))
    return jnp.where((place > 0) & (place < size - 1), place, ends)


def _taken(x: Any, places: Sequence[Any], sizes: tuple[int, ...]) -> Any:
    """The elements at whole places, those of the last dimension first; zeros outside."""
    within = jnp.ones(places[0].shape, np.bool_)
    index = []
    for place, size in zip(places, sizes, strict=True):
        within &= (place >= 0) & (place <= size - 1)
        index.append(jnp.clip(place, 0, size - 1).astype(np.int64))
    batch = jnp.arange(x.shape[0]).reshape(-1, *[1] * (places[0].ndim - 1))
    # [batch, …, channels], for the indices are on both sides of a slice.
    found = jnp.moveaxis(x[(batch, slice(None), *reversed(index))], -1, 1)
    return jnp.where(within[:, None], found, 0)
