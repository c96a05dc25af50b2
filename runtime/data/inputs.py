"""Arguments from specifications on a command line, and results to files: the grammar of ``iree-run-module``, widened.

::

    2x3xf32=1 2 3 4 5 6      values (spaces, commas and brackets separate); one value fills the whole array
    f32[2,3]=@x.npy          a file; XLA's type text serves as well as IREE's
    @x.npy  @x.npz:name      a .npz holds several arrays: by default the one named like the parameter; fewer archives
                             than parameters serve all of them (``named_inputs``), and one takes all results
    random  random:7         seeded; zeros; iota (0, 1, 2 … in row-major order)

The type may be left out: the program's parameter says it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hloforge.dialect.element_types import ElementType, element_type, is_of_numpy
from hloforge.dialect.errors import ArgumentError
from hloforge.dialect.program import Parameter
from hloforge.dialect.shapes import Shape
from hloforge.runtime.data.array_files import Archive, FormatError, load_arrays, save_archive, save_array
from hloforge.runtime.data.literals import format_array, type_text
from hloforge.runtime.data.numbers import parse_values
from hloforge.runtime.data.random_inputs import random_array, random_inputs

__all__ = ["named_inputs", "parse_expected", "parse_input", "random_inputs", "write_archive", "write_output"]

Array = np.ndarray[Any, Any]

_GRAMMAR = "an argument is 2x3xf32=1 2 3 4 5 6, f32[2,3]=@x.npy, @x.npy, @x.npz:name, random, random:7, zeros or iota"
_GENERATED = re.compile(r"(random|zeros|iota)(?::(\d+))?")
_ARCHIVE_MEMBER = re.compile(r"(.+\.npz):([^:]+)")
_IREE_TYPE = re.compile(r"((?:\d+x)*)([a-z]\w*(?:<\w+>)?)")


def parse_input(spec: str, parameter: Parameter, noun: str = "argument") -> Array:
    """The array that a specification means for a parameter.

    Args:
        parameter: a leaf of the signature; where its shape is dynamic, the specification's type gives the sizes.
        noun: what to call it in messages.

    Returns:
        an array of the parameter's element type, in logical order.

    Raises:
        ArgumentError: the text is malformed, a file cannot be read, or type or sizes do not fit the parameter.
    """
    return _Spec(spec.strip(), parameter, noun).array()


def parse_expected(spec: str, index: int, shape: Shape) -> Array:
    """The array that result number ``index`` of ``shape`` should be; grammar and errors as of ``parse_input``."""
    return _Spec(spec.strip(), Parameter(f"result {index}", shape), noun="expected").array()


def is_archive(spec: str) -> bool:
    """Whether a specification is a whole ``.npz`` file."""
    spec = spec.strip()
    return spec.startswith("@") and spec.endswith(".npz")


def named_inputs(specs: Sequence[str], parameters: Sequence[Parameter]) -> list[Array]:
    """The arrays of ``.npz`` files for the parameters of their names; of several files the last that has one counts.

    Args:
        specs: for which ``is_archive`` holds.
        parameters: leaves of the signature.

    Raises:
        ArgumentError: as of ``parse_input``; no file has an array of a parameter's name.
    """
    found: dict[str, tuple[str, Archive]] = {}
    for spec in map(str.strip, specs):
        archive = _Spec(spec, parameters[0], "argument").loaded(spec[1:])
        if isinstance(archive, Archive):
            found |= dict.fromkeys(archive.names, (spec, archive))
    arrays = []
    for parameter in parameters:
        if parameter.name not in found:
            raise ArgumentError(
                f"argument {parameter.name!r} ({parameter.shape}): {', '.join(specs)}: no array of this name",
                hint=f"they hold {', '.join(found) or 'nothing'}",
            )
        spec, archive = found[parameter.name]
        arrays.append(_Spec(spec, parameter, "argument").taken(archive, parameter.name))
    return arrays


class _Spec:
    """One specification on its way to an array; keeps what error messages name."""

    def __init__(self, text: str, parameter: Parameter, noun: str) -> None:
        if not parameter.shape.is_array:
            raise ArgumentError(f"{noun} {parameter.name!r}: {parameter.shape} is not an array")
        self.text = text
        self.parameter = parameter
        self.noun = noun

    def error(self, problem: str, hint: str = "") -> ArgumentError:
        declared = f"{self.noun} {self.parameter.name!r} ({self.parameter.shape})"
        return ArgumentError(f"{declared}: {self.text!r}: {problem}", hint=hint)

    def array(self) -> Array:
        type_part, equals, value = self.text.partition("=")
        if not equals or self.text.startswith("@"):
            return self.value(self.text, self.parameter.shape)
        shape = self.declared(type_part.strip())
        return self.value(value.strip(), shape)

    def declared(self, text: str) -> Shape:
        """The specification's own type, which must fit the parameter's."""
        shape = self.parse_type(text)
        mine = self.parameter.shape
        if shape.element != mine.element or not _fits(shape, mine):
            raise self.error(f"the type {text} does not fit", hint=f"the program takes {mine}")
        return shape

    def parse_type(self, text: str) -> Shape:
        match = _IREE_TYPE.fullmatch(text)
        try:
            if match is None:
                return Shape.parse(text).without_layout()
            sizes = [int(size) for size in match[1].split("x") if size]
            return Shape.array(_element(match[2]), *sizes)
        except ValueError as error:
            raise self.error(str(error), hint=_GRAMMAR) from None

    def value(self, text: str, shape: Shape) -> Array:
        if text.startswith("@"):
            return self.fitted(self.file(text[1:]), shape)
        if not shape.is_static:
            raise self.error("sizes are needed", hint=f"give them in the type, as in 2x3x{shape.element}=…")
        generated = _GENERATED.fullmatch(text)
        if generated is not None:
            return self.generated(generated[1], generated[2], shape)
        return self.values(text, shape)

    def generated(self, kind: str, seed: str | None, shape: Shape) -> Array:
        row = _row(shape)
        if kind == "random":
            return random_array(shape, self.parameter.name, int(seed or 0))
        if seed is not None:
            raise self.error(f"{kind} takes no number", hint=_GRAMMAR)
        if kind == "zeros":
            return np.zeros(shape.dimensions, row.dtype)
        with np.errstate(all="ignore"):
            return np.arange(shape.element_count).astype(row.dtype).reshape(shape.dimensions)

    def values(self, text: str, shape: Shape) -> Array:
        row = _row(shape)
        try:
            numbers = parse_values(text, row)
        except ValueError as error:
            raise self.error(str(error), hint=_GRAMMAR) from None
        if numbers.size == 1:
            return np.full(shape.dimensions, numbers[0], row.dtype)
        if numbers.size != shape.element_count:
            raise self.error(f"{numbers.size} values for {shape.element_count} elements")
        return numbers.reshape(shape.dimensions)

    def file(self, path: str) -> Array:
        member = _ARCHIVE_MEMBER.fullmatch(path)
        path, name = (member[1], member[2]) if member else (path, None)
        loaded = self.loaded(path)
        return loaded if isinstance(loaded, np.ndarray) else self.member(loaded, path, name)

    def loaded(self, path: str) -> Array | Archive:
        try:
            return load_arrays(path)
        except OSError as error:
            hint = getattr(error, "hint", "")
            raise self.error(f"cannot read {path}: {error.strerror or error}", hint=hint) from None
        except FormatError as error:
            raise self.error(f"{path} is no .npy or .npz file of arrays: {error}") from None

    def taken(self, archive: Archive, name: str) -> Array:
        """The array of an archive that holds it, in the parameter's type."""
        try:
            return self.fitted(archive[name], self.parameter.shape)
        except FormatError as error:
            raise self.error(f"{name!r} cannot be read: {error}") from None

    def member(self, archive: Archive, path: str, name: str | None) -> Array:
        names = archive.names
        if name is None:
            name = self.parameter.name if self.parameter.name in names or len(names) != 1 else names[0]
        if name not in names:
            hint = f"it holds {', '.join(names) or 'nothing'}: name one as in @{path}:{names[0] if names else 'x'}"
            raise self.error(f"{path} has no array {name!r}", hint=hint)
        try:
            return archive[name]
        except FormatError as error:
            raise self.error(f"{path} is no .npy or .npz file of arrays: {error}") from None

    def fitted(self, array: Array, shape: Shape) -> Array:
        """A file's array in the declared type; of bf16, f8 and narrow integers a .npy file keeps only the width."""
        row = _row(shape)
        unnamed = array.dtype.kind == "V" and array.dtype.names is None
        if unnamed and not is_of_numpy(row.dtype) and array.dtype.itemsize == row.dtype.itemsize:
            array = array.view(row.dtype)
        if array.dtype.newbyteorder("=") == row.dtype:
            array = array.astype(row.dtype, copy=False)
        if array.dtype != row.dtype:
            hint = f"convert it before saving: x.astype({row.dtype.name!r})"
            raise self.error(f"the file holds {array.dtype} of shape {array.shape}", hint=hint)
        if not _fits(Shape.array(row, *array.shape), shape):
            raise self.error(f"the file holds {type_text(array)}", hint=f"the program takes {shape}")
        return array


