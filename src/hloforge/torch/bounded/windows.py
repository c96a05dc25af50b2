"""Convolutions and pools along a dimension of open size: windows see padding as if it lay outside of the array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
    *arguments: Any,
) -> Any:
    rank = int(str(call.target).partition("avg_pool")[2][0])
    dims = _spatial(call, x, rank)
    check_averages(dims, padding, ceil_mode, count_include_pad)
    x = masked(call, x, dims, 0)
    return call.plain(x, window, stride, padding, ceil_mode, count_include_pad, *arguments)


def check_averages(dims: Sequence[int], padding: Any, ceil_mode: bool, count_include_pad: bool) -> None:
    """Refuse averages whose number of elements depends on an open size. Raises UnsupportedError."""
    is_padded = any(padding) if isinstance(padding, list | tuple) else bool(padding)
    if dims and (ceil_mode or (is_padded and not count_include_pad)):
        raise UnsupportedError("averages at the end of an open size divide by fewer elements")
