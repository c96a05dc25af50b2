"""How a product is cut: vectors and rows of a tile in registers, terms that stay in a cache, pieces for workers.

All sizes are known when code is written, so the one tile that a kernel has is chosen for its product: rows that divide
the product's rows well, and vectors that divide its columns. What is left over is computed again by a last tile that
begins earlier instead of one with masks (``tiles.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from hloforge.pipelines.codegen.lang.values import bits_of
from hloforge.pipelines.framework.machine import Machine

# Cycles of a tile beside its terms: addresses, zeros and the stores of each sum.
_TILE_CYCLES, _SUM_CYCLES = 12, 1
# Multiplications and additions of vectors in a cycle (1 on a Zen 4, 2 on a Zen 5), and cycles until one is made.
_RATE, _LATENCY = 1.5, 4
# What loads of the left and of the right factor cost beside multiplications: two are made in a cycle, and those of the
# right one come from the second-level cache.
_LOAD_CYCLES, _FAR_LOAD_CYCLES = 0.2, 0.4
# Rows of a tile: those of a matrix whose rows lie a multiple of 4 KiB apart share one set of the first-level cache,
# which has eight lines. Tiles of one vector have many sums only by many rows.
_MOST_ROWS, _MOST_ROWS_OF_ONE = 8, 14
# Lanes of a narrow vector at least, because fewer take as long, and what it saves of a whole one's time.
_LEAST_TAIL, _NARROW = 4, 0.5
# Of the second-level cache, what terms of the right factor may fill while rows stream past them.
_DEPTH_SHARE = 2
# A multiplication and addition of vectors takes about this long: 3.5 GHz, one vector of the machine's width a cycle.
_VECTOR_NS = 0.3
# Bytes of factors that a core reads from the last cache or memory in a nanosecond.
_BYTES_PER_NS = 25
# From this time on handing a product over to workers pays, and no piece is to be shorter than the other number.
_SHARED_NS, _PIECE_NS = 30_000, 10_000


@dataclass(frozen=True)
class Tile:
    """Sums that stay in registers while the terms go by.

    Attributes:
        lanes: of a vector; 1 for numbers.
        rows: of the tile.
        vectors: of a row.
        tail: lanes of a row's last vector where it has fewer: the upper ones, because it overlaps the one before.
    """

    lanes: int
    rows: int
    vectors: int
    tail: int = 0

    @property
    def columns(self) -> int:
        return self.lanes * self.vectors

    def lanes_of(self, place: int) -> int:
        """Of a vector of a row, by its number."""
        return self.tail if self.tail and place % self.vectors == self.vectors - 1 else self.lanes

    def skipped(self, place: int) -> int:
        """The lanes before those that a vector of a row has."""
        return self.lanes - self.lanes_of(place)


def last_tile(tile: Tile, columns: int) -> Tile:
    """The tile for the last strip of so many columns: no vector more than there are, and a narrow one for a rest.

    A vector of half the lanes takes half the time where the processor makes wide ones in two steps, and a quarter as
    long as half. Results that are computed twice are few then.
    """
    left = columns - (-(-columns // tile.columns) - 1) * tile.columns
    vectors, rest = -(-left // tile.lanes), left % tile.lanes
    tails = [tile.lanes // share for share in (4, 2) if tile.lanes // share >= _LEAST_TAIL]
    # A vector that is not the first one: the one before ends where its lanes begin.
    tail = next((lanes for lanes in tails if 0 < rest <= lanes), 0) if columns > tile.lanes else 0
    return replace(tile, vectors=vectors, tail=tail)


def lanes_for(kind: str, columns: int, machine: Machine) -> int:
    """The lanes of vectors for so many columns: of the machine's width, or the largest power of two that fits."""
    widest = machine.vector_bytes * 8 // bits_of(kind)
    return min(widest, 1 << (columns.bit_length() - 1))


