"""``legalize-known-exponents``: powers of floats by 0, 1, 2, 3 and -1 are constants, products and quotients.

Before::

    %r = stablehlo.power %x, (broadcast of 3.0) : tensor<9xf32>

After::

    %s = stablehlo.multiply %x, %x : tensor<9xf32>
    %r = stablehlo.multiply %s, %x : tensor<9xf32>

Any number to the power of 0 is 1, NaN as well. XLA does the same. Cubes of 16-bit floats stay powers, because two
products round twice. Source: XLA, ``AlgebraicSimplifierVisitor::HandlePower``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.codegen.passes.known_divisors import FLOATS, known_number
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

_POWERS: Mapping[float, Callable[[Value], Value]] = {
    0.0: lambda x: full(x, 1.0),
    1.0: lambda x: x,
    2.0: lambda x: ops.mul(x, x),
    3.0: lambda x: ops.mul(ops.mul(x, x), x),
    -1.0: lambda x: ops.div(full(x, 1.0), x),
}
_TWICE_ROUNDED = 3.0


@pattern("stablehlo.power")
def by_known_exponent(op: ir.Operation) -> Replacement:
    """Multiply, or divide."""
    x = Value(op.operands[0])
    if x.element_type.name not in FLOATS or not is_static(op):
        return NoMatch("of no floats, or of unknown size")
    exponent = known_number(op.operands[1])
    if exponent is None or exponent not in _POWERS or (exponent == _TWICE_ROUNDED and x.element_type.bits < 32):
        return NoMatch("another exponent, or one that is not known")
    return _POWERS[exponent](x)


@register
@dataclass(frozen=True)
class LegalizeKnownExponents(PatternPass):
    """Powers by small integers are products."""

    name: ClassVar[str] = "legalize-known-exponents"
    patterns: ClassVar[tuple[Pattern, ...]] = by_known_exponent
