"""NonMaxSuppression: of boxes that overlap, the one of the highest score."""

from __future__ import annotations

import math
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.values import Value
from hloforge.importers.onnx.bounded import Bounded, compacted, coordinates, empty, stacked
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.suppression import kept_boxes
from hloforge.importers.tensors import broadcast_to, cast, expand, fill, take, window


@operator("NonMaxSuppression")
def suppress(node: Node) -> Any:
    """Rows of batch, class and box: in this order the first two, of one class the highest score first."""
    boxes, scores = node.value(0), node.value(1)
    batch, classes, count = scores.dims
    most = min(int(node.known(2).reshape(-1)[0]) if node.has(2) else 0, count)
    if most <= 0 or not math.prod(scores.dims):
        return empty(0, 3)
    alive = fill(scores.dims, True, "pred")
    if node.has(4):
        alive = scores > broadcast_to(ops.reshape(node.value(4), []), scores.dims)
    limit = ops.reshape(node.value(3), []) if node.has(3) else fill([], 0.0, "f32")
    chosen = kept_boxes(_corners(node, boxes), scores, alive, most, lambda shares: shares > _spread(limit, shares))
    flat = ops.reshape(chosen, [batch * classes * most])
    places, size = compacted(flat < count)
    of_batch, of_class, _ = coordinates(places, [batch, classes, most])
    rows = stacked([of_batch, of_class, cast(take(flat, places, 0), "s64")], 1)
    return Bounded(rows, 0, size)


def _spread(number: Value, like: Value) -> Value:
    return broadcast_to(number, like.dims)


def _corners(node: Node, boxes: Value) -> Value:
    """``[4, batch, boxes]``: the least y, x, then the greatest."""
    first, second, third, fourth = (
        ops.reshape(window(boxes, 2, d, d + 1), boxes.dims[:2]) for d in range(boxes.dims[2])
    )
    if node.attribute("center_point_box", 0):
        x, y, width, height = first, second, third / 2.0, fourth / 2.0
        sides = [y - height, x - width, y + height, x + width]
    else:
        sides = [ops.min(first, third), ops.min(second, fourth), ops.max(first, third), ops.max(second, fourth)]
    return ops.concat_in_dim([expand(side, [0]) for side in sides], 0)
