"""A long run of one process: ``python -m tests.robustness.soak --calls=100000``; ``make soak``.

Several programs are called from several threads, loaded and freed, compiled, and loaded in forks, while the process is
watched: the memory, descriptors and threads that it has after a first part, in which pools and caches fill, are what it
may have at the end, and a bound. Every result is compared with numpy's. ``--minutes=120`` repeats all of it so long.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hloforge

Array = np.ndarray[Any, Any]
MEBIBYTE = 1 << 20
# What memory may grow by after the first fifth: fragments of the heap, threads' arenas.
ALLOWED = 48 * MEBIBYTE
# And what descriptors and threads may: a pool's thread that ends a moment later.
_ALLOWED_COUNT = 4

_ADD = "HloModule a\nENTRY e { x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n ROOT z = f32[4] add(x, y) }"
_DOT = """HloModule d
ENTRY e {
  x = f32[64,64] parameter(0)
  y = f32[64,64] parameter(1)
  ROOT z = f32[64,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""
_PAIR = """HloModule p
ENTRY e {
  x = s32[100000] parameter(0)
  two = s32[] constant(2)
  twos = s32[100000] broadcast(two), dimensions={}
  y = s32[100000] multiply(x, twos)
  ROOT t = (s32[100000], s32[100000]) tuple(y, x)
}"""
_LOOP = """HloModule l
body { p = (s32[], f32[256]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  v = f32[256] get-tuple-element(p), index=1
  w = f32[256] add(v, v)
  ROOT t = (s32[], f32[256]) tuple(j, w) }
condition { q = (s32[], f32[256]) parameter(0)
  k = s32[] get-tuple-element(q), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(k, n), direction=LT }
ENTRY e { x = f32[256] parameter(0)
  z = s32[] constant(0)
  s = (s32[], f32[256]) tuple(z, x)
  r = (s32[], f32[256]) while(s), condition=condition, body=body
  ROOT o = f32[256] get-tuple-element(r), index=1 }"""


@dataclass(frozen=True)
class Work:
    """A program, where it runs, how its arguments are made, and what it computes."""

    text: str
    device: str
    arguments: Callable[[int], tuple[Array, ...]]
    truth: Callable[..., tuple[Array, ...]]


def _floats(number: int, *sizes: int) -> Array:
    return np.full(sizes, number % 17, np.float32) + np.arange(sizes[-1], dtype=np.float32) % 5


WORK = (
    Work(_ADD, "local-sync", lambda n: (_floats(n, 4), _floats(n + 1, 4)), lambda x, y: (x + y,)),
    Work(_DOT, "local-task", lambda n: (_floats(n, 64, 64), _floats(n + 1, 64, 64)), lambda x, y: (x @ y,)),
    Work(_PAIR, "local-sync", lambda n: (np.arange(n, n + 100000, dtype=np.int32),), lambda x: (2 * x, x)),
    Work(_LOOP, "local-sync", lambda n: (_floats(n, 256),), lambda x: (32 * x,)),
)


@dataclass(frozen=True)
class Usage:
    """What this process has: bytes of memory, open descriptors, threads."""

    memory: int
    descriptors: int
    threads: int

    @classmethod
    def now(cls) -> Usage:
        status = Path("/proc/self/status").read_text()
        (kibibytes,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))
        (threads,) = (line.split()[1] for line in status.splitlines() if line.startswith("Threads:"))
        return cls(int(kibibytes) * 1024, len(list(Path("/proc/self/fd").iterdir())), int(threads))

    def __str__(self) -> str:
        return f"{self.memory // MEBIBYTE} MiB, {self.descriptors} descriptors, {self.threads} threads"


@dataclass(frozen=True)
class Report:
    """How often and how long something was done; what the process had after the first fifth and at the end."""

    what: str
    count: int
    seconds: float
    settled: Usage
    end: Usage

    @property
    def leaks(self) -> bool:
        more = (self.end.descriptors - self.settled.descriptors, self.end.threads - self.settled.threads)
        return self.end.memory - self.settled.memory > ALLOWED or max(more) > _ALLOWED_COUNT

    def __str__(self) -> str:
        text = f"{self.what}: {self.count} in {self.seconds:.0f} s; {self.settled} settled; {self.end} at the end"
        return text + " LEAKS" * self.leaks


def compiled() -> list[hloforge.Executable]:
    return [hloforge.compile(work.text, cache=False) for work in WORK]


def soak_calls(executables: list[hloforge.Executable], calls: int, threads: int) -> Report:
    """Call every program in turn from several threads, all on the same sessions."""
    sessions = [each.load(device=work.device) for each, work in zip(executables, WORK, strict=True)]
    problems: list[BaseException] = []

    def run(first: int, count: int) -> None:
        try:
            for number in range(first, first + count):
                if problems:
                    return
                _call(sessions, number)
        except BaseException as error:
            problems.append(error)

    def part(count: int) -> None:
        each = max(count // threads, 1)
        group = [threading.Thread(target=run, args=(number * each, each)) for number in range(threads)]
        for thread in group:
            thread.start()
        for thread in group:
            thread.join()
        if problems:
            raise problems[0]

    return _watched(f"calls from {threads} threads", calls, part)


def _call(sessions: list[hloforge.Session], number: int) -> None:
    work, session = WORK[number % len(WORK)], sessions[number % len(WORK)]
    arguments = work.arguments(number)
    if number % 3 == 0:
        found = session.call_device(*arguments)
    elif number % 3 == 1:
        found = session(*arguments)
    else:
        found = session.submit(*arguments).result()
    results = found if isinstance(found, tuple) else (found,)
    for result, wanted in zip(results, work.truth(*arguments), strict=True):
        np.testing.assert_array_equal(np.asarray(result), wanted)


def soak_loads(executables: list[hloforge.Executable], count: int, folder: Path) -> Report:
    """Load programs from files and memory, call each once, and free them."""
    paths = [folder / f"{number}.vmfb" for number in range(len(executables))]
    for path, executable in zip(paths, executables, strict=True):
        # The last sixteen files stay open (runtime/artifact/vm_modules.py), and a file written again is another one.
        if not path.exists():
            executable.save(path)

    def part(count: int) -> None:
        for number in range(count):
            at = number % len(WORK)
            source = paths[at] if number % 2 else executables[at].vmfb
            work = WORK[at]
            session = hloforge.load(source, device=work.device)
            _call([session] * len(WORK), at)

    return _watched("loads", count, part)


def soak_compiles(count: int) -> Report:
    """Read and compile programs, in this process except IREE's compiler."""

    def part(count: int) -> None:
        for number in range(count):
            hloforge.compile(WORK[number % len(WORK)].text, cache=False)

    return _watched("compilations", count, part)


def soak_forks(executables: list[hloforge.Executable], count: int) -> Report:
    """Load and call programs in children of this process, which has threads of its own."""
    sessions = [each.load(device=work.device) for each, work in zip(executables, WORK, strict=True)]

    def child(at: int) -> None:
        session = executables[at].load(device=WORK[at].device)
        _call([session] * len(WORK), at)

    def part(count: int) -> None:
        for number in range(count):
            _call(sessions, number)
            pid = os.fork()
            if not pid:
                status = 1
                try:
                    child(number % len(WORK))
                    status = 0
                finally:
                    os._exit(status)
            _, status = os.waitpid(pid, 0)
            assert status == 0, f"a child ended with {status}"

    return _watched("forks", count, part)


def _watched(what: str, count: int, part: Callable[[int], None]) -> Report:
    start = time.monotonic()
    part(max(count // 5, 1))
    gc.collect()
    settled = Usage.now()
    for _ in range(4):
        part(max(count // 5, 1))
        gc.collect()
    return Report(what, count, time.monotonic() - start, settled, Usage.now())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--loads", type=int, default=2_000)
    parser.add_argument("--compiles", type=int, default=50)
    parser.add_argument("--forks", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=0, help="repeat all of it until so many have passed")
    given = parser.parse_args()
    executables = compiled()
    start, leaks, first = time.monotonic(), False, None
    with tempfile.TemporaryDirectory(prefix="hloforge-soak-") as folder:
        while first is None or time.monotonic() - start < 60 * given.minutes:
            for report in (
                lambda: soak_calls(executables, given.calls, given.threads),
                lambda: soak_loads(executables, given.loads, Path(folder)),
                lambda: soak_compiles(given.compiles),
                lambda: soak_forks(executables, given.forks),
            ):
                found = report()
                print(found, flush=True)
                leaks = leaks or found.leaks
            first = first or found
    whole = Report("all", 1, time.monotonic() - start, first.end, Usage.now())
    print(whole, flush=True)
    sys.exit(leaks or whole.leaks)


if __name__ == "__main__":
    main()
