"""ONNX operators by their attributes, those that people set seldom too: six nodes in a graph, each of its own inputs.

ONNX Runtime is right; what it does not take is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import hloforge
from hloforge.runtime.reference.compare import compare
from tests.prove.onnx_nodes import KINDS, Array, Node

_TYPES = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "int32": TensorProto.INT32,
          "int64": TensorProto.INT64, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "bool": TensorProto.BOOL,
          "float16": TensorProto.FLOAT16}  # fmt: skip
_NODES = 6


def _model(nodes: Sequence[Node]) -> bytes:
    inputs = [
        helper.make_tensor_value_info(name, _TYPES[str(array.dtype)], array.shape)
        for node in nodes
        for name, array in node.parameters.items()
    ]
    constants = [numpy_helper.from_array(array, name) for node in nodes for name, array in node.constants.items()]
    outputs = [helper.make_empty_tensor_value_info(name) for node in nodes for name in node.results]
    graph = helper.make_graph([one for node in nodes for one in node.nodes], "edges", inputs, outputs, constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return bytes(made.SerializeToString())


def _expected(node: Node) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(_model([node]), options, providers=["CPUExecutionProvider"])
    return [np.asarray(one) for one in session.run(node.results, node.parameters)]


def judge(seed: int) -> str:
    """What is wrong about the results of a seed's graph; empty if nothing is."""
    random = Random(f"onnx edges {seed}")
    nodes, expected = [], []
    while len(nodes) < _NODES:
        node = Node(random, len(nodes))
        random.choice(KINDS)(node)
        try:
            results = _expected(node)
        except Exception:  # its errors have no common class of their own
            continue
        if all(one.dtype.kind != "f" or np.isfinite(one).all() for one in results):
            nodes.append(node)
            expected.append(results)
    try:
        found = _found(nodes)
        reports = [compare(tuple(one), tuple(other)) for one, other in zip(found, expected, strict=True)]
    except hloforge.Error as error:
        return f"{[node.nodes[0].op_type for node in nodes]}: {error.message}"
    bad = [(node, report) for node, report in zip(nodes, reports, strict=True) if not report.agrees]
    return "; ".join(f"{_text(node)}: {report.text()}" for node, report in bad)


def _found(nodes: Sequence[Node]) -> list[list[Array]]:
    arguments = [array for node in nodes for array in node.parameters.values()]
    found = hloforge.compile(_model(nodes), cache=False).load()(*arguments)
    leaves = list(found) if isinstance(found, tuple | list) else [found]
    return [[np.asarray(leaves.pop(0)) for _ in node.results] for node in nodes]


def _text(node: Node) -> str:
    one = node.nodes[0]
    attributes = {each.name: helper.get_attribute_value(each) for each in one.attribute}
    arrays = (*node.parameters.values(), *node.constants.values())
    shapes = [str(array.dtype) + str(list(array.shape)) for array in arrays]
    return f"{one.op_type} {attributes} of {shapes}"
