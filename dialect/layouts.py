"""``Layout``: the memory layout of an array's elements, and ``Tile``, one step of a tiled layout.

Source: XLA "Shapes and Layout", "Tiled layout" and ``layout.h``; the padding by dimension is of the first edition.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

# In a tile: the dimension joins the next minor one before the tile is applied. XLA writes it `*`.
COMBINE = -1

# The items of a layout's text after the colon, in the only order that XLA's parser takes.
ITEMS = ("D", "T", "L", "#", "*", "E", "S", "SC", "P", "M")

# What hloforge has no use for, kept as text: sparse level types, index and pointer types, split configs, the physical
# shape of a sparse array, the size in bytes of the metadata before a dynamic shape.
_EXTRAS = {
    "D": re.compile(r"D\((?:[DCS]\+?~?(?:,[DCS]\+?~?)*)?\)"),
    "#": re.compile(r"#\([us]\d+\)"),
    "*": re.compile(r"\*\([us]\d+\)"),
    "SC": re.compile(r"SC(?:\(\d+:\d+(?:,\d+)*\))+"),
    "P": re.compile(r"P\(.*\)"),
    "M": re.compile(r"M\(\d+\)"),
}


@dataclass(frozen=True, slots=True)
class Tile:
    """A block of the most minor physical dimensions that lies contiguously in memory.

    Attributes:
        dimensions: sizes, most major first; ``COMBINE`` joins a dimension to the next minor one.

    Raises:
        ValueError: a size is not positive, or the last one is ``COMBINE``.
    """

    dimensions: tuple[int, ...]

    def __post_init__(self) -> None:
        if any(size < 1 and size != COMBINE for size in self.dimensions):
            raise ValueError(f"tile {self}: sizes are positive, or COMBINE ('*')")
        if self.dimensions and self.dimensions[-1] == COMBINE:
            raise ValueError(f"tile {self}: the last dimension has no minor one to combine with")

    def __str__(self) -> str:
        return "(" + ",".join("*" if size == COMBINE else str(size) for size in self.dimensions) + ")"

    def combined(self, dimensions: Sequence[int]) -> tuple[list[int], tuple[int, ...]]:
        """The array's dimensions and the tile's after every ``*`` has joined its dimension to the next minor one.

        Args:
            dimensions: physical sizes, most major first; a tile of more dimensions adds leading ones of size 1.
        """
        missing = len(self.dimensions) - len(dimensions)
        sizes = [1] * missing + list(dimensions)
        start = len(sizes) - len(self.dimensions)
        joined = sizes[:start]
        kept = []
        carried = 1
        for size, tile_size in zip(sizes[start:], self.dimensions, strict=True):
            if tile_size == COMBINE:
                carried *= size
                continue
            joined.append(carried * size)
            kept.append(tile_size)
            carried = 1
        return joined, tuple(kept)

    def tiled(self, dimensions: Sequence[int]) -> list[int]:
        """The sizes after tiling: untouched major ones, counts of tiles, sizes within a tile."""
        joined, tile = self.combined(dimensions)
        start = len(joined) - len(tile)
        counts = [-(-size // tile_size) for size, tile_size in zip(joined[start:], tile, strict=True)]
        return [*joined[:start], *counts, *tile]


@dataclass(frozen=True, slots=True)
class Layout:
    """How the elements of an array lie in memory.

    Dimensions are widened to ``padded_dimensions``, ordered by ``minor_to_major``, tiled by each of ``tiles`` in turn,
    and the whole is extended at its end to a multiple of ``tail_padding_alignment_in_elements``.

    Attributes:
        minor_to_major: dimension numbers, fastest varying first.
        tiles: applied one after the other; a sequence of sizes represents a ``Tile``.
        tail_padding_alignment_in_elements: the buffer's element count is a multiple of it.
        element_size_in_bits: bits of one stored element; 0 means the element type's own whole bytes.
        memory_space: 0 is the device's main memory, 5 the host's (XLA's ``S(n)``).
        padded_dimensions: the size of each dimension in memory (first edition); has no text in XLA.
        padding_value: what the elements added by ``padded_dimensions`` hold.
        extras: the other items of XLA's text, verbatim (``("D(D,C~)", "SC(0:1)")``).

    Raises:
        ValueError: naming the rule that an attribute breaks.
    """

    minor_to_major: tuple[int, ...]
    tiles: tuple[Tile, ...] = ()
    tail_padding_alignment_in_elements: int = 1
    element_size_in_bits: int = 0
    memory_space: int = 0
    padded_dimensions: tuple[int, ...] = ()
    padding_value: complex = 0
    extras: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        order = self.minor_to_major
        if type(order) is not tuple:
            object.__setattr__(self, "minor_to_major", tuple(order))
        if sorted(order) != list(range(len(order))):
            raise ValueError(f"minor_to_major {list(order)} is not a permutation of {len(order)} dimensions")
        if self.tiles:
            tiles = tuple(tile if isinstance(tile, Tile) else Tile(tuple(tile)) for tile in self.tiles)
            object.__setattr__(self, "tiles", tiles)
        if self.tail_padding_alignment_in_elements < 1:
            raise ValueError(f"tail padding aligns to 1 or more, not {self.tail_padding_alignment_in_elements}")
        if self.element_size_in_bits < 0:
            raise ValueError(f"an element has 0 (its type's size) or more bits, not {self.element_size_in_bits}")
        if self.memory_space < 0:
            raise ValueError(f"memory spaces count from 0, not {self.memory_space}")
        if self.padded_dimensions:
            self._check_padding()
        for item in self.extras:
            _check_extra(item)

    def _check_padding(self) -> None:
        object.__setattr__(self, "padded_dimensions", tuple(self.padded_dimensions))
        if len(self.padded_dimensions) != self.rank:
            message = (
                f"padded_dimensions {list(self.padded_dimensions)} need one size for each of {self.rank} dimensions"
            )
            raise ValueError(message)

    @classmethod
    def default(cls, rank: int) -> Layout:
        """Row-major: ``{rank-1, ..., 0}``."""
        return cls(tuple(range(rank - 1, -1, -1)))

    @classmethod
    def parse(cls, text: str) -> Layout:
        """Read XLA's text, ``{1,0:T(8,128)(2,1)S(1)}``. Raises ValueError with the position that does not fit."""
        from hloforge.dialect.shape_text import parse_layout

        return parse_layout(text)

    @property
    def rank(self) -> int:
        return len(self.minor_to_major)

    @property
    def major_to_minor(self) -> tuple[int, ...]:
        return self.minor_to_major[::-1]

    @property
    def is_default(self) -> bool:
        """Row-major: the last dimension varies fastest. Tiles and padding are another matter: ``is_plain``."""
        return self.minor_to_major == tuple(range(self.rank - 1, -1, -1))

    @property
    def is_plain(self) -> bool:
        """Whether the buffer holds the elements alone, each in its type's own bytes: only their order may differ."""
        return not (
            self.tiles
            or self.padded_dimensions
            or self.element_size_in_bits
            or self.tail_padding_alignment_in_elements != 1
        )

    def physical_dimensions(self, dimensions: Sequence[int]) -> list[int]:
        """The row-major sizes of the buffer for an array of these sizes, before tail padding.

        Major to minor; every tile replaces the dimensions that it covers by counts of tiles and sizes within a tile.
        """
        sizes = [self.padded(dimensions)[d] for d in self.major_to_minor]
        for tile in self.tiles:
            sizes = tile.tiled(sizes)
        return sizes

    def padded(self, dimensions: Sequence[int]) -> tuple[int, ...]:
        """The sizes in memory. Raises ValueError if one is less than the array's own."""
        if not self.padded_dimensions:
            return tuple(dimensions)
        if any(wide < size for wide, size in zip(self.padded_dimensions, dimensions, strict=True)):
            raise ValueError(f"padded_dimensions {list(self.padded_dimensions)} are less than {list(dimensions)}")
        return self.padded_dimensions

    def buffer_elements(self, dimensions: Sequence[int]) -> int:
        """The number of elements of the buffer, padding included."""
        count, multiple = prod(self.physical_dimensions(dimensions)), self.tail_padding_alignment_in_elements
        return -(-count // multiple) * multiple

    def __str__(self) -> str:
        order = ",".join(map(str, self.minor_to_major))
        tail = self._items()
        return f"{{{order}:{tail}}}" if tail else f"{{{order}}}"

    def _items(self) -> str:
        found = {item_key(item): item for item in self.extras}
        if self.tiles:
            found["T"] = "T" + "".join(map(str, self.tiles))
        numbers = (
            ("L", self.tail_padding_alignment_in_elements, 1),
            ("E", self.element_size_in_bits, 0),
            ("S", self.memory_space, 0),
        )
        found |= {key: f"{key}({value})" for key, value, default in numbers if value != default}
        return "".join(found[key] for key in ITEMS if key in found)


def item_key(item: str) -> str:
    """The letters before the first parenthesis."""
    return item.partition("(")[0]


def _check_extra(item: str) -> None:
    pattern = _EXTRAS.get(item_key(item))
    if pattern is None or not pattern.fullmatch(item):
        raise ValueError(f"layout item {item!r} is none of D(D,C~) #(u32) *(u32) SC(0:1) P(shape) M(bytes)")
