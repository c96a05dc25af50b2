"""Programs and arguments of rows."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from hloforge import Builder, Computation
from hloforge.dialect.element_types import TABLE, ElementType, element_type
from hloforge.dialect.op import registry
from hloforge.dialect.shapes import Shape
from hloforge.runtime.data.random_inputs import random_array
from tests.operations.row import Row, Varying

# XLA's CPU client computes with no float of 6 bits; tests/pipelines/legalize/test_narrow_floats.py judges those.
_ORDER = [row.name for row in TABLE if row.bits != 6]


def elements_of(row: Row) -> list[str]:
    """The element types that a row runs on, in the table's order; one nominal type for an operation without any."""
    chosen = row.on if row.on is not None else registry()[row.heading].on
    arrays = [name for name in _ORDER if name in chosen]
    return arrays or ["f32"]


def program_of(row: Row, elements: Sequence[str]) -> tuple[Computation, list[np.ndarray[Any, Any]]]:
    """One program that applies the row's operation for each of the element types, and its arguments."""
    builder = Builder(row.id)
    arguments: list[np.ndarray[Any, Any]] = []
    results = []
    with builder:
        for element in map(element_type, elements):
            values = []
            for number, given in enumerate(row.inputs):
                array = _array(given, element, f"{element}.{number}")
                shape = Shape.array(array.dtype, *array.shape)
                values.append(builder.parameter(len(arguments), shape, f"{element}.{number}"))
                arguments.append(array)
            named = {"element": element} if "element" in inspect.signature(row.build).parameters else {}
            results.append(row.build(*values, **named))
        return builder.build(results), arguments


def _array(given: Any, element: ElementType, name: str) -> np.ndarray[Any, Any]:
    if not isinstance(given, Varying):
        return np.asarray(given)
    return random_array(Shape.array(element, *given.dims), name, special=given.special)
