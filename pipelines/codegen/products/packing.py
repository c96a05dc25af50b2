"""Copies of factors in the order in which the micro-kernel reads them.

The right factor becomes a strip: for each term, or group of terms, the tile's columns one after the other. The left
factor becomes rows whose terms are next to each other, or for each tile and term its rows. Terms one by one are widened
to the type of the sums here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import (
    DOUBLE,
    FLOAT,
    I8,
    POINTER,
    Number,
    Value,
    bits_of,
    lanes_of,
    vector_of,
)
from hloforge.pipelines.codegen.products.arithmetic import Arithmetic, PairArithmetic
from hloforge.pipelines.codegen.products.blocking import Tile
from hloforge.pipelines.codegen.products.loops import SCALAR, carrying, each
from hloforge.pipelines.codegen.products.micro_kernel import Turn, fetch, wide
from hloforge.pipelines.codegen.products.operands import Matrix, Stored, strided
from hloforge.pipelines.codegen.products.shuffles import interleaved, joined, transposed

# Terms or groups of terms that are transposed at once, and elements of rows that are moved at once.
_TERMS, _MOVED = 4, 16
# Rows, and terms of them, that are transposed at once.
TURNED = 16
# Bytes of the first-level cache that positions of windows are turned in.
_BUFFERED = 1 << 13


def strip_bytes(tile: Tile, arithmetic: Arithmetic, steps: int) -> int:
    """Of a packed strip, with the vectors that sums begin with where the arithmetic needs some."""
    return (steps + arithmetic.flips) * tile.columns * arithmetic.unit_bytes


def pack_strip(
    function: Function,
    tile: Tile,
    arithmetic: Arithmetic,
    matrix: Matrix,
    columns: Sequence[Value],
    depth: Number,
    target: Value,
) -> None:
    """Write ``[steps, tile.columns]`` units to ``target``, each a term or a group of terms.

    Args:
        matrix: the right factor; its rows are the terms.
        columns: the address of each vector's first column at the first term.
        depth: terms; a number that is known where they are grouped.
    """
    steps = depth
    if isinstance(arithmetic, PairArithmetic) and matrix.column != 1:
        with _each_vector(function, tile, arithmetic, columns, target) as (column, to):
            _join_pairs(function, tile, arithmetic, matrix, column, depth, to)
        return
    if arithmetic.group > 1:
        assert isinstance(depth, int)
        # Elements that lie apart in both directions are grouped one by one.
        steps = depth // arithmetic.group if 1 in (matrix.row, matrix.column) else 0
    if matrix.column == 1 or tile.lanes == 1:
        _copy_rows(function, tile, arithmetic, matrix, columns, steps, target)
    elif isinstance(steps, Value) or steps:
        with _each_vector(function, tile, arithmetic, columns, target) as (column, to):
            _transpose_columns(function, tile, arithmetic, matrix, column, steps, to)
    if arithmetic.group == 1:
        return
    assert isinstance(steps, int)
    assert isinstance(depth, int)
    if steps * arithmetic.group < depth:
        with _each_vector(function, tile, arithmetic, columns, target) as (column, to):
            _copy_one_by_one(function, tile, arithmetic, matrix, column, steps, depth, to)
    written, size = -(-depth // arithmetic.group), tile.columns * arithmetic.unit_bytes
    if (rest := row_units(arithmetic, depth) - written) > 0:
        function.clear(function.offset(target, I8, written * size), rest * size)


def _copy_rows(
    function: Function,
    tile: Tile,
    arithmetic: Arithmetic,
    matrix: Matrix,
    columns: Sequence[Value],
    steps: Number,
    target: Value,
) -> None:
    """Terms whose columns are next to each other."""
    step = matrix.row * arithmetic.group
    with carrying(function, 0, steps, [target, *columns]) as (loop, _, (to, *places)):
        fetch(function, places, step * matrix.bytes)
        for number, place in enumerate(places):
            vectors = [
                element(
                    function, arithmetic, matrix, function.offset(place, matrix.kind, term * matrix.row), tile.lanes
                )
                for term in range(arithmetic.group)
            ]
            function.store(
                grouped(function, arithmetic, vectors),
                function.offset(to, arithmetic.unit, number * tile.lanes),
                arithmetic.unit_bytes,
            )
        loop.next(
            [
                function.offset(to, arithmetic.unit, tile.columns),
                *(function.offset(place, matrix.kind, step) for place in places),
            ]
        )


def positions_of(matrix: Matrix, turns: Sequence[Turn]) -> int:
    """The positions of a window that follow each other in a right factor, less than 0 where the first one lies last.

    0 where they do not, or where its terms or columns do.

    Args:
        turns: loops of terms around the innermost one.
    """
    if not turns or 1 in (matrix.row, matrix.column):
        return 0
    count, sign = 1, 1 if turns[-1].right == matrix.bytes else -1
    for turn in reversed(turns):
        if not isinstance(turn.count, int) or turn.right != sign * count * matrix.bytes:
            return 0
        count *= turn.count
    return sign * count


def pack_windows(
    function: Function,
    tile: Tile,
    arithmetic: Arithmetic,
    matrix: Matrix,
    columns: Sequence[Value],
    positions: int,
    depth: int,
    target: Value,
) -> None:
    """Write ``[positions, steps, tile.columns]`` units, of weights whose positions in a window follow each other.

    Behind them are zeros as far as the last block is not filled; such steps have whole groups.

    Terms of one position lie apart, as do columns. So some terms of all positions are turned at once, by squares of
    columns and of what follows each other, into a buffer in the first-level cache, and are grouped from there.

    Args:
        columns: the address of each vector's first column at the first term and position.
        positions: of a window; less than 0 where the first one lies last.
        depth: terms of a position.
    """
    group, count, lanes = arithmetic.group, abs(positions), tile.lanes
    kind, steps = wide(arithmetic.element, lanes), -(-depth // arithmetic.group)
    block = max(_BUFFERED * 8 // (bits_of(arithmetic.element) * lanes * count) // group, 1) * group
    block = min(block, steps * group)
    buffer = function.stack(kind, block * count)

    def turn(start: Value, to: Value, size: int) -> None:
        """What follows each other, of each column."""
        step = min(TURNED, 1 << (size.bit_length() - 1))
        with each(function, 0, size, step) as reached:
            place = reached.minimum(size - step) if size % step else reached
            at = function.offset(start, matrix.kind, place)
            rows = [
                element(function, arithmetic, matrix, function.offset(at, matrix.kind, lane * matrix.column), step)
                for lane in range(lanes)
            ]
            for number, vector in enumerate(transposed(function, rows, step)):
                function.store(vector, function.offset(function.offset(to, kind, place), kind, number))

    def copy(column: Value, to: Value, size: int) -> None:
        """So many terms of all positions."""
        lowest = function.offset(column, matrix.kind, min(positions + 1, 0))
        if matrix.row == count:
            turn(lowest, buffer, size * count)
        else:
            with each(function, 0, size) as term:
                start = strided(function, lowest, matrix.kind, [term], [matrix.row])
                turn(start, function.offset(buffer, kind, term * count), count)
        with each(function, 0, count) as position, each(function, 0, size, group) as term:
            first = function.offset(buffer, kind, position if positions > 0 else -position + (count - 1))
            first = function.offset(first, kind, term * count)
            vectors = [function.load(function.offset(first, kind, n * count), kind) for n in range(group)]
            place = strided(function, to, arithmetic.unit, [position], [steps * tile.columns])
            place = strided(function, place, arithmetic.unit, [term.udiv(group)], [tile.columns])
            function.store(grouped(function, arithmetic, vectors), place, arithmetic.unit_bytes)

    with _each_vector(function, tile, arithmetic, columns, target) as (column, to):
        whole = depth - depth % block
        with each(function, 0, whole, block) as term:
            start = strided(function, column, matrix.kind, [term], [matrix.row])
            copy(start, strided(function, to, arithmetic.unit, [term.udiv(group)], [tile.columns]), block)
        if rest := depth - whole:
            # The last group may have fewer terms.
            function.clear(
                function.offset(buffer, kind, rest * count),
                (-rest % group) * count * (bits_of(arithmetic.element) * lanes // 8),
            )
            start = function.offset(column, matrix.kind, whole * matrix.row)
            copy(start, function.offset(to, arithmetic.unit, whole // group * tile.columns), rest)
    filled = count * steps
    if missing := -filled % arithmetic.block:
        end = function.offset(target, arithmetic.unit, filled * tile.columns)
        function.clear(end, missing * tile.columns * arithmetic.unit_bytes)


@contextmanager
def _each_vector(
    function: Function, tile: Tile, arithmetic: Arithmetic, columns: Sequence[Value], target: Value
) -> Iterator[tuple[Value, Value]]:
    """One text for all vectors of a strip: the address of one's first column, and its place in the strip."""
    if len(columns) == 1:
        yield columns[0], target
        return
    table = function.stack(POINTER, len(columns))
    for place, column in enumerate(columns):
        function.store(column, function.offset(table, POINTER, place))
    with each(function, 0, len(columns)) as number:
        column = function.load(function.offset(table, POINTER, number), POINTER)
        yield column, strided(function, target, arithmetic.unit, [number], [tile.lanes])


