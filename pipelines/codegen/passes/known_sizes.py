"""``fold-known-sizes``: sizes of arrays that the types say.

Before::

    %n = stablehlo.get_dimension_size %x, dim = 1 : (tensor<2x3xf32>) -> tensor<i32>

After::

    %n = stablehlo.constant dense<3> : tensor<i32>

Slices whose type says how many elements they have are dynamic slices: both are what CHLO's expansions leave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import defining_op, integer
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


@pattern("stablehlo.get_dimension_size")
def by_type(op: ir.Operation) -> Replacement:
    """get_dimension_size of a static dimension -> a constant."""
    type_, dimension = op.operands[0].type, integer(op, "dimension")
    if type_.is_dynamic_dim(dimension):
        return NoMatch("known at run time only")
    return constant(type_.get_dim_size(dimension), "s32")


@pattern("stablehlo.real_dynamic_slice")
def of_known_size(op: ir.Operation) -> Replacement:
    """real_dynamic_slice to a static type, each element -> dynamic_slice."""
    source, starts, _, strides = op.operands
    step = defining_op(strides)
    if not op.results[0].type.has_static_shape or not source.type.has_static_shape:
        return NoMatch("of dynamic size")
    if step is None or step.name != "stablehlo.constant" or (constant_of(step) != 1).any():
        return NoMatch("not each element")
    places = [ops.reshape(ops.slice(Value(starts), [d], [d + 1]), []) for d in range(source.type.rank)]
    return ops.dynamic_slice(Value(source), places, op.results[0].type.shape)


@register
@dataclass(frozen=True)
class FoldKnownSizes(PatternPass):
    """Replace questions for static sizes by their answers, and slices of static size."""

    name: ClassVar[str] = "fold-known-sizes"
    patterns: ClassVar[tuple[Pattern, ...]] = (*by_type, *of_known_size)
