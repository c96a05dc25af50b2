"""``legalize-window-gathers``: gathers of elements whose indices are the same along a dimension read windows.

Before, PyTorch's ``gather`` of rows, whose index says row and column of each element::

    %i = stablehlo.concatenate %rows, %columns, dim = 2 : (…) -> tensor<900x64x2xi32>    // %columns is an iota
    %r = stablehlo.gather(%x, %i) <offset_dims = [], collapsed_slice_dims = [0, 1], …, slice_sizes = [1, 1]>

After, with ``%row : tensor<900x1xi32>``, because ``%rows`` is the same along a row::

    %r = stablehlo.gather(%x, %row) <offset_dims = [1], collapsed_slice_dims = [0], …, slice_sizes = [1, 64]>

A dimension of the indices is one of the window if nothing of them varies along it but a component that is 0, 1, 2, …
there, within the array; or if it is a batch of both arrays, of which this component is left out, as in JAX's
``take_along_axis``. The index of a window is computed once, of arrays without this dimension, and is the same for a
vector of elements. So it is for the last dimensions of the indices alone: loops over a window that others are inside of
would find each index again. Source: StableHLO spec "gather".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import SSAValue, ir, stablehlo
from hloforge.dialect.operations import defining_op, integer, integers
from hloforge.dialect.traits import ELEMENTWISE
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.counting import counts, same_dimension, varies
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.framework.facts import NORMALIZED, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

# Operations that are made narrower, one behind the other; what is behind them is sliced.
_DEPTH = 24


@dataclass
class _Windows:
    """What the indices of a gather leave to windows.

    Attributes:
        parts: the components of the index vectors.
        window: the dimension of the operand that each of the result's is, if it is one of the window.
        dims: the dimensions of the indices that are the window's from now on.
        counted: the components that count.
        batches: the dimensions of the operand that are batches no more.
    """

    parts: tuple[SSAValue, ...]
    window: dict[int, int]
    dims: dict[int, int] = field(default_factory=dict)
    counted: set[int] = field(default_factory=set)
    batches: set[int] = field(default_factory=set)

    def takes(self, dim: int, place: int, own: int, size: int) -> bool:
        """Make a dimension of the indices one of the window, if the result's follow each other as the operand's do."""
        window = {**self.window, place: own}
        order = [window[at] for at in sorted(window)]
        if order != sorted(order):
            return False
        self.window, self.dims[dim] = window, size
        return True


@pattern("stablehlo.gather")
def of_windows(op: ir.Operation) -> Replacement:
    """Make a window of what the indices do not vary along."""
    if not is_static(op):
        return NoMatch("of unknown size")
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    operand, indices, sizes = Value(op.operands[0]), Value(op.operands[1]), integers(op, "slice_sizes")
    found = _found(operand, indices, numbers, sizes)
    if not found.dims:
        return NoMatch("indices vary along each of their dimensions")
    for dim, place in _result_dims(indices, numbers).items():
        if dim in found.dims:
            sizes[found.window[place]] = found.dims[dim]
    kept = [number for number in range(len(found.parts)) if number not in found.counted]
    outer = [dim for dim in range(indices.rank) if dim != numbers.index_vector_dim and dim not in found.dims]
    shape = [indices.dims[dim] for dim in outer]
    vectors = [
        ops.reshape(_narrowed(found.parts[number], frozenset(found.dims), _DEPTH), [*shape, 1]) for number in kept
    ]
    batches = [
        (own, dim)
        for own, dim in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
        if own not in found.batches
    ]
    return ops.gather(
        operand,
        vectors[0] if len(vectors) == 1 else ops.concat_in_dim(vectors, len(shape)),
        slice_sizes=sizes,
        offset_dims=sorted(found.window),
        collapsed_slice_dims=[
            dim for dim in range(operand.rank) if dim not in found.window.values() and dim not in dict(batches)
        ],
        operand_batching_dims=[own for own, _ in batches],
        start_indices_batching_dims=[outer.index(dim) for _, dim in batches],
        start_index_map=[numbers.start_index_map[number] for number in kept],
        index_vector_dim=len(shape),
    )


def _found(operand: Value, indices: Value, numbers: stablehlo.GatherDimensionNumbers, sizes: Sequence[int]) -> _Windows:
    """The dimensions of the indices that become the window's."""
    left_out = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    own_dims = [dim for dim in range(operand.rank) if dim not in left_out]
    found = _Windows(_parts(indices, numbers), dict(zip(numbers.offset_dims, own_dims, strict=True)))
    places = _result_dims(indices, numbers)
    for dim in sorted(places, reverse=True):
        if indices.dims[dim] != 1 and not _takes(found, dim, places[dim], operand, numbers, sizes):
            break
    return found


