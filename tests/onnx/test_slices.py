"""Slices by numbers on both sides of an array's ends; ONNX Runtime is right."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import hloforge


def test_slices_begin_and_end_where_onnx_says() -> None:
    ends = (-(1 << 40), -4, -3, -1, 0, 2, 5)
    cases = list(product(ends, ends, (1, 2, -1, -2)))
    nodes, weights = [], []
    for number, case in enumerate(cases):
        names = [f"{part}{number}" for part in ("start", "end", "step")]
        weights += [numpy_helper.from_array(np.array([one]), name) for one, name in zip(case, names, strict=True)]
        nodes.append(helper.make_node("Slice", ["x", *names[:2], "axis", names[2]], [f"y{number}"]))
    weights.append(numpy_helper.from_array(np.array([0]), "axis"))
    results = [helper.make_empty_tensor_value_info(f"y{number}") for number in range(len(cases))]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
    graph = helper.make_graph(nodes, "slices", [x], results, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9).SerializeToString()
    numbers = np.float32([1, 2, 3])
    expected = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": numbers})
    found = hloforge.compile(model).load()(numbers)
    for case, got, want in zip(cases, found, expected, strict=True):
        np.testing.assert_array_equal(got, want, err_msg=str(case))
