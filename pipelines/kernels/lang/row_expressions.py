"""What an array ``[..., n]`` is computed from, row by row: arithmetic on its elements, and on reductions of rows.

::

    %m = reduce max (%x) across [1]          a number of each row, from a pass over it
    %e = exp (%x - broadcast %m)             elements
    %y = %e / broadcast (reduce add (%e))    elements, after another pass
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from math import prod
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.mlir import AnyOp, ir
from hloforge.dialect.operations import defining_op, integers, is_made_by
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import combiner
from hloforge.pipelines.kernels.lang.elementwise import has_code

EXPONENTIAL, REDUCE = "stablehlo.exponential", "stablehlo.reduce"
REDUCED = ("stablehlo.add", "stablehlo.maximum", "stablehlo.minimum")
_SHAPING = ("stablehlo.broadcast_in_dim", "stablehlo.reshape")
# Operations of one row's program.
_MOST_OPERATIONS = 32


class Spread(enum.Enum):
    """What a broadcast repeats."""

    NUMBERS = "a number for each row"
    VECTOR = "a row"
    SCALAR = "a number"


@dataclass
class RowExpression:
    """An array computed row by row.

    Attributes:
        dims: of the array, the length of a row last.
        computed: the operations, each after those that it needs.
        arrays: what has an element for each of the array.
        vectors: what has an element for each of a row.
        numbers: what has one for each row.
        scalars: what has one.
    """

    dims: tuple[int, ...]
    computed: list[Any] = field(default_factory=list)
    arrays: list[Any] = field(default_factory=list)
    vectors: list[Any] = field(default_factory=list)
    numbers: list[Any] = field(default_factory=list)
    scalars: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, root: Any) -> RowExpression | None:
        """The expression of an array; None where it has too many operations, or reads other elements than f32."""
        found = cls(Value(root).dims)
        found._add(root)
        read = (*found.arrays, *found.vectors, *found.numbers, *found.scalars)
        is_f32 = all(Value(value).element_type.name == "f32" for value in read)
        return found if is_f32 and len(found.computed) <= _MOST_OPERATIONS else None

    @property
    def rows(self) -> int:
        return prod(self.dims[:-1])

    @property
    def size(self) -> int:
        return self.dims[-1]

    @property
    def operands(self) -> list[Any]:
        """What a dispatch is given: ``[rows, n]``, ``[1, n]``, ``[rows, 1]`` and ``[1, 1]``."""
        kinds = (
            (self.arrays, (self.rows, self.size)),
            (self.vectors, (1, self.size)),
            (self.numbers, (self.rows, 1)),
            (self.scalars, (1, 1)),
        )
        return [ops.reshape(Value(value), dims).ir for values, dims in kinds for value in values]

    def is_wide(self, value: Any) -> bool:
        """Whether a value has an element for each of the array, and no number for each row."""
        return Value(value).dims == self.dims

    def _is_row(self, value: Any) -> bool:
        """Whether a value has a number for each row."""
        return Value(value).dims in (self.dims[:-1], (*self.dims[:-1], 1))

    def _add(self, value: Any) -> None:
        op = defining_op(value)
        if op is not None and op in self.computed:
            return
        if op is None or not self._is_computed(op) or len(self.computed) > _MOST_OPERATIONS:
            self._take(value)
            return
        small = self.spread(op)
        if small is Spread.VECTOR or small is Spread.SCALAR:
            kept = self.scalars if small is Spread.SCALAR else self.vectors
            kept += [] if op.operands[0] in kept else [op.operands[0]]
        else:
            for operand in list(op.operands)[:1] if op.name == REDUCE else op.operands:
                self._add(operand)
        self.computed.append(op)

    def _take(self, value: Any) -> None:
        kept = self.arrays if self.is_wide(value) else self.numbers
        kept += [] if value in kept else [value]

    def _is_computed(self, op: ir.Operation) -> bool:
        result = op.results[0]
        if len(op.results) != 1 or not (self.is_wide(result) or self._is_row(result)):
            return False
        if op.name == REDUCE:
            return self._is_reduction(op)
        if op.name in _SHAPING:
            return self.spread(op) is not None
        # Dispatches that are there already have operands that are no arrays.
        if not has_code(op) or not all(map(_is_taken, (*op.operands, result))):
            return False
        return all(Value(operand).dims == Value(result).dims for operand in op.operands)

    def _is_reduction(self, op: AnyOp) -> bool:
        """Whether rows of the array's sizes are reduced, from a constant."""
        init = op.operands[1]
        is_constant = is_made_by(init, "stablehlo.constant")
        along_rows = self.is_wide(op.operands[0]) and integers(op, "dimensions") == [len(self.dims) - 1]
        is_float = Value(op.results[0]).element_type.name == "f32"
        return is_constant and along_rows and is_float and combiner(op) in REDUCED

    def spread(self, op: AnyOp) -> Spread | None:
        """What a broadcast or reshape repeats along rows or leaves as it is, in f32; None for other operations."""
        if op.name not in _SHAPING or Value(op.results[0]).element_type.name != "f32":
            return None
        small, wide = op.operands[0], self.is_wide(op.results[0])
        if op.name == "stablehlo.reshape":
            return Spread.NUMBERS if self._is_row(small) and not wide else None
        placed = integers(op, "broadcast_dimensions")
        if self._is_row(small) and placed == list(range(len(placed))):
            return Spread.NUMBERS
        count = Value(small).shape.element_count
        if count == 1:
            return Spread.SCALAR
        is_last = placed[-1] == len(self.dims) - 1 and Value(small).dims[-1] == count == self.size
        return Spread.VECTOR if wide and is_last else None


def _is_taken(value: Any) -> bool:
    return Value(value).element_type.name in ("f32", "pred")
