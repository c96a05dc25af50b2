"""Short forms that decompositions share: loops by count, rows by number, stacked matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.computations import fill_region
from hloforge.dialect.constants import constant, full
from hloforge.dialect.element_types import ElementType, mlir_type
from hloforge.dialect.emission import create, flag
from hloforge.dialect.marks import IN_BOUNDS
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value, leaves


def typed_like(value: Value, dtype: Any) -> ir.RankedTensorType:
    """The MLIR tensor type with the shape of ``value`` and the element type ``dtype``."""
    return ir.RankedTensorType.get(value.type.shape, mlir_type(dtype))


def zeros(dtype: str | ElementType, dims: Sequence[int] = ()) -> Value:
    """An array of zeros."""
    return ops.broadcast_in_dim(constant(0, dtype), dims, ())


def for_loop(count: int, init: Sequence[Value], body: Callable[..., Sequence[Value]]) -> list[Value]:
    """``count`` iterations of ``body(number, *values)``, where ``number`` is an s32 scalar from 0."""

    def turn(number: Value, *values: Value) -> list[Value]:
        return [number + 1, *body(number, *values)]

    start = constant(0, "s32")
    _, *results = ops.while_(lambda number, *_: number < count, turn, [start, *init])
    return results


def reduce_pair(
    operands: tuple[Value, Value],
    inits: tuple[int, int],
    computation: Callable[[Value, Value, Value, Value], Sequence[Value]],
    dimension: int,
) -> tuple[Value, Value]:
    """Reduce two arrays of equal sizes together along a dimension (variadic XLA "Reduce").

    Args:
        inits: the identity of the computation, one scalar an array.
        computation: from (a0, a1, b0, b1) to the combined pair; associative and commutative.
    """
    first, second = leaves(ops.reduce(operands, inits, computation, [dimension]))
    return first, second


def within(places: Value, size: int) -> Value:
    """Integers clamped to ``0 .. size - 1``: what ``take_rows`` may be given of numbers that a program brings."""
    low, high = (full(places, bound) for bound in (0, size - 1))
    return ops.max(low, ops.min(places, high))


def take_rows(operand: Value, rows: Value) -> Value:
    """``operand[rows]``: ``[p, ...]`` and ``[n]`` to ``[n, ...]`` (XLA "Gather"); every row must exist (``within``)."""
    return take(operand, ops.reshape(rows, [*rows.dims, 1]), 0)


def update_rows(
    operand: Value, rows: Value, updates: Value, computation: Callable[[Value, Value], Value], *, unique: bool
) -> Value:
    """Combine ``updates[i]`` into ``operand[rows[i]]``, in order (XLA "Scatter"); every row must exist.

    Args:
        operand: ``[p]`` or ``[p, w]``.
        rows: ``[n]`` of s32 or s64.
        updates: ``[n]`` or ``[n, w]``.
        computation: from (old, update), scalars, to the new scalar; unlike XLA's it may use values from around it.
        unique: a promise that no row is named twice.
    """
    numbers = ops.ScatterDimensionNumbers(range(1, operand.rank), [0], [0], 1)
    op = create(
        "stablehlo.scatter",
        [operand, ops.reshape(rows, [*rows.dims, 1]), updates],
        [operand.type],
        1,
        scatter_dimension_numbers=numbers.attribute(),
        unique_indices=flag(unique),
        **{IN_BOUNDS: ir.UnitAttr.get()},
    )
    scalar = ir.RankedTensorType.get([], operand.type.element_type)
    fill_region(op.regions[0], [scalar, scalar], computation)
    return Value(op.results[0])


def take(operand: Value, places: Value, dimension: int) -> Value:
    """The slices of ``operand`` at ``places`` along a dimension, which they replace.

    Args:
        operand: ``[..., n, ...]``, static.
        places: ``[m]`` or ``[m, 1]`` integers, every one inside ``0 .. n - 1``.
    """
    window = [1 if d == dimension else size for d, size in enumerate(operand.dims)]
    offsets = [d for d in range(operand.rank) if d != dimension]
    taken = ops.gather(operand, places, ops.GatherDimensionNumbers(offsets, [dimension], [dimension], 1), window)
    taken.ir.owner.attributes[IN_BOUNDS] = ir.UnitAttr.get()
    return taken


def batch_matmul(lhs: Value, rhs: Value) -> Value:
    """``[b, m, k]`` times ``[b, k, n]`` to ``[b, m, n]`` (XLA "DotGeneral")."""
    return ops.dot_general(lhs, rhs, ops.DotDimensionNumbers([2], [1], [0], [0]))


def conjugate(operand: Value) -> Value:
    """The complex conjugate; real arrays are returned as they are."""
    if not operand.element_type.is_complex:
        return operand
    return ops.complex(ops.real(operand), -ops.imag(operand))


def matrix_transpose(operand: Value) -> Value:
    """``[b, m, n]`` to ``[b, n, m]``."""
    return ops.transpose(operand, [0, 2, 1])


def lower_triangle(dims: tuple[int, ...]) -> Value:
    """A pred ``[b, m, n]``: whether an element is on or below the diagonal."""
    return ops.iota("s32", dims, 1) >= ops.iota("s32", dims, 2)
