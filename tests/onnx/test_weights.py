"""Functions of weights alone are computed when a model is imported, beside onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import hloforge

_RNG = np.random.default_rng(3)
_node = helper.make_node


def _normal(*dims: int) -> Any:
    return _RNG.standard_normal(dims).astype(np.float32)


_AXES = np.array([1], np.int64)
# Nodes, the argument, weights, and how many arithmetic operations are left.
_CASES: dict[str, tuple[Any, ...]] = {
    "norms of rows": (
        [
            _node("ReduceL2", ["w", "axes"], ["n"]), _node("Clip", ["n", "least"], ["c"]), _node("Shape", ["w"], ["s"]),
            _node("Expand", ["c", "s"], ["e"]), _node("Div", ["w", "e"], ["d"]), _node("Transpose", ["d"], ["t"]),
            _node("MatMul", ["x", "t"], ["y"]),
        ],
        _normal(3, 40), {"w": _normal(300, 40), "axes": _AXES, "least": np.float32(1e-9)}, 0,
    ),
    "scaled columns": (
        [
            _node("Transpose", ["w"], ["t"]), _node("Mul", ["t", "k"], ["u"]), _node("Sub", ["u", "k"], ["v"]),
            _node("MatMul", ["x", "v"], ["y"]),
        ],
        _normal(3, 40), {"w": _normal(300, 40), "k": _normal(300)}, 0,
    ),
    "larger than the weights": (
        [_node("Add", ["w", "v"], ["u"]), _node("Mul", ["u", "x"], ["y"])],
        _normal(1, 1), {"w": _normal(300, 1), "v": _normal(1, 400)}, 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", _CASES)
def test_functions_of_weights(name: str) -> None:
    nodes, x, weights, left = _CASES[name]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)]
    known = [numpy_helper.from_array(np.asarray(array), key) for key, array in weights.items()]
    graph = helper.make_graph(nodes, "graph", given, [helper.make_empty_tensor_value_info("y")], known)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    model = made.SerializeToString()
    (expected,) = onnxruntime.InferenceSession(model).run(None, {"x": x})
    np.testing.assert_allclose(hloforge.compile(model)(x), expected, rtol=1e-4, atol=1e-5)
    text = str(hloforge.as_program(model).module)
    operations = ("add", "subtract", "multiply", "divide", "maximum", "sqrt", "reduce")
    assert sum(text.count(f"stablehlo.{operation}") for operation in operations) == left
