"""Layouts for property tests, and where XLA's document puts an element: its formulas, one index at a time."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hloforge.dialect.element_types import TABLE
from hloforge.dialect.layouts import COMBINE, Layout, Tile
from hloforge.dialect.shapes import Shape

sizes = st.lists(st.integers(0, 6), max_size=4)


def tiles(rank: int) -> st.SearchStrategy[Tile]:
    body = st.lists(st.integers(1, 4) | st.just(COMBINE), max_size=rank + 1)
    return st.tuples(body, st.integers(1, 4)).map(lambda pair: Tile((*pair[0], pair[1])))


@st.composite
def layouts(draw: st.DrawFn, dimensions: Sequence[int]) -> Layout:
    """Any order, padding, tiles, tail and memory space."""
    rank = len(dimensions)
    padded = tuple(size + draw(st.integers(0, 2)) for size in dimensions) if draw(st.booleans()) else ()
    return Layout(
        tuple(draw(st.permutations(range(rank)))),
        tiles=tuple(draw(st.lists(tiles(rank), max_size=3))),
        tail_padding_alignment_in_elements=draw(st.sampled_from([1, 1, 4, 7])),
        memory_space=draw(st.sampled_from([0, 1, 5])),
        padded_dimensions=padded,
        padding_value=draw(st.integers(0, 1)),
    )


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """A static array shape with a layout; elements that fill bytes evenly are packed now and then."""
    dimensions = draw(sizes)
    element = draw(st.sampled_from(TABLE))
    layout = draw(layouts(dimensions))
    if element.bits in (1, 2, 4) and draw(st.booleans()):
        layout = Layout(layout.minor_to_major, layout.tiles, element_size_in_bits=element.bits)
    return Shape(element, tuple(dimensions), layout=layout)


def values(shape: Shape) -> np.ndarray[Any, Any]:
    """Elements that differ from their neighbours, as far as the type can."""
    assert shape.element is not None
    numbers = np.arange(1, shape.element_count + 1)
    low_codes = numbers % 7 if shape.element.bits < 8 else numbers % 120
    small = low_codes % 2 if shape.element.bits <= 2 else low_codes
    return small.astype(np.float32).astype(shape.element.dtype).reshape(shape.dimensions)


def position_by_document(shape: Shape, index: Sequence[int]) -> int:
    """ "Linear index formulas for tiling" of XLA's "Tiled layout", after its rule for ``*``."""
    layout = shape.layout_or_default
    bounds = layout.padded_dimensions or shape.dimensions
    element = [index[d] for d in reversed(layout.minor_to_major)]
    limits = [bounds[d] for d in reversed(layout.minor_to_major)]
    for tile in layout.tiles:
        element, limits = _tiled(element, limits, list(tile.dimensions))
    return sum(e * prod(limits[i + 1 :]) for i, e in enumerate(element))


def _tiled(element: list[int], limits: list[int], tile: list[int]) -> tuple[list[int], list[int]]:
    while len(tile) > len(limits):
        element, limits = [0, *element], [1, *limits]
    while COMBINE in tile:
        i = tile.index(COMBINE) - len(tile)
        joined = element[i] * limits[i + 1] + element[i + 1]
        limit = limits[i] * limits[i + 1]
        element = [*element[:i], joined, *element[len(element) + i + 2 :]]
        limits = [*limits[:i], limit, *limits[len(limits) + i + 2 :]]
        tile = [size for j, size in enumerate(tile) if j != tile.index(COMBINE)]
    start = len(limits) - len(tile)
    tiled = element[:start], limits[:start]
    outer = [e // t for e, t in zip(element[start:], tile, strict=True)]
    inner = [e % t for e, t in zip(element[start:], tile, strict=True)]
    counts = [-(-d // t) for d, t in zip(limits[start:], tile, strict=True)]
    return [*tiled[0], *outer, *inner], [*tiled[1], *counts, *tile]
