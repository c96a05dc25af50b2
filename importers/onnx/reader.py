"""``read_onnx``: a model to a program, or to a template with one program per set of sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hloforge.dialect.element_types import element_type
from hloforge.dialect.errors import ImporterError, Location, UnsupportedError
from hloforge.dialect.program import Parameter, Program
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.importers.graphs import GraphBuilder
from hloforge.importers.onnx.bounded import Bounded
from hloforge.importers.onnx.graph import Scope
from hloforge.importers.onnx.load import load_model
from hloforge.importers.onnx.node import element_of
from hloforge.importers.onnx.registry import canonical
from hloforge.importers.onnx.texts import Table, Text, as_text, is_text
from hloforge.importers.template import Template
from hloforge.importers.tensors import lift


def read_onnx(data: bytes, file: str) -> Program:
    """The program of a model.

    Args:
        data: a ``ModelProto``.
        file: its name; external data is sought beside it.

    Returns:
        If all sizes are fixed, a verified program whose operations carry the names of their nodes. Else a program with
        a ``template``: it is imported again for the sizes of each call, and for the elements of inputs that decide
        sizes (the ``shape`` of a Reshape).

    Raises:
        ImporterError: the package onnx is missing, or the model is damaged.
        UnsupportedError: an operator, an element type or a kind of input that is not imported; the node is named.
    """
    return OnnxTemplate(load_model(data, file), Path(file).name if not file.startswith("<") else file).program()


class OnnxTemplate(Template):
    """A model, to be imported for the sizes of its inputs.

    Attributes:
        model: the ``ModelProto``.
    """

    def __init__(self, model: Any, file: str) -> None:
        super().__init__(file, model.graph.name or "onnx")
        self.model = model

    def declared(self) -> list[Parameter]:
        """The inputs without those that have initializers."""
        own = {tensor.name for tensor in self.model.graph.initializer}
        inputs = [entry for entry in self.model.graph.input if entry.name not in own]
        return [Parameter(entry.name, _shape_of(entry, self.file)) for entry in inputs]

    def size_texts(self) -> dict[tuple[int, int], str]:
        """The names of open sizes (``dim_param``), by the number of the input and the dimension."""
        entries = {entry.name: entry for entry in self.model.graph.input}
        return {
            (number, d): dim.dim_param
            for number, parameter in enumerate(self.parameters())
            for d, dim in enumerate(entries[parameter.name].type.tensor_type.shape.dim)
            if dim.WhichOneof("value") == "dim_param" and dim.dim_param
        }

    def declared_results(self) -> list[Shape]:
        found: list[Shape] = []
        for entry in _typed(self.model):
            if self._is_map(entry):
                found.append(Shape.array("f32", -1, -1))
            elif entry.type.WhichOneof("value") == "sequence_type":
                found += self._declared_items(entry)
            else:
                found.append(_shape_of(entry, self.file, rank=1))
        return found

    def declared_names(self) -> list[str]:
        return [name for entry in _typed(self.model) for name in self._result_names(entry)]

    def _is_map(self, entry: Any) -> bool:
        """Whether an output is a sequence of maps, which is one array here."""
        return any(node.op_type == "ZipMap" and entry.name in node.output for node in self.model.graph.node)

    def _result_names(self, entry: Any) -> list[str]:
        if entry.type.WhichOneof("value") != "sequence_type" or self._is_map(entry):
            return [str(entry.name)]
        return [f"{entry.name}.{number}" for number in range(len(self._declared_items(entry)))]

    def _declared_items(self, entry: Any) -> list[Shape]:
        """What a model of open sizes says of an output that is a sequence.

        Raises:
            UnsupportedError: its length may depend on the sizes.
        """
        from onnx.helper import make_value_info

        made = next((node for node in self.model.graph.node if entry.name in node.output), None)
        if made is None or made.op_type != "SequenceConstruct":
            raise UnsupportedError(
                f"{entry.name!r} is a sequence whose length is not known before the call",
                hint="make it by SequenceConstruct, or compile the model for fixed sizes",
                location=Location(self.file),
            )
        item = make_value_info(entry.name, entry.type.sequence_type.elem_type)
        return [_shape_of(item, self.file, rank=1) for _ in made.input]

    def imported(self, shapes: Sequence[Shape], values: Mapping[int, np.ndarray[Any, Any]]) -> Program:
        """The program for static shapes. Raises Needs, and as of ``read_onnx``."""
        functions = {(canonical(entry.domain), entry.name): entry for entry in self.model.functions}
        versions = {canonical(entry.domain): entry.version for entry in self.model.opset_import} or {"": 1}
        texts = {entry.name: Table(open=True) for entry in self.model.graph.input if _is_text(entry)}
        builder = GraphBuilder(self.name, self.file)
        with builder:
            tensors: dict[str, Any] = {}
            for number, (parameter, shape) in enumerate(zip(self.parameters(), shapes, strict=True)):
                value = builder.parameter(number, shape, parameter.name)
                tensors[parameter.name] = values.get(number, value)
                if parameter.name in texts:
                    tensors[parameter.name] = Text(value, texts[parameter.name])
            scope = Scope(builder.importing, functions, tensors, versions)
            scope.add_initializers(self.model.graph)
            scope.add_nodes(self.model.graph.node)
            outputs = [entry.name for entry in self.model.graph.output]
            tensors = dict(item for name in outputs for item in _items(name, scope.named(name)))
            names = list(tensors)
            tensors = {name: as_text(tensor) if is_text(tensor) else tensor for name, tensor in tensors.items()}
            results = [_result(tensors[name], name) for name in names]
            program = builder.build(results[0] if len(results) == 1 else tuple(results))
        tables = {
            **texts,
            **{name: tensor.table for name, tensor in tensors.items() if isinstance(tensor, Text)},
        }
        labels: dict[str, tuple[str | int, ...]] = {name: tuple(table.entries) for name, table in tables.items()}
        labels |= {name: builder.importing.columns[name] for name in names if name in builder.importing.columns}
        program.describe(result_names=names, labels=labels)
        program.source = self.file
        return program


def _typed(model: Any) -> list[Any]:
    """The outputs of a model with their types. If a model leaves one out, ONNX infers it from the nodes."""
    outputs = list(model.graph.output)
    if all(entry.type.WhichOneof("value") for entry in outputs):
        return outputs
    import onnx

    try:
        inferred = {entry.name: entry for entry in onnx.shape_inference.infer_shapes(model).graph.output}
    except Exception:  # an operator that ONNX does not know, or a model that protobuf cannot hand over
        return outputs
    return [inferred.get(entry.name, entry) for entry in outputs]


def _shape_of(entry: Any, file: str, rank: int | None = None) -> Shape:
    """The shape of a ``ValueInfoProto``; -1 for sizes that are names or missing.

    Args:
        rank: of an array whose shape the model does not say.
    """
    kind = entry.type.WhichOneof("value")
    where = Location(file)
    if kind is None:
        raise UnsupportedError(
            f"the model does not say the type of {entry.name!r}, and ONNX does not infer it",
            hint="give its element type in the graph's inputs or outputs, or compile the model for fixed sizes",
            location=where,
        )
    if kind != "tensor_type":
        word = kind.removesuffix("_type").replace("_", " ")
        raise UnsupportedError(f"{entry.name!r} is a {word}; a program takes and returns tensors", location=where)
    try:
        # A string is a number of a table.
        element = element_type("s64") if _is_text(entry) else element_of(entry.type.tensor_type.elem_type)
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


def _items(name: str, tensor: Any) -> list[tuple[str, Any]]:
    """The results that an output is: those of a sequence one after the other, by their numbers."""
    if not isinstance(tensor, list):
        return [(name, tensor)]
    return [item for number, each in enumerate(tensor) for item in _items(f"{name}.{number}", each)]


def _is_text(entry: Any) -> bool:
    import onnx

    return bool(entry.type.tensor_type.elem_type == onnx.TensorProto.STRING)


def _result(tensor: Any, name: str) -> Value:
    if isinstance(tensor, Text):
        return tensor.numbers
    if isinstance(tensor, Bounded):
        return tensor.cut()
    if isinstance(tensor, Value | np.ndarray):
        return lift(tensor)
    raise UnsupportedError(f"the output {name!r} is an absent optional; a program returns tensors")
