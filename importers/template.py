"""A model whose sizes come with the call: it is imported once per set of sizes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.builder import Builder
from hloforge.dialect.errors import ArgumentError, UnsupportedError
from hloforge.dialect.marks import GRAPH
from hloforge.dialect.program import Parameter, Program
from hloforge.dialect.shapes import Shape
from hloforge.importers.needs import Needs


class Template(ABC):
    """A model, to be imported for the sizes of its inputs.

    Attributes:
        file: what to call it in messages.
        name: of the program.
        needed: the numbers of inputs whose elements turned out to decide sizes.
    """

    def __init__(self, file: str, name: str) -> None:
        self.file = file
        self.name = name
        self.needed: frozenset[int] = frozenset()
        self._parameters: list[Parameter] | None = None

    @abstractmethod
    def declared(self) -> list[Parameter]:
        """The inputs, with -1 for sizes that come with the call."""

    @abstractmethod
    def declared_results(self) -> list[Shape]:
        """The outputs, with -1 for sizes that are not known."""

    def declared_names(self) -> list[str]:
        """The names of ``declared_results``, where the model has some."""
        return []

    @abstractmethod
    def imported(self, shapes: Sequence[Shape], values: Mapping[int, np.ndarray[Any, Any]]) -> Program:
        """The program for static shapes and inputs of known elements. Raises Needs, UnsupportedError, ImporterError."""

    def program(self) -> Program:
        """The program if all sizes are fixed, else one that has this template."""
        shapes = [parameter.shape for parameter in self.parameters()]
        if all(shape.is_static for shape in shapes):
            try:
                return self.imported(shapes, {})
            except Needs as needs:
                self.needed |= needs.inputs
        return self.placeholder()

    def parameters(self) -> list[Parameter]:
        """The inputs that a call gives."""
        if self._parameters is None:
            self._parameters = self.declared()
        return self._parameters

    @property
    def size_parameters(self) -> tuple[int, ...]:
        """The inputs on whose elements a form depends, as far as is known."""
        return tuple(sorted(self.needed))

    def specialize(self, shapes: Sequence[Shape], values: Mapping[int, Any]) -> Program:
        """The program for inputs of these shapes; it computes with the elements of some of them, as if they were fixed.

        Raises:
            ArgumentError: shapes that the model does not take, or elements decide sizes and ``values`` lacks them.
            UnsupportedError: an operator that is not imported.
        """
        for given, parameter in zip(shapes, self.parameters(), strict=True):
            _check(given, parameter)
        while True:
            missing = [self.parameters()[number].name for number in self.needed if number not in values]
            if missing:
                raise ArgumentError(
                    f"the elements of {', '.join(missing)} decide sizes, and are known only at a call",
                    hint="call the program with arrays, or make initializers of them in the model",
                )
            try:
                return self.imported(shapes, {number: np.asarray(values[number]) for number in self.needed})
            except Needs as needs:
                if needs.inputs <= self.needed:
                    raise UnsupportedError("sizes depend on elements that are not computed before the call") from None
                self.needed |= needs.inputs

    def placeholder(self) -> Program:
        """The program as far as it is known without sizes: what it takes, and of what element types it returns."""
        builder: Builder[Program] = Builder(self.name, Program)
        with builder:
            given = [
                builder.parameter(number, parameter.shape, parameter.name)
                for number, parameter in enumerate(self.parameters())
            ]
            results = [ops.custom_call(GRAPH, given, shape) for shape in self.declared_results()]
            program = builder.build(results[0] if len(results) == 1 else tuple(results))
        names = self.declared_names()
        if len(names) == len(results):
            program.describe(result_names=names)
        program.source = self.file
        program.template = self
        return program


def _check(given: Shape, parameter: Parameter) -> None:
    fits = given.rank == parameter.shape.rank and given.element == parameter.shape.element
    sizes = zip(given.dimensions, parameter.shape.dimensions, strict=False)
    if not fits or not all(size == bound or bound < 0 for size, bound in sizes):
        raise ArgumentError(f"argument {parameter.name!r}: expected {parameter.shape}, got {given}")
