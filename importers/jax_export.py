"""Files that ``jax.export`` serialized: flatbuffers that hold a StableHLO portable artifact.

Only what is needed to run the program is read, without JAX and without the package ``flatbuffers``. Source:
FlatBuffers, "Internals" (a table begins with the distance to its vtable, which holds the position of each field); the
fields are those of ``Exported`` in JAX's ``export/serialization_generated.py``, versions 1 to 11.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from hloforge.dialect.errors import ImporterError, UnsupportedError
from hloforge.dialect.mlir import func, ir, stablehlo
from hloforge.dialect.operations import string_attribute
from hloforge.dialect.program import ENTRY

# Places in the vtable.
_NAME, _PLATFORMS, _MODULE = 6, 22, 30
_MLIR_MAGIC = b"ML\xefR"
# Platforms whose programs run here, the best first.
_OURS = ("hloforge", "cpu")


@dataclass(frozen=True)
class Exported:
    """What a file holds.

    Attributes:
        name: of the function.
        platforms: for which JAX lowered it; the program of several takes the number of one as its first argument.
        module: a portable artifact.
    """

    name: str
    platforms: tuple[str, ...]
    module: bytes


def unwrap(data: bytes) -> Exported | None:
    """The contents of a file; None if it is no export of JAX."""
    try:
        table = _Table(data, _u32(data, 0))
        module = table.vector(_MODULE, 1)
        if not module.startswith(_MLIR_MAGIC):
            return None
        return Exported(table.text(_NAME), table.texts(_PLATFORMS), module)
    except (struct.error, ValueError):
        return None


@dataclass(frozen=True)
class _Table:
    data: bytes
    start: int

    def _field(self, place: int) -> int:
        """Where a field is. Raises ValueError if the table has none there."""
        (distance,) = struct.unpack_from("<i", self.data, self.start)
        vtable = self.start - distance
        if vtable < 0:
            raise ValueError("a vtable before the file's first byte")
        size, offset = _u16(self.data, vtable), 0
        if place < size:
            offset = _u16(self.data, vtable + place)
        if not offset:
            raise ValueError(f"no field at {place}")
        return self.start + offset

    def _items(self, place: int) -> tuple[int, int]:
        """Start and count of a vector's elements."""
        field = self._field(place)
        vector = field + _u32(self.data, field)
        return vector + 4, _u32(self.data, vector)

    def vector(self, place: int, width: int) -> bytes:
        """The bytes of a vector of numbers."""
        start, count = self._items(place)
        return _slice(self.data, start, count * width)

    def text(self, place: int) -> str:
        return self.vector(place, 1).decode()

    def texts(self, place: int) -> tuple[str, ...]:
        start, count = self._items(place)
        _slice(self.data, start, 4 * count)
        places = [start + 4 * number for number in range(count)]
        return tuple(_text(self.data, at + _u32(self.data, at)) for at in places)


def _u16(data: bytes, at: int) -> int:
    (value,) = struct.unpack_from("<H", data, at)
    return int(value)


def _u32(data: bytes, at: int) -> int:
    (value,) = struct.unpack_from("<I", data, at)
    return int(value)


def _slice(data: bytes, start: int, length: int) -> bytes:
    if start + length > len(data):
        raise ValueError("a vector ends beyond the file")
    return data[start : start + length]


def _text(data: bytes, at: int) -> str:
    return _slice(data, at + 4, _u32(data, at)).decode()


def choose_platform(module: ir.Module, platforms: tuple[str, ...]) -> None:
    """Make the first argument of a program for several platforms, the number of one of them, a constant.

    Raises:
        UnsupportedError: it is for none that runs here.
        ImporterError: it takes no such number.
    """
    chosen = next((name for name in _OURS if name in platforms), None)
    if chosen is None:
        raise UnsupportedError(
            f"the program was exported for {', '.join(platforms)}", hint='export it with platforms=["cpu"]'
        )
    if len(platforms) == 1:
        return
    functions = [op for op in module.body.operations if isinstance(op, func.FuncOp)]
    named = (op for op in functions if string_attribute(op, "sym_name") == ENTRY)
    entry: Any = next((op for op in named if _takes_number(op)), None)
    if entry is None:
        raise ImporterError("a damaged export of JAX: its main lacks the parameter for the platform")
    block = entry.regions[0].blocks[0]
    with module.context, ir.InsertionPoint.at_block_begin(block), entry.location:
        type_ = block.arguments[0].type
        value = ir.IntegerAttr.get(type_.element_type, platforms.index(chosen))
        constant = stablehlo.constant(ir.DenseElementsAttr.get_splat(type_, value))
        block.arguments[0].replace_all_uses_with(constant)
        attributes = entry.arg_attrs
        block.erase_argument(0)
        types = ir.FunctionType.get([argument.type for argument in block.arguments], entry.type.results)
        entry.attributes["function_type"] = ir.TypeAttr.get(types)
        entry.arg_attrs = list(attributes)[1:]


def _takes_number(function: Any) -> bool:
    """Whether a function's first argument is one integer."""
    blocks = function.regions[0].blocks
    if not len(blocks) or not len(blocks[0].arguments):
        return False
    type_ = blocks[0].arguments[0].type
    return isinstance(type_, ir.RankedTensorType) and not type_.shape and isinstance(type_.element_type, ir.IntegerType)
