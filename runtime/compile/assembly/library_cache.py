"""Machine code of executables by their content, in memory and on disk.

An executable's text has no locations and none of its program's names, so that programs share what they compute alike.
Its key is a digest of this text, which names the processor and its features, of the flags of the code generator, and of
the versions of the compiler. A few executables of a program, which follow each other, are linked into a library,
because IREE adds a dozen functions to each that take LLVM as long as a small kernel does. A library has no others, so
that nobody gets code of programs that are not his. Files are among those of ``cache``, whose rules of trust and size
hold for them. Their names depend on hloforge's own sources too, whose passes make the code; the names of libraries and
kernels, which vmfbs hold, do not.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hloforge.runtime.artifact.manifest import tool_versions
from hloforge.runtime.compile import cache

# Bytes of code that a process keeps.
_MOST = 64 * 2**20
# What symbols consist of that MLIR prints without quotes.
_PLAIN = re.compile(r"[A-Za-z_][\w$.]*")
_DIGITS = 24
# Executables in a library, on average and at most.
_USUAL, _LONGEST = 6, 12


@dataclass(frozen=True)
class Library:
    """What becomes of a few executables.

    Attributes:
        export: their text without the code; the host's passes read layouts and numbers of workgroups there.
        code: the binary.
    """

    export: str
    code: bytes


def canonical(name: str, text: str) -> str:
    """The text of an executable with ``kernel`` in the place of its name, also at the beginning of its functions'."""
    if not _PLAIN.fullmatch(name):
        return text
    return re.sub(rf"@{re.escape(name)}(?=\W|_)", "@kernel", text)


def key_of(text: str, flags: Sequence[str]) -> str:
    """The name of the kernel that a canonical text and these flags of the code generator make."""
    return f"kernel_{_digest(text, *sorted(flags))}"


def library_of(keys: Sequence[str]) -> str:
    """The name of the library of these kernels."""
    return f"library_{_digest(*keys)}"


def _digest(*texts: str) -> str:
    return hashlib.sha256(repr((texts, tool_versions())).encode()).hexdigest()[:_DIGITS]


def _file(home: Path, name: str) -> Path:
    """Where a library is in the cache."""
    return home / f"{name}_{_digest(repr(cache.sources()))}{cache.KERNELS_SUFFIX}"


def chunks(keys: Sequence[str]) -> list[list[str]]:
    """Kernels of a program as those of its libraries.

    Where one ends depends on its own keys alone, so that a program that differs in one kernel shares the other
    libraries. Two kernels and more make two libraries at least, which are compiled at the same time.
    """
    found: list[list[str]] = [[]]
    for key in keys:
        found[-1].append(key)
        if int(key[-4:], 16) % _USUAL == 0 or len(found[-1]) == _LONGEST:
            found.append([])
    found = [chunk for chunk in found if chunk]
    if len(found) == 1 and len(keys) > 1:
        middle = len(keys) // 2
        return [list(keys[:middle]), list(keys[middle:])]
    return found


class LibraryCache:
    """The libraries of this process; those used last are kept."""

    def __init__(self) -> None:
        self._size = 0
        self._libraries: OrderedDict[str, Library] = OrderedDict()
        self._lock = threading.Lock()

    def after_fork(self) -> None:
        """Go on in a forked child, where no other thread will ever let go of what it held."""
        self._lock = threading.Lock()

    def find(self, name: str) -> Library | None:
        """A library of this process, or else the one on disk; None if there is none."""
        with self._lock:
            if name in self._libraries:
                self._libraries.move_to_end(name)
                return self._libraries[name]
        home = cache.folder()
        kept = cache.recall(_file(home, name)) if home is not None else None
        if kept is None or not isinstance(kept[0].get("export"), str):
            return None
        library = Library(kept[0]["export"], kept[1])
        self._remember(name, library)
        return library

    def add(self, libraries: Mapping[str, Library]) -> None:
        """Keep libraries, also on disk if there is a cache that can be written to."""
        for name, library in libraries.items():
            self._remember(name, library)
        home = cache.folder()
        if home is not None and libraries:
            for name, library in libraries.items():
                cache.keep(_file(home, name), {"export": library.export}, library.code)

    def _remember(self, name: str, library: Library) -> None:
        with self._lock:
            if name in self._libraries:
                return
            self._libraries[name] = library
            self._size += len(library.code)
            while self._size > _MOST:
                self._size -= len(self._libraries.popitem(last=False)[1].code)
