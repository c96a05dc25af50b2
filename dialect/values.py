"""``Value``: an operand or result of an operation, with operators.

Builder functions take and return Values and emit at MLIR's current insertion point and location, so the same
functions serve a user's program and a decomposition inside a rewrite pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from hloforge.dialect.element_types import ElementType, element_type, mlir_type
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.mlir import ir
from hloforge.dialect.shapes import Shape


class Value:
    """A typed value in a program under construction; wraps an ``ir.Value`` of ranked tensor type."""

    __slots__ = ("ir",)
    # Without this, `np.float32(2) * value` would make numpy build an object array.
    __array_ufunc__ = None

    def __init__(self, value: Any) -> None:
        self.ir = value

    @property
    def type(self) -> Any:
        return self.ir.type

    @property
    def shape(self) -> Shape:
        return Shape.of_type(self.ir.type)

    @property
    def dims(self) -> tuple[int, ...]:
        """Dimension sizes; -1 where dynamic."""
        return self.shape.dimensions

    @property
    def rank(self) -> int:
        rank: int = self.ir.type.rank
        return rank

    @property
    def element_type(self) -> ElementType:
        """XLA's element type. Raises UnsupportedError for one of MLIR's that XLA has not, such as f6E2M3FN."""
        try:
            return element_type(self.ir.type.element_type)
        except ValueError as error:
            raise UnsupportedError(str(error)) from None

    def __repr__(self) -> str:
        return f"Value({self.shape})"

    def __add__(self, other: Operand) -> Value:
        return _binary("add", self, other)

    def __radd__(self, other: Operand) -> Value:
        return _binary("add", other, self)

    def __sub__(self, other: Operand) -> Value:
        return _binary("subtract", self, other)

    def __rsub__(self, other: Operand) -> Value:
        return _binary("subtract", other, self)

    def __mul__(self, other: Operand) -> Value:
        return _binary("multiply", self, other)

    def __rmul__(self, other: Operand) -> Value:
        return _binary("multiply", other, self)

    def __truediv__(self, other: Operand) -> Value:
        return _binary("divide", self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return _binary("divide", other, self)

    def __mod__(self, other: Operand) -> Value:
        return _binary("remainder", self, other)

    def __pow__(self, other: Operand) -> Value:
        return _binary("power", self, other)

    def __and__(self, other: Operand) -> Value:
        return _binary("and", self, other)

    def __or__(self, other: Operand) -> Value:
        return _binary("or", self, other)

    def __xor__(self, other: Operand) -> Value:
        return _binary("xor", self, other)

    def __lshift__(self, other: Operand) -> Value:
        return _binary("shift_left", self, other)

    def __rshift__(self, other: Operand) -> Value:
        """Arithmetic for signed integers, logical for unsigned ones, as in C."""
        signed = self.element_type.kind.value == "signed"
        return _binary("shift_right_arithmetic" if signed else "shift_right_logical", self, other)

    def __neg__(self) -> Value:
        return emit("stablehlo.negate", [self], self.type)

    def __invert__(self) -> Value:
        return emit("stablehlo.not", [self], self.type)

    def __lt__(self, other: Operand) -> Value:
        return compare("LT", self, other)

    def __le__(self, other: Operand) -> Value:
        return compare("LE", self, other)

    def __gt__(self, other: Operand) -> Value:
        return compare("GT", self, other)

    def __ge__(self, other: Operand) -> Value:
        return compare("GE", self, other)

    def eq(self, other: Operand) -> Value:
        """Elementwise ``==``; the operator itself stays Python's identity, so Values work in sets and dicts."""
        return compare("EQ", self, other)

    def ne(self, other: Operand) -> Value:
        """Elementwise ``!=``."""
        return compare("NE", self, other)


Operand: TypeAlias = Value | int | float | complex | bool | np.generic


def emit(name: str, operands: Sequence[Value], result: Any, **attributes: Any) -> Value:
    """Create the single-result operation ``name`` at the current insertion point.

    Args:
        result: its MLIR result type.
        attributes: MLIR attributes by name (``and_`` style trailing underscores are dropped).
    """
    op = ir.Operation.create(
        name,
        results=[result],
        operands=[operand.ir for operand in operands],
        attributes={key.rstrip("_"): value for key, value in attributes.items()},
    )
    return Value(op.results[0])


def constant(value: Any, dtype: Any = None) -> Value:
    """``stablehlo.constant`` from anything numpy takes; ``dtype`` names the element type (default: numpy's)."""
    array = np.asarray(value) if dtype is None else np.asarray(value).astype(element_type(dtype).dtype)
    row = element_type(array.dtype if dtype is None else dtype)
    return emit("stablehlo.constant", [], Shape.array(row, *array.shape).mlir_type(), value=dense(array, row))


