"""Tridiagonal systems by elimination with partial pivoting, a row per iteration. Source: LAPACK "gtsv", "lagts"."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.idioms import for_loop, zeros
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.blocks import (
    magnitude,
    real_part,
    rows_at,
    spread,
    typed_as,
    with_rows,
    zero_unless,
)
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target, lapack


@custom_call_target(*lapack("gtsv"))
def gtsv(call: CustomCall) -> list[Value]:
    """The diagonals below, on and above the main one, ``[..., n]`` each, and b ``[..., n, m]`` -> x with a x = b.

    ``below[0]`` and ``above[n - 1]`` are not read. The first three results are the diagonals of u: its second above
    (from the position 1 on), the main one, and the first above; the last one is 0 or the number of the first zero
    pivot.
    """
    *batch, n, width = call.operands[-1].dims
    if not prod([*batch, n]):
        return [*call.operands, zeros("s32", batch)]
    second, main, above, b, info = _eliminated(*_flat(call))
    x = _substituted(second, main, above, b)
    shaped = [ops.reshape(diagonal, [*batch, n]) for diagonal in (second, main, above)]
    return [*shaped, ops.reshape(x, [*batch, n, width]), ops.reshape(info, batch)]


@custom_call_target("cusparse_gtsv2_ffi", "hipsparse_gtsv2_ffi")
def gtsv2(call: CustomCall) -> list[Value]:
    """x alone."""
    return [gtsv(call)[3]]


@custom_call_target(
    "tridiagonal_solve_perturbed_ffi", "cu_tridiagonal_solve_perturbed", "hip_tridiagonal_solve_perturbed"
)
def tridiagonal_solve_perturbed(call: CustomCall) -> list[Value]:
    """The same x of a matrix that may be singular, as inverse iteration needs it: pivots that would let x overflow
    are moved away from zero, by the last place of the largest element of u."""
    dims = call.operands[-1].dims
    if not prod(dims):
        return [call.operands[-1]]
    second, main, above, b, _ = _eliminated(*_flat(call))
    sizes = [ops.reduce(ops.abs(part), 0, ops.max, [1, 2]) for part in _read(second, main, above)]
    largest = ops.max(sizes[0], ops.max(sizes[1], sizes[2]))
    step = ops.max(largest * _limits(largest).eps, _limits(largest).tiny)
    x = _substituted(second, main, above, b, lambda pivot, right: _moved(pivot, right, step))
    return [ops.reshape(x, dims)]


def _flat(call: CustomCall) -> list[Value]:
    """The diagonals as ``[b, n, 1]`` and the right sides as ``[b, n, m]``."""
    *diagonals, b = call.operands
    *batch, n, width = b.dims
    shapes = [*[(prod(batch), n, 1)] * 3, (prod(batch), n, width)]
    return [ops.reshape(operand, shape) for operand, shape in zip((*diagonals, b), shapes, strict=True)]


def _read(second: Value, main: Value, above: Value) -> list[Value]:
    """The diagonals of u with zeros where nothing of u is."""
    row = ops.iota("s32", main.dims, 1)
    return [zero_unless(row > 0, second), main, zero_unless(row < main.dims[1] - 1, above)]


def _limits(like: Value) -> np.finfo[Any]:
    return np.finfo(like.element_type.dtype)


def _moved(pivot: Value, right: Value, step: Value) -> Value:
    """``pivot`` ``[b, 1, 1]`` away from zero by at least ``step`` ``[b]`` where ``right / pivot`` would overflow."""
    size, tiny = ops.abs(pivot), _limits(step).tiny
    most = spread(ops.reduce(ops.abs(right), 0, ops.max, [1, 2]), size.dims)
    overflows = (size < 1) & ((size < tiny) | (most * tiny > size))
    # Twice what the largest right side needs, for the sum is rounded.
    away = ops.max(spread(step, size.dims), most * (2 * tiny))
    away = ops.select(real_part(pivot) < 0, -away, away)
    return ops.select(overflows, pivot + typed_as(away, pivot), pivot)


def _eliminated(below: Value, main: Value, above: Value, b: Value) -> list[Value]:
    """u's second diagonal, from 1 on, its main and its first one, and what b becomes."""
    batch, n, _ = b.dims

    def turn(row: Value, second: Value, main: Value, above: Value, b: Value, info: Value) -> list[Value]:
        following = row + 1
        lead, own, right = rows_at(below, following, 1), rows_at(main, row, 1), rows_at(above, row, 1)
        diagonal = rows_at(main, following, 1)
        beyond = rows_at(above, following, 1)
        reached = zero_unless(spread(following < n - 1, beyond.dims), beyond)
        keeps = magnitude(own) >= magnitude(lead)
        pivot = ops.select(keeps, own, lead)
        # A column of zeros needs no elimination, and leaves a pivot of zero.
        factor = zero_unless(ops.ne(pivot, full(pivot, 0)), ops.select(keeps, lead, own) / pivot)
        upper, lower = ops.select(keeps, right, diagonal), ops.select(keeps, diagonal, right)
        first, last = rows_at(b, row, 1), rows_at(b, following, 1)
        keep_rows = ops.broadcast_in_dim(keeps, first.dims, [0, 1, 2])
        stays, goes = ops.select(keep_rows, first, last), ops.select(keep_rows, last, first)
        is_zero = ops.reshape(ops.eq(pivot, full(pivot, 0)), (batch,))
        return [
            with_rows(second, zero_unless(~keeps, reached), following),
            with_rows(with_rows(main, pivot, row), lower - factor * upper, following),
            with_rows(
                with_rows(above, upper, row),
                ops.select(spread(following < n - 1, beyond.dims) & ~keeps, -(factor * reached), beyond),
                following,
            ),
            with_rows(
                with_rows(b, stays, row), goes - ops.broadcast_in_dim(factor, goes.dims, [0, 1, 2]) * stays, following
            ),
            ops.select(is_zero & ops.eq(info, 0), spread(following, info.dims), info),
        ]

    second, main, above, b, info = for_loop(n - 1, [below, main, above, b, zeros("s32", (batch,))], turn)
    last = ops.reshape(rows_at(main, constant(n - 1, "s32"), 1), (batch,))
    fails = ops.eq(last, full(last, 0)) & ops.eq(info, 0)
    return [second, main, above, b, ops.select(fails, full(info, n), info)]


