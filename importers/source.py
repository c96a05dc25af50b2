"""Where a program's bytes come from: a path, a stream, bytes, or the text itself."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from hloforge.dialect.bounded_reading import TooLargeError, read_path, read_stream
from hloforge.dialect.errors import ImporterError, Location

Source: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO


class NamedBytes(io.BytesIO):
    """Bytes that messages call by a name: a source that was loaded, as a source.

    Attributes:
        is_own: whether this process wrote them.
    """

    def __init__(self, data: bytes, name: str, *, is_own: bool = False) -> None:
        super().__init__(data)
        self.name, self.is_own = name, is_own


def load(source: Source) -> tuple[bytes, str]:
    """The bytes and what to call them in messages.

    A string is a program if it has a line break or a brace, ``-`` is standard input, else it is a path.

    Raises:
        ImporterError: the file is missing, a directory, not readable, or larger than the limit (``size_limit``).
        TypeError: ``source`` is of another kind.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), "<bytes>"
    if isinstance(source, str):
        if source == "-":
            return _whole(sys.stdin.buffer, "<stdin>"), "<stdin>"
        if "\n" in source or "{" in source:
            return source.encode("utf-8", "surrogatepass"), "<string>"
        return _file(Path(source)), source
    if isinstance(source, os.PathLike):
        return _file(Path(source)), os.fspath(source)
    if hasattr(source, "read"):
        return _stream(source)
    raise TypeError(f"a program comes from a path, bytes, text or a stream, not {type(source).__name__}")


def _file(path: Path) -> bytes:
    # Loaded late: it loads jaxlib, and the command line's completion reads no program.
    from hloforge.importers.saved_model import is_saved_model, mark_of

    if is_saved_model(path):
        return mark_of(path)
    try:
        return read_path(path)
    except OSError as error:
        raise unreadable(error, str(path)) from None
    except ValueError as error:
        raise ImporterError(f"cannot read the file: {error}", location=Location(repr(str(path)))) from None


def _stream(stream: Any) -> tuple[bytes, str]:
    name = getattr(stream, "name", "<stream>")
    name = name if isinstance(name, str) else "<stream>"
    data = _whole(stream, name)
    return data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data, name


def _whole(stream: Any, name: str) -> Any:
    try:
        return read_stream(stream)
    except TooLargeError as error:
        raise unreadable(error, name) from None


def unreadable(error: OSError, name: str) -> ImporterError:
    """The error for a file or stream that cannot be read."""
    reason, hint = error.strerror or str(error), ""
    if isinstance(error, TooLargeError):
        hint = error.hint
    else:
        reason = reason.lower()
    if isinstance(error, IsADirectoryError):
        hint = "give the file of one program"
    return ImporterError(f"cannot read the file: {reason}", location=Location(name), hint=hint)
