"""Resize of arrays without elements; ONNX Runtime is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import hloforge


def _model(shape: list[int], sizes: list[int]) -> bytes:
    node = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="nearest")
    return _of(node, shape, numpy_helper.from_array(np.array(sizes), "sizes"))


def _of(node: Any, shape: list[int], weight: Any) -> bytes:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    graph = helper.make_graph([node], "resize", [x], [helper.make_empty_tensor_value_info("y")], [weight])
    return bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()
    )


@pytest.mark.parametrize(("shape", "sizes"), [([0, 2, 3], [0, 4, 6]), ([2, 0], [4, 0]), ([0], [0])])
def test_resize_without_elements(shape: list[int], sizes: list[int]) -> None:
    model, x = _model(shape, sizes), np.zeros(shape, np.float32)
    (want,) = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    assert np.shape(hloforge.compile(model).load()(x)) == want.shape


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize_to_nothing(mode: str) -> None:
    scales = numpy_helper.from_array(np.array([1, 1, 0.5, 2], np.float32), "scales")
    shape = [1, 2, 1, 4]
    model, x = (
        _of(helper.make_node("Resize", ["x", "", "scales"], ["y"], mode=mode), shape, scales),
        np.ones(shape, "f"),
    )
    (want,) = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    assert np.shape(hloforge.compile(model).load()(x)) == want.shape


def test_nothing_is_resized_to_something() -> None:
    with pytest.raises(hloforge.Error, match="no element of dimension 0 is there to make 3 of"):
        hloforge.compile(_model([0], [3]))
