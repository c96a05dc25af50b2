"""Products and parts of stacked matrices ``[b, m, n]``."""

from __future__ import annotations

from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.ops.elementwise import complex_number, imaginary, real
from hloforge.dialect.ops.shape import iota, transpose
from hloforge.dialect.values import Value, emit


def batch_matmul(lhs: Value, rhs: Value) -> Value:
    """``[b, m, k]`` times ``[b, k, n]`` to ``[b, m, n]`` (XLA "DotGeneral")."""
    numbers = stablehlo.DotDimensionNumbers.get(
        lhs_batching_dimensions=[0],
        rhs_batching_dimensions=[0],
        lhs_contracting_dimensions=[2],
        rhs_contracting_dimensions=[1],
    )
    sizes = [lhs.dims[0], lhs.dims[1], rhs.dims[2]]
    result = ir.RankedTensorType.get(sizes, lhs.type.element_type)
    return emit("stablehlo.dot_general", [lhs, rhs], result, dot_dimension_numbers=numbers)


def conjugate(operand: Value) -> Value:
    """The complex conjugate; real arrays are returned as they are."""
    if not operand.element_type.is_complex:
        return operand
    return complex_number(real(operand), -imaginary(operand))


def matrix_transpose(operand: Value) -> Value:
    """``[b, m, n]`` to ``[b, n, m]``."""
    return transpose(operand, [0, 2, 1])


def lower_triangle(dims: tuple[int, ...]) -> Value:
    """A pred ``[b, m, n]``: whether an element stands on or below the diagonal."""
    return iota("s32", dims, 1) >= iota("s32", dims, 2)
