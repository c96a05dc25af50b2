"""Convolutions of many features to a few: an image per position of the window, then the sum of these images.

Before::

    %y = stablehlo.convolution(%x, %w) : [n,*space,c], [*window,c,f] -> [n,*space,f]

After::

    %p = dot_general %w, (pad %x)                           // [places, f, n, *padded space]
    %y = (slice %p of place 0) + (slice %p of place 1) + ...

A product of the windows with a column or a few has no vectors: IREE 3.13 multiplies number by number, and takes three
to seven times XLA's time. Here the columns are positions of the image, and every factor is read once.
"""

from __future__ import annotations

from functools import reduce
from itertools import product
from math import prod
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.mlir import AnyOp, ir, stablehlo
from hloforge.dialect.operations import integers
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.canonical_order import InOrder
from hloforge.pipelines.analysis.forms import has_few_outputs
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, pattern


@pattern("stablehlo.convolution")
def by_places(op: ir.Operation) -> Replacement:
    """Convolutions of floats to a few features."""
    if not has_few_outputs(op):
        return NoMatch("not of many features to a few")
    ordered, element = InOrder.of(op), Value(op.results[0]).element_type
    *window, channels, outputs = ordered.kernel.dims
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    kernel = ops.reshape(ordered.forwards(op), [prod(window), channels, outputs])
    image, axis = Value(op.operands[0]), numbers.input_feature_dimension
    edges = [(0, 0, 0)] * image.rank
    for d, edge in zip(numbers.input_spatial_dimensions, _edges(op, len(window)), strict=True):
        edges[d] = edge
    rows = ops.reshape(ops.transpose(kernel, [0, 2, 1]), [prod(window) * outputs, channels])
    contracted = ops.DotDimensionNumbers((1,), (axis,))
    places = ops.dot_general(
        rows, ops.pad(image, 0.0, edges), contracted, preferred_element_type="f64" if element.name == "f64" else "f32"
    )
    left = [d for d in range(image.rank) if d != axis]
    order = [left.index(d) + 1 for d in (numbers.input_batch_dimension, *numbers.input_spatial_dimensions)]
    moved = ops.transpose(places, [0, *order])
    apart = ops.reshape(moved, [prod(window), outputs, *moved.dims[1:]])
    parts = [_part(op, apart, number, at, ordered.dims) for number, at in enumerate(product(*map(range, window)))]
    # [1, f, n, *space]
    total = ops.convert_element_type(reduce(ops.add, parts), element)
    features_first = ops.reshape(total, total.dims[1:])
    return ordered.result(ops.transpose(features_first, [*range(1, features_first.rank), 0]))


def _edges(op: Any, space: int) -> list[tuple[int, int, int]]:
    numbers = [int(number) for number in op.attributes["padding"]] if "padding" in op.attributes else [0] * (2 * space)
    dilations = integers(op, "lhs_dilation") or [1] * space
    return [(low, high, step - 1) for low, high, step in zip(numbers[::2], numbers[1::2], dilations, strict=True)]


def _part(op: AnyOp, places: Value, number: int, at: tuple[int, ...], dims: list[int]) -> Value:
    """What one position of the window adds to each result, ``[1, f, n, *space]``."""
    dilations = integers(op, "rhs_dilation") or [1] * len(at)
    strides = integers(op, "window_strides") or [1] * len(at)
    starts = [place * dilation for place, dilation in zip(at, dilations, strict=True)]
    limits = [start + (size - 1) * stride + 1 for start, size, stride in zip(starts, dims[1:-1], strides, strict=True)]
    return ops.slice(places, [number, 0, 0, *starts], [number + 1, dims[-1], dims[0], *limits], [1, 1, 1, *strides])