def choose_tile(
    kind: str,
    rows: int,
    columns: int,
    depth: int,
    machine: Machine,
    *,
    is_complex: bool = False,
    has_last: bool = False,
    units: Callable[[Tile], float] | None = None,
) -> Tile:
    """The tile with which a product of these sizes takes the fewest cycles, by a model of the processor.

    The model counts multiplications of vectors, loads of both factors, and what each tile costs beside its terms.

    Args:
        has_last: whether the last strip has a tile of its own (``last_tile``).
        units: how many equal parts, and a piece of one, workers share out with a tile; None where nobody waits.
    """
    lanes = lanes_for(kind, columns, machine)
    across = -(-columns // lanes)
    tiles = [Tile(lanes, *shape) for shape in _shapes(rows, across, machine.vector_count, 1 + is_complex)]
    # Of equal ones the largest: it reads the factors least often.
    parts = 1 + is_complex

    def cost(tile: Tile) -> tuple[float, int]:
        cycles = cycles_of(tile, rows, columns, depth, parts, has_last)
        if units is not None:
            cycles *= unevenness(units(tile), machine.workers)
        return cycles, -tile.rows * tile.vectors

    return min(tiles, key=cost)


def unevenness(units: float, workers: int) -> float:
    """What the worker with the most of some equal parts, and a piece of one, takes, of an even share."""
    whole, rest = divmod(units, 1)
    most = -(-whole // workers) if whole % workers else whole // workers + rest
    return most * workers / units


def cycles_of(tile: Tile, rows: int, columns: int, depth: int, parts: int = 1, has_last: bool = False) -> float:
    """How long a product of these sizes takes by a tile, by the same model.

    Args:
        parts: of a number; terms of complex ones are two multiplications.
        has_last: as for ``choose_tile``.
    """

    def of_strip(tile: Tile) -> float:
        across = tile.vectors - _NARROW * (tile.tail > 0)
        sums = tile.rows * across
        step = parts * (max(sums / _RATE, _LATENCY) + _LOAD_CYCLES * tile.rows + _FAR_LOAD_CYCLES * across)
        return depth * step + _SUM_CYCLES * sums + _TILE_CYCLES

    strips = -(-columns // tile.columns)
    if has_last:
        return -(-rows // tile.rows) * ((strips - 1) * of_strip(tile) + of_strip(last_tile(tile, columns)))
    return -(-rows // tile.rows) * strips * of_strip(tile)


def _shapes(rows: int, across: int, registers: int, parts: int) -> Iterator[tuple[int, int]]:
    for vectors in range(1, min(across, 6) + 1):
        # A row of the right factor and a number of the left one are in registers beside the sums.
        most = min(
            rows, (registers - parts * (vectors + 1)) // vectors, _MOST_ROWS if vectors > 1 else _MOST_ROWS_OF_ONE
        )
        for count in range(1, most + 1):
            yield count, vectors


def block_depth(steps: int, step_bytes: int, machine: Machine) -> int:
    """How many steps, of so many bytes each, are made before the next rows, so that they stay in a cache."""
    most = max(machine.l2_bytes // _DEPTH_SHARE // step_bytes, 64)
    if steps <= most + most // 2:
        return steps
    return -(-steps // -(-steps // most))


def chunk_tiles(tiles: int, most: int, strips: int, wanted: int, least: int) -> int:
    """Tiles of rows in a unit of work.

    Args:
        most: tiles that a unit may have.
        strips: units that there are of each chunk.
        wanted: pieces of the work, which have about equal numbers of units where there are four times as many.
        least: tiles that a unit has where there are as many.
    """
    chunk = min(tiles, max(1, most))
    while wanted > 1 and -(-tiles // chunk) * strips < 4 * wanted and chunk >= 2 * least:
        chunk = -(-chunk // 2)
    return -(-tiles // -(-tiles // chunk))


def nanoseconds(multiplications: int, factor_bytes: int, lanes: int) -> float:
    """What a product takes one thread, roughly."""
    return max(multiplications / lanes * _VECTOR_NS, factor_bytes / _BYTES_PER_NS)


def pieces_for(multiplications: int, factor_bytes: int, lanes: int, machine: Machine) -> int:
    """Into how many pieces of about equal work it pays to cut a product, by its multiplications and what it reads.

    Several ones are as many as workers can share evenly.
    """
    total = nanoseconds(multiplications, factor_bytes, lanes)
    if total < _SHARED_NS:
        return 1
    return machine.workers * min(-(-int(total // _PIECE_NS) // machine.workers), 4)
