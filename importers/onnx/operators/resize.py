"""Images of another size, and images read between their elements.

Source: ONNX "Resize", "GridSample".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.element_types import ElementType
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.tensors import Array, along, axis_of, broadcast_to, cast, fill, lift, take

# More neighbours than this are a matrix product.
_FEW = 16


@operator("Resize", since=11)
def resize(node: Node) -> Value:
    """One axis after the other; the positions and weights are computed while the model is imported."""
    x = node.value(0)
    axes = [axis_of(axis, x.rank) for axis in node.attribute("axes") or range(x.rank)]
    scales, sizes = _scales_and_sizes(node, x, axes)
    if 0 in x.dims:
        return _empty(x, axes, sizes)
    roi = node.known(1).reshape(-1) if node.has(1) and node.dims(1) != (0,) else None
    mode = node.attribute("coordinate_transformation_mode", "half_pixel")
    row = x.element_type
    x = _for_sums(node, x)
    outside: list[Array | None] = []
    for number, axis in enumerate(axes):
        ends = (0.0, 1.0) if roi is None else (float(roi[number]), float(roi[number + len(axes)]))
        if scales[number] == 1.0 and mode != "tf_crop_and_resize" and sizes[number] == x.dims[axis]:
            outside.append(None)
            continue
        extent = x.dims[axis]
        # Scales and regions are f32, and so are positions: by 0.6, what is between 1 and 2 would be just below 2 else.
        exact = np.float64 if roi is None and not _has_scales(node) else np.float32
        places: Array = _origins(mode, extent, sizes[number], exact(scales[number]), ends)
        outside.append((places < 0) | (places > extent - 1) if mode == "tf_crop_and_resize" else None)
        x = _resampled(node, x, axis, places, scales[number])
    x = _rounded(x, row)
    for axis, beyond in zip(axes, outside, strict=True):
        if beyond is not None and beyond.any():
            mask = broadcast_to(along(lift(beyond), axis, x.rank), x.dims)
            filler = np.asarray(node.attribute("extrapolation_value", 0.0)).astype(x.element_type.dtype)
            x = ops.select(mask, broadcast_to(lift(filler), x.dims), x)
    return x


def _empty(x: Value, axes: Sequence[int], sizes: Sequence[int]) -> Value:
    """An array without elements, resized along its other dimensions."""
    dims = list(x.dims)
    for axis, size in zip(axes, sizes, strict=True):
        if not dims[axis] and size:
            raise UnsupportedError(f"no element of dimension {axis} is there to make {size} of")
        dims[axis] = size
    return fill(dims, 0, x.element_type)


@operator("Resize", since=10)
def resize_10(node: Node) -> Value:
    return _by_scales(node, node.known(1).reshape(-1).astype(np.float64))


@operator("Upsample")
def upsample(node: Node) -> Value:
    given = node.known(1) if node.has(1) else np.asarray(node.attribute("scales"))
    return _by_scales(node, given.reshape(-1).astype(np.float64))


def _by_scales(node: Node, scales: Array) -> Value:
    """The early versions: positions are multiples, and the nearest is the one below."""
    row = node.row()
    node.attributes.setdefault("nearest_mode", "floor")
    x = _for_sums(node, node.value(0))
    for axis, scale in enumerate(scales):
        size = math.floor(x.dims[axis] * scale)
        if scale != 1.0:
            x = _resampled(
                node, x, axis, _origins("asymmetric", x.dims[axis], size, np.float32(scale), (0.0, 1.0)), float(scale)
            )
    return _rounded(x, row)


def _for_sums(node: Node, x: Value) -> Value:
    """In which elements are mixed along all axes: what lies between two axes is not rounded, nor cut to a range."""
    row = x.element_type
    return x if _mode(node) == "nearest" or (row.is_float and row.bits >= 32) else cast(x, "f32")


def _rounded(x: Value, row: ElementType) -> Value:
    """Mixed elements as those of a type; integers are the nearest ones of its range, as in ONNX's reference."""
    if x.element_type == row:
        return x
    if row.is_float:
        return cast(x, row)
    if row.bits < 32:
        limits = ml_dtypes.iinfo(row.dtype)
        x = ops.clamp(float(limits.min), x, float(limits.max))
    return cast(ops.round_nearest_even(x), row)


def _mode(node: Node) -> str:
    return str(node.attribute("mode", "nearest"))


def _has_scales(node: Node) -> bool:
    return node.has(2) and node.dims(2) != (0,)


