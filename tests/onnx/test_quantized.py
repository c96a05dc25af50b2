"""Quantized graphs in integers, judged by ONNX Runtime: equal, or one step apart where a quotient is a tie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnxruntime as ort
from onnx import helper, numpy_helper

import hloforge
from hloforge.pipelines.codegen.lowering import lower

RANDOM = np.random.default_rng(0)


class _Graph:
    """A graph of one input ``x`` and one output ``y``."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.scales = np.float32(1)

    def constant(self, array: Any) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(array), f"c{len(self.constants)}"))
        name: str = self.constants[-1].name
        return name

    def add(self, operator: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        name = out or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def pair(self, x: str, scale: float, zero: int, dtype: Any = np.uint8) -> str:
        """QuantizeLinear and DequantizeLinear."""
        parameters = self.constant(np.float32(scale)), self.constant(dtype(zero))
        return self.add("DequantizeLinear", self.add("QuantizeLinear", x, *parameters), *parameters)

    def weights(self, *dims: int, axis: int = 0, channels: bool = True, dtype: Any = np.int8) -> str:
        """Of 7 bits: without VNNI, ONNX Runtime adds two products in 16 bits."""
        count = dims[axis] if channels else 1
        scales = self.scales = RANDOM.uniform(0.005, 0.02, count).astype(np.float32)
        zero = np.zeros(count, dtype) + dtype(64 if dtype is np.uint8 else 0)
        numbers = RANDOM.integers(-64, 64, dims) + int(zero[0])
        parameters = (scales, zero) if channels else (scales[0], zero[0])
        return self.add(
            "DequantizeLinear",
            self.constant(numbers.astype(dtype)),
            *(self.constant(one) for one in parameters),
            **({"axis": axis} if channels else {}),
        )

    def bias(self, count: int, scale: float, *, zero: bool = False) -> str:
        """In units of the last weights' sums: ONNX Runtime takes its scale for theirs, whatever it is.

        Args:
            zero: with a zero point, as its quantizer writes it.
        """
        numbers = RANDOM.integers(-3000, 3000, count).astype(np.int32)
        scales = (np.float32(scale) * self.scales).astype(np.float32)
        many = scales.size > 1
        given = [self.constant(numbers), self.constant(scales if many else scales[0])]
        if zero:
            given.append(self.constant(np.zeros_like(numbers) if many else np.int32(0)))
        return self.add("DequantizeLinear", *given, **({"axis": 0} if many else {}))

    def model(self, shape: Any, kind: int = 1, opset: int = 17) -> bytes:
        given = helper.make_tensor_value_info("x", 1, shape)
        result = helper.make_tensor_value_info("y", kind, None)
        graph = helper.make_graph(self.nodes, "quantized", [given], [result], self.constants)
        found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        found.ir_version = 9
        data: bytes = found.SerializeToString()
        return data


def _check(model: bytes, x: Any, step: float, *, in_integers: bool = True) -> None:
    options = ort.SessionOptions()
    # Its fused addition departs by a step from what the operators say, in one of twenty elements.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model, options)
    (expected,) = session.run(None, {"x": x})
    got = np.asarray(hloforge.compile(model)(x))
    assert got.dtype == expected.dtype
    apart = np.abs(got.astype(np.float64) - expected) / step
    assert apart.max() <= 1.001
    assert (apart > 0.5).mean() < 0.01
    copy = hloforge.read(model).clone()
    lower(copy.module)
    products = [
        line for line in str(copy.module).splitlines() if "dot_general" in line or "stablehlo.convolution" in line
    ]
    assert products
    assert all(line.rstrip().rpartition("-> ")[2].endswith("i32>") == in_integers for line in products)


@pytest.mark.parametrize("opset", [17, 21])
def test_small_weights_stay_bytes(opset: int) -> None:
    """Inputs of few elements are known to the importer, which computes what follows of them."""
    graph = _Graph()
    x = graph.pair("x", 0.03, 120)
    graph.add("Conv", x, graph.weights(6, 8, 1, 1), out="y")
    _check(graph.model([1, 8, 3, 3], opset=opset), RANDOM.normal(size=(1, 8, 3, 3)).astype(np.float32), 0.1)


@pytest.mark.wide(2)
@pytest.mark.parametrize("groups", [1, 8])
@pytest.mark.parametrize("channels", [True, False])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_convolutions(groups: int, channels: bool, dtype: Any) -> None:
    """Two, with a bias, an activation, padding and a stride; another that is added to the first one's result."""
    graph = _Graph()
    x = graph.pair("x", 0.03, 120)
    y = graph.add("Conv", x, graph.weights(16, 8 // groups, 3, 3, channels=channels, dtype=dtype), graph.bias(16, 0.03),
                  group=groups, pads=[1, 1, 1, 1])  # fmt: skip
    y = graph.pair(graph.add("Relu", y), 0.05, 0)
    z = graph.add("Conv", y, graph.weights(16, 16, 1, 1, channels=channels), graph.bias(16, 0.05))
    z = graph.add("Add", graph.pair(z, 0.07, 131), y)
    graph.add("Identity", graph.pair(z, 0.1, 99), out="y")
    _check(graph.model([2, 8, 9, 10]), RANDOM.normal(size=(2, 8, 9, 10)).astype(np.float32), 0.1)


@pytest.mark.wide(2)
@pytest.mark.parametrize("channels", [True, False])
@pytest.mark.parametrize("opset", [13, 17, 21])
def test_sums_with_a_bias_are_scaled_once(channels: bool, opset: int) -> None:
    """A bias with a zero point is known, whatever the version, and added as an integer."""
    graph = _Graph()
    x = graph.pair("x", 0.03, 120)
    y = graph.add("Conv", x, graph.weights(16, 8, 3, 3, channels=channels), graph.bias(16, 0.03, zero=True))
    graph.add("Identity", graph.pair(graph.add("Relu", y), 0.05, 0), out="y")
    model = graph.model([1, 8, 9, 10], opset=opset)
    _check(model, RANDOM.normal(size=(1, 8, 9, 10)).astype(np.float32), 0.05)
    copy = hloforge.read(model).clone()
    lower(copy.module)
    # Of the argument alone.
    assert str(copy.module).count("stablehlo.divide") == 1


@pytest.mark.wide(2)
@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "Slice", "Pad"])
def test_joined_images_keep_their_order(operator: str) -> None:
    """Features are last from the first convolution to the last one, also where images are joined and pooled."""
    graph = _Graph()
    x = graph.pair("x", 0.03, 120)
    one = graph.pair(graph.add("Conv", x, graph.weights(16, 8, 3, 3), pads=[1, 1, 1, 1]), 0.05, 100)
    other = graph.pair(graph.add("Conv", x, graph.weights(8, 8, 1, 1)), 0.04, 128)
    y = graph.pair(graph.add("Concat", one, other, axis=1), 0.05, 117)
    if operator == "Slice":
        y = graph.add("Slice", y, *(graph.constant(np.array(each, np.int64)) for each in ([1, 2], [7, 9], [2, 3])))
    elif operator == "Pad":
        y = graph.add("Pad", y, graph.constant(np.array([0, 0, 1, 0, 0, 0, 0, 2], np.int64)))
    else:
        y = graph.add(operator, y, kernel_shape=[3, 3], strides=[2, 2])
    y = graph.add("Conv", graph.pair(y, 0.05, 117), graph.weights(16, 24, 1, 1))
    graph.add("Identity", graph.pair(y, 0.1, 128), out="y")
    model = graph.model([1, 8, 9, 10])
    _check(model, RANDOM.normal(size=(1, 8, 9, 10)).astype(np.float32), 0.1)
    copy = hloforge.read(model).clone()
    lower(copy.module)
    # Of the argument, and of the result.
    assert str(copy.module).count("stablehlo.transpose") == 2


