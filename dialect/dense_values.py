"""Reading the values of constants, element types that jaxlib's bindings cannot read included."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from hloforge.dialect.element_types import ElementType, element_type

_HEX = re.compile(r'^dense<"0x([0-9A-Fa-f]*)">')
_NUMBER = re.compile(r"true|false|0x[0-9A-Fa-f]+|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def array_of(attribute: Any) -> np.ndarray[Any, Any]:
    """The elements of a dense constant as an array of the element type's numpy dtype, in MLIR's memory if it can be."""
    row = element_type(attribute.type.element_type)
    if row.bits > 8 and not row.is_complex and row.name != "bf16":
        return np.asarray(attribute).reshape(attribute.type.shape).astype(row.dtype, copy=False)
    return _array_of_text(str(attribute), attribute.type)


def constant_of(op: Any) -> np.ndarray[Any, Any]:
    """The elements of a ``stablehlo.constant``; complex ones too, whose attribute the bindings cannot hand out."""
    type_ = op.results[0].type
    if not element_type(type_.element_type).is_complex:
        return array_of(op.attributes["value"])
    text = op.get_asm(print_generic_op_form=True)
    return _array_of_text(text[text.index("dense<") : text.index("}>")], type_)


def _array_of_text(text: str, type_: Any) -> np.ndarray[Any, Any]:
    """The elements of ``dense<…> : type`` as MLIR prints them."""
    row, shape = element_type(type_.element_type), list(type_.shape)
    match = _HEX.match(text)
    if match:
        elements = np.frombuffer(bytes.fromhex(match[1]), np.uint8).view(row.dtype)
    else:
        part = element_type({"c64": "f32", "c128": "f64"}.get(row.name, row))
        tokens = _NUMBER.findall(text[: text.rindex(" : ")])
        elements = np.array([_scalar(token, part) for token in tokens], part.dtype).view(row.dtype)
    return np.broadcast_to(elements[0], shape) if elements.size == 1 else elements.reshape(shape)


def _scalar(token: str, row: ElementType) -> Any:
    """One element from its MLIR spelling; floats without a decimal spelling are written as the code of their bits."""
    if row.name == "pred":
        return np.bool_(token == "true")
    if token.startswith("0x"):
        return np.array(int(token, 16), f"u{max(row.bits // 8, 1)}").view(row.dtype)[()]
    return np.array(int(token) if row.is_integer else float(token)).astype(row.dtype)[()]
