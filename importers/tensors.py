"""What flows along the edges of a graph while it is imported, and numpy's conventions on it.

A tensor is known (a numpy array: an initializer, a shape, what was computed of them) or a ``Value`` of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.element_types import ElementType, Kind, element_type
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value, leaves

Array: TypeAlias = np.ndarray[Any, Any]
Tensor: TypeAlias = Value | Array


def lift(tensor: Tensor) -> Value:
    """A tensor as a Value: a known one becomes a constant. Raises UnsupportedError for strings."""
    if isinstance(tensor, Value):
        return tensor
    if tensor.dtype.kind in "OSU":
        raise UnsupportedError("strings are no arrays of XLA", hint="handle text outside of the program")
    return constant(tensor)


def dims_of(tensor: Tensor) -> tuple[int, ...]:
    """The sizes of a tensor."""
    return tensor.dims if isinstance(tensor, Value) else tuple(tensor.shape)


def row_of(tensor: Tensor) -> ElementType:
    """The element type of a tensor."""
    return tensor.element_type if isinstance(tensor, Value) else element_type(tensor.dtype)


def axis_of(axis: int, rank: int) -> int:
    """An axis, counted from the end if negative, as a number from 0."""
    return axis + rank if axis < 0 else axis


def axes_of(axes: Sequence[int], rank: int) -> list[int]:
    """Axes as ascending numbers from 0."""
    return sorted(axis_of(int(axis), rank) for axis in axes)


def without(rank: int, axes: Sequence[int]) -> list[int]:
    """The axes that are not among ``axes``."""
    return [axis for axis in range(rank) if axis not in axes]


def broadcast_to(value: Value, dims: Sequence[int]) -> Value:
    """numpy's ``broadcast_to``: sizes of 1 widen, missing dimensions are in front."""
    dims = tuple(dims)
    if value.dims == dims:
        return value
    offset = len(dims) - value.rank
    kept = [d for d in range(value.rank) if value.dims[d] != 1 or dims[offset + d] == 1]
    narrow = ops.reshape(value, [value.dims[d] for d in kept]) if len(kept) < value.rank else value
    return ops.broadcast_in_dim(narrow, dims, [offset + d for d in kept])


def together(*tensors: Tensor) -> list[Value]:
    """Tensors in their common shape, by numpy's rules. Raises ValueError if they have none."""
    dims = np.broadcast_shapes(*map(dims_of, tensors))
    return [broadcast_to(lift(tensor), dims) for tensor in tensors]


def fill(dims: Sequence[int], number: Any, dtype: Any) -> Value:
    """An array of one number."""
    return constant(np.broadcast_to(np.asarray(number).astype(element_type(dtype).dtype), tuple(dims)))


def cast(value: Value, dtype: Any) -> Value:
    """The numbers in another element type; nothing if it is theirs already."""
    row = element_type(dtype)
    return value if value.element_type == row else ops.convert_element_type(value, row)


def expand(value: Value, axes: Sequence[int]) -> Value:
    """New dimensions of size 1, at these positions of the result."""
    rank = value.rank + len(axes)
    places = {axis_of(int(axis), rank) for axis in axes}
    rest = iter(value.dims)
    return ops.reshape(value, [1 if d in places else next(rest) for d in range(rank)])


def along(vector: Value, axis: int, rank: int) -> Value:
    """A vector as an array of ``rank`` dimensions, of size 1 in all but ``axis``."""
    return ops.reshape(vector, [vector.dims[0] if d == axis else 1 for d in range(rank)])


def numbers(dims: Sequence[int], axis: int, dtype: Any = "s32") -> Value:
    """In each element its position along an axis."""
    return ops.iota(dtype, dims, axis)


def reduced(
    value: Value, start: Any, computation: Callable[..., Any], axes: Sequence[int], keep: bool = False
) -> Value:
    """Reduce along axes, which stay as size 1 if ``keep``."""
    result = ops.reduce(value, start, computation, list(axes))
    return expand(result, axes) if keep else result


def total(value: Value, axes: Sequence[int], keep: bool = False) -> Value:
    """Sums along axes; floats below 32 bits are summed in f32."""
    row = value.element_type
    wide = cast(value, "f32") if row.is_float and row.bits < 32 else value
    zero: Any = 0.0 if row.is_float else 0
    return cast(reduced(wide, zero, ops.add, axes, keep), row)


def lowest(row: ElementType) -> Any:
    """The least number of an element type: what a maximum begins with."""
    if row.is_float:
        return float("-inf") if np.isinf(np.asarray(-np.inf).astype(row.dtype)) else _finite(row, least=True)
    if row.kind is Kind.PRED:
        return False
    return -(1 << row.bits - 1) if row.kind is Kind.SIGNED else 0


