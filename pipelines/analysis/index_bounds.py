"""Bounds of the values of an index array that are known without running the program.

Decompositions leave out the clamping or masking of indices that are proven in bounds.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from hloforge.dialect.dense_values import array_of
from hloforge.dialect.mlir import AnyOp, SSAValue, ir
from hloforge.dialect.operations import integer, integers

# Smallest and largest value, both included.
Bounds: TypeAlias = tuple[int, int]

_MOVES = frozenset(f"stablehlo.{name}" for name in ("broadcast_in_dim", "reshape", "slice", "transpose", "reverse"))
_COMBINING = frozenset(f"stablehlo.{name}" for name in ("and", "maximum", "minimum", "multiply", "subtract"))


def component_bounds(indices: SSAValue, vector_dim: int, component: int) -> Bounds | None:
    """The bounds of one component of index vectors (an ``ir.Value``); None if nothing is known.

    Args:
        vector_dim: the dimension of the index vectors; the rank of ``indices`` if they are scalars.
    """
    op = _defining(indices)
    if op is None or vector_dim >= indices.type.rank:
        return value_bounds(indices)
    if op.name == "stablehlo.constant":
        return _extremes(np.take(array_of(op.attributes["value"]), component, axis=vector_dim))
    if op.name == "stablehlo.concatenate" and integer(op, "dimension") == vector_dim:
        return _part_bounds(op, vector_dim, component)
    if op.name == "stablehlo.convert":
        return _representable(component_bounds(op.operands[0], vector_dim, component), indices.type.element_type)
    if op.name == "stablehlo.broadcast_in_dim" and vector_dim in integers(op, "broadcast_dimensions"):
        source = op.operands[0]
        along = integers(op, "broadcast_dimensions").index(vector_dim)
        return component_bounds(source, along, component if source.type.shape[along] > 1 else 0)
    return value_bounds(indices)


def _part_bounds(op: AnyOp, vector_dim: int, component: int) -> Bounds | None:
    for operand in op.operands:
        size = operand.type.get_dim_size(vector_dim)
        if component < size:
            return component_bounds(operand, vector_dim, component)
        component -= size
    return None


def value_bounds(value: SSAValue) -> Bounds | None:
    """The bounds of all elements of an integer array (an ``ir.Value``); None if nothing is known."""
    op = _defining(value)
    if op is None:
        return None
    if op.name == "stablehlo.constant":
        return _extremes(array_of(op.attributes["value"]))
    if op.name == "stablehlo.iota":
        size = value.type.get_dim_size(integer(op, "iota_dimension"))
        return _representable((0, max(size - 1, 0)), value.type.element_type)
    if op.name == "stablehlo.clamp":
        low, high = value_bounds(op.operands[0]), value_bounds(op.operands[2])
        return (low[0], high[1]) if low and high and low[0] <= high[1] else None
    if op.name in _MOVES:
        return value_bounds(op.operands[0])
    if op.name in _COMBINING:
        return _representable(_combined(op), value.type.element_type)
    if op.name == "stablehlo.convert":
        return _representable(value_bounds(op.operands[0]), value.type.element_type)
    if op.name == "stablehlo.concatenate":
        parts = [value_bounds(operand) for operand in op.operands]
        known = [part for part in parts if part]
        return (min(p[0] for p in known), max(p[1] for p in known)) if len(known) == len(parts) else None
    return None


def _combined(op: AnyOp) -> Bounds | None:
    """Bounds of an operation of two integers, as far as IREE's folds may find one number for all elements."""
    first, second = map(value_bounds, op.operands)
    if op.name == "stablehlo.subtract":
        return (0, 0) if op.operands[0] == op.operands[1] else None
    if op.name in ("stablehlo.multiply", "stablehlo.and") and (0, 0) in (first, second):
        return (0, 0)
    if first is None or second is None or op.name == "stablehlo.and":
        return None
    if op.name == "stablehlo.multiply":
        corners = [a * b for a in first for b in second]
        return min(corners), max(corners)
    choose = min if op.name == "stablehlo.minimum" else max
    return choose(first[0], second[0]), choose(first[1], second[1])


def _defining(value: SSAValue) -> Any:
    """The operation that computes a value; None for a block's argument or values that are no static integers."""
    type_ = value.type
    if not isinstance(type_, ir.RankedTensorType) or not isinstance(type_.element_type, ir.IntegerType):
        return None
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def _extremes(array: np.ndarray[Any, Any]) -> Bounds | None:
    return (int(array.min()), int(array.max())) if array.size else None


def _representable(bounds: Bounds | None, element: Any) -> Bounds | None:
    """The bounds if a conversion to the integer type keeps them."""
    if bounds is None:
        return None
    unsigned = element.is_unsigned
    low = 0 if unsigned else -(1 << (element.width - 1))
    high = (1 << (element.width if unsigned else element.width - 1)) - 1
    return bounds if low <= bounds[0] and bounds[1] <= high else None
