"""Determinants and inverses of square matrices, by their factors."""

from __future__ import annotations

from math import prod

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.values import Value, leaves
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.operators.contrib import MICROSOFT
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.roundings import rounds_once
from hloforge.importers.tensors import (
    broadcast_to,
    cast,
    fill,
    greatest,
    least,
    matmul,
    numbers,
    pair,
    together,
    total,
    window,
)

# Rows of matrices of which all in a stack are eliminated at once, by vectors.
_SMALL = 8
_LAPACK = {"f32": "lapack_sgetrf_ffi", "f64": "lapack_dgetrf_ffi"}


@operator("Det")
@rounds_once
def determinant(node: Node) -> Value:
    """The product of the pivots, whose sign changes with each exchange of two rows."""
    x = node.value(0)
    *stack, size, _ = x.dims
    if not size:
        return fill(stack, 1, x.element_type)
    if size <= _SMALL:
        return ops.reshape(_small_determinants(_stacked(x)), stack)
    factors, pivots = _factored(_stacked(x))
    is_diagonal = numbers(factors.dims, 1).eq(numbers(factors.dims, 2))
    diagonal = ops.reduce(ops.select(is_diagonal, factors, factors * 0), 0, ops.add, [2])
    is_moved = pivots.ne(numbers(pivots.dims, 1) + 1)
    signed = ops.select(is_moved, -diagonal, diagonal)
    return ops.reshape(ops.reduce(signed, 1, ops.mul, [1]), stack)


@operator("Inverse", domain=MICROSOFT)
@rounds_once
def inverse(node: Node) -> Value:
    """The solutions of two triangular systems, of columns of ones where the rows went."""
    x = node.value(0)
    if not prod(x.dims):
        return x
    if x.dims[-1] <= _SMALL:
        return ops.reshape(_small_inverses(_stacked(x)), x.dims)
    factors, pivots = _factored(_stacked(x))
    count, size, _ = factors.dims
    places = numbers([count, size], 1)

    def exchanged(step: Value, rows: Value) -> tuple[Value, Value]:
        pivot = ops.dynamic_slice(pivots, [fill([], 0, "s32"), step], [count, 1]) - 1
        here, other = broadcast_to(step, places.dims), broadcast_to(pivot, places.dims)
        is_here, is_other = places.eq(here), places.eq(other)
        mine = ops.reduce(ops.select(is_here, rows, rows * 0), 0, ops.add, [1])
        its = ops.reduce(ops.select(is_other, rows, rows * 0), 0, ops.add, [1])
        mine, its = (ops.broadcast_in_dim(each, places.dims, [0]) for each in (mine, its))
        return step + 1, ops.select(is_here, its, ops.select(is_other, mine, rows))

    start = [fill([], 0, "s32"), places]
    _, rows = leaves(ops.while_(lambda step, _: step < size, exchanged, start))
    is_from = ops.broadcast_in_dim(rows, factors.dims, [0, 1]).eq(numbers(factors.dims, 2))
    half = ops.triangular_solve(factors, cast(is_from, factors.element_type), unit_diagonal=True)
    return ops.reshape(ops.triangular_solve(factors, half, lower=False), x.dims)


def _stacked(x: Value) -> Value:
    return ops.reshape(x, [prod(x.dims[:-2]), *x.dims[-2:]])


def _factored(x: Value) -> tuple[Value, Value]:
    """Both factors of each matrix in one, and the rows that were exchanged with each row, from 1."""
    count, size, _ = x.dims
    row = x.element_type.name
    shape = f"({row}[{count},{size},{size}]{{1,2,0}}, s32[{count},{size}]{{1,0}}, s32[{count}]{{0}})"
    found = ops.custom_call(_LAPACK[row], x, shape, backend_config={}, operand_layouts=[[1, 2, 0]], api_version=4)
    factors, pivots, _ = leaves(found)
    return factors, pivots


