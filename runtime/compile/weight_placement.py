"""Parameters and constants that are taken out of a program before it is compiled: a file of weights has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors

from hloforge.dialect.errors import CompileError, OptionError
from hloforge.dialect.program import Parameter, Program
from hloforge.dialect.shapes import Shape
from hloforge.pipelines.normalize.normalization import normalize
from hloforge.pipelines.weights import ELEMENTS, is_storable, take_constants, take_parameters, weights_of
from hloforge.runtime.artifact.dense_resources import inline_dense_resources
from hloforge.runtime.artifact.weights import SAFETENSORS, described, write
from hloforge.runtime.data.files import replacing
from hloforge.runtime.options import CompileOptions


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
    if weights_of(program.module):
        return program, options
    if options.weights is not None:
        path = options.weights.absolute()
        return _with_parameters(program, path), replace(options, weights=path)
    if options.externalize_weights is not None:
        path = options.externalize_weights.absolute()
        return _with_constants(program, path), replace(options, weights=path, externalize_weights=None)
    return program, options


def share_constants(programs: Mapping[str, Program], path: Path) -> dict[str, Program]:
    """The programs with their large constants in one file, equal ones once.

    Raises:
        OptionError: the suffix names no form of such files.
        CompileError: the file cannot be written.
    """
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    taken = {}
    for name, program in programs.items():
        copy = program.clone()
        inline_dense_resources(copy.module)
        taken[name] = take_constants(copy, arrays)
    _write(path.absolute(), arrays)
    return taken


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
    return share_constants({"": program}, path)[""]


def _write(path: Path, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    if path.suffix not in (SAFETENSORS, ".irpa"):
        raise OptionError(f"{path}: weights are kept in .safetensors or .irpa files, by the suffix")
    try:
        with replacing(path.resolve()) as temporary:
            write(temporary, path.suffix, arrays)
    except (OSError, safetensors.SafetensorError) as error:
        raise CompileError(f"cannot write {path}: {error}") from None
