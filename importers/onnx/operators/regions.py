"""Regions of images in a grid of one size.

Source: ONNX "RoiAlign"; ONNX Runtime "CropAndResize".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.values import Value, leaves
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.operators.contrib import MICROSOFT
from hloforge.importers.onnx.operators.resize import read_at, taps_of
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.roundings import rounds_once
from hloforge.importers.tensors import broadcast_to, cast, fill, greatest, lift, numbers, take


@operator("RoiAlign")
@rounds_once
def roi_align(node: Node) -> Value:
    """Regions of images in a grid of one size: the mean or the maximum of samples between elements."""
    x, rois, batches = node.value(0), node.value(1), cast(node.value(2), "s32")
    height, width = int(node.attribute("output_height", 1)), int(node.attribute("output_width", 1))
    samples = int(node.attribute("sampling_ratio", 0))
    mode = node.attribute("coordinate_transformation_mode", "half_pixel" if node.version >= 16 else "output_half_pixel")
    offset = 0.5 if mode == "half_pixel" else 0.0
    count = rois.dims[0]
    scaled = rois * float(node.attribute("spatial_scale", 1.0)) - offset
    columns = [ops.reshape(ops.slice(scaled, [0, number], [count, number + 1]), [count]) for number in range(4)]
    images = take(x, batches, 0)
    sides = []
    for low, high in ((columns[1], columns[3]), (columns[0], columns[2])):
        sides.append((low, high - low if mode == "half_pixel" else ops.max(high - low, 1.0)))
    if samples <= 0:
        return _of_any_number(images, sides, [height, width], node.attribute("mode", "avg"))

    def places(low: Value, size: Value, bins: int) -> Value:
        steps = ((np.arange(bins * samples) + 0.5) / (bins * samples)).astype(x.element_type.dtype)
        dims = [count, bins * samples]
        spread = [ops.broadcast_in_dim(part, dims, [0]) for part in (low, size)]
        return spread[0] + spread[1] * broadcast_to(lift(steps), dims)

    dims = [count, height * samples, width * samples]
    y = ops.broadcast_in_dim(places(*sides[0], height), dims, [0, 1])
    at_x = ops.broadcast_in_dim(places(*sides[1], width), dims, [0, 2])
    result = _bilinear_samples(images, y, at_x, node.attribute("mode", "avg"))
    parts = ops.reshape(result, [count, x.dims[1], height, samples, width, samples])
    if node.attribute("mode", "avg") == "max":
        return ops.reduce(parts, float("-inf"), ops.max, [3, 5])
    return ops.reduce(parts, 0.0, ops.add, [3, 5]) / float(samples * samples)


@operator("CropAndResize", domain=MICROSOFT)
@rounds_once
def crop_and_resize(node: Node) -> Value:
    """Regions between the centers of their corner elements; what lies beside the image is one number."""
    x, rois = node.value(0), node.value(1)
    images, count = take(x, cast(node.value(2), "s32"), 0), rois.dims[0]
    sizes = node.integers(3)
    dims = [count, *sizes]
    corners = [ops.reshape(ops.slice(rois, [0, number], [count, number + 1]), [count]) for number in range(4)]
    places, is_inside = [], None
    for axis, size in enumerate(sizes):
        low, high, last = corners[axis], corners[axis + 2], float(x.dims[2 + axis] - 1)
        if size > 1:
            step = ops.broadcast_in_dim((high - low) * last / float(size - 1), dims, [0])
            at = ops.broadcast_in_dim(low * last, dims, [0]) + cast(numbers(dims, 1 + axis), step.element_type) * step
        else:
            at = ops.broadcast_in_dim((low + high) * 0.5 * last, dims, [0])
        inside = (at >= 0.0) & (at <= last)
        is_inside = inside if is_inside is None else is_inside & inside
        places.append(at)
    if node.attribute("mode", "bilinear") == "nearest":
        found = read_at(images, [ops.floor(place + 0.5) for place in places], "border", True)
    else:
        found = _bilinear_samples(images, places[0], places[1], "avg")
    assert is_inside is not None
    beside = full(found, float(node.attribute("extrapolation_value", 0.0)))
    return ops.select(ops.broadcast_in_dim(is_inside, found.dims, [0, 2, 3]), found, beside)


def _of_any_number(images: Value, sides: list[tuple[Value, Value]], bins: list[int], mode: str) -> Value:
    """About one sample a pixel: each step of a loop takes one of each cell of each region, if the region has so many.

    Args:
        sides: the start and the size of each region, of y and of x.
        bins: cells of y and of x.
    """
    count, channels = images.dims[:2]
    counts = [cast(ops.ceil(size / float(cells)), "s32") for (_, size), cells in zip(sides, bins, strict=True)]
    most = [ops.max(greatest(each, [0]), 0) for each in counts] if count else [fill([], 0, "s32")] * 2
    dims, row = [count, *bins], images.element_type
    is_max = mode == "max"

    def some(step: Value, _: Value) -> Value:
        return step < most[0] * most[1]

    def add(step: Value, found: Value) -> Any:
        places, is_there = [], None
        for d, place in enumerate((step / most[1], ops.rem(step, most[1]))):
            has = broadcast_to(place, [count]) < counts[d]
            is_there = has if is_there is None else is_there & has
            part = (cast(broadcast_to(place, [count]), row) + 0.5) / cast(ops.max(counts[d], 1), row)
            cells = broadcast_to(lift(np.arange(bins[d]).astype(row.dtype)), [count, bins[d]])
            along = (cells + ops.broadcast_in_dim(part, cells.dims, [0])) / float(bins[d])
            low, size = (ops.broadcast_in_dim(each, cells.dims, [0]) for each in sides[d])
            places.append(ops.broadcast_in_dim(low + along * size, dims, [0, 1 + d]))
        sample = _bilinear_samples(images, places[0], places[1], mode)
        assert is_there is not None
        there = ops.broadcast_in_dim(is_there, sample.dims, [0])
        return step + 1, ops.select(there, ops.max(found, sample) if is_max else found + sample, found)

    start = fill([count, channels, *bins], float("-inf") if is_max else 0.0, row)
    found: Value = leaves(ops.while_(some, add, [fill([], 0, "s32"), start]))[1]
    total = ops.broadcast_in_dim(counts[0] * counts[1], found.dims, [0])
    if is_max:
        return ops.select(total > 0, found, full(found, 0.0))
    return found / cast(ops.max(total, 1), row)


def _bilinear_samples(images: Value, y: Value, x: Value, mode: str) -> Value:
    """Samples at clamped positions; more than one element outside of the image counts as zero.

    With ``max`` the greatest of the four weighted neighbours counts, as ONNX defines it.
    """
    height, width = images.dims[2:]
    outside = (y < -1.0) | (y > float(height)) | (x < -1.0) | (x > float(width))
    places = [ops.clamp(0.0, y, float(height - 1)), ops.clamp(0.0, x, float(width - 1))]
    taps = [taps_of(place, "linear") for place in places]
    result: Value | None = None
    for row, row_weight in taps[0]:
        for column, column_weight in taps[1]:
            assert row_weight is not None and column_weight is not None
            part = read_at(images, [row, column], "border", True)
            part = part * ops.broadcast_in_dim(row_weight * column_weight, part.dims, [0, 2, 3])
            result = part if result is None else (ops.max if mode == "max" else ops.add)(result, part)
    assert result is not None
    return ops.select(ops.broadcast_in_dim(outside, result.dims, [0, 2, 3]), result * 0, result)
