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

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import defining_op, integer, operations
from hloforge.dialect.regions import ELEMENTWISE
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.framework.passes import VULKAN, Pass, register
from hloforge.pipelines.framework.patterns import REWRITTEN, NoMatch, Replacement, apply_patterns, pattern

_REDUCTIONS = frozenset({"stablehlo.reduce", "stablehlo.reduce_window"})
# What IREE may compute in the dispatch of a reduction.
_FUSED = ELEMENTWISE | {
    *("stablehlo.broadcast_in_dim", "stablehlo.pad", "stablehlo.reshape", "stablehlo.reverse", "stablehlo.slice"),
    "stablehlo.transpose",
}
# What reads it from memory, or has it as a carry or a key: no dispatch computes with it.
_STORED = frozenset({"stablehlo.optimization_barrier", "func.return", "stablehlo.return", "stablehlo.while"})


@pattern("stablehlo.iota")
def index_in_memory(op: ir.Operation) -> Replacement:
    """iota -> broadcast_in_dim (optimization_barrier (iota of a vector)), where something computes with it."""
    result = Value(op.results[0])
    uses = [use for use in result.ir.uses if use.owner.operation.name not in _STORED]
    if not uses or not is_static(op) or not _is_beside_a_reduction(op):
        return NoMatch("no reduction is computed with it, or it has a dynamic size")
    along = integer(op, "iota_dimension")
    vector = ops.optimization_barrier(ops.iota(result.element_type, [result.dims[along]], 0))
    stored = ops.broadcast_in_dim(vector, result.dims, [along]).ir
    for use in uses:
        use.owner.operands[use.operand_number] = stored
    return REWRITTEN


def _is_beside_a_reduction(index: ir.Operation) -> bool:
    """Whether a reduction reads what is computed of an index, or something is computed of both."""
    waiting: list[Any] = [index]
    seen: set[Any] = set()
    while waiting:
        for use in waiting.pop().results[0].uses:
            reader = use.owner.operation
            if reader.name in _REDUCTIONS:
                return True
            if reader.name not in _FUSED or reader in seen:
                continue
            seen.add(reader)
            if any(_is_made_of_a_reduction(operand) for operand in reader.operands):
                return True
            waiting.append(reader)
    return False


def _is_made_of_a_reduction(value: Any) -> bool:
    waiting: list[Any] = [value]
    seen: set[Any] = set()
    while waiting:
        op = defining_op(waiting.pop())
        if op is None or op in seen:
            continue
        seen.add(op)
        if op.name in _REDUCTIONS:
            return True
        if op.name in _FUSED:
            waiting += op.operands
    return False


@register
@dataclass(frozen=True)
class LegalizeReducedIndices(Pass):
    """Keep the indices that programs with reductions compute with in memory, a vector for each dimension."""

    name: ClassVar[str] = "legalize-reduced-indices"
    targets: ClassVar[frozenset[str]] = VULKAN
    needs: ClassVar[frozenset[str]] = frozenset({"stablehlo.iota"})

    def run(self, module: ir.Module) -> None:
        if operations(module, _REDUCTIONS):
            apply_patterns(module, index_in_memory)
