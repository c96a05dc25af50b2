"""``read_onnx``: a model to a program, or to the template of one for each choice of sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.builder import Builder
from hloforge.dialect.constants import constant
from hloforge.dialect.errors import ArgumentError, ImporterError, Location, UnsupportedError
from hloforge.dialect.program import Parameter, Program
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.importers.onnx.graph import Importing, Scope
from hloforge.importers.onnx.load import load_model
from hloforge.importers.onnx.needs import Needs
from hloforge.importers.onnx.node import element_of
from hloforge.importers.onnx.registry import canonical
from hloforge.importers.onnx.tensors import lift

_PLACEHOLDER = "hloforge.onnx"


def read_onnx(data: bytes, file: str) -> Program:
    """The program of a model.

    Args:
        data: a ``ModelProto``.
        file: its name; external data is sought beside it.

    Returns:
        If all sizes are fixed, a verified program whose operations carry the names of their nodes. Else a program with
        a ``template``: it is imported anew for the sizes of each call, and for the elements of inputs that decide
        sizes (the ``shape`` of a Reshape).

    Raises:
        ImporterError: the package onnx is missing, or the model is damaged.
        UnsupportedError: an operator, an element type or a kind of input that is not imported; the node is named.
    """
    template = Template(load_model(data, file), Path(file).name if not file.startswith("<") else file)
    shapes = [parameter.shape for parameter in template.parameters()]
    if all(shape.is_static for shape in shapes):
        try:
            return template.imported(shapes, {})
        except Needs as needs:
            template.needed |= needs.inputs
    return template.placeholder()


@dataclass(eq=False)
class Template:
    """A model, to be imported for the sizes of its inputs.

    Attributes:
        model: the ``ModelProto``.
        file: what to call it in messages.
        needed: the numbers of inputs whose elements turned out to decide sizes.
    """

    model: Any
    file: str
    needed: frozenset[int] = frozenset()
    _parameters: list[Parameter] = field(default_factory=list)

    @property
    def size_parameters(self) -> tuple[int, ...]:
        """The inputs on whose elements a form depends, as far as is known."""
        return tuple(sorted(self.needed))

    def specialize(self, shapes: Sequence[Shape], values: Mapping[int, Any]) -> Program:
        """The program for inputs of these shapes; it computes with the elements of some of them, as if they were fixed.

        Raises:
            ArgumentError: shapes that the model does not take, or elements decide sizes and ``values`` lacks them.
            UnsupportedError: as of ``read_onnx``.
        """
        for given, parameter in zip(shapes, self.parameters(), strict=True):
            _check(given, parameter)
        while True:
            missing = [self.parameters()[number].name for number in self.needed if number not in values]
            if missing:
                raise ArgumentError(
                    f"the elements of {', '.join(missing)} decide sizes, and they are known at a call only",
                    hint="call the program with arrays, or make initializers of them in the model",
                )
            try:
                return self.imported(shapes, {number: np.asarray(values[number]) for number in self.needed})
            except Needs as needs:
                if needs.inputs <= self.needed:
                    raise UnsupportedError("sizes depend on elements that are not computed before the call") from None
                self.needed |= needs.inputs

    def parameters(self) -> list[Parameter]:
        """The inputs without those that have initializers."""
        if not self._parameters:
            own = {tensor.name for tensor in self.model.graph.initializer}
            for entry in self.model.graph.input:
                if entry.name not in own:
                    self._parameters.append(Parameter(entry.name, _shape_of(entry, self.file)))
        return self._parameters

    def imported(self, shapes: Sequence[Shape], values: Mapping[int, np.ndarray[Any, Any]]) -> Program:
        """The program for static shapes. Raises Needs, and as of ``read_onnx``."""
        functions = {(canonical(entry.domain), entry.name): entry for entry in self.model.functions}
        versions = {canonical(entry.domain): entry.version for entry in self.model.opset_import} or {"": 1}
        builder = _Builder(self.model.graph.name or "onnx", Program)
        importing = Importing(self.file, functions, builder.entry)
        builder.importing = importing
        with builder:
            tensors: dict[str, Any] = {}
            for number, (parameter, shape) in enumerate(zip(self.parameters(), shapes, strict=True)):
                value = builder.parameter(number, shape, parameter.name)
                tensors[parameter.name] = values.get(number, value)
            scope = Scope(importing, tensors, versions)
            scope.add_initializers(self.model.graph)
            scope.add_nodes(self.model.graph.node)
            results = [_result(scope.named(entry.name), entry.name) for entry in self.model.graph.output]
            program = builder.build(results[0] if len(results) == 1 else tuple(results))
        program.source = self.file
        return program

    def placeholder(self) -> Program:
        """The program as far as it is known without sizes: what it takes, and of what element types it returns."""
        builder: Builder[Program] = Builder(self.model.graph.name or "onnx", Program)
        with builder:
            given = [
                builder.parameter(number, parameter.shape, parameter.name)
                for number, parameter in enumerate(self.parameters())
            ]
            shapes = [_shape_of(entry, self.file, rank=1) for entry in self.model.graph.output]
            results = [ops.custom_call(_PLACEHOLDER, given, shape) for shape in shapes]
            program = builder.build(results[0] if len(results) == 1 else tuple(results))
        program.source = self.file
        program.template = self
        return program


class _Builder(Builder[Program]):
    """A builder whose operations stand at nodes, not at lines of Python."""

    importing: Importing

    @property
    def entry(self) -> Any:
        return self._block

    def scopes(self, location: Location, entered: Any) -> list[Any]:
        if entered is self._context:
            return [self.importing.location()]
        return super().scopes(location, entered)


def _shape_of(entry: Any, file: str, rank: int | None = None) -> Shape:
    """The shape of a ``ValueInfoProto``; -1 for sizes that are names or missing.

    Args:
        rank: of an array whose shape the model does not say.
    """
    kind = entry.type.WhichOneof("value")
    where = Location(file)
    if kind != "tensor_type":
        word = (kind or "untyped value").removesuffix("_type").replace("_", " ")
        raise UnsupportedError(f"{entry.name!r} is a {word}; a program takes and returns tensors", location=where)
    try:
        element = element_of(entry.type.tensor_type.elem_type)
    except UnsupportedError as error:
        error.location, error.message = where, f"{entry.name!r}: {error.message}"
        raise
    if entry.type.tensor_type.HasField("shape"):
        sizes = [d.dim_value if d.HasField("dim_value") else -1 for d in entry.type.tensor_type.shape.dim]
    elif rank is not None:
        sizes = [-1] * rank
    else:
        raise ImporterError(f"{entry.name!r} has no shape, not even a rank", location=where)
    return Shape.array(element, *sizes)


def _check(given: Shape, parameter: Parameter) -> None:
    fits = given.rank == parameter.shape.rank and given.element == parameter.shape.element
    sizes = zip(given.dimensions, parameter.shape.dimensions, strict=False)
    if not fits or not all(size == bound or bound < 0 for size, bound in sizes):
        raise ArgumentError(f"argument {parameter.name!r}: expected {parameter.shape}, got {given}")


def _result(tensor: Any, name: str) -> Value:
    if isinstance(tensor, Value):
        return tensor
    if isinstance(tensor, np.ndarray):
        return constant(tensor) if tensor.dtype.kind not in "OSU" else lift(tensor)
    raise UnsupportedError(f"the output {name!r} is a sequence or optional; a program returns tensors")
