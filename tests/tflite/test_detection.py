"""The end of SSD detectors, judged by TFLite's interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite")

import hloforge
from tests.tflite.files import Op, T, model

SCALES = {"y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0}


@pytest.mark.wide(4)
@pytest.mark.parametrize("background", [0, 1])
@pytest.mark.parametrize(
    "said",
    [
        {"max_detections": 10, "max_classes_per_detection": 1, "nms_score_threshold": 0.3},
        {"max_detections": 200, "max_classes_per_detection": 3, "nms_score_threshold": 0.8},
        {"max_detections": 10, "max_classes_per_detection": 1, "nms_score_threshold": 0.3, "use_regular_nms": True},
        {
            "max_detections": 300,
            "max_classes_per_detection": 1,
            "nms_score_threshold": 0.6,
            "use_regular_nms": True,
            "detections_per_class": 7,
        },
    ],
)
def test_as_the_interpreter(said: dict[str, Any], background: int) -> None:
    tf = pytest.importorskip("tensorflow")
    random, count, classes = np.random.default_rng(3), 150, 5
    options = {**SCALES, "num_classes": classes, "nms_iou_threshold": 0.5, **said}
    encodings = random.normal(size=(1, count, 4)).astype(np.float32)
    scores = random.random((1, count, classes + background)).astype(np.float32)
    anchors = random.uniform(0.1, 0.9, (count, 4)).astype(np.float32)
    tensors = [
        T("boxes", encodings.shape),
        T("scores", scores.shape),
        T("anchors", anchors.shape, data=anchors),
        *(T(name, ()) for name in ("found", "classes", "of", "count")),
    ]
    operator = Op("CUSTOM", [0, 1, 2], [3, 4, 5, 6], custom="TFLite_Detection_PostProcess", said=options)
    data = model(tensors, [operator], [0, 1], [3, 4, 5, 6])
    interpreter = tf.lite.Interpreter(model_content=data)
    interpreter.allocate_tensors()
    for detail, given in zip(interpreter.get_input_details(), (encodings, scores), strict=True):
        interpreter.set_tensor(detail["index"], given)
    interpreter.invoke()
    expected = [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
    found = hloforge.compile(data)(encodings, scores)
    (size,) = expected[3].astype(int)
    assert found[3].tolist() == expected[3].tolist()
    here = size * (1 if said.get("use_regular_nms") else said["max_classes_per_detection"])
    for got, want in zip(found[:3], expected[:3], strict=True):
        assert got.shape == want.shape
        # What follows the last one is not written by the interpreter.
        np.testing.assert_allclose(got[:, :here], want[:, :here], rtol=1e-5, atol=1e-6)
        assert not got[:, here:].any()
