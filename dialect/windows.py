"""Windows that move over arrays: their number of positions, and the padding of "SAME" and "VALID".

In each dimension the base array is first dilated (holes between its elements), then padded (or cut, where padding is
negative), and the window, dilated too, moves over it by a stride. Convolutions, ReduceWindow and SelectAndScatter share
this arithmetic. Sizes are in elements; -1 is the size of an unbounded dynamic dimension.
Source: XLA's window_util and MakePadding, and "ConvWithGeneralPadding", "ReduceWindow" of its Operation Semantics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hloforge.dialect.errors import OperationError

# "SAME", "VALID", or (low, high) for each dimension.
Padding: TypeAlias = str | Sequence[Sequence[int]]


@dataclass(frozen=True)
class Window:
    """A window along one dimension of an array.

    Attributes:
        size: its elements, holes not counted.
        stride: from one position to the next, in elements of the padded base.
        low, high: elements added to the base at either end; negative ones are cut off.
        base_dilation: ``d`` puts ``d - 1`` holes between neighbours in the base.
        window_dilation: the same within the window.
        reversal: whether the window's elements are in reverse order.
    """

    size: int
    stride: int = 1
    low: int = 0
    high: int = 0
    base_dilation: int = 1
    window_dilation: int = 1
    reversal: bool = False

    def __post_init__(self) -> None:
        if self.size < 1 and self.size != -1:
            raise OperationError(f"a window must have at least one element a dimension, not {self.size}")
        _at_least_one("a stride", self.stride)
        _at_least_one("the dilation of the base", self.base_dilation)
        _at_least_one("the dilation of the window", self.window_dilation)

    def output_size(self, base: int) -> int:
        """The positions of the window in a dimension of size ``base``; -1 if that is -1."""
        return output_size(base, self.size, self.stride, self.low, self.high, self.base_dilation, self.window_dilation)


def dilated_size(size: int, dilation: int) -> int:
    """The size with ``dilation - 1`` holes between neighbours; an unbounded size stays -1."""
    return size if size <= 0 else (size - 1) * dilation + 1


def output_size(
    base: int,
    window: int,
    stride: int = 1,
    low: int = 0,
    high: int = 0,
    base_dilation: int = 1,
    window_dilation: int = 1,
) -> int:
    """The positions of a window in one dimension, where it lies wholly in the padded base.

    Args:
        base: the array's size.
        window: the window's size.

    Returns:
        0 if it fits nowhere; -1 if a size is -1.

    Raises:
        OperationError: negative padding cuts off more than there is.
    """
    if base < 0 or window < 0:
        return -1
    padded = low + dilated_size(base, base_dilation) + high
    if padded < 0:
        raise OperationError(f"padding ({low}, {high}) cuts more off than the {padded - low - high} elements there are")
    extent = dilated_size(window, window_dilation)
    return 0 if padded == 0 or extent > padded else (padded - extent) // stride + 1


def valid_padding(rank: int) -> list[tuple[int, int]]:
    """No padding: the window stays inside the array."""
    return [(0, 0)] * rank


def same_padding(
    base: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    base_dilations: Sequence[int] = (),
    window_dilations: Sequence[int] = (),
) -> list[tuple[int, int]]:
    """The padding with which the output is ``ceil(base / stride)``, its odd element at the high end.

    Args:
        base, window, strides: the array's and the window's size, and the stride, in each dimension.
        base_dilations, window_dilations: by default 1; sizes are taken with their holes.

    Raises:
        OperationError: a size is dynamic, and the padding depends on it.
    """
    rank = len(base)
    dilations = zip(_ones(base_dilations, rank), _ones(window_dilations, rank), strict=True)
    return [
        _same(dilated_size(size, holes), dilated_size(extent, spread), stride)
        for size, extent, stride, (holes, spread) in zip(base, window, strides, dilations, strict=True)
    ]


def _same(base: int, window: int, stride: int) -> tuple[int, int]:
    if window < 0 or (base < 0 and stride != 1):
        raise OperationError("SAME padding depends on a size that is dynamic", hint="give (low, high) pairs")
    # With stride 1 it is the same for all sizes.
    places = -(-base // stride)
    total = max((places - 1) * stride + window - base, 0)
    return total // 2, total - total // 2


def padding_pairs(
    padding: Padding,
    base: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    base_dilations: Sequence[int] = (),
    window_dilations: Sequence[int] = (),
) -> list[tuple[int, int]]:
    """``(low, high)`` for each dimension, of "SAME", "VALID" or such pairs.

    Raises:
        OperationError: another name, another number of pairs, or as of ``same_padding``.
    """
    if not isinstance(padding, str):
        return _checked_pairs(padding, len(base))
    if padding.upper() == "VALID":
        return valid_padding(len(base))
    if padding.upper() == "SAME":
        return same_padding(base, window, strides, base_dilations, window_dilations)
    raise OperationError(f"there is no padding {padding!r}", hint='it is "SAME", "VALID" or a (low, high) pair each')


def windows(
    base: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int] = (),
    padding: Padding = "VALID",
    base_dilations: Sequence[int] = (),
    window_dilations: Sequence[int] = (),
    reversal: Sequence[bool] = (),
) -> tuple[Window, ...]:
    """The window of every dimension of an array; what is not given is 1, or False.

    Args:
        base: the array's sizes.
        sizes: the window's.

    Raises:
        OperationError: a list does not have one entry for each dimension, a size, stride or dilation is below 1, or as
            of ``padding_pairs``.
    """
    rank = len(base)
    columns = [
        _per_dimension("window sizes", sizes, rank),
        _per_dimension("strides", _ones(strides, rank), rank),
        _per_dimension("dilations of the base", _ones(base_dilations, rank), rank),
        _per_dimension("dilations of the window", _ones(window_dilations, rank), rank),
    ]
    flags = list(reversal) or [False] * rank
    if len(flags) != rank:
        raise OperationError(f"window reversal {flags} must have one entry for each of the {rank} dimensions")
    # Sizes, strides and dilations are checked before the padding is computed with them.
    bare = [Window(size, stride, 0, 0, *dilations) for size, stride, *dilations in zip(*columns, strict=True)]
    extents, steps, base_holes, window_holes = columns
    pairs = padding_pairs(padding, base, extents, steps, base_holes, window_holes)
    return tuple(
        Window(w.size, w.stride, low, high, w.base_dilation, w.window_dilation, flag)
        for w, (low, high), flag in zip(bare, pairs, flags, strict=True)
    )


def _ones(numbers: Sequence[int], rank: int) -> Sequence[int]:
    return numbers if len(numbers) else [1] * rank


def _per_dimension(name: str, numbers: Sequence[int], rank: int) -> list[int]:
    if len(numbers) != rank:
        raise OperationError(f"{name} {list(numbers)} must have one entry for each of the {rank} dimensions")
    return list(numbers)


def _checked_pairs(padding: Sequence[Sequence[int]], rank: int) -> list[tuple[int, int]]:
    if len(padding) != rank or any(len(pair) != 2 for pair in padding):
        raise OperationError(f"padding {list(padding)} must have a (low, high) pair for each of the {rank} dimensions")
    return [(low, high) for low, high in padding]


def _at_least_one(name: str, number: int) -> None:
    if number < 1:
        raise OperationError(f"{name} must be at least 1, not {number}")
