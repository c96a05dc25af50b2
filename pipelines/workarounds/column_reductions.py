"""``legalize-column-reductions``: what columns are reduced to is computed before whoever reads it with the array again.

Before::

    %m = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [0] : (tensor<64x8xf32>, ...)
    %b = stablehlo.broadcast_in_dim %m, dims = [1] : (tensor<8xf32>) -> tensor<64x8xf32>
    %r = stablehlo.subtract %x, %b : tensor<64x8xf32>

After::

    %h = stablehlo.optimization_barrier %m
    %b = stablehlo.broadcast_in_dim %h, dims = [1] : (tensor<8xf32>) -> tensor<64x8xf32>

For Vulkan, IREE 3.13 computes both in one dispatch, whose vectors of some shapes (64 rows of 8, 24 or 40 numbers) have
32 elements, which SPIR-V lacks ("failed to legalize operation 'arith.constant'"). Rows along the innermost dimension
are reduced in other ways. Source: XLA "OptimizationBarrier".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import integers, operations
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import VULKAN, Pass, register
from hloforge.pipelines.legalize.retyping import correct_result


@register
@dataclass(frozen=True)
class LegalizeColumnReductions(Pass):
    """Put barriers behind reductions of columns that are read again."""

    name: ClassVar[str] = "legalize-column-reductions"
    targets: ClassVar[frozenset[str]] = VULKAN

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, ("stablehlo.reduce",)):
                if _is_of_columns(op):
                    for number in range(len(op.results)):
                        correct_result(op, _held, number)


def _is_of_columns(op: ir.Operation) -> bool:
    """Whether the innermost dimension of more than one element stays, and another one does not."""
    sizes = list(op.operands[0].type.shape)
    reduced = integers(op, "dimensions")
    wide = [d for d, size in enumerate(sizes) if size != 1]
    return bool(wide) and wide[-1] not in reduced and any(d in reduced for d in wide)


def _held(value: Value) -> Value:
    return emit("stablehlo.optimization_barrier", [value], value.ir.type)
