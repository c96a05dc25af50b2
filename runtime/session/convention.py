"""XLA's calling convention over plain numpy arrays: nested arguments to checked leaves, leaves to nested results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from hloforge.dialect.abi import crosses
from hloforge.dialect.errors import ArgumentError
from hloforge.dialect.program import Parameter, Signature
from hloforge.dialect.shapes import Shape


def flatten_arguments(signature: Signature, arguments: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """The leaves of a call's arguments as arrays of exactly the declared element types and sizes; tokens left out.

    Args:
        arguments: one a parameter; a tuple for a parameter of tuple shape.

    Raises:
        ArgumentError: count, nesting, element type or sizes do not fit; names the argument.
    """
    if len(arguments) != len(signature.parameters):
        raise wrong_count(signature, len(arguments))
    values = leaf_values(signature, arguments)
    leaves = [leaf for leaf in signature.flat_parameters if crosses(leaf.shape)]
    return [checked(leaf, value) for leaf, value in zip(leaves, values, strict=True)]


def wrong_count(signature: Signature, got: int) -> ArgumentError:
    """The error for a call with ``got`` arguments."""
    expected = len(signature.parameters)
    noun = "argument" if expected == 1 else "arguments"
    return ArgumentError(f"the program takes {expected} {noun}, got {got}", hint=f"signature: {signature}")


def leaf_values(signature: Signature, arguments: Sequence[Any]) -> list[Any]:
    """The leaves of a call's arguments in the order of the signature's, unchecked; tokens carry nothing.

    Raises:
        ArgumentError: an argument is nested in another way than its parameter.
    """
    pairs = zip(signature.parameters, arguments, strict=True)
    return [value for parameter, argument in pairs for value in _members(parameter, argument)]


# How a value is nested: a tuple of such for a tuple, None for an array.
Nesting: TypeAlias = "tuple[Nesting, ...] | None"


def nesting(shape: Shape) -> Nesting:
    """How values of a shape are nested."""
    return None if shape.elements is None else tuple(map(nesting, shape.elements))


def spread(values: Sequence[Any], forms: Sequence[Nesting]) -> list[Any] | None:
    """The leaves of values, unchecked; None unless these are tuples and lists as ``forms`` says."""
    leaves: list[Any] = []
    return leaves if _spread(values, forms, leaves) else None


def _spread(values: Sequence[Any], forms: Sequence[Nesting], leaves: list[Any]) -> bool:
    if len(values) != len(forms):
        return False
    for value, form in zip(values, forms, strict=True):
        if form is None:
            leaves.append(value)
        elif not isinstance(value, tuple | list) or not _spread(value, form, leaves):
            return False
    return True


def result_leaves(shape: Shape, result: Any) -> list[Any]:
    """The arrays of a nested result in order; what ``nest_results`` nests."""
    return list(_members(Parameter("result", shape), result))


def _members(parameter: Parameter, value: Any) -> Iterator[Any]:
    shape = parameter.shape
    if shape.elements is None:
        if crosses(shape):
            yield value
        return
    if not isinstance(value, tuple | list) or len(value) != len(shape.elements):
        got = f"{len(value)} elements" if isinstance(value, tuple | list) else type(value).__name__
        wanted = f"a tuple of {len(shape.elements)} for {shape}"
        raise ArgumentError(f"argument {parameter.name!r}: expected {wanted}, got {got}")
    for number, (member, element) in enumerate(zip(shape.elements, value, strict=True)):
        yield from _members(Parameter(f"{parameter.name}{{{number}}}", member), element)


def checked(parameter: Parameter, value: Any) -> np.ndarray[Any, Any]:
    """``value`` as an array, if it has the element type and sizes of an array parameter. Raises ArgumentError."""
    shape = parameter.shape
    if shape.element is None:
        raise ValueError(f"{shape} is not an array")
    if isinstance(value, bool | int | float | complex) and not shape.dimensions:
        value = np.asarray(value).astype(shape.element.dtype)
    array = np.asarray(value)
    if array.dtype != shape.element.dtype or not _fits(array.shape, shape):
        raise ArgumentError(
            f"argument {parameter.name!r}: expected {shape}, got {array.dtype} array of shape {array.shape}"
        )
    return array


def _fits(sizes: tuple[int, ...], shape: Shape) -> bool:
    if len(sizes) != shape.rank:
        return False
    bounds = zip(sizes, shape.dimensions, shape.dynamic, strict=True)
    return all(size == bound or (dynamic and (bound < 0 or size <= bound)) for size, bound, dynamic in bounds)


def nest_results(shape: Shape, leaves: Iterable[Any]) -> Any:
    """Flat results in the tuples of the result shape; a token is None."""
    if shape.elements is not None and all(member.is_array for member in shape.elements):
        return tuple(leaves)
    return _nest(shape, iter(leaves))


def _nest(shape: Shape, leaves: Iterator[Any]) -> Any:
    if shape.elements is None:
        return next(leaves) if crosses(shape) else None
    return tuple(_nest(member, leaves) for member in shape.elements)


def disjoint(arrays: list[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """A copy of each result that shares its memory with another: a program may return a value twice."""
    starts = [array.__array_interface__["data"][0] for array in arrays]
    end = 0
    for number in sorted(range(len(arrays)), key=starts.__getitem__):
        array = arrays[number]
        if not array.nbytes:
            continue
        if starts[number] < end:
            arrays[number] = array.copy(order="K")
        end = max(end, starts[number] + array.nbytes)
    return arrays


def detach(array: np.ndarray[Any, Any], foreign: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """A copy if the result lies in an argument's memory: a program may return its argument as it came."""
    return array.copy(order="K") if any(np.may_share_memory(array, owner) for owner in foreign) else array
