"""``fill-empty-parts``: gathers of slices without elements, and transforms of length 0, as zeros.

Before::

    %r = "stablehlo.gather"(%x, %i) {collapsed_slice_dims = [0], slice_sizes = [0, 2]} : (tensor<0x2xf32>, ...) -> ...

After::

    %r = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<3x2xf32>

A slice whose collapsed dimension has the size 0 has nothing to collapse, and whoever computes the gather reads outside
of the operand. StableHLO allows such slices and says no values. Source: XLA's ``GatherSimplifier``: they are 0.
Fourier transforms of length 0 are 0 in XLA's evaluator (``FftTransform``); its CPU client leaves memory as it was.
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


@pattern("stablehlo.fft")
def without_length(op: ir.Operation) -> Replacement:
    """fft of length 0 -> 0."""
    if 0 not in integers(op, "fft_length"):
        return NoMatch("it transforms something")
    result = Value(op.results[0])
    return zeros(result.element_type, result.dims) if result.shape.is_static else NoMatch("of unknown size")


@register
@dataclass(frozen=True)
class FillEmptyParts(PatternPass):
    """Replace gathers of slices without elements, and transforms of length 0, by zeros."""

    name: ClassVar[str] = "fill-empty-parts"
    requires: ClassVar[Facts] = frozenset({Fact.NO_TUPLES, Fact.ONE_FUNCTION})
    patterns: ClassVar[tuple[Pattern, ...]] = (*as_zeros, *without_length)
