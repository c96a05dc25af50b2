"""``legalize-widened-broadcasts``: convert floats to wider ones before they are broadcast, not after.

Before::

    %b = stablehlo.broadcast_in_dim %x, dims = [0, 2] : (tensor<2x64xbf16>) -> tensor<2x4x64xbf16>
    %r = stablehlo.convert %b : (tensor<2x4x64xbf16>) -> tensor<2x4x64xf32>

After::

    %w = stablehlo.convert %x : (tensor<2x64xbf16>) -> tensor<2x64xf32>
    %r = stablehlo.broadcast_in_dim %w, dims = [0, 2] : (tensor<2x64xf32>) -> tensor<2x4x64xf32>

IREE 3.13 does the same among its last simplifications. Where two broadcasts read one reshape, one conversion of that
reshape is left, after its own pass that moves conversions before reshapes has run. The lowering to linalg moves it
then, by a pattern that changes types where the lowering does not see it: "failed to legalize unresolved source
materialization". Rotary embeddings in bf16 have that form, with queries and keys of different numbers of heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import defining_op, integers
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


@pattern("stablehlo.convert")
def broadcast_of_wider(op: ir.Operation) -> Replacement:
    """convert (broadcast_in_dim x) -> broadcast_in_dim (convert x) to wider floats, of static sizes."""
    narrow, wide = Value(op.operands[0]), Value(op.results[0])
    spread = defining_op(narrow.ir, "stablehlo.broadcast_in_dim")
    if spread is None:
        return NoMatch("no broadcast")
    if not (narrow.element_type.is_float and wide.element_type.is_float):
        return NoMatch("no floats")
    if wide.element_type.bits <= narrow.element_type.bits or not wide.shape.is_static:
        return NoMatch("not wider, or dynamic")
    converted = ops.convert_element_type(Value(spread.operands[0]), wide.element_type)
    return ops.broadcast_in_dim(converted, wide.dims, integers(spread, "broadcast_dimensions"))


@register
@dataclass(frozen=True)
class LegalizeWidenedBroadcasts(PatternPass):
    """Convert before broadcasts what is converted to wider floats after them."""

    name: ClassVar[str] = "legalize-widened-broadcasts"
    patterns: ClassVar[tuple[Pattern, ...]] = broadcast_of_wider
