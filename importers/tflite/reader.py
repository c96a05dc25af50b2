"""``read_tflite``: a model to a program, or to a template with one program per set of sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hloforge.dialect.errors import Error, ImporterError, Location
from hloforge.dialect.program import Parameter, Program
from hloforge.dialect.shapes import Shape
from hloforge.importers.graphs import GraphBuilder
from hloforge.importers.template import Template
from hloforge.importers.tensors import lift
from hloforge.importers.tflite.graph import Scope
from hloforge.importers.tflite.load import Model, Tensor, load_model
from hloforge.importers.tflite.states import states_of


def read_tflite(data: bytes, file: str) -> Program:
    """The program of a model's first graph.

    Args:
        data: a flatbuffer of TFLite's schema.
        file: its name.

    Returns:
        If all sizes are fixed, a verified program whose operations carry the names of the tensors that they make. Else
        a program with a ``template``: it is imported again for the sizes of each call. Quantized inputs and outputs are
        integers, as they are stored. States of layers of one step (SVDF, RNN, LSTM) are the last parameters, under
        their names, and what they become the last results.

    Raises:
        ImporterError: the package tflite is missing, or the model is damaged.
        UnsupportedError: an operator or an element type that is not imported; the tensor is named.
    """
    return TfliteTemplate(load_model(data), Path(file).name if not file.startswith("<") else file).program()


class TfliteTemplate(Template):
    """A model, to be imported for the sizes of its inputs.

    Attributes:
        model: its graphs.
    """

    def __init__(self, model: Model, file: str) -> None:
        super().__init__(file, model.graphs[0].name or "main")
        self.model = model
        self._states = states_of(model.graphs[0])

    def declared(self) -> list[Parameter]:
        graph = self.model.graphs[0]
        given = [graph.tensors[number] for number in (*graph.inputs, *self._states)]
        return [Parameter(tensor.name, self._shape(tensor)) for tensor in given]

    def declared_results(self) -> list[Shape]:
        graph = self.model.graphs[0]
        return [self._shape(graph.tensors[number]) for number in (*graph.outputs, *self._states)]

    def imported(self, shapes: Sequence[Shape], values: Mapping[int, np.ndarray[Any, Any]]) -> Program:
        """The program for static shapes. Raises Needs, and as of ``read_tflite``."""
        builder = GraphBuilder(self.name, self.file)
        with builder:
            given: list[Any] = []
            for number, (parameter, shape) in enumerate(zip(self.parameters(), shapes, strict=True)):
                value = builder.parameter(number, shape, parameter.name)
                given.append(values.get(number, value))
            scope = Scope(builder.importing, self.model, self.model.graphs[0])
            count = len(given) - len(self._states)
            scope.values.update(zip(self._states, given[count:], strict=True))
            found = scope.outputs(given[:count])
            results = [lift(entry) for entry in (*found, *map(scope.tensor, self._states))]
            program = builder.build(results[0] if len(results) == 1 else tuple(results))
        program.source = self.file
        return program

    def _shape(self, tensor: Tensor) -> Shape:
        try:
            sizes = tensor.sizes or ()
            if any(size < -1 for size in sizes):
                raise ImporterError(f"tensor {tensor.name!r} has negative sizes {list(sizes)}")
            return Shape.array(tensor.row, *sizes)
        except Error as error:
            error.location = Location(self.file)
            raise
