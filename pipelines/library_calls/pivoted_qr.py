"""QR factorizations with column pivoting, a column per iteration.

Each iteration takes the longest column that is left, reflects it, and updates all columns right of it in two wide
products. The lengths are measured again each iteration, where LAPACK updates them. Source: LAPACK "geqp3"; Golub & Van
Loan, 5.4.2.
"""

from __future__ import annotations

from math import prod

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.idioms import batch_matmul, conjugate, for_loop, matrix_transpose, zeros
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.blocks import (
    columns_at,
    magnitude,
    spread,
    squares,
    typed_as,
    with_columns,
    zero_unless,
)
from hloforge.pipelines.library_calls.householder import reflector
from hloforge.pipelines.library_calls.lu import largest_place, with_exchanged
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target, hybrid, lapack


@custom_call_target(*lapack("geqp3"), *hybrid("geqp3"))
def geqp3(call: CustomCall) -> list[Value]:
    """a, marks -> r with the vectors of reflectors below it, the columns in their order (from 1), and the taus.

    Columns whose mark is not 0 come first, and are not exchanged any more.
    """
    call.setting("magma", "")  # which library a program for GPUs prefers
    a, marks = call.operands
    *batch, m, n = a.dims
    k = min(m, n)
    if not prod(a.dims):
        columns = ops.iota(marks.element_type, marks.dims, marks.rank - 1) + 1
        return [a, columns, zeros(a.element_type, [*batch, k])]
    flat = prod(batch)
    a, order, fixed = _marked_first(ops.reshape(a, (flat, m, n)), ops.reshape(marks, (flat, 1, n)))
    a, order, taus = _factored(a, order, fixed)
    order = ops.convert_element_type(order + 1, marks.element_type)
    return [ops.reshape(a, [*batch, m, n]), ops.reshape(order, marks.dims), ops.reshape(taus, [*batch, k])]


def _marked_first(a: Value, marks: Value) -> tuple[Value, Value, Value]:
    """The matrix with marked columns moved to the front, the order of its columns, and how many are marked: ``[b]``."""
    batch, _, n = a.dims

    def turn(column: Value, a: Value, order: Value, fixed: Value) -> list[Value]:
        is_marked = ops.ne(ops.reshape(columns_at(marks, column, 1), (batch,)), 0)
        place = ops.select(is_marked, fixed, spread(column, fixed.dims))
        moved = [with_exchanged(value, column, place) for value in (a, order)]
        return [*moved, fixed + ops.convert_element_type(is_marked, "s32")]

    a, order, fixed = for_loop(n, [a, ops.iota("s32", (batch, 1, n), 2), zeros("s32", (batch,))], turn)
    return a, order, fixed


def _factored(a: Value, order: Value, fixed: Value) -> list[Value]:
    batch, m, n = a.dims
    k = min(m, n)
    rows, columns = ops.iota("s32", a.dims, 1), ops.iota("s32", (batch, 1, n), 2)
    # Divided by the largest number, no square overflows.
    largest = ops.reduce(magnitude(a), 0, ops.max, [1, 2])
    unit = spread(typed_as(ops.select(largest > 0, largest, full(largest, 1)), a), a.dims)

    def turn(place: Value, a: Value, order: Value, taus: Value) -> list[Value]:
        left = zero_unless(rows >= spread(place, a.dims), a / unit)
        lengths = ops.reshape(ops.reduce(squares(left), 0, ops.add, [1]), (batch, 1, n))
        chosen = ops.select(spread(place, fixed.dims) < fixed, spread(place, fixed.dims), largest_place(lengths, place))
        a, order = with_exchanged(a, place, chosen), with_exchanged(order, place, chosen)
        found = reflector(matrix_transpose(columns_at(a, place, 1)), place)
        v = matrix_transpose(found.v)
        weights = batch_matmul(conjugate(found.v), a) * spread(conjugate(found.tau), columns.dims)
        a = a - batch_matmul(v, zero_unless(columns > spread(place, columns.dims), weights))
        taus = with_columns(taus, ops.reshape(found.tau, (batch, 1, 1)), place)
        return [with_columns(a, matrix_transpose(found.image), place), order, taus]

    return for_loop(k, [a, order, zeros(a.element_type, (batch, 1, k))], turn)