def _scales_and_sizes(node: Node, x: Value, axes: Sequence[int]) -> tuple[list[float], list[int]]:
    if _has_scales(node):
        scales = [float(scale) for scale in node.known(2).reshape(-1)]
        return scales, [math.floor(x.dims[axis] * scale) for axis, scale in zip(axes, scales, strict=True)]
    wanted = node.integers(3)
    ratios = [size / x.dims[axis] if x.dims[axis] else 1.0 for axis, size in zip(axes, wanted, strict=True)]
    policy = node.attribute("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return ratios, wanted
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return [scale] * len(axes), [math.floor(x.dims[axis] * scale + 0.5) for axis in axes]


def _origins(mode: str, extent: int, size: int, scale: np.floating[Any], ends: tuple[float, float]) -> Any:
    """Where in the input each element of the output lies, in the element type of the scale."""
    place = np.arange(size, dtype=type(scale))
    length = extent * scale
    if mode == "asymmetric":
        return place / scale
    if mode == "align_corners":
        return place * (extent - 1) / (length - 1) if length != 1 else np.zeros_like(place)
    if mode == "tf_crop_and_resize":
        start, end = np.asarray(ends, place.dtype)
        if length > 1:
            return start * (extent - 1) + place * (end - start) * (extent - 1) / (length - 1)
        return np.full_like(place, 0.5 * (start + end) * (extent - 1))
    if mode == "half_pixel_symmetric":
        return extent / 2 * (1 - size / length) + (place + 0.5) / scale - 0.5
    if mode == "pytorch_half_pixel" and size <= 1:
        return np.zeros_like(place)
    if mode in ("half_pixel", "pytorch_half_pixel"):
        return (place + 0.5) / scale - 0.5
    raise UnsupportedError(f"coordinate_transformation_mode {mode!r} is none of ONNX's")


def _resampled(node: Node, x: Value, axis: int, places: Array, scale: float) -> Value:
    """Elements at positions along an axis, between neighbours as ``mode`` says."""
    extent = x.dims[axis]
    mode = _mode(node)
    if mode == "nearest" or not len(places):
        return take(x, lift(np.clip(_nearest(node, places), 0, extent - 1).astype(np.int32)), axis)
    if mode not in ("linear", "cubic", "bilinear"):
        raise UnsupportedError(f"mode {mode!r} is none of ONNX's")
    shrinking = min(scale, 1.0) if node.attribute("antialias", 0) else 1.0
    neighbours, weights = _weights(mode, places, shrinking, float(node.attribute("cubic_coeff_a", -0.75)))
    if node.attribute("exclude_outside", 0):
        weights = np.where((neighbours < 0) | (neighbours >= extent), 0.0, weights)
        weights = weights / weights.sum(1, keepdims=True)
    return _mixed(x, axis, np.clip(neighbours, 0, extent - 1), weights)


def _nearest(node: Node, places: Array) -> Array:
    rules: dict[str, Callable[[Array], Array]] = {
        "round_prefer_floor": lambda x: np.ceil(x - 0.5),
        "round_prefer_ceil": lambda x: np.floor(x + 0.5),
        "floor": np.floor,
        "ceil": np.ceil,
    }
    return rules[node.attribute("nearest_mode", "round_prefer_floor")](places)


def _weights(mode: str, places: Array, shrinking: float, a: float) -> tuple[Array, Array]:
    """The neighbours of each position ``[size, taps]``, and how much each counts; wider by ``1 / shrinking``."""
    reach = 2 if mode == "cubic" else 1
    first = math.floor(-reach / shrinking) + 1
    steps = np.arange(first, 2 * reach - first)
    below = np.floor(places)
    distance = np.abs((steps - (places - below)[:, None]) * shrinking)
    if mode == "cubic":
        near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
        far = ((distance - 5) * distance + 8) * distance * a - 4 * a
        weights = np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))
    else:
        weights = np.clip(1 - distance, 0, 1)
    weights = weights / weights.sum(1, keepdims=True)
    counted = weights.any(0)
    return (below[:, None] + steps[counted]).astype(np.int64), weights[:, counted]


def _mixed(x: Value, axis: int, neighbours: Array, weights: Array) -> Value:
    dtype = x.element_type.dtype
    if neighbours.shape[1] > _FEW:
        matrix = np.zeros((len(weights), x.dims[axis]))
        np.add.at(matrix, (np.arange(len(weights))[:, None], neighbours), weights)
        product = ops.dot_general(x, lift(matrix.astype(dtype)), ops.DotDimensionNumbers([axis], [1]), "HIGHEST")
        last = x.rank - 1
        return ops.transpose(product, [*range(axis), last, *range(axis, last)])
    result: Value | None = None
    for tap in range(neighbours.shape[1]):
        part = take(x, lift(neighbours[:, tap].astype(np.int32)), axis)
        part = part * broadcast_to(along(lift(weights[:, tap].astype(dtype)), axis, x.rank), part.dims)
        result = part if result is None else result + part
    assert result is not None
    return result


@operator("GridSample")
def grid_sample(node: Node) -> Value:
    """``[n, c, spatial...]`` at ``[n, positions..., k]``; numbers from -1 to 1 name the last spatial axis first."""
    x, grid = node.value(0), cast(node.value(1), _wide(node))
    spatial = x.dims[2:]
    corners = bool(node.attribute("align_corners", 0))
    places = []
    for d, extent in enumerate(spatial):
        number = len(spatial) - 1 - d
        starts = [0] * (grid.rank - 1) + [number]
        part = ops.slice(grid, starts, [*grid.dims[:-1], number + 1])
        part = ops.reshape(part, grid.dims[:-1])
        places.append((part + 1.0) * ((extent - 1) / 2) if corners else ((part + 1.0) * float(extent) - 1.0) * 0.5)
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(
        node.attribute("mode", "linear"), node.attribute("mode", "linear")
    )
    return _sampled(x, places, mode, node.attribute("padding_mode", "zeros"), corners)


