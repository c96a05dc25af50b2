"""One step of an optimizer for any number of tensors, which are grouped by kind among the inputs.

Source: ONNX, domain ``ai.onnx.preview.training``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.values import Value
from hloforge.importers.onnx.graph import Outputs
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.roundings import rounds_once
from hloforge.importers.tensors import broadcast_to, cast

_DOMAIN = "ai.onnx.preview.training"


def _groups(node: Node, kinds: int) -> Iterator[list[Value]]:
    """The inputs after rate and count, tensor by tensor: ``[x, gradient, state...]``."""
    count = (len(node.inputs) - 2) // kinds
    for number in range(count):
        yield [node.value(2 + kind * count + number) for kind in range(kinds)]


def _gathered(results: list[tuple[Value, ...]]) -> Any:
    return Outputs([value for column in zip(*results, strict=True) for value in column])


def _scalar(value: Value, like: Value) -> Value:
    return broadcast_to(ops.reshape(cast(value, like.element_type), []), like.dims)


@operator("Momentum", domain=_DOMAIN)
@rounds_once
def momentum(node: Node) -> Any:
    alpha, beta, decay = (float(node.attribute(name)) for name in ("alpha", "beta", "norm_coefficient"))
    results: list[tuple[Value, ...]] = []
    for x, gradient, velocity in _groups(node, 3):
        rate, turn = _scalar(node.value(0), x), _scalar(node.value(1), x)
        gradient = gradient + decay * x
        share = ops.select(turn > 0, turn * 0 + beta, turn * 0 + 1.0)
        fresh = alpha * velocity + share * gradient
        step = gradient + alpha * fresh if node.attribute("mode") == "nesterov" else fresh
        results.append((x - rate * step, fresh))
    return _gathered(results)


@operator("Adagrad", domain=_DOMAIN)
@rounds_once
def adagrad(node: Node) -> Any:
    decay, epsilon, cooling = (
        float(node.attribute(name, value))
        for name, value in (("norm_coefficient", 0.0), ("epsilon", 0.0), ("decay_factor", 0.0))
    )
    results: list[tuple[Value, ...]] = []
    for x, gradient, squares in _groups(node, 3):
        rate = _scalar(node.value(0), x) / (1.0 + _scalar(node.value(1), x) * cooling)
        gradient = gradient + decay * x
        squares = squares + gradient * gradient
        results.append((x - rate * gradient / (ops.sqrt(squares) + epsilon), squares))
    return _gathered(results)


@operator("Adam", domain=_DOMAIN)
@rounds_once
def adam(node: Node) -> Any:
    alpha, beta, decay, late_decay, epsilon = (
        float(node.attribute(name, value))
        for name, value in (
            *(("alpha", 0.9), ("beta", 0.999), ("norm_coefficient", 0.0)),
            *(("norm_coefficient_post", 0.0), ("epsilon", 0.0)),
        )
    )
    results: list[tuple[Value, ...]] = []
    for x, gradient, first, second in _groups(node, 4):
        rate, turn = _scalar(node.value(0), x), _scalar(node.value(1), x)
        gradient = gradient + decay * x
        first = alpha * first + (1 - alpha) * gradient
        second = beta * second + (1 - beta) * gradient * gradient
        corrected = rate * ops.sqrt(1.0 - ops.pow(turn * 0 + beta, turn)) / (1.0 - ops.pow(turn * 0 + alpha, turn))
        rate = ops.select(turn > 0, corrected, rate)
        fresh = (1 - late_decay) * (x - rate * first / (ops.sqrt(second) + epsilon))
        results.append((fresh, first, second))
    return _gathered(results)
