"""The bytes of a zip's stored entry as an array, without a copy where the zip is a file.

Source: PKWARE, APPNOTE.TXT, "Local file header".
"""

from __future__ import annotations

import io
import struct
import zipfile
from os import PathLike
from typing import Any

import numpy as np

from hloforge.runtime.data.aligned import aligned

# Of a local header: its own length, and where those of the name and of the extra field are.
HEADER, _LENGTHS = 30, 26


def entry_bytes(source: str | PathLike[str] | bytes, name: str) -> np.ndarray[Any, Any]:
    """The bytes of an entry that is not compressed: mapped from a file, or as they lie in the source.

    They are copied where they lie at an address that 64 does not divide. Check sums are not compared.

    Raises:
        Exception: one of ``integrity.DAMAGE``, of a damaged zip or one without the entry.
    """
    with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as archive:
        entry = archive.getinfo(name)
        assert archive.fp is not None
        archive.fp.seek(entry.header_offset + _LENGTHS)
        lengths = struct.unpack("<HH", archive.fp.read(4))
    start = entry.header_offset + HEADER + sum(lengths)
    if isinstance(source, bytes):
        return aligned(np.frombuffer(source, np.uint8, entry.file_size, start))
    return aligned(np.memmap(source, np.uint8, "r", start, entry.file_size))
