"""Refuse what a device has no arithmetic for, before IREE makes wrong code of it or fails without a reason."""

from __future__ import annotations

from typing import Any

from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import location_of, operations
from hloforge.dialect.shapes import Shape
from hloforge.pipelines.framework.manager import op_text
from hloforge.runtime.compile.targets import Target


def check_elements(module: ir.Module, target: Target) -> None:
    """Refuse a lowered module that computes in element types which the target's device lacks.

    Raises:
        UnsupportedError: names the first such operation and the limit of the device.
    """
    lack = target.lacks
    if lack is None:
        return
    for op in operations(module):
        element = next((name for name in _elements(op) if name in lack.elements), None)
        if element is not None:
            raise UnsupportedError(
                f"{op.name} of {element} is not supported: {lack.reason} [target {target}]",
                location=location_of(op),
                op=op_text(op),
                hint="compute in another element type, or compile for another target",
            )


def _elements(op: ir.Operation) -> list[str]:
    """The element types of an operation's operands and results, as XLA calls them."""
    types = [value.type for value in (*op.operands, *op.results)]
    return [_name(type_) for type_ in types if isinstance(type_, ir.RankedTensorType)]


def _name(type_: Any) -> str:
    try:
        return str(Shape.of_type(type_).element)
    except ValueError:
        return str(type_.element_type)
