"""Grouped convolutions as sums of depthwise convolutions, which need no sum over channels.

Before::

    %y = stablehlo.convolution(%x, %w) {groups = g} : [n,*space,g*c], [*window,c,g*f] -> [n,*space,g*f]

After, for each of the c channels of a group::

    %x0 = every group's channel 0, f times : [n,*space,g*f]
    %y0 = stablehlo.convolution(%x0, %w[..., 0, :]) {groups = g*f}
    %y = %y0 + %y1 + ...

IREE 3.13 has vectors of neighbouring channels for convolutions by channels alone; others by groups it computes in loops
over single numbers: 32 groups of 4 channels take five times as long, groups of 16 four to ten times. Sums of 16-bit
floats are carried in f32, and rounded once.
"""

from __future__ import annotations

from functools import reduce

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.canonical_order import InOrder
from hloforge.pipelines.analysis.forms import is_better_by_channels
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, pattern


@pattern("stablehlo.convolution")
def by_channels(op: ir.Operation) -> Replacement:
    """Two-dimensional convolutions of floats by groups of few channels."""
    if not is_better_by_channels(op):
        return NoMatch("not by groups of few channels")
    convolution = InOrder.of(op)
    element = Value(op.results[0]).element_type
    wide = "f64" if element.name == "f64" else "f32"
    image, kernel = (ops.convert_element_type(value, wide) for value in (convolution.image, convolution.kernel))
    parts = [_channel(op, image, kernel, number, convolution.dims) for number in range(kernel.dims[2])]
    return convolution.result(ops.convert_element_type(reduce(ops.add, parts), element))


def _channel(op: ir.Operation, image: Value, kernel: Value, number: int, dims: list[int]) -> Value:
    """What one channel of each group contributes, to a result ``[n, *space, features]`` of these sizes."""
    *outer, features = image.dims
    *window, channels, outputs = kernel.dims
    groups = features // channels
    grouped = ops.reshape(image, [*outer, groups, channels])
    start, rank = [0] * len(outer), len(outer)
    taken = ops.slice(grouped, [*start, 0, number], [*outer, groups, number + 1], [1] * (rank + 2))
    spread = ops.broadcast_in_dim(taken, [*outer, groups, outputs // groups], range(rank + 2))
    weights = ops.slice(kernel, [0, 0, number, 0], [*window, number + 1, outputs], [1] * 4)
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes["feature_group_count"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), outputs)
    attributes["dimension_numbers"] = ir.Attribute.parse("#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>")
    made = ir.Operation.create(
        op.name,
        results=[ir.RankedTensorType.get(dims, image.type.element_type)],
        operands=[ops.reshape(spread, [*outer, outputs]).ir, weights.ir],
        attributes=attributes,
    )
    return Value(made.results[0])
