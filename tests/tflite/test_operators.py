"""Models that TFLite's converter writes, against TFLite's interpreter: floats, integers, half weights, StableHLO."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.importers.tflite.load import load_model
from hloforge.pipelines.codegen.lowering import lower
from tests.tflite.cases import INPUTS, categories, weights
from tests.tflite.judge import converted, inputs_of, interpreted, results_of

pytestmark = pytest.mark.slow
pytest.importorskip("tflite", reason="the package tflite is not installed")

CATEGORIES = ("unary", "binary", "reduction", "shape", "indexing", "convolution", "control")
# Floats differ by the order of sums.
TOLERANCE = 2e-6
# Integers in, integers out: sums that are rounded once, and what only moves or compares.
EXACT = {
    *("conv", "wide", "depthwise", "transposed", "dense", "add", "sub", "mul", "max_pool", "average_pool", "concat"),
    *("pad", "strided", "transpose", "argmax", "less", "gather", "mean", "sum", "softmax"),
}


@pytest.fixture(scope="module")
def tf() -> Any:
    return pytest.importorskip("tensorflow", reason="TensorFlow, whose interpreter judges, is not installed")


def differences(found: list[Any], expected: list[Any], names: list[str]) -> dict[str, float]:
    """By output, how far numbers are apart: floats in terms of the largest, integers in units."""
    apart = {}
    for name, mine, theirs in zip(names, found, expected, strict=True):
        mine = np.asarray(mine)
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype), name
        wide = np.complex128 if mine.dtype.kind == "c" else np.float64
        same = (mine == theirs) | ((mine != mine) & (theirs != theirs))
        # What is NaN on one side alone is infinitely far.
        distance = np.nan_to_num(np.abs(mine.astype(wide) - theirs.astype(wide)), nan=np.inf)[~same].max(initial=0)
        scale = np.abs(theirs).max(initial=1e-6) if mine.dtype.kind in "fc" else 1
        apart[name] = float(distance / scale)
    return apart


@pytest.mark.parametrize("category", CATEGORIES)
def test_category(category: str, tf: Any) -> None:
    data, _ = converted(tf, categories(tf)[category])
    inputs = inputs_of(data)
    expected, names = interpreted(tf, data, inputs)
    apart = differences(results_of(data, inputs), expected, names)
    assert {name: far for name, far in apart.items() if far > TOLERANCE} == {}


def quantized_cases(tf: Any) -> dict[str, Any]:
    nn = tf.nn
    return {
        "conv": lambda image: nn.relu(nn.conv2d(image, weights(3, 3, 4, 6), 2, "SAME") + weights(6)),
        "wide": lambda image: nn.conv2d(tf.concat([image] * 64, -1), weights(3, 3, 256, 6), 1, "SAME"),
        "depthwise": lambda image: nn.relu6(nn.depthwise_conv2d(image, weights(3, 3, 4, 2), [1] * 4, "SAME")),
        "transposed": lambda image: nn.conv2d_transpose(image, weights(3, 3, 5, 4), [2, 18, 16, 5], 2, "SAME"),
        "dense": lambda x: nn.relu(tf.reshape(x, [3, 20]) @ weights(20, 7) + weights(7)),
        "add": lambda x, y: x + y,
        "sub": lambda x, y: nn.relu(x - y),
        "mul": lambda x, y: x * y,
        "max_pool": lambda image: nn.max_pool2d(image, [3, 2], 2, "SAME"),
        "average_pool": lambda image: nn.avg_pool2d(image, 3, 2, "SAME"),
        "mean": lambda image: tf.reduce_mean(image, [1, 2]),
        "sum": lambda image: tf.reduce_sum(image, [1, 2]),
        "softmax": lambda x: nn.softmax(x),
        "log_softmax": lambda x: nn.log_softmax(x),
        "sigmoid": lambda x: tf.sigmoid(x),
        "tanh": lambda x: tf.tanh(x),
        "hard_swish": lambda x: x * nn.relu6(x + 3.0) * 0.16666667,
        "leaky_relu": lambda x: nn.leaky_relu(x, 0.2),
        "elu": lambda x: nn.elu(x),
        "exp": lambda x: tf.exp(x),
        "rsqrt": lambda positive: tf.math.rsqrt(positive),
        "concat": lambda x, y: tf.concat([x, y * 3], -1),
        "pad": lambda x: tf.pad(x, [[0, 1], [1, 0], [1, 1]]),
        "resize": lambda image: tf.image.resize(image, [17, 5]),
        "strided": lambda x: x[1:, ::-2, 1::2],
        "transpose": lambda x: tf.transpose(x, [2, 0, 1]),
        "maximum": lambda x, y: tf.maximum(x, y),
        "squared_difference": lambda x, y: tf.math.squared_difference(x, y),
        "normalize": lambda x: nn.l2_normalize(x, -1),
        "argmax": lambda x: tf.argmax(x, -1),
        "less": lambda x, y: x < y,
        "gather": lambda x, places: tf.gather(x, places, axis=1),
    }


def representative(names: list[str]) -> Iterator[dict[str, Any]]:
    """What the converter measures ranges on: the inputs, and their elements in other orders."""
    yield {name: INPUTS[name] for name in names}
    for seed in range(3):
        random = np.random.default_rng(seed)
        yield {name: random.permutation(INPUTS[name].reshape(-1)).reshape(INPUTS[name].shape) for name in names}


def stored_inputs(data: bytes) -> list[Any]:
    """The inputs of a quantized model, as integers where it takes them."""
    graph = load_model(data).graphs[0]
    stored = []
    for number, array in zip(graph.inputs, inputs_of(data), strict=True):
        tensor = graph.tensors[number]
        if tensor.quantization is not None:
            limits = np.iinfo(tensor.row.dtype)
            units = np.round(array / tensor.quantization.scale[0]) + tensor.quantization.zero_point[0]
            array = np.clip(units, limits.min, limits.max).astype(tensor.row.dtype)
        stored.append(array)
    return stored


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_quantized(kind: str, tf: Any) -> None:
    """Products, sums and pools agree exactly with the interpreter, functions within one unit."""
    cases, names = quantized_cases(tf), ["image", "x", "y", "positive", "places"]
    data, _ = converted(
        tf,
        cases,
        optimizations=[tf.lite.Optimize.DEFAULT],
        representative_dataset=lambda: representative(names),
        target_spec=tf.lite.TargetSpec(supported_ops=[tf.lite.OpsSet.TFLITE_BUILTINS_INT8]),
        inference_input_type=getattr(tf, kind),
        inference_output_type=getattr(tf, kind),
    )
    inputs = stored_inputs(data)
    expected, outputs = interpreted(tf, data, inputs)
    apart = differences(results_of(data, inputs), expected, outputs)
    assert max(apart.values()) <= 1
    assert {name for name, far in apart.items() if far and name.removesuffix("_0") in EXACT} == set()


def test_quantized_products_of_two_inputs(tf: Any) -> None:
    """Against TFLite's own kernels: XNNPACK leaves the zero point of the second operand out (TensorFlow 2.21)."""
    data, _ = converted(
        tf,
        {"product": lambda x, y: tf.matmul(x, y, transpose_b=True)},
        optimizations=[tf.lite.Optimize.DEFAULT],
        representative_dataset=lambda: representative(["x", "y"]),
        target_spec=tf.lite.TargetSpec(supported_ops=[tf.lite.OpsSet.TFLITE_BUILTINS_INT8]),
        inference_input_type=tf.int8,
        inference_output_type=tf.int8,
    )
    inputs = stored_inputs(data)
    expected, names = interpreted(tf, data, inputs, plain=True)
    assert max(differences(results_of(data, inputs), expected, names).values()) <= 1


