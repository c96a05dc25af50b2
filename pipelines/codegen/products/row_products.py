"""Products of few rows with a right factor whose columns are next to each other, which is read once in its order.

A strip of columns as the tiles have it would read some lines of each row of the factor; here a few of its rows are
read from end to end at once, and sums stay in the first-level cache meanwhile::

    for chunk of columns:
        for part of terms:               # with sums of its own, which are added to those of all
            for block of terms:          # eight rows of the right factor, with their numbers in registers
                for vector of columns:
                    prefetch the next block's rows here
                    sums[vector] += number * row for each term
        store sums
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hloforge.pipelines.codegen.chains import limit_of
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I8, Number, Value, bits_of, vector_of
from hloforge.pipelines.codegen.products.arithmetic import Arithmetic, PairArithmetic, one_by_one
from hloforge.pipelines.codegen.products.blocking import lanes_for
from hloforge.pipelines.codegen.products.loops import each
from hloforge.pipelines.codegen.products.operands import clamped, split_index, strided
from hloforge.pipelines.codegen.products.results import Results
from hloforge.pipelines.framework.machine import Machine

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.products.gemm import Gemm

# Rows of the left factor at most: more keep a tile's registers busy. Right factors that the second-level cache does not
# hold are worth their order for more rows: 8x768x3072 takes two thirds of the tiles' time.
_MOST_ROWS, _MOST_OF_LARGE = 4, 8
# Vectors of columns from which reading rows from end to end is faster than a strip of each.
_LEAST_VECTORS = 7
# Terms that are added at once: as many rows are read side by side.
_TERMS = 8
# Vectors of columns that a piece for a worker has at least.
_LEAST_CHUNK = 16
# Bytes of a row from which a worker gets several pieces of it: the processor fetches the lines of shorter ones late, so
# that 1x768x2048 in pieces of 2 KB takes 1.2 of the time of pieces of 4 KB.
_LONG_RUN = 8192


@dataclass(frozen=True)
class RowPlan:
    """How columns are cut.

    Attributes:
        lanes: of a vector.
        vectors: of all columns; the last one may begin within the one before.
        chunk: vectors whose sums are kept at once.
        block: terms that are added at once.
        is_ahead: whether the rows of the next block are prefetched. It gains a tenth to a quarter where rows come from
            memory, and costs 6 % where they are in the second-level cache.
        parts: terms of the parts that have lines of sums of their own, the shortest first, so that each sum adds few
            numbers one after the other (``chains.py``).
    """

    lanes: int
    vectors: int
    chunk: int
    block: int
    is_ahead: bool
    parts: tuple[int, ...]

    @property
    def chunks(self) -> int:
        return -(-self.vectors // self.chunk)


def takes(gemm: Gemm, machine: Machine) -> bool:
    """Whether a product has few rows and many contiguous columns."""
    is_large = gemm.k * gemm.n * gemm.rhs.bytes > 2 * machine.l2_bytes
    most = _MOST_OF_LARGE if is_large else _MOST_ROWS
    return gemm.rhs.column == 1 and gemm.m <= most and gemm.n >= _LEAST_VECTORS * lanes_for(gemm.sums, gemm.n, machine)


def plan(gemm: Gemm, machine: Machine) -> RowPlan:
    lanes = lanes_for(gemm.sums, gemm.n, machine)
    vectors = -(-gemm.n // lanes)
    most = machine.l1_bytes // 2 // (gemm.m * lanes * bits_of(gemm.sums) // 8)
    # Chunks are pieces for workers as well, but short ones are read slowly.
    row_bytes = gemm.n * gemm.rhs.bytes
    useful = max(machine.workers, min(2 * machine.workers, row_bytes // _LONG_RUN))
    wanted = -(-min(gemm.pieces(machine), useful) // gemm.count)
    chunks = max(-(-vectors // most), min(wanted, vectors // _LEAST_CHUNK), 1)
    weight = _arithmetic(gemm).weight
    block, longest = min(_TERMS // weight, gemm.k), limit_of(gemm.sums) // weight
    parts, part = [], longest // block * block
    while part < gemm.k:
        parts.append(part)
        part *= longest
    is_ahead = gemm.k * row_bytes > machine.l2_bytes
    return RowPlan(lanes, vectors, -(-vectors // chunks), block, is_ahead, tuple(parts))


def _arithmetic(gemm: Gemm) -> Arithmetic:
    return PairArithmetic(gemm.sums, gemm.sums) if gemm.is_complex else one_by_one(gemm.sums)


def scratch_bytes(gemm: Gemm, found: RowPlan) -> int:
    return (len(found.parts) + 1) * _line_bytes(gemm, found)


def _line_bytes(gemm: Gemm, found: RowPlan) -> int:
    return gemm.m * found.chunk * found.lanes * bits_of(gemm.sums) // 8


def write(
    function: Function,
    gemm: Gemm,
    found: RowPlan,
    lhs: Value,
    rhs: Value,
    results: Results,
    sums: Value,
    first: Value,
    last: Value,
) -> None:
    """Write the loops over units from ``first`` up to ``last``: chunks of columns of the batch's matrices.

    Args:
        sums: scratch memory.
    """
    kind = vector_of(gemm.sums, found.lanes)
    arithmetic = _arithmetic(gemm)
    with each(function, first, last) as unit:
        batch, chunk = split_index(function, unit, (gemm.count, found.chunks))
        places = split_index(function, batch, gemm.batch)
        left = strided(function, lhs, gemm.lhs.kind, places, gemm.lhs.batch)
        right = strided(function, rhs, gemm.rhs.kind, places, gemm.rhs.batch)
        begin = chunk * found.chunk
        count = (function.index(found.vectors) - begin).minimum(found.chunk)
        size = _line_bytes(gemm, found)
        lines = [function.offset(sums, I8, number * size) for number in range(len(found.parts) + 1)]
        function.clear(lines[-1], size)

        def add(term: Value, block: int, line: Value) -> None:
            numbers = []
            for row in range(gemm.m):
                start = strided(function, left, gemm.lhs.kind, [term], [gemm.lhs.column])
                for place in range(block):
                    at = function.offset(start, gemm.lhs.kind, row * gemm.lhs.row + place * gemm.lhs.column)
                    numbers.append(arithmetic.numbers_at(at, gemm.lhs.kind, 0, found.lanes, signed=gemm.lhs.signed))
            start = strided(function, right, gemm.rhs.kind, [term], [gemm.rhs.row])
            with each(function, 0, count) as vector:
                column = _column(function, gemm, found, begin + vector)
                at = function.offset(start, gemm.rhs.kind, column)
                slots = [
                    function.offset(line, kind, vector + row * found.chunk if row else vector) for row in range(gemm.m)
                ]
                totals = [function.load(slot, kind) for slot in slots]
                if found.is_ahead:
                    for place in range(block, 2 * block):
                        function.prefetch(function.moved(at, function.index(place * gemm.rhs.row * gemm.rhs.bytes)))
                for place in range(block):
                    stored = function.load(
                        function.offset(at, gemm.rhs.kind, place * gemm.rhs.row), vector_of(gemm.rhs.kind, found.lanes)
                    )
                    vectors = arithmetic.vectors_of(stored, signed=gemm.rhs.signed)
                    for row in range(gemm.m):
                        for number, term_row in zip(numbers[row * block + place], vectors, strict=True):
                            totals[row] = arithmetic.multiply_add(number, term_row, totals[row])
                for slot, total in zip(slots, totals, strict=True):
                    function.store(total, slot)

        def part(start: Number, stop: Number, level: int) -> None:
            """Add terms to the line of a level, by those of the levels below."""
            if level == 0:
                with each(function, start, stop, found.block) as term:
                    add(term, found.block, lines[0])
                return
            step = found.parts[level - 1]
            with each(function, start, stop, step) as begin:
                function.clear(lines[level - 1], size)
                part(begin, (begin + step).minimum(stop), level - 1)
                with each(function, 0, gemm.m) as row, each(function, 0, count) as vector:
                    here, there = (
                        function.offset(line, kind, row * found.chunk + vector) for line in lines[level - 1 : level + 1]
                    )
                    function.store(function.load(there, kind) + function.load(here, kind), there)

        whole = gemm.k - gemm.k % found.block
        part(0, whole, len(found.parts))
        if whole < gemm.k:
            with each(function, whole, gemm.k) as term:
                add(term, 1, lines[-1])
        with each(function, 0, gemm.m) as row, each(function, 0, count) as vector:
            total = function.load(function.offset(lines[-1], kind, row * found.chunk + vector), kind)
            results.put(total, batch, row, _column(function, gemm, found, begin + vector))


def _column(function: Function, gemm: Gemm, found: RowPlan, vector: Value) -> Value:
    column = vector * found.lanes
    return clamped(function, column, gemm.n - found.lanes) if gemm.n % found.lanes else column
