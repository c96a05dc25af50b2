"""By which strides a ``dot_general`` reads its factors: dense arrays, or parts of others, such as some columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hloforge.dialect.mlir import stablehlo
from hloforge.pipelines.codegen.graph import Array, Op
from hloforge.pipelines.codegen.parts import Part, strides
from hloforge.pipelines.codegen.refusal import RefusedError


def strides_of(op: Op) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of both factors, in elements."""
    left, right = (
        part.strides if part else strides(one.shape) for one, part in zip(op.operands, op.parts, strict=True)
    )
    return left, right


def takes_strides(op: Op, array: Array, part: Part) -> bool:
    """Whether an operation reads a factor by the strides that it has as a part of another array."""
    if op.name != "dot_general" or op.packed is not None or op.panel is not None or op.strips is not None:
        return False
    last = next((step for size, step in zip(array.shape[::-1], part.strides[::-1], strict=True) if size != 1), 1)
    if last != 1:
        return False
    numbers = stablehlo.DotDimensionNumbers(op.attribute("dot_dimension_numbers"))
    batches = numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions
    depths = numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions
    for operand, batch, depth in zip(op.operands, batches, depths, strict=True):
        free = [d for d in range(operand.rank) if d not in (*batch, *depth)]
        if operand is array and not all(_follow(array.shape, part.strides, dims) for dims in (tuple(depth), free)):
            return False
    return True


def follow_each_other(shape: Sequence[int], dims: Sequence[int]) -> bool:
    """Whether dimensions of a dense array are one in memory, in their order here."""
    return _follow(shape, strides(shape), dims)


def _follow(shape: Sequence[int], steps: Sequence[int], dims: Sequence[int]) -> bool:
    sizes = [(shape[d], steps[d]) for d in dims if shape[d] != 1]
    return all(outer == inner * size for (_, outer), (size, inner) in pairwise(sizes))


def joined(shape: Sequence[int], steps: Sequence[int], dims: Sequence[int]) -> tuple[int, int]:
    """The stride and size of dimensions as one. Raises RefusedError if they are none."""
    if not _follow(shape, steps, dims):
        raise RefusedError("a product along dimensions that do not follow each other in memory")
    total, step = 1, 0
    for d in reversed(dims):
        if shape[d] != 1:
            step = step or steps[d]
            total *= shape[d]
    return step, total
