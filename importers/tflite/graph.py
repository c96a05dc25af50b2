"""Walking a graph: each operator becomes operations at the insertion point, or numpy computes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hloforge.dialect.errors import ImporterError, UnsupportedError
from hloforge.dialect.values import TupleValue, Value
from hloforge.importers.graphs import Importing
from hloforge.importers.tflite.folding import fold
from hloforge.importers.tflite.lists import writes_of
from hloforge.importers.tflite.load import Graph, Model, Operator
from hloforge.importers.tflite.node import Node
from hloforge.importers.tflite.quantization import quantized
from hloforge.importers.tflite.registry import handler_of

_STATEFUL = frozenset({"VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE", "HASHTABLE", "HASHTABLE_FIND"})


@dataclass
class Scope:
    """One run through a graph.

    Attributes:
        graph: whose operators are imported.
        values: what is known so far, by the number of the tensor.
    """

    importing: Importing
    model: Model
    graph: Graph
    values: dict[int, Any] = field(default_factory=dict)

    def outputs(self, inputs: Sequence[Any]) -> list[Any]:
        """The graph's outputs for these inputs."""
        if len(inputs) != len(self.graph.inputs):
            raise ImporterError(f"graph {self.graph.name!r} takes {len(self.graph.inputs)} inputs, not {len(inputs)}")
        self.values.update(zip(self.graph.inputs, inputs, strict=True))
        writes = writes_of(self.graph)
        for number, operator in enumerate(self.graph.operators):
            if number in writes.parts:
                continue
            with self.importing.at(self._label(operator), number + 1):
                write = writes.joins.get(number)
                outputs = self._outputs(operator) if write is None else [write.value(Node(operator, self))]
                for place, output in zip(operator.outputs, outputs, strict=False):
                    if place >= 0:
                        self.values[place] = self._stored(output, place)
        return [self.tensor(number) for number in self.graph.outputs]

    def run(self, graph: int, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of another graph. Raises ImporterError if there is none of this number."""
        if not 0 <= graph < len(self.model.graphs):
            raise ImporterError(f"the model has no graph {graph}")
        inner = self.model.graphs[graph]
        with self.importing.at(f'graph "{inner.name}"', graph):
            return Scope(self.importing, self.model, inner).outputs(inputs)

    def tensor(self, number: int) -> Any:
        """A tensor: computed before, or a constant of the file. Raises ImporterError if it is neither."""
        if number not in self.values:
            found = self.graph.tensors[number]
            if found.variable:
                # A state begins with zeros, as in a new interpreter.
                self.values[number] = np.full(
                    found.sizes or (), found.quantization.zero_point[0] if found.quantization else 0, found.row.dtype
                )
            elif found.data is None and 0 not in (found.sizes or ()):
                raise ImporterError(f"no operator before it makes tensor {found.name!r}")
            else:
                self.values[number] = found.array()
        return self.values[number]

    def _outputs(self, operator: Operator) -> list[Any]:
        if operator.custom and (handler := handler_of(operator.custom)):
            return _as_list(handler(Node(operator, self)))
        if operator.name in ("CUSTOM", "DELEGATE") or operator.custom:
            kind = "of TensorFlow " if operator.custom.startswith("Flex") else ""
            raise UnsupportedError(
                f"the custom operator {kind}{operator.custom or operator.name} is not imported",
                hint="convert the model with TFLITE_BUILTINS only",
            )
        if operator.name in _STATEFUL:
            raise UnsupportedError(
                f"{operator.name} keeps a state between calls, which a program does not",
                hint="make the state an input and an output of the model",
            )
        handler = handler_of(operator.name)
        if handler is None:
            raise UnsupportedError(f"the operator {operator.name} is not imported")
        node = Node(operator, self)
        folded = fold(node)
        return [folded] if folded is not None else _as_list(handler(node))

    def _stored(self, output: Any, number: int) -> Any:
        """Floats for a tensor of integers are quantized as it says."""
        tensor = self.graph.tensors[number]
        if not isinstance(output, Value) or tensor.quantization is None or not output.element_type.is_float:
            return output
        if tensor.row.is_float:
            return output
        return quantized(output, tensor.quantization, tensor.row)

    def _label(self, operator: Operator) -> str:
        named = next((self.graph.tensors[number].name for number in operator.outputs if number >= 0), "")
        return f'tensor "{named}" ({operator.custom or operator.name})'


class Outputs(list[Any]):
    """Several outputs of an operator."""


def _as_list(outputs: Any) -> list[Any]:
    if isinstance(outputs, TupleValue):
        return list(outputs.elements)
    return outputs if isinstance(outputs, list) else [outputs]