def _transpose_columns(
    function: Function,
    tile: Tile,
    arithmetic: Arithmetic,
    matrix: Matrix,
    column: Value,
    steps: Number,
    target: Value,
) -> None:
    """Columns of consecutive terms, several steps at a time; the last ones may be copied twice."""
    step = 1
    if matrix.row == 1:
        # Blocks of terms, whose number is not constant, are long.
        step = min(_TERMS, 1 << (steps.bit_length() - 1)) if isinstance(steps, int) else _TERMS
    with each(function, 0, steps, step) as reached:
        is_whole = isinstance(steps, int) and steps % step == 0
        number = reached if is_whole else reached.minimum(steps - step)
        start = function.offset(column, matrix.kind, number * (arithmetic.group * matrix.row))
        rows = []
        for lane in range(tile.lanes):
            address = function.offset(start, matrix.kind, lane * matrix.column)
            elements = element(function, arithmetic, matrix, address, step * arithmetic.group)
            rows.append(_units(function, arithmetic, elements))
        to = function.offset(target, arithmetic.unit, number * tile.columns)
        for place, vector in enumerate(transposed(function, rows, step)):
            function.store(vector, function.offset(to, arithmetic.unit, place * tile.columns), arithmetic.unit_bytes)


def _join_pairs(
    function: Function,
    tile: Tile,
    arithmetic: Arithmetic,
    matrix: Matrix,
    column: Value,
    depth: Number,
    target: Value,
) -> None:
    """Complex numbers of columns that lie apart, several terms at a time; the last ones may be copied twice.

    Args:
        matrix: its columns are parts; the numbers of a column lie next to each other.
    """
    numbers, step = tile.lanes // 2, 1
    if matrix.row == 2:
        step = min(_TERMS, 1 << (depth.bit_length() - 1)) if isinstance(depth, int) else _TERMS
    # A number is moved as one lane, where there are lanes of its size.
    lane = DOUBLE if arithmetic.element == FLOAT else vector_of(arithmetic.element, 2)
    with each(function, 0, depth, step) as reached:
        is_whole = isinstance(depth, int) and depth % step == 0
        term = reached if is_whole else reached.minimum(depth - step)
        start = strided(function, column, matrix.kind, [term], [matrix.row])
        to = strided(function, target, arithmetic.element, [term], [tile.columns])
        places = [function.offset(start, matrix.kind, number * 2 * matrix.column) for number in range(numbers)]
        if lane == DOUBLE:
            rows = [function.load(place, wide(lane, step), matrix.bytes) for place in places]
            vectors = transposed(function, rows, step)
        else:
            vectors = [
                joined(
                    function,
                    [
                        function.load(function.offset(place, matrix.kind, number * matrix.row), lane, matrix.bytes)
                        for place in places
                    ],
                )
                for number in range(step)
            ]
        for number, vector in enumerate(vectors):
            function.store(vector, function.offset(to, arithmetic.element, number * tile.columns), matrix.bytes)


