"""``legalize-complex-reductions``: what reductions give is computed before complex numbers that are made of it.

Before::

    %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : ... -> tensor<complex<f64>>
    %r = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<complex<f64>>) -> tensor<3xcomplex<f64>>

After::

    %h = stablehlo.optimization_barrier %s
    %r = stablehlo.broadcast_in_dim %h, dims = [] : (tensor<complex<f64>>) -> tensor<3xcomplex<f64>>

For CUDA, IREE 3.13 computes both in one dispatch and keeps the number in the memory that a block's threads share. It
asks for its width in bits there, which complex types do not have, and crashes ("ConvertSharedMemAllocOp").

Nor does it compute complex numbers in the dispatch of a reduction of several arrays, as running sums of complex numbers
are (``legalize-complex-parts``): it asks for their width to share them out among threads
("deriveLinalgOpThreadTileSizes"). In a program that makes complex numbers, there is a barrier behind each result of
these. Source: XLA "OptimizationBarrier".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import SSAValue, in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import CUDA, Pass, register
from hloforge.pipelines.legalize.retyping import correct_result

_REDUCTIONS = ("stablehlo.reduce", "stablehlo.reduce_window", "stablehlo.dot_general")


@register
@dataclass(frozen=True)
class LegalizeComplexReductions(Pass):
    """Put barriers behind reductions of complex numbers to one, and of several arrays in programs that make some."""

    name: ClassVar[str] = "legalize-complex-reductions"
    targets: ClassVar[frozenset[str]] = CUDA

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            makes_complex = any(operations(module, ("stablehlo.complex",)))
            for op in operations(module, _REDUCTIONS):
                is_of_several = makes_complex and len(op.results) > 1
                for number, result in enumerate(op.results):
                    if is_of_several or _is_one_complex(result):
                        correct_result(op, _held, number)


def _is_one_complex(value: SSAValue) -> bool:
    """Whether a value is one complex number, or an array of a size that may be 1 at a call."""
    if not isinstance(value.type, ir.RankedTensorType) or not isinstance(value.type.element_type, ir.ComplexType):
        return False
    return all(size == 1 or size < 0 for size in value.type.shape)


def _held(value: Value) -> Value:
    return emit("stablehlo.optimization_barrier", [value], value.ir.type)
