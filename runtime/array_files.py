"""Reading ``.npy`` and ``.npz`` files and writing ``.npy``, also of the element types that numpy does not know."""

from __future__ import annotations

import io
import zipfile
from os import PathLike
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from hloforge.runtime.files import write_atomically
from hloforge.runtime.integrity import DAMAGE

Array = np.ndarray[Any, Any]

_NPY = b"\x93NUMPY"
_ZIP = b"PK"
# numpy saves f8e5m2 under a name that it cannot read back; as a void of one byte it can.
_UNREADABLE, _READABLE = b"'<f1'", b"'|V1'"
_HEADER_BYTES = 256


class FormatError(ValueError):
    """The file is no array file, damaged, or holds Python objects."""


class Archive:
    """The arrays of a ``.npz`` file by name."""

    def __init__(self, data: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except DAMAGE:
            raise FormatError("it is damaged") from None
        self.names = [name.removesuffix(".npy") for name in self._zip.namelist()]

    def __getitem__(self, name: str) -> Array:
        try:
            data = self._zip.read(f"{name}.npy")
        except DAMAGE as error:
            raise FormatError(f"it is damaged ({error})") from None
        return _array(data)


def load_arrays(path: str | PathLike[str]) -> Array | Archive:
    """A file's array, or the arrays of an archive; bf16, f8 and narrow integers come as raw voids of their width.

    Raises:
        FormatError: see there.
        OSError: the file cannot be read.
    """
    data = Path(path).read_bytes()
    if not data.startswith(_ZIP):
        return _array(data)
    return Archive(data)


def _array(data: bytes) -> Array:
    if not data:
        raise FormatError("it is empty")
    if not data.startswith(_NPY):
        raise FormatError("it does not begin like one")
    head = data[:_HEADER_BYTES].replace(_UNREADABLE, _READABLE, 1)
    try:
        array: Array = np.load(io.BytesIO(head + data[_HEADER_BYTES:]), allow_pickle=False)
    except (*DAMAGE, SyntaxError, TypeError, OverflowError, MemoryError, TokenError) as error:
        if "allow_pickle" in str(error):
            raise FormatError("it holds Python objects") from None
        raise FormatError("it is damaged") from None
    return array


def save_array(path: str | PathLike[str], array: Any) -> None:
    """Write a ``.npy`` file, whole or not at all. Raises CompileError if it cannot be written."""
    array = np.asarray(array)
    if array.dtype.isbuiltin != 1:
        array = np.ascontiguousarray(array).view(f"V{array.dtype.itemsize}").reshape(array.shape)
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    write_atomically(path, buffer.getvalue())
