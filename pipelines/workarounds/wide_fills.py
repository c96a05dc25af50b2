"""``legalize-wide-fills``: pad numbers of 64 bits with zeros.

Before::

    %r = stablehlo.pad %x, %v, low = [1], high = [0], interior = [0] : ... -> tensor<9xf64>

After::

    %b = broadcast_in_dim (bitcast_convert %v) : tensor<9xi64>
    %z = stablehlo.pad (xor (bitcast_convert %x), ...), 0, low = [1], high = [0], interior = [0] : ... -> tensor<9xi64>
    %r = bitcast_convert (xor %z, %b) : tensor<9xf64>

IREE writes into a filled array in place. No command of a device fills with 64 bits, so IREE 3.13 makes dispatches of
such fills after it has decided what is overwritten, and then merges equal ones (``iree-stream-materialize-builtins``
and ``cse``): two paddings with the same value write into one array, or the compiler fails ("used resource not listed in
explicit captures"). Zeros are a fill of one byte. What is combined with the value is combined with it a second time,
which gives the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.wide_fills import is_wide_fill
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

_BITS = "u64"


@pattern("stablehlo.pad")
def padded_with_zeros(op: ir.Operation) -> Replacement:
    """pad x, v -> xor (pad (xor x, v), 0), v for elements of 64 bits that no smaller fill repeats."""
    x, value = Value(op.operands[0]), Value(op.operands[1])
    if not is_wide_fill(value.ir) or not op.results[0].type.has_static_shape:
        return NoMatch("IREE fills with fewer bits")
    key = ops.bitcast_convert_type(value, _BITS)
    attributes = {name: op.attributes[name] for name in op.attributes}
    combined = ops.xor(ops.bitcast_convert_type(x, _BITS), ops.broadcast(key, x.dims))
    type_ = ir.RankedTensorType.get(op.results[0].type.shape, combined.ir.type.element_type)
    padded = emit("stablehlo.pad", [combined, ops.constant(0, _BITS)], type_, **attributes)
    return ops.bitcast_convert_type(ops.xor(padded, ops.broadcast(key, padded.dims)), x.element_type)


@register
@dataclass(frozen=True)
class LegalizeWideFills(PatternPass):
    """Pad numbers of 64 bits with zeros, and change both sides by the value."""

    name: ClassVar[str] = "legalize-wide-fills"
    patterns: ClassVar[tuple[Pattern, ...]] = padded_with_zeros
