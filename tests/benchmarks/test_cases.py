from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hloforge
from benchmarks.cases import KINDS, Body, Case, kernel
from benchmarks.hlo import text_of
from benchmarks.kernels import convolutions, indexing, linear_algebra, loops, products
from benchmarks.kernels.rows import of, over
from benchmarks.models import other, training, transformers, vision
from benchmarks.one_case import program_of
from benchmarks.suite import CASES
from hloforge.importers.reader import read

ROOT = Path(__file__).resolve().parents[2]
RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((4, 6)).astype(np.float32)


def evaluate(body: Body, *arguments: Any) -> list[Any]:
    """What XLA's CPU client computes."""
    engine = hloforge.reference("xla", isolated=False)
    found = engine.prepare(hloforge.read(text_of(body)[0]))(*arguments)
    return list(found) if isinstance(found, tuple) else [found]


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray[Any, Any]]:
    return [(0.3 * RANDOM.standard_normal(shape)).astype(np.float32) for shape in shapes]


# PyTorch and TensorFlow take seconds to be imported and to export.
BUILT = [
    pytest.param(case, marks=pytest.mark.slow if "PyTorch" in case.name or "Keras" in case.name else (), id=case.name)
    for case in CASES.values()
    if case.kind != "dumps"
]


@pytest.mark.parametrize("case", BUILT)
def test_cases_build_and_parse(case: Case) -> None:
    if case.needs():
        pytest.skip(case.needs())
    source, limits = case.build()
    parameters = read(source).signature.parameters
    integers = {number for number, one in enumerate(parameters) if one.shape.element.name == "s32"}
    assert integers >= limits.keys()
    assert case.kind in KINDS and set(case.plain_devices) <= {"local-task", "local-sync"}


def test_there_are_as_many_as_promised() -> None:
    kinds = [case.kind for case in CASES.values()]
    assert kinds.count("kernels") >= 35 and kinds.count("models") >= 10 and kinds.count("linalg") >= 10


def test_names_are_unique() -> None:
    from benchmarks.kernels import KERNELS
    from benchmarks.models import MODELS

    assert len(KERNELS) + len(MODELS) == len(CASES)


def test_arguments_have_the_parameters_shapes_and_limits() -> None:
    program, arguments = program_of(kernel("gather", indexing.gather("f32[10,4]", 100, 7)))
    assert [array.shape for array in arguments] == [p.shape.dimensions for p in program.signature.parameters]
    assert arguments[1].min() >= 0 and arguments[1].max() == 6


def test_donation_is_left_out(tmp_path: Path) -> None:
    dump = tmp_path / "donates.hlo"
    dump.write_text(
        "HloModule donates, input_output_alias={ {}: (0, {}, must-alias) }\n"
        "ENTRY main { p0 = f32[4] parameter(0) ROOT r = f32[4] add(p0, p0) }\n"
    )
    program, _ = program_of(Case("donates", "dumps", source=lambda: dump))
    assert program.signature.aliases == ()


def test_adapted_matrices_have_a_cholesky_factor() -> None:
    (matrix,) = linear_algebra.symmetric([X[:, :4]])
    np.linalg.cholesky(matrix)
    np.testing.assert_array_equal(matrix, matrix.T)


def conv_reference(x: Any, kernel: Any, stride: int, pad: int) -> Any:
    """A convolution of NHWC by HWIO, place by place, in float64."""
    x = np.pad(x.astype(np.float64), [(0, 0), (pad, pad), (pad, pad), (0, 0)])
    size = kernel.shape[0]
    places = range(0, x.shape[1] - size + 1, stride)
    windows = [[x[:, i : i + size, j : j + size] for j in places] for i in places]
    return np.array([[np.einsum("bhwi,hwio->bo", w, kernel) for w in row] for row in windows]).transpose(2, 0, 1, 3)


def conv_transpose_reference(x: Any, kernel: Any, stride: int, padding: tuple[int, int]) -> Any:
    """Each element of NHWC times the kernel HWOI, added to the result where it lies; in float64."""
    (_, height, width, _), (rows, columns, features, _) = x.shape, kernel.shape
    made = np.zeros((1, stride * (height - 1) + rows, stride * (width - 1) + columns, features))
    for i in range(height):
        for j in range(width):
            part = np.einsum("i,hwoi->hwo", x[0, i, j].astype(np.float64), kernel)
            made[0, stride * i : stride * i + rows, stride * j : stride * j + columns] += part
    before, after = padding
    return made[:, before : made.shape[1] - after, before : made.shape[2] - after]


IMAGE, WINDOW = arrays((1, 5, 5, 2), (3, 3, 2, 4))
KEYS = np.int32([3, 1, 2, 1, 0, 3])

