"""``legalize-complex-products``: complex numbers of which both parts are products stay apart from the products.

Before::

    %z = stablehlo.complex %re, %im          // %re and %im: rearranged results of dot_general

After::

    %parts:2 = stablehlo.optimization_barrier %re, %im
    %z = stablehlo.complex %parts#0, %parts#1

IREE 3.13 computes both products and the numbers in one dispatch, and has no SPIR-V for its vectors of one complex
number. Source: XLA "Complex", "OptimizationBarrier".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value, leaves
from hloforge.pipelines.passes import Pass, register
from hloforge.pipelines.patterns import NoMatch, Replacement, apply_patterns, pattern

_REARRANGE = frozenset({"stablehlo.reshape", "stablehlo.slice", "stablehlo.transpose"})


def joins_products(op: Any) -> bool:
    """Whether both operands of a ``complex`` are rearranged results of ``dot_general``."""
    return all(map(_is_product, op.operands))


def _is_product(value: Any) -> bool:
    owner = value.owner
    while not isinstance(owner, ir.Block) and owner.name in _REARRANGE:
        owner = owner.operands[0].owner
    return not isinstance(owner, ir.Block) and owner.name == "stablehlo.dot_general"


@pattern("stablehlo.complex")
def behind_a_barrier(op: Any) -> Replacement:
    """complex(re, im) -> the same of what a barrier passes on."""
    if not joins_products(op):
        return NoMatch("not two products")
    real, imaginary = leaves(ops.optimization_barrier([Value(operand) for operand in op.operands]))
    return ops.complex(real, imaginary)


@register
@dataclass(frozen=True)
class LegalizeComplexProducts(Pass):
    """Put barriers between products and the complex numbers of which they are the parts."""

    name: ClassVar[str] = "legalize-complex-products"

    def run(self, module: Any) -> None:
        apply_patterns(module, behind_a_barrier)
