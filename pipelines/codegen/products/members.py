"""Which rows belong to a group, by bytes that are not 0: their numbers, and whether some belong to several groups."""

from __future__ import annotations

from collections.abc import Callable

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I8, I64, Value, vector_of
from hloforge.pipelines.codegen.products.loops import carrying, each
from hloforge.pipelines.codegen.products.operands import strided

# Parts of scratch memory begin at multiples of it; bytes of a row's number.
_LINE, _NUMBER = 64, 8
# Bytes that are looked at together: as many as a number has bits at most, and from how many on it is not one by one.
_MOST, _LEAST = 64, 8


def number_bytes(rows: int) -> int:
    """Of the numbers of so many rows, in whole lines."""
    return -(-rows * _NUMBER // _LINE) * _LINE


def listed(function: Function, members: Value, rows: int, numbers: Value, padding: int = 0) -> Value:
    """Write the numbers of the rows that belong to a group. Returns how many do.

    Args:
        members: the address of a byte for each row.
        numbers: where they are written.
        padding: how often the last one is written once more.
    """
    size = _together(rows)
    with carrying(function, 0, rows, [function.index(0)], size) as (loop, reached, (count,)):
        row, bits = _block(function, members, rows, reached, size)
        if rows % size:
            # Those before the last block's own are known already.
            bits = bits & (function.constant(-1, I64) << (reached - row))
        with carrying(function, 0, bits.call("ctpop"), [bits, count]) as (noted, _, (left, place)):
            function.store(row + left.call("cttz"), strided(function, numbers, I64, [place], [1]))
            noted.next([left & (left - 1), place + 1])
        loop.next([noted.results[1]])
    (count,) = loop.results
    if padding:
        with function.if_(count > 0):
            final = function.load(strided(function, numbers, I64, [count - 1], [1]), I64)
            with each(function, 0, padding) as place:
                function.store(final, strided(function, numbers, I64, [count + place], [1]))
    return count


def look_over(function: Function, members: Value, groups: int, rows: int, lonely: Callable[[Value], None]) -> Value:
    """Whether a row belongs to several groups.

    Args:
        members: the address of ``[groups, rows]`` bytes.
        lonely: is told the number of each row that belongs to none.
    """
    size = _together(rows)
    with carrying(function, 0, rows, [function.index(0)], size) as (loop, reached, (several,)):
        zero = function.index(0)
        with carrying(function, 0, groups, [zero, several]) as (inner, group, (once, twice)):
            row, bits = _block(function, strided(function, members, I8, [group], [rows]), rows, reached, size)
            inner.next([once | bits, twice | (once & bits)])
        once, twice = inner.results
        row, none = reached.minimum(rows - size), once ^ (-1 if size == _MOST else (1 << size) - 1)
        with carrying(function, 0, none.call("ctpop"), [none]) as (alone, _, (left,)):
            lonely(row + left.call("cttz"))
            alone.next([left & (left - 1)])
        loop.next([twice])
    return loop.results[0].differs(0)


def _together(rows: int) -> int:
    """Bytes that are looked at together."""
    size = min(_MOST, 1 << (rows.bit_length() - 1))
    return size if size >= _LEAST else 1


def _block(function: Function, members: Value, rows: int, reached: Value, size: int) -> tuple[Value, Value]:
    """The first row of a block, and a bit for each row that is set where it belongs; the last block begins early."""
    row = reached.minimum(rows - size) if rows % size else reached
    at = function.offset(members, I8, row)
    if size == 1:
        return row, function.load(at, I8).differs(0).as_(I64, signed=False)
    flags = function.load(at, vector_of(I8, size), 1).differs(0)
    return row, function.emit(f"bitcast {flags} to i{size}", f"i{size}").as_(I64, signed=False)
