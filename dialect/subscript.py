"""numpy's basic indexing of Values: ``x[1:3, ..., 0]``.

What it becomes: XLA's Slice, Rev for negative steps, DynamicSlice for positions known at run time, and Reshape.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, TypeAlias

from hloforge.dialect.errors import OperationError
from hloforge.dialect.op import user_location
from hloforge.dialect.ops.shape import reshape, rev
from hloforge.dialect.ops.slicing import dynamic_slice, slice as static_slice
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Index, Value

# What is taken of one dimension: positions known now, or one known at run time.
_Taken: TypeAlias = range | Value


def subscript(operand: Value, key: Sequence[Index]) -> Value:
    """The part of ``operand`` that ``key`` selects.

    Args:
        operand: an array.
        key: for each dimension an integer or a scalar Value, which drop it, or a slice, which may have a negative step;
            ``...`` for all dimensions that are left out, which else follow; None for a new dimension of size 1.
            Negative integers count from the end. A Value is clamped to ``[0, size - 1]``, as DynamicSlice does.

    Raises:
        OperationError: an index is out of range or none of these, there are more of them than dimensions, or one needs
            the size of a dynamic dimension.
    """
    if min(operand.dims, default=0) < 0:
        raise _error(f"{operand.shape} has dimensions of unknown size")
    entries = _entries(key, operand.shape)
    places = [entry for entry in entries if entry is not None]
    taken = [_taken(entry, operand.shape, d) for d, entry in enumerate(places)]
    part = _at_run_time(_static_part(operand, taken), taken)
    left = iter(part.dims)
    sizes = []
    for entry in entries:
        size = 1 if entry is None else next(left)
        if entry is None or isinstance(entry, slice):
            sizes.append(size)
    return reshape(part, sizes)


def _entries(key: Sequence[Index], shape: Shape) -> list[Any]:
    """One entry a dimension, and the Nones between them."""
    ellipses = [place for place, entry in enumerate(key) if entry is ...]
    missing = shape.rank - sum(entry is not None and entry is not ... for entry in key)
    if missing < 0:
        raise _error(f"{shape.rank - missing} indices are too many for {shape}")
    if len(ellipses) > 1:
        raise _error("an index can have one ... only")
    place = ellipses[0] if ellipses else len(key)
    return [*key[:place], *[slice(None)] * missing, *key[place + 1 :]]


def _taken(entry: Any, shape: Shape, number: int) -> _Taken:
    if isinstance(entry, Value):
        return entry
    if isinstance(entry, slice):
        return _range(entry, shape, number)
    size = shape.dimensions[number]
    place = _integer(entry, number)
    if not -size <= place < size:
        raise _error(f"index {place} is out of range for dimension {number} of {shape}")
    if place < 0 and shape.dynamic[number]:
        raise _error(f"index {place} counts from the end of dimension {number} of {shape}, which is dynamic")
    return range(place % size, place % size + 1)


def _integer(entry: Any, number: int) -> int:
    try:
        if not isinstance(entry, bool):
            return index(entry)
    except TypeError:
        pass
    raise _error(
        f"{entry!r} is no index of dimension {number}: it takes integers, slices, ..., None and scalar Values",
        hint="gather takes elements at an array of indices",
    )


def _range(entry: Any, shape: Shape, number: int) -> range:
    size = shape.dimensions[number]
    if entry == slice(None):
        return range(size)
    if any(isinstance(bound, Value) for bound in (entry.start, entry.stop, entry.step)):
        raise _error("a slice's bounds must be numbers", hint="dynamic_slice takes starts known at run time")
    if shape.dynamic[number]:
        raise _error(f"a slice of dimension {number} of {shape} needs its size, which is dynamic")
    try:
        return range(*entry.indices(size))
    except (TypeError, ValueError) as error:
        raise _error(f"{entry} is no slice: {error}") from None


def _static_part(operand: Value, taken: Sequence[_Taken]) -> Value:
    starts, limits, strides, turned = [], [], [], []
    for number, entry in enumerate(taken):
        places = range(operand.dims[number]) if isinstance(entry, Value) else entry
        if places.step < 0:
            places = places[::-1]
            turned.append(number)
        starts.append(places.start if places else 0)
        limits.append(places[-1] + 1 if places else 0)
        strides.append(places.step)
    return rev(static_slice(operand, starts, limits, strides), turned)


def _at_run_time(part: Value, taken: Sequence[_Taken]) -> Value:
    if not any(isinstance(place, Value) for place in taken):
        return part
    if not part.shape.is_static:
        raise _error(f"an index known at run time needs the sizes of {part.shape}, which are dynamic")
    starts = [place if isinstance(place, Value) else 0 for place in taken]
    sizes = [1 if isinstance(place, Value) else size for place, size in zip(taken, part.dims, strict=True)]
    return dynamic_slice(part, starts, sizes)


def _error(message: str, hint: str = "") -> OperationError:
    return OperationError(f"indexing: {message}", location=user_location(), hint=hint)