@pytest.mark.parametrize("kind", ["half", "range"])
def test_narrow_weights(kind: str, tf: Any) -> None:
    """Weights of f16, and of s8 beside floats, which are quantized by their range: rows, images, zeros alone."""
    spec = tf.lite.TargetSpec(supported_types=[tf.float16]) if kind == "half" else tf.lite.TargetSpec()
    nn, names = tf.nn, ("conv", "wide", "depthwise", "transposed", "dense")
    cases = {name: quantized_cases(tf)[name] for name in names} | {
        # Of 1,024 weights and more, as the converter quantizes them.
        "conv of images": lambda image: nn.relu(nn.conv2d(image, weights(3, 3, 4, 40), 2, "SAME") + weights(40)),
        "many channels": lambda image: nn.depthwise_conv2d(
            tf.concat([image] * 32, -1), weights(3, 3, 128, 1), [1] * 4, "SAME"
        ),
        "wide transposed": lambda image: nn.conv2d_transpose(image, weights(3, 3, 32, 4), [2, 18, 16, 32], 2, "SAME"),
        "rows": lambda x: tf.reshape(x, [3, 20]) @ weights(20, 60) + weights(60),
        "rows of zeros": lambda x: tf.reshape(nn.relu(-tf.abs(x)), [3, 20]) @ weights(20, 60) + weights(60),
        "more dimensions": lambda x: tf.tensordot(x, weights(5, 210), 1),
    }
    data, _ = converted(tf, cases, optimizations=[tf.lite.Optimize.DEFAULT], target_spec=spec)
    inputs = inputs_of(data)
    expected, outputs = interpreted(tf, data, inputs)
    apart = differences(results_of(data, inputs), expected, outputs)
    assert {name: far for name, far in apart.items() if far > TOLERANCE} == {}


def test_floats_by_quantized_weights_are_products_of_bytes(tf: Any) -> None:
    data, _ = converted(
        tf, {"rows": lambda x: tf.reshape(x, [3, 20]) @ weights(20, 60)}, optimizations=[tf.lite.Optimize.DEFAULT]
    )
    program = hloforge.read(data).clone()
    lower(program.module)
    (product,) = [line for line in str(program.module).splitlines() if "dot_general" in line]
    assert product.rstrip().endswith("i32>")


