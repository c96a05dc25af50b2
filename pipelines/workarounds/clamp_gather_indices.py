"""``clamp-gather-indices``: the clamping that gather implies, written out.

Before::

    %r = "stablehlo.gather"(%x, %i) {slice sizes [1, 8], start_index_map [0]} : (tensor<100x8xf32>, tensor<5x1xi32>) ...

After::

    %j = stablehlo.clamp 0, %i, 99
    %r = "stablehlo.gather"(%x, %j) {..., in_bounds}

IREE 3.13 reads wherever the index points, silently. Indices that are proven in bounds stay as they are.

Its compiler crashes where index vectors lie along a dimension before one of batching: they are moved to the last one.

A gather of which all slices start at one position is a broadcast of one slice. IREE reads one position then, and
computes the whole array there too, if that is written beside it: each element became the first one.
Source: StableHLO spec "gather": start indices are clamped so that the whole slice lies in the operand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.element_types import Kind
from hloforge.dialect.emission import emit
from hloforge.dialect.marks import IN_BOUNDS
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.index_bounds import component_bounds
from hloforge.pipelines.decompose.scatter_combiner import integer_range
from hloforge.pipelines.framework.facts import Fact, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


@pattern("stablehlo.gather")
def broadcast(op: Any) -> Replacement:
    """gather -> broadcast_in_dim of the first slice, where all are that one; static operand and indices."""
    operand, indices, result = *map(Value, op.operands), Value(op.results[0])
    if not operand.shape.is_static or not indices.shape.is_static:
        return NoMatch("dynamic size")
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    sizes = [int(size) for size in op.attributes["slice_sizes"]]
    if numbers.operand_batching_dims:
        return NoMatch("slices of several parts")
    starts = [0] * operand.rank
    for component, d in enumerate(numbers.start_index_map):
        limit = operand.dims[d] - sizes[d]
        bounds = component_bounds(indices.ir, numbers.index_vector_dim, component) or (0, limit)
        first, last = (min(max(bound, 0), limit) for bound in bounds)
        if first < last:
            return NoMatch("slices start at several positions")
        starts[d] = first
    window = ops.slice(operand, starts, [start + size for start, size in zip(starts, sizes, strict=True)])
    kept = [size for d, size in enumerate(sizes) if d not in numbers.collapsed_slice_dims]
    return ops.broadcast_in_dim(ops.reshape(window, kept), result.dims, list(numbers.offset_dims))


@pattern("stablehlo.gather")
def clamped(op: Any) -> Replacement:
    """gather -> gather of clamped indices; static operand and indices."""
    if IN_BOUNDS in op.attributes:
        return NoMatch("its indices are in bounds")
    operand, indices = map(Value, op.operands)
    if not operand.shape.is_static or not indices.shape.is_static:
        return NoMatch("dynamic size")
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    sizes = [int(size) for size in op.attributes["slice_sizes"]]
    limits = [operand.dims[d] - sizes[d] for d in numbers.start_index_map]
    if not all(_is_inside(indices, numbers.index_vector_dim, k, limit) for k, limit in enumerate(limits)):
        indices = _clamp(indices, numbers.index_vector_dim, limits)
    if indices.element_type.kind is Kind.UNSIGNED:
        # IREE extends the sign of an unsigned index.
        indices = ops.convert_element_type(indices, "s32" if max(limits, default=0) < 1 << 31 else "s64")
    attributes = {name: op.attributes[name] for name in op.attributes} | {IN_BOUNDS: ir.UnitAttr.get()}
    place = numbers.index_vector_dim
    if any(d > place for d in numbers.start_indices_batching_dims):
        indices = ops.transpose(indices, [*(d for d in range(indices.rank) if d != place), place])
        attributes["dimension_numbers"] = _with_vectors_last(numbers, indices.rank)
    return emit(op.name, [operand, indices], op.results[0].type, **attributes)


def _with_vectors_last(numbers: Any, rank: int) -> ir.Attribute:
    """The dimension numbers where the index vectors, of rank ``rank`` in all, are along the last dimension."""
    place = numbers.index_vector_dim
    return stablehlo.GatherDimensionNumbers.get(
        offset_dims=numbers.offset_dims,
        collapsed_slice_dims=numbers.collapsed_slice_dims,
        operand_batching_dims=numbers.operand_batching_dims,
        start_indices_batching_dims=[d - (d > place) for d in numbers.start_indices_batching_dims],
        start_index_map=numbers.start_index_map,
        index_vector_dim=rank - 1,
    )


def _is_inside(indices: Value, vector_dim: int, component: int, limit: int) -> bool:
    bounds = component_bounds(indices.ir, vector_dim, component)
    return bounds is not None and bounds[0] >= 0 and bounds[1] <= limit


def _clamp(indices: Value, vector_dim: int, limits: list[int]) -> Value:
    row = indices.element_type
    highest = integer_range(row)[1]
    limits = [min(limit, highest) for limit in limits]
    if len(set(limits)) == 1:
        high = constant(limits[0], row)
        return emit("stablehlo.clamp", [constant(0, row), indices, high], indices.type)
    high = ops.broadcast_in_dim(constant(limits, row), indices.dims, [vector_dim])
    low = ops.broadcast_in_dim(constant(0, row), indices.dims, [])
    return emit("stablehlo.clamp", [low, indices, high], indices.type)


@register
@dataclass(frozen=True)
class ClampGatherIndices(PatternPass):
    """Clamp the start indices of every gather that is not known to stay in bounds."""

    name: ClassVar[str] = "clamp-gather-indices"
    establishes: ClassVar[Facts] = frozenset({Fact.SAFE_GATHERS})
    patterns: ClassVar[tuple[Pattern, ...]] = (*broadcast, *clamped)
