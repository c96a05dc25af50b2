"""LU factorizations with partial pivoting, a block of columns per iteration.

Of the matrix, stored by rows, a block of columns is transposed, so that its columns make vectors; it is factored column
by column in a loop that becomes one dispatch. Then its row exchanges are applied to the matrix, a triangular system
gives the block's rows of u, and a product of matrices updates what is left.

Source: LAPACK "getrf", "getf2"; Golub & Van Loan, 3.4; JAX ``jax.lax.linalg.lu``, ``lu_pivots_to_permutation``.
"""

from __future__ import annotations

from math import prod

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.idioms import batch_matmul, for_loop, matrix_transpose, take_rows, zeros
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.blocks import (
    ROWS,
    columns_at,
    count,
    element_at,
    has_short_rows,
    magnitude,
    rows_at,
    spread,
    with_columns,
    with_rows,
    zero_unless,
)
from hloforge.pipelines.library_calls.own_calls import lu
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target, lapack, solver


@custom_call_target(*lapack("getrf"), *solver("getrf"))
def getrf(call: CustomCall) -> list[Value]:
    """a -> l and u in one array, the rows exchanged (from 1), and 0 or the number of the first zero pivot."""
    factors, pivots, _, info = _of_any_batch(call.operands[0])
    return [factors, pivots + 1, info]


@custom_call_target("LuDecomposition")
def lu_decomposition(call: CustomCall) -> list[Value]:
    """a -> l and u in one array, the rows exchanged (from 0), and the rows' permutation (XLA's name for TPUs)."""
    return _of_any_batch(call.operands[0])[:3]


@custom_call_target("cu_lu_pivots_to_permutation", "hip_lu_pivots_to_permutation")
def lu_pivots_to_permutation(call: CustomCall) -> list[Value]:
    """Exchanges ``[..., k]`` of row i with row p[i], in order -> the permutation ``[..., m]`` that they make."""
    (pivots,), dims = call.operands, call.shapes[0].dimensions
    batch, m, k = prod(dims[:-1]), dims[-1], pivots.dims[-1]
    if not prod(dims) or not k:
        return [ops.iota("s32", dims, len(dims) - 1)]
    exchanged = ops.reshape(pivots, [batch, 1, k])

    def turn(number: Value, rows: Value) -> list[Value]:
        other = ops.reshape(columns_at(exchanged, number, 1), [batch])
        return [with_exchanged(rows, number, other)]

    (rows,) = for_loop(k, [ops.iota("s32", (batch, 1, m), 2)], turn)
    return [ops.reshape(rows, dims)]


def _of_any_batch(a: Value) -> list[Value]:
    """``lu`` for ``[..., m, n]``, which may be empty."""
    *batch, m, n = a.dims
    k = min(m, n)
    if not prod(a.dims):
        rows = ops.iota("s32", [*batch, m], len(batch))
        return [a, zeros("s32", [*batch, k]), rows, zeros("s32", batch)]
    factors, pivots, rows, info = lu(ops.reshape(a, (prod(batch), m, n)))
    return [
        ops.reshape(factors, a.dims),
        ops.reshape(pivots, [*batch, k]),
        ops.reshape(rows, [*batch, m]),
        ops.reshape(info, batch),
    ]


