"""Constants, and scalars broadcast to the shape of another value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hloforge.dialect.element_types import ElementType, Kind, element_type, mlir_type
from hloforge.dialect.emission import emit, i64, i64s
from hloforge.dialect.errors import OperationError
from hloforge.dialect.mlir import dense_elements, ir
from hloforge.dialect.operations import defining_op, is_made_by
from hloforge.dialect.shapes import Shape
from hloforge.dialect.traits import shape_operand
from hloforge.dialect.values import Operand, Value

# Has the sizes of its result as an operand.
_SPREAD = "stablehlo.dynamic_broadcast_in_dim"
_PYTHON_TYPES = (bool, int, float, complex)


def constant(value: Any, dtype: Any = None) -> Value:
    """``stablehlo.constant`` from anything numpy takes; ``dtype`` names the element type (default: numpy's)."""
    array = np.asarray(value) if dtype is None else np.asarray(value).astype(element_type(dtype).dtype)
    row = element_type(array.dtype if dtype is None else dtype)
    return emit("stablehlo.constant", [], Shape.array(row, *array.shape), value=dense(array, row))


def dense(array: np.ndarray[Any, Any], row: ElementType) -> Any:
    """A DenseElementsAttr of any XLA element type, sub-byte types and booleans included."""
    shape, type_ = list(array.shape), mlir_type(row)
    if not array.size:
        return dense_elements(np.zeros(0, np.uint8), type_, shape)
    if not any(array.strides):
        # One number that numpy spreads: it need not lie in memory as often as it occurs in the array.
        array = array[(0,) * array.ndim]
    storage = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1)
    # Compared as bytes, so that -0 and NaN keep their bits; one element's bytes make a splat.
    splat = (storage == storage[0]).all()
    return dense_elements(storage[0] if splat else storage, type_, shape)


def operand_like(operand: Operand, like: Value) -> Value:
    """``operand`` itself if it is a Value; a Python number in the shape and type of ``like``; numpy's as they are.

    Raises:
        OperationError: the number does not fit the element type of ``like``.
    """
    if isinstance(operand, Value):
        return operand
    if isinstance(operand, np.ndarray):
        return constant(operand)
    if isinstance(operand, np.generic) and element_type(operand.dtype) != like.element_type:
        raise OperationError(f"a {operand.dtype} scalar meets an array of {like.element_type}; convert one of them")
    return full(like, operand)


def scalar_operand(operand: Operand, row: ElementType) -> Value:
    """``operand`` itself if it is a Value; a number as a scalar of the element type.

    Raises:
        OperationError: the number does not fit the element type.
    """
    return operand if isinstance(operand, Value) else constant(scalar_of(operand, row), row)


def operand_pair(lhs: Operand, rhs: Operand) -> tuple[Value, Value]:
    """Two operands as Values, of which at most one may be a number."""
    if isinstance(lhs, Value):
        return lhs, operand_like(rhs, lhs)
    if isinstance(rhs, Value):
        return operand_like(lhs, rhs), rhs
    raise OperationError("one operand must be a Value", hint="make a constant of the other")


def scalar_of(number: Any, row: ElementType) -> Any:
    """A Python or numpy number as numpy's scalar of an element type.

    Raises:
        OperationError: it is no number, or the type cannot hold it: a fraction or an imaginary part would be lost, or
            it is out of range.
    """
    if not isinstance(number, bool | int | float | complex | np.generic | np.ndarray):
        raise OperationError(f"{number!r} is no number", hint="give a Value, a numpy array or a number")
    if isinstance(number, bool | np.bool_) and row.kind is not Kind.PRED:
        number = int(number)
    lost = (
        (isinstance(number, complex | np.complexfloating) and not row.is_complex)
        or (isinstance(number, float | np.floating) and not (row.is_float or row.is_complex))
        or (row.is_integer and not _in_range(int(number), row))
    )
    if lost:
        raise OperationError(f"{number!r} does not fit {row}", hint="convert the array, or give a number of its type")
    with np.errstate(over="ignore"):
        return np.asarray(number).astype(row.dtype)


