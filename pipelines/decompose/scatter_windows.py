"""The geometry of a scatter: which window of the operand each index vector names.

Everything is brought to one form: ``n`` windows, given by one start per operand dimension, and updates of shape
``[n, *window]`` whose window has the operand's rank. Source: StableHLO spec "scatter", XLA "Scatter".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.element_types import ElementType
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.index_bounds import component_bounds


@dataclass(frozen=True)
class Windows:
    """The windows of one ``stablehlo.scatter``.

    Attributes:
        operands, updates: as the operation has them, one update for each operand.
        indices: the array of index vectors.
        numbers: its scatter_dimension_numbers.
        unique: whether the program promises that no two windows touch an element.
        region: the computation from (old..., update...) to new... .
    """

    operands: tuple[Value, ...]
    indices: Value
    updates: tuple[Value, ...]
    numbers: Any
    unique: bool
    region: Any

    @classmethod
    def of(cls, op: Any) -> Windows:
        values = [Value(operand) for operand in op.operands]
        count = len(values) // 2
        unique = "unique_indices" in op.attributes and bool(ir.BoolAttr(op.attributes["unique_indices"]).value)
        numbers = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
        return cls(tuple(values[:count]), values[count], tuple(values[count + 1 :]), numbers, unique, op.regions[0])

    @property
    def is_static(self) -> bool:
        return all(value.shape.is_static for value in (*self.operands, self.indices, *self.updates))

    @property
    def dims(self) -> tuple[int, ...]:
        """The operand's dimensions."""
        return self.operands[0].dims

    @property
    def scattered(self) -> list[int]:
        """The operand dimension that each component of an index vector addresses."""
        return list(self.numbers.scattered_dims_to_operand_dims)

    @cached_property
    def batch(self) -> list[int]:
        """The dimensions of ``indices`` that count windows."""
        return [d for d in range(self.indices.rank) if d != self.numbers.index_vector_dim]

    @property
    def count(self) -> int:
        """How many windows there are."""
        return prod(self.indices.dims[d] for d in self.batch)

    @cached_property
    def window(self) -> tuple[int, ...]:
        """The window's size in each operand dimension."""
        single = {*self.numbers.inserted_window_dims, *self.numbers.input_batching_dims}
        sizes = iter([self.updates[0].dims[d] for d in self.numbers.update_window_dims])
        return tuple(1 if d in single else next(sizes) for d in range(len(self.dims)))

    @property
    def starts_at(self) -> frozenset[int]:
        """The operand dimensions in which windows start anywhere but at 0."""
        return frozenset({*self.scattered, *self.numbers.input_batching_dims})

    def ordered_updates(self) -> list[Value]:
        """The updates as ``[count, *window]``."""
        window_dims = list(self.numbers.update_window_dims)
        order = [d for d in range(self.updates[0].rank) if d not in window_dims] + window_dims
        return [ops.reshape(ops.transpose(update, order), [self.count, *self.window]) for update in self.updates]

    def starts(self) -> dict[int, Value]:
        """The start of every window, ``[count]`` of s32 or s64, by operand dimension; a missing one is 0."""
        vectors = self._vectors()
        result: dict[int, Value] = {}
        for component, d in enumerate(self.scattered):
            column = ops.slice(vectors, [0, component], [self.count, component + 1])
            result[d] = ops.reshape(column, [self.count])
        sizes = [self.indices.dims[d] for d in self.batch]
        pairs = zip(self.numbers.input_batching_dims, self.numbers.scatter_indices_batching_dims, strict=True)
        for d, along in pairs:
            position = ops.iota(vectors.element_type, sizes, self.batch.index(along))
            result[d] = ops.reshape(position, [self.count])
        return result

    def _vectors(self) -> Value:
        """The index vectors as ``[count, components]``, signed and wide enough for every value they can have."""
        dim = self.numbers.index_vector_dim
        vectors = self.indices
        if dim < vectors.rank:
            vectors = ops.transpose(vectors, [*self.batch, dim])
        vectors = ops.reshape(vectors, [self.count, len(self.scattered)])
        return ops.convert_element_type(vectors, _signed(vectors.element_type))

    def uncertain(self) -> list[int]:
        """The scattered dimensions whose starts may lead a window out of bounds."""
        return [d for component, d in enumerate(self.scattered) if not self._is_inside(component, d)]

    def _is_inside(self, component: int, d: int) -> bool:
        bounds = component_bounds(self.indices.ir, self.numbers.index_vector_dim, component)
        return bounds is not None and bounds[0] >= 0 and bounds[1] <= self.dims[d] - self.window[d]

    def inside(self, starts: dict[int, Value], uncertain: list[int]) -> Value | None:
        """Which windows lie inside the operand: ``[count]`` of pred; None if all are known to."""
        result = None
        for d in uncertain:
            fits = (starts[d] >= 0) & (starts[d] <= self.dims[d] - self.window[d])
            result = fits if result is None else result & fits
        return result


def _signed(row: ElementType) -> str:
    """A signed type that holds every index in bounds and keeps those out of bounds so."""
    return "s64" if row.bits == 64 or row.name == "u32" else "s32"


def broadcast_leading(vector: Value, dims: tuple[int, ...]) -> Value:
    """``[n]`` to ``[n, ...]`` of shape ``dims``."""
    return ops.broadcast_in_dim(vector, dims, range(vector.rank))