def factored(a: Value) -> list[Value]:
    """The results of ``own_calls.lu`` by loops."""
    batch, m, n = a.dims
    k = min(m, n)
    blocks = -(-k // ROWS)
    width = -(-k // blocks)
    # Zeros beyond the edge make all blocks equal; they are never pivots, for ties go to the first row.
    height, length = max(m, blocks * width), max(n, blocks * width)
    padded = a if (height, length) == (m, n) else ops.pad(a, 0, [(0, 0, 0), (0, height - m, 0), (0, length - n, 0)])
    rows = ops.iota("s32", (batch, 1, height), 2)
    init = [padded, zeros("s32", (batch, 1, k)), rows, zeros("s32", (batch,))]

    def turn(start: Value, a: Value, pivots: Value, rows: Value, info: Value) -> list[Value]:
        stop = ops.min(start + width, k)
        panel = matrix_transpose(columns_at(a, start, width))
        panel, order, pivots, info = _panel(panel, pivots, info, start, stop)
        a = with_columns(_in_order(a, order), matrix_transpose(panel), start)
        if length > width:
            a = _beside_panel(a, panel, start, stop)
        return [a, pivots, ops.reshape(_in_order(ops.reshape(rows, (batch, height, 1)), order), rows.dims), info]

    if blocks == 1:
        a, pivots, rows, info = turn(constant(0, "s32"), *init)
    else:
        a, pivots, rows, info = count(constant(0, "s32"), k, width, init, turn)
    a = ops.slice(a, [0, 0, 0], [batch, m, n], [1, 1, 1])
    return [a, pivots, ops.slice(rows, [0, 0, 0], [batch, 1, m], [1, 1, 1]), info]


def _panel(panel: Value, pivots: Value, info: Value, start: Value, stop: Value) -> list[Value]:
    """Factor columns ``start .. stop - 1``, given as the rows of ``panel``; also the order that its exchanges make."""
    batch, _, height = panel.dims
    places = ops.iota("s32", (batch, 1, height), 2)

    def turn(pivot: Value, panel: Value, order: Value, pivots: Value, info: Value) -> list[Value]:
        row = pivot - start
        chosen = largest_place(rows_at(panel, row, 1), pivot)
        panel, order = with_exchanged(panel, pivot, chosen), with_exchanged(order, pivot, chosen)
        pivots = with_columns(pivots, ops.reshape(chosen, (batch, 1, 1)), pivot)
        value = element_at(panel, row, pivot)
        is_zero = ops.eq(value, full(value, 0))
        info = ops.select(is_zero & ops.eq(info, 0), spread(pivot + 1, info.dims), info)
        below = places > spread(pivot, places.dims)
        column = rows_at(panel, row, 1)
        divided = column / spread(ops.select(is_zero, full(value, 1), value), column.dims)
        panel = with_rows(panel, ops.select(below, divided, column), row)
        return [_without(panel, zero_unless(below, divided), row, pivot), order, pivots, info]

    return count(start, stop, 1, [panel, places, pivots, info], turn)


def _without(panel: Value, column: Value, row: Value, pivot: Value) -> Value:
    """The rows of the panel below ``row`` without their part in the direction of the column of l."""
    batch, width, _ = panel.dims
    if has_short_rows(panel):
        # Counted from the end: IREE turns a loop around one that begins with its next iteration inside out.
        def turn(number: Value, panel: Value) -> list[Value]:
            other = width - 1 - number
            factor = spread(element_at(panel, other, pivot), column.dims)
            return [with_rows(panel, rows_at(panel, other, 1) - factor * column, other)]

        return count(constant(0, "s32"), width - 1 - row, 1, [panel], turn)[0]
    numbers = ops.iota("s32", (batch, width, 1), 1)
    factors = zero_unless(numbers > spread(row, numbers.dims), columns_at(panel, pivot, 1))
    return panel - batch_matmul(factors, column)


def _beside_panel(a: Value, panel: Value, start: Value, stop: Value) -> Value:
    """Compute the rows of u that belong to a factored panel, and update the rows below them."""
    width = panel.dims[1]
    # Columns of the panel without a pivot have no column of l.
    numbers = ops.iota("s32", panel.dims, 1)
    panel = zero_unless(numbers < spread(stop - start, numbers.dims), panel)
    corner = matrix_transpose(columns_at(panel, start, width))
    rows = rows_at(a, start, width)
    solved = ops.triangular_solve(corner, rows, lower=True, unit_diagonal=True)
    columns = ops.iota("s32", rows.dims, 2)
    right = columns >= spread(start + width, columns.dims)
    a = with_rows(a, ops.select(right, solved, rows), start)
    places = ops.iota("s32", panel.dims, 2)
    below = zero_unless(places >= spread(start + width, places.dims), panel)
    return a - batch_matmul(matrix_transpose(below), zero_unless(right, solved))


def largest_place(column: Value, first: Value) -> Value:
    """``[b, 1, m]`` to s32 ``[b]``: the position of the largest number from ``first`` on, the first of equal ones."""
    height = column.dims[-1]
    size = magnitude(column)
    places = ops.iota("s32", column.dims, 2)
    # NaN counts as zero: a pivot must be found, and the result is NaN anyway.
    size = ops.select(ops.eq(size, size), size, full(size, 0))
    size = ops.select(places >= spread(first, places.dims), size, full(size, -1))
    most = spread(ops.reduce(size, float("-inf"), ops.max, [1, 2]), size.dims)
    return ops.reduce(ops.select(ops.eq(size, most), places, full(places, height)), height, ops.min, [1, 2])


def with_exchanged(operand: Value, place: Value, others: Value) -> Value:
    """``[b, w, m]`` with the columns ``place`` and ``others[b]`` exchanged."""
    batch = operand.dims[0]
    if batch == 1:
        other = ops.reshape(others, [])
        one, two = columns_at(operand, place, 1), columns_at(operand, other, 1)
        return with_columns(with_columns(operand, two, place), one, other)
    places = ops.iota("s32", operand.dims, 2)
    is_one, is_two = places.eq(spread(place, places.dims)), places.eq(spread(others, places.dims))
    one = columns_at(operand, place, 1)
    two = ops.reduce(zero_unless(is_two, operand), 0, ops.add, [2])
    beside = ops.select(is_two, ops.broadcast_in_dim(one, operand.dims, [0, 1, 2]), operand)
    return ops.select(is_one, ops.broadcast_in_dim(two, operand.dims, [0, 1]), beside)


def _in_order(operand: Value, order: Value) -> Value:
    """``operand[b, order[b]]``: ``[b, m, n]`` by ``[b, 1, m]``."""
    batch, height, length = operand.dims
    flat = ops.reshape(order, [batch, height]) + height * ops.iota("s32", (batch, height), 0)
    taken = take_rows(ops.reshape(operand, [batch * height, length]), ops.reshape(flat, [batch * height]))
    return ops.reshape(taken, operand.dims)
