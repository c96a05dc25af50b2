"""Shared libraries whose functions a program may call: those that the library itself defines, or that the user names.

The system looks a symbol up in a library and in all that it links, so that any library would give a program ``system``
of the C library. So the names come from the library's own table: ELF's dynamic symbols that are functions and have a
section. Where libraries have another format, the system says in which file the function lies that it found. Source: the
System V ABI, "Symbol Table"; ``dladdr`` and ``dlinfo`` of the GNU C library.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import re
import struct
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from hloforge.dialect.errors import LoadError

_NAMES = re.compile(r"[A-Za-z_]\w*(?:,[A-Za-z_]\w*)*")
_MAGIC = b"\x7fELF"
# By the class of the file (32 or 64 bits): the header after e_ident; a section's header; a symbol.
_HEADERS = {1: "HHIIIIIHHHHHH", 2: "HHIQQQIHHHHHH"}
_SECTIONS = {1: "IIIIIIIIII", 2: "IIQQQQIIQQ"}
_SYMBOLS = {1: "IIIBBH", 2: "IBBHQQ"}
_ORDERS = {1: "<", 2: ">"}
_IDENT, _DYNSYM = 16, 11
# Functions, and functions that choose a function when they are loaded; global, weak, and unique in a process.
_FUNCTIONS, _VISIBLE = (2, 10), (1, 2, 10)
# What the system calls when a library is loaded and unloaded.
_STARTS = frozenset({"_init", "_fini"})
_LINK_MAP = 2


@dataclass(frozen=True)
class Library:
    """A library as the user names it: ``libmy.so``, or ``libmy.so:f,g`` for these functions alone.

    Attributes:
        path: the file, or a name that the system looks for in its own folders.
        names: the functions that may be called; None for all that the library defines.
    """

    path: str
    names: frozenset[str] | None = None

    @classmethod
    def parse(cls, text: str | PathLike[str]) -> Library:
        """The library that a text names; a file whose name has a colon is that file."""
        path, colon, names = fspath(text).rpartition(":")
        if not colon or Path(fspath(text)).exists() or not _NAMES.fullmatch(names):
            return cls(fspath(text))
        return cls(path, frozenset(names.split(",")))

    def function(self, name: str) -> Any:
        """The function of ctypes that the library defines under a name; None if it may not be called, or is not there.

        Raises:
            LoadError: there is no such library, it cannot be loaded, or it lacks a function that the user named.
        """
        file = Path(self.path)
        # An absolute path: of a bare name the system would look in its own folders alone.
        library = _loaded(str(file.absolute() if file.exists() else file))
        for wanted in sorted(self.names or ()):
            if not _defines(library, wanted):
                raise LoadError(
                    f"the library {self.path} defines no function {wanted!r}",
                    hint='declare it extern "C"; functions of libraries that it links are not taken',
                )
        if (self.names is not None and name not in self.names) or not _defines(library, name):
            return None
        return getattr(library, name)


@functools.cache
def _loaded(path: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise LoadError(f"cannot load the library {path}: {error}") from None


def _defines(library: ctypes.CDLL, name: str) -> bool:
    """Whether a library itself, and none that it links, has a function of this name."""
    if name in _STARTS:
        return False
    file = _file_of(library)
    known = _functions(file, file.stat().st_mtime_ns) if file else None
    if known is not None:
        return name in known
    function = getattr(library, name, None)
    # Windows looks in the library's own table alone.
    return function is not None and (os.name == "nt" or _lies_in(function, library._name))


def _file_of(library: ctypes.CDLL) -> Path | None:
    """The file that the system loaded; None where it does not say."""
    handle = ctypes.c_void_p(library._handle)
    try:
        found = ctypes.POINTER(_LinkMap)()
        if ctypes.CDLL(None).dlinfo(handle, _LINK_MAP, ctypes.byref(found)) or not found:
            return None
    except (AttributeError, TypeError, OSError):
        return None
    file = Path(os.fsdecode(found.contents.name or b""))
    return file if file.is_file() else None


class _LinkMap(ctypes.Structure):
    _fields_ = (("address", ctypes.c_void_p), ("name", ctypes.c_char_p))


class _Place(ctypes.Structure):
    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def _lies_in(function: Any, path: str) -> bool:
    place = _Place()
    address = ctypes.cast(function, ctypes.c_void_p)
    if not ctypes.CDLL(None).dladdr(address, ctypes.byref(place)) or not place.file:
        return False
    found, wanted = Path(os.fsdecode(place.file)), Path(path)
    return found.exists() and wanted.exists() and found.samefile(wanted)


@functools.cache
def _functions(path: Path, _: int) -> frozenset[str] | None:
    """The functions in a library's dynamic symbol table; None for a file of another format.

    Raises:
        LoadError: the table is damaged or was taken away.
    """
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:4] != _MAGIC:
            return None
        try:
            return _read(data)
        except (struct.error, KeyError, ValueError, IndexError):
            raise LoadError(
                f"the library {path} has no table of symbols that can be read",
                hint="register its functions by hloforge.host.register(name, ctypes.CDLL(path).name)",
            ) from None


def _read(data: mmap.mmap) -> frozenset[str]:
    bits, order = data[4], _ORDERS[data[5]]
    header = struct.unpack_from(order + _HEADERS[bits], data, _IDENT)
    start, size, count = header[5], header[10], header[11]
    sections = [struct.unpack_from(order + _SECTIONS[bits], data, start + number * size) for number in range(count)]
    tables = [section for section in sections if section[1] == _DYNSYM]
    if not tables:
        raise ValueError("no dynamic symbols")
    return frozenset(name for table in tables for name in _names(data, order + _SYMBOLS[bits], table, sections))


def _names(data: mmap.mmap, form: str, table: tuple[int, ...], sections: list[tuple[int, ...]]) -> list[str]:
    texts = sections[table[6]]
    names = data[texts[4] : texts[4] + texts[5]]
    is_wide = form[1:] == _SYMBOLS[2]
    found = []
    for symbol in struct.iter_unpack(form, data[table[4] : table[4] + table[5]]):
        at, kind, section = (symbol[0], symbol[1], symbol[3]) if is_wide else (symbol[0], symbol[3], symbol[5])
        if section and kind & 0xF in _FUNCTIONS and kind >> 4 in _VISIBLE:
            found.append(names[at : names.index(b"\0", at)].decode())
    return found
