"""What a program and whoever runs it agree on about functions of the host: the record of one ``custom_call``.

The pipeline writes the record onto the call and onto the function that the compiled module imports in its place, the
manifest keeps it, and the session binds a function of the host to it. An import is called ``host.call_<number>``, the
number counting the records of a module. Source: XLA "CustomCall"; XLA FFI, ``api/c_api.h``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from hloforge.dialect.dense_values import array_of
from hloforge.dialect.element_types import element_type
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.marks import PREFIX
from hloforge.dialect.mlir import entries, ir
from hloforge.dialect.shapes import Shape

# The VM module that holds a program's host functions.
MODULE = "host"
# Its function that gives kernels of our own the table by which they call the others.
TABLE = "table"
# Targets of this prefix are hloforge's own: a pass made the call, and whoever loads the program binds it.
INTERNAL = PREFIX
# What JAX calls its Python callbacks by on the CPU, with their number as an attribute.
JAX_CALLBACKS = ("xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback")
# API versions of custom calls: the original one, and XLA's typed FFI.
ORIGINAL, TYPED_FFI = 1, 4


def import_name(number: int) -> str:
    """The function of ``MODULE`` that represents the record of this number."""
    return f"call_{number}"


@dataclass(frozen=True)
class HostCall:
    """One function of the host as a program calls it.

    Attributes:
        target: the name that the program calls it by.
        operands: the shapes of its operands, logical, with the layouts that the function wants; tuples and tokens are
            kept, for a function may see them.
        result: the shape of its result; an empty tuple if it returns nothing.
        version: of XLA's custom call API: 1 to 3 for functions of raw pointers, 4 for the typed FFI.
        configuration: the backend configuration of versions 1 to 3, which is text.
        attributes: that of version 4: str, numpy scalars and arrays, and mappings of these, by name.
        aliases: pairs (leaf of the result, leaf of the operands) that are in one buffer.
    """

    target: str
    operands: tuple[Shape, ...]
    result: Shape
    version: int = ORIGINAL
    configuration: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    aliases: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        operands = ", ".join(str(shape.without_layout()) for shape in self.operands)
        return f"@{self.target}({operands}) -> {self.result.without_layout()}"

    @property
    def operand_leaves(self) -> tuple[Shape, ...]:
        """Arrays and tokens of the operands, in order."""
        return tuple(leaf for operand in self.operands for leaf in operand.leaves())

    @property
    def result_leaves(self) -> tuple[Shape, ...]:
        """Arrays and tokens of the result, in order."""
        return tuple(self.result.leaves())

    def to_json(self) -> str:
        """The record as one line of text; equal calls have equal text."""
        fields = {
            "target": self.target,
            "operands": [str(shape) for shape in self.operands],
            "result": str(self.result),
            "version": self.version,
            "configuration": self.configuration,
            "attributes": {name: _written(value) for name, value in self.attributes.items()},
            "aliases": [list(pair) for pair in self.aliases],
        }
        return json.dumps(fields, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> HostCall:
        """Read back ``to_json``. Raises ValueError, KeyError or TypeError for other text."""
        fields = json.loads(text)
        return cls(
            fields["target"],
            tuple(map(Shape.parse, fields["operands"])),
            Shape.parse(fields["result"]),
            fields["version"],
            fields["configuration"],
            {name: _read(value) for name, value in fields["attributes"].items()},
            tuple((result, operand) for result, operand in fields["aliases"]),
        )


def _written(value: Any) -> Any:
    """A value of an attribute for JSON: numbers with their type (``["f32", 0.5]``, ``["s64[3]", [1, 2, 3]]``)."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return {name: _written(member) for name, member in value.items()}
    array = np.asarray(value)
    row = element_type(array.dtype)
    kind = row.name if isinstance(value, np.generic) else f"{row}[{','.join(map(str, array.shape))}]"
    # Floats of 16 bits and fewer as what they are in f64.
    return [kind, (array.astype(np.float64) if row.is_float else array).tolist()]


def _read(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return {name: _read(member) for name, member in value.items()}
    kind, numbers = value
    name, bracket, sizes = kind.rstrip("]").partition("[")
    array = np.array(numbers).astype(element_type(name).dtype)
    return array.reshape([int(size) for size in sizes.split(",") if size]) if bracket else array[()]


@cache
def _dense_arrays() -> dict[Any, Any]:
    """numpy's types by MLIR's attributes; not made where vmfbs are only run, which loads no MLIR."""
    return {
        ir.DenseBoolArrayAttr: np.bool_,
        ir.DenseI8ArrayAttr: np.int8,
        ir.DenseI16ArrayAttr: np.int16,
        ir.DenseI32ArrayAttr: np.int32,
        ir.DenseI64ArrayAttr: np.int64,
        ir.DenseF32ArrayAttr: np.float32,
        ir.DenseF64ArrayAttr: np.float64,
    }


def attributes_of(dictionary: Any) -> dict[str, Any]:
    """The entries of a dictionary attribute as values of ``HostCall.attributes``.

    Raises:
        UnsupportedError: an entry of a kind that XLA's FFI does not know.
    """
    return {name: _value(name, attribute) for name, attribute in entries(dictionary).items()}


def _value(name: str, attribute: Any) -> Any:
    if isinstance(attribute, ir.StringAttr):
        return attribute.value
    if isinstance(attribute, ir.DictAttr):
        return attributes_of(attribute)
    if isinstance(attribute, ir.DenseElementsAttr):
        return array_of(attribute)
    # Booleans before integers, which they are to MLIR.
    if isinstance(attribute, ir.BoolAttr | ir.UnitAttr):
        return np.bool_(getattr(attribute, "value", True))
    if isinstance(attribute, ir.IntegerAttr | ir.FloatAttr):
        return _dtype(name, attribute.type).type(attribute.value)
    dtype = next((dtype for kind, dtype in _dense_arrays().items() if isinstance(attribute, kind)), None)
    if dtype is not None:
        return np.array(list(attribute), dtype)
    if isinstance(attribute, ir.ArrayAttr):
        return _array(name, [_value(name, member) for member in attribute])
    raise _unsupported(name, attribute)


def _array(name: str, members: list[Any]) -> np.ndarray[Any, Any]:
    """A list of scalars, or of lists of one length, of one type."""
    kinds = {(m.dtype, m.shape) if isinstance(m, np.generic | np.ndarray) else None for m in members}
    if len(kinds) != 1 or None in kinds:
        raise _unsupported(name, members)
    return np.array(members, members[0].dtype)


def _dtype(name: str, type_: Any) -> np.dtype[Any]:
    try:
        return element_type(type_).dtype
    except ValueError:
        raise _unsupported(name, type_) from None


def _unsupported(name: str, value: Any) -> UnsupportedError:
    return UnsupportedError(
        f"attribute {name!r} of a custom call cannot be passed to a host function: {value}",
        hint="XLA's FFI takes strings, booleans, numbers, arrays of numbers, and dictionaries of these",
    )
