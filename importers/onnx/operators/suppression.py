"""NonMaxSuppression: of boxes that overlap, the one of the highest score."""

from __future__ import annotations

import math
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.values import Value, leaves
from hloforge.importers.onnx.bounded import Bounded, compacted, coordinates, empty, stacked
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.tensors import broadcast_to, cast, expand, fill, greatest, least, numbers, take, window


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
    chosen = _chosen(node, _corners(node, boxes), scores, alive, most)
    flat = ops.reshape(chosen, [batch * classes * most])
    places, size = compacted(flat < count)
    of_batch, of_class, _ = coordinates(places, [batch, classes, most])
    rows = stacked([of_batch, of_class, cast(take(flat, places, 0), "s64")], 1)
    return Bounded(rows, 0, size)


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


def _chosen(node: Node, corners: Value, scores: Value, alive: Value, most: int) -> Value:
    """``[batch, classes, most]``: the boxes that stay, then the number of boxes as padding."""
    batch, classes, count = scores.dims
    places = numbers(scores.dims, 2)
    lists = ops.reshape(corners, [4, batch * count])
    rows = numbers([batch, classes], 0) * count
    limit = ops.reshape(node.value(3), []) if node.has(3) else fill([], 0.0, "f32")
    nothing = broadcast_to(fill([], float("-inf"), scores.element_type), scores.dims)

    def some(step: Value, alive: Value, chosen: Value) -> Value:
        left = ops.reduce(alive, False, ops.or_, [0, 1, 2])
        return (step < most) & left

    def choose(step: Value, alive: Value, chosen: Value) -> Any:
        best = greatest(ops.select(alive, scores, nothing), [2], keep=True)
        wins = alive & scores.eq(broadcast_to(best, scores.dims))
        place = least(ops.select(wins, places, fill(scores.dims, count, "s32")), [2])
        at = rows + ops.min(place, fill(place.dims, count - 1, "s32"))
        mine = expand(take(lists, at, 1), [3])
        overlaps = _overlap(mine, expand(corners, [2]), limit, scores.dims)
        is_chosen = places.eq(broadcast_to(expand(place, [2]), scores.dims))
        # A class without a winner is one without candidates, or all of them are no numbers.
        is_found = broadcast_to(expand(place < count, [2]), scores.dims)
        zero = fill([], 0, "s32")
        chosen = ops.dynamic_update_slice(chosen, expand(place, [2]), [zero, zero, step])
        return step + 1, alive & ~overlaps & ~is_chosen & is_found, chosen

    start = [fill([], 0, "s32"), alive, fill([batch, classes, most], count, "s32")]
    return leaves(ops.while_(some, choose, start))[2]


def _overlap(mine: Value, others: Value, limit: Value, dims: tuple[int, ...]) -> Value:
    """Whether intersection over union exceeds the limit; boxes without area overlap nothing.

    Args:
        mine: ``[4, batch, classes, 1]``.
        others: ``[4, batch, 1, boxes]``.
    """

    def sides(corners: Value) -> list[Value]:
        parts = (window(corners, 0, d, d + 1) for d in range(4))
        return [ops.reshape(part, part.dims[1:]) for part in parts]

    (top, left, bottom, right), (top2, left2, bottom2, right2) = sides(mine), sides(others)
    area, area2 = (right - left) * (bottom - top), (right2 - left2) * (bottom2 - top2)
    area, area2, top, left, bottom, right, top2, left2, bottom2, right2 = (
        broadcast_to(each, dims) for each in (area, area2, top, left, bottom, right, top2, left2, bottom2, right2)
    )
    width = ops.min(right, right2) - ops.max(left, left2)
    height = ops.min(bottom, bottom2) - ops.max(top, top2)
    common = width * height
    union = area + area2 - common
    is_real = (width > 0.0) & (height > 0.0) & (area > 0.0) & (area2 > 0.0) & (union > 0.0)
    return is_real & (common / union > broadcast_to(limit, dims))
