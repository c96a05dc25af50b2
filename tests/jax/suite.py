"""Run JAX's own tests on hloforge beside JAX's CPU: ``make jax-suite JAX_TESTS=<a checkout of JAX at the right tag>``.

The tests are read from the checkout; nothing of them is kept here except names and verdicts. Each file has a child
process for each backend. A test runs on JAX's CPU first, and on hloforge if it passed there. A crash or an endless test
costs that test alone: its child is replaced. Verdicts are appended to a log, and a second run goes on where the first
one ended. ``suite_differences.txt`` lists what is known to differ, with causes; the exit status tells of the others.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import queue
import random
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KNOWN = Path(__file__).with_name("suite_differences.txt")
LOG = ROOT / "build" / "jax-suite.jsonl"
_CHILD = Path(__file__).with_name("suite_child.py")
BACKENDS = ("cpu", "hloforge")
# Seconds in which a file is loaded, and a test ends.
_START, _TIMEOUT = 180.0, 120.0
# On a busy machine both backends are slow: hloforge may take so many times what the CPU took.
_PATIENCE = 5
_CAUSE = 110


@dataclass(frozen=True)
class Verdict:
    """What became of a test on a backend: ``passed``, ``skipped``, ``failed``, ``crashed`` or ``timeout``."""

    file: str
    name: str
    backend: str
    stage: str
    reason: str = ""
    seconds: float = 0.0

    @property
    def key(self) -> str:
        return f"{self.file}::{self.name}"


def environment(backend: str, *, x64: bool = False) -> dict[str, str]:
    """Of a child. hloforge has the CPU's name: tests skip on platforms that they do not know."""
    fixed = {
        "JAX_PLATFORMS": "cpu",
        "HLOFORGE_JAX_PLATFORM": "cpu" if backend == "hloforge" else "hloforge",
        "JAX_ENABLE_X64": str(int(x64)),
        "HLOFORGE_CACHE_DIR": "",
        "OPENBLAS_NUM_THREADS": "1",
    }
    return os.environ | fixed


