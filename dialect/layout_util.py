"""Layouts made, compared and rearranged, as ``LayoutUtil`` of XLA does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hloforge.dialect.layouts import Layout, item_key
from hloforge.dialect.shapes import Shape


def default_layout(shape_or_rank: Shape | int) -> Layout:
    """Row-major, ``{n-1, ..., 0}``."""
    return Layout.default(shape_or_rank if isinstance(shape_or_rank, int) else shape_or_rank.rank)


def from_major_to_minor(order: Sequence[int]) -> Layout:
    """The layout whose dimensions are in this order, slowest varying first. Raises ValueError: no permutation."""
    return Layout(tuple(reversed(order)))


def ascending_layout(rank: int) -> Layout:
    """Column-major, ``{0, ..., n-1}``."""
    return Layout(tuple(range(rank)))


def is_descending(layout: Layout) -> bool:
    """Whether dimension 0 is the most major one and so on (XLA: ``IsMonotonicWithDim0Major``)."""
    return layout.is_default


def is_ascending(layout: Layout) -> bool:
    """Whether dimension 0 is the most minor one and so on (XLA: ``IsMonotonicWithDim0Minor``)."""
    return layout.minor_to_major == tuple(range(layout.rank))


def has_tiles(layout: Layout) -> bool:
    return bool(layout.tiles)


def is_dense(layout: Layout) -> bool:
    """Whether every element of the array has its place: no dimension is compressed (``C``) or a singleton (``S``)."""
    return not any(item_key(item) == "D" and set(item) & set("CS") for item in layout.extras)


def minor(layout: Layout, number: int) -> int:
    """The dimension that is the ``number``-th minor one; ``minor(layout, 0)`` varies fastest."""
    return layout.minor_to_major[number]


def major(layout: Layout, number: int) -> int:
    """The dimension that is the ``number``-th major one; ``major(layout, 0)`` varies slowest."""
    return layout.major_to_minor[number]


def logical_to_physical(layout: Layout) -> tuple[int, ...]:
    """For each dimension its position among the physical ones, most major first."""
    return tuple(layout.major_to_minor.index(d) for d in range(layout.rank))


def equal(
    lhs: Layout | None,
    rhs: Layout | None,
    *,
    ignore_tiles: bool = False,
    ignore_memory_space: bool = False,
    ignore_element_size: bool = False,
    minor_to_major_only: bool = False,
) -> bool:
    """Whether two layouts agree in all that is not ignored; None equals a plain row-major layout."""
    if lhs is None and rhs is None:
        return True
    known = lhs if lhs is not None else rhs
    assert known is not None  # one of them is a layout
    pair = [layout if layout is not None else Layout.default(known.rank) for layout in (lhs, rhs)]
    if minor_to_major_only:
        return pair[0].minor_to_major == pair[1].minor_to_major
    if ignore_tiles:
        pair = [replace(layout, tiles=(), tail_padding_alignment_in_elements=1) for layout in pair]
    if ignore_memory_space:
        pair = [replace(layout, memory_space=0) for layout in pair]
    if ignore_element_size:
        pair = [replace(layout, element_size_in_bits=0) for layout in pair]
    return pair[0] == pair[1]


def permute(layout: Layout, permutation: Sequence[int]) -> Layout:
    """The layout of the transposed array that has the same buffer: its dimension i was ``permutation[i]``.

    Raises ValueError: not a permutation of the layout's dimensions.
    """
    if sorted(permutation) != list(range(layout.rank)):
        raise ValueError(f"{list(permutation)} is not a permutation of the {layout.rank} dimensions of {layout}")
    order = tuple(permutation.index(d) for d in layout.minor_to_major)
    padded = tuple(layout.padded_dimensions[d] for d in permutation) if layout.padded_dimensions else ()
    return replace(layout, minor_to_major=order, padded_dimensions=padded)


def delete_dimensions(layout: Layout, dimensions: Iterable[int]) -> Layout:
    """The layout without some dimensions; the others keep their order, and move up in number."""
    gone = set(dimensions)
    kept = [d for d in range(layout.rank) if d not in gone]
    order = tuple(kept.index(d) for d in layout.minor_to_major if d not in gone)
    padded = tuple(layout.padded_dimensions[d] for d in kept) if layout.padded_dimensions else ()
    return replace(layout, minor_to_major=order, padded_dimensions=padded)


def move_to_major(layout: Layout, dimension: int) -> Layout:
    """The layout in which ``dimension`` varies slowest."""
    others = tuple(d for d in layout.minor_to_major if d != dimension)
    return replace(layout, minor_to_major=(*others, dimension))


def move_to_minor(layout: Layout, dimension: int) -> Layout:
    """The layout in which ``dimension`` varies fastest."""
    others = tuple(d for d in layout.minor_to_major if d != dimension)
    return replace(layout, minor_to_major=(dimension, *others))


def are_consecutive(layout: Layout, dimensions: Iterable[int]) -> bool:
    """Whether no other dimension lies between these in memory."""
    places = [layout.minor_to_major.index(d) for d in dimensions]
    return not places or max(places) - min(places) + 1 == len(places)
