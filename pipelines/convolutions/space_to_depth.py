"""Space-to-depth for convolutions with long windows of one feature: window positions become features, in rows.

Before::

    %y = stablehlo.convolution(%x, %w) {stride 4} : [n,1532,1], [512,1,f] -> [n,256,f]

After::

    %u = concatenate (slices of %x)                         // [n,376,32]: 32 neighbours at every fourth place
    %y = convolution(%u, reshape %w) {dilation 8} : [n,376,32], [16,32,f] -> [n,256,f]      // a product in turn

IREE 3.13 reads windows of one feature number by number: the first layer of CREPE, 512 places, takes 13 times XLA's
time. Convolutions of more features are products (``unfold_convolutions.py``), which read the windows of an image as it
lies; the array of rows has ``places / stride`` times its elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import integers
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.canonical_order import InOrder
from hloforge.pipelines.analysis.space_to_depth_plan import WindowRows
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, pattern


@pattern("stablehlo.convolution")
def by_window_rows(op: ir.Operation) -> Replacement:
    """The same convolution of an array that has some places of the window beside each other."""
    rows = WindowRows.of(op)
    if rows is None:
        return NoMatch("no long windows of one feature")
    ordered = InOrder.of(op)
    space, axis = len(ordered.dims) - 2, rows.axis
    padding = _padding(op, space)
    edges = [(0, 0, 0)] * (space + 2)
    edges[axis + 1] = (*padding[axis], 0)
    made = ops.conv_with_general_padding(
        _laid_out(ops.pad(ordered.image, 0.0, edges), rows),
        _kernel(ordered.forwards(op), rows),
        _changed(integers(op, "window_strides") or [1] * space, axis, 1),
        _changed(padding, axis, (0, 0)),
        integers(op, "lhs_dilation"),
        _changed(integers(op, "rhs_dilation") or [1] * space, axis, rows.dilation),
        dimension_numbers=_features_last(space),
        preferred_element_type=Value(op.results[0]).element_type,
    )
    return ordered.result(made)


def _padding(op: Any, space: int) -> list[tuple[int, int]]:
    if "padding" not in op.attributes:
        return [(0, 0)] * space
    numbers = [int(number) for number in op.attributes["padding"]]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _changed(values: Sequence[Any], axis: int, value: Any) -> list[Any]:
    return [value if d == axis else other for d, other in enumerate(values)]


def _features_last(space: int) -> ops.ConvolutionDimensionNumbers:
    between = tuple(range(1, space + 1))
    image = 0, space + 1, between
    return ops.ConvolutionDimensionNumbers(*image, space, space + 1, tuple(range(space)), *image)


def _laid_out(image: Value, rows: WindowRows) -> Value:
    """``[n, .., size, .., 1]`` with its padding to ``[n, .., length, .., places]``."""
    axis, stride = rows.axis + 1, rows.stride
    dims = list(image.dims)
    if prod(dims[axis + 1 :]) > 1:
        parts = [range(at, at + (rows.length - 1) * stride + 1, stride) for at in range(rows.places)]
        return ops.concat_in_dim([_part(image, axis, part) for part in parts], image.rank - 1)
    # Elements between two windows lie beside each other as they are.
    near, rest = divmod(rows.places, stride)
    steps = rows.length + near - (not rest)
    edges = [(0, max(0, steps * stride - dims[axis]), 0) if d == axis else (0, 0, 0) for d in range(image.rank)]
    whole = _part(ops.pad(image, 0.0, edges), axis, range(steps * stride))
    apart = ops.reshape(whole, [*dims[:axis], steps, *dims[axis + 1 : -1], stride])
    columns = [_part(apart, axis, range(at, at + rows.length)) for at in range(near)]
    if rest:
        columns.append(_part(_part(apart, axis, range(near, near + rows.length)), apart.rank - 1, range(rest)))
    return ops.concat_in_dim(columns, apart.rank - 1)


def _part(image: Value, axis: int, part: range) -> Value:
    starts, limits, steps = [0] * image.rank, list(image.dims), [1] * image.rank
    starts[axis], limits[axis], steps[axis] = part.start, part.stop, part.step
    return ops.slice(image, starts, limits, steps)


def _kernel(kernel: Value, rows: WindowRows) -> Value:
    """``[.., window, .., 1, f]`` to ``[.., rows, .., places, f]``."""
    axis = rows.axis
    *window, _, outputs = kernel.dims
    apart = ops.reshape(kernel, [*window[:axis], rows.rows, rows.places, *window[axis + 1 :], outputs])
    order = [d for d in range(apart.rank) if d != axis + 1]
    order.insert(len(order) - 1, axis + 1)
    return ops.transpose(apart, order)
