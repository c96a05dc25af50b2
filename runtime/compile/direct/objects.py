"""Objects of machine code by their texts, made where they are not known.

An object depends on its text, the processor, LLVM's version and how it is asked for (``machine_code.SETTINGS``), and is
kept by a digest of these: in memory, and on disk under the rules of trust of ``compile.cache``. Known objects do not
load LLVM.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from hloforge.dialect import budget
from hloforge.runtime.compile import cache as files, timings
from hloforge.runtime.compile.cpu_targets import processor as of_host
from hloforge.runtime.compile.direct.helpers import called_helpers, helper_text
from hloforge.runtime.compile.direct.machine_code import SETTINGS, Compiler
from hloforge.runtime.compile.direct.processors import HOST, Processor

__all__ = ["helper_of", "objects_of", "text_object"]

_DIGITS = 40
# Bytes of objects that a process keeps.
_MOST = 32 * 2**20
_MOST_THREADS = 8


def objects_of(texts: Sequence[str], *, caching: bool, processor: Processor = HOST) -> list[bytes]:
    """The objects of some kernels.

    Args:
        caching: whether files are read and written.

    Raises:
        DirectError: LLVM refuses a text.
        OverBudgetError: there is no time left.
    """
    return _STORE.objects_of(texts, processor, files.folder() if caching else None, "kernel")


def helper_of(name: str, *, caching: bool, processor: Processor = HOST) -> bytes | None:
    """The object that defines a function which LLVM calls on its own; None if there is none."""
    text = helper_text(name)
    if text is None:
        return None
    return _STORE.objects_of([text], processor, files.folder() if caching else None, "function")[0]


def text_object(text: str) -> bytes:
    """The object of a function of this process, which is kept as these are. Raises DirectError."""
    return _STORE.objects_of([text], HOST, files.folder(), "function")[0]


class _Announcement:
    """Says of which text LLVM makes code, to whoever waits for this thread's compilation."""

    def __init__(self, what: str, count: int) -> None:
        # Other threads do not see which compilation they work for.
        self._budget, self._what, self._count = budget.budget(), what, count
        self._begun = itertools.count(1)

    def next(self) -> None:
        """Before each text. Raises OverBudgetError if there is no time for it."""
        if self._budget is not None:
            self._budget.enter(f"machine code: {self._what} {next(self._begun)} of {self._count}")


class _Store:
    """The objects of this process; those used last are kept."""

    def __init__(self) -> None:
        self._objects: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()
        # Compilers that nobody uses.
        self._idle: defaultdict[Processor, list[Compiler]] = defaultdict(list)

    def objects_of(self, texts: Sequence[str], processor: Processor, home: Path | None, what: str) -> list[bytes]:
        """The objects of texts.

        Args:
            home: the folder of the cache; None for none.
            what: a text is, for whoever waits.
        """
        start = time.perf_counter()
        digests = {text: _digest(text, processor) for text in dict.fromkeys(texts)}
        found = {text: data for text, digest in digests.items() if (data := self._find(digest, home)) is not None}
        timings.took(f"  known {what}s ({len(found)} of {len(digests)})", time.perf_counter() - start)
        if unknown := [text for text in digests if text not in found]:
            unknown += self._called(unknown, digests, processor, home)
            with timings.part(f"  LLVM ({len(unknown)} {what}{'s' * (len(unknown) > 1)})"):
                made = self._compiled(unknown, processor, _Announcement(what, len(unknown)))
            for text, data in made.items():
                self._remember(digests[text], data)
                if home is not None:
                    files.keep(_file(home, digests[text]), {}, data)
            found |= made
        return [found[text] for text in texts]

    def _called(
        self, texts: Sequence[str], digests: dict[str, str], processor: Processor, home: Path | None
    ) -> list[str]:
        """Unknown functions that texts say they call, so that LLVM need not be waited for once more."""
        names = dict.fromkeys(name for text in texts for name in called_helpers(text))
        helpers = [text for name in names if (text := helper_text(name)) is not None and text not in digests]
        digests |= {text: _digest(text, processor) for text in helpers}
        return [text for text in helpers if self._find(digests[text], home) is None]

    def _find(self, digest: str, home: Path | None) -> bytes | None:
        with self._lock:
            if digest in self._objects:
                self._objects.move_to_end(digest)
                return self._objects[digest]
        kept = None if home is None else files.recall(_file(home, digest))
        if kept is None:
            return None
        self._remember(digest, kept[1])
        return kept[1]

    def _compiled(self, texts: Sequence[str], processor: Processor, announcement: _Announcement) -> dict[str, bytes]:
        """The objects of unknown texts, the longest first and in several threads."""

        def compile_one(text: str) -> bytes:
            announcement.next()
            return self._compile(text, processor)

        if len(texts) == 1:
            return {texts[0]: compile_one(texts[0])}
        order = sorted(texts, key=len, reverse=True)
        with ThreadPoolExecutor(min(len(texts), len(os.sched_getaffinity(0)), _MOST_THREADS)) as pool:
            return dict(zip(order, pool.map(compile_one, order), strict=True))

    def _compile(self, text: str, processor: Processor) -> bytes:
        idle = self._idle[processor]
        try:
            compiler = idle.pop()
        except IndexError:
            compiler = Compiler(processor)
        try:
            return compiler.compile(text)
        finally:
            idle.append(compiler)

    def _remember(self, digest: str, data: bytes) -> None:
        with self._lock:
            if digest in self._objects:
                return
            self._objects[digest] = data
            self._size += len(data)
            while self._size > _MOST and len(self._objects) > 1:
                self._size -= len(self._objects.popitem(last=False)[1])

    def after_fork(self) -> None:
        """Go on in a forked child, where no other thread will ever let go of what it held."""
        self._lock, self._idle = threading.Lock(), defaultdict(list)


_STORE = _Store()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_STORE.after_fork)


def _file(home: Path, digest: str) -> Path:
    return home / f"object_{digest}{files.KERNELS_SUFFIX}"


@cache
def _facts(processor: Processor) -> bytes:
    """What objects depend on beside their texts."""
    import llvmlite  # its version alone, not LLVM

    own = () if processor.name else of_host()
    return repr((processor, processor.form, own, llvmlite.__version__, SETTINGS)).encode()


def _digest(text: str, processor: Processor) -> str:
    return hashlib.sha256(_facts(processor) + b"\0" + text.encode()).hexdigest()[:_DIGITS]
