"""``legalize-half-convolutions``: convolutions of f16 multiply numbers that were widened once.

Before::

    %y = stablehlo.convolution(%x, %w) … : (tensor<1x28x28x64xf16>, tensor<3x3x64x32xf16>) -> tensor<1x28x28x32xf32>

After, with weights that are constants widened now::

    %wide = stablehlo.convert %x : (tensor<1x28x28x64xf16>) -> tensor<1x28x28x64xf32>
    %y = stablehlo.convolution(%wide, %w32) … : (…xf32, …xf32) -> tensor<1x28x28x32xf32>

A convolution reads each number for each position of its window and some features at a time, and processors without
products of f16 widen it each time. Sums are f32 in both forms. Depthwise ones read each number few times. Zen 3, 64 to
128 features of 28x28 by 1x1: 525 and 200 µs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import SSAValue, ir
from hloforge.dialect.operations import defining_op, integer
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


@pattern("stablehlo.convolution")
def of_half_precision(op: ir.Operation) -> Replacement:
    """Widen both factors, and round the sums if the result is f16."""
    factors = list(map(Value, op.operands))
    result = Value(op.results[0])
    if any(factor.element_type.name != "f16" for factor in factors) or not is_static(op):
        return NoMatch("not of f16, or of unknown size")
    if integer(op, "feature_group_count") > 1 or integer(op, "batch_group_count") > 1:
        return NoMatch("groups have few features each")
    attributes = {name: op.attributes[name] for name in op.attributes}
    sums = emit(op.name, [_widened(factor.ir) for factor in factors], Shape.array("f32", *result.dims), **attributes)
    return ops.convert_element_type(sums, result.element_type)


def _widened(value: SSAValue) -> Value:
    known = defining_op(value, "stablehlo.constant")
    return ops.convert_element_type(Value(value), "f32") if known is None else constant(constant_of(known), "f32")


@register
@dataclass(frozen=True)
class LegalizeHalfConvolutions(PatternPass):
    """Widen what convolutions of f16 multiply."""

    name: ClassVar[str] = "legalize-half-convolutions"
    patterns: ClassVar[tuple[Pattern, ...]] = of_half_precision
