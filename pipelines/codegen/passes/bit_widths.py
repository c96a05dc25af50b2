"""``decompose-bit-widths``: bitcasts between elements of different widths as shifts.

Before::

    %b = stablehlo.bitcast_convert %x : (tensor<5xf32>) -> tensor<5x4xui8>

After: the number's bits moved down by those of the parts before::

    %n = stablehlo.bitcast_convert %x : (tensor<5xf32>) -> tensor<5xui32>
    %m = stablehlo.shift_right_logical %broadcast, %places : tensor<5x4xui32>
    %b = stablehlo.convert %m : (tensor<5x4xui32>) -> tensor<5x4xui8>

In the other direction the parts are moved up, and joined by ``or``. Code generation reads elements by their places, so
that an element of another width would be at no place. Source: StableHLO spec "bitcast_convert".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern
from hloforge.pipelines.workarounds.complex_parts import bitcast_of_parts


@pattern("stablehlo.bitcast_convert")
def by_shifts(op: ir.Operation) -> Replacement:
    """bitcast_convert of real numbers to a wider or narrower type."""
    operand, result = Value(op.operands[0]), Value(op.results[0])
    given, wanted = operand.element_type, result.element_type
    if given.bits == wanted.bits or not is_static(op):
        return NoMatch("of one width, or of dynamic size")
    if given.is_complex or wanted.is_complex or min(given.bits, wanted.bits) < 8:
        return NoMatch("parts of numbers, or no whole bytes")
    if given.bits > wanted.bits:
        return _parts(operand, result)
    return _whole(operand, result)


def _parts(operand: Value, result: Value) -> Value:
    bits = ops.bitcast_convert_type(operand, f"u{operand.element_type.bits}")
    spread = ops.broadcast_in_dim(bits, result.dims, list(range(operand.rank)))
    part = ops.convert_element_type(spread >> _places(spread, result.element_type.bits), _unsigned(result))
    return ops.bitcast_convert_type(part, result.element_type)


def _whole(operand: Value, result: Value) -> Value:
    bits = ops.bitcast_convert_type(operand, _unsigned(operand))
    wide = ops.convert_element_type(bits, _unsigned(result))
    moved = wide << _places(wide, operand.element_type.bits)
    return ops.bitcast_convert_type(ops.reduce(moved, 0, ops.or_, [moved.rank - 1]), result.element_type)


def _unsigned(value: Value) -> str:
    return f"u{value.element_type.bits}"


def _places(bits: Value, width: int) -> Value:
    """How far each part is moved: parts lie along the last dimension, the lowest bits first."""
    return ops.iota(bits.element_type, bits.dims, bits.rank - 1) * width


@register
@dataclass(frozen=True)
class DecomposeBitWidths(PatternPass):
    """Replace bitcasts that change the width of elements."""

    name: ClassVar[str] = "decompose-bit-widths"
    patterns: ClassVar[tuple[Pattern, ...]] = (*bitcast_of_parts, *by_shifts)