@pytest.mark.parametrize("features", [1, 2, 3, 5, 17])
def test_windows(features: int) -> None:
    """Of few features in and out, with a stride and a border of another size on each side."""
    graph = _Graph()
    x = graph.pair("x", 0.02, 120)
    y = graph.add("Conv", x, graph.weights(features, 3, 3, 2), strides=[2, 1], pads=[1, 0, 0, 1])
    graph.add("Identity", graph.pair(y, 0.03, 128), out="y")
    _check(graph.model([2, 3, 19, 18]), RANDOM.normal(size=(2, 3, 19, 18)).astype(np.float32), 0.03)


@pytest.mark.parametrize("rows", [1, 7, 40])
@pytest.mark.parametrize("operator", ["MatMul", "Gemm"])
def test_matrices(rows: int, operator: str) -> None:
    graph = _Graph()
    x = graph.pair("x", 0.02, 3, np.int8)
    if operator == "Gemm":
        y = graph.add("Gemm", x, graph.weights(33, 50, channels=False), graph.bias(33, 0.02), transB=1)
    else:
        y = graph.add("MatMul", x, graph.weights(50, 33, axis=1))
    graph.add("Identity", graph.pair(y, 0.06, -5, np.int8), out="y")
    _check(graph.model([rows, 50]), RANDOM.normal(size=(rows, 50)).astype(np.float32), 0.06)


