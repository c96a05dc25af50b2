"""Operators of 16-bit floats are rounded once: judged by ONNX Runtime's of f32, whose results are rounded here.

XLA's CPU client runs what the importer wrote, which takes milliseconds a case.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnxruntime as ort
from onnx import ModelProto, helper

import hloforge
from tests.engines import shared_reference

RANDOM = np.random.default_rng(7)
OUTPUTS = {"SkipLayerNormalization": 4, "SkipSimplifiedLayerNormalization": 4}


def numbers(*dims: int, spread: float = 1.0) -> Any:
    return RANDOM.normal(size=dims) * spread


def case(name: str, *inputs: Any, domain: str = "", **attributes: Any) -> Any:
    title = "-".join([name, *(f"{key}={value}" for key, value in attributes.items())])
    return pytest.param(name, inputs, domain, attributes, id=title)


ROWS = numbers(8, 48)
CASES = [
    *(case(name, ROWS) for name in ("Softmax", "LogSoftmax", "Selu", "Celu", "Elu", "HardSwish", "Softplus", "Mish")),
    case("Softsign", ROWS),
    case("HardSigmoid", ROWS, alpha=0.3),
    case("Gelu", ROWS),
    case("Gelu", ROWS, approximate="tanh"),
    case("Sum", ROWS, numbers(8, 48), numbers(48)),
    case("Mean", ROWS, numbers(8, 48), numbers(48)),
    case("InstanceNormalization", numbers(2, 3, 40), numbers(3), numbers(3)),
    case("BatchNormalization", numbers(2, 3, 40), numbers(3), numbers(3), numbers(3), np.abs(numbers(3)) + 0.5),
    case("LpNormalization", ROWS),
    case("LRN", numbers(1, 8, 5, 5), size=3, alpha=0.5),
    case("MeanVarianceNormalization", numbers(1, 3, 6, 6)),
    case("GlobalAveragePool", numbers(2, 3, 6, 6)),
    case("Gemm", ROWS, numbers(48, 9), numbers(9), alpha=0.3, beta=0.7),
    case("Gemm", ROWS, numbers(9, 48), numbers(9), transB=1),
    case("Einsum", numbers(4, 5), numbers(5, 6), numbers(6, 7), equation="ab,bc,cd->ad"),
    case("Conv", numbers(1, 8, 9, 9), numbers(4, 8, 3, 3), numbers(4)),
    case("ConvTranspose", numbers(1, 8, 5, 5), numbers(8, 4, 3, 3), numbers(4), strides=[2, 2]),
    # Squares and sums that f16 cannot hold.
    case("ReduceL2", numbers(4, 64, spread=300)),
    case("ReduceMean", np.abs(numbers(4, 4096, spread=50))),
    case("ReduceLogSumExp", ROWS),
    *(
        case(name, *inputs, domain="com.microsoft", **attributes)
        for name, inputs, attributes in (
            ("BiasGelu", (ROWS, numbers(48)), {}),
            ("FastGelu", (ROWS, numbers(48)), {}),
            ("QuickGelu", (ROWS,), {}),
            ("FusedMatMul", (ROWS, numbers(48, 9)), {"alpha": 0.3}),
            ("FusedGemm", (ROWS, numbers(48, 9), numbers(9)), {"activation": "Relu", "alpha": 0.3}),
            ("SkipLayerNormalization", (numbers(2, 4, 48), numbers(2, 4, 48), *numbers(3, 48)), {}),
            ("SkipSimplifiedLayerNormalization", (numbers(2, 4, 48), numbers(2, 4, 48), *numbers(2, 48)), {}),
            ("Attention", (numbers(1, 6, 24), numbers(24, 72, spread=0.3), numbers(72)), {"num_heads": 2}),
            ("MultiHeadAttention", (*numbers(3, 1, 6, 24), numbers(72)), {"num_heads": 2}),
        )
    ),
]


def model_of(name: str, inputs: list[Any], domain: str, attributes: dict[str, Any]) -> ModelProto:
    row = helper.np_dtype_to_tensor_dtype(inputs[0].dtype)
    entries = [helper.make_tensor_value_info(f"x{n}", row, x.shape) for n, x in enumerate(inputs)]
    last = OUTPUTS.get(name, 1) - 1
    names = [f"y{n}" if n in (0, last) else "" for n in range(last + 1)]
    node = helper.make_node(name, [entry.name for entry in entries], names, domain=domain, **attributes)
    results = [helper.make_tensor_value_info(f"y{n}", row, None) for n in sorted({0, last})]
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "one", entries, results)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


# The values of ONNX's own tests (test_nodes.py) round the exponentials of a softmax of f16.
STEPWISE = {"Softmax": np.float16}


@pytest.mark.wide(5)
@pytest.mark.parametrize(
    ("name", "inputs", "domain", "attributes", "dtype"),
    [
        pytest.param(*one.values, dtype, id=f"{one.id}-{row}")
        for one in CASES
        for row, dtype in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16))
        if STEPWISE.get(one.values[0]) is not dtype
    ],
)
def test_an_operator_rounds_once(
    name: str, inputs: tuple[Any, ...], domain: str, attributes: dict[str, Any], dtype: Any
) -> None:
    narrow = [np.asarray(x).astype(dtype) for x in inputs]
    wide = [x.astype(np.float32) for x in narrow]
    session = ort.InferenceSession(model_of(name, wide, domain, attributes).SerializeToString())
    expected = session.run(None, {f"x{n}": x for n, x in enumerate(wide)})
    program = hloforge.read(model_of(name, narrow, domain, attributes).SerializeToString())
    found = shared_reference("xla").prepare(program)(*narrow)
    found = list(found) if isinstance(found, tuple | list) else [found]
    assert len(found) == len(expected)
    for result, wanted in zip(found, expected, strict=True):
        assert np.asarray(result).dtype == dtype
        rounded = np.asarray(wanted).astype(dtype)
        # Where f32 of both is near the middle between two neighbours, they may choose different ones.
        assert np.mean(np.asarray(result) != rounded) <= 0.02
        step = float(ml_dtypes.finfo(dtype).eps)
        np.testing.assert_allclose(np.asarray(result, np.float32), rounded.astype(np.float32), rtol=step, atol=1e-6)
