"""Compile a program by parts: what the host does, and each executable, whose machine code may be known.

``iree-compile`` makes all of a program in one process. Here a child of the server (``server.py``) brings the program to
dispatches and then to bytecode, by IREE's own passes (``passes.py``) in contexts of the few dialects that are left,
where they take a third of the time. Its executables are compiled by other children meanwhile, one for each processor,
unless their code is in the cache (``kernel_cache.py``). What this cannot compile, ``iree-compile`` compiles, or tells
why it cannot.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from hloforge.dialect import budget
from hloforge.runtime.compile import timings
from hloforge.runtime.compile.assembly import server
from hloforge.runtime.compile.assembly.kernel_cache import Kernel, KernelCache, canonical, key_of
from hloforge.runtime.compile.in_place_audit import PASS, flags as audit_flags
from hloforge.runtime.compile.plugins import without_plugins
from hloforge.runtime.compile.progress import COMPILER
from hloforge.runtime.options import CompileOptions

_SERIAL = "--mlir-disable-threading"
# A device whose description has all that its executables depend on (``support_library``).
_DEVICE = "--iree-hal-target-device=__device_0="
_LINKER = "--iree-llvmcpu-system-linker-path="
# While constants are hoisted, IREE compiles and runs programs inside the program.
_NO_HOISTING = "--iree-opt-const-expr-hoisting=false"
_DATA_TILING = "--iree-dispatch-creation-data-tiling"
_NEEDED = (_DEVICE, _LINKER, _NO_HOISTING)
_OF_CODE = ("--iree-llvmcpu-", "--iree-opt-level=")
# Flags that mean the same here.
_KNOWN = (
    *_NEEDED,
    *_OF_CODE,
    _DATA_TILING,
    _SERIAL,
    "--iree-input-type=stablehlo",
    "--iree-input-demote-f64-to-f32=false",
    "--iree-opt-strip-assertions=false",
    "--iree-stream-partitioning-favor=debug",
    "--iree-vm-bytecode-module-strip-source-map=true",
)
_FORMAT = re.compile(r'"(embedded-elf-\w+)"')
# IREE reads its library of micro-kernels for each executable, which takes longer than LLVM takes for most. Products in
# tiles of data alone call it.
_WITHOUT_LIBRARY = ("link_embedded = false, ", "link_embedded = false, link_ukernel_bitcode = false, ")

_kernels = KernelCache()


def assembled(
    flags: Sequence[str], program: bytes, options: CompileOptions, folder: Path, printed: Path | None
) -> bytes | None:
    """A vmfb; None where ``iree-compile`` has to make it.

    Args:
        flags: of ``iree-compile``, with the object of a C library in the folder (``flags_with_library``).
        folder: for temporary files.
        printed: where the text goes that ``in_place_audit`` reads; its flags are among the flags then.
    """
    ours = _flags(flags, printed)
    if ours is None or not server.is_available():
        return None
    try:
        return _Assembly(ours, options, folder, printed).vmfb(program)
    except server.GoneError:
        return None


def _flags(flags: Sequence[str], printed: Path | None) -> list[str] | None:
    """The flags for a child of the server; None if it does not know some, or lacks what it needs."""
    of_audit = audit_flags(printed) if printed else ()
    kept = [flag for flag in flags if flag not in of_audit and flag != _SERIAL]
    if not all(flag.startswith(_KNOWN) for flag in kept):
        return None
    if not all(any(flag.startswith(needed) for flag in kept) for needed in _NEEDED):
        return None
    if _DATA_TILING not in kept:
        kept = [flag.replace(*_WITHOUT_LIBRARY) if flag.startswith(_DEVICE) else flag for flag in kept]
    return [*kept, *without_plugins(kept), _SERIAL]


class _Assembly:
    """One compilation."""

    def __init__(self, flags: list[str], options: CompileOptions, folder: Path, printed: Path | None) -> None:
        self._flags, self._options, self._folder, self._printed = flags, options, folder, printed
        self._cache = _kernels if options.cache else None

    def vmfb(self, program: bytes) -> bytes:
        """Raises GoneError if it cannot be made."""
        device = next(flag for flag in self._flags if flag.startswith(_DEVICE))
        found = _FORMAT.search(device)
        if found is None:
            raise server.GoneError
        with ExitStack() as children:
            with timings.part("dispatches"):
                _say("forming dispatches")
                host = children.enter_context(
                    self._child("program", program, {"flags": self._flags, "format": found[1]})
                )
                audited, head, *texts = host.receive()
            if self._printed is not None:
                (self._printed / f"assembly_{PASS}.mlir").write_bytes(audited)
            names: list[str] = json.loads(head)
            kernels = self._kernels_of(names, [text.decode() for text in texts], children)
            with timings.part("code generation"):
                exports = kernels.exports()
            host.send([exports[name].encode() for name in names])
            with timings.part("LLVM and linker"):
                binaries = kernels.binaries()
            with timings.part("bytecode"):
                _say("bytecode")
                host.send([binaries[name] for name in names])
                return host.receive()[0]

    def _child(self, kind: str, source: bytes, fields: Mapping[str, object]) -> server.Request:
        limits = {"memory": self._options.memory_limit or 0, "temporary": str(self._folder)}
        return server.server().request(kind, source, {**fields, **limits})

    def _kernels_of(self, names: Sequence[str], texts: Sequence[str], children: ExitStack) -> _Kernels:
        """Begin to compile what is not known."""
        chosen = [flag for flag in self._flags if flag.startswith(_OF_CODE)]
        of_key = [flag for flag in chosen if not flag.startswith(_LINKER)]
        keys: dict[str, str] = {}
        unknown: dict[str, str] = {}
        kernels = _Kernels(keys, self._cache)
        for name, text in zip(names, map(canonical, names, texts), strict=True):
            keys[name] = key = key_of(text, of_key)
            if not kernels.knows(key):
                unknown[key] = text
        plugins = without_plugins(self._flags)
        for number, group in enumerate(_groups(unknown)):
            binaries = self._folder / f"binaries{number}"
            binaries.mkdir()
            flags = [
                *chosen,
                *plugins,
                _SERIAL,
                "--iree-hal-link-executables=false",
                f"--iree-hal-dump-executable-binaries-to={binaries}",
            ]
            module = "\n".join(("module {", *(_exported(key, text) for key, text in group.items()), "}"))
            fields = {"flags": flags, "names": list(group), "binaries": str(binaries)}
            child = children.enter_context(self._child("kernels", module.encode(), fields))
            kernels.await_from(child, list(group))
        return kernels


class _Kernels:
    """The kernels of a program's executables, of which some are being compiled."""

    def __init__(self, keys: Mapping[str, str], cache: KernelCache | None) -> None:
        self._keys, self._cache, self._total = keys, cache, 0
        self._known: dict[str, Kernel] = {}
        self._exports: dict[str, str] = {}
        self._children: list[tuple[server.Request, list[str]]] = []

    def knows(self, key: str) -> bool:
        if self._cache and key not in self._known and (kernel := self._cache.find(key)):
            self._known[key] = kernel
        return key in self._known

    def await_from(self, child: server.Request, keys: list[str]) -> None:
        self._children.append((child, keys))

    def exports(self) -> dict[str, str]:
        """The text of each executable without its code, by its name in the program."""
        self._total = len(set(self._keys.values()))
        done = self._total - sum(len(keys) for _, keys in self._children)
        for child, keys in self._children:
            _say(f"dispatch {done + 1} of {self._total}")
            done += len(keys)
            texts = [blob.decode() for blob in child.receive()]
            if len(texts) != len(keys):
                raise server.GoneError
            self._exports.update(zip(keys, texts, strict=True))
        self._exports.update((key, kernel.export) for key, kernel in self._known.items())
        return {name: self._exports[key].replace(f"@{key}", f"@{name}", 1) for name, key in self._keys.items()}

    def binaries(self) -> dict[str, bytes]:
        """The code of each executable, by its name in the program."""
        made = {}
        for child, keys in self._children:
            _say(f"dispatch {self._total} of {self._total}, then LLVM")
            for key, code in zip(keys, child.receive(), strict=True):
                made[key] = Kernel(self._exports[key], code)
        if self._cache:
            self._cache.add(made)
        self._known.update(made)
        return {name: self._known[key].code for name, key in self._keys.items()}


def _say(what: str) -> None:
    """Tell whoever watches the compilation what is being done."""
    if (running := budget.budget()) is not None:
        running.say(f"{COMPILER}: {what}")


def _exported(key: str, text: str) -> str:
    """An executable under the name of its key, which no pass drops because nothing in its module refers to it."""
    start = text.index("@")
    name = re.match(r'@(?:"[^"]*"|[\w$.]+)', text[start:])
    assert name is not None
    return f"hal.executable public @{key}{text[start + name.end() :]}"


def _groups(texts: Mapping[str, str]) -> list[dict[str, str]]:
    """Texts shared out evenly by length, at most as many groups as this process has processors."""
    groups: list[dict[str, str]] = [{} for _ in range(min(len(os.sched_getaffinity(0)), len(texts)))]
    for key, text in sorted(texts.items(), key=lambda item: -len(item[1])):
        min(groups, key=lambda group: sum(map(len, group.values())))[key] = text
    return groups
