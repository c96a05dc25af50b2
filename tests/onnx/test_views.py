"""Operators that are views and sums of few terms here: diagonals, overlapping blocks, joined bytes, smaller images."""

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
RNG = np.random.default_rng(5)


def _model(name: str, inputs: list[Any], fixed: set[int], domain: str = "", **attributes: Any) -> bytes:
    """A model of one operator, some of whose inputs are known."""
    arrays = {f"x{n}": np.asarray(array) for n, array in enumerate(inputs) if array is not None}
    names = [f"x{n}" if array is not None else "" for n, array in enumerate(inputs)]
    known = {f"x{n}" for n in fixed}
    given = [
        helper.make_tensor_value_info(key, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for key, array in arrays.items()
        if key not in known
    ]
    node = helper.make_node(name, names, ["y"], domain=domain, **attributes)
    weights = [numpy_helper.from_array(arrays[key], key) for key in sorted(known)]
    graph = helper.make_graph([node], "graph", given, [helper.make_empty_tensor_value_info("y")], weights)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())


@pytest.mark.parametrize(
    ("equation", "shape"),
    [("bii->bi", (2, 4, 4)), ("ibi->bi", (3, 2, 3)), ("iijj->ji", (3, 3, 2, 2)), ("iii", (4,) * 3)],
)
def test_diagonals(equation: str, shape: tuple[int, ...]) -> None:
    """Elements beside a diagonal do not count, whatever they are."""
    x = RNG.normal(size=shape).astype(np.float32)
    x[(0,) * (len(shape) - 1) + (-1,)] = np.nan
    expected = np.einsum(equation, x)
    found = hloforge.compile(_model("Einsum", [x], set(), equation=equation))(x)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.wide(2)
@pytest.mark.parametrize(
    ("image", "block", "strides", "dilations", "pads"),
    [
        ([9, 8], [3, 3], [1, 1], [1, 1], [1, 1, 1, 1]),
        ([9, 8], [2, 2], [2, 2], [1, 1], [0, 0, 1, 0]),
        ([12, 10], [4, 5], [1, 3], [2, 2], [2, 1, 0, 1]),
        ([11, 12], [5, 4], [3, 1], [1, 2], [0, 1, 1, 1]),
        ([12], [5], [3], [2], [0, 2]),
        ([8, 7, 9], [2, 1, 3], [2, 3, 1], [2, 1, 2], [1, 1, 1, 0, 1, 0]),
    ],
)
def test_overlapping_blocks(
    image: list[int], block: list[int], strides: list[int], dilations: list[int], pads: list[int]
) -> None:
    """An infinite element is added to its own place alone; ONNX Runtime's order of 1 and 3 dimensions is not ONNX's."""
    rank = len(image)
    counts = [
        (image[d] + pads[d] + pads[rank + d] - (block[d] - 1) * dilations[d] - 1) // strides[d] + 1 for d in range(rank)
    ]
    x = RNG.normal(size=(2, 3 * int(np.prod(block)), int(np.prod(counts)))).astype(np.float32)
    x[0, 0, -1] = np.inf
    sizes = [np.array(image), np.array(block)]
    model = _model("Col2Im", [x, *sizes], {1, 2}, strides=strides, dilations=dilations, pads=pads)
    (expected,) = ReferenceEvaluator(model).run(None, {"x0": x})
    np.testing.assert_allclose(hloforge.compile(model)(x), expected, rtol=1e-5, atol=1e-6)


def test_joined_bytes() -> None:
    """Of the result's scale and zero point, of another zero point, of another scale."""
    unit, zero = np.float32(0.02), np.uint8(120)
    x, y, z = (RNG.integers(0, 256, (3, size, 2)).astype(np.uint8) for size in (256, 4, 5))
    inputs = [unit, zero, x, unit, zero, y, unit, np.uint8(3), z, np.float32(0.04), zero]
    model = _model("QLinearConcat", inputs, set(range(len(inputs))) - {2, 5, 8}, MICROSOFT, axis=1)
    found = hloforge.compile(model)(x, y, z)
    assert np.array_equal(np.asarray(found)[:, :256], x)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(found, session.run(None, {"x2": x, "x5": y, "x8": z})[0])


@pytest.mark.wide(2)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("sizes", [(5, 40), (17, 9), (3, 2)])
def test_smaller_images(mode: str, sizes: tuple[int, int]) -> None:
    """By few neighbours and by matrices of many."""
    x = RNG.normal(size=(1, 2, 37, 30)).astype(np.float32)
    target = np.array([1, 2, *sizes])
    model = _model("Resize", [x, None, None, target], {3}, mode=mode, antialias=1)
    (expected,) = ReferenceEvaluator(model).run(None, {"x0": x})
    np.testing.assert_allclose(hloforge.compile(model)(x), expected, rtol=1e-4, atol=1e-5)
