"""``legalize-complex-products``: complex numbers whose parts are computed from products stay apart from the products.

Before::

    %z = stablehlo.complex %re, %im          // %re or %im: of elements of a dot_general's result

After::

    %parts:2 = stablehlo.optimization_barrier %re, %im
    %z = stablehlo.complex %parts#0, %parts#1

IREE 3.13 computes the products, what elementwise operations make of them and the numbers in one dispatch, and has no
SPIR-V for its vectors of one complex number, nor for the part of the array that a workgroup writes. Source: XLA
"Complex", "OptimizationBarrier".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir
from hloforge.dialect.regions import ELEMENTWISE
from hloforge.dialect.values import Value, leaves
from hloforge.pipelines.passes import Pass, register
from hloforge.pipelines.patterns import NoMatch, Replacement, apply_patterns, pattern

# What IREE computes in the dispatch of a product.
_FUSED = ELEMENTWISE | {f"stablehlo.{name}" for name in ("broadcast_in_dim", "reshape", "slice", "transpose")}


def joins_products(op: Any) -> bool:
    """Whether an operand of a ``complex`` is computed element by element from results of ``dot_general``."""
    waiting, seen = [operand.owner for operand in op.operands], set()
    while waiting:
        owner = waiting.pop()
        if isinstance(owner, ir.Block) or owner in seen:
            continue
        if owner.name == "stablehlo.dot_general":
            return True
        seen.add(owner)
        if owner.name in _FUSED:
            waiting += [operand.owner for operand in owner.operands]
    return False


@pattern("stablehlo.complex")
def behind_a_barrier(op: Any) -> Replacement:
    """complex(re, im) -> the same of what a barrier passes on."""
    if not joins_products(op):
        return NoMatch("no product")
    real, imaginary = leaves(ops.optimization_barrier([Value(operand) for operand in op.operands]))
    return ops.complex(real, imaginary)


@register
@dataclass(frozen=True)
class LegalizeComplexProducts(Pass):
    """Put barriers between products and the complex numbers of which they are the parts."""

    name: ClassVar[str] = "legalize-complex-products"

    def run(self, module: Any) -> None:
        apply_patterns(module, behind_a_barrier)
