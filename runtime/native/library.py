"""A library of our own linker in memory: its kernels as addresses that can be called.

IREE's loader does the same with the same bytes: it copies segments, adds the start of the library to addresses, and
protects the segments.

Source: iree-org/iree, ``runtime/src/iree/hal/local/elf/elf_module.c`` and ``executable_library.h``.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Iterator
from functools import cache

_PAGE = mmap.PAGESIZE
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_RELOCATION = struct.Struct("<QQq")
_SYMBOL = struct.Struct("<IBBHQQ")
_TAG = struct.Struct("<QQ")
_LOAD, _DYNAMIC = 1, 2
_SYMBOLS, _RELA, _RELA_SIZE = 6, 7, 8
_RELATIVE = 8
_READ, _WRITE, _RUN = 4, 2, 1
# Of the tables that the library's one function returns: how many kernels there are, their addresses and names.
_VERSION, _COUNT, _FUNCTIONS, _NAMES = 6, 24, 32, 64


class MappingError(Exception):
    """The system or the bytes do not allow it."""


class Code:
    """Bytes in memory of their own, which may be made runnable. They live as long as this object.

    Raises:
        MappingError: the system has no such memory.
    """

    def __init__(self, size: int) -> None:
        try:
            self.memory = mmap.mmap(-1, max(size, 1), prot=mmap.PROT_READ | mmap.PROT_WRITE)
        except (OSError, ValueError) as error:
            raise MappingError(str(error)) from None
        self.start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    def protect(self, start: int, size: int, access: int) -> None:
        """Say what may be done with bytes from a distance on. Raises MappingError."""
        pages = start // _PAGE * _PAGE
        if _libc().mprotect(self.start + pages, start + size - pages, access):
            raise MappingError("the system protects memory from being run")


class Library:
    """A library in memory.

    Args:
        data: what ``compile.direct.elf.link`` made.

    Attributes:
        kernels: their addresses.
        names: theirs.

    Raises:
        MappingError: it is none, or the system does not let it run.
    """

    def __init__(self, data: bytes) -> None:
        try:
            segments = list(_segments(data))
            loaded = [one for one in segments if one[0] == _LOAD]
            self._code = Code(max(address + size for _, _, _, address, _, size in loaded))
            memory = self._code.memory
            for _, _, offset, address, length, _ in loaded:
                memory[address : address + length] = data[offset : offset + length]
            tags = _tags(data, next(one for one in segments if one[0] == _DYNAMIC))
            self._relocate(tags)
            query = _SYMBOL.unpack_from(memory, tags[_SYMBOLS] + _SYMBOL.size)[4]
        except (struct.error, ValueError, StopIteration, KeyError, IndexError) as error:
            raise MappingError(f"no library: {error}") from None
        for _, access, _, address, _, size in loaded:
            if access & _RUN:
                self._code.protect(address, size, mmap.PROT_READ | mmap.PROT_EXEC)
        self.kernels, self.names = self._asked(self._code.start + query)

    def _relocate(self, tags: dict[int, int]) -> None:
        memory, start = self._code.memory, self._code.start
        for place in range(tags[_RELA], tags[_RELA] + tags[_RELA_SIZE], _RELOCATION.size):
            target, kind, value = _RELOCATION.unpack_from(memory, place)
            if kind != _RELATIVE:
                raise ValueError(f"relocation {kind}")
            struct.pack_into("<Q", memory, target, start + value)

    def _asked(self, query: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """What the library's function tells: addresses and names."""
        function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p)(query)
        tables = function(_VERSION, None)
        if not tables:
            raise MappingError("a library of another version")
        count = ctypes.c_uint32.from_address(tables + _COUNT).value
        functions = ctypes.c_uint64.from_address(tables + _FUNCTIONS).value
        names = ctypes.c_uint64.from_address(tables + _NAMES).value
        return (
            tuple((ctypes.c_uint64 * count).from_address(functions)),
            tuple((name or b"").decode(errors="replace") for name in (ctypes.c_char_p * count).from_address(names)),
        )


def _segments(data: bytes) -> Iterator[tuple[int, int, int, int, int, int]]:
    """Kind, access, place in the file, address, and sizes there and in memory."""
    header = _HEADER.unpack_from(data)
    if not header[0].startswith(b"\x7fELF\2\1"):
        raise ValueError("no ELF file")
    place, size, count = header[5], header[9], header[10]
    for number in range(count):
        kind, access, offset, address, _, length, total, _ = _SEGMENT.unpack_from(data, place + number * size)
        yield kind, access, offset, address, length, total


def _tags(data: bytes, dynamic: tuple[int, int, int, int, int, int]) -> dict[int, int]:
    _, _, offset, _, length, _ = dynamic
    return dict(_TAG.unpack_from(data, place) for place in range(offset, offset + length, _TAG.size))


@cache
def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return library