def _in_range(number: int, row: ElementType) -> bool:
    low = -(1 << row.bits - 1) if row.kind is Kind.SIGNED else 0
    return low <= number < low + (1 << row.bits)


def full(like: Value, scalar: Any, dtype: Any = None) -> Value:
    """``scalar`` in the shape of ``like``: a splat constant, or a broadcast scalar where the shape is dynamic.

    Args:
        dtype: names the element type (default: that of ``like``).
    """
    row = like.element_type if dtype is None else element_type(dtype)
    number = scalar_of(scalar, row)
    if like.shape.is_static:
        return emit(
            "stablehlo.constant",
            [],
            Shape.array(row, *like.dims),
            value=dense(np.broadcast_to(number, like.dims), row),
        )
    return spread(constant(number, row), like)


def spread(value: Value, like: Value, dimensions: Sequence[int] = ()) -> Value:
    """A scalar, or an array of which ``dimensions`` tells where its own are, in the shape of ``like``, whose dynamic
    sizes are read at run time."""
    shape = Shape(value.element_type, like.shape.dimensions, like.shape.dynamic)
    mapped = i64s(dimensions)
    if shape.is_static:
        return emit("stablehlo.broadcast_in_dim", [value], shape, broadcast_dimensions=mapped)
    if any(size < 0 for size in shape.dimensions):
        return emit(_SPREAD, [value, sizes_of(like)], shape, broadcast_dimensions=mapped)
    return _spread_to_bound(value, like, dimensions)


def _spread_to_bound(value: Value, like: Value, dimensions: Sequence[int]) -> Value:
    """XLA's form: an array of the bounds, of which a part is then declared to be padding."""
    flags = [False] * like.rank
    for dynamic, dimension in zip(value.shape.dynamic, dimensions, strict=True):
        flags[dimension] = dynamic
    bounds = Shape(value.element_type, like.dims, tuple(flags))
    result = emit("stablehlo.broadcast_in_dim", [value], bounds, broadcast_dimensions=i64s(dimensions))
    for dimension, dynamic in enumerate(like.shape.dynamic):
        if dynamic and not flags[dimension]:
            flags[dimension] = True
            size = emit("stablehlo.get_dimension_size", [like], Shape.array("s32"), dimension=i64(dimension))
            shape = Shape(bounds.element, bounds.dimensions, tuple(flags))
            result = emit("stablehlo.set_dimension_size", [result, size], shape, dimension=i64(dimension))
    return result


def sizes_of(value: Value) -> Value:
    """The dimension sizes of a value as an s32 vector, read at run time where dynamic."""
    source = value.ir
    while (op := defining_op(source)) is not None and (operand := shape_operand(op)) is not None:
        # The sizes that an operand was given are nearer than where they come from.
        given = (each for each in op.operands if is_made_by(each, _SPREAD) and each.type.rank == operand.type.rank)
        source = next(given, operand)
    if op is not None and op.name == _SPREAD:
        known = Value(op.operands[1])
        return known if known.element_type.name == "s32" else emit("stablehlo.convert", [known], _sizes_type(known))
    return _sizes_at_run_time(Value(source))


def _sizes_type(vector: Value) -> Any:
    return ir.RankedTensorType.get(vector.type.shape, mlir_type("s32"))


def _sizes_at_run_time(value: Value) -> Value:
    if value.element_type.kind.value == "unsigned":
        # IREE cannot take the size of an unsigned array.
        signed = ir.RankedTensorType.get(value.type.shape, mlir_type(f"s{value.element_type.bits}"))
        value = emit("stablehlo.bitcast_convert", [value], signed)
    scalar, one = (ir.RankedTensorType.get(sizes, mlir_type("s32")) for sizes in ([], [1]))
    parts = []
    for number, size in enumerate(value.dims):
        if size >= 0:
            parts.append(constant([size], "s32"))
            continue
        size_value = emit("stablehlo.get_dimension_size", [value], scalar, dimension=i64(number))
        parts.append(emit("stablehlo.reshape", [size_value], one))
    vector = ir.RankedTensorType.get([len(parts)], mlir_type("s32"))
    return emit("stablehlo.concatenate", parts, vector, dimension=i64(0))
