"""``decompose-triangular-solve``: triangular systems by substitution, a block of rows per iteration.

Before::

    %x = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, transpose_a = NO_TRANSPOSE, ...}>

After::

    for each block of rows [j, j + 64):
        %r = %b[j : j + 64] - %a[j : j + 64, : j] @ %x[: j]
        for each row i of the block:   %x[i] = (%r[i] - %a[i, j : i] @ %x[j : i]) / %a[i, i]

An upper triangle is solved from the bottom up; a right side by transposing the equation. Elements outside of the
triangle are not read. Source: XLA "TriangularSolve"; Golub & Van Loan, 3.1; Higham, Accuracy and Stability of Numerical
Algorithms, 8.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.idioms import batch_matmul, conjugate, lower_triangle, matrix_transpose, zeros
from hloforge.dialect.mlir import ir, stablehlo
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
    rows_at,
    spread,
    with_rows,
    zero_unless,
)


@pattern("stablehlo.triangular_solve")
def in_f32(op: ir.Operation) -> Replacement:
    """Narrower floats are rounded once, at the end."""
    a, b = map(Value, op.operands)
    if b.element_type.bits >= 32:
        return NoMatch("wide enough")
    x = ops.triangular_solve(ops.convert_element_type(a, "f32"), ops.convert_element_type(b, "f32"), **_options(op))
    return ops.convert_element_type(x, b.element_type)


@pattern("stablehlo.triangular_solve")
def by_substitution(op: ir.Operation) -> Replacement:
    """Solve op(a) x = b, or x op(a) = b."""
    if not is_static(op):
        return NoMatch("dynamic size")
    a, b = map(Value, op.operands)
    dims = b.dims
    if prod(dims) == 0:
        return b
    options = _options(op)
    left, lower, form = options["left_side"], options["lower"], options["transpose_a"]
    a, b = (ops.reshape(value, (prod(value.dims[:-2]), *value.dims[-2:])) for value in (a, b))
    if form == "ADJOINT":
        a = conjugate(a)
    if (form in ("TRANSPOSE", "ADJOINT")) == left:  # what is on the left of the unknown in the end
        a, lower = matrix_transpose(a), not lower
    x = solve(a, b if left else matrix_transpose(b), lower=lower, unit_diagonal=options["unit_diagonal"])
    return ops.reshape(x if left else matrix_transpose(x), dims)


def _options(op: Any) -> dict[str, Any]:
    """The keywords of ``ops.triangular_solve`` that make this operation."""
    options = {name: op.attributes[name].value for name in ("left_side", "lower", "unit_diagonal")}
    return options | {"transpose_a": stablehlo.TransposeAttr(op.attributes["transpose_a"]).value}


def solve(a: Value, b: Value, *, lower: bool, unit_diagonal: bool) -> Value:
    """x with tril(a) x = b, or triu(a) x = b: ``[b, n, n]`` and ``[b, n, m]`` to ``[b, n, m]``, none of them empty.

    Args:
        unit_diagonal: take the diagonal for ones, whatever it holds.
    """
    batch, n, width = b.dims

    def turn(block: Block, x: Value) -> list[Value]:
        coefficients = block.of(a)
        rest = minus_found(block.of(b), coefficients, x, block)
        corner = columns_at(coefficients, block.start, block.rows)
        return [with_rows(x, _rows_of_block(corner, rest, block.of(x), block, unit_diagonal), block.start)]

    return by_blocks(batch, n, width, [zeros(b.element_type, b.dims)], turn, down=lower)[0]


def _rows_of_block(corner: Value, rest: Value, x: Value, block: Block, unit_diagonal: bool) -> Value:
    """The rows of a block of x, by the square ``corner`` of the coefficients that is left to consider."""
    triangle = lower_triangle(corner.dims) if not block.down else matrix_transpose(lower_triangle(corner.dims))
    beside = zero_unless(~triangle, corner)

    def turn(row: Value, x: Value) -> list[Value]:
        values = rows_at(rest, row, 1) - batch_matmul(rows_at(beside, row, 1), x)
        if not unit_diagonal:
            values = values / spread(element_at(corner, row, row), values.dims)
        return [with_rows(x, values, row)]

    return block.by_rows([x], turn)[0]


@register
@dataclass(frozen=True)
class DecomposeTriangularSolve(PatternPass):
    """Replace triangular solves of static size."""

    name: ClassVar[str] = "decompose-triangular-solve"
    establishes: ClassVar[Facts] = frozenset({Fact.NO_FACTORIZATIONS})
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SAFE_PRODUCTS})
    patterns: ClassVar[tuple[Pattern, ...]] = (*in_f32, *by_substitution)
