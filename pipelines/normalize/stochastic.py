"""Conversions to integers that round up as often as the fraction says, by random bits.

Before::

    %r = "mhlo.stochastic_convert"(%x, %bits) : (tensor<4xf32>, tensor<4xui32>) -> tensor<4xi8>

After::

    %r = the integer below |%x|, and 1 where %bits is less than 2**32 times the fraction, with the sign of %x

Source: XLA "StochasticConvert", its decomposition.
"""

from __future__ import annotations

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.element_types import Kind
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, pattern


@pattern("mhlo.stochastic_convert")
def stochastic_convert(op: ir.Operation) -> Replacement:
    """Magnitudes are rounded; what is beyond the type is its end."""
    operand, bits = map(Value, op.operands)
    row = Value(op.results[0]).element_type
    if row.kind is not Kind.SIGNED:
        return NoMatch("a type that XLA does not round to")
    if operand.element_type.bits < 32:
        operand = ops.convert_element_type(operand, "f32")
    magnitude = ops.abs(operand)
    whole = ops.floor(magnitude)
    fraction = magnitude - whole
    threshold = ops.convert_element_type(fraction * 2.0**bits.element_type.bits, bits.element_type)
    count = ops.convert_element_type(whole, row)
    rounded = ops.select(ops.lt(bits, threshold), count + 1, count)
    signed = ops.select(ops.lt(operand, full(operand, 0)), -rounded, rounded)
    low, high = -(2 ** (row.bits - 1)), 2 ** (row.bits - 1) - 1
    bounded = ops.select(ops.le(operand, full(operand, float(low))), full(signed, low), signed)
    return ops.select(ops.ge(operand, full(operand, float(high))), full(signed, high), bounded)
