"""Reading and writing rows by number."""

from __future__ import annotations

from collections.abc import Callable

from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.ops.reduction import fill_region
from hloforge.dialect.ops.shape import reshape
from hloforge.dialect.values import Value, emit

# Says of a scatter or gather that its indices lie in bounds, and a scatter's rows lead: what IREE takes as it is.
IN_BOUNDS = "in_bounds"


def take_rows(operand: Value, rows: Value) -> Value:
    """``operand[rows]``: ``[p, ...]`` and ``[n]`` to ``[n, ...]`` (XLA "Gather"); every row must exist."""
    sizes = [1, *operand.dims[1:]]
    result = ir.RankedTensorType.get([*rows.dims, *sizes[1:]], operand.type.element_type)
    numbers = stablehlo.GatherDimensionNumbers.get(
        offset_dims=list(range(1, operand.rank)),
        collapsed_slice_dims=[0],
        operand_batching_dims=[],
        start_indices_batching_dims=[],
        start_index_map=[0],
        index_vector_dim=1,
    )
    vectors = reshape(rows, [*rows.dims, 1])
    attributes = {"dimension_numbers": numbers, "slice_sizes": ir.DenseI64ArrayAttr.get(sizes)}
    return emit("stablehlo.gather", [operand, vectors], result, **attributes, **{IN_BOUNDS: ir.UnitAttr.get()})


def update_rows(
    operand: Value, rows: Value, updates: Value, computation: Callable[[Value, Value], Value], *, unique: bool
) -> Value:
    """Combine ``updates[i]`` into ``operand[rows[i]]``, in order (XLA "Scatter"); every row must exist.

    Args:
        operand: ``[p]`` or ``[p, w]``.
        rows: ``[n]`` of s32 or s64.
        updates: ``[n]`` or ``[n, w]``.
        computation: from (old, update), scalars, to the new scalar.
        unique: a promise that no row is named twice.
    """
    numbers = stablehlo.ScatterDimensionNumbers.get(
        update_window_dims=list(range(1, operand.rank)),
        inserted_window_dims=[0],
        input_batching_dims=[],
        scatter_indices_batching_dims=[],
        scattered_dims_to_operand_dims=[0],
        index_vector_dim=1,
    )
    op = ir.Operation.create(
        "stablehlo.scatter",
        results=[operand.type],
        operands=[operand.ir, reshape(rows, [*rows.dims, 1]).ir, updates.ir],
        attributes={
            "scatter_dimension_numbers": numbers,
            "unique_indices": ir.BoolAttr.get(unique),
            IN_BOUNDS: ir.UnitAttr.get(),
        },
        regions=1,
    )
    scalar = ir.RankedTensorType.get([], operand.type.element_type)
    fill_region(op.regions[0], [scalar, scalar], computation)
    return Value(op.results[0])


def take(operand: Value, places: Value, dimension: int) -> Value:
    """The slices of ``operand`` at ``places`` along a dimension, which they replace.

    Args:
        operand: ``[..., n, ...]``, static.
        places: ``[m]`` integers, every one inside ``0 .. n - 1``.
    """
    sizes = list(operand.dims)
    window = [1 if d == dimension else size for d, size in enumerate(sizes)]
    offsets = [d for d in range(operand.rank) if d != dimension]
    sizes[dimension] = places.dims[0]
    numbers = stablehlo.GatherDimensionNumbers.get(
        offset_dims=offsets,
        collapsed_slice_dims=[dimension],
        operand_batching_dims=[],
        start_indices_batching_dims=[],
        start_index_map=[dimension],
        index_vector_dim=1,
    )
    return emit(
        "stablehlo.gather",
        [operand, places],
        ir.RankedTensorType.get(sizes, operand.type.element_type),
        dimension_numbers=numbers,
        slice_sizes=ir.DenseI64ArrayAttr.get(window),
        **{IN_BOUNDS: ir.UnitAttr.get()},
    )
