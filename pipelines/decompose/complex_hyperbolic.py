"""``decompose-complex-hyperbolic``: sinh and cosh of complex numbers by sine and cosine.

Before::

    %r = chlo.sinh %z : tensor<4xcomplex<f32>> -> tensor<4xcomplex<f32>>

After: sinh z = -i sin iz and cosh z = cos iz, with iz = -b + ai for z = a + bi.

CHLO's expansion, (e^z - e^-z) / 2, cancels: near zero no digit of sinh is right (2e4 epsilons at 1e-4 in complex<f32>).
Sine and cosine are exact there (``decompose-complex-elementwise``), and C17 Annex G defines theirs by these equations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


@pattern("chlo.sinh", "chlo.cosh")
def by_angles(op: ir.Operation) -> Replacement:
    """A hyperbolic function of a complex array -> one of an angle; any shape."""
    z = Value(op.operands[0])
    if not z.element_type.is_complex:
        return NoMatch("not complex")
    turned = ops.complex(-ops.imag(z), ops.real(z))
    if op.name == "chlo.cosh":
        return ops.cos(turned)
    sine = ops.sin(turned)
    return ops.complex(ops.imag(sine), -ops.real(sine))


@register
@dataclass(frozen=True)
class DecomposeComplexHyperbolic(PatternPass):
    """Replace hyperbolic sines and cosines of complex numbers by those of angles."""

    name: ClassVar[str] = "decompose-complex-hyperbolic"
    patterns: ClassVar[tuple[Pattern, ...]] = by_angles
