"""The libraries of a program's executables: those that are known, and those that children of the server compile."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from hloforge.dialect import budget
from hloforge.runtime.compile.assembly.library_cache import Library, LibraryCache, canonical, chunks, key_of, library_of
from hloforge.runtime.compile.assembly.server import Request, wait
from hloforge.runtime.compile.plugins import without_plugins
from hloforge.runtime.compile.progress import COMPILER

SERIAL = "--mlir-disable-threading"
LINKER = "--iree-llvmcpu-system-linker-path="
# Flags of the code generator and of LLVM.
LEVEL = "--iree-opt-level="
O2 = f"{LEVEL}O2"
OF_CODE = ("--iree-llvmcpu-", LEVEL)
_KEEPING = "--iree-llvmcpu-keep-linker-artifacts"

known = LibraryCache()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=known.after_fork)


class Libraries:
    """The libraries of a program.

    Args:
        child: begins to ask the server, as ``Server.request`` does.
        flags: of the program's compilation.
        folder: for temporary files.
        caching: whether libraries may be known, and are kept.

    Attributes:
        places: the library of each executable and its kernel there, by its name in the program.
    """

    def __init__(self, child: Callable[..., Request], flags: Sequence[str], folder: Path, *, caching: bool) -> None:
        self._child, self._folder = child, folder
        self._cache = known if caching else None
        chosen = [flag for flag in flags if flag.startswith(OF_CODE)]
        self._of_key = [flag for flag in chosen if not flag.startswith(LINKER)]
        # The child links, because it has the linker warm as well.
        _, *self._linker = shlex.split(next(flag for flag in chosen if flag.startswith(LINKER)))
        self._flags = [*self._of_key, f"{LINKER}true", _KEEPING, *without_plugins(flags), SERIAL]
        self._is_o2 = [flag for flag in chosen if flag.startswith(LEVEL)] == [O2]
        self.places: dict[str, tuple[str, str]] = {}
        self._found: dict[str, Library] = {}
        self._exports: dict[str, str] = {}
        self._waiting: list[tuple[str, str]] = []
        self._running: dict[Request, str] = {}
        # Of all libraries, in the order of the program.
        self._sizes: dict[str, int] = {}

    def begin(self, texts: Mapping[str, str], children: ExitStack) -> None:
        """Find what is known, and begin to compile the rest.

        Args:
            texts: of executables by name.
            children: ends what runs.
        """
        self._children = children
        keys, sources = {}, {}
        for name, text in texts.items():
            plain = canonical(name, text)
            keys[name] = key = key_of(plain, self._of_key)
            sources[key] = _exported(key, plain)
        for chunk in chunks(list(sources)):
            library = library_of(chunk)
            self._sizes[library] = len(chunk)
            self.places |= {name: (library, key) for name, key in keys.items() if key in chunk}
            if self._cache and (found := self._cache.find(library)):
                self._found[library] = found
            else:
                module = "\n".join(("module {", *(sources[key] for key in chunk), "}"))
                self._waiting.append((library, module))
        if self._sizes:
            self._start()

    def _start(self) -> None:
        while self._waiting and len(self._running) < len(os.sched_getaffinity(0)):
            library, module = self._waiting.pop(0)
            folder = self._folder / library
            folder.mkdir()
            fields = {"flags": self._flags, "is_o2": self._is_o2, "linker": self._linker, "temporary": str(folder)}
            child = self._children.enter_context(self._child("library", module.encode(), fields))
            self._running[child] = library
        waiting = sum(self._sizes[library] for library, _ in self._waiting)
        total = sum(self._sizes.values())
        say(f"dispatch {total - waiting} of {total}")

    def exports(self) -> dict[str, str]:
        """The text of each library without its code, by name."""
        while self._waiting or any(library not in self._exports for library in self._running.values()):
            self._listen()
        self._exports |= {library: found.export for library, found in self._found.items()}
        return {library: self._exports[library].replace("@library", f"@{library}", 1) for library in self._sizes}

    def binaries(self) -> dict[str, bytes]:
        """The code of each library, by name."""
        total = sum(self._sizes.values())
        say(f"dispatch {total} of {total}, then LLVM")
        while self._running:
            self._listen()
        return {library: self._found[library].code for library in self._sizes}

    def _listen(self) -> None:
        """Take what children say next: first the text, then the code, after which another one may begin."""
        for child in wait(self._running):
            library, (said,) = self._running[child], child.receive()
            if library not in self._exports:
                self._exports[library] = said.decode()
                continue
            del self._running[child]
            self._found[library] = made = Library(self._exports[library], said)
            if self._cache:
                self._cache.add({library: made})
            self._start()


def say(what: str) -> None:
    """Tell whoever watches the compilation what is being done."""
    if (running := budget.budget()) is not None:
        running.say(f"{COMPILER}: {what}")


def _exported(key: str, text: str) -> str:
    """An executable by the name of its key, which no pass drops because nothing in its module refers to it."""
    text = text.replace("@kernel", f"@{key}")
    start = text.index("@")
    name = re.match(r'@(?:"[^"]*"|[\w$.]+)', text[start:])
    assert name is not None
    return f"hal.executable public @{key}{text[start + name.end() :]}"
