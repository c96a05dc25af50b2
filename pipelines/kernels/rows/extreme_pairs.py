"""Reductions of (value, position) pairs that compute argmax or argmin, and their preferences for ties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

from hloforge.dialect.mlir import AnyOp, stablehlo
from hloforge.dialect.operations import integers, is_made_by, splat
from hloforge.dialect.values import Value
from hloforge.pipelines.decompose.sort import is_iota

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "EQ": lambda one, other: one == other,
    "NE": lambda one, other: one != other,
    "GT": lambda one, other: one > other,
    "GE": lambda one, other: one >= other,
    "LT": lambda one, other: one < other,
    "LE": lambda one, other: one <= other,
}
_LOGIC: dict[str, Callable[..., bool]] = {
    "and": lambda one, other: one & other,
    "or": lambda one, other: one | other,
    "xor": lambda one, other: one ^ other,
    "not": lambda one: not one,
}


@dataclass(frozen=True)
class Extreme:
    """What a reduction of values and their positions finds, if no value is NaN.

    Attributes:
        is_greatest: the greatest value, else the least one.
        is_first: the first position that has it, else the last one.
    """

    is_greatest: bool
    is_first: bool


def extreme_of(op: AnyOp) -> Extreme | None:
    """What a ``stablehlo.reduce`` of an array and its positions along one dimension finds; None for others.

    The computation may compare and select in any way: it cannot tell more of two numbers than their order, so that a
    pair in each order says everything.
    """
    if len(op.results) != 2 or len(integers(op, "dimensions")) != 1:
        return None
    found = _preferred(op.regions[0].blocks[0])
    if found is None or not _counts(op.operands[1], integers(op, "dimensions")[0]):
        return None
    row = Value(op.operands[0]).element_type
    least, greatest = (-inf, inf) if row.is_float else (-(1 << (row.bits - 1)), (1 << (row.bits - 1)) - 1)
    starts = _splat(op.operands[2]) == (least if found.is_greatest else greatest) and _splat(op.operands[3]) == 0
    return found if starts else None


def _preferred(block: Any) -> Extreme | None:
    greater, less = _chosen(block, 2.0, 1.0), _chosen(block, 1.0, 2.0)
    if (greater, less) == ((2.0, 0), (2.0, 1)):
        is_greatest = True
    elif (greater, less) == ((1.0, 1), (1.0, 0)):
        is_greatest = False
    else:
        return None
    tie = _chosen(block, 1.0, 1.0)
    return None if tie is None else Extreme(is_greatest, tie[1] == 0)


def _chosen(block: Any, one: float, other: float) -> tuple[float, int] | None:
    """What the computation makes of two values, at positions 0 and 1; None if it does not only compare and select."""
    known: dict[Any, Any] = dict(zip(block.arguments, (one, 0, other, 1), strict=True))
    *inner, end = (op.operation for op in block.operations)
    for op in inner:
        name = op.name.removeprefix("stablehlo.")
        operands: list[Any] = [known.get(operand) for operand in op.operands]
        if None in operands:
            return None
        if name == "compare":
            direction = stablehlo.ComparisonDirectionAttr(op.attributes["comparison_direction"]).value
            made = _COMPARISONS[direction](*operands)
        elif name == "select":
            made = operands[1] if operands[0] else operands[2]
        elif name in _LOGIC and all(isinstance(operand, bool) for operand in operands):
            made = _LOGIC[name](*operands)
        elif name == "minimum" and all(Value(operand).element_type.is_integer for operand in op.operands):
            made = min(operands)
        else:
            return None
        known[op.results[0]] = made
    value, position = (known[operand] for operand in end.operands)
    return value, position


def _counts(value: Any, dimension: int) -> bool:
    """Whether an array holds positions along a dimension."""
    if is_made_by(value, "stablehlo.broadcast_in_dim"):
        return integers(value.owner, "broadcast_dimensions") == [dimension] and is_iota(value.owner.operands[0], 0)
    return is_iota(value, dimension)


def _splat(value: Any) -> Any:
    """The number of a constant; None for other values."""
    if not is_made_by(value, "stablehlo.constant"):
        return None
    return splat(value.owner)
