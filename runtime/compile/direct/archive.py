"""The file of a module: a zip of stored files, the first of which is IREE's flatbuffer.

IREE reads the flatbuffer where it lies, and finds machine code and constants at distances from its end. The check sums
are what ``data.integrity`` looks at, and bundles append to the zip.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

from hloforge.runtime.compile.direct.host import DirectError

# Where files begin, so that processors may load whole vectors from constants in place.
ALIGNMENT = 64
_MODULE = "module.fb"
# Version, flags, method, time and date (1980-01-01), check sum, sizes, lengths of name and extra field.
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_ENTRY = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END = struct.Struct("<4sHHHHIIH")
_VERSION, _DATE = 20, 0x21
# An extra field of zeros, whose kind nobody reads.
_EXTRA = struct.Struct("<HH")
_FILLER = 0x4C46
_MOST = 0xFFFFFFFF


def places(files: Sequence[tuple[str, int]]) -> list[int]:
    """Where files of these names and sizes begin, counted from the end of the module."""
    found, place = [], 0
    for name, size in files:
        place = _start(place, name)
        found.append(place)
        place += size
    return found


def archive(module: bytes, files: Sequence[tuple[str, bytes]]) -> bytes:
    """A zip of a module and the files that it refers to.

    Args:
        module: a flatbuffer, of as many bytes as ``ALIGNMENT`` divides.

    Raises:
        DirectError: it is larger than a plain zip can be.
    """
    if sum(len(content) for _, content in files) + len(module) > _MOST // 2:
        raise DirectError("the program's constants are too large for a plain archive")
    parts, entries, place = [], [], 0
    for name, content in ((_MODULE, module), *files):
        data, start = name.encode(), _start(place, name)
        gap = start - place - _LOCAL.size - len(data) - _EXTRA.size
        extra = _EXTRA.pack(_FILLER, gap) + bytes(gap)
        facts = (_VERSION, 0, 0, 0, _DATE, zlib.crc32(content), len(content), len(content), len(data))
        parts += [_LOCAL.pack(b"PK\3\4", *facts, len(extra)), data, extra, content]
        entries += [_ENTRY.pack(b"PK\1\2", _VERSION, *facts, 0, 0, 0, 0, 0, place), data]
        place = start + len(content)
    count, listed = len(entries) // 2, sum(map(len, entries))
    return b"".join((*parts, *entries, _END.pack(b"PK\5\6", 0, 0, count, count, listed, place, 0)))


def _start(place: int, name: str) -> int:
    """Where a file's bytes are whose header is at this place."""
    least = place + _LOCAL.size + len(name.encode()) + _EXTRA.size
    return least + -least % ALIGNMENT
