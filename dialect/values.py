"""``Value``: an operand or result of an operation, with operators; ``TupleValue``: several of them.

Operations take and return Values and emit at MLIR's current insertion point, so the same functions serve a user's
program and a decomposition inside a rewrite pattern.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import EllipsisType, ModuleType
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from hloforge.dialect.element_types import ElementType, Kind, element_type
from hloforge.dialect.errors import OperationError, UnsupportedError
from hloforge.dialect.mlir import ir
from hloforge.dialect.shapes import Shape

# The builders of programs under construction, by context.
OPEN: WeakValueDictionary[Any, Any] = WeakValueDictionary()


class Value:
    """A typed value in a program under construction: an array, or a token.

    Attributes:
        ir: the ``ir.Value``.
    """

    __slots__ = ("_program", "_shape", "ir")
    # Without this, `np.float32(2) * value` would make numpy build an object array.
    __array_ufunc__ = None

    def __init__(self, value: Any, shape: Shape | None = None) -> None:
        """``shape`` is what ``value``'s type says, with the layout that the type cannot hold."""
        self.ir = value
        self._shape = shape
        # MLIR's bindings do not keep the module of an inserted operation alive.
        self._program = OPEN.get(value.context)

    @property
    def shape(self) -> Shape:
        if self._shape is None:
            self._shape = Shape.of_type(self.ir.type)
        return self._shape

    @property
    def type(self) -> Any:
        """The MLIR type."""
        return self.ir.type

    @property
    def dims(self) -> tuple[int, ...]:
        """Dimension sizes; the bound of a bounded dynamic dimension, -1 for an unbounded one."""
        return self._array_shape().dimensions

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def element_type(self) -> ElementType:
        """XLA's element type. Raises UnsupportedError for one of MLIR's that XLA lacks, such as f6E2M3FN."""
        try:
            element = self._array_shape().element
        except ValueError as error:
            raise UnsupportedError(str(error)) from None
        assert element is not None
        return element

    def _array_shape(self) -> Shape:
        if isinstance(self.ir.type, ir.RankedTensorType):
            return self.shape
        raise OperationError(f"an array is expected, not a value of shape {self.shape}")

    def __repr__(self) -> str:
        return f"Value({self.shape})"

    def __bool__(self) -> bool:
        raise OperationError(
            f"a Value of shape {self.shape} is neither true nor false while the program is built",
            hint="use select or conditional, and & | ~ for logic",
        )

    def __iter__(self) -> Iterator[Value]:
        raise OperationError(f"a Value of shape {self.shape} cannot be iterated over; take parts with x[0], x[1] …")

    def __add__(self, other: Operand) -> Value:
        return _ops().add(self, other)  # type: ignore[no-any-return]

    def __radd__(self, other: Operand) -> Value:
        return _ops().add(other, self)  # type: ignore[no-any-return]

    def __sub__(self, other: Operand) -> Value:
        return _ops().sub(self, other)  # type: ignore[no-any-return]

    def __rsub__(self, other: Operand) -> Value:
        return _ops().sub(other, self)  # type: ignore[no-any-return]

    def __mul__(self, other: Operand) -> Value:
        return _ops().mul(self, other)  # type: ignore[no-any-return]

    def __rmul__(self, other: Operand) -> Value:
        return _ops().mul(other, self)  # type: ignore[no-any-return]

    def __truediv__(self, other: Operand) -> Value:
        return _ops().div(self, other)  # type: ignore[no-any-return]

    def __rtruediv__(self, other: Operand) -> Value:
        return _ops().div(other, self)  # type: ignore[no-any-return]

    def __mod__(self, other: Operand) -> Value:
        """XLA's remainder: it has the sign of the dividend, unlike Python's ``%``."""
        return _ops().rem(self, other)  # type: ignore[no-any-return]

    def __pow__(self, other: Operand) -> Value:
        return _ops().pow(self, other)  # type: ignore[no-any-return]

    def __rpow__(self, other: Operand) -> Value:
        return _ops().pow(other, self)  # type: ignore[no-any-return]

    def __matmul__(self, other: Value) -> Value:
        return _ops().dot(self, other)  # type: ignore[no-any-return]

    def __and__(self, other: Operand) -> Value:
        return _ops().and_(self, other)  # type: ignore[no-any-return]

    def __or__(self, other: Operand) -> Value:
        return _ops().or_(self, other)  # type: ignore[no-any-return]

    def __xor__(self, other: Operand) -> Value:
        return _ops().xor(self, other)  # type: ignore[no-any-return]

    def __lshift__(self, other: Operand) -> Value:
        return _ops().shift_left(self, other)  # type: ignore[no-any-return]

    def __rshift__(self, other: Operand) -> Value:
        """Arithmetic for signed integers, logical for unsigned ones, as in C."""
        signed = self.element_type.kind is Kind.SIGNED
        shift = _ops().shift_right_arithmetic if signed else _ops().shift_right_logical
        return shift(self, other)  # type: ignore[no-any-return]

    def __neg__(self) -> Value:
        return _ops().neg(self)  # type: ignore[no-any-return]

    def __invert__(self) -> Value:
        return _ops().not_(self)  # type: ignore[no-any-return]

    def __abs__(self) -> Value:
        return _ops().abs(self)  # type: ignore[no-any-return]

    def __lt__(self, other: Operand) -> Value:
        return _ops().lt(self, other)  # type: ignore[no-any-return]

    def __le__(self, other: Operand) -> Value:
        return _ops().le(self, other)  # type: ignore[no-any-return]

    def __gt__(self, other: Operand) -> Value:
        return _ops().gt(self, other)  # type: ignore[no-any-return]

    def __ge__(self, other: Operand) -> Value:
        return _ops().ge(self, other)  # type: ignore[no-any-return]

    def eq(self, other: Operand) -> Value:
        """Elementwise ``==``; the operator itself stays Python's identity, so Values work in sets and dicts."""
        return _ops().eq(self, other)  # type: ignore[no-any-return]

    def ne(self, other: Operand) -> Value:
        """Elementwise ``!=``."""
        return _ops().ne(self, other)  # type: ignore[no-any-return]

    def __getitem__(self, key: Index | tuple[Index, ...]) -> Value:
        """numpy's basic indexing: integers, slices, ``...`` and None; a scalar Value is a start known at run time."""
        from hloforge.dialect.subscript import subscript

        return subscript(self, key if isinstance(key, tuple) else (key,))

    def reshape(self, *dims: int) -> Value:
        """The same elements in row-major order; one size may be -1, which the others then determine."""
        sizes = list(dims)
        if sizes.count(-1) == 1:
            known = -int(np.prod(sizes))
            sizes[sizes.index(-1)] = self.shape.element_count // known if known else 0
        return _ops().reshape(self, sizes)  # type: ignore[no-any-return]

    def transpose(self, *permutation: int) -> Value:
        """Dimensions in the order of ``permutation``; reversed without one."""
        return _ops().transpose(self, permutation or tuple(reversed(range(self.rank))))  # type: ignore[no-any-return]

    def astype(self, dtype: Any) -> Value:
        """The same numbers in another element type."""
        return _ops().convert_element_type(self, element_type(dtype))  # type: ignore[no-any-return]


