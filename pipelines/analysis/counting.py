"""Along which dimensions an array of integers varies, and where it counts: 0, 1, 2, …"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from hloforge.dialect.dense_values import array_of
from hloforge.dialect.mlir import SSAValue, ir, stablehlo
from hloforge.dialect.operations import defining_op, integer, integers
from hloforge.dialect.traits import ELEMENTWISE
from hloforge.dialect.values import Value

# Operations that are looked through, one behind the other.
_DEPTH = 48
# What is known of arrays that several operations read, by array (and dimension).
_Lines: TypeAlias = "dict[SSAValue, tuple[int | None, _Array] | None]"
_Varying: TypeAlias = "dict[tuple[SSAValue, int], bool]"
_Array = np.ndarray[Any, Any]
_COMPARED: dict[str, Callable[[_Array, _Array], _Array]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}
_COMPUTED: dict[str, Callable[..., _Array]] = {
    "stablehlo.add": np.add,
    "stablehlo.subtract": np.subtract,
    "stablehlo.multiply": np.multiply,
    "stablehlo.maximum": np.maximum,
    "stablehlo.minimum": np.minimum,
    "stablehlo.and": np.bitwise_and,
    "stablehlo.or": np.bitwise_or,
    "stablehlo.select": np.where,
}


def counts(value: SSAValue, dim: int) -> bool:
    """Whether an array is 0, 1, 2, … along a dimension, the same at all places of the others."""
    found = _line(value, _DEPTH, {})
    size = Value(value).dims[dim]
    if found is None:
        return False
    along, numbers = found
    if along is None:
        return size == 1 and int(numbers[0]) == 0
    return along == dim and np.array_equal(numbers, np.arange(size))


def varies(value: SSAValue, dim: int) -> bool:
    """Whether elements may differ along a dimension: false if it is proven that they do not."""
    return _varies(value, dim, _DEPTH, {})


def _varies(value: SSAValue, dim: int, depth: int, known: _Varying) -> bool:
    if (value, dim) not in known:
        known[value, dim] = _finds_varying(value, dim, depth, known)
    return known[value, dim]


def _finds_varying(value: SSAValue, dim: int, depth: int, known: _Varying) -> bool:
    array = Value(value)
    if array.rank == 0 or array.dims[dim] == 1:
        return False
    op = defining_op(value)
    if op is None or not depth:
        return True
    if op.name == "stablehlo.constant":
        return not ir.DenseElementsAttr(op.attributes["value"]).is_splat
    if op.name == "stablehlo.iota":
        return integer(op, "iota_dimension") == dim
    if op.name in ELEMENTWISE:
        return any(_varies(operand, dim, depth - 1, known) for operand in op.operands if Value(operand).rank)
    if op.name == "stablehlo.concatenate":
        return integer(op, "dimension") == dim or any(_varies(part, dim, depth - 1, known) for part in op.operands)
    if op.name == "stablehlo.slice":
        return _varies(op.operands[0], dim, depth - 1, known)
    if op.name not in _MOVES:
        return True
    source = _MOVES[op.name](op, dim)
    return source is not None and (source < 0 or _varies(op.operands[0], source, depth - 1, known))


def _broadcast(op: ir.Operation, dim: int) -> int | None:
    dims = integers(op, "broadcast_dimensions")
    if dim not in dims:
        return None
    source = dims.index(dim)
    return None if Value(op.operands[0]).dims[source] == 1 else source


def _reshaped(op: ir.Operation, dim: int) -> int:
    """The dimension before a reshape, of the same size and distance; -1 where there is none."""
    return same_dimension(Value(op.results[0]).dims, Value(op.operands[0]).dims, dim)


def _transposed(op: ir.Operation, dim: int) -> int:
    return integers(op, "permutation")[dim]


# The operand's dimension that one of the result is: None for none, along which nothing varies, -1 for a mixed one.
_MOVES: dict[str, Callable[[ir.Operation, int], int | None]] = {
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.reshape": _reshaped,
    "stablehlo.transpose": _transposed,
}


def same_dimension(shape: Sequence[int], other: Sequence[int], dim: int) -> int:
    """The dimension of another shape of as many elements that is one of this; -1 where there is none."""
    before = int(np.prod(shape[:dim]))
    for place, size in enumerate(other):
        if size == shape[dim] and int(np.prod(other[:place])) == before:
            return place
    return -1


def _line(value: SSAValue, depth: int, known: _Lines) -> tuple[int | None, _Array] | None:
    """The known numbers of an array that varies along one dimension at most, and this dimension; None if unknown."""
    if value not in known:
        known[value] = _find_line(value, depth, known)
    return known[value]


def _find_line(value: SSAValue, depth: int, known: _Lines) -> tuple[int | None, _Array] | None:
    op, array = defining_op(value), Value(value)
    if op is None or not depth or not array.element_type.is_integer | (array.element_type.name == "pred"):
        return None
    if op.name == "stablehlo.constant":
        return _stated(op, array)
    if op.name == "stablehlo.iota":
        dim = integer(op, "iota_dimension")
        return dim, np.arange(array.dims[dim]).astype(array.element_type.dtype)
    if op.name in ("stablehlo.broadcast_in_dim", "stablehlo.reshape"):
        found = _line(op.operands[0], depth - 1, known)
        return found and _moved(op, *found)
    if op.name == "stablehlo.convert" or op.name == "stablehlo.compare" or op.name in _COMPUTED:
        return _computed(op, depth - 1, known)
    return None


def _stated(op: ir.Operation, array: Value) -> tuple[int | None, _Array] | None:
    """A line of a constant: of one number, or of one dimension."""
    wide = [dim for dim, size in enumerate(array.dims) if size != 1]
    is_splat = ir.DenseElementsAttr(op.attributes["value"]).is_splat
    if not is_splat and len(wide) > 1:
        return None
    numbers = array_of(op.attributes["value"]).reshape(-1)
    return (None, numbers[:1]) if is_splat else (wide[0], numbers)


def _moved(op: ir.Operation, along: int | None, numbers: _Array) -> tuple[int | None, _Array] | None:
    """A line behind a view."""
    dims, before = Value(op.results[0]).dims, Value(op.operands[0]).dims
    if along is None or before[along] == 1:
        return None, numbers[:1]
    if op.name == "stablehlo.broadcast_in_dim":
        return integers(op, "broadcast_dimensions")[along], numbers
    place = same_dimension(before, dims, along)
    return None if place < 0 else (place, numbers)


def _computed(op: ir.Operation, depth: int, known: _Lines) -> tuple[int | None, _Array] | None:
    """A line of an elementwise operation."""
    lines = []
    for operand in op.operands:
        found = _line(operand, depth, known)
        if found is None:
            return None
        lines.append(found)
    along = {dim for dim, _ in lines if dim is not None}
    if len(along) > 1:
        return None
    numbers = [array for _, array in lines]
    dtype = Value(op.results[0]).element_type.dtype
    with np.errstate(all="ignore"):
        if op.name == "stablehlo.convert":
            made = numbers[0].astype(dtype)
        elif op.name == "stablehlo.compare":
            direction = stablehlo.ComparisonDirectionAttr(op.attributes["comparison_direction"]).value
            made = _COMPARED[direction](numbers[0], numbers[1])
        else:
            made = _COMPUTED[op.name](*numbers).astype(dtype)
    return next(iter(along), None), made
