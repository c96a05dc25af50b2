"""``decompose-sort``: sorts by a comparator as sorting networks (``sorting_network.py``), on any device.

Before::

    %0:2 = "stablehlo.sort"(%keys, %values) <{dimension = 0}> ({ ^bb0(%a, %b, %c, %d): return f(%a) < f(%b) })

After, the sorted dimension brought to the end and padded to a power of two, log2(n)^2 / 2 passes over the rows::

    %1:5 = stablehlo.while(%k = 2, %j = 1, %keys, %values, %places) {
      %other = "stablehlo.gather"(%keys, places xor %j)             the element at a distance
      %swap = stablehlo.compare LT, f(%lower), f(%upper)
      %keys = stablehlo.select %swap, %other, %keys
    }

IREE's own sort is quadratic (22 s for 65,536 floats), puts whole rows on a 32 KB stack and ignores ``is_stable``.
Source: XLA "Sort"; Batcher, Sorting networks and their applications, 1968.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import integer, operations
from hloforge.dialect.regions import is_elementwise
from hloforge.dialect.values import Value
from hloforge.pipelines.decompose.sorting_network import sort_by_network
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import replace


@register
@dataclass(frozen=True)
class DecomposeSort(Pass):
    """Replace sorts of static size with an elementwise comparator."""

    name: ClassVar[str] = "decompose-sort"

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, {"stablehlo.sort"}):
                if _can_decompose(op):
                    with ir.InsertionPoint(op), op.location:
                        _decompose(op)


def _can_decompose(op: ir.Operation) -> bool:
    return bool(op.operands[0].type.has_static_shape) and is_elementwise(op.regions[0])


def _decompose(op: ir.Operation) -> None:
    lines = _Lines.of(op)
    operands = [Value(operand) for operand in op.operands]
    if lines.size <= 1 or lines.rows == 0:
        replace(op, operands)
        return
    rows = [lines.to_rows(operand) for operand in operands]
    replace(op, [lines.from_rows(result) for result in sort_by_network(op, rows)])


@dataclass(frozen=True)
class _Lines:
    """How the lines along the sorted dimension become rows.

    Attributes:
        dims: of the operands.
        dimension: the sorted one.
    """

    dims: tuple[int, ...]
    dimension: int

    @classmethod
    def of(cls, op: Any) -> _Lines:
        dims = tuple(int(size) for size in op.operands[0].type.shape)
        dimension = integer(op, "dimension") if "dimension" in op.attributes else -1
        return cls(dims, dimension % len(dims))

    @property
    def size(self) -> int:
        return self.dims[self.dimension]

    @property
    def rows(self) -> int:
        return prod(self.dims) // self.size if self.size else 0

    @property
    def _others(self) -> list[int]:
        return [d for d in range(len(self.dims)) if d != self.dimension]

    def to_rows(self, array: Value) -> Value:
        """From an operand to [rows, size]."""
        return ops.reshape(ops.transpose(array, [*self._others, self.dimension]), (self.rows, self.size))

    def from_rows(self, rows: Value) -> Value:
        """From [rows, size] to the shape of the operands."""
        order = [*self._others, self.dimension]
        whole = ops.reshape(rows, [*(self.dims[d] for d in self._others), self.size])
        return ops.transpose(whole, [order.index(d) for d in range(len(order))])
