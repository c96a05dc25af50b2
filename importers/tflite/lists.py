"""Writes into lists (``tf.TensorArray``), which TensorFlow's converter spells as parts joined again::

    SLICE(list, 0, [i, -1, ...]), item, SLICE(list, [i + 1, 0, ...], -1)  →  CONCATENATION

The sizes of both parts change between iterations of a loop; those of the list do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.values import Value
from hloforge.importers.tensors import lift
from hloforge.importers.tflite.load import Graph, Operator
from hloforge.importers.tflite.node import Node


@dataclass(frozen=True)
class Write:
    """A list with one element in place of another one.

    Attributes:
        source: the number of the list's tensor.
        index: of the scalar that counts elements.
    """

    source: int
    index: int

    def value(self, node: Node) -> Value:
        """The new list, whose element is the second input of the joining operator."""
        whole, item = lift(node.scope.tensor(self.source)), node.aligned(1)
        start = ops.reshape(lift(node.scope.tensor(self.index)), [])
        zero = ops.sub(start, start)
        return ops.dynamic_update_slice(whole, item, [start, *[zero] * (whole.rank - 1)])


@dataclass(frozen=True)
class Writes:
    """The writes of a graph.

    Attributes:
        joins: by the number of the operator that joins the parts.
        parts: the numbers of operators that are not needed then.
    """

    joins: Mapping[int, Write]
    parts: frozenset[int]


def writes_of(graph: Graph) -> Writes:
    """What of a graph writes into lists."""
    makers = {number: place for place, operator in enumerate(graph.operators) for number in operator.outputs}
    users: dict[int, int] = {}
    for number in (*graph.outputs, *(entry for operator in graph.operators for entry in operator.inputs)):
        users[number] = users.get(number, 0) + 1
    joins, parts = dict[int, Write](), set[int]()
    for place, operator in enumerate(graph.operators):
        if operator.name != "CONCATENATION" or len(operator.inputs) != 3:
            continue
        outer = [makers.get(number, -1) for number in (operator.inputs[0], operator.inputs[2])]
        if -1 in outer or any(users[operator.inputs[n]] != 1 for n in (0, 2)):
            continue
        write = _Reader(graph, makers).write(operator, *(graph.operators[n] for n in outer))
        if write is not None:
            joins[place] = write
            parts.update(outer)
    return Writes(joins, frozenset(parts))


@dataclass(frozen=True)
class _Reader:
    """Tells what vectors of starts and sizes are made of.

    Attributes:
        makers: the numbers of operators by their tensors.
    """

    graph: Graph
    makers: Mapping[int, int]

    def write(self, join: Operator, before: Operator, behind: Operator) -> Write | None:
        """The write that three operators are, if they are one."""
        if before.name != "SLICE" or behind.name != "SLICE" or before.inputs[0] != behind.inputs[0]:
            return None
        source, item, result = (self.graph.tensors[n] for n in (before.inputs[0], join.inputs[1], join.outputs[0]))
        if not source.sizes or not item.sizes or len(item.sizes) != len(source.sizes) or item.sizes[0] != 1:
            return None
        if _axis(join) != 0 or (source.quantization is None) != (result.quantization is None):
            return None
        if source.quantization is not None and not source.quantization.same(result.quantization):
            return None
        rank = len(source.sizes)
        index, ahead = self._first(before.inputs[2], [-1] * (rank - 1)), self._first(behind.inputs[1], [0] * (rank - 1))
        whole = self._elements(before.inputs[1]) == [0] * rank and self._elements(behind.inputs[2]) == [-1] * rank
        if index is None or ahead is None or not whole or not self._is_next(ahead, index):
            return None
        return Write(before.inputs[0], index)

    def _maker(self, number: int, *names: str) -> Operator | None:
        place = self.makers.get(number)
        found = None if place is None else self.graph.operators[place]
        return found if found is not None and found.name in names else None

    def _elements(self, number: int) -> list[int] | None:
        """The elements of a constant of the file."""
        tensor = self.graph.tensors[number]
        return None if tensor.data is None else [int(each) for each in np.asarray(tensor.array()).reshape(-1)]

    def _first(self, number: int, rest: list[int]) -> int | None:
        """The scalar that a vector begins with, if these constants follow."""
        vector = self._maker(number, "CONCATENATION", "PACK")
        if vector is None:
            return None
        tail = [self._elements(each) for each in vector.inputs[1:]]
        if any(each is None for each in tail) or [n for each in tail for n in each or ()] != rest:
            return None
        if vector.name == "PACK":
            return int(vector.inputs[0])
        lone = self._maker(vector.inputs[0], "RESHAPE", "EXPAND_DIMS")
        return None if lone is None else int(lone.inputs[0])

    def _is_next(self, number: int, index: int) -> bool:
        """Whether a scalar is one more than another."""
        total = self._maker(number, "ADD")
        if total is None or index not in total.inputs:
            return False
        other = total.inputs[1] if total.inputs[0] == index else total.inputs[0]
        return self._elements(other) == [1]


def _axis(join: Operator) -> Any:
    return join.options.Axis() if join.options is not None else 0