def _copy_one_by_one(
    function: Function,
    tile: Tile,
    arithmetic: Arithmetic,
    matrix: Matrix,
    column: Value,
    first: int,
    depth: int,
    target: Value,
) -> None:
    """Groups from ``first`` on, of which the last one may have fewer terms."""
    size = arithmetic.unit_bytes
    with each(function, first, -(-depth // arithmetic.group)) as step:
        function.clear(function.offset(target, I8, step * (tile.columns * size)), tile.lanes * size)
    with each(function, first * arithmetic.group, depth) as term, each(function, 0, tile.lanes) as lane:
        source = strided(function, column, matrix.kind, [term, lane], [matrix.row, matrix.column])
        unit = term.udiv(arithmetic.group) * tile.columns + lane
        place = unit * arithmetic.group + term.urem(arithmetic.group)
        value = element(function, arithmetic, matrix, source, 1)
        function.store(value, function.offset(target, arithmetic.element, place))


def sum_terms(function: Function, tile: Tile, arithmetic: Arithmetic, steps: int, target: Value) -> None:
    """Write what sums begin with behind a strip of so many steps."""
    kind = wide(arithmetic.sums, tile.lanes)
    zero = function.constant(0, kind)
    with carrying(function, 0, steps, [target, *[zero] * tile.vectors]) as (loop, _, (at, *totals)):
        following = []
        for place, total in enumerate(totals):
            vector = function.load(function.offset(at, kind, place), kind, arithmetic.unit_bytes)
            following.append(arithmetic.sums_of_terms(vector, total))
        loop.next([function.offset(at, kind, tile.vectors), *following])
    end, *totals = loop.results
    for place, total in enumerate(totals):
        function.store(arithmetic.made_up(total), function.offset(end, kind, place), arithmetic.unit_bytes)


def row_units(arithmetic: Arithmetic, depth: int) -> int:
    """Units of a row of the left factor: whole blocks."""
    return -(-depth // (arithmetic.group * arithmetic.block)) * arithmetic.block


def widen_rows(
    function: Function,
    arithmetic: Arithmetic,
    matrix: Matrix,
    first: Value,
    rows: Number,
    depth: int,
    target: Value,
) -> None:
    """Write ``[rows, row_units]`` units to ``target``, of rows whose terms are next to each other in memory.

    Args:
        first: the address of the first row.
    """
    lanes = min(_MOVED, 1 << (depth.bit_length() - 1))
    width = row_units(arithmetic, depth) * arithmetic.group
    with carrying(function, 0, rows, [first, target]) as (loop, _, (source, to)):
        clear_end(function, arithmetic, to, depth)
        with each(function, 0, depth, lanes) as reached:
            term = reached.minimum(depth - lanes) if depth % lanes else reached
            value = element(function, arithmetic, matrix, function.offset(source, matrix.kind, term), lanes)
            function.store(value, function.offset(to, arithmetic.element, term))
        loop.next([function.offset(source, matrix.kind, matrix.row), function.offset(to, arithmetic.element, width)])


def turn_rows(
    function: Function,
    arithmetic: Arithmetic,
    matrix: Matrix,
    first: Value,
    rows: Value,
    depth: int,
    target: Value,
) -> None:
    """Write ``[rows, row_units]`` units to ``target``, of rows that lie next to each other, ``TURNED`` at least.

    Args:
        first: the address of the first row.
    """
    width = row_units(arithmetic, depth) * arithmetic.group
    terms = min(TURNED, 1 << (depth.bit_length() - 1))
    if width > depth:
        with each(function, 0, rows) as row:
            clear_end(function, arithmetic, strided(function, target, arithmetic.element, [row], [width]), depth)
    with each(function, 0, rows, TURNED) as reached:
        row = reached.minimum(rows - TURNED)
        with each(function, 0, depth, terms) as begun:
            term = begun.minimum(depth - terms) if depth % terms else begun
            start = strided(function, first, matrix.kind, [row, term], [1, matrix.column])
            vectors = [
                element(function, arithmetic, matrix, function.offset(start, matrix.kind, n * matrix.column), TURNED)
                for n in range(terms)
            ]
            to = strided(function, target, arithmetic.element, [row, term], [width, 1])
            for number, vector in enumerate(transposed(function, vectors, TURNED)):
                function.store(vector, function.offset(to, arithmetic.element, number * width))


def block_rows(
    function: Function, arithmetic: Arithmetic, matrix: Matrix, first: Value, rows: int, depth: int, target: Value
) -> None:
    """Write ``[blocks of terms, rows, a block]`` to ``target``, of rows whose terms are next to each other.

    Args:
        first: the address of the first row.
    """
    block = arithmetic.block * arithmetic.unit_bytes
    with each(function, 0, rows) as row:
        source = strided(function, first, I8, [row], [matrix.row * matrix.bytes])
        block_row(
            function, arithmetic, depth * matrix.bytes, source, rows, strided(function, target, I8, [row], [block])
        )


def block_row(function: Function, arithmetic: Arithmetic, size: int, source: Value, rows: int, target: Value) -> None:
    """Write the blocks of a row of so many bytes, each as far from the one before as so many rows are."""
    block = arithmetic.block * arithmetic.unit_bytes
    blocks, rest = divmod(size, block)
    with each(function, 0, blocks) as number:
        value = function.load(strided(function, source, I8, [number], [block]), wide(I8, block), 1)
        function.store(value, strided(function, target, I8, [number], [block * rows]), block)
    if rest:
        source, to = function.offset(source, I8, blocks * block), function.offset(target, I8, blocks * block * rows)
        function.clear(to, block)
        lanes = 1 << (rest.bit_length() - 1)
        for place in sorted({0, rest - lanes}):
            value = function.load(function.offset(source, I8, place), wide(I8, lanes), 1)
            function.store(value, function.offset(to, I8, place), 1)


def turn_blocks(
    function: Function, arithmetic: Arithmetic, matrix: Matrix, first: Value, rows: int, depth: int, target: Value
) -> None:
    """As ``block_rows``, of rows that lie next to each other: ``TURNED`` at least, and terms of such a multiple."""
    block, size = arithmetic.block * arithmetic.unit_bytes, TURNED * matrix.bytes
    blocks, rest = divmod(depth * matrix.bytes, block)
    if rest:
        function.clear(function.offset(target, I8, blocks * block * rows), block * rows)
    with each(function, 0, depth, TURNED) as term:
        place = term.udiv(TURNED) * size
        to = strided(function, target, I8, [place.udiv(block), place.urem(block)], [block * rows, 1])
        start = strided(function, first, matrix.kind, [term], [matrix.column])
        with each(function, 0, rows, TURNED) as reached:
            row = reached.minimum(rows - TURNED) if rows % TURNED else reached
            own = function.offset(start, matrix.kind, row)
            vectors = [
                element(function, arithmetic, matrix, function.offset(own, matrix.kind, n * matrix.column), TURNED)
                for n in range(TURNED)
            ]
            at = strided(function, to, I8, [row], [block])
            for number, vector in enumerate(transposed(function, vectors, TURNED)):
                function.store(vector, function.offset(at, I8, number * block), size)


def turn_few_rows(
    function: Function,
    arithmetic: Arithmetic,
    matrix: Matrix,
    first: Value,
    rows: Value,
    depth: int,
    target: Value,
) -> None:
    """As ``turn_rows``, one term after the other, of any strides."""
    width = row_units(arithmetic, depth) * arithmetic.group
    with each(function, 0, rows) as row:
        to = strided(function, target, arithmetic.element, [row], [width])
        clear_end(function, arithmetic, to, depth)
        with each(function, 0, depth, hints=SCALAR) as term:
            source = strided(function, first, matrix.kind, [row, term], [matrix.row, matrix.column])
            value = element(function, arithmetic, matrix, source, 1)
            function.store(value, function.offset(to, arithmetic.element, term))


def clear_end(function: Function, arithmetic: Arithmetic, row: Value, depth: int) -> None:
    """Terms that only fill the last units of a row are zeros, because those of the right factor may meet NaN here.

    The last unit is cleared before its terms are written.
    """
    first = depth // arithmetic.group * arithmetic.group
    width = row_units(arithmetic, depth) * arithmetic.group
    if first == width:
        return
    size = (width - first) * bits_of(arithmetic.element) // 8
    function.clear(function.offset(row, arithmetic.element, first), size)


def gather_tile(
    function: Function, rows: int, arithmetic: Arithmetic, matrix: Matrix, first: Value, depth: int, target: Value
) -> None:
    """Write ``[row_units, rows]`` units to ``target``: a tile of a left factor whose rows are next to each other.

    Args:
        first: the address of the tile's first row.
    """
    group = arithmetic.group

    def copy(source: Value, to: Value, count: int) -> None:
        vectors = [
            element(function, arithmetic, matrix, function.offset(source, matrix.kind, term * matrix.column), rows)
            for term in range(count)
        ]
        vectors += [function.constant(0, vectors[0].kind)] * (group - count)
        function.store(grouped(function, arithmetic, vectors), to, arithmetic.unit_bytes)

    end, to = first, target
    if depth >= group:
        with carrying(function, 0, depth // group, [first, target]) as (loop, _, (source, to)):
            copy(source, to, group)
            step = matrix.column * group
            loop.next([function.offset(source, matrix.kind, step), function.offset(to, arithmetic.unit, rows)])
        end, to = loop.results
    if depth % group:
        copy(end, to, depth % group)


def element(function: Function, arithmetic: Arithmetic, matrix: Stored, address: Value, lanes: int) -> Value:
    """Elements in memory, as they are packed."""
    stored = function.load(address, wide(matrix.kind, lanes))
    return stored.as_(arithmetic.element, signed=matrix.signed)


def grouped(function: Function, arithmetic: Arithmetic, vectors: Sequence[Value]) -> Value:
    """Vectors of consecutive terms as units."""
    if arithmetic.group == 1:
        return vectors[0]
    if not lanes_of(vectors[0].kind):
        kind = vector_of(arithmetic.element, 1)
        vectors = [function.emit(f"bitcast {one} to {kind}", kind) for one in vectors]
    return _units(function, arithmetic, interleaved(function, vectors))


def _units(function: Function, arithmetic: Arithmetic, elements: Value) -> Value:
    """Elements that follow each other as units."""
    if arithmetic.group == 1:
        return elements
    count = lanes_of(elements.kind) // arithmetic.group
    kind = wide(arithmetic.unit, count)
    return function.emit(f"bitcast {elements} to {kind}", kind)
