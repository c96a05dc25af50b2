"""Convert between multi-dimensional indices of elements and positions in the buffer.

Positions count elements and honour the whole layout: order, padding of dimensions, every tile. XLA's ``IndexUtil``
knows the order only; without tiles and padding the two agree. Source: XLA "Shapes and Layout", "Tiled layout".
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from hloforge.dialect.layouts import COMBINE, Tile
from hloforge.dialect.shapes import Shape

Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
# An int, or as many as an array holds: the arithmetic is the same.
_Number: TypeAlias = Any


def linear_index(shape: Shape, index: Sequence[int]) -> int:
    """The position of an element in the buffer of ``shape``.

    Raises ValueError if the index is out of bounds.
    """
    if not index_in_bounds(shape, index):
        raise ValueError(f"the index {list(index)} is out of bounds of {shape}")
    position: int = _forward(shape, list(index))
    return position


def linear_indices(shape: Shape, indices: Any) -> Integers:
    """The positions of many elements: [..., rank] indices -> [...] positions.

    Raises ValueError if an index is out of bounds, or there is not one number for every dimension.
    """
    array = np.asarray(indices, np.int64)
    sizes = np.array(_static(shape).dimensions, np.int64)
    if array.shape[-1:] != sizes.shape:
        raise ValueError(f"indices of {shape} have a last dimension of {shape.rank}, not the shape {list(array.shape)}")
    if ((array < 0) | (array >= sizes)).any():
        raise ValueError(f"an index is out of bounds of {shape}")
    if not shape.rank:
        return np.zeros(array.shape[:-1], np.int64)
    positions: Integers = _forward(shape, [array[..., d] for d in range(shape.rank)])
    return positions


def multidimensional_index(shape: Shape, position: int) -> tuple[int, ...]:
    """The element at a position of the buffer: the inverse of ``linear_index``.

    Raises ValueError if the position is outside of the buffer or holds padding.
    """
    if not 0 <= position < prod(_buffer_sizes(shape)):
        raise ValueError(f"the position {position} is out of bounds of {shape}")
    index = _backward(shape, position)
    if not index_in_bounds(shape, index) or _forward(shape, index) != position:
        raise ValueError(f"the position {position} of {shape} holds padding")
    return tuple(index)


def multidimensional_indices(shape: Shape, positions: Any) -> Integers:
    """The elements at many positions: [...] positions -> [..., rank] indices.

    Raises ValueError if a position is outside of the buffer or holds padding.
    """
    array = np.asarray(positions, np.int64)
    if ((array < 0) | (array >= prod(_buffer_sizes(shape)))).any():
        raise ValueError(f"a position is out of bounds of {shape}")
    digits = _backward(shape, array)
    within = [digit < size for digit, size in zip(digits, shape.dimensions, strict=True)]
    if not np.all(within) or (_forward(shape, digits) != array).any():
        raise ValueError(f"a position of {shape} holds padding")
    return np.stack(digits, axis=-1) if digits else np.zeros((*array.shape, 0), np.int64)


def bump_indices(shape: Shape, index: Sequence[int]) -> tuple[int, ...] | None:
    """The next index of the array, the last dimension running fastest; None after the last one."""
    bumped = list(index)
    for d in reversed(range(len(bumped))):
        if bumped[d] + 1 < shape.dimensions[d]:
            bumped[d] += 1
            return tuple(bumped)
        bumped[d] = 0
    return None


def index_in_bounds(shape: Shape, index: Sequence[int]) -> bool:
    """Whether there is an element at ``index``."""
    sizes = _static(shape).dimensions
    return len(index) == len(sizes) and all(0 <= i < size for i, size in zip(index, sizes, strict=True))


def compare_indices(lhs: Sequence[int], rhs: Sequence[int]) -> int:
    """-1, 0 or 1 as ``lhs`` comes before, with or after ``rhs`` in row-major order.

    Raises ValueError if they are not of one rank.
    """
    if len(lhs) != len(rhs):
        raise ValueError(f"indices of ranks {len(lhs)} and {len(rhs)} have no order")
    return (tuple(lhs) > tuple(rhs)) - (tuple(lhs) < tuple(rhs))


def dimension_stride(shape: Shape, dimension: int) -> int:
    """How many elements lie between neighbours in a dimension (negative: from the last).

    Raises ValueError for a tiled layout, where no one number says it.
    """
    layout = _static(shape).layout_or_default
    if layout.tiles:
        raise ValueError(f"{shape} is tiled: the distance between neighbours varies")
    before = layout.minor_to_major[: layout.minor_to_major.index(shape.dimension_number(dimension))]
    sizes = layout.padded(shape.dimensions)
    return prod(sizes[d] for d in before)


def _static(shape: Shape) -> Shape:
    if shape.element is None or min(shape.dimensions, default=0) < 0:
        raise ValueError(f"an index needs an array of known sizes, not {shape}")
    return shape


def _buffer_sizes(shape: Shape) -> list[int]:
    return _static(shape).layout_or_default.physical_dimensions(shape.dimensions)


def _forward(shape: Shape, index: list[_Number]) -> _Number:
    layout = shape.layout_or_default
    sizes = [layout.padded(shape.dimensions)[d] for d in layout.major_to_minor]
    digits = [index[d] for d in layout.major_to_minor]
    for tile in layout.tiles:
        digits = _tile_digits(tile, sizes, digits)
        sizes = tile.tiled(sizes)
    return _join(sizes, digits)


def _backward(shape: Shape, position: _Number) -> list[_Number]:
    layout = shape.layout_or_default
    steps = [[layout.padded(shape.dimensions)[d] for d in layout.major_to_minor]]
    for tile in layout.tiles:
        steps.append(tile.tiled(steps[-1]))
    digits = _split(steps[-1], position)
    for tile, sizes in zip(reversed(layout.tiles), reversed(steps[:-1]), strict=True):
        digits = _untile_digits(tile, sizes, digits)
    return [digits[layout.major_to_minor.index(d)] for d in range(shape.rank)]


def _join(sizes: Sequence[int], digits: Sequence[_Number]) -> _Number:
    """Digits of these radices, most major first, as one number."""
    number: _Number = 0
    for size, digit in zip(sizes, digits, strict=True):
        number = number * size + digit
    return number


def _split(sizes: Sequence[int], number: _Number) -> list[_Number]:
    """Undo ``_join``."""
    digits = []
    for size in reversed(sizes):
        number, digit = number // max(size, 1), number % max(size, 1)
        digits.append(digit)
    return digits[::-1]


def _groups(tile: Tile, sizes: Sequence[int]) -> list[list[int]]:
    """The dimensions that ``*`` joins, in order; leading ones of size 1 where the tile has more than the array."""
    wide = [1] * (len(tile.dimensions) - len(sizes)) + list(sizes)
    start = len(wide) - len(tile.dimensions)
    groups = [[size] for size in wide[:start]] + [[]]
    for size, tile_size in zip(wide[start:], tile.dimensions, strict=True):
        groups[-1].append(size)
        if tile_size != COMBINE:
            groups.append([])
    return groups[:-1]


def _tile_digits(tile: Tile, sizes: Sequence[int], digits: Sequence[_Number]) -> list[_Number]:
    """The digits after tiling: untouched ones, numbers of tiles, positions within the tile."""
    block = tile.combined(sizes)[1]
    rest = [0] * (len(tile.dimensions) - len(sizes)) + list(digits)
    joined = []
    for group in _groups(tile, sizes):
        joined.append(_join(group, rest[: len(group)]))
        rest = rest[len(group) :]
    start = len(joined) - len(block)
    pairs = list(zip(joined[start:], block, strict=True))
    return [*joined[:start], *(digit // size for digit, size in pairs), *(digit % size for digit, size in pairs)]


def _untile_digits(tile: Tile, sizes: Sequence[int], digits: Sequence[_Number]) -> list[_Number]:
    """Undo ``_tile_digits``."""
    block = tile.combined(sizes)[1]
    start = len(digits) - 2 * len(block)
    counts, within = digits[start : start + len(block)], digits[start + len(block) :]
    numbers = [count * size + inner for count, inner, size in zip(counts, within, block, strict=True)]
    joined = [*digits[:start], *numbers]
    # The first digit of a group takes all that is left, so that a number in the padding stays out of bounds.
    parts: list[_Number] = []
    for group, number in zip(_groups(tile, sizes), joined, strict=True):
        inner = prod(group[1:])
        parts += [number // max(inner, 1), *_split(group[1:], number % max(inner, 1))]
    return parts[max(0, len(tile.dimensions) - len(sizes)) :]
