"""Results whose sizes depend on elements: one program for all elements, as ONNX Runtime computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import hloforge


def _model(nodes: list[Any], inputs: list[Any], results: list[Any], **weights: Any) -> bytes:
    given = [numpy_helper.from_array(np.asarray(weight), name) for name, weight in weights.items()]
    outputs = [helper.make_empty_tensor_value_info(name) if isinstance(name, str) else name for name in results]
    graph = helper.make_graph(nodes, "bounded", inputs, outputs, given)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return bytes(model.SerializeToString())


def _agrees(model: bytes, *samples: dict[str, Any], of_elements: bool = False) -> None:
    """One program computes ONNX Runtime's results for all samples.

    Args:
        of_elements: whether it is compiled for the elements of each call instead.
    """
    runtime = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    program = hloforge.compile(model)
    assert (program.__class__.__name__ != "Executable") == of_elements
    for sample in samples:
        found = program(*sample.values())
        found = found if isinstance(found, tuple | list) else [found]
        for got, want in zip(found, runtime.run(None, sample), strict=True):
            assert got.dtype == want.dtype and got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-6)


def test_rules_tell_where_a_size_goes() -> None:
    node = helper.make_node
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 3])
    nodes = [
        node("NonZero", ["x"], ["places"]),
        node("Transpose", ["places"], ["rows"], perm=[1, 0]),
        node("GatherND", ["x", "rows"], ["elements"]),
        node("Mul", ["elements", "two"], ["doubled"]),
        node("Greater", ["x", "half"], ["mask"]),
        node("ReduceMax", ["x", "last"], ["greatest"], keepdims=0),
        node("Greater", ["greatest", "half"], ["is_kept"]),
        node("Compress", ["x", "is_kept"], ["kept"], axis=0),
        node("MatMul", ["kept", "square"], ["product"]),
        node("Unsqueeze", ["kept", "last"], ["deep"]),
        node("Sub", ["deep", "kept_once"], ["less"]),
        node("Softmax", ["kept"], ["scores"]),
        node("ReduceSum", ["kept", "last"], ["sums"], keepdims=0),
        node("NonZero", ["is_kept"], ["numbers"]),
        node("Reshape", ["numbers", "flat"], ["vector"]),
        node("Gather", ["x", "vector"], ["again"]),
        node("Slice", ["again", "one", "three", "one"], ["columns"]),
        node("ArgMax", ["columns"], ["best"], axis=1, keepdims=0),
        node("Concat", ["again", "columns"], ["both"], axis=1),
    ]
    results = ["places", "doubled", "product", "less", "scores", "sums", "again", "columns", "best", "both"]
    weights = {"two": np.float32(2), "half": np.float32(0.5), "last": [-1], "flat": [-1], "one": [1], "three": [3]}
    weights |= {"square": np.float32(np.arange(9).reshape(3, 3)), "kept_once": np.float32([1])}
    rng = np.random.default_rng(0)
    numbers = np.float32(rng.integers(-1, 2, (4, 3)))
    # Not none: ONNX Runtime gives sums of no rows a dimension too many.
    one = np.float32(np.arange(12).reshape(4, 3) == 7)
    _agrees(_model(nodes, [x], results, **weights), {"x": numbers}, {"x": one}, {"x": 1 + numbers**2})


def test_uses_without_a_rule_are_compiled_for_the_elements() -> None:
    node = helper.make_node
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [5])
    nodes = [node("NonZero", ["x"], ["places"]), node("CumSum", ["places", "one"], ["sums"])]
    sums = helper.make_tensor_value_info("sums", TensorProto.INT64, [1, None])
    _agrees(_model(nodes, [x], [sums], one=np.int64(1)), {"x": np.float32([0, 1, 0, 2, 3])}, of_elements=True)


def test_distinct_elements_are_found_when_called() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4])
    nodes = [
        helper.make_node("Unique", ["x"], ["ascending", "first", "number", "count"]),
        helper.make_node("Unique", ["x"], ["in_order", "first_", "number_", "count_"], sorted=0),
        helper.make_node("Mul", ["ascending", "two"], ["doubled"]),
    ]
    names = [name for node in nodes for name in node.output]
    rng = np.random.default_rng(0)
    samples = [{"x": np.float32(rng.integers(-most, most + 1, (3, 4)))} for most in (0, 1, 3, 100)]
    samples.append({"x": np.float32([[0.0, -0.0, 2, 1], [-0.0, 2, np.inf, -np.inf], [1, 0.0, np.inf, 7]])})
    _agrees(_model(nodes, [x], names, two=np.float32(2)), *samples)


@pytest.mark.parametrize("center", (0, pytest.param(1, marks=pytest.mark.slow)))
def test_boxes_are_suppressed(center: int) -> None:
    rng = np.random.default_rng(center)
    boxes = helper.make_tensor_value_info("boxes", TensorProto.FLOAT, [2, 12, 4])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, [2, 3, 12])
    names = ["boxes", "scores", "most", *([] if center else ["limit", "least"])]
    nodes = [
        helper.make_node("NonMaxSuppression", names, ["chosen"], center_point_box=center),
        helper.make_node("Gather", ["chosen", "two"], ["numbers"], axis=1),
    ]
    weights = {"most": np.int64([5]), "limit": np.float32([0.3]), "least": np.float32([0.4]), "two": np.int64(2)}
    model = _model(nodes, [boxes, scores], ["chosen", "numbers"], **weights)

    def sample(grid: int) -> dict[str, Any]:
        places = rng.random((2, 12, 4))
        # Equal scores, and boxes that are equal or empty.
        return {"boxes": np.float32(places), "scores": np.float32(np.round(rng.random((2, 3, 12)) * grid) / grid)}

    none = sample(5)
    _agrees(model, sample(1000), sample(5), none | {"scores": 0 * none["scores"]})


def test_sizes_that_a_program_has_are_no_news() -> None:
    """Naming them changes nothing: refinement would lose the bounds, and code generation refuse the results."""
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 3])
    model = _model([helper.make_node("NonZero", ["x"], ["places"])], [given], ["places"])
    program = hloforge.compile(model, shapes={"x": (4, 3)})
    assert "llvmlite" in dict(program.manifest.versions)
    x = np.eye(4, 3, dtype=np.float32)
    np.testing.assert_array_equal(program(x), np.nonzero(x))
    with pytest.raises(hloforge.Error, match="expected f32"):
        hloforge.compile(model, shapes={"x": (4, 5)})
