"""Ranges of ``dim_param`` sizes: one file computes what onnxruntime computes at every size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="needs the extra `onnx`")
onnxruntime = pytest.importorskip("onnxruntime", reason="compares with onnxruntime")
from onnx import helper, numpy_helper  # noqa: E402

import hloforge  # noqa: E402

_RNG = np.random.default_rng(0)


def _weights(**shapes: tuple[int, ...]) -> list[onnx.TensorProto]:
    return [
        numpy_helper.from_array((_RNG.normal(size=shape) / 3).astype(np.float32), name)
        for name, shape in shapes.items()
    ]


def _pictures() -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
    """Convolutions and pools along an open height, then a reshape to the open batch."""
    nodes = [
        helper.make_node("Conv", ["x", "kernel"], ["features"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("MaxPool", ["features"], ["p"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["p"], ["pooled"]),
        helper.make_node("Shape", ["x"], ["sizes"], end=1),
        helper.make_node("Concat", ["sizes", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["pooled", "target"], ["flat"]),
        helper.make_node("Softmax", ["flat"], ["y"]),
    ]
    return nodes, [*_weights(kernel=(6, 3, 3, 3)), numpy_helper.from_array(np.array([-1]), "rest")]


def _recurrent() -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
    """An LSTM in both directions over an open length: the one that runs backwards begins at the real end."""
    node = helper.make_node("LSTM", ["x", "w", "r"], ["", "y"], hidden_size=4, direction="bidirectional")
    return [node], _weights(w=(2, 16, 8), r=(2, 16, 4))


MODELS = {
    "pictures": (_pictures, ["batch", 3, "height", 16], {"batch": [1, 4], "height": [12, 33]}),
    "recurrent": (_recurrent, ["length", "batch", 8], {"length": [3, 10], "batch": [5]}),
}
SIZES = {
    "pictures": [(1, 12), (2, 13), (4, 33), (3, 32), (1, 7)],
    "recurrent": [(3, 5), (4, 1), (10, 2), (9, 4), (1, 3)],
}


@pytest.mark.parametrize("name", MODELS)
def test_one_file_is_right_at_all_sizes(name: str, tmp_path: Path) -> None:
    make, dims, buckets = MODELS[name]
    nodes, weights = make()
    values = [
        helper.make_tensor_value_info(each, onnx.TensorProto.FLOAT, shape) for each, shape in (("x", dims), ("y", None))
    ]
    graph = helper.make_graph(nodes, name, values[:1], values[1:], weights)
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), path)
    hloforge.compile(path, buckets=buckets, output=tmp_path / "model.vmfb")
    session, judge = hloforge.load(tmp_path / "model.vmfb"), onnxruntime.InferenceSession(path)
    for sizes in SIZES[name]:
        given = iter(sizes)
        x = _RNG.normal(size=[next(given) if isinstance(d, str) else d for d in dims]).astype(np.float32)
        (expected,) = judge.run(None, {"x": x})
        np.testing.assert_allclose(session(x), expected, rtol=1e-4, atol=1e-5)
    assert sum(bucket.calls for bucket in session.buckets) == len(SIZES[name])
