"""``decompose-cholesky``: the Cholesky factor, a block of rows per iteration.

Before::

    %u = stablehlo.cholesky %a, lower = false : tensor<512x512xf64>

After::

    for each block of rows [j, j + 64):
        %p = %a[j : j + 64, :] - adjoint(%u[: j, j : j + 64]) @ %u[: j, :]
        for each row i of the block:
            %p[i] = (%p[i] - conj(%p[: i, j + i]) @ %p[: i]) / sqrt(...)
        %u[j : j + 64, :] = %p

Rows make vectors, so that the upper factor is found, and a lower one is its adjoint. A matrix that is not positive
definite gives NaN throughout, as in XLA. Only the named triangle is read, and the other one of the result is zero.
Source: XLA "Cholesky"; Golub & Van Loan, 4.2.9; Higham, Accuracy and Stability of Numerical Algorithms, 10.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.idioms import batch_matmul, conjugate, lower_triangle, matrix_transpose, zeros
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern
from hloforge.pipelines.library_calls.blocks import (
    Block,
    by_blocks,
    columns_at,
    element_at,
    minus_found,
    real_part,
    rows_at,
    spread,
    squares,
    typed_as,
    with_rows,
    zero_unless,
)


@pattern("stablehlo.cholesky")
def in_f32(op: ir.Operation) -> Replacement:
    """Narrower floats are rounded once, at the end."""
    a = Value(op.operands[0])
    if a.element_type.bits >= 32:
        return NoMatch("wide enough")
    lower = "lower" in op.attributes and ir.BoolAttr(op.attributes["lower"]).value
    factor = ops.cholesky(ops.convert_element_type(a, "f32"), lower)
    return ops.convert_element_type(factor, a.element_type)


@pattern("stablehlo.cholesky")
def by_rows(op: ir.Operation) -> Replacement:
    """The upper factor, or its adjoint for a lower one."""
    if not is_static(op):
        return NoMatch("dynamic size")
    operand = Value(op.operands[0])
    if prod(operand.dims) == 0:
        return operand
    lower = "lower" in op.attributes and ir.BoolAttr(op.attributes["lower"]).value
    a = ops.reshape(operand, (prod(operand.dims[:-2]), *operand.dims[-2:]))
    return ops.reshape(factored(a, lower=lower)[0], operand.dims)


def factored(a: Value, *, lower: bool) -> tuple[Value, Value]:
    """The factors of ``[b, n, n]``, and s32 ``[b]``: 0, or the number of the first pivot that was not positive."""
    if lower:
        factor, failed = _upper_factor(conjugate(matrix_transpose(a)))
        return conjugate(matrix_transpose(factor)), failed
    return _upper_factor(a)


def _upper_factor(a: Value) -> tuple[Value, Value]:
    batch, n, _ = a.dims

    def turn(block: Block, factor: Value, failed: Value) -> list[Value]:
        coefficients = conjugate(matrix_transpose(columns_at(factor, block.start, block.rows)))
        rest = minus_found(block.of(a), coefficients, factor, block)
        rows, failed = _rows_of_block(rest, block.of(factor), failed, block)
        return [with_rows(factor, rows, block.start), failed]

    # What is found left of the diagonal is arbitrary, and depends on nothing but that.
    factor, failed = by_blocks(batch, n, n, [zeros(a.element_type, a.dims), zeros("s32", (batch,))], turn)
    upper = zero_unless(matrix_transpose(lower_triangle(a.dims)), factor)
    return ops.select(spread(failed.eq(0), a.dims), upper, full(upper, float("nan"))), failed


def _rows_of_block(rest: Value, rows: Value, failed: Value, block: Block) -> list[Value]:
    """The rows of a block from what the blocks before leave of the matrix, and the first pivot that failed."""
    above = ops.iota("s32", (rest.dims[0], block.rows, 1), 1)

    def turn(row: Value, rows: Value, failed: Value) -> list[Value]:
        column = columns_at(rows, block.start + row, 1)
        column = zero_unless(above < spread(row, above.dims), column)
        length = ops.reduce(squares(column), 0, ops.add, [1, 2])
        pivot = real_part(element_at(rest, row, block.start + row)) - length
        product = batch_matmul(conjugate(matrix_transpose(column)), rows)
        values = (rows_at(rest, row, 1) - product) / spread(typed_as(ops.sqrt(pivot), rest), product.dims)
        fails = failed.eq(0) & ~(pivot > 0)
        return [with_rows(rows, values, row), ops.select(fails, spread(block.start + row + 1, failed.dims), failed)]

    return block.by_rows([rows, failed], turn)


@register
@dataclass(frozen=True)
class DecomposeCholesky(PatternPass):
    """Replace Cholesky factorizations of static size."""

    name: ClassVar[str] = "decompose-cholesky"
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.NO_FACTORIZATIONS, Fact.SAFE_PRODUCTS})
    patterns: ClassVar[tuple[Pattern, ...]] = (*in_f32, *by_rows)