def _takes(
    found: _Windows,
    dim: int,
    place: int,
    operand: Value,
    numbers: stablehlo.GatherDimensionNumbers,
    sizes: Sequence[int],
) -> bool:
    """Make a dimension of the indices one of the window, if it may be."""
    if not found.parts:
        return False
    size = Value(found.parts[0]).dims[dim]
    varying = [number for number, part in enumerate(found.parts) if varies(part, dim)]
    if dim in numbers.start_indices_batching_dims:
        own = numbers.operand_batching_dims[numbers.start_indices_batching_dims.index(dim)]
        if varying or not found.takes(dim, place, own, size):
            return False
        found.batches.add(own)
        return True
    if len(varying) != 1 or len(found.counted) + 1 == len(found.parts):
        return False
    own = numbers.start_index_map[varying[0]]
    fits = size <= operand.dims[own] and sizes[own] == 1 and own in numbers.collapsed_slice_dims
    if not fits or not counts(found.parts[varying[0]], dim) or not found.takes(dim, place, own, size):
        return False
    found.counted.add(varying[0])
    return True


def _result_dims(indices: Value, numbers: stablehlo.GatherDimensionNumbers) -> dict[int, int]:
    """The dimension of the result that each of the indices is, but that of their vectors."""
    rank = indices.rank - (numbers.index_vector_dim < indices.rank) + len(numbers.offset_dims)
    places = [place for place in range(rank) if place not in numbers.offset_dims]
    outer = [dim for dim in range(indices.rank) if dim != numbers.index_vector_dim]
    return dict(zip(outer, places, strict=True))


def _parts(indices: Value, numbers: stablehlo.GatherDimensionNumbers) -> tuple[SSAValue, ...]:
    """The components of index vectors, one each; none where a part has several."""
    along, count = numbers.index_vector_dim, len(numbers.start_index_map)
    if count == 1:
        return (indices.ir,)
    made = defining_op(indices.ir, "stablehlo.concatenate")
    if made is None or integer(made, "dimension") != along or len(made.operands) != count:
        return ()
    return tuple(made.operands)


def _narrowed(value: SSAValue, dims: frozenset[int], depth: int) -> Value:
    """An array that is the same along some dimensions, of size 1 there; by narrower operations where it is known how.

    An array and its slice would be two readers of what is behind them, and so have memory of the full size.
    """
    array, op = Value(value), defining_op(value)
    dims = frozenset(dim for dim in dims if array.dims[dim] != 1)
    if not dims:
        return array
    shape = [1 if dim in dims else size for dim, size in enumerate(array.dims)]
    if op is None or not depth:
        return _sliced(array, shape)
    if op.name == "stablehlo.broadcast_in_dim":
        places = integers(op, "broadcast_dimensions")
        source = frozenset(number for number, place in enumerate(places) if place in dims)
        return ops.broadcast_in_dim(_narrowed(op.operands[0], source, depth - 1), shape, places)
    if op.name == "stablehlo.reshape":
        source = frozenset(same_dimension(array.dims, Value(op.operands[0]).dims, dim) for dim in dims)
        if -1 in source:
            return _sliced(array, shape)
        return ops.reshape(_narrowed(op.operands[0], source, depth - 1), shape)
    if op.name not in ELEMENTWISE or any(Value(one).dims != array.dims for one in op.operands):
        return _sliced(array, shape)
    operands = [_narrowed(one, dims, depth - 1).ir for one in op.operands]
    made = ir.RankedTensorType.get(shape, ir.RankedTensorType(value.type).element_type)
    attributes = {name: op.attributes[name] for name in op.attributes}
    return Value(ir.Operation.create(op.name, results=[made], operands=operands, attributes=attributes).result)


def _sliced(array: Value, shape: list[int]) -> Value:
    return ops.slice(array, [0] * array.rank, shape, [1] * array.rank)


@register
@dataclass(frozen=True)
class LegalizeWindowGathers(PatternPass):
    """Gathers of elements that lie next to each other read windows."""

    name: ClassVar[str] = "legalize-window-gathers"
    requires: ClassVar[Facts] = NORMALIZED
    patterns: ClassVar[tuple[Pattern, ...]] = of_windows