def _wide(node: Node) -> Any:
    return "f64" if node.row(1).name == "f64" else "f32"


def _sampled(x: Value, places: list[Value], mode: str, padding: str, corners: bool) -> Value:
    """The sum over the neighbours of each position in all axes."""
    last = reads_features(x)
    images = features_last(x) if last else x
    taps: list[list[tuple[Value, Value | None]]] = []
    for d, place in enumerate(places):
        extent = x.dims[2 + d]
        if mode != "cubic":
            place = _padded(place, extent, padding, corners)
        taps.append(taps_of(place, mode))
    result: Value | None = None
    for choice in np.ndindex(*map(len, taps)):
        chosen = [taps[d][number] for d, number in enumerate(choice)]
        part = read_at(images, [place for place, _ in chosen], padding, corners, last)
        for _, weight in chosen:
            if weight is not None:
                part = part * for_features(cast(weight, part.element_type), part.dims, last)
        result = part if result is None else result + part
    assert result is not None
    return features_first(result) if last else result


# From so many features on, an element's features are read as vectors.
_VECTOR = 16


def reads_features(x: Value) -> bool:
    """Whether places of images ``[n, c, spatial...]`` that arguments decide are read with features last.

    What lies beside each other in the result does not in the image, but for the features of one place.
    """
    return x.dims[1] >= _VECTOR


def features_last(x: Value) -> Value:
    return ops.transpose(x, [0, *range(2, x.rank), 1])


def features_first(x: Value) -> Value:
    return ops.transpose(x, [0, x.rank - 1, *range(1, x.rank - 1)])


def for_features(x: Value, dims: Sequence[int], last: bool) -> Value:
    """``[n, positions...]`` for all features, which are the last dimension or the second."""
    return ops.broadcast_in_dim(x, dims, [*range(x.rank)] if last else [0, *range(2, x.rank + 1)])


def taps_of(place: Value, mode: str) -> list[tuple[Value, Value | None]]:
    """The neighbours of places, and their weights."""
    if mode == "nearest":
        return [(ops.round_nearest_even(place), None)]
    below = ops.floor(place)
    rest = place - below
    if mode == "linear":
        return [(below, 1.0 - rest), (below + 1.0, rest)]
    a = -0.75
    taps: list[tuple[Value, Value | None]] = []
    for step in (-1.0, 0.0, 1.0, 2.0):
        distance = ops.abs(rest - step)
        if step in (0.0, 1.0):
            weight = ((a + 2) * distance - (a + 3)) * distance * distance + 1.0
        else:
            weight = ((distance - 5.0) * distance + 8.0) * distance * a - 4 * a
        taps.append((below + step, weight))
    return taps


def _padded(place: Value, extent: int, padding: str, corners: bool) -> Value:
    """A position outside of the image as one inside, unless zeros lie there."""
    if padding == "border":
        return ops.clamp(0.0, place, float(extent - 1))
    if padding == "reflection":
        low, high = (0.0, extent - 1.0) if corners else (-0.5, extent - 0.5)
        span = high - low
        if span == 0:
            return place * 0
        turn = ops.rem(ops.abs(place - low), 2 * span)
        return ops.min(turn, 2 * span - turn) + low
    return place


def read_at(x: Value, places: list[Value], padding: str, corners: bool, last: bool = False) -> Value:
    """``[n, c, positions...]``: whole positions in an image, of which those outside are as ``padding`` says.

    Args:
        last: whether features are the last dimension, of the image and of the result.
    """
    n, c, spatial = x.dims[0], x.dims[-1 if last else 1], x.dims[1:-1] if last else x.dims[2:]
    grid = places[0].dims[1:]
    inside: Value | None = None
    flat: Value | None = None
    for place, extent in zip(places, spatial, strict=True):
        at = _padded(place, extent, padding, corners)
        within = (at >= 0) & (at <= float(extent - 1))
        inside = within if inside is None else inside & within
        index = cast(ops.clamp(0.0, at, float(extent - 1)), "s32")
        flat = index if flat is None else flat * extent + index
    assert inside is not None and flat is not None
    starts = ops.reshape(flat, [n, math.prod(grid), 1])
    # Batches, the features that each place has, and the axis of places.
    features, axis = (2, 1) if last else (1, 2)
    layout = ops.GatherDimensionNumbers([features], [axis], [axis], 2, [0], [0])
    lines = ops.reshape(x, [n, math.prod(spatial), c] if last else [n, c, math.prod(spatial)])
    taken = ops.gather(lines, starts, layout, [1, 1, c] if last else [1, c, 1])
    taken = ops.reshape(taken, [n, *grid, c] if last else [n, c, *grid])
    if padding != "zeros":
        return taken
    return ops.select(for_features(inside, taken.dims, last), taken, taken * 0)
