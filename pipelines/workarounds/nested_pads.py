"""``legalize-nested-pads``: pad an array that another padding writes with steps after a barrier.

Before::

    %p = stablehlo.pad %x, %z, low = [0], high = [0], interior = [1] : ... -> tensor<31xf32>
    %r = stablehlo.pad %p, %z, low = [0], high = [1], interior = [0] : ... -> tensor<32xf32>

After::

    %b = stablehlo.optimization_barrier %p : tensor<31xf32>
    %r = stablehlo.pad %b, %z, low = [0], high = [1], interior = [0] : ... -> tensor<32xf32>

IREE 3.13 makes one padding of two with the same value and forgets the steps of the first one
(``FoldSuccessiveTensorInsertSliceOps`` checks the steps of the second one twice): silently, the elements stand side by
side. Of a scatter's result, and of what a padding cuts off, it has no code for the padding ("write affecting operations
on global resources are restricted to workgroup distributed contexts").

It stands after every pass that moves rearrangements or splits complex numbers: they bring two paddings together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.origins import pads_in_steps
from hloforge.pipelines.framework.facts import Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import REWRITTEN, NoMatch, Replacement, apply_patterns, pattern


@pattern("stablehlo.pad")
def padded_behind_a_barrier(op: ir.Operation) -> Replacement:
    """Pad what was scattered into, or sliced by another padding, after a barrier."""
    if not pads_in_steps(op):
        return NoMatch("it pads what is neither scattered into nor sliced")
    op.operands[0] = ops.optimization_barrier(Value(op.operands[0])).ir
    return REWRITTEN


@register
@dataclass(frozen=True)
class LegalizeNestedPads(Pass):
    """Put a barrier between a padding and a scatter, or another padding that slices or has steps, that it reads."""

    name: ClassVar[str] = "legalize-nested-pads"
    establishes: ClassVar[Facts] = frozenset({Fact.SEPARATE_PADS})

    def run(self, module: ir.Module) -> None:
        apply_patterns(module, padded_behind_a_barrier)
