"""Loops whose slices follow the turn and whose state grows; ONNX Runtime is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import hloforge
from tests.engines import shared_reference

node = helper.make_node


def _model(turns: int, nodes: list[Any], dims: list[int], state: list[int], stacks: bool, **numbers: Any) -> bytes:
    """A loop around nodes that read ``x``, ``turn`` and ``state``, and make ``next`` and, where it stacks, ``row``."""
    made = [helper.make_empty_tensor_value_info("row")] if stacks else []
    body = helper.make_graph(
        [node("Identity", ["again"], ["again_"]), *nodes],
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("again", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("again_", TensorProto.BOOL, []),
            helper.make_empty_tensor_value_info("next"),
            *made,
        ],
    )
    results = ["last", *(["rows"] if stacks else [])]
    loop = node("Loop", ["turns", "go", "start"], results, "loop", body=body)
    weights = {"turns": np.int64(turns), "go": np.array(True), "start": np.zeros(state, np.float32), **numbers}
    graph = helper.make_graph(
        [loop],
        "loops",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [helper.make_empty_tensor_value_info(name) for name in results],
        [numpy_helper.from_array(np.asarray(weight), name) for name, weight in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return bytes(model.SerializeToString())


def _agrees(model: bytes, x: Any, is_loop: bool) -> None:
    expected = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    program = hloforge.read(model)
    assert ("stablehlo.while" in str(program.module)) == is_loop
    found = shared_reference("xla").prepare(program)(x)
    for got, want in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


# From ``at`` to ``stop`` along the first dimension.
FROM_TURN = [node("Unsqueeze", ["turn", "zero"], ["at"])]
SUMMED = [
    node("Slice", ["x", "at", "stop", "zero"], ["row"]),
    node("ReduceSum", ["row"], ["sum"], keepdims=0),
    node("Add", ["state", "sum"], ["next"]),
]
X = np.random.default_rng(0).normal(size=(44, 3)).astype(np.float32)


@pytest.mark.parametrize(
    ("nodes", "numbers"),
    [
        ([*FROM_TURN, node("Add", ["at", "five"], ["stop"])], {"five": np.int64([5])}),
        (
            [
                node("Mul", ["turn", "two"], ["twice"]),
                node("Reshape", ["twice", "one"], ["at"]),
                node("Add", ["turn", "four"], ["later"]),
                node("Mul", ["later", "two"], ["twice_later"]),
                node("Unsqueeze", ["twice_later", "zero"], ["stop"]),
            ],
            {"two": np.int64(2), "four": np.int64(4), "one": np.int64([1])},
        ),
        (
            [
                *FROM_TURN,
                node("Sub", ["least", "at"], ["stop_"]),
                node("Sub", ["stop_", "three"], ["at_"]),
                node("Slice", ["x", "at_", "stop_", "zero", "two"], ["row"]),
            ],
            {"least": np.int64([-1]), "three": np.int64([3]), "two": np.int64([2])},
        ),
    ],
    ids=["window", "multiples", "from-the-end"],
)
@pytest.mark.parametrize("stacks", [True, False])
def test_slices_at_places_that_follow_the_turn_stay_in_a_loop(nodes: Any, numbers: Any, stacks: bool) -> None:
    summed = [entry for entry in SUMMED if entry.output[0] not in {name for one in nodes for name in one.output}]
    data = _model(18, [*nodes, *summed], [44, 3], [], stacks, zero=np.int64([0]), **numbers)
    _agrees(data, X, is_loop=True)


def test_pairs_of_places_follow_the_turn() -> None:
    nodes = [
        node("Unsqueeze", ["turn", "zero"], ["one_turn"]),
        node("Concat", ["one_turn", "zero"], ["at"], axis=0),
        node("Add", ["at", "sizes"], ["stop"]),
        node("Slice", ["x", "at", "stop"], ["row"]),
        node("Add", ["state", "row"], ["next"]),
    ]
    _agrees(_model(20, nodes, [44, 3], [4, 2], True, zero=np.int64([0]), sizes=np.int64([4, 2])), X, is_loop=True)


@pytest.mark.parametrize("reach", [1, 30])
def test_slices_of_no_known_size_become_straight_code(reach: int) -> None:
    """From the beginning to the turn, and past the end."""
    nodes = [*FROM_TURN, node("Add", ["at", "reach"], ["stop"])]
    nodes += [node("Slice", ["x", "at" if reach > 1 else "zero", "stop", "zero"], ["part"])]
    nodes += [node("ReduceSum", ["part", "zero"], ["row"], keepdims=0), node("Add", ["state", "row"], ["next"])]
    _agrees(_model(20, nodes, [44, 3], [3], True, zero=np.int64([0]), reach=np.int64([reach])), X, is_loop=False)


def test_state_that_grows_becomes_straight_code() -> None:
    nodes = [
        node("Gather", ["x", "turn"], ["line"]),
        node("Unsqueeze", ["line", "zero"], ["lines"]),
        node("Concat", ["state", "lines"], ["next"], axis=0),
    ]
    _agrees(_model(20, nodes, [44, 3], [0, 3], False, zero=np.int64([0])), X, is_loop=False)