def highest(row: ElementType) -> Any:
    """The greatest number of an element type: what a minimum begins with."""
    if row.is_float:
        return float("inf") if np.isinf(np.asarray(np.inf).astype(row.dtype)) else _finite(row, least=False)
    if row.kind is Kind.PRED:
        return True
    return (1 << row.bits - (row.kind is Kind.SIGNED)) - 1


def _finite(row: ElementType, *, least: bool) -> float:
    import ml_dtypes

    limits = ml_dtypes.finfo(row.dtype)
    return float(limits.min if least else limits.max)


def greatest(value: Value, axes: Sequence[int], keep: bool = False) -> Value:
    """Maxima along axes."""
    computation = ops.or_ if value.element_type.kind is Kind.PRED else ops.max
    return reduced(value, lowest(value.element_type), computation, axes, keep)


def least(value: Value, axes: Sequence[int], keep: bool = False) -> Value:
    """Minima along axes."""
    computation = ops.and_ if value.element_type.kind is Kind.PRED else ops.min
    return reduced(value, highest(value.element_type), computation, axes, keep)


def mean(value: Value, axes: Sequence[int], keep: bool = False) -> Value:
    """Means along axes."""
    count = int(np.prod([value.dims[axis] for axis in axes], dtype=np.int64))
    return total(value, axes, keep) / full(total(value, axes, keep), count)


def matmul(lhs: Value, rhs: Value, preferred: Any = None) -> Value:
    """numpy's ``matmul``: vectors, matrices, and stacks of matrices that are broadcast."""
    left = expand(lhs, [0]) if lhs.rank == 1 else lhs
    right = expand(rhs, [1]) if rhs.rank == 1 else rhs
    stack = np.broadcast_shapes(left.dims[:-2], right.dims[:-2])
    depth = len(stack)
    if right.rank == 2:
        # The rows of all the stack by one matrix: one product.
        product = ops.dot_general(left, right, ops.DotDimensionNumbers([left.rank - 1], [0]), "HIGHEST", preferred)
    else:
        left = broadcast_to(left, [*stack, *left.dims[-2:]])
        right = broadcast_to(right, [*stack, *right.dims[-2:]])
        batch = list(range(depth))
        places = ops.DotDimensionNumbers([depth + 1], [depth], batch, batch)
        product = ops.dot_general(left, right, places, "HIGHEST", preferred)
    gone = [*([depth] if lhs.rank == 1 else []), *([depth + 1] if rhs.rank == 1 else [])]
    return ops.reshape(product, [product.dims[d] for d in without(product.rank, gone)]) if gone else product


def take(operand: Value, places: Value, axis: int) -> Value:
    """numpy's ``take``: ``places`` of any shape, negative ones from the end, replace an axis."""
    size = operand.dims[axis]
    flat = ops.reshape(wrapped(places, size), [*places.dims, 1])
    window = [1 if d == axis else extent for d, extent in enumerate(operand.dims)]
    offsets = [d if d < axis else d + places.rank - 1 for d in range(operand.rank) if d != axis]
    result = ops.gather(operand, flat, ops.GatherDimensionNumbers(offsets, [axis], [axis], places.rank), window)
    return result


def wrapped(places: Value, size: int) -> Value:
    """Indices with negative ones counted from the end."""
    row = places.element_type
    if row.kind is Kind.UNSIGNED:
        return places
    if row.bits < 32:
        places = cast(places, "s32")
    return ops.select(places < 0, places + size, places)


def pair(result: Value) -> tuple[Value, Value]:
    """The two arrays of an operation of two results."""
    first, second = leaves(result)
    return first, second


def pieces(x: Value, axis: int, sizes: list[int]) -> list[Value]:
    """Neighbouring parts of these sizes along an axis."""
    ends = np.cumsum(sizes)
    return [window(x, axis, int(end) - extent, int(end)) for extent, end in zip(sizes, ends, strict=True)]


def window(x: Value, axis: int, start: int, stop: int, step: int = 1) -> Value:
    """A slice along one axis."""
    starts, stops, steps = [0] * x.rank, list(x.dims), [1] * x.rank
    starts[axis], stops[axis], steps[axis] = start, stop, step
    return ops.slice(x, starts, stops, steps)


def put(buffer: Value, element: Value, place: Value) -> Value:
    """The buffer with an element at a position of its first dimension."""
    zero = fill([], 0, place.element_type)
    return ops.dynamic_update_slice(buffer, expand(element, [0]), [place, *[zero] * element.rank])


def element_at(x: Value, axis: int, place: Value) -> Value:
    """The slice at a position along an axis, without that axis."""
    zero = fill([], 0, place.element_type)
    starts = [place if d == axis else zero for d in range(x.rank)]
    part = ops.dynamic_slice(x, starts, [1 if d == axis else extent for d, extent in enumerate(x.dims)])
    return ops.reshape(part, [extent for d, extent in enumerate(x.dims) if d != axis])