def _small_determinants(matrix: Value) -> Value:
    """Gaussian elimination with partial pivoting, a column at a time: the product of the pivots."""
    count, n, _ = matrix.dims
    result = fill([count], 1, matrix.element_type)
    for column in range(n):
        size = n - column
        line = ops.abs(ops.reshape(ops.slice(matrix, [0, 0, 0], [count, size, 1]), [count, size]))
        best = _greatest_place(line)
        rows = ops.iota("s32", [count, size], 1)
        chosen = ops.eq(rows, ops.broadcast_in_dim(best, [count, size], [0]))
        pivot_row = total(
            ops.select(ops.broadcast_in_dim(chosen, [count, size, size], [0, 1]), matrix, matrix * 0), [1]
        )
        pivot = ops.reshape(ops.slice(pivot_row, [0, 0], [count, 1]), [count])
        swapped = ops.ne(best, 0)
        result = result * ops.select(swapped, -pivot, pivot)
        if size == 1:
            break
        # The first row moves to the pivot's place, and is then left out.
        first = ops.slice(matrix, [0, 0, 0], [count, 1, size])
        spread = ops.broadcast_in_dim(ops.reshape(first, [count, size]), [count, size, size], [0, 2])
        moved = ops.select(ops.broadcast_in_dim(chosen, [count, size, size], [0, 1]), spread, matrix)
        rest = ops.slice(moved, [0, 1, 0], [count, size, size])
        safe = ops.select(ops.eq(pivot, 0), pivot * 0 + 1, pivot)
        factor = ops.reshape(ops.slice(rest, [0, 0, 0], [count, size - 1, 1]), [count, size - 1])
        factor = factor / ops.broadcast_in_dim(safe, [count, size - 1], [0])
        lines = ops.broadcast_in_dim(pivot_row, [count, size - 1, size], [0, 2])
        rest = rest - ops.broadcast_in_dim(factor, [count, size - 1, size], [0, 1]) * lines
        matrix = ops.slice(rest, [0, 0, 1], [count, size - 1, size])
    return result


def _greatest_place(line: Value) -> Value:
    """The position of the greatest element of each line of a matrix."""
    top, line = together(greatest(line, [1], True), line)
    places = ops.iota("s32", line.dims, 1)
    return least(ops.select(ops.eq(line, top), places, places * 0 + line.dims[1]), [1])


def _small_inverses(wide: Value) -> Value:
    """Elimination with the greatest pivot of each column."""
    count, size, _ = wide.dims
    eye = broadcast_to(cast(numbers([1, size, size], 1).eq(numbers([1, size, size], 2)), wide.element_type), wide.dims)
    row, zero = numbers([count, size], 1), fill([], 0, "s32")

    def some(step: Value, _: Value) -> Value:
        return step < size

    def eliminate(step: Value, both: Value) -> tuple[Value, Value]:
        here = broadcast_to(step, row.dims)
        column = ops.reshape(ops.dynamic_slice(both, [zero, zero, step], [count, size, 1]), [count, size])
        heights = ops.select(row >= here, ops.abs(column), full(column, -1.0))
        is_best = heights.eq(broadcast_to(greatest(heights, [1], True), heights.dims))
        pivot = least(ops.select(is_best, row, fill(row.dims, size - 1, "s32")), [1], True)
        spread = broadcast_to(pivot, row.dims)
        # The pivot's row and this one change places.
        order = ops.select(row.eq(here), spread, ops.select(row.eq(spread), here, row))
        is_from = ops.broadcast_in_dim(order, [count, size, size], [0, 1]).eq(numbers([count, size, size], 2))
        both = matmul(cast(is_from, both.element_type), both)
        mine = ops.dynamic_slice(both, [zero, step, zero], [count, 1, 2 * size])
        mine = mine / broadcast_to(ops.dynamic_slice(mine, [zero, zero, step], [count, 1, 1]), mine.dims)
        column = ops.dynamic_slice(both, [zero, zero, step], [count, size, 1])
        less = both - broadcast_to(column, both.dims) * broadcast_to(mine, both.dims)
        is_mine = ops.broadcast_in_dim(row.eq(here), both.dims, [0, 1])
        return step + 1, ops.select(is_mine, broadcast_to(mine, both.dims), less)

    _, both = pair(ops.while_(some, eliminate, [zero, ops.concat_in_dim([wide, eye], 2)]))
    return window(both, 2, size, 2 * size)
