"""Parts of arrays, at positions known when the program is built or when it runs.

Source: XLA "Slice", "DynamicSlice", "DynamicUpdateSlice".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from hloforge.dialect import rules
from hloforge.dialect.constants import scalar_operand
from hloforge.dialect.element_types import element_type
from hloforge.dialect.emission import emit, i64s
from hloforge.dialect.errors import OperationError
from hloforge.dialect.op import ARRAY, op
from hloforge.dialect.ops.shape import reshape
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value

# One scalar a dimension, or XLA's older form: one vector.
Starts: TypeAlias = Value | Sequence[Value | int]


@op("Slice", emits="stablehlo.slice", on=ARRAY)
def slice(
    operand: Value, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] = ()
) -> Value:
    """The elements ``start : limit : stride`` of every dimension.

    Args:
        operand: an array.
        start_indices: the first index in each dimension.
        limit_indices: the index after the last one in each dimension.
        strides: steps; 1 in every dimension if left out.

    Raises:
        OperationError: not ``0 <= start <= limit <= size`` in a dimension, a stride is not positive, or a list has
            another length than the operand has dimensions.

    Example:
        >>> slice(constant([[0, 1, 2, 3], [4, 5, 6, 7]], "s32"), [1, 0], [2, 4], [1, 2])
        [[4 6]]
    """
    rank = operand.rank
    starts = rules.one_per_dimension(start_indices, rank, "start_indices")
    limits = rules.one_per_dimension(limit_indices, rank, "limit_indices")
    steps = rules.one_per_dimension(strides or [1] * rank, rank, "strides")
    kept = [_extent(operand.shape, d, *bounds) for d, bounds in enumerate(zip(starts, limits, steps, strict=True))]
    if operand.dims == tuple(kept):
        return operand
    # One element of a dynamic dimension is static.
    flags = [flag and size != 1 for flag, size in zip(_bounded(operand.shape), kept, strict=True)]
    return emit(
        "stablehlo.slice",
        [operand],
        Shape(operand.element_type, tuple(kept), tuple(flags)),
        start_indices=i64s(starts),
        limit_indices=i64s(limits),
        strides=i64s(steps),
    )


def _extent(operand: Shape, number: int, start: int, limit: int, stride: int) -> int:
    size = operand.dimensions[number]
    if stride < 1:
        raise OperationError(f"stride {stride} of dimension {number} must be positive")
    if not 0 <= start <= limit or 0 <= size < limit:
        raise OperationError(f"{start}:{limit} is no range of dimension {number} of {operand}")
    return (limit - start + stride - 1) // stride


def _bounded(shape: Shape) -> list[bool]:
    return [flag and size >= 0 for flag, size in zip(shape.dynamic, shape.dimensions, strict=True)]


@op("DynamicSlice", emits="stablehlo.dynamic_slice", on=ARRAY)
def dynamic_slice(operand: Value, start_indices: Starts, size_indices: Sequence[int]) -> Value:
    """The window of given sizes at a position that is known at run time.

    Args:
        operand: an array.
        start_indices: one integer scalar for each dimension, all of one element type, or one vector of them. Each is
            clamped to ``[0, size of the dimension - size of the window]``, so that the window lies inside.
        size_indices: the window's sizes.

    Raises:
        OperationError: the starts are not one integer scalar a dimension, or a size is negative or too large.

    Example:
        >>> dynamic_slice(constant([0, 1, 2, 3, 4], "s32"), [constant(4, "s32")], [2])
        [3 4]
    """
    starts = _scalars(start_indices, operand.rank)
    window = rules.one_per_dimension(rules.sizes(size_indices, "size_indices"), operand.rank, "size_indices")
    shape = Shape(operand.element_type, tuple(window))
    _check_inside(shape, operand.shape)
    return emit("stablehlo.dynamic_slice", [operand, *starts], shape, slice_sizes=i64s(window))


@op("DynamicUpdateSlice", emits="stablehlo.dynamic_update_slice", on=ARRAY)
def dynamic_update_slice(operand: Value, update: Value, start_indices: Starts) -> Value:
    """The array with a window overwritten at a position that is known at run time.

    Args:
        operand: an array.
        update: the window's new elements, of the same element type and rank.
        start_indices: as of ``dynamic_slice``, clamped like those.

    Raises:
        OperationError: the starts are not one integer scalar a dimension, or ``update`` has another element type or
            rank, or exceeds the operand.

    Example:
        >>> dynamic_update_slice(constant([0, 1, 2, 3, 4], "s32"), constant([8, 9], "s32"), [constant(1, "s32")])
        [0 8 9 3 4]
    """
    rules.same_element_type(operand, update)
    if update.rank != operand.rank:
        raise OperationError(f"update {update.shape} must have the rank of {operand.shape}")
    _check_inside(update.shape, operand.shape)
    starts = _scalars(start_indices, operand.rank)
    return emit("stablehlo.dynamic_update_slice", [operand, update, *starts], operand.shape)


def _check_inside(window: Shape, operand: Shape) -> None:
    for number, (size, limit) in enumerate(zip(window.dimensions, operand.dimensions, strict=True)):
        if size > limit >= 0:
            raise OperationError(f"a window of {size} exceeds dimension {number} of {operand}")


def _scalars(start_indices: Starts, rank: int) -> list[Value]:
    starts = _parts(start_indices) if isinstance(start_indices, Value) else list(start_indices)
    if len(starts) != rank:
        raise OperationError(f"{len(starts)} start_indices must be one for each of the {rank} dimensions")
    row = next((start.element_type for start in starts if isinstance(start, Value)), element_type("s32"))
    if not row.is_integer:
        raise OperationError(f"start_indices must be integers, not {row}")
    scalars = [scalar_operand(start, row) for start in starts]
    for number, start in enumerate(scalars):
        rules.scalar(start, f"start index {number}", row)
    return scalars


def _parts(vector: Value) -> list[Value]:
    if vector.rank != 1 or vector.dims[0] < 0:
        raise OperationError(f"start_indices must be scalars or one static vector, not {vector.shape}")
    return [reshape(slice(vector, [number], [number + 1]), []) for number in range(vector.dims[0])]
