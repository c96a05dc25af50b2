"""``legalize-product-factors``: booleans, unsigned numbers and narrower types as factors of products.

Before::

    %x = stablehlo.convert %mask : (tensor<4x4xi1>) -> tensor<4x4xf32>
    %r = stablehlo.dot_general %a, %x, ... : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>

After::

    %x = stablehlo.select %mask, %ones, %zeros : tensor<4x4xi1>, tensor<4x4xf32>

IREE 3.13 makes the conversion a part of the product, and there takes every integer for a signed one: true counts as -1,
200 of u8 as -56. An unsigned number is kept from that by a barrier after its conversion, also where the product itself
is in a wider type. So are the factors of a convolution by groups, or of complex numbers, in a wider type than their
own, where IREE's compiler mixes the types up, also where the program itself converts them; and those of two products of
one array that sum nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.element_types import Kind
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_mixed_up_factor, is_unsigned_factor, mixes_up_types
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


@pattern("stablehlo.convert")
def of_booleans(op: ir.Operation) -> Replacement:
    """convert(mask) -> select(mask, 1, 0), where it is multiplied."""
    mask, element = Value(op.operands[0]), Value(op.results[0]).element_type
    if mask.element_type.kind is not Kind.PRED or not is_unsigned_factor(op):
        return NoMatch("not a boolean factor")
    return ops.select(mask, full(mask, 1, element), full(mask, 0, element))


@pattern("stablehlo.convert")
def of_unsigned(op: ir.Operation) -> Replacement:
    """convert(u) -> barrier(convert(u)), where it is multiplied, and where IREE would mix the types up."""
    if not is_unsigned_factor(op) and not is_mixed_up_factor(op):
        return NoMatch("neither an unsigned factor nor one whose type IREE mixes up")
    return ops.optimization_barrier(ops.convert_element_type(Value(op.operands[0]), Value(op.results[0]).element_type))


@pattern("stablehlo.convolution", "stablehlo.dot_general")
def of_one_type(op: ir.Operation) -> Replacement:
    """product(a, b) -> product(barrier(convert(a)), barrier(convert(b)))."""
    if not mixes_up_types(op):
        return NoMatch("IREE takes both types")
    result = Value(op.results[0])
    factors = [ops.convert_element_type(Value(operand), result.element_type) for operand in op.operands]
    attributes = {name: op.attributes[name] for name in op.attributes}
    return emit(op.name, [ops.optimization_barrier(factor) for factor in factors], result.type, **attributes)


@register
@dataclass(frozen=True)
class LegalizeProductFactors(PatternPass):
    """Separate conversions from the products that read them, where IREE is wrong when it fuses both."""

    name: ClassVar[str] = "legalize-product-factors"
    patterns: ClassVar[tuple[Pattern, ...]] = (*of_one_type, *of_booleans, *of_unsigned)
