"""``legalize-nested-updates``: a part that is taken out of an array, changed and put back is changed in the array.

Before, as PyTorch writes ``cache[1].index_copy_(0, place, row)`` of a cache of three layers::

    %old = stablehlo.slice %cache [1:2, 0:4, 0:8] : (tensor<3x4x8xf32>) -> tensor<1x4x8xf32>
    %x   = stablehlo.reshape %old : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
    %y   = stablehlo.scatter(%x, %place, %row) … : (tensor<4x8xf32>, tensor<1x1xi64>, tensor<1x8xf32>) -> …
    %new = stablehlo.reshape %y : (tensor<4x8xf32>) -> tensor<1x4x8xf32>
    %r   = stablehlo.dynamic_update_slice %cache, %new, %one, %zero, %zero : …

After::

    %places = stablehlo.concatenate %one1, %place, dim = 1 : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x2xi64>
    %r      = stablehlo.scatter(%cache, %places, %row) … : (tensor<3x4x8xf32>, tensor<1x2xi64>, tensor<1x8xf32>) -> …

So are updates of a part of a part, from the innermost one on. Updates are made in place; a part was copied out of the
array and into it. Indices that lie outside of the part lie outside of the array in their own dimension.
Source: StableHLO spec "scatter", "dynamic_update_slice"; PyTorch, ``aten.select_scatter``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.mlir import SSAValue, ir, stablehlo
from hloforge.dialect.operations import defining_op, integers
from hloforge.dialect.regions import is_elementwise, vectorize_region
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.codegen.passes.integer_factors import known_array
from hloforge.pipelines.evaluation.known import KnownValues
from hloforge.pipelines.framework.facts import NORMALIZED, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

_UPDATE, _RESHAPE = "stablehlo.dynamic_update_slice", "stablehlo.reshape"


@pattern(_UPDATE)
def in_the_array(op: ir.Operation) -> Replacement:
    """Change the array that a part is taken out of and put back into."""
    if not is_static(op):
        return NoMatch("sizes are not known")
    array = Value(op.operands[0])
    changed = _changed(op.operands[1])
    if changed is None:
        return NoMatch("what it writes is no changed array, or has other readers")
    x = Value(changed.operands[0])
    more = array.rank - x.rank
    if more < 1 or Value(op.operands[1]).dims != (*[1] * more, *x.dims) or array.dims[more:] != x.dims:
        return NoMatch("no part along first dimensions")
    starts = [_number(start) for start in op.operands[2:]]
    outer = [start for start in starts[:more] if start is not None]
    if len(outer) < more or any(starts[more:]) or not _is_part(changed.operands[0], array.ir, outer):
        return NoMatch("no part of the array, or of another place of it")
    if changed.name == _UPDATE:
        change, *inner = map(Value, changed.operands[1:])
        kind = inner[0].element_type if inner else "s32"
        places = [*(constant(start, kind) for start in outer), *inner]
        return ops.dynamic_update_slice(array, change.reshape(*[1] * more, *change.dims), places)
    if len(changed.operands) != 3 or not is_elementwise(changed.regions[0]):
        return NoMatch("several arrays, or a computation that is not one of single operations")
    return _scattered(changed, array, outer)


def _scattered(op: ir.Operation, array: Value, outer: Sequence[int]) -> Value:
    """The scatter into an array of more dimensions, at these places of them."""
    numbers = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    indices, updates = Value(op.operands[1]), Value(op.operands[2])
    more, along = len(outer), numbers.index_vector_dim
    if along == indices.rank:
        indices = indices.reshape(*indices.dims, 1)
    shape = [more if d == along else size for d, size in enumerate(indices.dims)]
    at = np.asarray(outer).reshape([more if d == along else 1 for d in range(len(shape))])
    places = constant(np.broadcast_to(at, shape), indices.element_type)
    region = op.regions[0]

    def moved(dims: Sequence[int]) -> list[int]:
        return [d + more for d in dims]

    found: Value = ops.scatter(
        array,
        ops.concat_in_dim([places, indices], along),
        updates,
        lambda old, new: vectorize_region(region, [old, new])[0],
        indices_are_sorted=_says(op, "indices_are_sorted"),
        unique_indices=_says(op, "unique_indices"),
        update_window_dims=list(numbers.update_window_dims),
        inserted_window_dims=[*range(more), *moved(numbers.inserted_window_dims)],
        input_batching_dims=moved(numbers.input_batching_dims),
        scatter_indices_batching_dims=list(numbers.scatter_indices_batching_dims),
        scatter_dims_to_operand_dims=[*range(more), *moved(numbers.scattered_dims_to_operand_dims)],
        index_vector_dim=along,
    )
    return found


def _changed(part: SSAValue) -> ir.Operation | None:
    """The update that makes an array of fewer dimensions, if nobody else reads it."""
    found = defining_op(part)
    while found is not None and len(list(found.results[0].uses)) == 1:
        if found.name != _RESHAPE:
            return found if found.name in (_UPDATE, "stablehlo.scatter") else None
        found = defining_op(found.operands[0])
    return None


def _is_part(x: SSAValue, array: SSAValue, outer: list[int]) -> bool:
    """Whether an array is what lies at these places of another, which may be a part itself."""
    (source, places), (other, others) = _taken(x), _taken(array)
    return source == other and places == [*others, *outer]


def _taken(x: SSAValue) -> tuple[SSAValue, list[int]]:
    """The array that an array is a part of, and at which places of its first dimensions; itself if it is none."""
    places: list[int] = []
    while (shaped := defining_op(x, _RESHAPE)) and (part := defining_op(shaped.operands[0], "stablehlo.slice")):
        whole, size = Value(part.operands[0]), Value(x)
        more = whole.rank - size.rank
        if more < 1 or whole.dims[more:] != size.dims or Value(part.results[0]).dims != (*[1] * more, *size.dims):
            break
        places = [*integers(part, "start_indices")[:more], *places]
        x = part.operands[0]
    return x, places


def _number(start: SSAValue) -> int | None:
    found = known_array(start, KnownValues(1))
    return None if found is None else int(found.reshape(-1)[0])


def _says(op: ir.Operation, name: str) -> bool:
    return name in op.attributes and bool(ir.BoolAttr(op.attributes[name]).value)


@register
@dataclass(frozen=True)
class LegalizeNestedUpdates(PatternPass):
    """Parts that are changed and put back are changed where they are."""

    name: ClassVar[str] = "legalize-nested-updates"
    requires: ClassVar[Facts] = NORMALIZED
    patterns: ClassVar[tuple[Pattern, ...]] = in_the_array
