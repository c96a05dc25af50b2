"""``legalize-complex-products``: separate products from complex numbers whose parts are computed from them.

Before::

    %z = stablehlo.complex %re, %im          // %re or %im: of elements of a dot_general's result

After::

    %parts:2 = stablehlo.optimization_barrier %re, %im
    %z = stablehlo.complex %parts#0, %parts#1

    %v = stablehlo.dot_general %a, %b, ...    // complex; of a single row or column
    four products of the parts, whose sum and difference are the parts of %v

IREE 3.13 computes the products, what elementwise operations make of them and the numbers in one dispatch, and has no
SPIR-V for its vectors of one complex number, nor for the part of the array that a workgroup writes. Neither has it for
products with a vector, which subgroups sum. Source: XLA "Complex", "OptimizationBarrier".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.regions import ELEMENTWISE
from hloforge.dialect.values import Value, leaves
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

# What IREE computes in the dispatch of a product.
_FUSED = ELEMENTWISE | {f"stablehlo.{name}" for name in ("broadcast_in_dim", "reshape", "slice", "transpose")}


def joins_products(op: ir.Operation) -> bool:
    """Whether an operand of a ``complex`` is computed element by element from results of ``dot_general``."""
    waiting, seen = [operand.owner for operand in op.operands], set()
    while waiting:
        owner = waiting.pop()
        if isinstance(owner, ir.Block) or owner in seen:
            continue
        if owner.name == "stablehlo.dot_general":
            return True
        seen.add(owner)
        if owner.name in _FUSED:
            waiting += [operand.owner for operand in owner.operands]
    return False


@pattern("stablehlo.complex")
def behind_a_barrier(op: ir.Operation) -> Replacement:
    """complex(re, im) -> the same of what a barrier passes on."""
    if not joins_products(op):
        return NoMatch("no product")
    real, imaginary = leaves(ops.optimization_barrier([Value(operand) for operand in op.operands]))
    return ops.complex(real, imaginary)


def is_complex_row(op: ir.Operation) -> bool:
    """Whether a ``dot_general`` of complex numbers has one row or one column, of known size."""
    if not is_static(op) or not isinstance(op.results[0].type.element_type, ir.ComplexType):
        return False
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    lhs, rhs = ([*op_.type.shape] for op_ in op.operands)
    taken = [*numbers.lhs_batching_dimensions, *numbers.lhs_contracting_dimensions]
    of_rhs = [*numbers.rhs_batching_dimensions, *numbers.rhs_contracting_dimensions]
    free = (prod(size for d, size in enumerate(dims) if d not in away) for dims, away in ((lhs, taken), (rhs, of_rhs)))
    return 1 in free


@pattern("stablehlo.dot_general")
def by_parts(op: ir.Operation) -> Replacement:
    """(a + bi)(c + di) = ac - bd + (ad + bc)i, of arrays."""
    if not is_complex_row(op):
        return NoMatch("not complex, or no vector")
    a, b, c, d = (part(Value(operand)) for operand in op.operands for part in (ops.real, ops.imag))
    type_ = ir.RankedTensorType.get(op.results[0].type.shape, a.ir.type.element_type)

    def dot(x: Value, y: Value) -> Value:
        attributes = {name: op.attributes[name] for name in op.attributes}
        return Value(ir.Operation.create(op.name, [type_], [x.ir, y.ir], attributes).result)

    return ops.complex(dot(a, c) - dot(b, d), dot(a, d) + dot(b, c))


@register
@dataclass(frozen=True)
class LegalizeComplexProducts(PatternPass):
    """Put barriers between products and the complex numbers made of them; multiply vectors by parts."""

    name: ClassVar[str] = "legalize-complex-products"
    patterns: ClassVar[tuple[Pattern, ...]] = (*by_parts, *behind_a_barrier)
