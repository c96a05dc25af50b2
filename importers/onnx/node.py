"""``Node``: what an operator's function sees of its node: inputs, attributes, sub-graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hloforge.dialect.element_types import ElementType, element_type
from hloforge.dialect.errors import ImporterError, UnsupportedError
from hloforge.dialect.values import Value
from hloforge.importers.needs import known_value
from hloforge.importers.onnx.texts import Text
from hloforge.importers.tensors import Array, Tensor, axes_of, axis_of, dims_of, lift, row_of

if TYPE_CHECKING:
    from hloforge.importers.onnx.graph import Scope


class Node:
    """One node of a graph.

    Attributes:
        proto: the ``NodeProto``.
        version: of the operator's domain that the model imports.
        inputs: its tensors; None for one that is left out.
        scope: the graph around it, which sub-graphs see.
    """

    def __init__(
        self, proto: Any, version: int, inputs: Sequence[Any], attributes: dict[str, Any], scope: Scope
    ) -> None:
        self.proto = proto
        self.version = version
        self.inputs = list(inputs)
        self.attributes = attributes
        self.scope = scope

    @property
    def name(self) -> str:
        """The operator's name."""
        return str(self.proto.op_type)

    @property
    def outputs(self) -> int:
        """How many outputs it has, those left out in between included."""
        return len(self.proto.output)

    def wants(self, number: int) -> bool:
        """Whether an output is used."""
        return number < self.outputs and bool(self.proto.output[number])

    def has(self, number: int) -> bool:
        """Whether an input is given."""
        return number < len(self.inputs) and self.inputs[number] is not None

    def tensor(self, number: int) -> Tensor:
        """An input, known or not. Raises ImporterError if it is missing, UnsupportedError if it is a sequence."""
        if not self.has(number):
            raise ImporterError(f"input {number} is missing")
        given = self.inputs[number]
        if isinstance(given, Text):
            raise UnsupportedError(f"input {number} has strings, where numbers are expected")
        if not isinstance(given, Value | np.ndarray):
            raise UnsupportedError(f"input {number} is a sequence or optional, where a tensor is expected")
        return given

    def value(self, number: int) -> Value:
        """An input as a Value."""
        return lift(self.tensor(number))

    def values(self) -> list[Value]:
        """All inputs as Values."""
        return [self.value(number) for number in range(len(self.inputs))]

    def known(self, number: int) -> Array:
        """An input whose elements decide the program's form. Raises Needs if they come with the call only."""
        return known_value(self.tensor(number))

    def integers(self, number: int) -> list[int]:
        """The elements of an input that has to be known, as integers."""
        return [int(element) for element in self.known(number).reshape(-1)]

    def dims(self, number: int) -> tuple[int, ...]:
        """The sizes of an input."""
        return dims_of(self.tensor(number))

    def rank(self, number: int = 0) -> int:
        return len(self.dims(number))

    def row(self, number: int = 0) -> ElementType:
        """The element type of an input."""
        return row_of(self.tensor(number))

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute: a number, bytes as text, a list of these, an array, or a ``GraphProto``."""
        return self.attributes.get(name, default)

    def axis(self, default: int, number: int = 0) -> int:
        """The attribute ``axis`` as a number from 0 to the rank of an input."""
        return axis_of(int(self.attribute("axis", default)), self.rank(number))

    def listed(self, name: str, number: int) -> list[int] | None:
        """Integers that were an attribute in early versions and are an input in later ones; None if there are none."""
        if self.has(number):
            return self.integers(number)
        given = self.attribute(name)
        return None if given is None else [int(element) for element in given]

    def axes(self, number: int = 1, default: Sequence[int] | None = None) -> list[int]:
        """The axes of the first input that ``axes`` names, ascending from 0; by default all of them."""
        given = self.listed("axes", number)
        rank = self.rank()
        if given is None:
            return list(range(rank)) if default is None else list(default)
        return axes_of(given, rank)

    def dtype(self, name: str, default: Any = None) -> ElementType:
        """The element type that an attribute names by ONNX's number."""
        number = self.attribute(name)
        return element_of(int(number)) if number else element_type(default)


def element_of(number: int) -> ElementType:
    """The element type of ``TensorProto.DataType``. Raises UnsupportedError for strings."""
    import onnx

    if number == onnx.TensorProto.STRING:
        raise UnsupportedError("strings are no arrays of XLA", hint="handle text outside of the program")
    try:
        return element_type(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number)))
    except (KeyError, ValueError):
        raise UnsupportedError(f"element type {number} is none of XLA's") from None
