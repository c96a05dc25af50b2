"""Files of weights: safetensors and IREE's parameter archives, memory-mapped and shared between sessions.

Sources: https://github.com/huggingface/safetensors (the format), https://iree.dev/guides/parameters (archives).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from safetensors.numpy import save_file

from hloforge.dialect.errors import LoadError, OptionError
from hloforge.dialect.shapes import Shape
from hloforge.pipelines.weight_names import SCOPE
from hloforge.runtime.devices.devices import FAILURES, instance, reason, rt
from hloforge.runtime.session.arrays import ALIGNMENT

SAFETENSORS = ".safetensors"
# Files that stay mapped for sessions to come.
_KEPT_OPEN = 16


def write(path: Path, suffix: str, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write arrays to a file of the form that the suffix names. Raises OptionError for names that it cannot hold."""
    if suffix == SAFETENSORS:
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path)
        return
    index = rt.ParameterIndex()
    for name, array in arrays.items():
        index.add_buffer(name, np.ascontiguousarray(array).view(np.uint8))
    try:
        index.create_archive_file(str(path))
    except TypeError:
        raise OptionError(f"the name of {path} is no UTF-8 text: IREE does not write it", hint="rename it") from None


def described(path: Path) -> dict[str, tuple[str, tuple[int, ...]] | int]:
    """The arrays of a file by name: element type and sizes of safetensors, bytes of an archive, which knows no more.

    Raises:
        OptionError: there is no such file, or it is none of weights.
    """
    if path.suffix != SAFETENSORS:
        try:
            return {name: entry.length for name, entry in _index(path).items()}
        except LoadError as error:
            raise OptionError(error.message, hint=error.hint) from None
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
            return {name: (part.get_dtype(), tuple(part.get_shape())) for name, part in slices.items()}
    except (OSError, safetensors.SafetensorError) as error:
        raise OptionError(f"{path} is no file of weights: {error}") from None


def provider_of(arrays: Mapping[str, np.ndarray[Any, Any]], weights: Mapping[str, Shape]) -> Any:
    """IREE's module that gives a program its weights from arrays, whose memory it uses while it lives.

    Raises:
        LoadError: an array is missing, of another size, or not C-contiguous.
    """
    index = rt.ParameterIndex()
    for name, shape in weights.items():
        array = arrays.get(name)
        if array is None or array.nbytes != shape.byte_size:
            got = f"{array.nbytes} bytes" if array is not None else "nothing of that name"
            raise LoadError(f"the program takes its weight {name!r}, {shape}, from arrays that hold {got}")
        if not array.flags.c_contiguous:
            raise LoadError(f"the weight {name!r} is not C-contiguous", hint="give np.ascontiguousarray(…) of it")
        index.add_buffer(name, array.reshape(-1).view(np.uint8))
    return rt.create_io_parameters_module(instance(), index.create_provider(scope=SCOPE))


def provider(path: Path, weights: Mapping[str, Shape]) -> Any:
    """IREE's module that gives a program its weights; sessions of one file share its pages.

    Raises:
        LoadError: the file is missing or damaged, or is not the one that the program was compiled for.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise LoadError(
            f"the weights {path} cannot be read: {error.strerror}",
            hint="put the file beside the vmfb, or name it: load(…, weights=path), --weights",
        ) from None
    sizes = {name: entry.length for name, entry in _mapped(path.resolve(), status.st_mtime_ns, status.st_size)[0]}
    for name, shape in weights.items():
        if sizes.get(name) != shape.byte_size:
            got = f"{sizes[name]} bytes" if name in sizes else "nothing of that name"
            raise LoadError(f"the program takes its weight {name!r}, {shape}, from {path}, which holds {got}")
    return _mapped(path.resolve(), status.st_mtime_ns, status.st_size)[1]


@lru_cache(maxsize=_KEPT_OPEN)
def _mapped(path: Path, changed: int, size: int) -> tuple[Sequence[tuple[str, Any]], Any]:
    """The entries of a file as it was at a time, and the module that offers them."""
    index = _index(path)
    return index.items(), rt.create_io_parameters_module(instance(), index.create_provider(scope=SCOPE))


def _index(path: Path) -> Any:
    """The arrays of a file, in its own pages if all of them can be used there."""
    index = _opened(path)
    starts = (np.frombuffer(entry.file_view, np.uint8).ctypes.data for _, entry in index.items() if entry.length)
    # What is mapped and copied would take its memory twice.
    return index if not any(start % ALIGNMENT for start in starts) else _opened(path, mode="file_async")


def _opened(path: Path, **how: str) -> Any:
    index = rt.ParameterIndex()
    try:
        index.load(str(path), **how)
        index.items()  # fails where a name is no text
    except TypeError:
        raise LoadError(f"the name of {path} is no UTF-8 text: IREE does not open it", hint="rename the file") from None
    except (*FAILURES, NotImplementedError) as error:
        raise LoadError(f"{path} is no file of weights: {reason(error)}", hint=".safetensors or .irpa") from None
    return index
