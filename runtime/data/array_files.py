"""Reading and writing ``.npy`` and ``.npz`` files, also of the element types that numpy does not know."""

from __future__ import annotations

import io
import math
import warnings
import zipfile
from collections.abc import Mapping
from os import PathLike
from tokenize import TokenError
from typing import IO, Any

import numpy as np

from hloforge.dialect.bounded_reading import read_path
from hloforge.dialect.element_types import is_of_numpy
from hloforge.runtime.data.files import write_atomically
from hloforge.runtime.data.integrity import DAMAGE, free_memory

Array = np.ndarray[Any, Any]

_NPY = b"\x93NUMPY"
_ZIP = b"PK"
# numpy saves f8e5m2 under a name that it cannot read back; as a void of one byte it can.
_UNREADABLE, _READABLE = b"'<f1'", b"'|V1'"
_HEADER_BYTES, _LONGEST_HEADER = 256, 1 << 16


# What numpy raises for damaged headers as well.
_BROKEN = (*DAMAGE, SyntaxError, TypeError, MemoryError, TokenError)


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
            entry = self._zip.getinfo(f"{name}.npy")
            with self._zip.open(entry) as stream:
                _check_size(stream, entry.file_size)
            data = self._zip.read(entry)
        except FormatError:
            raise
        except _BROKEN as error:
            raise FormatError(f"it is damaged ({error})".splitlines()[0]) from None
        return _array(data)


def load_arrays(path: str | PathLike[str]) -> Array | Archive:
    """A file's array, or the arrays of an archive; bf16, f8 and narrow integers come as raw voids of their width.

    Raises:
        FormatError: see there.
        OSError: the file cannot be read.
    """
    data = read_path(path)
    if not data.startswith(_ZIP):
        return _array(data)
    return Archive(data)


def _check_size(stream: IO[bytes], size: int) -> None:
    """Refuse an entry of an archive before it is unpacked: compressed zeros become a thousand times as many.

    Raises:
        FormatError: its array does not have the bytes that the archive says, or they do not fit into memory.
    """
    head = stream.read(_HEADER_BYTES)
    if not head.startswith(_NPY):
        raise FormatError("it does not begin like one")
    start = io.BytesIO(head.replace(_UNREADABLE, _READABLE, 1) + stream.read(_LONGEST_HEADER))
    version = np.lib.format.read_magic(start)
    # Version 3 differs from 2 in the encoding of names alone.
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of files that Python 2 wrote
        sizes, _, dtype = read(start)
    wanted = start.tell() + math.prod(sizes) * dtype.itemsize
    if wanted != size and not dtype.hasobject:
        raise FormatError(f"it is damaged (an array of {wanted} bytes in an entry of {size})")
    free = free_memory()
    if free is not None and size > free:
        raise FormatError(f"an array of {size / 1e9:.1f} GB, and {free / 1e9:.1f} GB of memory are left")


def _array(data: bytes) -> Array:
    if not data:
        raise FormatError("it is empty")
    if not data.startswith(_NPY):
        raise FormatError("it does not begin like one")
    head = data[:_HEADER_BYTES].replace(_UNREADABLE, _READABLE, 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of files that Python 2 wrote
            array: Array = np.load(io.BytesIO(head + data[_HEADER_BYTES:]), allow_pickle=False)
    except _BROKEN as error:
        if "allow_pickle" in str(error):
            raise FormatError("it holds Python objects") from None
        raise FormatError("it is damaged") from None
    return array


def save_array(path: str | PathLike[str], array: Any) -> None:
    """Write a ``.npy`` file, whole or not at all. Raises CompileError if it cannot be written."""
    buffer = io.BytesIO()
    _write(buffer, array)
    write_atomically(path, buffer.getvalue())


def save_archive(path: str | PathLike[str], arrays: Mapping[str, Any]) -> None:
    """Write a ``.npz`` file, whole or not at all. Raises CompileError if it cannot be written."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                _write(stream, array)
    write_atomically(path, buffer.getvalue())


def _write(stream: IO[bytes], array: Any) -> None:
    array = np.asarray(array)
    if not is_of_numpy(array.dtype):
        array = np.ascontiguousarray(array).view(f"V{array.dtype.itemsize}").reshape(array.shape)
    np.save(stream, array, allow_pickle=False)
