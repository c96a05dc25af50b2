"""Damage to files: what broken disks and cut transfers do, and what somebody does who knows the format."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

# What readers of lengths, counts and offsets trip over.
_NUMBERS = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFF0,
    0xFFFFFFFF,
    1 << 40,
    (1 << 64) - 1,
)
_WORDS = (
    *(b"99999999999999999999", b"1000000000000", b"2147483648", b"65536", b"-1", b"0", b"1e400", b"nan", b"?", b"*"),
    *(b"{", b"}", b"(", b")", b"[", b"]", b"<", b">", b'"', b"'", b"\\", b"%", b"@", b"#", b"\n", b"\0", b"/*", b"//"),
    *(b"null", b"true", b"{}", b"[]", b'""', b"\xff\xfe", "ü".encode(), b"({...})"),
)
_DIGITS = b"0123456789"
_DEEP = 20_000
_LONGEST = 1 << 20


def damage(data: bytes, generator: random.Random) -> bytes:
    """A damaged copy: one to four changes of one kind each."""
    changed = bytearray(data)
    for _ in range(generator.choice((1, 1, 1, 2, 4))):
        generator.choice(_CHANGES)(changed, generator)
    return bytes(changed[:_LONGEST])


def _place(data: bytearray, generator: random.Random) -> int:
    """A place, of which every other is near an end: headers and directories stand there."""
    size = max(len(data), 1)
    near = min(size, 128)
    return generator.choice(
        (generator.randrange(size), generator.randrange(near), size - 1 - generator.randrange(near))
    )


def _truncate(data: bytearray, generator: random.Random) -> None:
    del data[_place(data, generator) :]


def _flip(data: bytearray, generator: random.Random) -> None:
    if data:
        data[_place(data, generator)] ^= 1 << generator.randrange(8)


def _set(data: bytearray, generator: random.Random) -> None:
    if data:
        data[_place(data, generator)] = generator.choice((0, 0xFF, 0x80, 0x7F, generator.randrange(256)))


def _number(data: bytearray, generator: random.Random) -> None:
    """A length, count or offset that is far too large, or none."""
    form = generator.choice("BHIQ")
    width = struct.calcsize(form)
    place = _place(data, generator)
    place -= place % generator.choice((1, width))
    data[place : place + width] = struct.pack(f"<{form}", generator.choice(_NUMBERS) & (1 << 8 * width) - 1)


def _varint(data: bytearray, generator: random.Random) -> None:
    place = _place(data, generator)
    data[place : place + 1] = b"\xff" * generator.choice((1, 4, 9)) + bytes([generator.randrange(128)])


def _decimal(data: bytearray, generator: random.Random) -> None:
    """Another number in a text."""
    start = next((at for at in range(_place(data, generator), len(data)) if data[at] in _DIGITS), None)
    if start is not None:
        end = start
        while end < len(data) and data[end] in _DIGITS:
            end += 1
        data[start:end] = generator.choice(_WORDS[:6])


def _delete(data: bytearray, generator: random.Random) -> None:
    start = _place(data, generator)
    del data[start : start + generator.choice((1, 2, 4, 8, 64, 1024))]


def _insert(data: bytearray, generator: random.Random) -> None:
    start = _place(data, generator)
    data[start:start] = generator.choice((generator.choice(_WORDS), generator.randbytes(generator.choice((1, 4, 32)))))


def _splice(data: bytearray, generator: random.Random) -> None:
    """A part of the file a second time, elsewhere, over what stands there or before it."""
    size = generator.choice((1, 4, 16, 64, 512))
    start, end = _place(data, generator), _place(data, generator)
    part = data[start : start + size]
    data[end : end + generator.choice((0, len(part)))] = part


def _repeat(data: bytearray, generator: random.Random) -> None:
    start = _place(data, generator)
    part = data[start : start + generator.choice((1, 3, 8, 32))]
    data[start:start] = part * generator.choice((2, 16, 200))


def _nest(data: bytearray, generator: random.Random) -> None:
    """Brackets without end: what a reader does by recursion ends in its stack."""
    start = _place(data, generator)
    data[start:start] = generator.choice((b"(", b"[", b"{", b"tuple<", b'{"a":', b"\x0a\x7f", b"[0,")) * _DEEP


_CHANGES: tuple[Callable[[bytearray, random.Random], None], ...] = (
    *(_truncate, _flip, _flip, _flip, _set, _number, _number, _varint, _decimal, _delete, _insert, _splice, _repeat),
    _nest,
)
