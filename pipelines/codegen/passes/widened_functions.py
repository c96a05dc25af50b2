"""``legalize-widened-functions``: functions of bf16 that XLA computes in f32 convert their arguments themselves.

Before::

    %r = chlo.digamma %x : tensor<4xbf16> -> tensor<4xbf16>

After::

    %w = stablehlo.convert %x : (tensor<4xbf16>) -> tensor<4xf32>
    %f = chlo.digamma %w : tensor<4xf32> -> tensor<4xf32>
    %r = stablehlo.convert %f : (tensor<4xf32>) -> tensor<4xbf16>

XLA takes these functions of CHLO apart before it normalizes floats, with a conversion in front. What it computes for
such a conversion alone it does not round to bf16 (``excess_precision.py``), which has to see it. The others it takes
apart in bf16, or has an operation of its own for: found by experiment with jaxlib 0.10.2. Batch norms it normalizes
whole, and takes apart in f32 then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import Pass, register

_NAMES = "bessel_i1e cosh digamma erf_inv erfc lgamma polygamma sinh zeta"
_NORMS = "batch_norm_grad batch_norm_inference batch_norm_training"
_FUNCTIONS = frozenset(
    {*(f"chlo.{name}" for name in _NAMES.split()), *(f"stablehlo.{name}" for name in _NORMS.split())}
)


@register
@dataclass(frozen=True)
class LegalizeWidenedFunctions(Pass):
    """Convert arguments of bf16 to f32 for functions that XLA computes so."""

    name: ClassVar[str] = "legalize-widened-functions"
    needs: ClassVar[frozenset[str]] = _FUNCTIONS

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, _FUNCTIONS):
                if isinstance(op.results[0].type.element_type, ir.BF16Type):
                    _widen(op)


def _widen(op: ir.Operation) -> None:
    with ir.InsertionPoint(op), op.location:
        operands = [ops.convert_element_type(Value(operand), "f32").ir for operand in op.operands]
        types = [ir.RankedTensorType.get(result.type.shape, ir.F32Type.get()) for result in op.results]
        attributes = {name: op.attributes[name] for name in op.attributes}
        wide = ir.Operation.create(op.name, results=types, operands=operands, attributes=attributes)
        for result, found in zip(op.results, wide.results, strict=True):
            result.replace_all_uses_with(ops.convert_element_type(Value(found), "bf16").ir)
    op.erase()
