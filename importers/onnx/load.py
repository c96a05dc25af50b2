"""From bytes to a ``ModelProto``, with its external data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hloforge.dialect import protobuf
from hloforge.dialect.errors import ImporterError
from hloforge.importers.guard import guarded

# Fields of ModelProto: ir_version, graph, opset_import. Source: onnx.proto.
_VERSION, _GRAPH, _OPSETS = 1, 7, 8
_INSTALL = "pip install 'hloforge[onnx]', in a clone '.[onnx]'"


def is_onnx(data: bytes) -> bool:
    """Whether the bytes look like a ``ModelProto``: told without the package."""
    try:
        found = {field.number: field for field in protobuf.fields(data)}
    except ValueError:
        return False
    version = found.get(_VERSION)
    return version is not None and isinstance(version.value, int) and _GRAPH in found and bool(found[_GRAPH].payload)


def refers_to_files(data: bytes) -> bool:
    """Whether a model may keep tensors in files beside it."""
    return b"location" in data


def load_model(data: bytes, file: str) -> Any:
    """The model in ``data``, tensors from files beside ``file`` included.

    Raises:
        ImporterError: the package onnx is missing, the bytes are damaged, or a file with tensors cannot be read.
    """
    try:
        import onnx
        from onnx.external_data_helper import load_external_data_for_model, uses_external_data
    except ImportError:
        raise ImporterError(
            "ONNX models are read with the package onnx, which is not installed", hint=_INSTALL
        ) from None
    # Protobuf's parser is native code: it proves itself on these bytes in a process of its own first.
    guarded(_parse, data)
    model = onnx.ModelProto()
    model.ParseFromString(data)
    if any(map(uses_external_data, _tensors(model))):
        folder = Path(file).parent if not file.startswith("<") else Path()
        try:
            load_external_data_for_model(model, str(folder))
        except Exception as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ImporterError(
                f"cannot read the model's external data: {reason}", hint=f"it is sought in {folder}"
            ) from None
    return model


def _tensors(model: Any) -> Any:
    from onnx.external_data_helper import _get_all_tensors

    return _get_all_tensors(model)


def _parse(data: bytes) -> None:
    import onnx
    from google.protobuf.message import DecodeError

    try:
        onnx.ModelProto().ParseFromString(data)
    except DecodeError as error:
        raise ImporterError(f"a damaged or truncated ONNX model: {error}") from None
