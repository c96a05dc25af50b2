"""``decompose-map``: a computation over scalars applied to whole arrays.

Before::

    %r = "stablehlo.map"(%x, %y) ({ scalars a, b: a * b + 1 }) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>

After::

    %r = %x * %y + 1, on tensor<4xf32>

A computation with branches, loops or reductions runs element by element in a loop: IREE has no loops inside a kernel.
Source: XLA "Map", StableHLO spec "map".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.idioms import for_loop, zeros
from hloforge.dialect.mlir import ir
from hloforge.dialect.regions import inline_region, is_elementwise, vectorize_region
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


@pattern("stablehlo.map")
def on_arrays(op: ir.Operation) -> Replacement:
    """map -> its computation on arrays, or a loop over the elements; static shapes."""
    operands = [Value(operand) for operand in op.operands]
    result = Value(op.results[0])
    if not result.shape.is_static:
        return NoMatch("dynamic size")
    region = op.regions[0]
    if is_elementwise(region):
        return vectorize_region(region, operands)
    count = prod(result.dims)
    if count == 0:
        return zeros(result.element_type, result.dims)
    flat = [ops.reshape(operand, [count]) for operand in operands]

    def turn(number: Value, filled: Value) -> list[Value]:
        scalars = [ops.reshape(ops.dynamic_slice(values, [number], [1]), []) for values in flat]
        (value,) = inline_region(region, scalars)
        return [ops.dynamic_update_slice(filled, ops.reshape(value, [1]), [number])]

    (filled,) = for_loop(count, [zeros(result.element_type, [count])], turn)
    return ops.reshape(filled, result.dims)


@register
@dataclass(frozen=True)
class DecomposeMap(PatternPass):
    """Replace every map of static shape."""

    name: ClassVar[str] = "decompose-map"
    patterns: ClassVar[tuple[Pattern, ...]] = on_arrays
