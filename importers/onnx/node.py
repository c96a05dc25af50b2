"""``Node``: what an operator's function sees of its node: inputs, attributes, sub-graphs."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from hloforge.dialect.element_types import ElementType, element_type
from hloforge.dialect.errors import ImporterError, UnsupportedError
from hloforge.dialect.values import Value
from hloforge.importers.needs import known_value
from hloforge.importers.onnx.texts import Text
from hloforge.importers.tensors import Array, Tensor, axes_of, axis_of, cast, dims_of, lift, row_of

if TYPE_CHECKING:
    from hloforge.importers.onnx.graph import Scope


# Attributes that change no result, or that an operator's function reads where they do.
_WITHOUT_EFFECT = {
    *("accuracy_level", "axis", "broadcast", "chunk_size", "consumed_inputs", "direction", "dtype", "hidden_size"),
    *("is_test", "kernel_shape", "mask_index_type", "momentum", "multi_class", "nodes_hitrates"),
    *("past_present_share_buffer", "saturate", "seed", "sorted", "type"),
}
_ONNX = ("", "ai.onnx")
_OURS = __name__.rpartition(".")[0]


@cache
def _texts_of(module: str) -> frozenset[str]:
    """The texts that functions of a file have, and those of our files that it takes functions from."""
    functions = _functions_of(module)
    files = {module, *(one.__module__ for one in functions if one.__module__.startswith(_OURS))}
    return frozenset(text for name in files for one in _functions_of(name) for text in _texts_in(one.__code__))


def _functions_of(module: str) -> list[FunctionType]:
    own = vars(sys.modules[module]).values()
    return [one for one in map(inspect.unwrap, own) if isinstance(one, FunctionType)]


def _texts_in(code: CodeType) -> Iterator[str]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _texts_in(constant)
        elif isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple):
            yield from (one for one in constant if isinstance(one, str))


class Node:
    """One node of a graph.

    Attributes:
        proto: the ``NodeProto``.
        version: of the operator's domain that the model imports.
        scope: the graph around it, which sub-graphs see.
    """

    def __init__(
        self, proto: Any, version: int, inputs: Sequence[Any], attributes: dict[str, Any], scope: Scope
    ) -> None:
        self.proto = proto
        self.version = version
        self._inputs = list(inputs)
        self.attributes = attributes
        self.scope = scope
        self._told: set[str] = set()
        self._taken: set[int] = set()

    @property
    def inputs(self) -> list[Any]:
        """Its tensors; None for one that is left out."""
        self._taken.update(range(len(self._inputs)))
        return self._inputs

    def check_read(self, function: Callable[..., Any]) -> None:
        """After the operator's function has run.

        Raises:
            UnsupportedError: the function has not looked at something that says what the operator computes. Of ONNX's
                own operators, whose node tests judge the functions, an attribute that its file reads elsewhere means
                nothing here: exporters write the rule for nearest neighbours where interpolation is linear.
        """
        elsewhere = _texts_of(function.__module__) if self.proto.domain in _ONNX else frozenset()
        without_effect = _WITHOUT_EFFECT | elsewhere
        for name, value in self.attributes.items():
            if name not in self._told and name not in without_effect and not self._is_default(name, value):
                raise UnsupportedError(f"{self.name} with {name}={value!r} is not imported")
        if self.proto.domain in _ONNX:
            return  # the node tests of ONNX judge its own
        for number, given in enumerate(self._inputs):
            if given is not None and number not in self._taken:
                raise UnsupportedError(
                    f"{self.name} with input {number} ({self.proto.input[number]!r}) is not imported"
                )

    def _is_default(self, name: str, value: Any) -> bool:
        """Whether an attribute says what holds without it; -1, 0 and NONE are nothing where no schema tells."""
        import onnx

        try:
            schema = onnx.defs.get_schema(self.name, self.version, self.proto.domain)
            default: Any = onnx.helper.get_attribute_value(schema.attributes[name].default_value)
        except (onnx.defs.SchemaError, KeyError, ValueError):
            return isinstance(value, int | float | str | list) and value in (0, -1, "", "NONE", "none", [])
        return bool(value == (default.decode() if isinstance(default, bytes) else default))

    def with_input(self, number: int, tensor: Any) -> Node:
        """The node with another tensor in the place of an input, for the function of another operator."""
        inputs = [tensor if place == number else given for place, given in enumerate(self.inputs)]
        node = Node(self.proto, self.version, inputs, self.attributes, self.scope)
        node._told = self._told
        return node

    def narrow_row(self) -> ElementType | None:
        """The element type of its inputs of 16-bit floats, None if it has none."""
        rows = (row_of(given) for given in self._inputs if isinstance(given, Value | np.ndarray) and _is_number(given))
        return next((row for row in rows if row.is_float and row.bits == 16), None)

    def widened(self) -> Node:
        """The node with inputs of f32 in the place of 16-bit floats."""
        row = self.narrow_row()

        def wide(given: Any) -> Any:
            if not isinstance(given, Value | np.ndarray) or not _is_number(given) or row_of(given) != row:
                return given
            return cast(given, "f32") if isinstance(given, Value) else given.astype(np.float32)

        node = Node(self.proto, self.version, [wide(given) for given in self._inputs], self.attributes, self.scope)
        node._told, node._taken = self._told, self._taken
        return node

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
        return number < len(self._inputs) and self._inputs[number] is not None

    def tensor(self, number: int) -> Tensor:
        """An input, known or not. Raises ImporterError if it is missing, UnsupportedError if it is a sequence."""
        if not self.has(number):
            raise ImporterError(f"input {number} is missing")
        self._taken.add(number)
        given = self._inputs[number]
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
        return [self.value(number) for number in range(len(self._inputs))]

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
        self._told.add(name)
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


def _is_number(given: Value | Array) -> bool:
    return isinstance(given, Value) or given.dtype.kind not in "OSU"


def element_of(number: int) -> ElementType:
    """The element type of ``TensorProto.DataType``. Raises UnsupportedError for strings."""
    import onnx

    if number == onnx.TensorProto.STRING:
        raise UnsupportedError("strings are no arrays of XLA", hint="handle text outside of the program")
    try:
        return element_type(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number)))
    except (KeyError, ValueError):
        raise UnsupportedError(f"element type {number} is none of XLA's") from None
