"""Messages between processes: a JSON header and arrays as raw bytes, without pickle and for every element type."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from hloforge.dialect.element_types import element_type

_LENGTH = struct.Struct("<Q")


def write_frame(
    stream: BinaryIO, header: dict[str, Any], arrays: Sequence[np.ndarray[Any, Any]] = (), blob: bytes = b""
) -> None:
    """Write one message and flush. ``header`` must be JSON; every array has one of XLA's element types."""
    described = [{"type": element_type(array.dtype).name, "shape": list(array.shape)} for array in arrays]
    text = json.dumps({"header": header, "arrays": described, "blob": len(blob)}).encode()
    stream.write(_LENGTH.pack(len(text)))
    stream.write(text)
    stream.write(blob)
    for array in arrays:
        stream.write(array.tobytes())
    stream.flush()


def read_frame(stream: BinaryIO) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]], bytes]:
    """Read one message: header, arrays (writable, owned), blob. Raises EOFError when the other side is gone."""
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    message = json.loads(_exactly(stream, length))
    blob = _exactly(stream, message["blob"])
    return message["header"], [_array(stream, described) for described in message["arrays"]], blob


def _array(stream: BinaryIO, described: dict[str, Any]) -> np.ndarray[Any, Any]:
    array = np.empty(described["shape"], element_type(described["type"]).dtype)
    data = _exactly(stream, array.nbytes)
    return np.frombuffer(bytearray(data), array.dtype).reshape(array.shape)


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) != count:
        raise EOFError
    return data
