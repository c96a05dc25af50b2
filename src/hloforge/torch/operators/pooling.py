"""Pooling: maxima and means of windows, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hloforge.torch.registry import Call, lowers


class Windows:
    """Where the windows of a pool lie along its spatial axes.

    Attributes:
        kernel, stride, dilation: one number an axis.
        padding: numbers of elements before and after; after so many that the last window fits.
        counts: of windows.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        kernel: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int] = (1,),
        ceil: bool = False,
    ) -> None:
        rank = len(sizes)
        self.kernel = _each(kernel, rank)
        self.stride = _each(stride, rank) if stride else self.kernel
        self.dilation = _each(dilation, rank)
        self.before = _each(padding, rank)
        self.counts: list[int] = []
        self.padding: list[tuple[int, int]] = []
        for axis, size in enumerate(sizes):
            reach = self.dilation[axis] * (self.kernel[axis] - 1) + 1
            step, pad = self.stride[axis], self.before[axis]
            free = size + 2 * pad - reach
            count = (-(-free // step) if ceil else free // step) + 1
            # The last window begins within the elements or the padding before them.
            if ceil and (count - 1) * step >= size + pad:
                count -= 1
            self.counts.append(count)
            self.padding.append((pad, max((count - 1) * step + reach - size - pad, 0)))

    def reduce(self, x: Any, start: Any, combine: Callable[..., Any]) -> Any:
        """The elements of each window combined; x: […, sizes]."""
        free = x.ndim - len(self.kernel)
        result = jax.lax.reduce_window(
            x,
            start,
            combine,
            (*[1] * free, *self.kernel),
            (*[1] * free, *self.stride),
            (*[(0, 0)] * free, *self.padding),
            window_dilation=(*[1] * free, *self.dilation),
        )
        return result[(..., *(slice(0, count) for count in self.counts))]

    def elements(self, x: Any, outside: Any) -> Any:
        """The elements of the windows: [number in the kernel, …, counts]; x: […, sizes]."""
        free = x.ndim - len(self.kernel)
        padded = jax.lax.pad(x, np.array(outside, x.dtype), [(0, 0, 0)] * free + [(*p, 0) for p in self.padding])
        slices = []
        for offsets in product(*map(range, self.kernel)):
            index: list[Any] = [...]
            for axis, offset in enumerate(offsets):
                first = offset * self.dilation[axis]
                index.append(slice(first, first + (self.counts[axis] - 1) * self.stride[axis] + 1, self.stride[axis]))
            slices.append(padded[tuple(index)])
        return jnp.stack(slices)


def _each(given: Sequence[int] | int, rank: int) -> list[int]:
    listed = [given] if isinstance(given, int) else list(given)
    return listed * rank if len(listed) == 1 else listed


def _lowest(dtype: Any) -> Any:
    return np.array(-np.inf if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).min, dtype)


def max_pool(x: Any, windows: Windows) -> tuple[Any, Any]:
    """The largest element of each window, and where it is among all of its channel."""
    sizes = x.shape[x.ndim - len(windows.kernel) :]
    values = windows.reduce(x, _lowest(x.dtype), jax.lax.max)
    numbers = jnp.asarray(np.arange(int(np.prod(sizes)), dtype=np.int64).reshape(sizes))
    elements = windows.elements(x, _lowest(x.dtype))
    places = windows.elements(numbers, -1)
    places = places.reshape(places.shape[0], *[1] * (x.ndim - len(sizes)), *places.shape[1:])
    # Padding is as small as the smallest element, and is never chosen.
    ranks = jnp.where(places < 0, 0, jnp.where(jnp.isnan(elements) | (elements == values), 2, 1))
    chosen = jnp.argmax(ranks, 0)
    return values, jnp.take_along_axis(jnp.broadcast_to(places, elements.shape), chosen[None], 0)[0]


@lowers("aten.max_pool2d_with_indices", "aten.max_pool3d_with_indices", "aten.max_pool1d_with_indices")
def max_pool_with_indices(
    call: Call,
    x: Any,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil: bool = False,
) -> Any:
    rank = _rank(call)
    return max_pool(x, Windows(x.shape[-rank:], kernel, stride, padding, dilation, ceil))


def _rank(call: Call) -> int:
    return next(int(letter) for letter in str(call.target) if letter.isdigit())


@lowers("aten.fractional_max_pool2d", "aten.fractional_max_pool3d")
def fractional_max_pool(call: Call, x: Any, kernel: Sequence[int], counts: Sequence[int], samples: Any) -> Any:
    """Windows at random places, by a number in [0, 1) for each channel and axis (of two axes, the last first)."""
    rank = _rank(call)
    sizes = x.shape[-rank:]
    planes = x.reshape(-1, int(np.prod(sizes)))
    given = samples.reshape(-1, rank)
    if rank == 2:
        given = given[:, ::-1]
    places: Any = 0
    for axis, (size, reach, count) in enumerate(zip(sizes, kernel, counts, strict=True)):
        starts = _random_starts(given[:, axis], size, reach, count)
        inside = starts[:, :, None] + jnp.arange(reach)
        shape = [len(planes), *[1] * (2 * rank)]
        shape[1 + axis], shape[1 + rank + axis] = count, reach
        places = places * size + inside.reshape(shape)
    places = places.reshape(len(planes), int(np.prod(counts)), int(np.prod(kernel)))
    elements = planes[jnp.arange(len(planes))[:, None, None], places]
    # PyTorch takes the first of the largest, and the last NaN.
    unknown = jnp.isnan(elements)
    last = elements.shape[-1] - 1 - jnp.argmax(unknown[..., ::-1], -1)
    chosen = jnp.where(unknown.any(-1), last, jnp.argmax(elements, -1))[..., None]
    shape = [*x.shape[:-rank], *counts]
    return tuple(jnp.take_along_axis(each, chosen, -1).reshape(shape) for each in (elements, places))


def _random_starts(sample: Any, size: int, reach: int, count: int) -> Any:
    """Where the windows of each channel begin along an axis: [channels, count]."""
    steps = jnp.arange(max(count - 1, 0), dtype=sample.dtype)
    alpha = jnp.asarray((size - reach) / max(count - 1, 1), sample.dtype)
    moved = ((steps + sample[:, None]) * alpha).astype(np.int64) - (sample[:, None] * alpha).astype(np.int64)
    return jnp.concatenate([moved, jnp.full((len(moved), 1), size - reach)], 1)


@lowers("aten.fractional_max_pool2d_backward", "aten.fractional_max_pool3d_backward")
def fractional_max_pool_backward(
    call: Call, gradient: Any, x: Any, kernel: Sequence[int], counts: Sequence[int], places: Any
) -> Any:
    return _to_places(gradient, x, places, _rank(call))


@lowers("aten.max_pool2d_with_indices_backward", "aten.max_pool3d_with_indices_backward")
def max_pool_backward(call: Call, gradient: Any, x: Any, *arguments: Any) -> Any:
    return _to_places(gradient, x, arguments[-1], _rank(call))


@lowers("aten.adaptive_max_pool2d_backward", "aten.adaptive_max_pool3d_backward")
def adaptive_max_pool_backward(call: Call, gradient: Any, x: Any, places: Any) -> Any:
    return _to_places(gradient, x, places, _rank(call))


def _to_places(gradient: Any, x: Any, places: Any, rank: int) -> Any:
    channels = int(np.prod(x.shape[:-rank]))
    rows = jnp.arange(channels)[:, None]
    zeros = jnp.zeros((channels, int(np.prod(x.shape[-rank:]))), x.dtype)
    return zeros.at[rows, places.reshape(channels, -1)].add(gradient.reshape(channels, -1)).reshape(x.shape)


@lowers("aten.avg_pool1d", "aten.avg_pool2d", "aten.avg_pool3d")
def avg_pool(
    call: Call,
    x: Any,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil: bool = False,
    count_padding: bool = True,
    divisor: int | None = None,
) -> Any:
    rank = _rank(call)
    sizes = x.shape[-rank:]
    windows = Windows(sizes, kernel, stride, padding, ceil=ceil)
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    summed = windows.reduce(wide, np.array(0, wide.dtype), jax.lax.add)
    if divisor is not None:
        return summed / divisor if x.dtype.kind not in "iu" else jax.lax.div(summed, jnp.full_like(summed, divisor))
    counts = jnp.asarray(_counts(windows, sizes, count_padding), wide.dtype)
    return summed / counts if x.dtype.kind not in "iu" else jax.lax.div(summed, jnp.broadcast_to(counts, summed.shape))


def _counts(windows: Windows, sizes: Sequence[int], count_padding: bool) -> Any:
    """How many elements each window has, with PyTorch's own padding or without."""
    total: Any = np.array(1)
    for axis, size in enumerate(sizes):
        pad = windows.before[axis]
        start = np.arange(windows.counts[axis]) * windows.stride[axis] - pad
        end = start + windows.kernel[axis]
        counted = np.minimum(end, size + pad) - start if count_padding else np.minimum(end, size) - np.maximum(start, 0)
        total = total[..., None] * counted
    return total


@lowers("aten.avg_pool2d_backward", "aten.avg_pool3d_backward")
def avg_pool_backward(call: Call, gradient: Any, x: Any, *arguments: Any) -> Any:
    return jax.vjp(lambda x: avg_pool(call, x, *arguments).astype(gradient.dtype), x)[1](gradient)[0]


@lowers("aten._adaptive_avg_pool2d", "aten._adaptive_avg_pool3d", "aten.adaptive_avg_pool1d")
def adaptive_avg_pool(call: Call, x: Any, sizes: Sequence[int]) -> Any:
    rank = len(sizes)
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    for axis, count in zip(range(x.ndim - rank, x.ndim), sizes, strict=True):
        wide = means(wide, axis, count)
    return wide


def means(x: Any, axis: int, count: int) -> Any:
    """Means of ``count`` parts of an axis, which overlap where it does not divide evenly."""
    size = x.shape[axis]
    if size % count == 0:
        shape = (*x.shape[:axis], count, size // count, *x.shape[axis + 1 :])
        return jnp.mean(x.reshape(shape), axis + 1)
    starts, ends = _parts(size, count)
    weights = np.zeros((count, size))
    for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
        weights[row, start:end] = 1 / (end - start)
    moved = jnp.moveaxis(x, axis, -1) @ jnp.asarray(weights.T, x.dtype)
    return jnp.moveaxis(moved, -1, axis)


def _parts(size: int, count: int) -> tuple[list[int], list[int]]:
    return [n * size // count for n in range(count)], [-(-(n + 1) * size // count) for n in range(count)]


@lowers("aten._adaptive_avg_pool2d_backward", "aten._adaptive_avg_pool3d_backward")
def adaptive_avg_pool_backward(call: Call, gradient: Any, x: Any) -> Any:
    rank = _rank(call)
    sizes = gradient.shape[-rank:]
    return jax.vjp(lambda x: adaptive_avg_pool(call, x, sizes).astype(gradient.dtype), x)[1](gradient)[0]


@lowers("aten.adaptive_max_pool2d", "aten.adaptive_max_pool3d")
def adaptive_max_pool(call: Call, x: Any, sizes: Sequence[int]) -> Any:
    """The largest element of each part, and where it is among all of its channel."""
    rank = len(sizes)
    spatial = x.shape[-rank:]
    axes = [_parts(size, count) for size, count in zip(spatial, sizes, strict=True)]
    values, places = [], []
    numbers = np.arange(int(np.prod(spatial))).reshape(spatial)
    for at in product(*map(range, sizes)):
        part = tuple(slice(starts[n], ends[n]) for n, (starts, ends) in zip(at, axes, strict=True))
        flat = x[(..., *part)].reshape(*x.shape[:-rank], -1)
        chosen = jnp.argmax(flat, -1)
        values.append(jnp.max(flat, -1))
        places.append(jnp.asarray(numbers[part].reshape(-1))[chosen])
    shape = (*x.shape[:-rank], *sizes)
    return jnp.stack(values, -1).reshape(shape), jnp.stack(places, -1).reshape(shape)
