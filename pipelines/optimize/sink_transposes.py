"""``sink-transposes``: fold transpositions of factors and results into dimension numbers of products.

Before::

    %t = stablehlo.transpose %w, dims = [1, 0] : (tensor<768x512xf32>) -> tensor<512x768xf32>
    %y = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0]
    %z = stablehlo.transpose %y, dims = [1, 0]

After::

    %z = stablehlo.dot_general %w, %x, contracting_dims = [1] x [1]

Frameworks write ``x @ w.T`` and the gradients of products so. IREE copies a transposed array before it multiplies; both
its own products and those of ``dispatch-matmuls`` read a factor in either order. XLA's simplifier does the same
("TransposeFolding").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import AnyOp, SSAValue, ir, stablehlo
from hloforge.dialect.operations import defining_op, integers
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import CPU, PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

_TRANSPOSE, _PRODUCT = "stablehlo.transpose", "stablehlo.dot_general"


@pattern(_PRODUCT)
def of_factors(op: ir.Operation) -> Replacement:
    """Contract the other dimension of a transposed factor."""
    summed = _summed(op)
    factors = [_transposed(operand) for operand in op.operands]
    if summed is None or not any(factors):
        return NoMatch("no factor is a transposed matrix")
    left, right = (Value(before or operand) for before, operand in zip(factors, op.operands, strict=True))
    return _product(op, left, right, [1 - d if before else d for before, d in zip(factors, summed, strict=True)])


@pattern(_TRANSPOSE)
def of_product(op: ir.Operation) -> Replacement:
    """Multiply in the other order."""
    product = op.operands[0].owner
    if isinstance(product, ir.Block) or product.name != _PRODUCT or len(list(op.operands[0].uses)) > 1:
        return NoMatch("it transposes no product, or one that others read too")
    summed = _summed(product)
    if summed is None or _transposed(op.results[0]) is None:
        return NoMatch("it is no product of two matrices")
    left, right = (Value(operand) for operand in product.operands)
    return _product(op, right, left, summed[::-1])


def _summed(op: ir.Operation) -> list[int] | None:
    """The dimension of each factor that a product of two matrices sums over; None for other products."""
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    summed = [*numbers.lhs_contracting_dimensions, *numbers.rhs_contracting_dimensions]
    ranks = [len(operand.type.shape) for operand in op.operands]
    return summed if ranks == [2, 2] and len(summed) == 2 and not list(numbers.lhs_batching_dimensions) else None


def _transposed(value: SSAValue) -> Any:
    """The matrix that a value is the transpose of; None for other values."""
    op = defining_op(value, _TRANSPOSE)
    return op.operands[0] if op is not None and integers(op, "permutation") == [1, 0] else None


def _product(op: AnyOp, left: Value, right: Value, summed: list[int]) -> Value:
    numbers = ops.DotDimensionNumbers((summed[0],), (summed[1],))
    return ops.dot_general(left, right, numbers, preferred_element_type=Value(op.results[0]).element_type)


@register
@dataclass(frozen=True)
class SinkTransposes(PatternPass):
    """Fold transpositions of operands into products."""

    name: ClassVar[str] = "sink-transposes"
    targets: ClassVar[frozenset[str]] = CPU
    patterns: ClassVar[tuple[Pattern, ...]] = (*of_factors, *of_product)