# A small body, its arguments, and what numpy says.
WORDS: dict[str, tuple[Body, list[Any], Any]] = {
    "softmax": (of("softmax", "f32[4,6]"), [X], np.exp(X) / np.exp(X).sum(1, keepdims=True)),
    "log_softmax": (of("log_softmax", "f32[4,6]"), [X], X - np.log(np.exp(X).sum(1, keepdims=True))),
    "layer_norm": (
        of("layer_norm", "f32[4,6]", "f32[6]", "f32[6]"),
        [X, X[0], X[1]],
        (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5) * X[0] + X[1],
    ),
    "rms_norm": (
        of("rms_norm", "f32[4,6]", "f32[6]"),
        [X, X[0]],
        X / np.sqrt((X**2).mean(1, keepdims=True) + 1e-5) * X[0],
    ),
    "batch_norm": (
        of("batch_norm", "f32[4,6]", *["f32[6]"] * 4),
        [X, X[0], X[1], X[2], abs(X[3])],
        (X - X[2]) / np.sqrt(abs(X[3]) + 1e-5) * X[0] + X[1],
    ),
    "batch_norm_training": (
        of("batch_norm_training", "f32[4,6]", *["f32[6]"] * 2),
        [X, X[0], X[1]],
        (X - X.mean(0)) / np.sqrt(X.var(0) + 1e-5) * X[0] + X[1],
    ),
    "group_norm": (
        lambda nn: nn.group_norm(nn.new("f32[1,2,2,6]"), nn.new("f32[6]"), nn.new("f32[6]"), 1),
        [X.reshape(1, 2, 2, 6), np.ones(6, np.float32), np.zeros(6, np.float32)],
        ((X - X.mean()) / np.sqrt(X.var() + 1e-5)).reshape(1, 2, 2, 6),
    ),
    "silu": (of("silu", "f32[4,6]"), [X], X / (1 + np.exp(-X))),
    "sum": (over("sum", "f32[4,6]", -1), [X], X.sum(1)),
    "max": (over("max", "f32[4,6]", 0), [X], X.max(0)),
    "mean": (over("mean", "f32[4,6]"), [X], X.mean()),
    "transpose": (over("transpose", "f32[4,6]", 1, 0), [X], X.T),
    "cumsum": (of("cumsum", "f32[4,6]"), [X], X.cumsum(1)),
    "argmax": (over("argmax", "f32[4,6]", 1), [X], X.argmax(1)),
    "sort": (of("sort", "f32[4,6]"), [X], np.sort(X, axis=1)),
    "argsort": (of("argsort", "f32[4,6]"), [X], np.argsort(X, axis=1)),
    "sort_pairs": (
        lambda nn: nn.sort_pairs(nn.new("s32[6]"), nn.new("f32[6]"))[1],
        [KEYS, X[0]],
        X[0][[4, 1, 3, 2, 0, 5]],
    ),
    "take": (lambda nn: nn.take(nn.new("f32[4,6]"), nn.new("s32[2]")), [X, np.int32([3, 1])], X[[3, 1]]),
    "scatter_add": (
        lambda nn: nn.scatter_add(nn.new("f32[4,6]"), nn.new("s32[2]"), nn.new("f32[2,6]")),
        [X, np.int32([3, 3]), X[:2]],
        np.concatenate([X[:3], X[3:] + X[0] + X[1]]),
    ),
    "pad": (lambda nn: nn.pad(nn.new("f32[4,6]"), (1, 0), (0, 2)), [X], np.pad(X, [(1, 0), (0, 2)])),
    "one_hot": (lambda nn: nn.one_hot(nn.new("s32[6]"), 4), [KEYS], np.eye(4, dtype=np.float32)[KEYS]),
    "conv": (
        lambda nn: nn.conv(nn.new("f32[1,5,5,2]"), nn.new("f32[3,3,2,4]"), stride=2, padding=(1, 1)),
        [IMAGE, WINDOW],
        conv_reference(IMAGE, WINDOW, 2, 1),
    ),
    "conv NCHW": (
        convolutions.convolution(5, (2, 4), 3, layout="NCHW"),
        [IMAGE.transpose(0, 3, 1, 2), WINDOW.transpose(3, 2, 0, 1)],
        conv_reference(IMAGE, WINDOW, 1, 1).transpose(0, 3, 1, 2),
    ),
    "conv_transpose": (
        convolutions.transposed(3, (2, 4), 3, padding=(1, 0)),
        [IMAGE[:, :3, :3], WINDOW.transpose(0, 1, 3, 2)],
        conv_transpose_reference(IMAGE[:, :3, :3], WINDOW.transpose(0, 1, 3, 2), 2, (1, 0)),
    ),
    "max_pool": (
        lambda nn: nn.max_pool(nn.new("f32[1,4,6,1]"), 2, 2),
        [X.reshape(1, 4, 6, 1)],
        X.reshape(1, 2, 2, 3, 2, 1).max((2, 4)),
    ),
    "attention": (
        products.attention(1, 3, 2, causal=True),
        [*(array.reshape(1, 1, 3, 2) for array in (X[0], X[1], X[2]))],
        None,
    ),
    "scan": (loops.scan_of_matmuls(3, 4), arrays((4, 4), (3, 4, 4)), None),
    "lstm": (other.lstm(3, 2, 4, 5), arrays((3, 2, 4), (9, 20), (20,), (5, 10), (10,)), None),
    "in place": (loops.updates_in_place(4, 6), [X], None),
    "heat": (other.heat(6, 3), arrays((6, 6)), None),
    "running sum": (loops.running_sum(6, 1.5), [X[0]], None),
}


