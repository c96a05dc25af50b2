"""The fused activations of operators."""

from __future__ import annotations

from hloforge.dialect import ops
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value
from hloforge.importers.tflite.node import Node

# Source: ActivationFunctionType of schema.fbs.
_NONE, _RELU, _RELU_N1_TO_1, _RELU6, _TANH = range(5)
_BOUNDS: dict[int, tuple[float | None, float | None]] = {
    _NONE: (None, None),
    _RELU: (0, None),
    _RELU_N1_TO_1: (-1, 1),
    _RELU6: (0, 6),
}


def bounds(node: Node) -> tuple[float | None, float | None]:
    """Between what the activation of an operator keeps its numbers. Raises UnsupportedError for one that bends them."""
    kind = node.option("FusedActivationFunction")
    if kind not in _BOUNDS:
        raise UnsupportedError(f"the fused activation {kind} is not imported")
    return _BOUNDS[kind]


def activated(node: Node, x: Value) -> Value:
    """Numbers after the activation of their operator."""
    return activation(x, node.option("FusedActivationFunction"), node)


def activation(x: Value, kind: int, node: Node) -> Value:
    """Numbers after an activation of this kind."""
    if kind == _TANH:
        return ops.tanh(x)
    if kind not in _BOUNDS:
        raise UnsupportedError(f"the fused activation {kind} is not imported")
    low, high = _BOUNDS[kind]
    x = x if low is None else ops.max(x, low if x.element_type.is_float else int(low))
    return x if high is None else ops.min(x, high if x.element_type.is_float else int(high))
