"""Products of few rows with columns whose terms lie next to each other, in both factors: sums along vectors.

Several columns are read at once, each with sums of its own in a register, which are added up at the end::

    for group of columns:
        for group of rows:
            for vector of terms:
                sums[row, column] += row * column
            store the sum of each register

Bytes are multiplied in groups of four terms where the processor has instructions for it (``arithmetic.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hloforge.pipelines.codegen.chains import Terms, add_up
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I1, I8, Value, bits_of, vector_of
from hloforge.pipelines.codegen.products.arithmetic import Arithmetic, groups_of, one_by_one
from hloforge.pipelines.codegen.products.loops import each
from hloforge.pipelines.codegen.products.micro_kernel import wide
from hloforge.pipelines.codegen.products.operands import Matrix, clamped, split_index, strided
from hloforge.pipelines.codegen.products.results import Results
from hloforge.pipelines.codegen.products.shuffles import sums_of
from hloforge.pipelines.framework.machine import Machine

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.products.gemm import Gemm

# Rows of the left factor at most, and vectors of terms from which a result of few columns is worth exchanging factors:
# its rows are then columns, and vectors go along the terms.
MOST_ROWS, _LEAST_TERMS = 4, 2
# Of floats where vectors are short: a tile's columns are packed, which takes as long as two groups of rows, and the
# second group finds them in the first-level cache.
_MOST_OF_FLOATS = 8
_MANY_VECTORS = 32
# Registers of sums that hide how long an addition takes.
_SUMS = 8


# New sums of old ones and of terms from one on: of so many vectors, each with sums of its own, and so many of each.
AddTerms = Callable[[Value, Sequence[Value], int, int], list[Value]]


@dataclass(frozen=True)
class DotPlan:
    """How terms and columns are cut.

    Attributes:
        lanes: terms of a vector.
        columns: that are read at once, a power of two.
        parts: vectors of terms, each with sums of its own.
        arithmetic: of terms one by one, or of bytes in groups.
        rows: of a group; the last one may have fewer.
    """

    lanes: int
    columns: int
    parts: int
    arithmetic: Arithmetic
    rows: int


def takes(gemm: Gemm, machine: Machine) -> bool:
    """Whether a product has few rows, and columns whose terms lie next to each other."""
    return gemm.rhs.row == 1 and gemm.m <= _most_rows(gemm, machine) and gemm.k >= _lanes(gemm, machine)


def _most_rows(gemm: Gemm, machine: Machine) -> int:
    is_float = gemm.lhs.kind == gemm.rhs.kind == gemm.sums and gemm.sums in ("float", "double")
    return _MOST_OF_FLOATS if is_float and machine.vector_count < _MANY_VECTORS else MOST_ROWS


def takes_exchanged(gemm: Gemm, machine: Machine) -> bool:
    """Whether that holds with the factors exchanged, and pays."""
    if gemm.n == 1:
        return gemm.m > 1
    is_thin = 1 < gemm.n <= MOST_ROWS and gemm.m > 4 * MOST_ROWS
    return is_thin and gemm.lhs.column == 1 and gemm.k >= _LEAST_TERMS * _lanes(gemm, machine)


def _lanes(gemm: Gemm, machine: Machine) -> int:
    return machine.vector_bytes * 8 // bits_of(gemm.sums)


def scratch_bytes(gemm: Gemm) -> int:
    """Of a copy of the left factor, where its terms do not lie next to each other."""
    return gemm.m * gemm.k * bits_of(gemm.sums) // 8 if gemm.lhs.column != 1 else 0


def plan(gemm: Gemm, machine: Machine) -> DotPlan:
    arithmetic = _arithmetic(gemm, machine)
    lanes = _lanes(gemm, machine) * arithmetic.group
    wanted = 8 if gemm.m == 1 and machine.vector_count >= 32 else 4 if gemm.m <= 2 or machine.vector_count >= 32 else 2
    columns = min(wanted, 1 << (gemm.n.bit_length() - 1))
    groups = -(-gemm.m // MOST_ROWS)
    rows = -(-gemm.m // groups)
    parts = max(1, min(_SUMS // (rows * columns), gemm.k // lanes))
    return DotPlan(lanes, columns, parts, arithmetic, rows)


def _arithmetic(gemm: Gemm, machine: Machine) -> Arithmetic:
    """Bytes in groups, where both factors' terms fill a vector of them."""
    lhs, rhs, lanes = gemm.lhs, gemm.rhs, _lanes(gemm, machine)
    found = groups_of(lhs.kind, lhs.signed, rhs.kind, rhs.signed, gemm.sums, lanes, machine, gemm.extensions)
    if found is None or found.element != I8 or lhs.column != 1 or gemm.k < lanes * found.group:
        return one_by_one(gemm.sums)
    return found


