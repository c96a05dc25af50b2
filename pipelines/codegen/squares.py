"""Squares of arrays that are read across the order in which results are written, transposed in registers.

What lies in memory along one loop and is needed along another is read by as many vectors as each has lanes, which
change places pair by pair (``products/shuffles.py``). Reading element by element, or by gathers, takes two to five
times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hloforge.pipelines.codegen.access import Accesses
from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.emit import Memory
from hloforge.pipelines.codegen.evaluate import Place
from hloforge.pipelines.codegen.graph import Array
from hloforge.pipelines.codegen.index import Index
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I64, Value, vector_of
from hloforge.pipelines.codegen.products.shuffles import square_transposed

# The side of a square of elements, whose lines of 64 bytes are in the first-level cache.
SIDE = 32
# Lanes that more shuffles would cost than they gain.
_MOST_LANES = 16
# Of elements by their bytes, whatever they mean: LLVM shuffles floats best.
_KINDS = {1: "i8", 2: "i16", 4: "float", 8: "double"}
# Processors of shorter vectors have no masks for each element type.
_MASKED = 64
# The shortest row that is taken together with others, the longest one if vectors leave a rest of it or make nothing of
# it, and arrays that are kept for some rows.
_LEAST_ROW, _LONGEST_ROW, _LONGEST_CHOICE, _MOST_HELD = 9, 63, 128, 4
# Bytes from one vector to the next that processors do not foresee, in arrays that no cache near them holds.
_FAR, _LARGE = 1024, 1 << 18


@dataclass(frozen=True)
class Loop:
    """A loop over places: its innermost dimension, and how many there are."""

    dim: int
    size: int


@dataclass(frozen=True)
class Sizes:
    """Two loops that are cut in squares.

    Attributes:
        along: iterations of the loop along which memory is read.
        across: of the other one.
    """

    along: int
    across: int


@dataclass(frozen=True)
class Held:
    """An array that is read along the inner of two loops, in a tile while both are written.

    Attributes:
        number: of the elements that are read.
        lanes: of the vectors that it is transposed by.
        stride: elements from one place of the outer loop to the next.
    """

    array: Array
    number: Index
    lanes: int
    stride: int


def short_rows(
    place: Place, found: Accesses, rows: Loop, columns: Loop, vector_bytes: int, *, are_choices: bool
) -> list[Held] | None:
    """What is read of rows that reductions add up, so that several rows are added up at once; None where they are not.

    Args:
        rows: the loop over rows.
        columns: the loop over the elements of a row.
        are_choices: whether LLVM makes no vectors of the reductions along a row.
    """
    most = _LONGEST_CHOICE if are_choices else SIDE if columns.size % _MOST_LANES == 0 else _LONGEST_ROW
    if not _LEAST_ROW <= columns.size <= most or rows.size < SIDE or found.conditions or found.is_irregular:
        return None
    row, column = (place[loop.dim].terms[0][0] for loop in (rows, columns))
    plain = {*found.fixed, *(index.terms[0][0] for index in place if index.terms)}
    held = []
    for array, number in dict.fromkeys(found.loads):
        factors = dict(number.terms)
        if not factors.keys() <= plain:
            return None
        if column not in factors or row not in factors:
            continue
        lanes = lanes_of_square(Sizes(columns.size, rows.size), array.element, vector_bytes)
        if factors[column] != 1 or not lanes:
            return None
        held.append(Held(array, number, lanes, factors[row]))
    return held if 0 < len(held) <= _MOST_HELD else None


def lanes_of_square(sizes: Sizes, element: str, vector_bytes: int) -> int:
    """Lanes of the vectors that a square of an array is read by; 0 where it is read element by element."""
    width = elements.size(element)
    if width > 8:
        return 0
    lanes = min(vector_bytes // width, _MOST_LANES, _power(max(min(sizes.along, SIDE), min(sizes.across, SIDE))))
    return 0 if _is_masked(sizes, lanes) and vector_bytes < _MASKED else lanes


def fill_square(
    function: Function,
    tile: Memory,
    memory: Memory,
    sizes: Sizes,
    lanes: int,
    extent: tuple[Value | int, Value | int],
    stride: int,
    number: Callable[[Value, Value], Value],
    *,
    pitch: int = SIDE,
) -> None:
    """Read a square of an array into a tile, whose rows are elements along the other loop.

    Args:
        extent: elements along and across; fewer at the ends.
        stride: elements from one place across to the next.
        number: the number of the element at a place of the square, along and across.
        pitch: elements from one row of the tile to the next.
    """
    width = elements.size(memory.element)
    kind = _KINDS[width]
    along, across = (function.index(size) for size in extent)
    masked = extent[0] < lanes if isinstance(extent[0], int) else _is_masked(sizes, lanes)
    is_whole = isinstance(extent[1], int) and extent[1] % lanes == 0
    # Others fetch what they read themselves, and where no square follows, nobody reads what lies there.
    is_far = (
        pitch == SIDE and sizes.across >= 4 * SIDE and stride * width >= _FAR and stride * width * sizes.across > _LARGE
    )
    last = (along - lanes).maximum(0)
    with function.loop(0, across, lanes) as column, function.loop(0, along, lanes) as start:
        # The last vector of a square begins early enough to end in it.
        row = start.minimum(last)
        first = function.offset(memory.pointer, kind, number(row, column))
        most = None if is_whole else across - column - 1
        vectors = []
        for lane in range(lanes):
            place = function.index(lane * stride) if most is None else most.minimum(lane) * stride
            address = function.offset(first, kind, place)
            if is_far:
                ahead = function.offset(address, kind, SIDE * stride)
                function.prefetch(ahead, level=3)
            vectors.append(
                _masked_load(function, address, kind, lanes, along - row)
                if masked
                else _load(function, address, kind, lanes)
            )
        for lane, vector in enumerate(square_transposed(function, vectors)):
            function.store(vector, function.offset(tile.pointer, kind, (row + lane) * pitch + column))


def _is_masked(sizes: Sizes, lanes: int) -> bool:
    """Whether squares may be shorter than a vector."""
    return 0 < sizes.along % SIDE < lanes


def _load(function: Function, address: Value, kind: str, lanes: int) -> Value:
    return function.load(address, vector_of(kind, lanes))


def _masked_load(function: Function, address: Value, kind: str, lanes: int, count: Value) -> Value:
    """The first lanes alone, where there are fewer elements."""
    places = Value(function, vector_of(I64, lanes), f"<{', '.join(f'i64 {lane}' for lane in range(lanes))}>")
    mask = places < function.spread(count, lanes)
    vector = vector_of(kind, lanes)
    return function.emit(
        f"call {vector} @llvm.masked.load.v{lanes}{_short(kind)}.p0(ptr {address.text}, i32 1, "
        f"{mask.kind} {mask.text}, {vector} poison)",
        vector,
    )


def _short(kind: str) -> str:
    return {"float": "f32", "double": "f64"}.get(kind, kind)


def _power(number: int) -> int:
    """The least power of two that is not below a number."""
    return 1 << max(number - 1, 1).bit_length()