def _row(shape: Shape) -> ElementType:
    if shape.element is None:
        raise ValueError(f"{shape} is not an array")
    return shape.element


def _element(name: str) -> ElementType:
    """XLA's and MLIR's names, and IREE's explicit signs (``si32``)."""
    return element_type(name[1:] if re.fullmatch(r"si\d+", name) else name)


def _fits(given: Shape, declared: Shape) -> bool:
    """Whether the sizes of ``given`` are those of ``declared``, or within its bounds where it is dynamic."""
    if given.rank != declared.rank:
        return False
    rows = zip(given.dimensions, declared.dimensions, declared.dynamic, strict=True)
    return all(size == bound or (dynamic and (bound < 0 or size <= bound)) for size, bound, dynamic in rows)


def write_output(spec: str, array: Any, *, stream: BinaryIO | None = None) -> None:
    """Write a result: ``@y.npy`` saves it, whole or not at all; ``-`` prints it as text to stdout.

    Args:
        stream: instead of stdout.

    Raises:
        ArgumentError: neither form, or the suffix is not ``.npy``.
        CompileError: the file cannot be written.
    """
    array = np.asarray(array)
    if spec == "-":
        out = stream or sys.stdout.buffer
        out.write((format_array(array) + "\n").encode())
        out.flush()
        return
    path = Path(spec.removeprefix("@"))
    if not spec.startswith("@") or path.suffix != ".npy":
        hint = "an output is @name.npy, or - for text on stdout; @name.npz alone takes all results"
        raise ArgumentError(f"{spec!r} is no output", hint=hint)
    save_array(path, array)


def write_archive(spec: str, arrays: Mapping[str, Any]) -> None:
    """Write results to the ``.npz`` file that a specification names, whole or not at all. Raises CompileError."""
    save_archive(spec.strip()[1:], arrays)
