"""Matrix products too large for one vector, as loops over parts of the summed dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.emission import emit
from hloforge.dialect.idioms import for_loop, zeros
from hloforge.dialect.mlir import AnyOp, ir, stablehlo
from hloforge.dialect.operations import operations
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.patterns import replace
from hloforge.pipelines.loops.loop_cost import PRODUCT, longest_vector, vector_bytes


def split_products(loop: Any) -> None:
    """Rewrite the ``dot_general`` operations in a fused loop that IREE would unroll into too long a vector."""
    for op in operations(loop, {PRODUCT}):
        if vector_bytes(op) > longest_vector(op):
            with ir.InsertionPoint(op), op.location:
                replace(op, [_in_parts(op)])


def _in_parts(op: AnyOp) -> Value:
    numbers = op.attributes["dot_dimension_numbers"]
    named = stablehlo.DotDimensionNumbers(numbers)
    operands = [Value(operand) for operand in op.operands]
    summed = [int(named.lhs_contracting_dimensions[0]), int(named.rhs_contracting_dimensions[0])]
    depth, result = operands[0].dims[summed[0]], Value(op.results[0])
    most = longest_vector(op) * depth // vector_bytes(op)
    part = next(size for size in range(max(1, most), 0, -1) if depth % size == 0)
    attributes = {name: op.attributes[name] for name in op.attributes}

    def turn(number: Value, total: Value) -> Sequence[Value]:
        start = ops.mul(number, part)
        parts = [_part(operand, d, start, part) for operand, d in zip(operands, summed, strict=True)]
        return [ops.add(total, emit(PRODUCT, parts, result.type, **attributes))]

    return for_loop(depth // part, [zeros(result.element_type, result.dims)], turn)[0]


def _part(operand: Value, dimension: int, start: Value, size: int) -> Value:
    starts: list[Any] = [0] * operand.rank
    sizes = list(operand.dims)
    starts[dimension], sizes[dimension] = start, size
    return ops.dynamic_slice(operand, starts, sizes)
