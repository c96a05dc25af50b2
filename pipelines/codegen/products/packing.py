"""Copies of factors in the order in which the micro-kernel reads them, widened to the type of the sums.

The right factor becomes a strip: for each term the tile's columns, one after the other. Columns that lie apart in
memory are transposed in registers. The left factor becomes the tiles' rows, for each term next to each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import POINTER, Value, lanes_of, vector_of
from hloforge.pipelines.codegen.products.blocking import Tile
from hloforge.pipelines.codegen.products.loops import carrying, each
from hloforge.pipelines.codegen.products.operands import Matrix, strided

# Terms that are transposed at once.
_TERMS = 4


def pack_strip(
    function: Function,
    tile: Tile,
    kind: str,
    matrix: Matrix,
    columns: Sequence[Value],
    depth: Value | int,
    target: Value,
) -> None:
    """Write ``[depth, tile.columns]`` numbers to ``target``.

    Args:
        kind: of the sums.
        matrix: the right factor; its rows are the terms.
        columns: the address of each vector's first column at the first term.
        depth: terms.
    """
    if matrix.column == 1 or tile.lanes == 1:
        _copy_rows(function, tile, kind, matrix, columns, depth, target)
        return
    # Of all vectors by one text, which finds where each begins.
    table = columns[0]
    if len(columns) > 1:
        table = function.stack(POINTER, len(columns))
        for place, column in enumerate(columns):
            function.store(column, function.offset(table, POINTER, place))
    with each(function, 0, len(columns)) as number:
        column = function.load(function.offset(table, POINTER, number), POINTER) if len(columns) > 1 else table
        start = strided(function, target, kind, [number], [tile.lanes])
        _transpose_columns(function, tile, kind, matrix, column, depth, start)


def _copy_rows(
    function: Function,
    tile: Tile,
    kind: str,
    matrix: Matrix,
    columns: Sequence[Value],
    depth: Value | int,
    target: Value,
) -> None:
    with carrying(function, 0, depth, [target, *columns]) as (loop, _, (to, *places)):
        for number, place in enumerate(places):
            stored = function.load(place, vector_of(matrix.kind, tile.lanes) if tile.lanes > 1 else matrix.kind)
            function.store(stored.as_(kind, signed=matrix.signed), function.offset(to, kind, number * tile.lanes))
        loop.next(
            [
                function.offset(to, kind, tile.columns),
                *(function.offset(place, matrix.kind, matrix.row) for place in places),
            ]
        )


def _transpose_columns(
    function: Function, tile: Tile, kind: str, matrix: Matrix, column: Value, depth: Value | int, target: Value
) -> None:
    """Columns of consecutive terms, several terms at a time; the last ones may be copied twice."""
    step = 1
    if matrix.row == 1:
        # Blocks of terms, whose number is not constant, are long.
        step = min(_TERMS, 1 << (depth.bit_length() - 1)) if isinstance(depth, int) else _TERMS
    with each(function, 0, depth, step) as reached:
        is_whole = isinstance(depth, int) and depth % step == 0
        term = reached if is_whole else reached.minimum(depth - step)
        start = function.offset(column, matrix.kind, term * matrix.row)
        rows = [
            function.load(
                function.offset(start, matrix.kind, lane * matrix.column),
                vector_of(matrix.kind, step) if step > 1 else matrix.kind,
            )
            for lane in range(tile.lanes)
        ]
        to = function.offset(target, kind, term * tile.columns)
        for number, vector in enumerate(transposed(function, rows, step)):
            function.store(vector.as_(kind, signed=matrix.signed), function.offset(to, kind, number * tile.columns))


def transposed(function: Function, rows: Sequence[Value], width: int) -> list[Value]:
    """``width`` vectors of as many lanes as there are ``rows``, whose lanes count ``width``; both powers of two.

    Rows are first joined to whole vectors, each of rows that lie ``width`` apart, whose parts of ``width`` lanes are
    then transposed within the parts of the processor's registers, which is the cheapest shuffle.
    """
    count = len(rows)
    if width == 1:
        return [_gathered(function, rows)]
    if count <= width:
        return _interleaved(function, rows, width)
    joined = []
    for first in range(width):
        group = list(rows[first::width])
        while len(group) > 1:
            group = [
                function.shuffle(left, right, range(2 * lanes_of(left.kind)))
                for left, right in zip(group[::2], group[1::2], strict=True)
            ]
        joined.append(group[0])
    # Bit by bit, a row's number within its part and a lane's number change places.
    bit = 1
    while bit < width:
        following = list(joined)
        for place in range(width):
            if place & bit:
                continue
            left, right = joined[place], joined[place | bit]
            low = [lane if not lane & bit else count + (lane ^ bit) for lane in range(count)]
            high = [lane | bit if not lane & bit else count + lane for lane in range(count)]
            following[place] = function.shuffle(left, right, low)
            following[place | bit] = function.shuffle(left, right, high)
        joined = following
        bit *= 2
    return joined


def _interleaved(function: Function, rows: Sequence[Value], width: int) -> list[Value]:
    group = list(rows)
    while len(group) > 1:
        group = [
            function.shuffle(left, right, range(2 * lanes_of(left.kind)))
            for left, right in zip(group[::2], group[1::2], strict=True)
        ]
    count = len(rows)
    return [function.shuffle(group[0], None, [row * width + term for row in range(count)]) for term in range(width)]


def _gathered(function: Function, numbers: Sequence[Value]) -> Value:
    kind = vector_of(numbers[0].kind, len(numbers))
    vector = Value(function, kind, "poison")
    for place, number in enumerate(numbers):
        vector = function.emit(f"insertelement {kind} {vector.text}, {number}, i64 {place}", kind)
    return vector


def widen_rows(
    function: Function,
    kind: str,
    matrix: Matrix,
    first: Value,
    rows: Value | int,
    depth: int,
    lanes: int,
    target: Value,
) -> None:
    """Write ``[rows, depth]`` numbers to ``target``, of rows whose terms are next to each other in memory.

    Args:
        first: the address of the first row.
        lanes: of the vectors that are moved, at most ``depth``.
    """
    with carrying(function, 0, rows, [first, target]) as (loop, _, (source, to)):
        with each(function, 0, depth, lanes) as reached:
            term = reached.minimum(depth - lanes) if depth % lanes else reached
            stored = function.load(
                function.offset(source, matrix.kind, term), vector_of(matrix.kind, lanes) if lanes > 1 else matrix.kind
            )
            function.store(stored.as_(kind, signed=matrix.signed), function.offset(to, kind, term))
        loop.next([function.offset(source, matrix.kind, matrix.row), function.offset(to, kind, depth)])


def gather_tile(
    function: Function, rows: int, kind: str, matrix: Matrix, first: Value, depth: int, target: Value
) -> None:
    """Write ``[depth, rows]`` numbers to ``target``: a tile's rows of a left factor whose rows are next to each other.

    Args:
        first: the address of the tile's first row.
    """
    with carrying(function, 0, depth, [first, target]) as (loop, _, (source, to)):
        stored = function.load(source, vector_of(matrix.kind, rows) if rows > 1 else matrix.kind)
        function.store(stored.as_(kind, signed=matrix.signed), to)
        loop.next([function.offset(source, matrix.kind, matrix.column), function.offset(to, kind, rows)])
