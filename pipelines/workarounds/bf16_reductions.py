"""``legalize-bf16-reductions``: compute minima and maxima of bf16 in f32.

Before::

    %m = stablehlo.reduce(%x init: %a) applies stablehlo.maximum across dimensions = [1] : tensor<64x128xbf16>

After::

    %w = stablehlo.reduce(convert %x init: convert %a) applies stablehlo.maximum ... : tensor<64x128xf32>
    %m = stablehlo.convert %w : (tensor<64xf32>) -> tensor<64xbf16>

IREE 3.13 gives each invocation eight numbers of 16 bits at a time, which it loads as four f32, and has no SPIR-V that
makes bf16 of those ("failed to legalize operation 'vector.bitcast'", "'spirv.Bitcast' op mismatch"). Of f32 it takes
four at a time. Sums and products are of f32 already (``legalize-accumulation``); the conversions are exact here.
Source: XLA "Reduce".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.mlir import ir
from hloforge.pipelines.analysis.forms import combiner
from hloforge.pipelines.framework.passes import VULKAN, PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern
from hloforge.pipelines.legalize.accumulation import carried_in_f32

_EXACT = ("stablehlo.maximum", "stablehlo.minimum")


@pattern("stablehlo.reduce")
def in_f32(op: ir.Operation) -> Replacement:
    """The reduction of the converted operand."""
    if len(op.results) != 1 or not isinstance(op.results[0].type.element_type, ir.BF16Type):
        return NoMatch("not of one bf16 array")
    if combiner(op) not in _EXACT:
        return NoMatch("conversions may round")
    return carried_in_f32(op)


@register
@dataclass(frozen=True)
class LegalizeBf16Reductions(PatternPass):
    """Compute minima and maxima of bf16 in f32."""

    name: ClassVar[str] = "legalize-bf16-reductions"
    targets: ClassVar[frozenset[str]] = VULKAN
    patterns: ClassVar[tuple[Pattern, ...]] = in_f32
