"""Convolutions and pools along a dimension of open size: windows see padding as if it lay outside of the array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from hloforge.dialect.errors import UnsupportedError
from hloforge.torch.bounded.reductions import least, masked, real_place
from hloforge.torch.bounded.registry import OpenCall, bounded


def _spatial(call: OpenCall, x: Any, rank: int) -> list[int]:
    """The open ones of the last ``rank`` dimensions."""
    return [d for d in call.open(0) if d >= x.ndim - rank]


@bounded("aten.convolution", "aten._convolution")
def convolution(call: OpenCall, x: Any, weight: Any, *arguments: Any, **named: Any) -> Any:
    """Zeros behind the real size are what a convolution pads with."""
    rank = weight.ndim - 2
    if call.open(1) or call.open(2) or x.ndim - rank - 1 in call.open(0):
        raise UnsupportedError("the features or weights of a convolution have an open size")
    return call.plain(masked(call, x, _spatial(call, x, rank), 0), weight, *arguments, **named)


@bounded("aten.max_pool2d_with_indices", "aten.max_pool3d_with_indices")
def max_pool(call: OpenCall, x: Any, window: Sequence[int], *arguments: Any, **named: Any) -> Any:
    """Nothing is less than the padding. Places count elements of the real array."""
    rank = 3 if "3d" in str(call.target) else 2
    dims = _spatial(call, x, rank)
    values, places = call.plain(masked(call, x, dims, least(x.dtype)), window, *arguments, **named)
    return values, real_place(call, places, x.shape, range(x.ndim - rank, x.ndim))


@bounded("aten.avg_pool1d", "aten.avg_pool2d", "aten.avg_pool3d")
def avg_pool(
    call: OpenCall,
    x: Any,
    window: Sequence[int],
    stride: Sequence[int] = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    *divisor: Any,
) -> Any:
    rank = int(str(call.target).partition("avg_pool")[2][0])
    x = masked(call, x, _spatial(call, x, rank), 0)
    divide = divisors(call, 0, x, rank, window, stride, padding, count_include_pad, *divisor)
    found = call.plain(x, window, stride, padding, ceil_mode, count_include_pad, *([1] if divide else divisor))
    return divide(found) if divide else found


def divisors(
    call: OpenCall,
    argument: int,
    x: Any,
    rank: int,
    window: Sequence[int],
    stride: Sequence[int],
    padding: Any,
    count_include_pad: bool,
    divisor: int | None = None,
) -> Callable[[Any], Any] | None:
    """What divides sums of windows by the numbers of their elements, if these depend on an open size.

    Args:
        argument: the number of the array that has windows.
    """
    first = x.ndim - rank
    if divisor is not None or not any(dim >= first for dim in call.open(argument)):
        return None

    def divide(sums: Any) -> Any:
        total = jnp.ones((), sums.dtype)
        for axis in range(rank):
            reach, step, pad = (_along(each, axis) for each in (window, stride or window, padding))
            size = call.count(argument, first + axis)
            starts = jnp.arange(sums.shape[first + axis]) * step - pad
            ends = jnp.minimum(starts + reach, size + pad)
            counted = ends - starts if count_include_pad else jnp.minimum(ends, size) - jnp.maximum(starts, 0)
            total = total[..., None] * jnp.maximum(counted, 1).astype(sums.dtype)
        return sums / total if jnp.issubdtype(sums.dtype, jnp.floating) else jax.lax.div(sums, total + sums * 0)

    return divide


def _along(given: Any, axis: int) -> int:
    """What a setting is for an axis: one number may stand for all."""
    if isinstance(given, int):
        return given
    return int(given[axis] if len(given) > 1 else given[0])
