"""Resizing of images. Indices and weights are computed while the model is imported."""

from __future__ import annotations

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.values import Value
from hloforge.importers.tensors import Array, along, broadcast_to, cast, lift, take
from hloforge.importers.tflite.node import Node
from hloforge.importers.tflite.registry import operator


def _places(node: Node, extent: int, size: int) -> Array:
    """Where in the input each element of the output lies, in f32 as TFLite computes."""
    corners, half = bool(node.option("AlignCorners")), bool(node.option("HalfPixelCenters"))
    scale = np.float32(extent - 1) / np.float32(size - 1) if corners and size > 1 else np.float32(extent / size)
    place = np.arange(size, dtype=np.float32)
    return (place + np.float32(0.5) if half else place) * scale


@operator("RESIZE_BILINEAR")
def bilinear(node: Node) -> Value:
    """One axis after the other, between two neighbours."""
    x = node.real(0)
    for axis, size in zip((1, 2), node.integers(1), strict=True):
        extent = x.dims[axis]
        places = _places(node, extent, size)
        if node.option("HalfPixelCenters"):
            places = places - np.float32(0.5)
        below = np.floor(places)
        first = np.clip(below, 0, extent - 1).astype(np.int32)
        second = np.minimum(np.maximum(below + 1, 0), extent - 1).astype(np.int32)
        share = np.clip(places - below, 0, 1).astype(x.element_type.dtype)
        left, right = take(x, lift(first), axis), take(x, lift(second), axis)
        weight = broadcast_to(along(lift(share), axis, x.rank), left.dims)
        x = left + (right - left) * weight
    return x if node.quantization() is not None or x.element_type.is_float else cast(x, node.row(0))


@operator("RESIZE_NEAREST_NEIGHBOR")
def nearest(node: Node) -> Value:
    x = node.value(0)
    for axis, size in zip((1, 2), node.integers(1), strict=True):
        extent = x.dims[axis]
        places = _places(node, extent, size)
        # TFLite rounds halves away from zero.
        whole = np.floor(places + np.float32(0.5)) if node.option("AlignCorners") else np.floor(places)
        x = take(x, lift(np.clip(whole, 0, extent - 1).astype(np.int32)), axis)
    return ops.reshape(x, x.dims)
