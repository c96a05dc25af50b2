"""How models become programs: names in locations and errors, sizes at the call, quantized sums, damaged files."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite", reason="the package tflite is not installed")

import tflite

import hloforge
from hloforge.dialect.errors import ImporterError, UnsupportedError
from hloforge.importers.reader import read
from hloforge.importers.tflite.registry import registered
from tests.tflite.files import F32, S8, S32, STRING, Op, T, model


def unary(name: str, sizes: Any = (4,), **fields: Any) -> bytes:
    """A model of one operator from x to y."""
    return model([T("x", sizes), T("y", sizes)], [Op(name, [0], [1], **fields)], [0], [1])


def test_operations_carry_the_names_of_the_tensors_that_they_make() -> None:
    program = read(unary("EXP"))
    assert r'loc("tensor \22y\22 (EXP)"' in program.text(locations=True)
    assert str(program.signature) == "(x: f32[4]) -> f32[4]"


@pytest.mark.parametrize(
    ("name", "fields", "words"),
    [
        ("LSH_PROJECTION", {}, "the operator LSH_PROJECTION is not imported"),
        ("CUSTOM", {"custom": "Blur"}, "the custom operator Blur is not imported"),
        ("CUSTOM", {"custom": "FlexErf"}, "the custom operator of TensorFlow FlexErf"),
        ("VAR_HANDLE", {}, "VAR_HANDLE keeps a state between calls"),
    ],
)
def test_what_is_not_imported_is_named_with_its_tensor(name: str, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(UnsupportedError, match=words) as caught:
        read(unary(name, **fields))
    assert f'tensor "y" ({fields.get("custom", name)})' in caught.value.op


def test_strings_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="'x' is a string"):
        read(model([T("x", [1], STRING), T("y", [1])], [Op("EXP", [0], [1])], [0], [1]))


def test_a_tensor_that_nothing_makes_is_an_error() -> None:
    tensors = [T("x", [4]), T("nothing", [4]), T("y", [4])]
    with pytest.raises(ImporterError, match="no operator before it makes tensor 'nothing'"):
        read(model(tensors, [Op("ADD", [0, 1], [2], "AddOptions")], [0], [2]))


def test_sizes_are_folded_for_each_call() -> None:
    """A batch that comes with the call reaches a RESHAPE through SHAPE, STRIDED_SLICE and PACK."""
    tensors = [
        T("x", [-1, 2, 3]),
        T("sizes", [3], S32),
        *(T(name, [1], S32, np.array([number], np.int32)) for name, number in (("zero", 0), ("one", 1), ("step", 1))),
        T("batch", [], S32),
        T("six", [], S32, np.array(6, np.int32)),
        T("target", [2], S32),
        T("y", [-1, 6]),
    ]
    operators = [
        Op("SHAPE", [0], [1], "ShapeOptions", {"OutType": S32}),
        Op("STRIDED_SLICE", [1, 2, 3, 4], [5], "StridedSliceOptions", {"ShrinkAxisMask": 1}),
        Op("PACK", [5, 6], [7], "PackOptions", {"ValuesCount": 2}),
        Op("RESHAPE", [0, 7], [8]),
    ]
    call = hloforge.compile(model(tensors, operators, [0], [8])).load()
    for batch in (2, 5):
        x = np.arange(batch * 6, dtype=np.float32).reshape(batch, 2, 3)
        np.testing.assert_array_equal(call(x), x.reshape(batch, 6))


def test_quantized_sums_are_exact_and_rounded_once() -> None:
    """A layer of integers with a scale for each row of weights, then the same in another scale."""
    random = np.random.default_rng(0)
    x = random.integers(-128, 128, (3, 600)).astype(np.int8)
    weights = random.integers(-127, 128, (4, 600)).astype(np.int8)
    bias = random.integers(-9999, 9999, 4).astype(np.int32)
    scales = np.array([0.011, 0.007, 0.02, 0.013], np.float32)
    tensors = [
        T("x", x.shape, S8, scale=[0.05], zero=[3]),
        T("w", weights.shape, S8, weights, scale=scales.tolist()),
        T("b", bias.shape, S32, bias),
        T("y", (3, 4), S8, scale=[0.35], zero=[-7]),
        T("z", (3, 4), S8, scale=[0.525], zero=[11]),
    ]
    operators = [
        Op("FULLY_CONNECTED", [0, 1, 2], [3], "FullyConnectedOptions", {"KeepNumDims": True}),
        Op("QUANTIZE", [3], [4]),
    ]
    y, z = hloforge.compile(model(tensors, operators, [0], [3, 4]))(x)
    sums = (x.astype(np.int64) - 3) @ weights.T.astype(np.int64) + bias
    units = sums * (np.float32(0.05) * scales / np.float32(0.35)).astype(np.float64)
    expected = np.clip(np.rint(units) - 7, -128, 127)
    np.testing.assert_array_equal(y, expected)
    assert len(np.unique(expected)) > 4
    np.testing.assert_array_equal(z, np.clip(np.rint((expected + 7) * (0.35 / 0.525)) + 11, -128, 127))


def test_damaged_files_are_errors() -> None:
    """Whatever byte is changed, and wherever a file ends: an error or a program, soon."""
    data = unary("EXP", [2, 3])
    random = np.random.default_rng(0)
    damaged = [data[:cut] for cut in range(8, len(data), 7)]
    for _ in range(150):
        flipped = bytearray(data)
        for place in random.integers(8, len(data), 2):
            flipped[place] = random.integers(0, 256)
        damaged.append(bytes(flipped))
    errors = 0
    for entry in damaged:
        try:
            read(entry, format="tflite")
        except hloforge.Error:
            errors += 1
    assert errors > len(damaged) / 4


def test_weights_that_do_not_fit_their_sizes_are_an_error() -> None:
    tensors = [T("x", [4]), T("w", [4], F32, np.zeros(3, np.float32)), T("y", [4])]
    with pytest.raises(ImporterError, match=r"tensor 'w' of sizes \[4\] has 3 elements"):
        read(model(tensors, [Op("ADD", [0, 1], [2], "AddOptions")], [0], [2]))


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    data = unary("EXP")
    monkeypatch.setitem(sys.modules, "tflite", None)
    with pytest.raises(ImporterError, match="is not installed") as caught:
        read(data)
    assert "hloforge[tflite]" in caught.value.hint


def test_every_operator_is_one_of_the_schema() -> None:
    assert set(registered()) - {"TFLite_Detection_PostProcess"} <= set(vars(tflite.BuiltinOperator))
