"""Recurrent operators that the converter no longer writes, in files of our own, against TFLite's interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite", reason="the package tflite is not installed")

import hloforge
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

    def file(self, name: str, options: str, width: int, **fields: Any) -> bytes:
        tensors = [*self.tensors, T("y", (BATCH, TIME, width))]
        last = len(tensors) - 1
        return model(tensors, [Op(name, self.inputs, [last], options, fields)], [0], [last])


def check(data: bytes) -> None:
    tf = pytest.importorskip("tensorflow", reason="TensorFlow, whose interpreter judges, is not installed")
    x = np.random.default_rng(1).normal(size=(BATCH, TIME, WIDTH)).astype(np.float32)
    expected, _ = interpreted(tf, data, [x], plain=True)
    # XLA's client compiles in milliseconds what the importer wrote.
    found = hloforge.reference("xla").prepare(hloforge.read(data))(x)
    np.testing.assert_allclose(found, expected[0], rtol=1e-5, atol=1e-6)


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
