"""Non-maximum suppression, whose results have the size of the most boxes that may stay."""

from __future__ import annotations

from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value
from hloforge.importers.suppression import kept_boxes
from hloforge.importers.tensors import broadcast_to, cast, fill, take, total, window
from hloforge.importers.tflite.graph import Outputs
from hloforge.importers.tflite.node import Node
from hloforge.importers.tflite.registry import operator


@operator("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5")
def suppress(node: Node) -> Any:
    """Numbers of the boxes that stay, the highest score first; their scores (V5); and how many they are. Zeros follow.

    As in TFLite, a box is given by two opposite corners, and boxes that share as much as the threshold are one.
    """
    boxes, scores = node.value(0), node.value(1)
    (count,), most = scores.dims, node.integers(2)[0]
    has_scores = node.name == "NON_MAX_SUPPRESSION_V5"
    if has_scores and float(node.known(5).reshape(-1)[0]) != 0:
        raise UnsupportedError("soft suppression (soft_nms_sigma) is not imported")
    if not count:
        raise UnsupportedError("suppression among no boxes is not imported")
    sides = [ops.reshape(window(boxes, 1, d, d + 1), [1, 1, count]) for d in range(4)]
    corners = [(ops.min if d < 2 else ops.max)(sides[d % 2], sides[d % 2 + 2]) for d in range(4)]
    limit = ops.reshape(node.value(3), [])
    rows = ops.reshape(scores, [1, 1, count])
    alive = rows > broadcast_to(ops.reshape(node.value(4), []), rows.dims)
    kept = min(most, count)
    chosen = kept_boxes(
        ops.reshape(ops.concat_in_dim(corners, 0), [4, 1, count]),
        rows,
        alive,
        kept,
        lambda shares: shares >= broadcast_to(limit, shares.dims),
    )
    places = ops.reshape(chosen, [kept])
    is_box = places < count
    zero = fill([kept], 0, "s32")
    places = ops.select(is_box, places, zero)
    found = [places]
    if has_scores:
        of_boxes = take(scores, places, 0)
        found.append(ops.select(is_box, of_boxes, of_boxes * 0))
    size = total(cast(is_box, "s32"), [0])
    return Outputs([*(_padded(each, most) for each in found), size])


def _padded(x: Value, size: int) -> Value:
    (count,) = x.dims
    return x if count == size else ops.concat_in_dim([x, fill([size - count], 0, x.element_type)], 0)
