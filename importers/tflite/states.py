"""States of single-step layers, which become arguments and results of each call."""

from __future__ import annotations

from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value
from hloforge.importers.tensors import cast
from hloforge.importers.tflite.load import Graph
from hloforge.importers.tflite.node import Node
from hloforge.importers.tflite.quantization import dequantized, quantized

# The inputs of a step that are its states. Those of LSTM's basic kernel are inputs and outputs of the model already.
_STATES = {"SVDF": (4,), "RNN": (4,), "LSTM": (18, 19)}


def states_of(graph: Graph) -> list[int]:
    """The tensors that the steps of a graph keep, in the order of its operators."""
    found: dict[int, None] = {}
    for operator in graph.operators:
        for number in _STATES.get(operator.name, ()):
            if number < len(operator.inputs) and operator.inputs[number] >= 0:
                found[operator.inputs[number]] = None
    return [number for number in found if graph.tensors[number].variable]


def keep(node: Node, number: int, after: Value) -> Value:
    """Let an input that is a state have new elements, and return the numbers that these represent.

    Raises:
        UnsupportedError: the operator is in a branch, in a loop or in a graph that is called.
    """
    scope = node.scope
    if scope.graph is not scope.model.graphs[0]:
        raise UnsupportedError(
            f"{node.name} keeps a state between calls, and is inside another operator",
            hint="make the state an input and an output of that graph",
        )
    quantization = node.quantization(number)
    place = node.operator.inputs[number]
    if quantization is None:
        scope.values[place] = cast(after, node.described(number).row)
        return after
    stored = scope.values[place] = quantized(after, quantization, node.described(number).row)
    return dequantized(stored, quantization)
