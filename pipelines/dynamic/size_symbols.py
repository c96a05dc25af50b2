"""Names for sizes that are known at run time only: two sizes of one name are equal in every run.

A name is a number, the size of a dimension of some value, or arithmetic of names; it is found by following operations
back to where their sizes come from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np

from hloforge.dialect.dense_values import array_of
from hloforge.dialect.mlir import AnyOp, SSAValue, ir
from hloforge.dialect.operations import defining_op, integer, integers
from hloforge.dialect.traits import ELEMENTWISE

Symbol: TypeAlias = int | tuple[Any, ...]
# The names of dimensions' sizes, by value and dimension.
Known: TypeAlias = dict[tuple[Any, int], Symbol]


@dataclass(frozen=True)
class _Place:
    """A dimension of a value."""

    value: Any
    dimension: int


# Operations whose results have the sizes of every operand of their rank.
POINTWISE = (ELEMENTWISE - {"stablehlo.bitcast_convert"}) | {
    f"stablehlo.{name}" for name in ("dynamic_update_slice", "optimization_barrier", "reverse", "sort")
}
# The operand that lists the sizes of the result.
_LISTED = {"stablehlo.dynamic_broadcast_in_dim": 1, "stablehlo.dynamic_iota": 0, "stablehlo.dynamic_reshape": 1}
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "stablehlo.add": lambda a, b: a + b,
    "stablehlo.maximum": max,
    "stablehlo.minimum": min,
    "stablehlo.multiply": lambda a, b: a * b,
    "stablehlo.subtract": lambda a, b: a - b,
}


def size_of(value: SSAValue, dimension: int, known: Known | None = None) -> Symbol:
    """The name of a dimension's size of a value (an ``ir.Value``).

    Args:
        known: names that were found before and are remembered here, while the operations stay as they are.
    """
    met = []
    while True:
        if known is not None and (value, dimension) in known:
            found = known[value, dimension]
            break
        met.append((value, dimension))
        source = _source_of_size(value, dimension, known)
        if not isinstance(source, _Place):
            found = source
            break
        value, dimension = source.value, source.dimension
    if known is not None:
        known.update(dict.fromkeys(met, found))
    return found


def _source_of_size(value: SSAValue, dimension: int, known: Known | None) -> Symbol | _Place:
    """The name of a dimension's size, or a value and its dimension of the same size, which is nearer to the name."""
    if not value.type.is_dynamic_dim(dimension):
        return int(value.type.get_dim_size(dimension))
    op = defining_op(value)
    if op is None:
        return "size", value, dimension
    if op.name in _LISTED:
        return element(op.operands[_LISTED[op.name]], dimension, known)
    source = _source(op, value, dimension)
    return ("size", value, dimension) if source is None else _Place(*source)


def _source(op: AnyOp, value: Any, dimension: int) -> tuple[Any, int] | None:
    """The value and its dimension that an operation takes the size from."""
    if op.name in POINTWISE:
        number = next(i for i, operand in enumerate(op.operands) if operand.type.rank == value.type.rank)
        # Each result of a sort or a barrier has the sizes of its own operand.
        return (op.operands[value.result_number if len(op.results) > 1 else number]), dimension
    if op.name == "stablehlo.transpose":
        return op.operands[0], integers(op, "permutation")[dimension]
    if op.name == "stablehlo.broadcast_in_dim":
        return op.operands[0], integers(op, "broadcast_dimensions").index(dimension)
    if op.name == "stablehlo.reduce":
        gone = integers(op, "dimensions")
        kept = [d for d in range(op.operands[0].type.rank) if d not in gone]
        return op.operands[0], kept[dimension]
    return None


def element(vector: SSAValue, number: int, known: Known | None = None) -> Symbol:
    """The name of an element of integers (an ``ir.Value`` of static size), counted in row-major order.

    Args:
        known: as of ``size_of``.
    """
    op = defining_op(vector)
    if op is None:
        return "element", vector, number
    if op.name == "stablehlo.constant":
        return int(array_of(op.attributes["value"]).reshape(-1)[number])
    if op.name in ("stablehlo.convert", "stablehlo.reshape"):
        return element(op.operands[0], number, known)
    if op.name == "stablehlo.get_dimension_size":
        return size_of(op.operands[0], integer(op, "dimension"), known)
    if op.name == "stablehlo.concatenate" and integer(op, "dimension") == 0:
        for part in op.operands:
            count = prod(part.type.shape)
            if number < count:
                return element(part, number, known)
            number -= count
    if op.name == "stablehlo.slice":
        return element(op.operands[0], _source_of_slice(op, number), known)
    if op.name in _ARITHMETIC:
        return _folded(op.name, *(element(operand, number, known) for operand in op.operands))
    return "element", vector, number


def _source_of_slice(op: ir.Operation, number: int) -> int:
    sizes, starts, strides = op.results[0].type.shape, integers(op, "start_indices"), integers(op, "strides")
    place = np.array(np.unravel_index(number, sizes)) * strides + starts
    return int(np.ravel_multi_index(tuple(place), op.operands[0].type.shape))


def _folded(name: str, left: Symbol, right: Symbol) -> Symbol:
    """Arithmetic of two names, as far as it is needed to recognize sizes."""
    rule = _ARITHMETIC[name]
    if isinstance(left, int) and isinstance(right, int):
        return rule(left, right)
    return name, left, right
