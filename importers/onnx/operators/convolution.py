"""Convolutions: plain, transposed, of integers, deformed; columns back to images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.values import Value
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.roundings import rounds_once, sums_in
from hloforge.importers.onnx.window_attributes import windows_of
from hloforge.importers.tensors import along, broadcast_to, cast, fill, lift, window


def convolve(
    x: Value,
    kernel: Value,
    strides: Sequence[int],
    pads: Sequence[tuple[int, int]],
    dilations: Sequence[int],
    groups: int,
    preferred: Any = None,
) -> Value:
    """``[n, c, spatial...]`` by ``[o, c / groups, spatial...]`` to ``[n, o, spatial...]``."""
    places = tuple(range(2, x.rank))
    layout = ops.ConvolutionDimensionNumbers(0, 1, places, 1, 0, places, 0, 1, places)
    return ops.conv_with_general_padding(
        x,
        kernel,
        strides,
        pads,
        rhs_dilation=dilations,
        feature_group_count=groups,
        dimension_numbers=layout,
        precision="HIGHEST",
        preferred_element_type=preferred,
    )


@operator("Conv")
def convolution(node: Node) -> Value:
    x, kernel = node.value(0), node.value(1)
    window = windows_of(node, x.dims[2:], kernel.dims[2:])
    groups = int(node.attribute("group", 1))
    result = convolve(x, kernel, window.strides, window.pads, window.dilations, groups, preferred=sums_in(x))
    return cast(with_bias(result, node, 2), x.element_type)


def with_bias(result: Value, node: Node, number: int) -> Value:
    """A result with an input of one number a channel added, if it is given."""
    if not node.has(number):
        return result
    return result + broadcast_to(along(cast(node.value(number), result.element_type), 1, result.rank), result.dims)


@operator("ConvTranspose")
def transposed(node: Node) -> Value:
    return _transposed(node, None, 2)


@operator("ConvTransposeWithDynamicPads", domain="com.microsoft")
def transposed_with_pads(node: Node) -> Value:
    """With the padding as an input, on which sizes depend."""
    return _transposed(node, node.integers(2) if node.has(2) else None, 3)


def _transposed(node: Node, given: list[int] | None, bias: int) -> Value:
    """A convolution of the input with holes between its elements by windows that are turned around.

    Args:
        given: the padding, in the place of the attribute.
        bias: the number of this input.
    """
    x, kernel = node.value(0), node.value(1)
    rank, groups = x.rank - 2, int(node.attribute("group", 1))
    strides = list(node.attribute("strides") or [1] * rank)
    dilations = list(node.attribute("dilations") or [1] * rank)
    extra = list(node.attribute("output_padding") or [0] * rank)
    reach = [(size - 1) * dilation + 1 for size, dilation in zip(kernel.dims[2:], dilations, strict=True)]
    full = [(x.dims[2 + d] - 1) * strides[d] + reach[d] + extra[d] for d in range(rank)]
    pads = _transposed_pads(node, x.dims[2:], strides, full, given)
    inputs, outputs = kernel.dims[0], kernel.dims[1]
    places = tuple(range(2, x.rank))
    # The weights as they are, which stay known where they are: they are packed before any call then.
    layout = ops.ConvolutionDimensionNumbers(0, 1, places, 0, 1, places, 0, 1, places)
    if groups > 1:
        split = ops.reshape(kernel, [groups, inputs // groups, outputs, *kernel.dims[2:]])
        turned = ops.transpose(split, [0, 2, 1, *range(3, split.rank)])
        kernel = ops.reshape(turned, [groups * outputs, inputs // groups, *kernel.dims[2:]])
        layout = ops.ConvolutionDimensionNumbers(0, 1, places, 1, 0, places, 0, 1, places)
    around = [(reach[d] - 1 - low, reach[d] - 1 - high + extra[d]) for d, (low, high) in enumerate(pads)]
    result = ops.conv_with_general_padding(
        x,
        kernel,
        [1] * rank,
        around,
        strides,
        dilations,
        groups,
        1,
        layout,
        [True] * rank,
        "HIGHEST",
        preferred_element_type=sums_in(x),
    )
    return cast(with_bias(result, node, bias), x.element_type)


def _transposed_pads(
    node: Node, spatial: Sequence[int], strides: list[int], full: list[int], given: list[int] | None
) -> list[tuple[int, int]]:
    """What is cut off of the full result; ``output_shape`` decides before ``pads``."""
    rank = len(spatial)
    wanted = node.attribute("output_shape")
    auto = node.attribute("auto_pad", "NOTSET")
    if wanted is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [size * stride for size, stride in zip(spatial, strides, strict=True)]
    if wanted is None:
        given = given or list(node.attribute("pads") or [0] * (2 * rank))
        return [(given[d], given[rank + d]) for d in range(rank)]
    pads = []
    for size, target in zip(full, list(wanted)[-rank:], strict=True):
        surplus = size - target
        small, large = surplus // 2, surplus - surplus // 2
        pads.append((small, large) if auto == "SAME_UPPER" else (large, small))
    return pads


@operator("ConvInteger")
def of_integers(node: Node) -> Value:
    """Sums in s32 of what is left above the zero points."""
    x, kernel = cast(node.value(0), "s32"), cast(node.value(1), "s32")
    if node.has(2):
        x = x - broadcast_to(cast(node.value(2), "s32"), x.dims)
    if node.has(3):
        zero = cast(node.value(3), "s32")
        kernel = kernel - broadcast_to(along(zero, 0, kernel.rank) if zero.rank == 1 else zero, kernel.dims)
    window = windows_of(node, x.dims[2:], kernel.dims[2:])
    return convolve(x, kernel, window.strides, window.pads, window.dilations, int(node.attribute("group", 1)))


@operator("Col2Im")
@rounds_once
def columns_to_image(node: Node) -> Value:
    """``[n, c * block, positions]`` to the image in which overlapping blocks are summed."""
    x = node.value(0)
    image, block = node.integers(1), node.integers(2)
    rank = len(image)
    strides = list(node.attribute("strides") or [1] * rank)
    dilations = list(node.attribute("dilations") or [1] * rank)
    pads = list(node.attribute("pads") or [0] * (2 * rank))
    size = math.prod(block)
    reach = [(extent - 1) * dilation + 1 for extent, dilation in zip(block, dilations, strict=True)]
    counts = [(image[d] + pads[d] + pads[rank + d] - reach[d]) // strides[d] + 1 for d in range(rank)]
    columns = ops.reshape(x, [x.dims[0] * (x.dims[1] // size), *block, *counts])
    for d in range(rank):
        columns = _overlapped(columns, 1, 1 + rank, strides[d], dilations[d])
        cut = (-pads[d], image[d] + pads[d] - columns.dims[rank])
        columns = _padded_along(columns, rank, cut)
    return ops.reshape(columns, [x.dims[0], x.dims[1] // size, *image])


def _overlapped(x: Value, block: int, position: int, stride: int, dilation: int) -> Value:
    """The sums of blocks of one dimension, each ``stride`` after the one before, as the last of what was summed so far.

    An element of a block is ``stride`` times its quotient and its remainder: blocks cut into pieces of ``stride``
    elements overlap by whole pieces, and what pieces of one quotient are in the image is a view.

    Args:
        block, position: which dimensions are the elements of a block, and the places of blocks.
    """
    x = _padded_along(x, block, (0, 0), dilation - 1)
    turns = -(-x.dims[block] // stride)
    x = _padded_along(x, block, (0, turns * stride - x.dims[block]))
    dims = list(x.dims)
    x = ops.reshape(x, [*dims[:block], turns, stride, *dims[block + 1 :]])
    places = position + 1
    order = [d for d in range(x.rank) if d != block + 1]
    order.insert(order.index(places) + 1, block + 1)
    x = ops.transpose(x, order)
    result: Value | None = None
    for turn in range(turns):
        piece = window(x, block, turn, turn + 1)
        piece = _padded_along(piece, position, (turn, turns - 1 - turn))
        result = piece if result is None else result + piece
    assert result is not None
    length = result.dims[position] * stride
    return ops.reshape(result, [*dims[:block], *dims[block + 1 : position], length, *dims[position + 1 :]])


def _padded_along(x: Value, axis: int, edges: tuple[int, int], between: int = 0) -> Value:
    """Zeros before, after and between the elements of a dimension; fewer elements where an edge is negative."""
    if edges == (0, 0) and not between:
        return x
    padding = [(0, 0, 0)] * x.rank
    padding[axis] = (*edges, between)
    return ops.pad(x, fill([], 0, x.element_type), padding)


@operator("DeformConv")
@rounds_once
def deformed(node: Node) -> Value:
    """Two spatial dimensions: each element of the kernel reads where an offset says, between elements bilinearly.

    Source: ONNX "DeformConv"; Dai et al., "Deformable Convolutional Networks", 2017.
    """
    x, kernel, offset = node.value(0), node.value(1), node.value(2)
    groups, offset_groups = int(node.attribute("group", 1)), int(node.attribute("offset_group", 1))
    window = windows_of(node, x.dims[2:], kernel.dims[2:])
    batch, channels, height, width = x.dims
    rows, columns = window.sizes
    taps, (out_height, out_width) = rows * columns, window.places
    moves = ops.reshape(offset, [batch, offset_groups, taps, 2, out_height, out_width])
    grid = [batch, offset_groups, taps, out_height, out_width]
    row = x.element_type

    def places(axis: int) -> Value:
        tap = np.arange(taps) // columns if axis == 0 else np.arange(taps) % columns
        base = np.arange(window.places[axis]) * window.strides[axis] - window.pads[axis][0]
        taps_at = (tap * window.dilations[axis]).reshape(1, 1, taps, 1, 1)
        base = base.reshape(1, 1, 1, -1, 1) if axis == 0 else base.reshape(1, 1, 1, 1, -1)
        start = broadcast_to(lift((taps_at + base).astype(row.dtype)), grid)
        part = ops.slice(moves, [0, 0, 0, axis, 0, 0], [*grid[:3], axis + 1, *grid[3:]])
        return start + ops.reshape(part, grid)

    image = ops.reshape(x, [batch, offset_groups, channels // offset_groups, height, width])
    sampled = bilinear(image, places(0), places(1))
    if node.has(4):
        mask = ops.reshape(node.value(4), grid)
        sampled = sampled * ops.broadcast_in_dim(mask, sampled.dims, [0, 1, 3, 4, 5])
    patches = ops.reshape(sampled, [batch, groups, channels // groups, taps, out_height, out_width])
    outputs = kernel.dims[0]
    weights = ops.reshape(kernel, [groups, outputs // groups, channels // groups, taps])
    product = ops.dot_general(weights, patches, ops.DotDimensionNumbers([2, 3], [2, 3], [0], [1]), "HIGHEST")
    result = ops.reshape(ops.transpose(product, [2, 0, 1, 3, 4]), [batch, outputs, out_height, out_width])
    return with_bias(result, node, 3)


def bilinear(image: Value, y: Value, x: Value) -> Value:
    """``[n, g, c, h, w]`` at ``[n, g, positions...]`` to ``[n, g, c, positions...]``; outside of the image is zero."""
    n, g, c, height, width = image.dims
    grid = list(y.dims[2:])
    flat = ops.reshape(image, [n, g, c, height * width])
    low_y, low_x = ops.floor(y), ops.floor(x)
    result: Value | None = None
    for step_y in (0, 1):
        for step_x in (0, 1):
            at_y, at_x = low_y + float(step_y), low_x + float(step_x)
            weight = (1.0 - ops.abs(y - at_y)) * (1.0 - ops.abs(x - at_x))
            inside = (at_y >= 0) & (at_y <= height - 1.0) & (at_x >= 0) & (at_x <= width - 1.0)
            place = cast(ops.clamp(0.0, at_y, height - 1.0), "s32") * width + cast(
                ops.clamp(0.0, at_x, width - 1.0), "s32"
            )
            part = take_each(flat, ops.reshape(place, [n, g, int(np.prod(grid))]))
            weight = ops.select(inside, weight, weight * 0)
            part = ops.reshape(part, [n, g, c, *grid])
            term = part * ops.broadcast_in_dim(weight, part.dims, [0, 1, *range(3, part.rank)])
            result = term if result is None else result + term
    assert result is not None
    return result


def take_each(flat: Value, places: Value) -> Value:
    """``[n, g, c, size]`` at ``[n, g, m]`` to ``[n, g, c, m]``."""
    c = flat.dims[2]
    starts = ops.reshape(places, [*places.dims, 1])
    layout = ops.GatherDimensionNumbers([2], [3], [3], 3, [0, 1], [0, 1])
    return ops.gather(flat, starts, layout, [1, 1, c, 1])
