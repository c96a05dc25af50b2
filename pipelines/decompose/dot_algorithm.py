"""``decompose-dot-algorithm``: the algorithm of a dot as conversions to wider types, or nothing.

Before::

    %0 = stablehlo.dot_general %a, %b, ..., algorithm = <lhs_precision_type = f64, rhs_precision_type = f64,
           accumulation_type = f64, ..., num_primitive_operations = 1> : (f32, f32) -> f32

After::

    %0 = convert(stablehlo.dot_general(convert(%a) : f64, convert(%b) : f64) : f64) : f32

An algorithm promises a least precision. Where it names types no wider than those of the operands and the result, these
are precise enough: XLA's CPU client and StableHLO's interpreter round nothing to narrower ones, and 3 x bf16 only
imitates f32.
Source: XLA "DotGeneral", StableHLO spec "dot_general" (DotAlgorithm).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.element_types import ElementType, element_type
from hloforge.dialect.mlir import AnyOp, ir, stablehlo
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import names_an_algorithm
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

_ATTRIBUTES = ("dot_dimension_numbers", "precision_config")


@pattern("stablehlo.dot_general")
def by_conversion(op: AnyOp) -> Replacement:
    """Convert the operands to the algorithm's precision and accumulate in its type, where these are wider."""
    if not names_an_algorithm(op):
        return NoMatch("no algorithm")
    algorithm = stablehlo.DotAlgorithm(op.attributes["algorithm"])
    lhs, rhs = map(Value, op.operands)
    result = Value(op.results[0])
    lhs = ops.convert_element_type(lhs, _wider(lhs.element_type, algorithm.lhs_precision_type))
    rhs = ops.convert_element_type(rhs, _wider(rhs.element_type, algorithm.rhs_precision_type))
    accumulator = _wider(result.element_type, algorithm.accumulation_type)
    created = ir.Operation.create(
        op.name,
        results=[ir.RankedTensorType.get(result.type.shape, ir.Type.parse(accumulator.mlir))],
        operands=[lhs.ir, rhs.ir],
        attributes={name: op.attributes[name] for name in _ATTRIBUTES if name in op.attributes},
    )
    return ops.convert_element_type(Value(created.result), result.element_type)


def _wider(element: ElementType, precision: ir.Type) -> ElementType:
    """The type of the precision if it holds every number of the element type, as only f32 and f64 do."""
    if not isinstance(precision, ir.F32Type | ir.F64Type):
        return element
    return max(element, element_type(precision), key=lambda row: row.bits)


@register
@dataclass(frozen=True)
class DecomposeDotAlgorithm(PatternPass):
    """Replace dots that name an algorithm by plain ones."""

    name: ClassVar[str] = "decompose-dot-algorithm"
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SAFE_PRODUCTS})
    patterns: ClassVar[tuple[Pattern, ...]] = by_conversion
