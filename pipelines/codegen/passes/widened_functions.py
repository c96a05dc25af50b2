"""``legalize-widened-functions``: functions of bf16 that XLA computes in f32 convert their arguments themselves.

Before::

    %r = chlo.digamma %x : tensor<4xbf16> -> tensor<4xbf16>

After::

    %w = stablehlo.convert %x : (tensor<4xbf16>) -> tensor<4xf32>
    %f = chlo.digamma %w : tensor<4xf32> -> tensor<4xf32>
    %r = stablehlo.convert %f : (tensor<4xf32>) -> tensor<4xbf16>

XLA takes these functions of CHLO apart before it normalizes floats, with a conversion in front. What it computes for
such a conversion alone it does not round to bf16 (``excess_precision.py``), which has to see it. The others it takes
apart in bf16, or has an operation of its own for: found by experiment with jaxlib 0.10.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.passes import Pass, register

_NAMES = "bessel_i1e cosh digamma erf_inv erfc lgamma polygamma sinh zeta"
_FUNCTIONS = frozenset(f"chlo.{name}" for name in _NAMES.split())


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
    narrow = op.results[0].type
    wide = ir.RankedTensorType.get(narrow.shape, ir.F32Type.get())

    def made(name: str, type_: ir.Type, operands: list[Any]) -> Any:
        return ir.Operation.create(
            name, results=[type_], operands=operands, loc=op.location, ip=ir.InsertionPoint(op)
        ).results[0]

    found = made(op.name, wide, [made("stablehlo.convert", wide, [operand]) for operand in op.operands])
    op.results[0].replace_all_uses_with(made("stablehlo.convert", narrow, [found]))
    op.erase()
