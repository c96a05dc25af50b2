"""What is shared out to workgroups: loops, and algorithms over rows that do not depend on each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.graph import Array
from hloforge.pipelines.codegen.lang.values import I8, Number, Value
from hloforge.pipelines.codegen.nest_loops import Share
from hloforge.pipelines.codegen.products.blocking import pieces_for
from hloforge.pipelines.codegen.steps import Nest
from hloforge.pipelines.framework.machine import Machine

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator

# Parts of scratch memory begin at multiples of it.
_LINE = 64
# In sums: what a workgroup should have to do, some 10 µs, and as many as make it worth the way of arrays from one
# core's cache to another's.
_SHARE = 1 << 17
_LEAST_SHARES, _MOST_SHARES = 4, 8
# What an element costs more that is read across the order of memory, in sums.
_CROSSED = 4
# What an element costs more that is gathered from an array of more bytes than a first-level and a second-level cache
# holds, in sums: 100,000 of 1,000,000 numbers take 2 to 3 ns each.
_GATHERED = ((1 << 20, 24), (1 << 15, 8))
# What a byte costs that is read or written, in sums: 30 GB/s.
_MOVED = 3 / 8
# Bytes of a row that a workgroup reads at least: some lines of the cache, which others need not read as well.
_PIECE_OF_ROW = 256


def share_count(cost: int, most: int) -> int:
    """How many workgroups work is worth that can be cut into so many pieces.

    Args:
        cost: in sums.
    """
    count = cost // _SHARE
    return max(1, min(count, _MOST_SHARES, most)) if count >= _LEAST_SHARES else 1


def nest_workgroups(nest: Nest, in_memory: Callable[[Array], bool]) -> int:
    """How many workgroups loops are worth."""
    first = next((d for d, size in enumerate(nest.shape) if size > 1 and d not in nest.dims), None)
    if first is None or 0 in nest.shape:
        return 1
    most = nest.shape[first]
    if any(nest.shape[d] > 1 for d in nest.dims if d < first):
        # Columns that rows are added up to: what each workgroup reads of a row is a piece of it.
        row = math.prod(size for d, size in enumerate(nest.shape) if d not in nest.dims)
        most = min(most, row * elements.size(nest.reductions[0].operands[0].element) // _PIECE_OF_ROW)
    return share_count(nest_cost(nest, in_memory), most)


def nest_cost(nest: Nest, in_memory: Callable[[Array], bool]) -> int:
    """What a nest costs, in sums: what it computes, or what it moves if that takes longer."""
    computed = element_cost(nest, in_memory) * math.prod(nest.shape)
    return max(computed, int(_moved(nest, in_memory) * _MOVED))


def _moved(nest: Nest, in_memory: Callable[[Array], bool]) -> int:
    """Bytes that a nest reads and writes."""
    _, found = nest.analysis(in_memory)
    count = math.prod(nest.shape)
    reads: dict[Array, int] = {}
    for array, _ in dict.fromkeys(found.loads):
        reads[array] = reads.get(array, 0) + count
    read = sum(min(array.elements, often) * elements.size(array.element) for array, often in reads.items())
    made = [array for array in nest.makes if array not in nest.unstored]
    return read + sum(array.elements * elements.size(array.element) for array in made)


def element_cost(nest: Nest, in_memory: Callable[[Array], bool]) -> int:
    """What an element of a nest costs, in sums."""
    place, found = nest.analysis(in_memory)
    if not place or not place[-1].terms:
        return found.cost
    last = place[-1].terms[0][0]
    loads = dict.fromkeys(found.loads)
    crossed = sum(abs(dict(number.terms).get(last, 0)) > 1 for _, number in loads)
    gathered = sum(
        _gathered(array)
        for array, number in loads
        if any(last in found.scattered.get(symbol, ()) for symbol, _ in number.terms)
    )
    return found.cost + _CROSSED * crossed + gathered


def _gathered(array: Array) -> int:
    size = array.elements * elements.size(array.element)
    return next((cost for least, cost in _GATHERED if size > least), 0)


def pieces(rows: int, multiplications: float, lanes: int, machine: Machine) -> int:
    """To how many workgroups it pays to share out rows, which take so many multiplications together."""
    return max(1, min(rows, pieces_for(int(multiplications), 0, lanes, machine)))


def rows_of(share: Share | None, rows: int) -> tuple[Number, Number] | None:
    """A workgroup's first row and the one after its last; None for all."""
    if share is None:
        return None
    return (share.number * rows).udiv(share.count), ((share.number + 1) * rows).udiv(share.count)


def scratch(generator: Generator, size: int, share: Share | None) -> Value:
    """Memory that each workgroup works in."""
    if share is None:
        return generator.required_scratch(size)
    size = -(-max(size, 1) // _LINE) * _LINE
    memory = generator.required_scratch(size * share.count)
    return generator.writer.function.offset(memory, I8, share.number * size)
