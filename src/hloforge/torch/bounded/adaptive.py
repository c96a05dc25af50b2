"""Adaptive pools of dimensions of open size: which elements a part has follows from the real size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hloforge.dialect.errors import UnsupportedError
from hloforge.torch.bounded.gradients import padded_places, without_padding
from hloforge.torch.bounded.reductions import least, real_place
from hloforge.torch.bounded.registry import OpenCall, bounded
from hloforge.torch.bounded.sizes import are_equal
from hloforge.torch.operators.pooling import means
from hloforge.torch.registry import number


def _parts(call: OpenCall, argument: int, dim: int, extent: int, count: Any) -> tuple[Any, Any]:
    """Where parts of a dimension begin, and which elements each has: [parts, extent].

    Args:
        argument: the number of the array.
        count: of parts.

    Raises:
        UnsupportedError: their number is open.
    """
    if not isinstance(count, int):
        raise UnsupportedError("an adaptive pool to a size that is not known before the call")
    size = call.count(argument, dim)
    numbers, places = jnp.arange(count), jnp.arange(extent)
    starts, ends = numbers * size // count, -(-(numbers + 1) * size // count)
    return starts, (places >= starts[:, None]) & (places < ends[:, None])


def _average(call: OpenCall, argument: int, x: Any, sizes: Sequence[Any], said: Sequence[Any]) -> Any:
    """Means of the parts of an argument.

    Args:
        sizes: how many parts the last dimensions have.
        said: the same as PyTorch says it.
    """
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    first = x.ndim - len(sizes)
    wide = jnp.where(call.inside(argument, x, range(first, x.ndim)), wide, jnp.zeros((), wide.dtype))
    for dim, (count, size) in enumerate(zip(sizes, said, strict=True), first):
        if are_equal(size, call.said[argument].shape[dim]):
            continue
        if dim not in call.open(argument):
            wide = means(wide, dim, count)
            continue
        _, inside = _parts(call, argument, dim, x.shape[dim], count)
        weights = inside.astype(wide.dtype)
        sums = jnp.moveaxis(jnp.moveaxis(wide, dim, -1) @ weights.T, -1, dim)
        shape = [-1 if d == dim else 1 for d in range(x.ndim)]
        wide = sums / jnp.maximum(jnp.sum(weights, 1), 1).reshape(shape)
    return wide


@bounded("aten._adaptive_avg_pool2d", "aten._adaptive_avg_pool3d", "aten.adaptive_avg_pool1d")
def average(call: OpenCall, x: Any, sizes: Sequence[Any]) -> Any:
    return _average(call, 0, x, sizes, call.result.shape[x.ndim - len(sizes) :])


@bounded("aten._adaptive_avg_pool2d_backward", "aten._adaptive_avg_pool3d_backward")
def average_backward(call: OpenCall, gradient: Any, x: Any) -> Any:
    rank = 3 if "3d" in str(call.target) else 2
    sizes, said = gradient.shape[-rank:], call.said[0].shape[-rank:]
    whole = without_padding(call, 0, gradient)
    return jax.vjp(lambda x: _average(call, 1, x, sizes, said).astype(gradient.dtype), x)[1](whole)[0]


@bounded("aten.adaptive_max_pool2d", "aten.adaptive_max_pool3d")
def greatest(call: OpenCall, x: Any, sizes: Sequence[Any]) -> Any:
    """One dimension after the other, the last one first, so that of equal elements the first is chosen."""
    first = x.ndim - len(sizes)
    spatial = range(first, x.ndim)
    numbers = jnp.arange(int(np.prod(x.shape[first:]))).reshape(x.shape[first:])
    places = jnp.broadcast_to(real_place(call, numbers, x.shape, spatial), x.shape)
    lowest = number(least(x.dtype), x.dtype)
    for dim, count in reversed(list(zip(spatial, sizes, strict=True))):
        starts, inside = _parts(call, 0, dim, x.shape[dim], count)
        moved = jnp.where(inside, jnp.moveaxis(x, dim, -1)[..., None, :], lowest)
        chosen, found = jnp.argmax(moved, -1), jnp.max(moved, -1)
        chosen = jnp.where(found == lowest, starts, chosen)
        places = jnp.moveaxis(jnp.take_along_axis(jnp.moveaxis(places, dim, -1), chosen, -1), -1, dim)
        x = jnp.moveaxis(found, -1, dim)
    return x, places


@bounded("aten.adaptive_max_pool2d_backward", "aten.adaptive_max_pool3d_backward")
def greatest_backward(call: OpenCall, gradient: Any, x: Any, places: Any) -> Any:
    found = padded_places(call, x, places, 3 if "3d" in str(call.target) else 2)
    return call.plain(without_padding(call, 0, gradient), x, found)
