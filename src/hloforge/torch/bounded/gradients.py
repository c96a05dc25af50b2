"""Gradients along dimensions of open size: what comes back from padding is 0, and goes to no element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hloforge.dialect.errors import UnsupportedError
from hloforge.torch.bounded.registry import OpenCall, bounded
from hloforge.torch.bounded.sizes import fit
from hloforge.torch.bounded.windows import divisors
from hloforge.torch.operators.pooling import avg_pool
from hloforge.torch.operators.products import convolution

# Behind the end of any dimension.
_FAR = 1 << 40


def without_padding(call: OpenCall, number: int, array: Any) -> Any:
    """An argument that is 0 where it is padding."""
    if not call.open(number):
        return array
    return jnp.where(call.inside(number, array), array, jnp.zeros((), array.dtype))


@bounded("aten.convolution_backward")
def convolution_backward(call: OpenCall, gradient: Any, x: Any, weight: Any, bias: Any, *arguments: Any) -> Any:
    rank = weight.ndim - 2
    if call.open(2) or x.ndim - rank - 1 in call.open(1):
        raise UnsupportedError("the features or weights of a convolution have an open size")
    gradient, x = without_padding(call, 0, gradient), without_padding(call, 1, x)
    forward = jax.eval_shape(lambda x, weight: convolution(call, x, weight, None, *arguments[:-1]), x, weight)
    return call.plain(fit(gradient, forward.shape), x, weight, bias, *arguments)


@bounded("aten.max_pool2d_with_indices_backward", "aten.max_pool3d_with_indices_backward")
def max_pool_backward(call: OpenCall, gradient: Any, x: Any, *arguments: Any) -> Any:
    """Places count elements of the real array, and here those of the padded one."""
    *windows, places = arguments
    found = padded_places(call, x, places, 3 if "3d" in str(call.target) else 2)
    # PyTorch may say the sizes of both by other expressions, whose bounds differ.
    return call.plain(fit(without_padding(call, 0, gradient), found.shape), x, *windows, found)


def padded_places(call: OpenCall, x: Any, places: Any, rank: int) -> Any:
    """Places among the elements of the real array as such of the padded one.

    Args:
        x: the second argument.
        rank: how many of its last dimensions are counted.
    """
    found, stride = jnp.zeros_like(places), 1
    for dim in reversed(range(x.ndim - rank, x.ndim)):
        real = jnp.maximum(jnp.asarray(call.count(1, dim)).astype(places.dtype), 1)
        found += places % real * stride
        places, stride = places // real, stride * x.shape[dim]
    return found


@bounded("aten.avg_pool2d_backward", "aten.avg_pool3d_backward")
def avg_pool_backward(
    call: OpenCall,
    gradient: Any,
    x: Any,
    window: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    *divisor: Any,
) -> Any:
    gradient = without_padding(call, 0, gradient)
    rank = 3 if "3d" in str(call.target) else 2
    divide = divisors(call, 1, x, rank, window, stride, padding, count_include_pad, *divisor)
    if divide:
        gradient, divisor = divide(gradient), (1,)
    windows = (window, stride, padding, ceil_mode, count_include_pad)
    forward = jax.eval_shape(lambda x: avg_pool(call, x, *windows), x)
    return call.plain(fit(gradient, forward.shape), x, *windows, *divisor)


@bounded("aten.replication_pad1d_backward", "aten.replication_pad2d_backward", "aten.replication_pad3d_backward")
def replication_backward(call: OpenCall, gradient: Any, x: Any, widths: Sequence[int]) -> Any:
    """Each element gets the gradients of all places that it was copied to."""
    gradient = without_padding(call, 0, gradient)
    for n, low in enumerate(widths[::2]):
        dim = x.ndim - 1 - n
        places = jnp.clip(jnp.arange(gradient.shape[dim]) - low, 0, jnp.maximum(call.count(1, dim) - 1, 0))
        moved = jnp.moveaxis(gradient, dim, 0)
        summed = jnp.zeros((x.shape[dim], *moved.shape[1:]), moved.dtype).at[places].add(moved)
        gradient = jnp.moveaxis(summed, 0, dim)
    return gradient


@bounded("aten.select_scatter")
def select_scatter(call: OpenCall, x: Any, source: Any, dim: int, index: Any) -> Any:
    dim %= x.ndim
    source = fit(source, [extent for d, extent in enumerate(x.shape) if d != dim])
    size = call.count(0, dim)
    place = index if isinstance(index, int) and index >= 0 else jnp.where(index < 0, size + index, index)
    return jnp.where(jax.lax.broadcasted_iota(np.int64, x.shape, dim) == place, jnp.expand_dims(source, dim), x)


@bounded("aten.diagonal_scatter")
def diagonal_scatter(call: OpenCall, x: Any, source: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Behind the real end of the diagonal there is padding only."""
    shape = jax.eval_shape(lambda x: jnp.diagonal(x, offset, dim1, dim2), x).shape
    return call.plain(x, fit(source, shape), offset, dim1, dim2)


@bounded("aten.slice_scatter")
def slice_scatter(
    call: OpenCall, x: Any, source: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    dim %= x.ndim
    size = call.count(0, dim)
    first, last = _bound(start, size, 0), _bound(end, size, size)
    places = jnp.arange(x.shape[dim])
    from_first = places - first
    taken = jnp.take(source, jnp.maximum(from_first // step, 0), dim, mode="clip")
    taken = fit(taken, x.shape)
    chosen = (from_first >= 0) & (places < last) & (from_first % step == 0)
    return jnp.where(chosen.reshape([-1 if d == dim else 1 for d in range(x.ndim)]), taken, x)


def _bound(given: Any, size: Any, default: Any) -> Any:
    """An end of a slice; negative ones count from the end."""
    if given is None:
        return default
    if isinstance(given, int):
        given = max(min(given, _FAR), -_FAR)  # PyTorch's end is the greatest integer
    return jnp.clip(jnp.where(jnp.asarray(given) < 0, size + given, given), 0, size)


@bounded("aten._embedding_bag_forward_only", "aten._embedding_bag")
def embedding_bag(
    call: OpenCall,
    weight: Any,
    positions: Any,
    offsets: Any,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Any:
    positions, offsets, unwanted = _in_no_bag(call, positions, offsets, weight.shape[0], padding_idx)
    rest = (scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, unwanted)
    return call.plain(weight, positions, offsets, *rest)


@bounded("aten._embedding_bag_backward")
def embedding_bag_backward(call: OpenCall, gradient: Any, positions: Any, offsets: Any, *arguments: Any) -> Any:
    others, padding_idx = arguments[:8], next(iter(arguments[8:]), -1)
    positions, offsets, unwanted = _in_no_bag(call, positions, offsets, others[3], padding_idx)
    return call.plain(without_padding(call, 0, gradient), positions, offsets, *others, unwanted)


def _in_no_bag(call: OpenCall, positions: Any, offsets: Any, count: int, padding_idx: int) -> tuple[Any, Any, int]:
    """Rows of padding as those that are in no bag, offsets of padding behind all rows, and the row that no bag has."""
    unwanted = padding_idx if padding_idx >= 0 else count
    if call.open(1):
        positions = jnp.where(call.inside(1, positions), positions, unwanted)
    if call.open(2):
        offsets = jnp.where(call.inside(2, offsets), offsets, positions.shape[0] + 1)
    return positions, offsets, unwanted
