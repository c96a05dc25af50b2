"""``legalize-common-gaps``: transposed convolutions whose pixels and weights lie apart by multiples of one number.

Before, with every second result between those that any weight reaches::

    %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
      window = {pad = [[4, 4]], lhs_dilate = [2], rhs_dilate = [2]}
      : (tensor<8x14x64xf32>, tensor<3x64x4xf32>) -> tensor<8x31x4xf32>

After::

    %y = stablehlo.convolution(%x, %w) …, window = {pad = [[2, 2]]} … -> tensor<8x16x4xf32>
    %r = stablehlo.pad %y, %zero, low = [0, 0, 0], high = [0, 0, 0], interior = [0, 1, 0]

What is left has no common divisor; a window or an image of one element has any. Source: P. P. Vaidyanathan, "Multirate
Systems and Filter Banks" (1993), the noble identities.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.emission import i64_matrix, i64s
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static, multiplies_nothing
from hloforge.pipelines.codegen.passes.convolutions_as_products import dimensions
from hloforge.pipelines.framework.facts import NORMALIZED, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


@pattern("stablehlo.convolution")
def between_gaps(op: ir.Operation) -> Replacement:
    """The convolution of what is reached, with zeros between."""
    if not is_static(op) or multiplies_nothing(op):
        return NoMatch("of unknown or no size")
    result = Value(op.results[0])
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    found = dimensions(op, numbers)
    # Distances of weights and of pixels, none of a single one. Results of other strides meet other remainders.
    gaps = [(one.steps[1] * (one.window > 1), one.steps[2] * (one.image > 1)) for one in found]
    common = [(gcd(*gap) or 1) if one.steps[0] == 1 else 1 for one, gap in zip(found, gaps, strict=True)]
    if max(common, default=1) == 1 or not result.shape.element_count:
        return NoMatch("gaps without a common divisor")
    sizes, edges = list(result.dims), [(0, 0, 0)] * result.rank
    padding, steps = [], []
    for one, gap, divisor, d in zip(found, gaps, common, numbers.output_spatial_dimensions, strict=True):
        if divisor == 1:
            padding.append([one.low, one.high])
            steps.append(one.steps[1:])
            continue
        # The first result that a weight reaches: its place is that of an element.
        first = one.low % divisor
        count = -(-(one.result - first) // divisor)
        dilation, base = (distance // divisor for distance in gap)
        if first >= one.result:
            return NoMatch("no result that a weight reaches")
        sizes[d] = count
        edges[d] = (first, one.result - first - (count - 1) * divisor - 1, divisor - 1)
        extent, image = (one.window - 1) * dilation + 1, (one.image - 1) * base + 1
        low = (one.low - first) // divisor
        padding.append([low, count - 1 + extent - image - low])
        steps.append((max(1, dilation), max(1, base)))
    made: Any = ir.Operation.create(
        "stablehlo.convolution",
        results=[ir.RankedTensorType.get(sizes, ir.RankedTensorType(result.ir.type).element_type)],
        operands=list(op.operands),
        attributes={name: op.attributes[name] for name in op.attributes}
        | {
            "padding": i64_matrix(padding, 2),
            "rhs_dilation": i64s([dilation for dilation, _ in steps]),
            "lhs_dilation": i64s([base for _, base in steps]),
        },
    )
    return [ops.pad(Value(made.results[0]), 0, edges)]


@register
@dataclass(frozen=True)
class LegalizeCommonGaps(PatternPass):
    """Zeros of results that no weight reaches are written, not computed."""

    name: ClassVar[str] = "legalize-common-gaps"
    requires: ClassVar[Facts] = NORMALIZED
    patterns: ClassVar[tuple[Pattern, ...]] = between_gaps
