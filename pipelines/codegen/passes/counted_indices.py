"""``legalize-counted-indices``: scatters of elements whose indices count along a dimension are scatters of windows.

Before, PyTorch's ``scatter_add`` of rows, whose index says row and column of each element::

    %i = stablehlo.concatenate %rows, %columns, dim = 2 : (…) -> tensor<900x64x2xi32>    // %columns is an iota
    %r = stablehlo.scatter(%x, %i, %u) <update_window_dims = [], inserted_window_dims = [0, 1], …>

After, with ``%row : tensor<900x1xi32>``, because ``%rows`` is the same along a row::

    %r = stablehlo.scatter(%x, %row, %u) <update_window_dims = [1], inserted_window_dims = [0], …>

A dimension of the indices is one of the window if one component is 0, 1, 2, … along it, within the array, and no other
component varies along it. Each element has its updates in the same order, because updates that differ along this
dimension change different elements. A window has one check of its bounds, one index, and vectors.
Source: StableHLO spec "scatter".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import SSAValue, ir, stablehlo
from hloforge.dialect.operations import defining_op, integer
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.counting import counts, varies
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.framework.facts import NORMALIZED, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import REWRITTEN, NoMatch, Pattern, Replacement, pattern


@dataclass(frozen=True)
class _Indices:
    """Index vectors, of parts that say a component each.

    Attributes:
        along: the dimension of the vectors.
        parts: the components, of size 1 along it.
        own: the dimensions of the operand that they are places of.
    """

    along: int
    parts: tuple[SSAValue, ...]
    own: tuple[int, ...]


@pattern("stablehlo.scatter")
def of_windows(op: ir.Operation) -> Replacement:
    """Make a window of what the indices count along."""
    count = (len(op.operands) - 1) // 2
    if not is_static(op):
        return NoMatch("of unknown size")
    numbers = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    if numbers.input_batching_dims:
        return NoMatch("of batches")
    found = _indices(op.operands[count], numbers)
    if found is None:
        return NoMatch("indices of one component, or not of parts")
    operand, update = Value(op.operands[0]), Value(op.operands[count + 1])
    window = dict(zip(numbers.update_window_dims, _own_window(operand.rank, numbers), strict=True))
    batch = [dim for dim in range(update.rank) if dim not in window]
    shape = Value(found.parts[0]).dims
    # The dimensions of the indices that number windows, in the order of those of the update.
    outer = [dim for dim in range(len(shape)) if dim != found.along]
    counted: dict[int, int] = {}
    for dim, place in zip(outer, batch, strict=True):
        component = _counted(found, dim, operand, set(counted.values()))
        if component is not None and _is_in_order({**window, place: found.own[component]}):
            counted[dim] = component
            window[place] = found.own[component]
    if not counted or len(counted) == len(found.parts):
        return NoMatch("nothing is counted, or everything is")
    kept = [number for number in range(len(found.parts)) if number not in counted.values()]
    indices = _without(found, kept, set(counted))
    op.operands[count] = indices.ir
    op.attributes["scatter_dimension_numbers"] = stablehlo.ScatterDimensionNumbers.get(
        update_window_dims=sorted(window),
        inserted_window_dims=[dim for dim in range(operand.rank) if dim not in window.values()],
        input_batching_dims=[],
        scatter_indices_batching_dims=[],
        scattered_dims_to_operand_dims=[found.own[number] for number in kept],
        index_vector_dim=indices.rank - 1,
    )
    return REWRITTEN


def _indices(indices: SSAValue, numbers: stablehlo.ScatterDimensionNumbers) -> _Indices | None:
    """The parts of index vectors; None where a part has several components, or there is one only."""
    along = numbers.index_vector_dim
    own = tuple(numbers.scattered_dims_to_operand_dims)
    made = defining_op(indices, "stablehlo.concatenate")
    if len(own) < 2 or made is None or integer(made, "dimension") != along or len(made.operands) != len(own):
        return None
    return _Indices(along, tuple(made.operands), own)


def _own_window(rank: int, numbers: stablehlo.ScatterDimensionNumbers) -> list[int]:
    """The dimensions of the operand along which windows lie."""
    return [dim for dim in range(rank) if dim not in numbers.inserted_window_dims]


def _counted(found: _Indices, dim: int, operand: Value, used: set[int]) -> int | None:
    """The only component that varies along a dimension, if it is 0, 1, 2, … there, within the operand, and alone."""
    size = Value(found.parts[0]).dims[dim]
    for number, part in enumerate(found.parts):
        if number in used or size > operand.dims[found.own[number]] or not counts(part, dim):
            continue
        others = [other for place, other in enumerate(found.parts) if place != number]
        if not any(varies(other, dim) for other in others):
            return number
    return None


def _is_in_order(window: dict[int, int]) -> bool:
    """Whether dimensions of the update follow each other as those of the operand do."""
    places = [window[dim] for dim in sorted(window)]
    return places == sorted(places)


def _without(found: _Indices, kept: list[int], counted: set[int]) -> Value:
    """The index vectors of the components that are left, at the first place of what is counted."""
    shape = Value(found.parts[0]).dims
    outer = [size for dim, size in enumerate(shape) if dim not in counted and dim != found.along]
    limits = [1 if dim in counted else size for dim, size in enumerate(shape)]
    parts = [
        ops.reshape(ops.slice(Value(found.parts[number]), [0] * len(shape), limits, [1] * len(shape)), [*outer, 1])
        for number in kept
    ]
    return parts[0] if len(parts) == 1 else ops.concat_in_dim(parts, len(outer))


@register
@dataclass(frozen=True)
class LegalizeCountedIndices(PatternPass):
    """Scatters of elements that lie next to each other change windows."""

    name: ClassVar[str] = "legalize-counted-indices"
    requires: ClassVar[Facts] = NORMALIZED
    patterns: ClassVar[tuple[Pattern, ...]] = of_windows
