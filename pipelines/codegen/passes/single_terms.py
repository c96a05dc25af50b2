"""``legalize-single-terms``: a reduction of one term each is its computation, applied to whole arrays.

Before::

    %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [2]
      : (tensor<1857x3x1xf32>, tensor<f32>) -> tensor<1857x3xf32>

After::

    %s = stablehlo.add (broadcast of %zero), (reshape of %x) : tensor<1857x3xf32>

Programs for any number of features, classes or channels are written with sums, and called with one. A reduction has a
loop of its own and memory for its result, an elementwise operation has neither, where others read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import integers
from hloforge.dialect.regions import is_elementwise, vectorize_region
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


@pattern("stablehlo.reduce")
def of_one_term(op: ir.Operation) -> Replacement:
    """A reduction along dimensions of size 1."""
    if not is_static(op) or not is_elementwise(op.regions[0]):
        return NoMatch("of unknown size, or its computation is not one of single operations")
    operands = [Value(operand) for operand in op.operands]
    arrays, starts = operands[: len(operands) // 2], operands[len(operands) // 2 :]
    dims = integers(op, "dimensions")
    if any(arrays[0].dims[d] != 1 for d in dims):
        return NoMatch("several terms")
    kept = [size for d, size in enumerate(arrays[0].dims) if d not in dims]
    terms = [ops.reshape(array, kept) for array in arrays]
    return vectorize_region(op.regions[0], [*(ops.broadcast_in_dim(start, kept, []) for start in starts), *terms])


@register
@dataclass(frozen=True)
class LegalizeSingleTerms(PatternPass):
    """Reductions of one term have no loops."""

    name: ClassVar[str] = "legalize-single-terms"
    patterns: ClassVar[tuple[Pattern, ...]] = of_one_term
