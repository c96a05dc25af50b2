"""Detect damaged vmfbs by their check sums before IREE reads them.

IREE verifies the tables and the instructions of a module, but neither machine code nor constants: of 300 files with a
bit flipped or the end cut off 17 gave wrong numbers and 17 ended the process. IREE's compiler writes a zip whose
entries have check sums, which its runtime does not read. A file without a zip (IREE's own flag makes such) has none.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from pathlib import Path

from hloforge.dialect.errors import LoadError

_ADVICE = "copy the file again, or compile the program again"
_ZIP = b"PK\x03\x04"
# What zipfile raises for damaged archives, as the position of the damage has it: RuntimeError for "encrypted" ones,
# OverflowError for entries beyond 2⁶³.
DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, KeyError, OSError, OverflowError, RuntimeError),
    ValueError,
)


def check_sums(source: bytes | Path, name: str) -> None:
    """Compare the check sums of a vmfb with its bytes; 0.3 s a GB.

    Args:
        source: the vmfb, or the file that holds it.
        name: what messages call it.

    Raises:
        LoadError: it is damaged.
    """
    try:
        if not _head(source).startswith(_ZIP):
            return
        with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as archive:
            if claims_too_much(archive, len(source) if isinstance(source, bytes) else source.stat().st_size):
                raise zipfile.BadZipFile("its entries are larger than itself")
            damaged = archive.testzip()
    except DAMAGE as error:
        raise LoadError(f"{name} is no vmfb, or damaged: {error}", hint=_ADVICE) from None
    if damaged is not None:
        raise LoadError(f"{name}: its entry {damaged} is damaged, by its check sum", hint=_ADVICE)


def claims_too_much(archive: zipfile.ZipFile, size: int) -> bool:
    """Whether the entries of an archive of so many bytes, which are not compressed, claim to be more than that."""
    return sum(entry.file_size for entry in archive.infolist()) > size


def free_memory() -> int | None:
    """Bytes that this machine has left; None where it does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _head(source: bytes | Path) -> bytes:
    if isinstance(source, bytes):
        return source[: len(_ZIP)]
    with source.open("rb") as stream:
        return stream.read(len(_ZIP))