def test_both_factors_are_computed() -> None:
    """Scores of attention: no factor is constant, and both have zero points."""
    graph = _Graph()
    one, other = graph.pair("x", 0.02, 110), graph.pair(graph.add("Sin", "x"), 0.01, 125)
    scores = graph.add("MatMul", one, graph.add("Transpose", other, perm=[0, 2, 1]))
    graph.add("Identity", graph.pair(scores, 0.05, 128), out="y")
    _check(graph.model([3, 6, 24]), RANDOM.normal(size=(3, 6, 24)).astype(np.float32), 0.05)


@pytest.mark.parametrize("operator", ["MatMulInteger", "ConvInteger"])
def test_scales_of_the_call(operator: str) -> None:
    """As ONNX Runtime's dynamic quantization writes layers."""
    graph = _Graph()
    graph.nodes.append(helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]))
    is_convolution = operator == "ConvInteger"
    dims = (6, 4, 3, 3) if is_convolution else (12, 9)
    numbers = graph.constant(RANDOM.integers(-64, 64, dims).astype(np.int8))
    attributes = {"pads": [1, 1, 1, 1]} if is_convolution else {}
    sums = graph.add(operator, "q", numbers, "zero", graph.constant(np.int8(0)), **attributes)
    scale = graph.add("Mul", "scale", graph.constant(np.float32(0.01)))
    graph.add("Mul", graph.add("Cast", sums, to=1), scale, out="y")
    shape = (2, 4, 7, 8) if is_convolution else (5, 12)
    _check(graph.model(shape), RANDOM.normal(size=shape).astype(np.float32), 1e-4)


def test_states_of_a_quantized_lstm_are_multiplied_as_bytes() -> None:
    """In both directions, whose weights are slices of one constant; they are packed when the program is compiled."""
    sizes = (7, 2, 16, 24)
    steps, batch, inputs, hidden = sizes
    graph = _Graph()
    weights = [graph.constant(RANDOM.integers(-64, 64, (2, n, 4 * hidden)).astype(np.int8)) for n in (inputs, hidden)]
    parameters = [graph.constant(one) for _ in range(2) for one in (np.full(2, 0.01, np.float32), np.zeros(2, np.int8))]
    graph.add(
        *("DynamicQuantizeLSTM", "x", *weights, "", "", "", "", "", *parameters),
        out="y", domain="com.microsoft", direction="bidirectional", hidden_size=hidden,
    )  # fmt: skip
    given = helper.make_tensor_value_info("x", 1, [steps, batch, inputs])
    result = helper.make_tensor_value_info("y", 1, None)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    made = helper.make_model(
        helper.make_graph(graph.nodes, "lstm", [given], [result], graph.constants), opset_imports=opsets
    )
    made.ir_version = 9
    data, x = made.SerializeToString(), RANDOM.normal(size=(steps, batch, inputs)).astype(np.float32)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    (expected,) = ort.InferenceSession(data, options).run(None, {"x": x})
    np.testing.assert_allclose(np.asarray(hloforge.compile(data)(x)), expected, atol=2e-6)
    copy = hloforge.read(data).clone()
    lower(copy.module)
    lines = [line for line in str(copy.module).splitlines() if "dot_general" in line]
    assert len(lines) == 4
    assert all(line.rstrip().endswith("i32>") for line in lines)
