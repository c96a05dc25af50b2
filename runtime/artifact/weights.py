"""Files of weights: safetensors and IREE's parameter archives, memory-mapped and shared between sessions.

Sources: https://github.com/huggingface/safetensors (the format), https://iree.dev/guides/parameters (archives).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from safetensors.numpy import save_file

from hloforge.dialect.errors import CompileError, LoadError, OptionError
from hloforge.dialect.program import Parameter, Program
from hloforge.dialect.shapes import Shape
from hloforge.pipelines.named import normalize
from hloforge.pipelines.weights import ELEMENTS, SCOPE, is_storable, take_constants, take_parameters
from hloforge.runtime.artifact.dense_resources import inline_dense_resources
from hloforge.runtime.data.files import replacing
from hloforge.runtime.devices.devices import FAILURES, instance, reason, rt
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.session.arrays import ALIGNMENT

_SAFETENSORS = ".safetensors"
# Files that stay mapped for sessions to come.
_KEPT_OPEN = 16


def place_weights(program: Program, options: CompileOptions) -> tuple[Program, CompileOptions]:
    """Take out of a program what is in a file of weights, or shall be there; the given one is left as it was.

    Args:
        options: ``weights`` is read, ``externalize_weights`` is written.

    Returns:
        the program that looks its weights up, and the options with ``weights`` as the file that it does so in.

    Raises:
        OptionError: the file is none of weights, or nothing of it fits the program.
        CompileError: the file cannot be written.
    """
    if options.weights is not None:
        path = options.weights.absolute()
        return _with_parameters(program, path), replace(options, weights=path)
    if options.externalize_weights is not None:
        path = options.externalize_weights.absolute()
        return _with_constants(program, path), replace(options, weights=path, externalize_weights=None)
    return program, options


def _with_parameters(program: Program, path: Path) -> Program:
    copy = program.clone()
    normalize(copy.module)
    arrays = described(path)
    chosen = [leaf for leaf in copy.signature.parameters if leaf.name in arrays]
    if not chosen:
        raise OptionError(
            f"{path} has no array that is named like a parameter",
            notes=(f"parameters: {_some(leaf.name for leaf in copy.signature.parameters)}", f"arrays: {_some(arrays)}"),
        )
    for leaf in chosen:
        _check(path, leaf, arrays[leaf.name])
    return take_parameters(copy, {leaf.name for leaf in chosen})


def _some(names: Any) -> str:
    """The first few of many names."""
    first, *rest = list(names) or ["none"]
    return ", ".join([first, *rest[:7], *(["…"] if len(rest) > 7 else [])])


def _check(path: Path, leaf: Parameter, found: tuple[str, tuple[int, ...]] | int) -> None:
    """Refuse an array that is not the parameter's."""
    shape = leaf.shape
    if not is_storable(shape):
        raise OptionError(f"parameter {leaf.name!r}, {shape}, cannot be a weight: it is no static array of whole bytes")
    element = shape.element
    assert element is not None  # it is storable
    if isinstance(found, int):
        wanted = Shape.array(element, *shape.dimensions).byte_size
        if found != wanted:
            raise OptionError(f"{path}: {leaf.name!r} has {found} bytes, and {shape} takes {wanted}")
    elif found != (ELEMENTS[element.name], shape.dimensions):
        raise OptionError(f"{path}: {leaf.name!r} is {found[0]}{list(found[1])}, and the program takes {shape}")


def _with_constants(program: Program, path: Path) -> Program:
    if path.suffix not in (_SAFETENSORS, ".irpa"):
        raise OptionError(f"{path}: weights are kept in .safetensors or .irpa files, by the suffix")
    copy = program.clone()
    inline_dense_resources(copy.module)
    copy, arrays = take_constants(copy)
    try:
        with replacing(path.resolve()) as temporary:
            _write(temporary, path.suffix, arrays)
    except (OSError, safetensors.SafetensorError) as error:
        raise CompileError(f"cannot write {path}: {error}") from None
    return copy


def _write(path: Path, suffix: str, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    if suffix == _SAFETENSORS:
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
    if path.suffix != _SAFETENSORS:
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
    except TypeError:
        raise LoadError(f"the name of {path} is no UTF-8 text: IREE does not open it", hint="rename the file") from None
    except (*FAILURES, NotImplementedError) as error:
        raise LoadError(f"{path} is no file of weights: {reason(error)}", hint=".safetensors or .irpa") from None
    return index
