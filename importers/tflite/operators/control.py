"""Branches, loops and calls of other graphs of the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.errors import ImporterError, OperationError
from hloforge.dialect.values import TupleValue, Value
from hloforge.importers.needs import known_value
from hloforge.importers.tensors import dims_of, lift
from hloforge.importers.tflite.graph import Outputs
from hloforge.importers.tflite.node import Node
from hloforge.importers.tflite.registry import operator


@operator("IF")
def branch(node: Node) -> Any:
    """A known condition chooses while the model is imported; so does one whose branches give different sizes."""
    condition = node.tensor(0)
    given = [node.tensor(number) for number in range(1, node.count)]
    graphs = [node.option("ThenSubgraphIndex"), node.option("ElseSubgraphIndex")]
    if isinstance(condition, np.ndarray):
        return Outputs(node.run(graphs[0 if condition.reshape(-1)[0] else 1], given))
    nothing = TupleValue([])

    def traced(graph: int) -> Any:
        return lambda _: tuple(map(lift, node.run(graph, given)))

    try:
        result: Any = ops.conditional(
            ops.reshape(condition, []), nothing, traced(graphs[0]), nothing, traced(graphs[1])
        )
    except OperationError:
        known_value(condition)
        raise
    return Outputs(result.elements)


@operator("WHILE", "STABLEHLO_WHILE")
def loop(node: Node) -> Any:
    """Iterations of a body while a condition holds."""
    init = [lift(node.tensor(number)) for number in range(node.count)]
    test, body = node.option("CondSubgraphIndex"), node.option("BodySubgraphIndex")

    def holds(*state: Value) -> Value:
        return ops.reshape(lift(node.run(test, state)[0]), [])

    def turn(*state: Value) -> list[Value]:
        after = [lift(entry) for entry in node.run(body, state)]
        if [dims_of(entry) for entry in after] != [entry.dims for entry in state]:
            raise ImporterError("a loop whose state changes its sizes between iterations")
        return after

    result: Any = ops.while_(holds, turn, init)
    return Outputs(result.elements if isinstance(result, TupleValue) else [result])


@operator("CALL")
def call(node: Node) -> Any:
    return Outputs(node.run(node.option("Subgraph"), [node.tensor(number) for number in range(node.count)]))


@operator("STABLEHLO_COMPOSITE")
def composite(node: Node) -> Any:
    """What it is made of."""
    graph = node.option("DecompositionSubgraphIndex", -1)
    return Outputs(node.run(graph, [node.tensor(number) for number in range(node.count)]))