def dense(array: np.ndarray[Any, Any], row: ElementType) -> Any:
    """A DenseElementsAttr of any XLA element type, sub-byte types and booleans included."""
    shape, type_ = list(array.shape), mlir_type(row)
    if not array.size:
        return ir.DenseElementsAttr.get(np.zeros(0, np.uint8), type=type_, shape=shape)
    storage = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, -1)
    # Compared as bytes, so that -0 and NaN keep their bits; one element's bytes make a splat.
    splat = (storage == storage[0]).all()
    return ir.DenseElementsAttr.get(storage[0] if splat else storage, type=type_, shape=shape)


def full(like: Value, scalar: Any, dtype: Any = None) -> Value:
    """``scalar`` in the shape of ``like``: a splat constant, or a broadcast scalar where the shape is dynamic.

    Args:
        dtype: names the element type (default: that of ``like``).
    """
    row = like.element_type if dtype is None else element_type(dtype)
    number = np.asarray(scalar).astype(row.dtype)
    result = ir.RankedTensorType.get(like.type.shape, mlir_type(row))
    if like.shape.is_static:
        return emit("stablehlo.constant", [], result, value=dense(np.broadcast_to(number, like.dims), row))
    sizes, no_dimensions = _sizes(like), ir.DenseI64ArrayAttr.get([])
    return emit(
        "stablehlo.dynamic_broadcast_in_dim", [constant(number, row), sizes], result, broadcast_dimensions=no_dimensions
    )


# Operations whose result has the shape of each operand of its rank: sizes are read where the shape comes from.
_ELEMENTWISE = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("abs", "add", "and", "atan2", "bitcast_convert", "cbrt", "ceil", "compare", "complex", "convert", "cosine"),
        *("divide", "exponential", "exponential_minus_one", "floor", "imag", "is_finite", "log", "log_plus_one"),
        *("logistic", "maximum", "minimum", "multiply", "negate", "not", "or", "power", "real", "remainder"),
        *("round_nearest_afz", "round_nearest_even", "rsqrt", "select", "shift_left", "shift_right_arithmetic"),
        *("shift_right_logical", "sign", "sine", "sqrt", "subtract", "tan", "tanh", "xor"),
    )
)


def _sizes(value: Value) -> Value:
    """The dimension sizes of a value as an s32 vector, read at run time where dynamic."""
    source = value.ir
    while isinstance(source.owner, ir.Operation) and source.owner.name in _ELEMENTWISE:
        source = next(operand for operand in source.owner.operands if operand.type.rank == value.rank)
    if isinstance(source.owner, ir.Operation) and source.owner.name == "stablehlo.dynamic_broadcast_in_dim":
        known = Value(source.owner.operands[1])
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
    index = ir.IntegerType.get_signless(64)
    parts = []
    for number, size in enumerate(value.dims):
        if size >= 0:
            parts.append(constant([size], "s32"))
            continue
        dimension = ir.IntegerAttr.get(index, number)
        size_value = emit("stablehlo.get_dimension_size", [value], scalar, dimension=dimension)
        parts.append(emit("stablehlo.reshape", [size_value], one))
    vector = ir.RankedTensorType.get([len(parts)], mlir_type("s32"))
    return emit("stablehlo.concatenate", parts, vector, dimension=ir.IntegerAttr.get(index, 0))


def _pair(lhs: Operand, rhs: Operand) -> tuple[Value, Value]:
    if isinstance(lhs, Value):
        return lhs, rhs if isinstance(rhs, Value) else full(lhs, rhs)
    if isinstance(rhs, Value):
        return full(rhs, lhs), rhs
    raise TypeError("one operand must be a Value")


def _binary(name: str, lhs: Operand, rhs: Operand) -> Value:
    left, right = _pair(lhs, rhs)
    return emit(f"stablehlo.{name}", [left, right], left.type)


def compare(direction: str, lhs: Operand, rhs: Operand, compare_type: str = "") -> Value:
    """``stablehlo.compare``; the compare type defaults to FLOAT, SIGNED or UNSIGNED by the operands' type."""
    left, right = _pair(lhs, rhs)
    row = left.element_type
    kind = compare_type or {"float": "FLOAT", "complex": "FLOAT", "signed": "SIGNED"}.get(row.kind.value, "UNSIGNED")
    result = ir.RankedTensorType.get(left.type.shape, mlir_type("pred"))
    return emit(
        "stablehlo.compare",
        [left, right],
        result,
        comparison_direction=ir.Attribute.parse(f"#stablehlo<comparison_direction {direction}>"),
        compare_type=ir.Attribute.parse(f"#stablehlo<comparison_type {kind}>"),
    )
