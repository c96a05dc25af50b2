"""``hold-vectors``: compute the factors of rows once instead of once per row.

Before::

    %f = stablehlo.rsqrt %variance : tensor<64xf32>
    %b = stablehlo.broadcast_in_dim %f, dims = [1] : tensor<25088x64xf32>

After::

    %f = stablehlo.rsqrt %variance : tensor<64xf32>
    %g = stablehlo.optimization_barrier %f
    %b = stablehlo.broadcast_in_dim %g, dims = [1] : tensor<25088x64xf32>

IREE 3.13 computes a vector where it is broadcast: for every few rows again, in the loop that reads them. Roots and
quotients take longer there than the memory: batch normalization of 25,088 rows takes half as long again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import integers, operations
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import CPU, Pass, register

# Elements of a result from which what is saved outweighs a dispatch, and rows that share a vector.
_WORTH, _LEAST_ROWS = 1 << 17, 64
_COSTLY_NAMES = """
cbrt cosine divide exponential exponential_minus_one log log_plus_one logistic power rsqrt sine sqrt tan tanh
"""
_OTHER_NAMES = """
abs add and broadcast_in_dim compare convert maximum minimum multiply negate not or reshape select subtract
"""
_COSTLY, _OTHERS = (frozenset(f"stablehlo.{name}" for name in names.split()) for names in (_COSTLY_NAMES, _OTHER_NAMES))


@register
@dataclass(frozen=True)
class HoldVectors(Pass):
    """Put a barrier after roots, quotients and similar results that are broadcast to many rows."""

    name: ClassVar[str] = "hold-vectors"
    targets: ClassVar[frozenset[str]] = CPU

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, {"stablehlo.broadcast_in_dim"}):
                if _repeats_a_row(op) and _is_costly(op.operands[0]):
                    with ir.InsertionPoint(op), op.location:
                        vector = Value(op.operands[0])
                        op.operands[0] = emit("stablehlo.optimization_barrier", [vector], vector.type).ir


def _repeats_a_row(op: ir.Operation) -> bool:
    """Whether the last dimension is the operand's, and the rows are many."""
    small, whole = Value(op.operands[0]), Value(op.results[0])
    if not whole.shape.is_static or not small.shape.element_count or whole.shape.element_count < _WORTH:
        return False
    if (
        whole.rank - 1 not in integers(op, "broadcast_dimensions")
        or small.dims[-1] != whole.dims[-1]
        or small.dims[-1] == 1
    ):
        return False
    return whole.shape.element_count >= _LEAST_ROWS * small.shape.element_count


def _is_costly(vector: Any) -> bool:
    """Whether a vector is computed, elementwise, by way of an operation that takes long."""
    if isinstance(vector.owner, ir.Block):
        return False
    op = vector.owner
    if op.name in _COSTLY:
        return True
    return op.name in _OTHERS and any(map(_is_costly, op.operands))
