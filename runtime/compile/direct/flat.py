"""Flatbuffers, as far as IREE's modules need them: tables, vectors, texts and bytes.

A piece is position-independent, because all references inside it are relative. So pieces that every module has alike
are made once and copied. References point forward: what a table refers to follows it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

# Where pieces begin, the largest alignment of a number.
_ALIGNMENT = 8
_PREFIX = struct.Struct("<II4s4x")


@dataclass(frozen=True)
class Piece:
    """A part of a flatbuffer.

    Attributes:
        data: its bytes, as many as ``_ALIGNMENT`` divides.
        anchor: where in them the thing is that others refer to.
    """

    data: bytes
    anchor: int = 0


@dataclass(frozen=True)
class Number:
    """A field that is stored in its table, in the format of ``struct``."""

    format: str
    value: int


Field = Piece | Number | None


def text(value: str) -> Piece:
    """A string."""
    data = value.encode()
    return Piece(_padded(struct.pack("<I", len(data)) + data + b"\0"))


def content(value: bytes) -> Piece:
    """A vector of bytes."""
    return Piece(_padded(struct.pack("<I", len(value)) + value))


def structs(values: Sequence[bytes]) -> Piece:
    """A vector of structs of 4-byte numbers, each packed already."""
    return Piece(_padded(struct.pack("<I", len(values)) + b"".join(values)))


def vector(pieces: Sequence[Piece]) -> Piece:
    """A vector of references."""
    head = 4 + 4 * len(pieces)
    place, offsets = head + -head % _ALIGNMENT, []
    for number, piece in enumerate(pieces):
        offsets.append(place + piece.anchor - (4 + 4 * number))
        place += len(piece.data)
    data = _padded(struct.pack(f"<{1 + len(pieces)}I", len(pieces), *offsets))
    return Piece(data + b"".join(piece.data for piece in pieces))


def table(fields: Sequence[Field]) -> Piece:
    """A table; None for a field that has its default."""
    places, size = [0] * len(fields), 4
    # The widest numbers first leave no gaps; a table starts at an even multiple of their size, less its first field.
    order = sorted(range(len(fields)), key=lambda number: -_width(fields[number]))
    for number in order:
        width = _width(fields[number])
        if width:
            size += -size % width
            places[number] = size
            size += width
    layout = struct.pack(f"<{2 + len(fields)}H", 4 + 2 * len(fields), size, *places)
    start = len(layout) + -len(layout) % _ALIGNMENT
    made = bytearray(layout.ljust(start, b"\0") + struct.pack("<i", start))
    made.extend(bytes(size - 4 + -(start + size) % _ALIGNMENT))
    for field, place in zip(fields, places, strict=True):
        if isinstance(field, Number):
            struct.pack_into(f"<{field.format}", made, start + place, field.value)
        elif field is not None:
            struct.pack_into("<I", made, start + place, len(made) + field.anchor - (start + place))
            made.extend(field.data)
    return Piece(bytes(made), start)


def file_of(root: Piece, identifier: bytes, alignment: int) -> bytes:
    """A buffer whose first four bytes are the number of those that follow.

    Args:
        alignment: what divides the number of all bytes.
    """
    size = _PREFIX.size + len(root.data)
    size += -size % alignment
    data = _PREFIX.pack(size - 4, _PREFIX.size + root.anchor - 4, identifier) + root.data
    return data.ljust(size, b"\0")


def _width(field: Field) -> int:
    if field is None:
        return 0
    return struct.calcsize(f"<{field.format}") if isinstance(field, Number) else 4


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNMENT)
