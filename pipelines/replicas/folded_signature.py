"""The signature of a program whose one call serves all devices."""

from __future__ import annotations

from hloforge.dialect.program import Parameter, Signature
from hloforge.dialect.shapes import Shape


def folded_signature(signature: Signature, devices: int) -> Signature:
    """A signature with a leading dimension of the devices in every array; layouts and donation end."""
    parameters = tuple(Parameter(entry.name, _stacked(entry.shape, devices)) for entry in signature.parameters)
    return Signature(parameters, _stacked(signature.result, devices), ())


def _stacked(shape: Shape, devices: int) -> Shape:
    if shape.elements is not None:
        return Shape.tuple_of(*(_stacked(element, devices) for element in shape.elements))
    return shape if shape.is_token else Shape(shape.element, (devices, *shape.dimensions))