def test_operators_of_stablehlo(tf: Any) -> None:
    """The interpreter has no kernels for them: TensorFlow judges."""
    everything = {name: case for cases in categories(tf).values() for name, case in cases.items()}
    names = (
        *("abs", "exp", "floor", "log", "rsqrt", "tanh", "sigmoid", "to_int", "add", "sub", "mul", "div", "max", "pow"),
        *("less", "select", "mean", "sum", "max", "softmax", "log_softmax", "reshape", "transpose", "concat", "pad"),
        *("conv", "depthwise", "max_pool", "dense", "matmul", "gather", "cumsum"),
    )
    stablehlo = tf.lite.TargetSpec(supported_ops=[tf.lite.OpsSet.EXPERIMENTAL_STABLEHLO_OPS])
    passed = set()
    for name in dict.fromkeys(names):
        data, given = converted(tf, {name: everything[name]}, target_spec=stablehlo)
        operators = {operator.name for graph in load_model(data).graphs for operator in graph.operators}
        expected = everything[name](*(tf.constant(INPUTS[key]) for key in given))
        expected = [part.numpy() for part in (expected if isinstance(expected, list | tuple) else [expected])]
        found = results_of(data, inputs_of(data))
        apart = differences(found, expected, [f"{name}_{number}" for number in range(len(expected))])
        assert max(apart.values()) < 1e-5, (apart, operators)
        if all(operator.startswith("STABLEHLO_") for operator in operators):
            passed.add(name)
    assert len(passed) > 20


def small_mobilenet(tf: Any) -> Any:
    """Blocks of MobileNet's second version."""
    layers = tf.keras.layers
    x = inputs = tf.keras.Input((32, 32, 3), name="image")
    x = layers.ReLU(6.0)(layers.BatchNormalization()(layers.Conv2D(8, 3, 2, "same", use_bias=False)(x)))
    for width, stride in ((12, 2), (12, 1)):
        block = layers.ReLU(6.0)(layers.BatchNormalization()(layers.Conv2D(24, 1)(x)))
        block = layers.ReLU(6.0)(layers.BatchNormalization()(layers.DepthwiseConv2D(3, stride, "same")(block)))
        block = layers.BatchNormalization()(layers.Conv2D(width, 1)(block))
        x = layers.Add()([x, block]) if x.shape == block.shape else block
    x = layers.GlobalAveragePooling2D()(x)
    return tf.keras.Model(inputs, layers.Softmax()(layers.Dense(10)(x)))


@pytest.mark.parametrize("quantized", [False, True])
def test_mobilenet(quantized: bool, tf: Any) -> None:
    tf.keras.utils.set_random_seed(0)
    model = small_mobilenet(tf)
    images = np.random.default_rng(0).normal(size=(4, 32, 32, 3)).astype(np.float32)
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if quantized:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: iter([[image[None]] for image in images])
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    data = converter.convert()
    expected, names = interpreted(tf, data, [images])
    apart = differences(results_of(data, [images]), expected, names)
    assert max(apart.values()) < (1 / 128 if quantized else 1e-5)


def _recurrent(tf: Any, *, unroll: bool) -> bytes:
    tf.keras.utils.set_random_seed(0)
    inputs = tf.keras.Input((6, 4), batch_size=2)
    x = tf.keras.layers.LSTM(5, return_sequences=True, unroll=unroll)(inputs)
    model = tf.keras.Model(inputs, tf.keras.layers.GRU(3, unroll=unroll)(x))
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    data: bytes = converter.convert()
    return data


@pytest.mark.parametrize("unroll", [True, False])
def test_recurrent_layers(unroll: bool, tf: Any) -> None:
    """In a loop, the converter writes an element of a list by slices whose sizes change from turn to turn."""
    data = _recurrent(tf, unroll=unroll)
    expected, names = interpreted(tf, data, [INPUTS["sequence"]])
    assert max(differences(results_of(data, [INPUTS["sequence"]]), expected, names).values()) < 1e-5


def test_lists_in_loops(tf: Any) -> None:
    """Written from the end, one element too early, and read at computed places."""

    @tf.function(input_signature=[tf.TensorSpec([4, 3])])
    def function(x: Any) -> Any:
        rows = tf.TensorArray(tf.float32, 4)
        for i in tf.range(4):
            rows = rows.write(3 - i, x[i] * 2.0 + x[i - 1] + x[-1, i % 3])
        return rows.stack()

    concrete = function.get_concrete_function()
    data = tf.lite.TFLiteConverter.from_concrete_functions([concrete], None).convert()
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    expected, names = interpreted(tf, data, [x])
    assert max(differences(results_of(data, [x]), expected, names).values()) < 1e-6
