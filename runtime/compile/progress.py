"""Tell whoever waits for a compilation what it does.

Each phase is said where it begins (``budget.enter``), in memory that is shared with forked children. A thread of the
process that waits reads it, so that no pass waits for a terminal.

IREE's compiler says nothing while it runs. But it prints a module in each of hloforge's compilations, for the proof of
updates in place, which also shows how many dispatches there are. With one more flag it prints each dispatch before it
makes its code, which takes half a percent of its time. Which files there are is what it has done.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hloforge.dialect.budget import Budget

# Seconds between looks at what a compilation does.
INTERVAL = 0.1
COMPILER = "IREE's compiler"
# A pass that every target has, of which IREE runs one after the other, each with LLVM's or SPIR-V's dialect as result.
_BEFORE = "iree-hal-translate-all-executables"
# What a dispatch runs, in what is printed for the proof.
_EXECUTABLE = re.compile(r"@([\w$.-]+|\"[^\"]*\")::@")


@contextmanager
def told(listener: Callable[[str], object] | None, running: Budget) -> Iterator[None]:
    """Call a listener, meanwhile, with what is being done whenever that has changed.

    An exception of the listener ends the calls, not the compilation.
    """
    if listener is None:
        yield
        return
    said = ""

    def tell() -> None:
        nonlocal said
        phase = running.phase
        if phase not in ("", said):
            said = phase
            listener(phase)

    with _repeated(tell):
        yield


@contextmanager
def _repeated(look: Callable[[], object]) -> Iterator[None]:
    """Call a function again and again meanwhile, in a thread; its first exception ends that."""
    done = threading.Event()

    def run() -> None:
        with suppress(Exception):
            while not done.wait(INTERVAL):
                look()

    thread = threading.Thread(target=run, name="hloforge-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class CompilerWatch:
    """What a run of IREE's compiler has done so far.

    Args:
        temporary: its temporary files, of which the linker's are the last.
        printed: where other flags have IREE print what passes get and make; None if there are no such flags.

    Attributes:
        flags: that the run needs.
    """

    def __init__(self, temporary: Path, printed: Path | None) -> None:
        self._temporary, self._printed = temporary, printed or temporary / "printed"
        self._before = set(_names(temporary))
        self._totals: dict[Path, int] = {}
        tree = () if printed else (f"--mlir-print-ir-tree-dir={self._printed}",)
        self.flags: tuple[str, ...] = (f"--mlir-print-ir-before={_BEFORE}", *tree)

    @contextmanager
    def saying(self, running: Budget) -> Iterator[None]:
        """Say meanwhile what is being done."""
        with _repeated(lambda: running.say(self.phase())):
            yield

    def phase(self) -> str:
        """What is being done now, in a few words."""
        begun = sorted(self._printed.rglob(f"*_{_BEFORE}.mlir"))
        if not begun:
            return f"{COMPILER}: forming dispatches"
        # Those of constants that were computed before may still be there.
        objects = (name for name in set(_names(self._temporary)) - self._before if name.endswith(".o"))
        if any(_time(self._temporary / name) >= max(map(_time, begun)) for name in objects):
            return f"{COMPILER}: linking"
        # Constants are computed by modules inside the program's, which come first.
        module = min((path.parent.parent for path in begun), key=lambda path: len(path.parts))
        count = sum(path.parent.parent == module for path in begun)
        total = self._total(module)
        if not total:
            return f"{COMPILER}: dispatch {count}"
        return f"{COMPILER}: dispatch {count} of {max(count, total)}" + (", then LLVM" if count >= total else "")

    def _total(self, module: Path) -> int:
        """How many dispatches a module has; 0 where IREE has not printed it."""
        if module not in self._totals:
            texts = [path for path in module.glob("*/*.mlir") if not path.name.endswith(f"_{_BEFORE}.mlir")]
            self._totals[module] = len({name for path in texts for name in _executables(path)})
        return self._totals[module]


def _names(folder: Path) -> list[str]:
    """The files of a folder; none where it is gone."""
    with suppress(OSError):
        return [path.name for path in folder.iterdir()]
    return []


def _time(path: Path) -> int:
    """When a file was written; 0 where it is gone."""
    with suppress(OSError):
        return path.stat().st_mtime_ns
    return 0


def _executables(path: Path) -> set[str]:
    with suppress(OSError):
        return set(_EXECUTABLE.findall(path.read_text()))
    return set()
