"""Products of few rows of complex numbers with columns whose terms lie next to each other: sums along vectors.

As ``dot_products.py``, with two sums for each result::

    first += row * column                # by parts: (ac, bd, ...)
    second += row * exchanged column     # (ad, bc, ...)

The real part is the sum of the first one's even lanes less that of its odd ones, the imaginary part all of the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value, bits_of, vector_of
from hloforge.pipelines.codegen.products.arithmetic import one_by_one
from hloforge.pipelines.codegen.products.dot_products import DotPlan, sums_of_all, terms_at
from hloforge.pipelines.codegen.products.loops import SCALAR, each
from hloforge.pipelines.codegen.products.operands import Matrix, clamped, split_index, strided
from hloforge.pipelines.codegen.products.shuffles import exchanged_parts, interleaved, sums_of, with_signs
from hloforge.pipelines.framework.machine import Machine

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.products.complex_products import ComplexGemm

# Rows of the left factor at most.
_MOST_ROWS = 4
# Sums in registers, two for each result, and as many as hide how long an addition takes.
_MOST_SUMS, _SUMS = 16, 8


def takes(gemm: ComplexGemm, machine: Machine) -> bool:
    """Whether a product has few rows, and columns whose terms lie next to each other."""
    return gemm.rhs.row == 1 and gemm.m <= _MOST_ROWS and 2 * gemm.k >= _lanes(gemm, machine)


def takes_exchanged(gemm: ComplexGemm, machine: Machine) -> bool:
    """Whether that holds with the factors exchanged, and pays."""
    if gemm.n == 1:
        return gemm.m > 1
    is_thin = gemm.n <= _MOST_ROWS and gemm.m > gemm.n
    return is_thin and gemm.lhs.column == 1 and gemm.k >= _lanes(gemm, machine)


def _lanes(gemm: ComplexGemm, machine: Machine) -> int:
    return machine.vector_bytes * 8 // bits_of(gemm.sums)


def scratch_bytes(gemm: ComplexGemm) -> int:
    """Of a copy of the left factor, where its terms do not lie next to each other."""
    return gemm.m * gemm.k * bits_of(gemm.sums) // 4 if gemm.lhs.column != 1 else 0


def plan(gemm: ComplexGemm, machine: Machine) -> DotPlan:
    lanes = _lanes(gemm, machine)
    most = _MOST_SUMS if machine.vector_count >= 32 else _SUMS
    columns = 1
    while 2 * columns <= min(gemm.n, 4) and 4 * columns * gemm.m <= most:
        columns *= 2
    parts = max(1, min(_SUMS // (2 * gemm.m * columns), 2 * gemm.k // lanes))
    return DotPlan(lanes, columns, parts, one_by_one(gemm.sums), gemm.m)


def units(gemm: ComplexGemm, found: DotPlan) -> tuple[int, int]:
    """How many matrices and groups of columns there are."""
    return gemm.count, -(-gemm.n // found.columns)


def write(
    function: Function,
    gemm: ComplexGemm,
    found: DotPlan,
    lhs: Value,
    rhs: Value,
    out: Value,
    scratch: Value | None,
    first: Value,
    last: Value,
) -> None:
    """Write the loops over units from ``first`` up to ``last``."""
    lanes, kind, part_kind = found.lanes, vector_of(gemm.sums, found.lanes), gemm.sums
    arithmetic, pair = one_by_one(part_kind), vector_of(part_kind, 2)
    with each(function, first, last) as unit:
        batch, group = split_index(function, unit, units(gemm, found))
        places = split_index(function, batch, gemm.batch)
        left, right, target = (
            strided(function, pointer, pair, places, matrix.batch)
            for pointer, matrix in ((lhs, gemm.lhs), (rhs, gemm.rhs), (out, gemm.out))
        )
        row_step = gemm.lhs.row
        if gemm.lhs.column != 1:
            assert scratch is not None
            with function.if_(group.equals(0) | unit.equals(first)):
                _copy_rows(function, gemm, left, scratch)
            left, row_step = scratch, gemm.k
        column = clamped(function, group * found.columns, gemm.n - found.columns)
        right = strided(function, right, pair, [column], [gemm.rhs.column])
        matrix = Matrix(part_kind, (), 0, 1)

        def add(term: Value, totals: Sequence[Value], parts: int, some: int) -> list[Value]:
            following = list(totals)
            starts = [function.offset(pointer, part_kind, term) for pointer in (left, right)]
            for part in range(parts):
                rows, columns = (
                    [
                        terms_at(function, matrix, start, number * 2 * stride + part * lanes, lanes, some, part_kind)
                        for number in range(count)
                    ]
                    for start, stride, count in zip(
                        starts, (row_step, gemm.rhs.column), (gemm.m, found.columns), strict=True
                    )
                )
                turned = [exchanged_parts(function, one) for one in rows]
                for row in range(gemm.m):
                    for place in range(found.columns):
                        slot = 2 * ((part * gemm.m + row) * found.columns + place)
                        for number, factor in enumerate((rows[row], turned[row])):
                            following[slot + number] = arithmetic.multiply_add(
                                factor, columns[place], following[slot + number]
                            )
            return following

        zeros = [function.constant(0, kind)] * (2 * gemm.m * found.columns)
        sums = sums_of_all(function, found, zeros, 2 * gemm.k, add)
        _store(function, gemm, found, sums, target, column)


def _copy_rows(function: Function, gemm: ComplexGemm, left: Value, target: Value) -> None:
    """``[m, k]`` numbers."""
    pair = vector_of(gemm.sums, 2)
    align = bits_of(gemm.sums) // 8
    with each(function, 0, gemm.m) as row, each(function, 0, gemm.k, hints=SCALAR) as term:
        source = strided(function, left, pair, [row, term], [gemm.lhs.row, gemm.lhs.column])
        number = function.load(source, pair, align)
        function.store(number, function.offset(target, pair, row * gemm.k + term), align)


def _store(
    function: Function, gemm: ComplexGemm, found: DotPlan, sums: Sequence[Value], out: Value, column: Value
) -> None:
    pair, align = vector_of(gemm.sums, 2), bits_of(gemm.sums) // 8
    for row in range(gemm.m):
        own = sums[2 * row * found.columns : 2 * (row + 1) * found.columns]
        real = sums_of(function, [with_signs(function, one, first=False) for one in own[::2]])
        imaginary = sums_of(function, own[1::2])
        start = strided(function, out, pair, [function.index(row), column], [gemm.out.row, gemm.out.column])
        if found.columns == 1:
            for number, value in enumerate((real, imaginary)):
                function.store(value, function.offset(start, gemm.sums, number))
            continue
        pairs = interleaved(function, [real, imaginary])
        if gemm.out.column == 1:
            function.store(pairs, start, align)
            continue
        for place in range(found.columns):
            one = function.shuffle(pairs, None, [2 * place, 2 * place + 1])
            function.store(one, function.offset(start, pair, place * gemm.out.column), align)
