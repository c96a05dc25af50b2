"""Recurrent operators that the converter no longer writes, in files of our own, against TFLite's interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite", reason="the package tflite is not installed")

import hloforge
from tests.engines import shared_reference
from tests.tflite.files import F32, Op, T, model
from tests.tflite.judge import interpreted

pytestmark = pytest.mark.slow
BATCH, TIME, WIDTH, UNITS = 2, 5, 4, 3
TANH = 4


class Layer:
    """Tensors of an operator, added one by one at the numbers of its inputs."""

    def __init__(self, inputs: int) -> None:
        self.random = np.random.default_rng(0)
        self.tensors = [T("x", (BATCH, TIME, WIDTH))]
        self.inputs = [0] + [-1] * (inputs - 1)

    def weight(self, place: int, *dims: int) -> None:
        data = (0.4 * self.random.normal(size=dims)).astype(np.float32)
        self._add(place, T(f"w{place}", dims, F32, data))

    def state(self, place: int, width: int) -> None:
        self._add(place, T(f"state{place}", (BATCH, width), variable=True))

    def _add(self, place: int, tensor: T) -> None:
        self.tensors.append(tensor)
        self.inputs[place] = len(self.tensors) - 1

    def file(self, name: str, options: str, *widths: int, **fields: Any) -> bytes:
        tensors = [*self.tensors, *(T(f"y{number}", (BATCH, TIME, width)) for number, width in enumerate(widths))]
        results = [*range(len(self.tensors), len(tensors))]
        return model(tensors, [Op(name, self.inputs, results, options, fields)], [0], results)


def check(data: bytes, apart: bytes = b"") -> None:
    """Our results by the interpreter's; those of a merged layer by the interpreter's of the same layer, apart."""
    tf = pytest.importorskip("tensorflow", reason="TensorFlow, whose interpreter judges, is not installed")
    x = np.random.default_rng(1).normal(size=(BATCH, TIME, WIDTH)).astype(np.float32)
    expected, _ = interpreted(tf, apart or data, [x], plain=True)
    expected = [np.concatenate(expected, axis=2)] if apart else expected
    # XLA's client compiles in milliseconds what the importer wrote.
    found = shared_reference("xla").prepare(hloforge.read(data))(x)
    results = found if isinstance(found, tuple) else (found,)
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", ["plain", "coupled", "peepholes and projection"])
def test_long_short_term(form: str) -> None:
    """Coupled: without an input gate. A cell is clipped in all of them."""
    layer, projected = Layer(24), form == "peepholes and projection"
    width = 2 if projected else UNITS
    for gate in range(1 if form == "coupled" else 0, 4):
        layer.weight(1 + gate, UNITS, WIDTH)
        layer.weight(5 + gate, UNITS, width)
        layer.weight(12 + gate, UNITS)
    if projected:
        for place in (9, 10, 11):
            layer.weight(place, UNITS)
        layer.weight(16, width, UNITS)
        layer.weight(17, width)
    layer.state(18, width)
    layer.state(19, UNITS)
    options = {"FusedActivationFunction": TANH, "CellClip": 0.5}
    check(layer.file("UNIDIRECTIONAL_SEQUENCE_LSTM", "UnidirectionalSequenceLSTMOptions", width, **options))


def test_plain_recurrence() -> None:
    layer = Layer(5)
    layer.weight(1, UNITS, WIDTH)
    layer.weight(2, UNITS, UNITS)
    layer.weight(3, UNITS)
    layer.state(4, UNITS)
    check(layer.file("UNIDIRECTIONAL_SEQUENCE_RNN", "SequenceRNNOptions", UNITS, FusedActivationFunction=TANH))


@pytest.mark.parametrize("merged", [True, False], ids=["merged", "apart"])
@pytest.mark.parametrize("form", ["plain", "coupled", "peepholes and projection"])
def test_long_short_term_both_ways(form: str, merged: bool) -> None:
    layer, projected = Layer(48), form == "peepholes and projection"
    width = 2 if projected else UNITS
    for offset in (0, 17):
        for gate in range(1 if form == "coupled" else 0, 4):
            layer.weight(offset + 1 + gate, UNITS, WIDTH)
            layer.weight(offset + 5 + gate, UNITS, width)
            layer.weight(offset + 12 + gate, UNITS)
        if projected:
            for place in (9, 10, 11):
                layer.weight(offset + place, UNITS)
            layer.weight(offset + 16, width, UNITS)
            layer.weight(offset + 17, width)
    for place, size in ((35, width), (36, UNITS), (37, width), (38, UNITS)):
        layer.state(place, size)
    # Of this layer alone the schema's default is that time comes first.
    options = {"FusedActivationFunction": TANH, "CellClip": 0.5, "TimeMajor": False}
    name = "BIDIRECTIONAL_SEQUENCE_LSTM", "BidirectionalSequenceLSTMOptions"
    apart = layer.file(*name, width, width, MergeOutputs=False, **options)
    # TFLite 2.21 reads memory that it has not written for the second batch of merged results: each run differs.
    check(layer.file(*name, 2 * width, MergeOutputs=True, **options), apart) if merged else check(apart)


@pytest.mark.parametrize("merged", [True, False], ids=["merged", "apart"])
def test_plain_recurrence_both_ways(merged: bool) -> None:
    layer = Layer(12)
    for offset in (0, 4):
        layer.weight(offset + 1, UNITS, WIDTH)
        layer.weight(offset + 2, UNITS, UNITS)
        layer.weight(offset + 3, UNITS)
        layer.state(offset + 4, UNITS)
    options = {"FusedActivationFunction": TANH, "MergeOutputs": merged}
    widths = [2 * UNITS] if merged else [UNITS, UNITS]
    check(layer.file("BIDIRECTIONAL_SEQUENCE_RNN", "BidirectionalSequenceRNNOptions", *widths, **options))


def test_a_basic_step_gives_its_states() -> None:
    """The kernel whose states are inputs and outputs; the interpreter keeps them in variables."""
    tf = pytest.importorskip("tensorflow", reason="TensorFlow, whose interpreter judges, is not installed")
    random = np.random.default_rng(0)
    weights, biases = (random.normal(size=dims).astype(np.float32) for dims in ((4 * UNITS, WIDTH + UNITS), 4 * UNITS))
    x, h, cell = (random.normal(size=(BATCH, size)).astype(np.float32) for size in (WIDTH, UNITS, UNITS))
    tensors = [
        T("x", (BATCH, WIDTH)), T("h", (BATCH, UNITS)), T("cell", (BATCH, UNITS)),
        T("w", weights.shape, F32, weights), T("b", biases.shape, F32, biases),
        T("output", (BATCH, UNITS)), T("after", (BATCH, UNITS)),
        T("together", (BATCH, WIDTH + UNITS)), T("sums", (BATCH, 4 * UNITS)),
    ]  # fmt: skip
    options = {"FusedActivationFunction": TANH, "KernelType": 1}
    data = model(tensors, [Op("LSTM", [0, 1, 3, 4, 2], [5, 6, 7, 8], "LSTMOptions", options)], [0, 1, 2], [5, 6])
    expected, _ = interpreted(tf, data, [x, h, cell], plain=True)
    found = shared_reference("xla").prepare(hloforge.read(data))(x, h, cell)
    for result, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)


def step_layer(name: str) -> tuple[Layer, str, dict[str, Any]]:
    """A layer of one step: its tensors, and the name and fields of its options."""
    layer = Layer(20 if name == "LSTM" else 5)
    layer.tensors[0] = T("x", (BATCH, WIDTH))
    if name == "LSTM":
        for gate in range(4):
            layer.weight(1 + gate, UNITS, WIDTH)
            layer.weight(5 + gate, UNITS, UNITS)
            layer.weight(12 + gate, UNITS)
        layer.state(18, UNITS)
        layer.state(19, UNITS)
        return layer, "LSTMOptions", {"FusedActivationFunction": TANH, "CellClip": 0.5}
    if name == "RNN":
        for place, dims in ((1, (UNITS, WIDTH)), (2, (UNITS, UNITS)), (3, (UNITS,))):
            layer.weight(place, *dims)
        layer.state(4, UNITS)
        return layer, "RNNOptions", {"FusedActivationFunction": TANH}
    steps, rank = 3, 2
    for place, dims in ((1, (rank * UNITS, WIDTH)), (2, (rank * UNITS, steps)), (3, (UNITS,))):
        layer.weight(place, *dims)
    layer.state(4, rank * UNITS * steps)
    return layer, "SVDFOptions", {"FusedActivationFunction": TANH, "Rank": rank}


@pytest.mark.parametrize("name", ["SVDF", "RNN", "LSTM"])
def test_a_step_takes_and_gives_its_state(name: str) -> None:
    """The interpreter keeps the state from call to call; a program takes what the last call gave."""
    tf = pytest.importorskip("tensorflow", reason="TensorFlow, whose interpreter judges, is not installed")
    layer, options, fields = step_layer(name)
    output = T("y", (BATCH, UNITS))
    tensors = [*layer.tensors, output]
    data = model(tensors, [Op(name, layer.inputs, [len(tensors) - 1], options, fields)], [0], [len(tensors) - 1])
    interpreter = tf.lite.Interpreter(model_content=data)
    interpreter.allocate_tensors()
    program = hloforge.read(data)
    run = shared_reference("xla").prepare(program)
    states = [np.zeros(p.shape.dimensions, np.float32) for p in program.signature.parameters[1:]]
    assert [p.name for p in program.signature.parameters[1:]] == [t.name for t in layer.tensors if t.variable]
    for seed in range(4):
        x = np.random.default_rng(seed).normal(size=(BATCH, WIDTH)).astype(np.float32)
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
        interpreter.invoke()
        found, *states = run(x, *states)
        expected = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