class Child:
    """A process that has loaded one file for one backend.

    Args:
        path: the file of tests.
        backend: a platform of JAX.
        timeout: seconds for one test.
    """

    def __init__(self, path: Path, backend: str, *, x64: bool = False, timeout: float = _TIMEOUT) -> None:
        self._path, self._backend, self._x64, self._timeout = path, backend, x64, timeout
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str | None] = queue.Queue()
        self.names: list[str] = []

    def load(self) -> str:
        """Start the process, which lists the file's tests in ``names``; returns why it failed, if it did."""
        self._process = subprocess.Popen(
            [sys.executable, str(_CHILD), str(self._path)],
            cwd=self._path.parent,
            env=environment(self._backend, x64=self._x64),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._lines = queue.Queue()
        threading.Thread(target=_read, args=(self._process, self._lines), daemon=True).start()
        names = []
        while True:
            line, failure = self._next(_START)
            if line is None:
                return failure
            name = json.loads(line)
            if not name:
                self.names = names
                return ""
            names.append(name)

    def run(self, name: str, beside: float = 0.0) -> Verdict:
        """The verdict of one test, which the other backend passed in some seconds."""
        file = self._path.name
        if self._process is None and (failure := self.load()):
            return Verdict(file, name, self._backend, failure, "the file cannot be loaded")
        assert self._process and self._process.stdin
        try:
            self._process.stdin.write(json.dumps(name) + "\n")
            self._process.stdin.flush()
            line, failure = self._next(max(self._timeout, _PATIENCE * beside))
        except BrokenPipeError:
            line, failure = None, "crashed"
        if line is None:
            status = self.close()
            return Verdict(file, name, self._backend, failure, f"the process ended with {status}")
        return Verdict(file=file, backend=self._backend, **json.loads(line))

    def _next(self, seconds: float) -> tuple[str | None, str]:
        try:
            return self._lines.get(timeout=seconds), "crashed"
        except queue.Empty:
            return None, "timeout"

    def close(self) -> int | None:
        """End the process; returns the exit status it had by itself, if any."""
        if self._process is None:
            return None
        process, self._process = self._process, None
        status = process.poll()
        process.kill()
        process.wait()
        return status if status is not None else process.returncode


def _read(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert process.stdout
    for line in process.stdout:
        lines.put(line)
    process.wait()
    lines.put(None)


def chosen(file: str, names: Sequence[str], *, only: str, each: int, seed: int) -> list[str]:
    """The tests of a file that ``only`` matches, at most ``each`` of them (all if 0): the same ones for a seed."""
    fitting = [name for name in names if re.search(only, f"{file}::{name}")]
    if not each or len(fitting) <= each:
        return fitting
    picked = set(random.Random(f"{seed} {file}").sample(fitting, each))
    return [name for name in fitting if name in picked]


def judge(path: Path, before: dict[tuple[str, str], Verdict], options: argparse.Namespace) -> Iterator[Verdict]:
    """The verdicts of a file's tests that ``before`` lacks."""
    children = {name: Child(path, name, x64=options.x64, timeout=options.timeout) for name in BACKENDS}
    cpu = children["cpu"]
    try:
        if failure := cpu.load():
            yield Verdict(path.name, "", "cpu", failure, "the file cannot be loaded")
            return
        for name in chosen(path.name, cpu.names, only=options.only, each=options.each, seed=options.seed):
            key = f"{path.name}::{name}"
            on_cpu = before.get((key, "cpu"))
            if on_cpu is None:
                on_cpu = cpu.run(name)
                yield on_cpu
            if on_cpu.stage == "passed" and (key, "hloforge") not in before:
                yield children["hloforge"].run(name, on_cpu.seconds)
    finally:
        for child in children.values():
            child.close()


def known_differences() -> dict[str, str]:
    """The cause by ``file::Class.method``."""
    lines = [line for line in KNOWN.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split(": ", 1) for line in lines)


def cause(verdict: Verdict) -> str:
    """The reason without numbers and names that differ from test to test."""
    if verdict.stage in ("crashed", "timeout"):
        return verdict.stage
    text = re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?(e[-+]?\d+)?", "N", verdict.reason)
    return re.sub(r"\b[\w/.-]+\.(py|mlir):N(:N)?", "…", text)[:_CAUSE]


def report(verdicts: Iterable[Verdict]) -> tuple[list[str], int]:
    """Lines for the reader, and how many tests differ that are not known to."""
    known = known_differences()
    verdicts = list(verdicts)
    ours = [verdict for verdict in verdicts if verdict.backend == "hloforge"]
    skipped_on_cpu = sum(verdict.backend == "cpu" and verdict.stage != "passed" for verdict in verdicts)
    differing = [verdict for verdict in ours if verdict.stage != "passed"]
    lines = []
    for name, count in Counter(cause(verdict) for verdict in differing).most_common():
        lines.append(f"{count:5} {name}")
        lines += [f"        {v.key}{' (known)' if v.key in known else ''}" for v in differing if cause(v) == name]
    unexpected = [verdict for verdict in differing if verdict.key not in known]
    gone = [verdict.key for verdict in ours if verdict.stage == "passed" and verdict.key in known]
    lines += [f"passes, and is listed as a difference: {key}" for key in gone]
    stages = dict(Counter(verdict.stage for verdict in ours))
    lines.append(f"of {len(ours)} tests that pass on JAX's CPU: {stages}; {skipped_on_cpu} others do not pass there")
    return lines, len(unexpected) + len(gone)


def _files(checkout: Path, pattern: str) -> list[Path]:
    folder = checkout if checkout.name == "tests" else checkout / "tests"
    found = [path for path in sorted(folder.glob("*_test.py")) if re.search(pattern, path.name)]
    if not found:
        sys.exit(f"{folder} has no file *_test.py that '{pattern}' matches: give a checkout of JAX with JAX_TESTS=")
    return found


def _check_plugin() -> None:
    """Without the extension module each test would fail, for a reason that is none of its own."""
    if importlib.util.find_spec("hloforge.jax.plugin._pjrt") is None:
        sys.exit("the extension module of JAX's plugin is not built: pip install --force-reinstall --no-deps -e .")


def _logged(path: Path) -> dict[tuple[str, str], Verdict]:
    if not path.exists():
        return {}
    verdicts = [Verdict(**json.loads(line)) for line in path.read_text().splitlines()]
    return {(verdict.key, verdict.backend): verdict for verdict in verdicts}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="a checkout of JAX at the tag of the installed version")
    parser.add_argument("--files", default="", help="a pattern that file names contain")
    parser.add_argument("--only", default="", help="a pattern that file::Class.method contains")
    parser.add_argument("--each", type=int, default=0, help="at most so many tests of each file")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--x64", action="store_true", help="with 64-bit types")
    parser.add_argument("--timeout", type=float, default=_TIMEOUT, help="seconds for a test, at least")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--log", type=Path, default=LOG, help="where verdicts are appended and found again")
    options = parser.parse_args()
    _check_plugin()
    before = _logged(options.log)
    options.log.parent.mkdir(parents=True, exist_ok=True)
    lock = threading.Lock()
    asked: dict[tuple[str, str], Verdict] = {}

    def run(path: Path) -> None:
        for verdict in judge(path.resolve(), before, options):
            with lock, options.log.open("a") as stream:
                asked[verdict.key, verdict.backend] = verdict
                stream.write(json.dumps(asdict(verdict)) + "\n")
            if verdict.backend == "hloforge" and verdict.stage != "passed":
                print(f"{verdict.key}: {verdict.stage}: {verdict.reason[:200]}", flush=True)

    paths = _files(options.checkout, options.files)
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(run, paths))
    names = {path.name for path in paths}
    found = before | asked
    lines, unexpected = report(v for v in found.values() if v.file in names and re.search(options.only, v.key))
    print("\n".join(lines))
    return int(unexpected > 0)


if __name__ == "__main__":
    sys.exit(main())
