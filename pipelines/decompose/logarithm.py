"""``decompose-logarithm``: logarithm of float64 as arithmetic, of float32 without subnormal numbers.

Before::

    %l = stablehlo.log %x : tensor<4xf64>
    %m = stablehlo.log %y : tensor<4xf32>

After: x = 2^k (1 + f) by the exponent's bits, ln x = k ln 2 + ln(1 + f), the last as a series in f / (2 + f)::

    %z = select |%y| < 2^-126, 0, %y
    %m = stablehlo.log %z {hloforge.normal} : tensor<4xf32>

GPUs behind Vulkan have no logarithm of f64: SPIR-V's extended instructions take 16 and 32 bits. Within an ulp. Of
subnormal f32 Mesa's is the least normal number's, -87.3; XLA's is that of 0, minus infinity. bf16 is computed in f32.
Source: FreeBSD msun e_log.c (Sun Microsystems, 1993); special values: IEEE 754-2019, 9.2.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan, sqrt
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.emission import emit
from hloforge.dialect.marks import NORMAL
from hloforge.dialect.mlir import AnyOp, ir
from hloforge.dialect.values import Value
from hloforge.pipelines.decompose.real_arithmetic import (
    EXPONENT_OF_ONE,
    MANTISSA,
    SIGN,
    SUBNORMAL_EXPONENT,
    bits,
    from_bits,
    is_nan,
    is_negative,
    normalized,
    polynomial,
)
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, apply_patterns, pattern
from hloforge.pipelines.series import LN2, LOGARITHM

# A logarithm of f32 that gets no subnormal number.
_LEAST_NORMAL = 2.0**-126


def log(x: Value) -> Value:
    """Natural logarithm of float64 with C's special values."""
    word = bits(x) & (SIGN - 1)
    none = word.eq(0)
    finite = (word < bits(full(x, inf))) & ~none
    normal, subnormal = normalized(ops.select(finite, from_bits(word), 1.0))
    word_of_normal = bits(normal)
    mantissa = from_bits((word_of_normal & MANTISSA) | EXPONENT_OF_ONE)
    large = mantissa > sqrt(2.0)
    exponent = ops.bitcast_convert_type(word_of_normal >> 52, "s64") - 1023
    exponent = exponent + ops.convert_element_type(large, "s64")
    exponent = exponent + ops.select(subnormal, full(exponent, SUBNORMAL_EXPONENT), 0)
    k = ops.convert_element_type(ops.convert_element_type(exponent, "s32"), "f64")
    f = mantissa * ops.select(large, full(x, 0.5), 1.0) - 1.0
    s = f / (f + 2.0)
    square = s * s
    half = f * f * 0.5
    tail = s * (half + square * polynomial(square, LOGARITHM))
    value = k * LN2[0] - ((half - (tail + k * LN2[1])) - f)
    edge = ops.select(none, full(x, -inf), ops.select(is_negative(x), full(x, nan), inf))
    return ops.select(is_nan(x), x, ops.select(finite & ~is_negative(x), value, edge))


def is_unsafe(op: AnyOp) -> bool:
    """Whether a ``log`` is of f64, or may be of a subnormal number."""
    return NORMAL not in op.attributes


@pattern("stablehlo.log")
def of_normal_numbers(op: ir.Operation) -> Replacement:
    """log of bf16, f32 -> log of f32, of 0 for subnormal numbers; any shape."""
    x = Value(op.operands[0])
    row = x.element_type
    if row.name not in ("bf16", "f32") or not is_unsafe(op):
        return NoMatch("not f32, or of normal numbers")
    wide = ops.convert_element_type(x, "f32")
    normal = ops.select(ops.abs(wide) < _LEAST_NORMAL, full(wide, 0), wide)
    logarithm = emit("stablehlo.log", [normal], wide.ir.type, **{NORMAL: ir.UnitAttr.get()})
    return ops.convert_element_type(logarithm, row)


@pattern("stablehlo.log")
def of_narrow_numbers(op: ir.Operation) -> Replacement:
    """log of bf16 -> log of f32, of 0 for subnormal numbers; any shape."""
    if Value(op.operands[0]).element_type.name != "bf16":
        return NoMatch("not bf16")
    return of_normal_numbers[0].rewrite(op)


@pattern("stablehlo.log")
def by_series(op: ir.Operation) -> Replacement:
    """log of f64 -> arithmetic; any shape."""
    operand = Value(op.operands[0])
    if operand.element_type.name != "f64":
        return NoMatch("not f64")
    return log(operand)


@register
@dataclass(frozen=True)
class DecomposeLogarithm(Pass):
    """Replace float64 logarithms by arithmetic, and keep subnormal numbers from those of float32.

    Attributes:
        narrow_only: of bfloat16 alone: CUDA has the others, but IREE's own for it takes subnormal numbers for the least
            normal one.
    """

    name: ClassVar[str] = "decompose-logarithm"
    narrow_only: bool = False

    def run(self, module: ir.Module) -> None:
        apply_patterns(module, of_narrow_numbers if self.narrow_only else (*by_series, *of_normal_numbers))
