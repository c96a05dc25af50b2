"""Inputs and outputs of the command: files, ``-`` for the standard streams, and the detection of vmfbs."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from pathlib import Path

from hloforge.dialect.errors import CompileError, OptionError
from hloforge.importers.source import NamedBytes, load, unreadable

STDIO = "-"
_HEAD = 256


def open_source(source: str) -> tuple[bytes, str | NamedBytes]:
    """The first bytes of a file or of standard input, none of a folder, and what to read the whole from.

    What can be read once alone, such as a pipe, is read now.

    Raises:
        ImporterError: there is no such file, or it cannot be read, or is larger than the limit.
    """
    if source == STDIO:
        return _read(source)
    path = Path(source)
    if path.is_dir():
        # A SavedModel; reading any other folder is refused.
        return b"", source
    if path.exists() and not path.is_file():
        return _read(path)
    try:
        with path.open("rb") as stream:
            return stream.read(_HEAD), source
    except OSError as error:
        raise unreadable(error, source) from None


def _read(source: str | Path) -> tuple[bytes, NamedBytes]:
    data, name = load(source)
    return data[:_HEAD], NamedBytes(data, name)


def is_vmfb(head: bytes) -> bool:
    """Whether a file that begins so is a compiled IREE module: a flatbuffer, alone or in a zip."""
    return head[4:8] == b"IREE" or (head.startswith(b"PK\x03\x04") and b"module.fb" in head)


def check_writable(destination: str) -> None:
    """Raise CompileError, in the words of ``write_bytes``, unless a file can be written; ``-`` always can."""
    if destination == STDIO:
        return
    try:
        path = Path(destination)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not path.exists() or path.is_file():
            # A link keeps pointing where it does. The file has no name, so that nothing is left of it.
            with tempfile.TemporaryFile(dir=path.resolve().parent):
                pass
    except (OSError, RuntimeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CompileError(f"cannot write {destination}: {reason}") from None


def write_bytes(destination: str, data: bytes) -> None:
    """Write a file, whole or not at all, or standard output for ``-``.

    Raises:
        CompileError: the file cannot be written.
        OptionError: binary data would go to a terminal.
    """
    from hloforge.runtime.data.files import write_atomically

    if destination != STDIO:
        write_atomically(destination, data)
        return
    if sys.stdout.isatty() and b"\0" in data:
        raise OptionError("binary output would go to the terminal", hint="give -o FILE, or send it through a pipe")
    sys.stdout.flush()
    if sys.stdout.isatty():
        sys.stdout.write(data.decode(errors="backslashreplace"))
        return
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def write_text(destination: str, text: str) -> None:
    """``write_bytes`` of UTF-8 text, which ends in a line break."""
    write_bytes(destination, (text.rstrip("\n") + "\n").encode(errors="backslashreplace"))
