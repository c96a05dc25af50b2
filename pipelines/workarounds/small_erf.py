"""``legalize-small-erf``: erf of numbers near the least normal one.

Before::

    %r = chlo.erf %x : tensor<4xf32> -> tensor<4xf32>

After::

    %e = chlo.erf %x : tensor<4xf32> -> tensor<4xf32>
    %r = select (|%x| < 2^-60), %x * (2 / sqrt pi), %e

What jaxlib expands erf to multiplies the operand by small constants first; IREE flushes such products of 1e-37 and
less, and XLA scales them. Source: W. J. Cody, "Rational Chebyshev approximations for the error function" (1969).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sqrt
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.legalize.retyping import correct_result

# The second term of the series, x^3 / 3, is far below the last place.
_SMALL = 2.0**-60
_WIDE = frozenset({"bf16", "f32"})


@register
@dataclass(frozen=True)
class LegalizeSmallErf(Pass):
    """Compute erf of tiny numbers with the first term of its series; run it once."""

    name: ClassVar[str] = "legalize-small-erf"

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, {"chlo.erf"}):
                x = Value(op.operands[0])
                if x.element_type.name in _WIDE:
                    correct_result(op, lambda erf, x=x: ops.select(ops.abs(x) < _SMALL, x * (2 / sqrt(pi)), erf))  # type: ignore[misc]
