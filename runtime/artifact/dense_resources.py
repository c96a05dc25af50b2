"""``dense_resource`` constants as plain dense ones: XLA's client refuses what torch-mlir and others emit."""

from __future__ import annotations

import re
from math import prod
from typing import Any

import numpy as np

from hloforge.dialect.constants import dense
from hloforge.dialect.element_types import element_type
from hloforge.dialect.errors import ReferenceEngineError
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import operations

_BLOB = re.compile(r'(?:"((?:[^"\\]|\\.)*)"|([\w$.-]+)): "0x([0-9A-Fa-f]*)"')
_NAME = re.compile(r'dense_resource<(?:"((?:[^"\\]|\\.)*)"|([^>]*))>')
# A blob opens with its alignment in four bytes.
_ALIGNMENT_BYTES = 4


def inline_dense_resources(module: ir.Module) -> None:
    """Replace every ``dense_resource`` of a constant by a dense attribute, in place.

    Raises:
        ReferenceEngineError: a resource has no data, as in a module that was printed with elided resources.
    """
    constants = [op for op in operations(module, ["stablehlo.constant"]) if _is_resource(op)]
    if not constants:
        return
    blobs = _blobs(module)
    with in_context(module):
        for op in constants:
            op.attributes["value"] = _dense(op.attributes["value"], blobs)


def _is_resource(op: ir.Operation) -> bool:
    try:
        ir.DenseResourceElementsAttr(op.attributes["value"])
    except (TypeError, ValueError):  # TypeError: the bindings know no class for dense complex attributes
        return False
    return True


def _blobs(module: Any) -> dict[str, bytes]:
    _, _, section = module.operation.get_asm().rpartition("{-#")
    found = (match.groups() for match in _BLOB.finditer(section))
    return {quoted or plain: bytes.fromhex(data)[_ALIGNMENT_BYTES:] for quoted, plain, data in found}


def _dense(attribute: Any, blobs: dict[str, bytes]) -> Any:
    match = _NAME.match(str(attribute))
    name = (match[1] or match[2]) if match else ""
    type_ = ir.RankedTensorType(attribute.type)
    row = element_type(type_.element_type)
    data = blobs.get(name, b"")
    if len(data) != prod(type_.shape) * row.dtype.itemsize:
        raise ReferenceEngineError(f"the constant resource {name!r} has no data for {type_}")
    return dense(np.frombuffer(data, row.dtype).reshape(type_.shape), row)
