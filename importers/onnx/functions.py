"""The bodies of operators that are functions: of the model's own, and those that ONNX's schemas give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value
from hloforge.importers.onnx.registry import canonical
from hloforge.importers.tensors import dims_of

MICROSOFT = "com.microsoft"
# Operators of ONNX Runtime that ONNX has as well, with the version from which it does.
TAKEN_OVER = {
    "CausalConvWithState": 27,
    "GridSample": 16,
    "LinearAttention": 27,
    "Pad": 11,
    "Range": 11,
    "Trilu": 14,
}


@dataclass(frozen=True)
class Body:
    """A function to put in the place of a node.

    Attributes:
        proto: the ``FunctionProto``.
        versions: of the domains that its nodes are of.
        defaults: the attributes that the node leaves out.
    """

    proto: Any
    versions: Mapping[str, int]
    defaults: Mapping[str, Any]


def body_of(
    proto: Any, versions: Mapping[str, int], inputs: Sequence[Any], own: Mapping[tuple[str, str], Any]
) -> Body | None:
    """The function for a node; None if its operator has none.

    Args:
        versions: of the domains that the model imports.
        inputs: the node's, of whose types some bodies depend.
        own: the model's functions by domain and name.
    """
    import onnx

    found = own.get((canonical(proto.domain), proto.op_type))
    if found is None:
        found = _of_schema(proto, versions, inputs)
    if found is None:
        return None
    imported = {canonical(entry.domain): entry.version for entry in found.opset_import}
    defaults = {attribute.name: attribute for attribute in found.attribute_proto}
    if not own.get((canonical(proto.domain), proto.op_type)):
        schema = onnx.defs.get_schema(proto.op_type, versions[canonical(proto.domain)], proto.domain)
        defaults |= {
            name: attribute.default_value
            for name, attribute in schema.attributes.items()
            if attribute.default_value.type != onnx.AttributeProto.UNDEFINED
        }
    return Body(found, {**versions, **imported}, defaults)


def _of_schema(proto: Any, versions: Mapping[str, int], inputs: Sequence[Any]) -> Any:
    import onnx

    version = versions.get(canonical(proto.domain), 1)
    try:
        schema: Any = onnx.defs.get_schema(proto.op_type, version, proto.domain)
    except onnx.defs.SchemaError:
        return None
    body = None
    if schema.has_function:
        known = [number for number in schema.function_opset_versions if number <= version]
        body = schema.get_function_with_opset_version(max(known)) if known else None
    elif schema.has_context_dependent_function:
        known = [number for number in schema.context_dependent_function_opset_versions if number <= version]
        if known:
            types = [_type_of(tensor).SerializeToString() for tensor in inputs]
            body = schema.get_context_dependent_function_with_opset_version(
                max(known), proto.SerializeToString(), types
            )
    if not body:
        return None
    function = onnx.FunctionProto()
    function.ParseFromString(body)
    return function


def _type_of(tensor: Any) -> Any:
    import onnx

    if tensor is None:
        return onnx.TypeProto()
    if not isinstance(tensor, Value | np.ndarray):
        element = _type_of(tensor[0]) if len(tensor) else onnx.TypeProto()
        return onnx.helper.make_sequence_type_proto(element)
    dtype = tensor.element_type.dtype if isinstance(tensor, Value) else tensor.dtype
    number = onnx.helper.np_dtype_to_tensor_dtype(dtype)
    return onnx.helper.make_tensor_type_proto(number, dims_of(tensor))


def as_onnx(proto: Any, version: int) -> Any:
    """A node of ONNX Runtime as ONNX's node of the same name.

    Raises:
        UnsupportedError: it has an attribute that ONNX's operator lacks, and that is not 0, 1 or "none".
    """
    import onnx

    copy = onnx.NodeProto()
    copy.CopyFrom(proto)
    copy.domain = ""
    del copy.attribute[:]
    known = onnx.defs.get_schema(proto.op_type, version, "").attributes
    for entry in proto.attribute:
        if entry.name in known:
            copy.attribute.add().CopyFrom(entry)
        elif (value := onnx.helper.get_attribute_value(entry)) not in (0, 1, b"none"):
            raise UnsupportedError(f"{proto.op_type} with {entry.name}={value!r} is not imported")
    return copy
