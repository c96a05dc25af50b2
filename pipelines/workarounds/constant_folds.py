"""Functions that MLIR folds to one number whatever array they read: ``x >= 0`` of unsigned ``x``, ``x * 0``, ``x ^ x``.

Source: folders and canonicalizations of MLIR's ``arith`` dialect, into which IREE brings StableHLO.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any

from hloforge.dialect.element_types import ElementType, Kind
from hloforge.dialect.mlir import SSAValue, ir
from hloforge.dialect.operations import defining_op
from hloforge.dialect.values import Value

Number = bool | int | float

_REPEATED = frozenset({"compare", "remainder", "shift_right_arithmetic", "shift_right_logical", "subtract", "xor"})
_OPPOSED = frozenset({"and", "or", "xor"})
_CHAINED = frozenset({"and", "multiply", "or"})
_EXTREMES = frozenset({"maximum", "minimum"})
_SHIFTS = frozenset({"shift_left", "shift_right_arithmetic", "shift_right_logical"})
_MIRRORED = {"GT": "LT", "LT": "GT", "GE": "LE", "LE": "GE"}


def deciding_operand(op: ir.Operation, equal: Collection[SSAValue]) -> int | None:
    """The position of the operand by which an operation's result is one number; None for most operations.

    Rather one too many than one too few: hiding it costs next to nothing.

    Args:
        op: a function of elements, or a view of an array.
        equal: values whose elements are one number, known or not.
    """
    name, operands = _name(op), list(op.operands)
    if len(operands) != 2:
        return None
    if name in _REPEATED and operands[0] == operands[1]:
        return 1
    if name in _OPPOSED and any(_is_not_of(*pair) for pair in (operands, operands[::-1])):
        return 1
    for position, operand in enumerate(operands):
        if operand in equal and _decides(op, name, position, operands[1 - position]):
            return position
    return None


def number_of(value: SSAValue) -> Number | None:
    """The one number of a constant or of a view of one; None for other values, and for complex constants."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    op = owner.operation
    if _name(op) in {"broadcast_in_dim", "reshape"}:
        return number_of(op.operands[0])
    if _name(op) != "constant" or isinstance(op.results[0].type.element_type, ir.ComplexType):
        return None
    elements = op.attributes["value"]
    if not isinstance(elements, ir.DenseElementsAttr) or not elements.is_splat:
        return None
    splat: Any = elements.get_splat_value()
    number: Number = splat.value
    return number


def _decides(op: ir.Operation, name: str, position: int, other: SSAValue) -> bool:
    """Whether a number on one side of an operation may make a number of it."""
    row, number = Value(op.operands[position]).element_type, number_of(op.operands[position])
    if name == "compare":
        return _decides_comparison(op, position, row, number, other)
    if not (row.is_integer or row.kind is Kind.PRED):
        return False
    if name in _CHAINED and _is_chained(name, other):
        return True
    if name in _SHIFTS and position == 1:
        return number is None or not 0 <= number < row.bits
    fits = (_ABSORBING if position == 1 or name in _CHAINED | _EXTREMES else _ABSORBING_FIRST).get(name)
    return fits is not None and (number is None or fits(number, row))


def _decides_comparison(
    op: ir.Operation, position: int, row: ElementType, number: Number | None, other: SSAValue
) -> bool:
    if row.is_float:
        # Comparisons of what was an integer become such of integers.
        return number is None or math.isnan(number) or _is_integral(other)
    if not (row.is_integer or row.kind is Kind.PRED):
        return False
    direction = str(op.attributes["comparison_direction"]).rsplit(maxsplit=1)[-1].rstrip(">")
    if direction not in _MIRRORED:
        return False
    least, greatest = _limits(row)
    ends = {"LT": (greatest, least), "GE": (greatest, least), "GT": (least, greatest), "LE": (least, greatest)}
    return number is None or int(number) == ends[direction][position]


def _limits(row: ElementType) -> tuple[int, int]:
    if row.kind is Kind.PRED:
        return 0, 1
    bits = row.bits - (row.kind is Kind.SIGNED)
    return (-(1 << bits) if row.kind is Kind.SIGNED else 0), (1 << bits) - 1


def _all_ones(row: ElementType) -> int:
    return -1 if row.kind is Kind.SIGNED else _limits(row)[1]


_ABSORBING: dict[str, Callable[[Number, ElementType], bool]] = {
    "and": lambda number, row: int(number) == 0,
    "maximum": lambda number, row: int(number) == _limits(row)[1],
    "minimum": lambda number, row: int(number) == _limits(row)[0],
    "multiply": lambda number, row: int(number) == 0,
    "or": lambda number, row: int(number) in (_all_ones(row), -1),
    "remainder": lambda number, row: abs(int(number)) <= 1,
}
# Of the first operand, whatever the second one is.
_ABSORBING_FIRST: dict[str, Callable[[Number, ElementType], bool]] = {
    "divide": lambda number, row: int(number) == 0,
    "remainder": lambda number, row: int(number) == 0,
    "shift_left": lambda number, row: int(number) == 0,
    "shift_right_arithmetic": lambda number, row: int(number) in (0, _all_ones(row), -1),
    "shift_right_logical": lambda number, row: int(number) == 0,
}


def _is_chained(name: str, value: Any) -> bool:
    """Whether a value is the same function of another number, with which this one becomes one."""
    op = defining_op(value)
    return op is not None and _name(op) == name and any(number_of(operand) is not None for operand in op.operands)


def _is_not_of(value: Any, other: Any) -> bool:
    op = defining_op(value)
    return op is not None and _name(op) == "not" and op.operands[0] == other


def _is_integral(value: Any) -> bool:
    op = defining_op(value)
    if op is None or _name(op) != "convert":
        return False
    return not Value(op.operands[0]).element_type.is_float


def _name(op: ir.Operation) -> str:
    return str(op.name).removeprefix("stablehlo.")
