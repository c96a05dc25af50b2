"""``legalize-whole-slices``: slices and updates of whole arrays as what they are, and no reshape to the same shape.

Before::

    %u = stablehlo.dynamic_update_slice %list, %part, %i : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<i32>) -> ...
    %n = stablehlo.reshape %next : (tensor<i32>) -> tensor<i32>

After, ``%u`` is ``%part`` and ``%n`` is ``%next``.

TensorFlow writes lists of one element and identities so. IREE 3.13 folds them after the passes that look at what
loops carry: a loop with a counter after an identity does not count for them, and a carry that is overwritten as a
whole seems to keep its other elements. Source: StableHLO spec "dynamic_update_slice": a start index is clamped, here
to 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

_UPDATE = "stablehlo.dynamic_update_slice"


@pattern(_UPDATE, "stablehlo.dynamic_slice", "stablehlo.slice", "stablehlo.reshape")
def as_operand(op: ir.Operation) -> Replacement:
    """The update of an update, the operand of the others, where it has the result's static type.

    A slice with steps has fewer elements than its operand, unless there is one along each dimension.
    """
    operand = Value(op.operands[1 if op.name == _UPDATE else 0])
    result = op.results[0].type
    if not result.has_static_shape:
        return NoMatch("dynamic size")
    if operand.ir.type != result:
        return NoMatch("another shape")
    return operand


@register
@dataclass(frozen=True)
class LegalizeWholeSlices(PatternPass):
    """Replace slices and updates of whole arrays, and reshapes to the same shape, by their operand."""

    name: ClassVar[str] = "legalize-whole-slices"
    patterns: ClassVar[tuple[Pattern, ...]] = as_operand
