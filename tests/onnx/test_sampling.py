"""Images read between their elements: how often results are rounded, and features that are read as vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import hloforge

MICROSOFT = "com.microsoft"
RNG = np.random.default_rng(7)


def _model(name: str, inputs: list[Any], fixed: set[int], domain: str = "", **attributes: Any) -> bytes:
    """A model of one operator, some of whose inputs are known."""
    names = [f"x{n}" if array is not None else "" for n, array in enumerate(inputs)]
    given, weights = [], []
    for number, array in enumerate(inputs):
        if number in fixed:
            weights.append(numpy_helper.from_array(array, names[number]))
        elif array is not None:
            element = helper.np_dtype_to_tensor_dtype(array.dtype)
            given.append(helper.make_tensor_value_info(names[number], element, array.shape))
    node = helper.make_node(name, names, ["y"], domain=domain, **attributes)
    graph = helper.make_graph([node], "graph", given, [helper.make_empty_tensor_value_info("y")], weights)
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid(MICROSOFT, 1)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())


@pytest.mark.wide(2)
@pytest.mark.parametrize("antialias", [0, 1])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32])
def test_integers_are_rounded_once(dtype: Any, mode: str, antialias: int) -> None:
    """Both axes first, then the nearest integer of the range, as ONNX's reference; ONNX Runtime truncates."""
    x = RNG.choice([0, 41, 90, 127 if dtype == np.int8 else 254], (1, 2, 7, 9)).astype(dtype)
    scales = np.array([1, 1, 1.7, 0.6], np.float32)
    data = _model("Resize", [x, None, scales], {2}, mode=mode, antialias=antialias)
    (expected,) = ReferenceEvaluator(data).run(None, {"x0": x})
    wide = _model("Resize", [x.astype(np.float64), None, scales], {2}, mode=mode, antialias=antialias)
    (exact,) = ReferenceEvaluator(wide).run(None, {"x0": x.astype(np.float64)})
    is_tie = np.abs(exact - np.floor(exact) - 0.5) < 1e-3
    found = np.asarray(hloforge.compile(data)(x))
    np.testing.assert_array_equal(found[~is_tie], expected[~is_tie])
    np.testing.assert_allclose(found.astype(int), expected.astype(int), atol=1)


def test_narrow_floats_are_rounded_once() -> None:
    x = RNG.normal(size=(1, 2, 7, 9)).astype(np.float16)
    data = _model("Resize", [x, None, np.array([1, 1, 1.7, 2.3], np.float32)], {2}, mode="cubic")
    (expected,) = ReferenceEvaluator(data).run(None, {"x0": x})
    found = np.asarray(hloforge.compile(data)(x))
    assert (found != expected).mean() < 0.02, "more than ties"


@pytest.mark.wide(4)
@pytest.mark.parametrize("features", [3, 20])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_places_of_a_grid(mode: str, padding: str, features: int) -> None:
    x = RNG.normal(size=(2, features, 6, 7)).astype(np.float32)
    grid = RNG.uniform(-1.3, 1.3, (2, 5, 4, 2)).astype(np.float32)
    attributes = {"mode": {"cubic": "bicubic", "linear": "bilinear"}.get(mode, mode), "padding_mode": padding}
    data = _model("GridSample", [x, grid], set(), domain=MICROSOFT, **attributes)
    (expected,) = onnxruntime.InferenceSession(data).run(None, {"x0": x, "x1": grid})
    np.testing.assert_allclose(hloforge.compile(data)(x, grid), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.wide(2)
@pytest.mark.parametrize("features", [3, 20])
@pytest.mark.parametrize("samples", [0, 2])
@pytest.mark.parametrize("mode", ["avg", "max"])
def test_regions(mode: str, samples: int, features: int) -> None:
    """Of different sizes, and so of different numbers of samples, some of them beside the image."""
    x = RNG.normal(size=(2, features, 20, 25)).astype(np.float32)
    corners = RNG.uniform(-10, 40, (9, 2))
    boxes = np.concatenate([corners, corners + RNG.uniform(1, 40, (9, 2))], 1).astype(np.float32)
    batches = RNG.integers(0, 2, 9)
    options = {"output_height": 3, "output_width": 2, "sampling_ratio": samples, "spatial_scale": 0.5, "mode": mode}
    data = _model("RoiAlign", [x, boxes, batches], set(), **options)
    feeds = {"x0": x, "x1": boxes, "x2": batches}
    (expected,) = onnxruntime.InferenceSession(data).run(None, feeds)
    found = np.asarray(hloforge.compile(data)(*feeds.values()))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_crops_of_many_features(mode: str) -> None:
    x = RNG.normal(size=(2, 20, 10, 12)).astype(np.float32)
    boxes = RNG.uniform(-0.2, 1.2, (5, 4)).astype(np.float32)
    batches, sizes = RNG.integers(0, 2, 5).astype(np.int32), np.array([4, 5], np.int32)
    data = _model("CropAndResize", [x, boxes, batches, sizes], {3}, domain=MICROSOFT, mode=mode)
    feeds = {"x0": x, "x1": boxes, "x2": batches}
    (expected,) = onnxruntime.InferenceSession(data).run(None, feeds)
    np.testing.assert_allclose(hloforge.compile(data)(*feeds.values()), expected, rtol=1e-4, atol=1e-5)
