"""``Node``: what an operator's function sees of its operator: inputs, options, quantization, other graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hloforge.dialect.constants import constant
from hloforge.dialect.element_types import ElementType
from hloforge.dialect.errors import ImporterError
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.importers.needs import known_value
from hloforge.importers.tensors import Array, axis_of, cast, dims_of, lift, row_of
from hloforge.importers.tflite.load import Operator, Quantization, Tensor
from hloforge.importers.tflite.quantization import dequantized, quantized

if TYPE_CHECKING:
    from hloforge.importers.tflite.graph import Scope

# Constants from here on are weights: of the whole program, under their names.
_WEIGHT = 64


class Node:
    """One operator of a graph.

    Attributes:
        operator: what the file says of it.
        scope: the graph around it.
    """

    def __init__(self, operator: Operator, scope: Scope) -> None:
        self.operator = operator
        self.scope = scope

    @property
    def name(self) -> str:
        """The operator's name."""
        return self.operator.name

    @property
    def count(self) -> int:
        """How many inputs it has, those left out included."""
        return len(self.operator.inputs)

    def has(self, number: int) -> bool:
        """Whether an input is given."""
        return number < self.count and self.operator.inputs[number] >= 0

    def described(self, number: int) -> Tensor:
        """What the file says of an input. Raises ImporterError if it is missing."""
        if not self.has(number):
            raise ImporterError(f"input {number} is missing")
        return self.scope.graph.tensors[self.operator.inputs[number]]

    def result(self, number: int = 0) -> Tensor:
        """What the file says of an output."""
        return self.scope.graph.tensors[self.operator.outputs[number]]

    def tensor(self, number: int) -> Value | Array:
        """An input as it is stored, known or not."""
        self.described(number)
        found: Value | Array = self.scope.tensor(self.operator.inputs[number])
        return found

    def value(self, number: int) -> Value:
        """An input as it is stored, as a Value; a weight is a constant of the program under its name."""
        tensor = self.tensor(number)
        if isinstance(tensor, Value):
            return tensor
        return self.weight(tensor, self.described(number).name) if tensor.size >= _WEIGHT else lift(tensor)

    def weight(self, array: Array, name: str) -> Value:
        """A constant at the program's beginning."""
        importing = self.scope.importing
        where = ir.Location.name(name, ir.Location.file(importing.file, 0, 0))
        with ir.InsertionPoint.at_block_begin(importing.entry), where:
            return constant(np.ascontiguousarray(array))

    def real(self, number: int) -> Value:
        """An input as the numbers that it represents: a quantized one in f32, others as they are."""
        quantization = self.quantization(number)
        value = self.value(number)
        if quantization is None or value.element_type.is_float:
            return value
        return dequantized(value, quantization)

    def aligned(self, number: int) -> Value:
        """An input as stored for the first output: quantized again if its scale is another one."""
        quantization, wanted = self.quantization(number), self.result().quantization
        if quantization is None or wanted is None or quantization.same(wanted):
            return self.value(number)
        return quantized(self.real(number), wanted, self.result().row)

    def known(self, number: int) -> Array:
        """An input whose elements decide the program's form. Raises Needs if they come with the call only."""
        return known_value(self.tensor(number))

    def constant(self, number: int) -> Array | None:
        """The elements of an input if they are known, else None."""
        tensor = self.tensor(number)
        return tensor if isinstance(tensor, np.ndarray) else None

    def integers(self, number: int) -> list[int]:
        """The elements of an input that has to be known, as integers."""
        return [int(element) for element in self.known(number).reshape(-1)]

    def axis(self, number: int, rank: int) -> int:
        """An input that is an axis, from 0."""
        return axis_of(self.integers(number)[0], rank)

    def dims(self, number: int = 0) -> tuple[int, ...]:
        """The sizes of an input."""
        return dims_of(self.tensor(number))

    def row(self, number: int = 0) -> ElementType:
        """The element type in which an input is stored."""
        return row_of(self.tensor(number))

    def quantization(self, number: int = 0) -> Quantization | None:
        """The scale of an input of integers; None if they represent themselves."""
        if self.row(number).is_float or not self.row(number).is_integer:
            return None
        return self.described(number).quantization

    def option(self, name: str, default: Any = 0) -> Any:
        """An option, by the schema's name in CamelCase; the default if there are no options at all."""
        options = self.operator.options
        return getattr(options, name)() if options is not None and hasattr(options, name) else default

    def custom_options(self) -> dict[str, Any]:
        """The options of a custom operator by their names. Raises ImporterError where they are no map."""
        from flatbuffers import flexbuffers

        try:
            found = flexbuffers.Loads(self.operator.custom_options)
        except Exception as error:  # whatever damaged bytes lead to
            raise ImporterError(f"the options of {self.operator.custom} are damaged: {error}") from error
        if not isinstance(found, dict):
            raise ImporterError(f"the options of {self.operator.custom} are no map")
        return found

    def listed(self, name: str) -> list[int]:
        """An option that is a list of integers or truths."""
        options = self.operator.options
        if options is None or not getattr(options, f"{name}Length")():
            return []
        return [int(entry) for entry in np.asarray(getattr(options, f"{name}AsNumpy")()).reshape(-1)]

    def listed_floats(self, name: str) -> list[float]:
        """An option that is a list of floats."""
        options = self.operator.options
        if options is None or not getattr(options, f"{name}Length")():
            return []
        return [float(entry) for entry in np.asarray(getattr(options, f"{name}AsNumpy")()).reshape(-1)]

    def run(self, graph: int, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of another graph of the model for these inputs."""
        return self.scope.run(graph, inputs)

    def converted(self, value: Value) -> Value:
        """A value in the element type of the first output."""
        return cast(value, self.result().row)
