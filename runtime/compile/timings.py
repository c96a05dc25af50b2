"""Measure what takes a compilation its time: parts of our code generator; phases of IREE's, LLVM, the linker.

IREE's are measured only where somebody asks, because the program's text after each phase takes 5 % of the time. Such a
text is finished when its phase is, and an object when LLVM is: the times of these files are what is measured. How long
executables take to become bytes is in the compiler's own report.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_PHASES = "phases"
# IREE's report is the last that it prints.
_REPORT = re.compile(r"^===-+===\n\s*\.\.\. Execution time report \.\.\..*\Z", re.MULTILINE | re.DOTALL)
# The time of all threads comes before it where there are some.
_TO_BYTES = re.compile(r" +([\d.]+) \( *[\d.]+%\) +SerializeAllExecutablesPass$", re.MULTILINE)
# What phases do, where their names do not tell.
_SERIALIZING = "hal"
_MEANINGS = {"executable-targets": "executable-targets (code generation)"}

_recorded: ContextVar[dict[str, float] | None] = ContextVar("_recorded", default=None)


@contextmanager
def recorded() -> Iterator[dict[str, float]]:
    """Measure what is done meanwhile: seconds by name, in order. Names of parts of parts are indented."""
    parts: dict[str, float] = {}
    token = _recorded.set(parts)
    try:
        yield parts
    finally:
        _recorded.reset(token)


@contextmanager
def part(name: str) -> Iterator[None]:
    """Measure what is done meanwhile, if anything is measured. Parts of it come after it."""
    start = time.perf_counter()
    _add(name, 0.0)
    yield
    _add(name, time.perf_counter() - start)


def took(name: str, seconds: float) -> None:
    """Add what was measured already."""
    _add(name, seconds)


def _add(name: str, seconds: float) -> None:
    parts = _recorded.get()
    if parts is not None:
        parts[name] = parts.get(name, 0.0) + max(seconds, 0.0)


class CompilerClock:
    """Measures a run of IREE's compiler, if anything is measured.

    Args:
        folder: the run's temporary files.
        given: flags that the run has.
        is_elided: whether these shorten constants where IREE prints; the text of phases is as long as they are.

    Attributes:
        flags: that the run needs besides.
    """

    def __init__(self, folder: Path, given: Sequence[str], *, is_elided: bool) -> None:
        self._folder, self._given = folder, given
        self.flags: tuple[str, ...] = ()
        if _recorded.get() is None:
            return
        self.flags = ("--mlir-timing", "--mlir-timing-display=list", "--iree-llvmcpu-keep-linker-artifacts")
        if is_elided:
            (folder / _PHASES).mkdir()
            self.flags += (f"--dump-compilation-phases-to={folder / _PHASES}",)
        self._start = time.time()

    def read(self, said: str) -> str:
        """Record the run, which has ended. Returns what the compiler said without its report."""
        if not self.flags:
            return said
        end = time.time()
        report = _REPORT.search(said)
        ends = [(_phase(path), path.stat().st_mtime) for path in sorted(self._texts(), key=_number)]
        if ends:
            before = self._start
            for phase, after in ends:
                _add(_MEANINGS.get(phase, phase), after - before)
                if phase == _SERIALIZING:
                    self._add_shares(report)
                before = after
            _add("output", end - before)
        else:
            to_or_from = [flag for flag in self._given if flag.startswith("--compile-")]
            _add(f"iree-compile {' '.join(to_or_from)}".rstrip(), end - self._start)
            self._add_shares(report)
        return said[: report.start()] if report else said

    def _add_shares(self, report: re.Match[str] | None) -> None:
        """Of the time in which executables become bytes; constants that the compiler computes have executables too."""
        linker = self._linker()
        to_bytes = sum(map(float, _TO_BYTES.findall(report[0]))) if report else 0.0
        if to_bytes:
            _add("  SPIR-V" if any("vulkan" in flag for flag in self._given) else "  LLVM", to_bytes - linker)
        if linker:
            _add("  linker", linker)

    def _texts(self) -> list[Path]:
        return list((self._folder / _PHASES).glob("*.mlir"))

    def _linker(self) -> float:
        """Seconds from each object to the library that is made of it."""
        pairs = ((path, path.with_suffix(".o")) for path in self._folder.glob("*.so"))
        return sum(path.stat().st_mtime - code.stat().st_mtime for path, code in pairs if code.exists())


def _number(text: Path) -> int:
    """Of ``program.10.executable-targets.mlir``."""
    return int(text.stem.rsplit(".", 2)[1])


def _phase(text: Path) -> str:
    return text.stem.rpartition(".")[2]