class TupleValue(Value):
    """A tuple of Values, as XLA's tuples are: it may nest, be empty, and hold tokens."""

    __slots__ = ("elements",)

    def __init__(self, elements: Sequence[Value]) -> None:
        self.elements = tuple(elements)
        self._shape = Shape.tuple_of(*(element.shape for element in self.elements))

    @property
    def type(self) -> Any:
        return ir.TupleType.get_tuple([element.type for element in self.elements])

    def _array_shape(self) -> Shape:
        raise OperationError(
            f"an array is expected, not the tuple {self.shape}", hint="take its elements with get_tuple_element"
        )

    def __getattr__(self, name: str) -> Any:
        # `ir` is the one slot that a tuple leaves empty.
        if name == "ir":
            self._array_shape()
        raise AttributeError(name)

    def __len__(self) -> int:
        return len(self.elements)

    def __iter__(self) -> Iterator[Value]:
        return iter(self.elements)

    def __getitem__(self, key: Any) -> Value:
        return _ops().get_tuple_element(self, key)  # type: ignore[no-any-return]


Operand: TypeAlias = Value | int | float | complex | bool | np.generic | np.ndarray[Any, Any]
Index: TypeAlias = int | slice | EllipsisType | Value | None
# Values nested in tuples and lists, as a computation returns them.
Results: TypeAlias = Value | Sequence["Results"]


def leaves(value: Results) -> list[Value]:
    """The arrays and tokens of a nested value, in order."""
    if isinstance(value, Value) and not isinstance(value, TupleValue):
        return [value]
    return [leaf for element in value for leaf in leaves(element)]


def nest(shape: Shape, values: Iterator[Value]) -> Value:
    """The Value of ``shape`` whose leaves are the next of ``values``."""
    if shape.elements is None:
        return next(values)
    return TupleValue([nest(element, values) for element in shape.elements])


def as_value(results: Results) -> Value:
    """Tuples and lists of Values as one TupleValue. Raises OperationError for anything else."""
    if isinstance(results, Value):
        return results
    if not isinstance(results, list | tuple):
        raise OperationError(f"a {type(results).__name__} is no Value", hint="make a constant of it")
    return TupleValue([as_value(result) for result in results])


def _ops() -> ModuleType:
    """The operations, which are defined on Values and so cannot be imported before them."""
    from hloforge.dialect import ops

    return ops