def attention(q: Any, k: Any, v: Any) -> Any:
    q, k, v = (x.reshape(3, 2).astype(np.float64) for x in (q, k, v))
    scores = np.where(np.tri(3, dtype=bool), q @ k.T / np.sqrt(2), -np.inf)
    e = np.exp(scores)
    return (e / e.sum(1, keepdims=True) @ v).reshape(1, 1, 3, 2)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def lstm(xs: Any, w: Any, b: Any, head: Any, bias: Any) -> Any:
    hidden, cell = np.zeros((2, 5)), np.zeros((2, 5))
    for x in xs:
        enter, forget, new, leave = np.split(np.concatenate([x, hidden], 1) @ w + b, 4, 1)
        cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(new)
        hidden = sigmoid(leave) * np.tanh(cell)
    return hidden @ head + bias


def scan(h: Any, w: Any) -> Any:
    for step in w:
        h = np.tanh(h @ step)
    return h


def in_place(x: Any) -> Any:
    rows = [np.zeros(6)]
    for row in x:
        rows.append(np.tanh(row + rows[-1]))
    return np.array(rows[1:])


def heat(x: Any) -> Any:
    for _ in range(3):
        y = np.pad(x, 1)
        x = x + 0.2 * (y[:-2, 1:-1] + y[2:, 1:-1] + y[1:-1, :-2] + y[1:-1, 2:] - 4 * x)
    return x


LONG = {
    "attention": attention,
    "lstm": lstm,
    "scan": scan,
    "in place": in_place,
    "heat": heat,
    "running sum": lambda x: np.argmax(np.abs(x).cumsum() >= 1.5) + 1,
}


def expected(name: str) -> Any:
    _, arguments, found = WORDS[name]
    return LONG[name](*arguments) if found is None else found


@pytest.mark.parametrize("name", WORDS)
def test_words_compute_what_they_are_called(name: str) -> None:
    body, arguments, _ = WORDS[name]
    np.testing.assert_allclose(evaluate(body, *arguments)[0], expected(name), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", WORDS)
def test_pytorch_computes_the_same(name: str) -> None:
    pytest.importorskip("torch")
    from benchmarks.eager import Eager, array

    body, arguments, _ = WORDS[name]
    runner = Eager(arguments)
    # Twice: a call must not write into its arguments.
    for _ in range(2):
        found = array(runner.run(body)[0])
    np.testing.assert_allclose(found, expected(name), rtol=1e-4, atol=1e-5)


def test_a_training_step_descends() -> None:
    """Adam's first moments are a tenth of the gradient, which finite differences confirm."""
    body = training.train_step(4, 6, 5, 3)
    labels = np.int32([0, 2, 1, 1])
    w0, b0, w1, b1 = layers = arrays((6, 5), (5,), (5, 3), (3,))
    moments = [np.zeros_like(array) for array in (w1, w1, b1, b1, w0, w0, b0, b0)]
    results = evaluate(body, X, labels, *layers, *moments)

    def loss(w: Any) -> float:
        logits = np.maximum(X.astype(np.float64) @ w + b0, 0) @ w1 + b1
        logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
        return float(-logs[np.arange(4), labels].mean())

    np.testing.assert_allclose(results[0], loss(w0), rtol=1e-5)
    step = np.zeros_like(w0, dtype=np.float64)
    step[2, 3] = 1e-5
    slope = (loss(w0 + step) - loss(w0 - step)) / 2e-5
    # Results: loss, then (weights, mean, square) of the last matrix, its bias, the first matrix …
    np.testing.assert_allclose(results[8][2, 3], 0.1 * slope, rtol=1e-3, atol=1e-7)


def test_networks_have_the_sizes_of_their_papers() -> None:
    def weights(body: Body) -> int:
        parameters = read(text_of(body)[0]).signature.parameters
        return sum(int(np.prod(p.shape.dimensions)) for p in parameters)

    # 25.6 and 4.2 million, beside an image of 150,528 numbers and the running means and variances of batch norm.
    assert weights(vision.resnet50) == pytest.approx(25.56e6 + 150_528 + 53_120, rel=0.001)
    assert weights(vision.mobilenet) == pytest.approx(4.23e6 + 150_528 + 21_888, rel=0.002)
    # BERT-base has 85 million in its encoder's layers, beside the embeddings.
    embeddings = (transformers.VOCABULARY + 128) * transformers.WIDTH
    assert weights(transformers.bert(128)) - embeddings == pytest.approx(85.06e6, rel=0.001)
