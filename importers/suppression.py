"""Non-maximum suppression: of boxes that overlap, the one of the highest score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.values import Value, leaves
from hloforge.importers.tensors import broadcast_to, cast, fill, greatest, least, numbers, window

# Scores whose greatest one is kept.
_BLOCK = 64


def kept_boxes(corners: Value, scores: Value, alive: Value, most: int, is_same: Callable[[Value], Value]) -> Value:
    """``[batch, classes, most]``: the boxes that stay, then the number of boxes as padding.

    One loop visits the candidates of a class after the other, the highest score first, and compares each with the boxes
    that stay of its class. Greatest scores of blocks find the next one without a sort of all.

    Args:
        corners: ``[4, batch, boxes]``: the least y, x, then the greatest.
        scores: ``[batch, classes, boxes]``.
        alive: which of them are candidates.
        is_same: whether two boxes are about one object, of intersection over union.
    """
    batch, classes, count = scores.dims
    rows, blocks = batch * classes, -(-count // _BLOCK)
    zero, gone = fill([], 0, "s32"), fill([], float("-inf"), "f32")
    # A score that is no number is never the greatest; one of -inf is the least, unlike what was visited.
    alive = alive & scores.eq(scores)
    scores = ops.max(scores, fill(scores.dims, float(np.finfo(np.float32).min), "f32"))
    left = ops.select(alive, scores, broadcast_to(gone, scores.dims))
    left = ops.pad(left, gone, [(0, 0, 0), (0, 0, 0), (0, blocks * _BLOCK - count, 0)])
    left = ops.reshape(left, [rows, blocks, _BLOCK])

    def some(row: Value, *_: Value) -> Value:
        return row < rows

    def visit(row: Value, found: Value, left: Value, greatest_of: Value, chosen: Value, stay: Value) -> Any:
        of_blocks = ops.reshape(ops.dynamic_slice(greatest_of, [row, zero], [1, blocks]), [blocks])
        best = greatest(of_blocks, [0])
        is_visit = best > gone
        block = _first(of_blocks, best)
        scores = ops.reshape(ops.dynamic_slice(left, [row, block, zero], [1, 1, _BLOCK]), [_BLOCK])
        lane = _first(scores, best)
        box = ops.min(block * _BLOCK + lane, fill([], count - 1, "s32"))
        mine = ops.reshape(ops.dynamic_slice(corners, [zero, row / classes, box], [4, 1, 1]), [4, 1])
        is_before = numbers([most], 0) < broadcast_to(found, [most])
        overlaps = ops.reduce(_overlap(mine, stay, is_same) & is_before, False, ops.or_, [0])
        scores = ops.select(numbers([_BLOCK], 0).eq(broadcast_to(lane, [_BLOCK])), broadcast_to(gone, [_BLOCK]), scores)
        left = ops.dynamic_update_slice(left, ops.reshape(scores, [1, 1, _BLOCK]), [row, block, zero])
        rest = ops.reshape(greatest(scores, [0]), [1, 1])
        greatest_of = ops.dynamic_update_slice(greatest_of, rest, [row, block])
        stays = is_visit & ~overlaps
        place = ops.select(stays, box, fill([], count, "s32"))
        chosen = ops.dynamic_update_slice(chosen, ops.reshape(place, [1, 1]), [row, found])
        stay = ops.dynamic_update_slice(stay, mine, [zero, found])
        found = found + cast(stays, "s32")
        is_end = ~is_visit | (found >= most)
        return row + cast(is_end, "s32"), ops.select(is_end, zero, found), left, greatest_of, chosen, stay

    start = [zero, zero, left, greatest(left, [2]), fill([rows, most], count, "s32"), fill([4, most], 0.0, "f32")]
    return ops.reshape(leaves(ops.while_(some, visit, start))[4], [batch, classes, most])


def _first(values: Value, wanted: Value) -> Value:
    """The first position in a vector of a value that it has."""
    (extent,) = values.dims
    is_it = values.eq(broadcast_to(wanted, [extent]))
    place = least(ops.select(is_it, numbers([extent], 0), fill([extent], extent - 1, "s32")), [0])
    return place


def _overlap(mine: Value, others: Value, is_same: Callable[[Value], Value]) -> Value:
    """Whether a box is about the object of others; boxes without area overlap nothing.

    Args:
        mine: ``[4, 1]``: the least y, x, then the greatest.
        others: ``[4, boxes]``.
    """
    dims = others.dims[1:]
    top, left, bottom, right = (ops.reshape(window(mine, 0, d, d + 1), [1]) for d in range(4))
    top2, left2, bottom2, right2 = (ops.reshape(window(others, 0, d, d + 1), dims) for d in range(4))
    area, area2 = (right - left) * (bottom - top), (right2 - left2) * (bottom2 - top2)
    area, top, left, bottom, right = (broadcast_to(each, dims) for each in (area, top, left, bottom, right))
    width = ops.min(right, right2) - ops.max(left, left2)
    height = ops.min(bottom, bottom2) - ops.max(top, top2)
    common = width * height
    union = area + area2 - common
    is_real = (width > 0.0) & (height > 0.0) & (area > 0.0) & (area2 > 0.0) & (union > 0.0)
    return is_real & is_same(common / union)
