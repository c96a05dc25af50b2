"""Regions of images in a grid of one size.

Source: ONNX "RoiAlign", "MaxRoiPool"; ONNX Runtime "CropAndResize".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.values import Value, leaves
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.operators.contrib import MICROSOFT
from hloforge.importers.onnx.operators.resize import (
    features_first,
    features_last,
    for_features,
    read_at,
    reads_features,
    taps_of,
)
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.roundings import rounds_once
from hloforge.importers.tensors import broadcast_to, cast, element_at, fill, lift, lowest, numbers, put, take, window


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
    last = reads_features(x)
    images = features_last(x) if last else x
    sides = []
    for low, high in ((columns[1], columns[3]), (columns[0], columns[2])):
        sides.append((low, high - low if mode == "half_pixel" else ops.max(high - low, 1.0)))
    if samples <= 0:
        found = _of_any_number(images, batches, sides, [height, width], node.attribute("mode", "avg"), last)
        return features_first(found) if last else found

    images = take(images, batches, 0)

    def places(low: Value, size: Value, bins: int) -> Value:
        steps = ((np.arange(bins * samples) + 0.5) / (bins * samples)).astype(x.element_type.dtype)
        dims = [count, bins * samples]
        spread = [ops.broadcast_in_dim(part, dims, [0]) for part in (low, size)]
        return spread[0] + spread[1] * broadcast_to(lift(steps), dims)

    dims = [count, height * samples, width * samples]
    y = ops.broadcast_in_dim(places(*sides[0], height), dims, [0, 1])
    at_x = ops.broadcast_in_dim(places(*sides[1], width), dims, [0, 2])
    result = _bilinear_samples(images, y, at_x, node.attribute("mode", "avg"), last)
    cells = [height, samples, width, samples]
    parts = ops.reshape(result, [count, *cells, x.dims[1]] if last else [count, x.dims[1], *cells])
    axes = [2, 4] if last else [3, 5]
    if node.attribute("mode", "avg") == "max":
        found = ops.reduce(parts, float("-inf"), ops.max, axes)
    else:
        found = ops.reduce(parts, 0.0, ops.add, axes) / float(samples * samples)
    return features_first(found) if last else found


@operator("MaxRoiPool")
def max_roi_pool(node: Node) -> Value:
    """The maximum of each cell of regions, whose corners are elements: Fast R-CNN's pooling, cell borders in f32.

    Each step of a loop reads an element of every cell. Cells that have fewer read their last one again.
    """
    x, rois, bins = node.value(0), node.value(1), [int(size) for size in node.attribute("pooled_shape")]
    count, features, row = rois.dims[0], x.dims[1], x.element_type
    shape, zero = [*bins, features], fill([], 0, "s32")
    if not count or 0 in x.dims:
        return fill([count, features, *bins], 0, row)
    images = features_last(x)
    corners = ops.round(rois * float(node.attribute("spatial_scale", 1.0)))
    batches = cast(_column(rois, 0), "s32")
    sides = []
    for axis in (0, 1):
        low, high = (cast(_column(corners, 2 - axis + end), "s32") for end in (0, 2))
        unit = cast(ops.max(high - low + 1, 1), "f32") / float(bins[axis])
        dims = [count, bins[axis]]
        place = cast(numbers(dims, 1), "f32")
        spread, start = ops.broadcast_in_dim(unit, dims, [0]), ops.broadcast_in_dim(low, dims, [0])
        borders = cast(ops.floor(place * spread), "s32"), cast(ops.ceil((place + 1.0) * spread), "s32")
        begin, end = (ops.clamp(0, start + border, x.dims[2 + axis]) for border in borders)
        sides.append((begin, end - begin))

    def region(number: Value, found: Value) -> Any:
        own = [tuple(element_at(part, 0, number) for part in side) for side in sides]
        counts = [ops.reduce(sizes, 1, ops.max, [0]) for _, sizes in own]
        image = element_at(images, 0, element_at(batches, 0, number))

        def add(step: Value, best: Value) -> Any:
            places = []
            for d, place in enumerate((step / counts[1], ops.rem(step, counts[1]))):
                begin, sizes = own[d]
                at = begin + ops.max(ops.min(broadcast_to(place, sizes.dims), sizes - 1), 0)
                places.append(ops.broadcast_in_dim(ops.min(at, x.dims[2 + d] - 1), [*bins, 1], [d]))
            layout = ops.GatherDimensionNumbers([2], [0, 1], [0, 1], 2)
            sample = ops.gather(image, ops.concat_in_dim(places, 2), layout, [1, 1, features])
            return step + 1, ops.max(best, sample)

        start = fill(shape, lowest(row), row)
        best = leaves(ops.while_(lambda step, _: step < counts[0] * counts[1], add, [zero, start]))[1]
        for d, (_, sizes) in enumerate(own):
            best = ops.select(ops.broadcast_in_dim(sizes > 0, shape, [d]), best, full(best, 0))
        return number + 1, put(found, best, number)

    start = fill([count, *shape], 0, row)
    return features_first(leaves(ops.while_(lambda number, _: number < count, region, [zero, start]))[1])


def _column(x: Value, number: int) -> Value:
    """A column of a matrix as a vector."""
    return ops.reshape(window(x, 1, number, number + 1), [x.dims[0]])


@operator("CropAndResize", domain=MICROSOFT)
@rounds_once
def crop_and_resize(node: Node) -> Value:
    """Regions between the centers of their corner elements; what lies beside the image is one number."""
    x, rois = node.value(0), node.value(1)
    last, count = reads_features(x), rois.dims[0]
    images = take(features_last(x) if last else x, cast(node.value(2), "s32"), 0)
    sizes = node.integers(3)
    dims = [count, *sizes]
    corners = [ops.reshape(ops.slice(rois, [0, number], [count, number + 1]), [count]) for number in range(4)]
    places, is_inside = [], None
    for axis, size in enumerate(sizes):
        low, high, end = corners[axis], corners[axis + 2], float(x.dims[2 + axis] - 1)
        if size > 1:
            step = ops.broadcast_in_dim((high - low) * end / float(size - 1), dims, [0])
            at = ops.broadcast_in_dim(low * end, dims, [0]) + cast(numbers(dims, 1 + axis), step.element_type) * step
        else:
            at = ops.broadcast_in_dim((low + high) * 0.5 * end, dims, [0])
        inside = (at >= 0.0) & (at <= end)
        is_inside = inside if is_inside is None else is_inside & inside
        places.append(at)
    if node.attribute("mode", "bilinear") == "nearest":
        found = read_at(images, [ops.floor(place + 0.5) for place in places], "border", True, last)
    else:
        found = _bilinear_samples(images, places[0], places[1], "avg", last)
    assert is_inside is not None
    beside = full(found, float(node.attribute("extrapolation_value", 0.0)))
    found = ops.select(for_features(is_inside, found.dims, last), found, beside)
    return features_first(found) if last else found


def _of_any_number(
    x: Value, batches: Value, sides: list[tuple[Value, Value]], bins: list[int], mode: str, last: bool
) -> Value:
    """About one sample a pixel: one region after the other, because each has a number of samples of its own. Each step
    of a loop takes one of every cell.

    Args:
        sides: the start and the size of each region, of y and of x.
        bins: cells of y and of x.
        last: whether features are the last dimension of the images and of the result, or the second.
    """
    count, features, row, is_max = batches.dims[0], x.dims[-1 if last else 1], x.element_type, mode == "max"
    shape = [*bins, features] if last else [features, *bins]
    zero = fill([], 0, "s32")
    if not count:
        return fill([0, *shape], 0.0, row)

    def region(number: Value, found: Value) -> Any:
        own = [tuple(_one(part, number) for part in side) for side in sides]
        counts = [cast(ops.ceil(size / float(cells)), "s32") for (_, size), cells in zip(own, bins, strict=True)]
        samples = counts[0] * counts[1]
        image = ops.dynamic_slice(x, [_one(batches, number), zero, zero, zero], [1, *x.dims[1:]])

        def add(step: Value, total: Value) -> Any:
            places = []
            for d, place in enumerate((step / counts[1], ops.rem(step, counts[1]))):
                low, size = own[d]
                part = (cast(place, row) + 0.5) / cast(counts[d], row)
                cells = lift(np.arange(bins[d]).astype(row.dtype))
                along = (cells + broadcast_to(part, cells.dims)) * broadcast_to(size / float(bins[d]), cells.dims)
                along = along + broadcast_to(low, cells.dims)
                places.append(ops.broadcast_in_dim(along, [1, *bins], [1 + d]))
            sample = ops.reshape(_bilinear_samples(image, places[0], places[1], mode, last), shape)
            return step + 1, ops.max(total, sample) if is_max else total + sample

        start = fill(shape, float("-inf") if is_max else 0.0, row)
        total = leaves(ops.while_(lambda step, _: step < samples, add, [zero, start]))[1]
        if is_max:
            total = ops.select(broadcast_to(samples > 0, shape), total, full(total, 0.0))
        else:
            total = total / broadcast_to(cast(ops.max(samples, 1), row), shape)
        changed = ops.dynamic_update_slice(found, ops.reshape(total, [1, *shape]), [number, zero, zero, zero])
        return number + 1, changed

    start = fill([count, *shape], 0.0, row)
    found: Value = leaves(ops.while_(lambda number, _: number < count, region, [zero, start]))[1]
    return found


def _one(x: Value, number: Value) -> Value:
    """An element of a line."""
    return ops.reshape(ops.dynamic_slice(x, [number], [1]), [])


def _bilinear_samples(images: Value, y: Value, x: Value, mode: str, last: bool) -> Value:
    """Samples at clamped positions; more than one element outside of the image counts as zero.

    With ``max`` the greatest of the four weighted neighbours counts, as ONNX defines it.

    Args:
        last: whether features are the last dimension of the images and of the samples, or the second.
    """
    height, width = images.dims[1:3] if last else images.dims[2:]
    outside = (y < -1.0) | (y > float(height)) | (x < -1.0) | (x > float(width))
    places = [ops.clamp(0.0, y, float(height - 1)), ops.clamp(0.0, x, float(width - 1))]
    taps = [taps_of(place, "linear") for place in places]
    result: Value | None = None
    for row, row_weight in taps[0]:
        for column, column_weight in taps[1]:
            assert row_weight is not None and column_weight is not None
            part = read_at(images, [row, column], "border", True, last)
            part = part * for_features(row_weight * column_weight, part.dims, last)
            result = part if result is None else (ops.max if mode == "max" else ops.add)(result, part)
    assert result is not None
    return ops.select(for_features(outside, result.dims, last), result * 0, result)
