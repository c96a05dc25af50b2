"""``legalize-known-gathers``: gathers along a dimension whose indices are known numbers at equal steps are views.

Before, an image of twice the size by nearest neighbours::

    %i = stablehlo.constant dense<[0, 0, 1, 1, 2, 2]> : tensor<6xi32>
    %r = stablehlo.gather(%x, %i) <collapsed_slice_dims = [1], start_index_map = [1], slice_sizes = [8, 1]>
      : (tensor<8x3xf32>, tensor<6xi32>) -> tensor<8x6xf32>

After::

    %b = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<8x3xf32>) -> tensor<8x3x2xf32>
    %r = stablehlo.reshape %b : (tensor<8x3x2xf32>) -> tensor<8x6xf32>

Slices, reversed ones and repetitions are functions of places, which loops have vectors of; a gather reads an index for
each element. Indices are clamped first. Source: StableHLO spec "gather".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.operations import integers
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.codegen.passes.integer_factors import known_array
from hloforge.pipelines.evaluation.known import KnownValues
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

# Indices that are looked into; bytes of a row from which on repeated ones are copied as fast by their index.
_MOST, _LINE = 1 << 14, 64


@pattern("stablehlo.gather")
def at_equal_steps(op: ir.Operation) -> Replacement:
    """Slice what is gathered, and repeat it."""
    if not is_static(op):
        return NoMatch("of unknown size")
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    operand, indices, sizes = Value(op.operands[0]), Value(op.operands[1]), integers(op, "slice_sizes")
    along = _only_dimension(operand, indices, numbers, sizes)
    if along is None:
        return NoMatch("along several dimensions, or of windows, or in another order")
    if not prod(indices.dims) or prod(indices.dims) > _MOST:
        return NoMatch("of no index or of many")
    known = known_array(op.operands[1], KnownValues(_MOST))
    if known is None:
        return NoMatch("indices that are not known")
    places = np.clip(np.asarray(known).reshape(-1).astype(np.int64), 0, operand.dims[along] - 1)
    found = _taken(operand, along, places)
    return NoMatch("steps differ, or rows are long") if found is None else ops.reshape(found, Value(op.results[0]).dims)


def _only_dimension(
    operand: Value, indices: Value, numbers: stablehlo.GatherDimensionNumbers, sizes: Sequence[int]
) -> int | None:
    """The dimension whose places are indices, all else as it is; None for any other gather."""
    if len(numbers.start_index_map) != 1 or numbers.operand_batching_dims:
        return None
    (along,) = numbers.start_index_map
    whole = [1 if dim == along else size for dim, size in enumerate(operand.dims)]
    if list(numbers.collapsed_slice_dims) != [along] or list(sizes) != whole:
        return None
    count = indices.rank - (numbers.index_vector_dim < indices.rank)
    order = [dim if dim < along else dim + count - 1 for dim in range(operand.rank) if dim != along]
    is_last = numbers.index_vector_dim >= indices.rank - 1
    return along if list(numbers.offset_dims) == order and is_last else None


def _taken(x: Value, along: int, places: np.ndarray) -> Value | None:
    """The places along a dimension; None unless each is as often there as the others, at equal steps."""
    changes = np.flatnonzero(np.diff(places))
    times = int(changes[0]) + 1 if len(changes) else len(places)
    if len(places) % times:
        return None
    single = places[::times]
    step = int(single[1] - single[0]) if len(single) > 1 else 1
    if not (places.reshape(-1, times) == single[:, None]).all() or not (np.diff(single) == step).all():
        return None
    first, last = sorted((int(single[0]), int(single[-1])))
    starts, limits, strides = [0] * x.rank, list(x.dims), [1] * x.rank
    starts[along], limits[along], strides[along] = first, last + 1, abs(step)
    found = ops.slice(x, starts, limits, strides)
    if step < 0:
        found = ops.rev(found, [along])
    if times == 1:
        return found
    if prod(x.dims[along + 1 :]) * x.element_type.bits >= _LINE * 8:
        return None
    dims = [*found.dims[: along + 1], times, *found.dims[along + 1 :]]
    return ops.broadcast_in_dim(found, dims, [dim for dim in range(len(dims)) if dim != along + 1])


@register
@dataclass(frozen=True)
class LegalizeKnownGathers(PatternPass):
    """Gathers by known indices at equal steps are slices and repetitions."""

    name: ClassVar[str] = "legalize-known-gathers"
    patterns: ClassVar[tuple[Pattern, ...]] = at_equal_steps
