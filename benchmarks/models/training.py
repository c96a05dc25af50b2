"""A training step: loss, gradients by hand, and Adam's update of every weight."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from benchmarks.cases import Body, Case, model

RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8
# Kingma and Ba, 2014, with the corrections of the hundredth step.
STEP = 100


def _adam(nn: Any, weights: Any, gradient: Any, shape: str) -> tuple[Any, Any, Any]:
    mean, square = nn.new(shape), nn.abs(nn.new(shape))
    mean = mean * BETA1 + gradient * (1 - BETA1)
    square = square * BETA2 + gradient * gradient * (1 - BETA2)
    root = nn.sqrt(square * (1 / (1 - BETA2**STEP))) + EPSILON
    return weights - mean * (RATE / (1 - BETA1**STEP)) / root, mean, square


def train_step(batch: int, *widths: int) -> Body:
    """A perceptron with ReLU and cross-entropy: the loss, the new weights, and Adam's moments."""

    def body(nn: Any) -> Any:
        x, labels = nn.new(f"f32[{batch},{widths[0]}]"), nn.new(f"s32[{batch}]", below=widths[-1])
        shapes = [(f"f32[{inputs},{outputs}]", f"f32[{outputs}]") for inputs, outputs in pairwise(widths)]
        layers = [(nn.new(matrix), nn.new(vector)) for matrix, vector in shapes]
        activations = [x]
        for weights, bias in layers[:-1]:
            activations.append(nn.relu(nn.dense(activations[-1], weights, bias)))
        logs, wanted = nn.log_softmax(nn.dense(activations[-1], *layers[-1])), nn.one_hot(labels, widths[-1])
        loss = nn.mean(nn.sum(logs * wanted, 1)) * -1.0

        results, error = [loss], (nn.exp(logs) - wanted) * (1 / batch)
        for number in reversed(range(len(layers))):
            (weights, bias), before = layers[number], activations[number]
            gradient, bias_gradient = nn.matmul(nn.transpose(before, 1, 0), error), nn.sum(error, 0)
            if number:
                passed = nn.matmul(error, weights, transposed=True)
                error = nn.where(before > 0.0, passed, nn.zeros(batch, widths[number]))
            matrix, vector = shapes[number]
            results += _adam(nn, weights, gradient, matrix)
            results += _adam(nn, bias, bias_gradient, vector)
        return tuple(results)

    return body


CASES: tuple[Case, ...] = (model("Adam step 128×784→512→512→10", train_step(128, 784, 512, 512, 10)),)
