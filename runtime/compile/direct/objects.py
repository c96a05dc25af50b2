"""Objects of machine code from LLVM IR texts, by llvmlite's LLVM in this process.

An object depends on its text, the processor, LLVM's version and the settings here, and is kept by a digest of these: in
memory, and on disk under the rules of trust of ``compile.cache``.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hloforge.runtime.compile import cache as files
from hloforge.runtime.compile.cpu_targets import processor
from hloforge.runtime.compile.direct.helpers import helper_text
from hloforge.runtime.compile.direct.host import DirectError

# As IREE calls what its embedded loader takes.
_TRIPLE = "x86_64-unknown-unknown-eabi-elf"
# Raised when the same text makes another object: passes, or how they are asked for.
_SETTINGS = ("O2", "vectors of loops", "pic", "small", 1)
_SPEED = 2
_DIGITS = 40
# Bytes of objects that a process keeps.
_MOST = 32 * 2**20
# After so many new files the cache is looked at whether it is too large.
_BETWEEN_TRIMS = 64


@dataclass(frozen=True)
class HostTarget:
    """The processor that code is made for.

    Attributes:
        processor: LLVM's name of it.
        features: LLVM's, each with its sign.
    """

    processor: str
    features: str


@cache
def target_of_host() -> HostTarget:
    """This machine's processor."""
    llvm = _llvm()
    return HostTarget(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


def objects_of(texts: Sequence[str], *, caching: bool) -> list[bytes]:
    """The objects of some kernels.

    Args:
        caching: whether files are read and written.

    Raises:
        DirectError: LLVM refuses a text.
    """
    return [_STORE.object_of(text, caching=caching) for text in texts]


def helper_of(name: str, *, caching: bool) -> bytes | None:
    """The object that defines a function which LLVM calls on its own; None if there is none."""
    text = helper_text(name)
    return None if text is None else _STORE.object_of(text, caching=caching)


class _Store:
    """The objects of this process; those used last are kept."""

    def __init__(self) -> None:
        self._objects: OrderedDict[str, bytes] = OrderedDict()
        self._size = self._written = 0
        self._lock = threading.Lock()

    def object_of(self, text: str, *, caching: bool) -> bytes:
        """The object of a text, made if it is not known."""
        digest = _digest(text)
        with self._lock:
            if digest in self._objects:
                self._objects.move_to_end(digest)
                return self._objects[digest]
        home = files.folder() if caching else None
        path = None if home is None else home / f"object_{digest}{files.KERNELS_SUFFIX}"
        kept = None if path is None else files.recall(path)
        if kept is not None:
            self._remember(digest, kept[1])
            return kept[1]
        made = _compiled(text)
        self._remember(digest, made)
        if path is not None and files.keep(path, {}, made):
            self._trim(path.parent)
        return made

    def _remember(self, digest: str, data: bytes) -> None:
        with self._lock:
            if digest in self._objects:
                return
            self._objects[digest] = data
            self._size += len(data)
            while self._size > _MOST and len(self._objects) > 1:
                self._size -= len(self._objects.popitem(last=False)[1])

    def _trim(self, home: Path) -> None:
        self._written += 1
        if self._written % _BETWEEN_TRIMS == 1:
            files.trim(home)


_STORE = _Store()


@cache
def _llvm() -> Any:
    """LLVM, which takes a tenth of a second to load."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@cache
def _machine() -> Any:
    target = target_of_host()
    form = {"cpu": target.processor, "features": target.features, "reloc": "pic", "codemodel": "small", "opt": _SPEED}
    return _llvm().Target.from_triple(_TRIPLE).create_target_machine(**form)


@cache
def _facts() -> bytes:
    """What objects depend on beside their texts, found without LLVM: known objects do not load it."""
    return repr((processor(), version("llvmlite"), _TRIPLE, _SETTINGS)).encode()


def _digest(text: str) -> str:
    return hashlib.sha256(_facts() + b"\0" + text.encode()).hexdigest()[:_DIGITS]


def _compiled(text: str) -> bytes:
    llvm, machine = _llvm(), _machine()
    try:
        module = llvm.parse_assembly(text, llvm.create_context())
    except RuntimeError as error:
        raise DirectError(f"LLVM refuses a kernel: {error}") from None
    with module:
        module.triple = _TRIPLE
        module.data_layout = str(machine.target_data)
        options = llvm.create_pipeline_tuning_options(speed_level=_SPEED)
        options.loop_vectorization = True
        options.slp_vectorization = False
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        try:
            made: bytes = machine.emit_object(module)
        except RuntimeError as error:
            raise DirectError(f"LLVM makes no code of a kernel: {error}") from None
    return made
