"""The signature of a vmfb that hloforge did not make, from IREE's own declaration of its function."""

from __future__ import annotations

import re

from hloforge.dialect.abi import physical_shape
from hloforge.dialect.errors import LoadError
from hloforge.dialect.program import Parameter, Signature
from hloforge.dialect.shapes import Shape

_DECLARATION = re.compile(r"func @\w+\((?P<inputs>.*)\) -> \((?P<outputs>.*)\)$")
_SIGNED = re.compile(r"^si(?=\d)")
_BODY = r"tensor<(?P<{}>(?:[^<>]|<[^>]*>)*)>"
# IREE's own types have no sign; what the source said is in the encoding.
_TENSOR = re.compile(
    rf"%(?P<name>\w+): {_BODY.format('plain')}(?: {{iree\.abi\.encoding = {_BODY.format('source')}}})?"
)


def signature_of_declaration(declaration: str) -> Signature:
    """Read ``sync func @main(%input0: tensor<4xf32>) -> (%output0: tensor<4xf32>)``.

    Raises:
        LoadError: the declaration is missing or speaks of something else than tensors.
    """
    match = _declared(declaration)
    parameters = tuple(Parameter(name, shape) for name, shape in _tensors(match["inputs"]))
    results = tuple(shape for _, shape in _tensors(match["outputs"]))
    return Signature(parameters, results[0] if len(results) == 1 else Shape.tuple_of(*results))


def declared_tensors(declaration: str) -> tuple[list[str], list[str]]:
    """What ``main`` takes and returns in IREE's own types: ``4x?xf32`` of ``tensor<4x?xf32>``. Errors as above."""
    match = _declared(declaration)
    taken, returned = ([one["plain"] for one in _TENSOR.finditer(match[part])] for part in ("inputs", "outputs"))
    return taken, returned


def _declared(declaration: str) -> re.Match[str]:
    match = _DECLARATION.search(declaration)
    if match is None:
        raise LoadError("the vmfb does not describe its function main", hint="compile it with hloforge")
    return match


def _tensors(text: str) -> list[tuple[str, Shape]]:
    if text.count("%") != len(_TENSOR.findall(text)):
        raise LoadError(f"main takes or returns something else than tensors: {text}", hint="compile it with hloforge")
    return [(match["name"], _shape(match["source"] or match["plain"])) for match in _TENSOR.finditer(text)]


def _shape(body: str) -> Shape:
    """``2x?xf32`` or ``complex<f32>`` as a shape."""
    dimensions = re.match(r"(?:(?:\d+|\?)x)*", body)
    sizes = dimensions[0] if dimensions else ""
    element = _SIGNED.sub("i", body[len(sizes) :])
    try:
        shape = Shape.array(element, *(-1 if size == "?" else int(size) for size in sizes.split("x")[:-1]))
    except ValueError:
        shape = None
    if shape is None or physical_shape(shape).element != shape.element:
        raise LoadError(f"main takes or returns tensor<{body}>", hint="compile it with hloforge")
    return shape
