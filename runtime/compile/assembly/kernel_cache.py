"""Machine code of executables by their content, in memory and on disk.

An executable's text has no locations and none of its program's names, so that programs share what they compute alike.
The key is a digest of this text, which names the processor and its features, of the flags of the code generator, and
of the versions of the compiler. Files are among those of ``cache``, whose rules of trust and size hold for them.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hloforge.runtime.artifact.manifest import tool_versions
from hloforge.runtime.compile import cache

# Bytes of code that a process keeps.
_MOST = 64 * 2**20
# What symbols consist of that MLIR prints without quotes.
_PLAIN = re.compile(r"[A-Za-z_][\w$.]*")
_DIGITS = 24


@dataclass(frozen=True)
class Kernel:
    """What becomes of an executable.

    Attributes:
        export: its text without the code; the host's passes read its layout and numbers of workgroups.
        code: its binary.
    """

    export: str
    code: bytes


def canonical(name: str, text: str) -> str:
    """The text of an executable with ``kernel`` in the place of its name, also at the beginning of its functions'."""
    if not _PLAIN.fullmatch(name):
        return text
    return re.sub(rf"@{re.escape(name)}(?=\W|_)", "@kernel", text)


def key_of(text: str, flags: Sequence[str]) -> str:
    """The name of a canonical text's kernel, compiled with these flags."""
    facts = repr((text, sorted(flags), tool_versions()))
    return f"kernel_{hashlib.sha256(facts.encode()).hexdigest()[:_DIGITS]}"


class KernelCache:
    """The kernels of this process; those used last are kept."""

    def __init__(self) -> None:
        self._size = 0
        self._kernels: OrderedDict[str, Kernel] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: str) -> Kernel | None:
        """A kernel of this process, or else the one on disk; None if there is none."""
        with self._lock:
            if key in self._kernels:
                self._kernels.move_to_end(key)
                return self._kernels[key]
        home = cache.folder()
        kept = cache.recall(home / f"{key}{cache.KERNEL_SUFFIX}") if home is not None else None
        if kept is None or not isinstance(kept[0].get("export"), str):
            return None
        kernel = Kernel(kept[0]["export"], kept[1])
        self._remember(key, kernel)
        return kernel

    def add(self, kernels: Mapping[str, Kernel]) -> None:
        """Keep kernels, also on disk if there is a cache that can be written to."""
        for key, kernel in kernels.items():
            self._remember(key, kernel)
        home = cache.folder()
        if home is not None and kernels:
            for key, kernel in kernels.items():
                cache.keep(home / f"{key}{cache.KERNEL_SUFFIX}", {"export": kernel.export}, kernel.code)
            cache.trim(home)

    def _remember(self, key: str, kernel: Kernel) -> None:
        with self._lock:
            if key in self._kernels:
                return
            self._kernels[key] = kernel
            self._size += len(kernel.code)
            while self._size > _MOST:
                self._size -= len(self._kernels.popitem(last=False)[1].code)
