"""``TFLite_Detection_PostProcess``, at the end of SSD detectors: boxes decoded by anchors, then suppression.

Source: TensorFlow, "detection_postprocess.cc".
"""

from __future__ import annotations

from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value
from hloforge.importers.suppression import kept_boxes
from hloforge.importers.tensors import broadcast_to, cast, expand, fill, greatest, numbers, pair, take, total, window
from hloforge.importers.tflite.graph import Outputs
from hloforge.importers.tflite.node import Node
from hloforge.importers.tflite.registry import operator


@operator("TFLite_Detection_PostProcess")
def detections(node: Node) -> Any:
    """Boxes (least y, x, greatest y, x), their classes and scores, f32, highest score first; and how many there are.

    Inputs: encodings ``[1, anchors, 4 or more]`` (y, x, height, width), scores of classes ``[1, anchors, classes]``
    (a first one of the background is left out), and anchors. Zeros follow the boxes that stay.
    """
    said = node.custom_options()
    encodings, scores, anchors = node.real(0), node.real(1), node.real(2)
    if encodings.dims[0] != 1:
        raise UnsupportedError(f"{node.operator.custom} of {encodings.dims[0]} images is not imported")
    classes, count = int(said["num_classes"]), encodings.dims[1]
    scores = ops.reshape(window(scores, 2, scores.dims[2] - classes, scores.dims[2]), [count, classes])
    corners = _decoded(ops.reshape(window(encodings, 2, 0, 4), [count, 4]), anchors, said)
    most = int(said["max_detections"])
    if said.get("use_regular_nms", False):
        each = min(int(said.get("detections_per_class", 100)), count)
        chosen = _kept(corners, ops.transpose(scores, [1, 0]), each, said)
        # The best of all classes.
        flat = ops.reshape(chosen, [classes * each])
        is_box, of_class = flat < count, numbers([classes, each], 0)
        places = ops.select(is_box, flat, fill(flat.dims, 0, "s32"))
        found = take(ops.reshape(scores, [count * classes]), places * classes + ops.reshape(of_class, flat.dims), 0)
        found = ops.select(is_box, found, fill(found.dims, float("-inf"), "f32"))
        found, order = _sorted(found)
        rows = [take(each_row, order, 0) for each_row in (places, ops.reshape(of_class, flat.dims))]
        is_box = numbers(flat.dims, 0) < broadcast_to(total(cast(is_box, "s32"), [0]), flat.dims)
        return _results(corners, rows[0], rows[1], found, is_box, most, 1)
    per = min(int(said["max_classes_per_detection"]), classes)
    best = expand(greatest(scores, [1]), [0])
    kept = min(most, count)
    places = ops.reshape(_kept(corners, best, kept, said), [kept])
    is_box = places < count
    places = ops.select(is_box, places, fill([kept], 0, "s32"))
    found, order = _sorted(take(scores, places, 0))
    dims = [kept, per]
    firsts = [ops.reshape(window(each_row, 1, 0, per), [kept * per]) for each_row in (found, order)]
    wide = [ops.reshape(ops.broadcast_in_dim(each_row, dims, [0]), [kept * per]) for each_row in (places, is_box)]
    return _results(corners, wide[0], firsts[1], firsts[0], wide[1], most, per)


def _decoded(encodings: Value, anchors: Value, said: dict[str, Any]) -> Value:
    """``[4, anchors]``: centers are moved by a share of the anchor's size, which is multiplied by a power."""
    y, x, height, width = (
        ops.reshape(window(encodings, 1, d, d + 1), encodings.dims[:1]) / float(said[name])
        for d, name in enumerate(("y_scale", "x_scale", "h_scale", "w_scale"))
    )
    y0, x0, height0, width0 = (ops.reshape(window(anchors, 1, d, d + 1), encodings.dims[:1]) for d in range(4))
    y, x = y * height0 + y0, x * width0 + x0
    height, width = 0.5 * ops.exp(height) * height0, 0.5 * ops.exp(width) * width0
    return ops.concat_in_dim([expand(side, [0]) for side in (y - height, x - width, y + height, x + width)], 0)


def _kept(corners: Value, scores: Value, most: int, said: dict[str, Any]) -> Value:
    """``[classes, most]`` of scores ``[classes, anchors]``."""
    limit, least = float(said["nms_iou_threshold"]), float(said["nms_score_threshold"])
    alive = scores >= fill(scores.dims, least, "f32")
    shaped = expand(corners, [1])
    chosen = kept_boxes(shaped, expand(scores, [0]), expand(alive, [0]), most, lambda shares: shares > limit)
    return ops.reshape(chosen, [scores.dims[0], most])


def _sorted(scores: Value) -> tuple[Value, Value]:
    """Along the last axis the highest first, of equal ones the first; and where they were."""

    def before(a: Value, b: Value, place_a: Value, place_b: Value) -> Value:
        return (a > b) | (a.eq(b) & (place_a < place_b))

    axis = scores.rank - 1
    return pair(ops.sort([scores, numbers(scores.dims, axis)], before, axis))


def _results(corners: Value, places: Value, classes: Value, scores: Value, is_box: Value, most: int, per: int) -> Any:
    """The first ``most * per`` entries of vectors, with zeros where there is no box.

    Args:
        per: entries for each box that counts.
    """
    zero = fill(scores.dims, 0.0, "f32")
    boxes = ops.transpose(take(corners, places, 1), [1, 0])
    boxes = ops.select(ops.broadcast_in_dim(is_box, boxes.dims, [0]), boxes, boxes * 0.0)
    rows = [ops.select(is_box, each, zero) for each in (cast(classes, "f32"), scores)]
    length, here = most * per, min(most * per, scores.dims[0])
    size = total(cast(window(is_box, 0, 0, here), "f32"), [0]) / float(per)
    found = [_padded(window(each, 0, 0, here), length) for each in (boxes, *rows)]
    return Outputs([*(expand(each, [0]) for each in found), ops.reshape(size, [1])])


def _padded(x: Value, length: int) -> Value:
    if x.dims[0] == length:
        return x
    return ops.concat_in_dim([x, fill([length - x.dims[0], *x.dims[1:]], 0.0, x.element_type)], 0)
