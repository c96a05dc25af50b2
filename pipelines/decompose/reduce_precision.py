"""``decompose-reduce-precision``: rounding to a format of fewer bits, as arithmetic on the bits.

Before::

    %r = stablehlo.reduce_precision %x, format = e5m2 : tensor<4xf32>

After, on the bits of %x, with 21 bits of the mantissa to drop::

    %b = %x + ((%x >> 21) & 1) + (2^20 - 1), the low 21 bits cleared        // to nearest, ties to even
    %r = zero where the exponent of %b is too small, infinity where it is too large, of %x's sign; NaN stays

IREE 3.13 crashes on arrays of dynamic size, and keeps NaN where XLA makes infinity of it. Subnormal numbers of the
smaller format are flushed to zero, as XLA does. With no bit of the mantissa NaN cannot be told from infinity, and
becomes it, positive.
Source: XLA "ReducePrecision", StableHLO spec "reduce_precision".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import ml_dtypes

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import integer
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_no_bf16_rounding
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


@pattern("stablehlo.reduce_precision")
def on_bits(op: ir.Operation) -> Replacement:
    """reduce_precision -> integer arithmetic, for floats of at least 16 bits; any shape."""
    if not is_no_bf16_rounding(op):
        return NoMatch("IREE rounds static f32 to bf16 rightly")
    operand = Value(op.operands[0])
    if operand.element_type.bits < 16:
        return NoMatch("legalize-narrow-floats has it computed in f32")
    return rounded(operand, integer(op, "exponent_bits"), integer(op, "mantissa_bits"))


def rounded(x: Value, exponent_bits: int, mantissa_bits: int) -> Value:
    """x rounded to the nearest number of a format, ties to even; at least one bit of exponent."""
    row = x.element_type
    info = ml_dtypes.finfo(row.dtype)
    mantissa, exponent = int(info.nmant), row.bits - 1 - int(info.nmant)
    word = ops.bitcast_convert_type(x, f"u{row.bits}")
    sign = 1 << (row.bits - 1)
    infinity = ((1 << exponent) - 1) << mantissa
    result = word
    dropped = mantissa - mantissa_bits
    if dropped > 0:
        even = (word >> full(word, dropped)) & 1
        result = (word + even + ((1 << (dropped - 1)) - 1)) & (sign * 2 - (1 << dropped))
    if exponent_bits < exponent:
        bias, reach = (1 << (exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        power = result & infinity
        result = ops.select(power > (bias + reach) << mantissa, (word & sign) | infinity, result)
        result = ops.select(power <= (bias - reach) << mantissa, word & sign, result)
    not_a_number = (word & (sign - 1)) > infinity
    kept = full(word, infinity) if mantissa_bits == 0 else word
    return ops.bitcast_convert_type(ops.select(not_a_number, kept, result), row)


@register
@dataclass(frozen=True)
class DecomposeReducePrecision(PatternPass):
    """Replace reduce_precision by integer arithmetic."""

    name: ClassVar[str] = "decompose-reduce-precision"
    patterns: ClassVar[tuple[Pattern, ...]] = on_bits
