"""``legalize-slice-starts``: starts of dynamic slices in a type that IREE reads correctly.

Before::

    %r = stablehlo.dynamic_slice %x, %i, sizes = [3] : (tensor<10xf32>, tensor<i8>) -> tensor<3xf32>

After::

    %j = stablehlo.convert %i : (tensor<i8>) -> tensor<i32>
    %r = stablehlo.dynamic_slice %x, %j, sizes = [3] : (tensor<10xf32>, tensor<i32>) -> tensor<3xf32>

IREE 3.13 takes negative starts of 8 and 16 bits for large ones, and unsigned starts of the highest bit for negative
ones. A slice of a scalar, which has no starts, is the scalar, and an update of it the new one: StableHLO prints the
former so that no parser reads it. Source: StableHLO spec "dynamic_slice": starts are clamped so that the whole slice
lies in the operand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.element_types import Kind
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import starts_oddly
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

# Operands before the starts.
_ARRAYS = {"stablehlo.dynamic_slice": 1, "stablehlo.dynamic_update_slice": 2}
# No array has as many elements along a dimension.
_FAR = (1 << 63) - 1


@pattern(*_ARRAYS)
def from_signed_starts(op: ir.Operation) -> Replacement:
    """The same slice from s32 or s64 starts; all of a scalar."""
    if not starts_oddly(op):
        return NoMatch("its starts are s32 or s64")
    operands = [Value(operand) for operand in op.operands]
    count = _ARRAYS[op.name]
    if not operands[0].rank:
        return operands[-1]
    starts = [_signed(start) for start in operands[count:]]
    attributes = {name: op.attributes[name] for name in op.attributes}
    return emit(op.name, [*operands[:count], *starts], op.results[0].type, **attributes)


def _signed(start: Value) -> Value:
    row = start.element_type
    if row.bits < 32:
        return ops.convert_element_type(start, "s32")
    if row.kind is not Kind.UNSIGNED:
        return start
    return ops.convert_element_type(ops.min(start, _FAR) if row.bits == 64 else start, "s64")


@register
@dataclass(frozen=True)
class LegalizeSliceStarts(PatternPass):
    """Widen the starts of dynamic slices and updates, and make them signed."""

    name: ClassVar[str] = "legalize-slice-starts"
    patterns: ClassVar[tuple[Pattern, ...]] = from_signed_starts
