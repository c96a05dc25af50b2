"""``legalize-reduced-indices``: what is computed of an index beside a reduction reads it from memory.

Before::

    %i = stablehlo.iota dim = 1 : tensor<8x64xi32>
    %m = stablehlo.compare EQ, %i, %y : (tensor<8x64xi32>, tensor<8x64xi32>) -> tensor<8x64xi1>

After::

    %v = stablehlo.iota dim = 0 : tensor<64xi32>
    %b = stablehlo.optimization_barrier %v : tensor<64xi32>
    %i = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<64xi32>) -> tensor<8x64xi32>
    %m = stablehlo.compare EQ, %i, %y : (tensor<8x64xi32>, tensor<8x64xi32>) -> tensor<8x64xi1>

IREE 3.13 deals a reduction out to the threads of a workgroup for Vulkan with what it computes of arrays before and
after it. The index of an element (``linalg.index``) it does not deal out, but keeps in an array, for which there is no
memory: "failed to legalize operation 'memref.alloc'". Losses over classes (``where(labels == iota, x, 0).sum()``) and
masks of attention before a softmax are such. Indices of which a reduction, or a reader of its result, is computed are
therefore a vector in memory. Source: XLA "Iota", "Reduce".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import defining_op, integer, operations
from hloforge.dialect.regions import ELEMENTWISE
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.framework.passes import VULKAN, Pass, register

_IOTA = "stablehlo.iota"
_REDUCTIONS = frozenset({"stablehlo.reduce", "stablehlo.reduce_window"})
# What IREE may compute in the dispatch of a reduction.
_FUSED = ELEMENTWISE | {
    _IOTA,
    *("stablehlo.broadcast_in_dim", "stablehlo.pad", "stablehlo.reshape", "stablehlo.reverse", "stablehlo.slice"),
    "stablehlo.transpose",
}
# What reads an index from memory, or has it as a carry: no dispatch computes with it.
_STORED = frozenset({"stablehlo.optimization_barrier", "func.return", "stablehlo.return", "stablehlo.while"})


@register
@dataclass(frozen=True)
class LegalizeReducedIndices(Pass):
    """Keep the indices that reductions, or readers of their results, are computed of in memory, as vectors."""

    name: ClassVar[str] = "legalize-reduced-indices"
    targets: ClassVar[frozenset[str]] = VULKAN
    needs: ClassVar[frozenset[str]] = frozenset({_IOTA})

    def run(self, module: ir.Module) -> None:
        reductions = operations(module, _REDUCTIONS)
        readers = _reached(reductions, _readers)
        beside = _reached([*reductions, *readers], _makers)
        with in_context(module):
            for op in operations(module, {_IOTA}):
                if op in beside and is_static(op):
                    _store(op)


def _reached(starts: Iterable[ir.Operation], of: Callable[[ir.Operation], Iterable[Any]]) -> set[Any]:
    """What is fused with some operations on one side of them, step by step."""
    found: set[Any] = set()
    waiting = list(starts)
    while waiting:
        for op in of(waiting.pop()):
            if op.name in _FUSED and op not in found:
                found.add(op)
                waiting.append(op)
    return found


def _readers(op: ir.Operation) -> Iterator[Any]:
    return (use.owner.operation for result in op.results for use in result.uses)


def _makers(op: ir.Operation) -> Iterator[Any]:
    return (maker for operand in op.operands if (maker := defining_op(operand)) is not None)


def _store(op: ir.Operation) -> None:
    """iota -> broadcast_in_dim (optimization_barrier (iota of a vector)), where something computes with it."""
    result = Value(op.results[0])
    uses = [use for use in result.ir.uses if use.owner.operation.name not in _STORED]
    with ir.InsertionPoint.after(op), op.location:
        along = integer(op, "iota_dimension")
        vector = ops.optimization_barrier(ops.iota(result.element_type, [result.dims[along]], 0))
        stored = ops.broadcast_in_dim(vector, result.dims, [along]).ir
    for use in uses:
        use.owner.operands[use.operand_number] = stored
