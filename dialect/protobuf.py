"""A reader and writer of protobuf's wire format, as far as finding and replacing fields of an HLO proto needs it.

No schema: a message is its list of fields. It spares a dependency on protobuf and on XLA's ``.proto`` files.
Source: protobuf "Encoding".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Field(NamedTuple):
    """One field of a message: ``start`` and ``end`` delimit its encoding, key included.

    ``value`` is the number of a varint, else the payload.
    """

    number: int
    value: int | memoryview
    start: int
    end: int

    @property
    def payload(self) -> memoryview:
        """The bytes of a length-delimited field; empty for a number."""
        return self.value if isinstance(self.value, memoryview) else memoryview(b"")

    @property
    def text(self) -> str:
        return bytes(self.payload).decode("utf-8", "replace")


def fields(message: bytes | memoryview) -> Iterator[Field]:
    """The fields of a message in order.

    Raises:
        ValueError: the bytes are not a whole message.
    """
    view = memoryview(message)
    position, size = 0, len(view)
    while position < size:
        start = position
        key, position = _varint(view, position)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise ValueError(f"field number 0 at byte {start}")
        if wire == _VARINT:
            value, position = _varint(view, position)
            yield Field(number, value, start, position)
            continue
        position, end = _payload(view, position, wire)
        if end > size:
            raise ValueError(f"field {number} at byte {start} ends {end - size} bytes after the end")
        yield Field(number, view[position:end], start, end)
        position = end


def _payload(view: memoryview, position: int, wire: int) -> tuple[int, int]:
    if wire == _BYTES:
        length, position = _varint(view, position)
        return position, position + length
    if wire in (_FIXED32, _FIXED64):
        return position, position + (4 if wire == _FIXED32 else 8)
    raise ValueError(f"wire type {wire} at byte {position}")


def _varint(view: memoryview, position: int) -> tuple[int, int]:
    if position < len(view) and view[position] < 0x80:
        return view[position], position + 1
    result = shift = 0
    while shift < 70:
        if position >= len(view):
            raise ValueError("ends inside a number")
        byte = view[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7
    raise ValueError(f"number of more than 10 bytes at {position}")


def is_message(data: bytes | memoryview) -> bool:
    """Whether the bytes are a whole, non-empty message."""
    try:
        return sum(1 for _ in fields(data)) > 0
    except ValueError:
        return False


def first(message: bytes | memoryview, number: int) -> Field | None:
    """The first field of that number."""
    return next((field for field in fields(message) if field.number == number), None)


def number(message: bytes | memoryview, field: int) -> int:
    """The first number of that field, which protos leave out where it is 0."""
    entry = first(message, field)
    return entry.value if entry and isinstance(entry.value, int) else 0


def unpack(payload: bytes | memoryview) -> list[int]:
    """The numbers of a packed repeated field."""
    view, position = memoryview(payload), 0
    numbers: list[int] = []
    while position < len(view):
        number, position = _varint(view, position)
        numbers.append(number)
    return numbers


def pack(numbers: Iterable[int]) -> bytes:
    """The payload of a packed repeated field of numbers that are not negative."""
    return b"".join(map(_encode_varint, numbers))


def rewrite(message: memoryview, number: int, change: Callable[[memoryview], bytes | memoryview]) -> bytes:
    """The message with ``change`` applied to the payload of every field of that number."""
    out: list[bytes | memoryview] = []
    for entry in fields(message):
        if entry.number == number:
            out.append(encode(number, change(entry.payload)))
        else:
            out.append(message[entry.start : entry.end])
    return b"".join(out)


def encode(number: int, payload: bytes | memoryview) -> bytes:
    """A length-delimited field."""
    return b"".join((_encode_varint(number << 3 | _BYTES), _encode_varint(len(payload)), payload))


def encode_number(number: int, value: int) -> bytes:
    """A field of a number that is not negative."""
    return _encode_varint(number << 3 | _VARINT) + _encode_varint(value)


def _encode_varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
