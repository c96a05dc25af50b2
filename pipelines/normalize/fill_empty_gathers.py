"""``fill-empty-gathers``: gathers of slices without elements as zeros.

Before::

    %r = "stablehlo.gather"(%x, %i) {collapsed_slice_dims = [0], slice_sizes = [0, 2]} : (tensor<0x2xf32>, ...) -> ...

After::

    %r = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<3x2xf32>

A slice whose collapsed dimension has the size 0 has nothing to collapse, and whoever computes the gather reads outside
of the operand. StableHLO allows such slices and says no values. Source: XLA's ``GatherSimplifier``: they are 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.idioms import zeros
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import integers
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.facts import Fact, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


@pattern("stablehlo.gather")
def as_zeros(op: ir.Operation) -> Replacement:
    """gather of empty slices -> 0, where the result has elements; static result."""
    result = Value(op.results[0])
    if 0 not in integers(op, "slice_sizes") or not result.shape.is_static:
        return NoMatch("its slices have elements")
    return zeros(result.element_type, result.dims)


@register
@dataclass(frozen=True)
class FillEmptyGathers(PatternPass):
    """Replace gathers of slices without elements by zeros."""

    name: ClassVar[str] = "fill-empty-gathers"
    requires: ClassVar[Facts] = frozenset({Fact.NO_TUPLES, Fact.ONE_FUNCTION})
    patterns: ClassVar[tuple[Pattern, ...]] = as_zeros