def _substituted(
    second: Value,
    main: Value,
    above: Value,
    b: Value,
    adjusted: Callable[[Value, Value], Value] = lambda pivot, right: pivot,
) -> Value:
    """x with u x = b, from the last row up.

    Args:
        adjusted: from a pivot ``[b, 1, 1]`` and what it is to divide, ``[b, 1, m]``, to the divisor.
    """
    batch, n, width = b.dims

    def turn(number: Value, x: Value, one: Value, two: Value) -> list[Value]:
        row = n - 1 - number
        # No x is beyond the last two rows, whatever is in the diagonals there.
        right = zero_unless(spread(number > 0, (batch, 1, 1)), rows_at(above, row, 1))
        far = zero_unless(spread(number > 1, (batch, 1, 1)), rows_at(second, ops.min(row + 1, n - 1), 1))
        right, far = (ops.broadcast_in_dim(weight, one.dims, [0, 1, 2]) for weight in (right, far))
        rest = rows_at(b, row, 1) - right * one - far * two
        found = rest / ops.broadcast_in_dim(adjusted(rows_at(main, row, 1), rest), rest.dims, [0, 1, 2])
        return [with_rows(x, found, row), found, one]

    nothing = zeros(b.element_type, (batch, 1, width))
    return for_loop(n, [zeros(b.element_type, b.dims), nothing, nothing], turn)[0]
