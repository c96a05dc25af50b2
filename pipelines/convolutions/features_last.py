"""Convolutions whose features are before the space, in the order that IREE has vectors for: features last.

Before::

    %y = stablehlo.convolution(%x, %w) {b f 0 1, o i 0 1 -> b f 0 1} : [n,3,h,w], [f,3,7,7] -> [n,f,h,w]

After::

    %y = transpose (stablehlo.convolution(transpose %x, transpose %w) {b 0 1 f, 0 1 i o -> b 0 1 f})

IREE 3.13 vectorizes such convolutions over the features of the result where they lie beside each other, and computes
others in loops over single numbers: the first layer of a ResNet, 7x7 by 3 features, takes 50 times as long, a
depthwise one 9 times, those of integers and f64 15 to 30 times. Barriers are in between, because IREE would move the
transpositions into the convolution. Reversed kernels are reversed before, which IREE forgets of groups.
"""

from __future__ import annotations

from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.canonical_order import InOrder, numbers_of_order
from hloforge.pipelines.analysis.forms import is_better_features_last
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, pattern


@pattern("stablehlo.convolution")
def by_features_last(op: Any) -> Replacement:
    """The same convolution between transpositions."""
    if not is_better_features_last(op):
        return NoMatch("the features are last, and nothing is reversed")
    ordered = InOrder.of(op)
    attributes = {name: op.attributes[name] for name in op.attributes if name != "window_reversal"}
    attributes["dimension_numbers"] = numbers_of_order(len(ordered.dims) - 2, first=False)
    result = ir.RankedTensorType.get(ordered.dims, Value(op.results[0]).type.element_type)
    pairs = zip((ordered.image, ordered.forwards(op)), map(Value, op.operands), strict=True)
    operands = [moved if moved.ir == operand.ir else ops.optimization_barrier(moved) for moved, operand in pairs]
    made = emit(op.name, operands, result, **attributes)
    return made if ordered.order == sorted(ordered.order) else ordered.result(ops.optimization_barrier(made))
