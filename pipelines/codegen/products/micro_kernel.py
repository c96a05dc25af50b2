"""The innermost loop of products: a tile of sums in registers, to which each term adds a column times a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hloforge.pipelines.codegen.chains import Terms, add_up
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I8, Number, Value, vector_of
from hloforge.pipelines.codegen.products.arithmetic import Arithmetic
from hloforge.pipelines.codegen.products.blocking import Tile

# Terms between a prefetch and its use: of 4, 6, 8, 12, 16 and 32 the best for products of 16 to 512 rows.
_AHEAD = 8


@dataclass(frozen=True)
class Side:
    """A factor as the micro-kernel reads it; all distances are in bytes.

    Attributes:
        kind: of what is read at once of a row: an element, or a group of terms as an integer.
        across: between rows (left factor) or vectors (right factor) of the tile, where they have one address.
        along: between terms of the innermost loop.
        align: of an element in memory.
        signed: whether integers narrower than the sums have a sign.
        is_far: whether terms lie so far apart that the processor does not fetch the next ones by itself.
    """

    kind: str
    across: int
    along: int
    align: int
    signed: bool = True
    is_far: bool = False


@dataclass(frozen=True)
class Turn:
    """A loop of terms around the innermost one.

    Attributes:
        count: of its iterations.
        left: bytes from one iteration to the next in the left factor.
        right: the same in the right factor.
        most: iterations at most.
    """

    count: Number
    left: int
    right: Number
    most: int


@dataclass(frozen=True)
class Ahead:
    """Memory that later tiles read, fetched into the second-level cache while the terms of this one go by.

    Attributes:
        start: the address of what this tile fetches.
        times, shift: bytes that are fetched for each byte of a vector of the right factor: ``times / 2**shift``.
    """

    start: Value
    times: int
    shift: int

    def fetch(self, function: Function, place: Value) -> None:
        """What belongs to a term so many bytes from the first one."""
        address = function.offset(self.start, I8, (place * self.times).udiv(1 << self.shift))
        function.prefetch(address, level=2)


def add_terms(
    function: Function,
    tile: Tile,
    arithmetic: Arithmetic,
    left: Side,
    right: Side,
    rows: Sequence[Value],
    vectors: Sequence[Value],
    terms: Number,
    sums: Sequence[Value],
    turns: Sequence[Turn] = (),
    *,
    most: int = 0,
    ahead: Ahead | None = None,
) -> list[Value]:
    """Add terms to a tile of sums, in chains of limited length.

    All loops count bytes of each side in one number: pointers of their own for rows and vectors cost LLVM's strength
    reduction more than all other code does.

    Args:
        rows: the addresses of the tile's rows in the left factor at its first term, or of the first row alone.
        vectors: the addresses of the tile's vectors in the right factor at its first term, or of the first alone.
        terms: of the innermost loop, at least 1.
        sums: by rows, ``tile.rows * tile.vectors`` of them.
        turns: loops around it, the outermost one first.
        most: terms of the innermost loop at most, where their number is computed.
        ahead: what is fetched meanwhile.

    Returns:
        the sums.
    """

    def add(distances: Sequence[Value], sums: Sequence[Value]) -> list[Value]:
        at, place = distances
        if ahead is not None:
            ahead.fetch(function, place)
        addresses = _addresses(function, vectors, place, tile.vectors, right.across)
        if right.is_far:
            fetch(function, addresses, right.along)
        if tile.tail:
            addresses[-1] = function.offset(addresses[-1], right.kind, tile.skipped(-1))
        loaded = [
            arithmetic.vectors_of(
                function.load(vector, wide(right.kind, tile.lanes_of(number)), right.align), signed=right.signed
            )
            for number, vector in enumerate(addresses)
        ]
        following = []
        for row, address in enumerate(_addresses(function, rows, at, tile.rows, left.across)):
            factors = arithmetic.numbers_at(address, left.kind, left.align, tile.lanes, signed=left.signed)
            for number, vectors_of_one in enumerate(loaded):
                total = sums[row * tile.vectors + number]
                if tile.lanes_of(number) < tile.lanes:
                    factors = tuple(function.shuffle(factor, None, range(tile.tail)) for factor in factors)
                for factor, vector in zip(factors, vectors_of_one, strict=True):
                    total = arithmetic.multiply_add(factor, vector, total)
                following.append(total)
        return following

    loops = loops_of(terms, left, right, turns, most)
    return add_up(function, loops, [function.index(0)] * 2, sums, add, weight=arithmetic.weight)


def loops_of(terms: Number, left: Side, right: Side, turns: Sequence[Turn], most: int = 0) -> list[Terms]:
    """The loops over the terms of a tile, which count the bytes of both factors."""
    around = [Terms(turn.count, turn.most, (turn.left, turn.right)) for turn in turns]
    return [*around, Terms(terms, most if isinstance(terms, Value) else int(terms), (left.along, right.along))]


def fetch(function: Function, addresses: Sequence[Value], along: int) -> None:
    """Let the processor get what is read at these addresses some terms later.

    Args:
        along: bytes between terms.
    """
    for address in addresses:
        ahead = function.offset(address, I8, _AHEAD * along)
        function.prefetch(ahead)


def zeros(function: Function, tile: Tile, kind: str) -> list[Value]:
    """Sums without terms."""
    return [function.constant(0, wide(kind, tile.lanes_of(place))) for place in range(tile.vectors)] * tile.rows


def wide(kind: str, lanes: int) -> str:
    """A vector's type, or the number's for one lane."""
    return vector_of(kind, lanes) if lanes > 1 else kind


def _addresses(function: Function, bases: Sequence[Value], place: Value, count: int, distance: int) -> list[Value]:
    """Of a tile's rows or vectors, so many bytes further."""
    moved = [function.offset(base, I8, place) for base in bases]
    if len(moved) == count:
        return moved
    return [function.offset(moved[0], I8, number * distance) for number in range(count)]