def units(gemm: Gemm, found: DotPlan) -> tuple[int, int]:
    """How many matrices and groups of columns there are."""
    return gemm.count, -(-gemm.n // found.columns)


def write(
    function: Function,
    gemm: Gemm,
    found: DotPlan,
    lhs: Value,
    rhs: Value,
    results: Results,
    scratch: Value | None,
    first: Value,
    last: Value,
) -> None:
    """Write the loops over units from ``first`` up to ``last``."""
    with each(function, first, last) as unit:
        batch, group = split_index(function, unit, units(gemm, found))
        places = split_index(function, batch, gemm.batch)
        left = strided(function, lhs, gemm.lhs.kind, places, gemm.lhs.batch)
        right = strided(function, rhs, gemm.rhs.kind, places, gemm.rhs.batch)
        rows_of_left = gemm.lhs
        if gemm.lhs.column != 1:
            assert scratch is not None
            with function.if_(group.equals(0) | unit.equals(first)):
                _copy_rows(function, gemm, left, scratch)
            left, rows_of_left = scratch, Matrix(gemm.sums, (), gemm.k, 1)
        column = clamped(function, group * found.columns, gemm.n - found.columns)
        right = strided(function, right, gemm.rhs.kind, [column], [gemm.rhs.column])

        for row in range(0, gemm.m, found.rows):
            rows = range(row, min(row + found.rows, gemm.m))
            sums = _sums_of_rows(function, gemm, found, rows, (rows_of_left, left), right)
            _store(function, gemm, found, sums, results, batch, rows, column)


def _sums_of_rows(
    function: Function, gemm: Gemm, found: DotPlan, rows: range, left: tuple[Matrix, Value], right: Value
) -> list[Value]:
    """The registers of sums of a group of rows with the columns from ``right`` on."""
    lanes, arithmetic = found.lanes, found.arithmetic
    kind = vector_of(gemm.sums, found.lanes // arithmetic.group)
    # Sums of the columns' terms, which make up for flipped rows.
    flips = arithmetic.flips
    own = len(rows) * found.columns
    each_part = own + flips * found.columns

    def add(term: Value, totals: Sequence[Value], parts: int, some: int) -> list[Value]:
        following = list(totals)
        sides = (*left, left[0].row, rows), (gemm.rhs, right, gemm.rhs.column, range(found.columns))
        starts = [function.offset(pointer, matrix.kind, term) for matrix, pointer, _, _ in sides]
        for part in range(parts):
            read, columns = (
                [
                    terms_at(function, matrix, start, number * stride + part * lanes, lanes, some, arithmetic.element)
                    for number in numbers
                ]
                for (matrix, _, stride, numbers), start in zip(sides, starts, strict=True)
            )
            if flips:
                read = [row ^ -128 for row in read]
            for number, row in enumerate(read):
                for place in range(found.columns):
                    slot = part * each_part + number * found.columns + place
                    following[slot] = arithmetic.multiply_add(row, columns[place], following[slot])
            for place in range(found.columns if flips else 0):
                slot = part * each_part + own + place
                groups = function.emit(f"bitcast {columns[place]} to {kind}", kind)
                following[slot] = arithmetic.sums_of_terms(groups, following[slot])
        return following

    sums = sums_of_all(function, found, [function.constant(0, kind)] * each_part, gemm.k, add)
    if flips:
        more = [arithmetic.made_up(total) for total in sums[own:]]
        sums = [total + more[number % found.columns] for number, total in enumerate(sums[:own])]
    return sums


def sums_of_all(function: Function, found: DotPlan, zeros: list[Value], depth: int, add: AddTerms) -> list[Value]:
    """Sums of ``depth`` terms: as long as there are enough, several vectors at a time, each with sums of its own."""
    step = found.lanes * found.parts
    whole, count = depth - depth % step, len(zeros)
    totals = zeros * found.parts
    if whole:
        terms = [Terms(whole // step, whole // step, (step,))]
        totals = add_up(
            function, terms, [function.index(0)], totals, lambda at, sums: add(at[0], sums, found.parts, found.lanes)
        )
    for at in range(whole, depth, found.lanes):
        totals = add(function.index(at), totals, 1, min(found.lanes, depth - at))
    sums = totals[:count]
    for part in range(1, found.parts):
        sums = [one + two for one, two in zip(sums, totals[part * count :], strict=False)]
    return sums


def _copy_rows(function: Function, gemm: Gemm, left: Value, target: Value) -> None:
    """``[m, k]`` numbers of the sums' type."""
    with each(function, 0, gemm.m) as row, each(function, 0, gemm.k) as term:
        source = strided(function, left, gemm.lhs.kind, [row, term], [gemm.lhs.row, gemm.lhs.column])
        number = function.load(source, gemm.lhs.kind).as_(gemm.sums, signed=gemm.lhs.signed)
        function.store(number, function.offset(target, gemm.sums, row * gemm.k + term))


def _store(
    function: Function,
    gemm: Gemm,
    found: DotPlan,
    sums: Sequence[Value],
    results: Results,
    batch: Value,
    rows: range,
    column: Value,
) -> None:
    groups = [sums_of(function, sums[n * found.columns : (n + 1) * found.columns]) for n in range(len(rows))]
    if results.takes_vectors and results.is_plain:
        for number, group in zip(rows, groups, strict=True):
            results.put(group, batch, function.index(number), column)
        return
    memory = function.stack(gemm.sums, len(sums))
    for at, group in enumerate(groups):
        function.store(group, function.offset(memory, gemm.sums, at * found.columns))
    lanes = found.columns if results.takes_vectors else 1
    with each(function, 0, len(rows)) as row, each(function, 0, found.columns, lanes) as place:
        slot = function.offset(memory, gemm.sums, row * found.columns + place)
        results.put(function.load(slot, wide(gemm.sums, lanes)), batch, row + rows.start, column + place)


def terms_at(function: Function, matrix: Matrix, start: Value, offset: int, lanes: int, some: int, kind: str) -> Value:
    """A vector of terms, of which the first ``some`` are in memory and the others 0."""
    address = function.offset(start, matrix.kind, offset)
    wide = vector_of(matrix.kind, lanes)
    if some == lanes:
        return function.load(address, wide).as_(kind, signed=matrix.signed)
    mask = ", ".join(f"{I1} {'true' if lane < some else 'false'}" for lane in range(lanes))
    stored = function.emit(
        f"call {wide} @llvm.masked.load.v{lanes}{_short(matrix.kind)}.p0({address}, i32 {matrix.bytes}, "
        f"<{lanes} x i1> <{mask}>, {wide} zeroinitializer)",
        wide,
    )
    return stored.as_(kind, signed=matrix.signed)


def _short(kind: str) -> str:
    return {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16"}.get(kind, kind)
