"""A perceptron, a recurrent network, a recommender, and a simulation."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from benchmarks.cases import Body, Case, model


def mlp(batch: int, *widths: int) -> Body:
    def body(nn: Any) -> Any:
        x = nn.new(f"f32[{batch},{widths[0]}]")
        for number, (inputs, outputs) in enumerate(pairwise(widths)):
            x = nn.dense(x, nn.new(f"f32[{inputs},{outputs}]"), nn.new(f"f32[{outputs}]"))
            x = nn.relu(x) if number < len(widths) - 2 else nn.softmax(x)
        return x

    return body


def lstm(steps: int, batch: int, inputs: int, width: int) -> Body:
    """A layer by a scan, with its projections in the loop, and a classifier of the last state."""

    def body(nn: Any) -> Any:
        sequence = nn.new(f"f32[{steps},{batch},{inputs}]")
        weights, bias = nn.new(f"f32[{inputs + width},{4 * width}]"), nn.new(f"f32[{4 * width}]")

        def turn(step: Any, hidden: Any, cell: Any) -> list[Any]:
            gates = nn.dense(nn.concat([nn.row(sequence, step), hidden], 1), weights, bias)
            enter, forget, new, leave = (gates[:, n * width : (n + 1) * width] for n in range(4))
            cell = nn.sigmoid(forget) * cell + nn.sigmoid(enter) * nn.tanh(new)
            return [nn.sigmoid(leave) * nn.tanh(cell), cell]

        hidden, _ = nn.loop(steps, turn, nn.zeros(batch, width), nn.zeros(batch, width))
        return nn.dense(hidden, nn.new(f"f32[{width},10]"), nn.new("f32[10]"))

    return body


def dlrm(batch: int, tables: int, rows: int, width: int) -> Body:
    """Naumov et al., 2019: embeddings of sparse features, products of all pairs, two perceptrons."""

    def body(nn: Any) -> Any:
        def perceptron(x: Any, *widths: int) -> Any:
            for inputs, outputs in pairwise(widths):
                x = nn.relu(nn.dense(x, nn.new(f"f32[{inputs},{outputs}]"), nn.new(f"f32[{outputs}]")))
            return x

        dense = perceptron(nn.new(f"f32[{batch},13]"), 13, 512, 256, width)
        sparse = [nn.take(nn.new(f"f32[{rows},{width}]"), nn.new(f"s32[{batch}]", below=rows)) for _ in range(tables)]
        vectors = nn.concat([nn.reshape(x, batch, 1, width) for x in (dense, *sparse)], 1)
        pairs = nn.reshape(nn.matmul(vectors, vectors, transposed=True), batch, (tables + 1) ** 2)
        top = perceptron(nn.concat([dense, pairs], 1), width + (tables + 1) ** 2, 512, 256)
        return nn.sigmoid(nn.dense(top, nn.new("f32[256,1]"), nn.new("f32[1]")))

    return body


def heat(size: int, steps: int) -> Body:
    """Explicit steps of the heat equation on a square whose edge stays cold: a stencil of five points."""

    def body(nn: Any) -> Any:
        def turn(_: Any, inner: Any) -> list[Any]:
            around = nn.pad(inner, (1, 1), (1, 1))
            neighbours = around[:-2, 1:-1] + around[2:, 1:-1] + around[1:-1, :-2] + around[1:-1, 2:]
            return [inner + (neighbours - inner * 4.0) * 0.2]

        return nn.loop(steps, turn, nn.new(f"f32[{size},{size}]"))[0]

    return body


CASES: tuple[Case, ...] = (
    model("MLP 64×784→1,024→1,024→10", mlp(64, 784, 1024, 1024, 10)),
    model("LSTM 64 steps 16×128→256", lstm(64, 16, 128, 256)),
    model("DLRM 256×26", dlrm(256, 26, 10_000, 32)),
    model("heat equation 512², 100 steps", heat(512, 100)),
)
