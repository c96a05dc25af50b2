"""Run the programs that ship with JAX through hloforge, against JAX's CPU backend: ``python -m tests.jax.harnesses``.

Programs run in child processes, several in one compilation; a child that crashes or takes too long costs its programs
one more run, each by itself. What is expected to fail stands in ``expected_failures.txt``, strictly.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from queue import Empty, Queue
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
EXPECTED = Path(__file__).with_name("expected_failures.txt")
# Seconds for one program, and for starting a child.
_TIMEOUT = 120.0
_START = 120.0
_SAMPLE = 60

Verdict = dict[str, str]


def all_names() -> list[str]:
    """The names of all cases, in order, from a child: this process does not import JAX."""
    code = "import json; from tests.jax.cases import cases; print(json.dumps(list(cases())))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=_environment(), capture_output=True, check=True)
    names: list[str] = json.loads(done.stdout.splitlines()[-1])
    return names


def sample(names: Sequence[str], count: int = _SAMPLE) -> list[str]:
    """As many names, from as many operations as there are, the same each time."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault("_".join(name.split("_")[:2]), []).append(name)
    firsts = [group[len(group) // 2] for group in groups.values()]
    step = max(1, len(firsts) // count)
    return firsts[::step][:count]


def expected_failures() -> dict[str, tuple[str, str]]:
    """Stage and reason by name."""
    lines = [line for line in EXPECTED.read_text().splitlines() if line and not line.startswith("#")]
    fields = [line.split(": ", 2) for line in lines]
    return {name: (stage, reason) for name, stage, reason in fields}


def _environment() -> dict[str, str]:
    # With threads of its own, OpenBLAS of scipy, which JAX calls from several threads, waits for ever now and then.
    fixed = {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1", "HLOFORGE_CACHE_DIR": "", "OPENBLAS_NUM_THREADS": "1"}
    return os.environ | fixed


class _Child:
    """A process that judges cases."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.jax.harness_child"],
            cwd=ROOT,
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._fresh = True

    def judge(self, names: Sequence[str]) -> tuple[list[Verdict], str]:
        """Verdicts, and how the child failed, if it did: ``crash`` or ``timeout``."""
        assert self._process.stdin and self._process.stdout
        limit = _TIMEOUT * len(names) + (_START if self._fresh else 0)
        self._fresh = False
        try:
            self._process.stdin.write(json.dumps(list(names)).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return [], "crash"
        verdicts = []
        for line in self._lines(self._process.stdout, limit):
            if line is None:
                self.close()
                return verdicts, "timeout"
            verdict = json.loads(line)
            if not verdict:
                return verdicts, ""
            verdicts.append(verdict)
        self.close()
        return verdicts, "crash"

    def _lines(self, stream: IO[bytes], limit: float) -> Iterator[bytes | None]:
        while True:
            # The child flushes line by line, so that what is not ready is not in Python's buffer either.
            if not stream.peek(0) and not select.select([stream], [], [], limit)[0]:  # type: ignore[attr-defined]
                yield None
                return
            line = stream.readline()
            if not line:
                return
            yield line

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def judge(names: Iterable[str], *, jobs: int = 1, batch: int = 1) -> Iterator[Verdict]:
    """Verdicts in the order in which they come."""
    names = list(names)
    work: Queue[list[str]] = Queue()
    for start in range(0, len(names), batch):
        work.put(names[start : start + batch])
    done: Queue[Verdict] = Queue()
    for _ in range(jobs):
        threading.Thread(target=_work, args=(work, done), daemon=True).start()
    for _ in names:
        yield done.get()


def _work(work: Queue[list[str]], done: Queue[Verdict]) -> None:
    child = _Child()
    while True:
        try:
            names = work.get_nowait()
        except Empty:
            child.close()
            return
        verdicts, failure = child.judge(names)
        if failure:
            child = _Child()
        for verdict in verdicts:
            done.put(verdict)
        left = [name for name in names if name not in {verdict["name"] for verdict in verdicts}]
        if len(names) == 1:
            for name in left:
                done.put({"name": name, "stage": failure, "reason": ""})
        else:
            for name in left:
                work.put([name])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a pattern that names contain")
    parser.add_argument("--sample", type=int, default=0, help="so many of them, spread")
    parser.add_argument("--every", type=int, default=1, help="every n-th of them")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--batch", type=int, default=16, help="programs in one compilation")
    parser.add_argument("--log", type=Path, help="append verdicts there, and leave out what is there already")
    options = parser.parse_args()
    names = [name for name in all_names() if re.search(options.only, name)][:: options.every]
    names = sample(names, options.sample) if options.sample else names
    names.sort(key=_program)
    known = expected_failures()
    before = _logged(options.log)
    verdicts = [before[name] for name in names if name in before]
    for verdict in judge([name for name in names if name not in before], jobs=options.jobs, batch=options.batch):
        verdicts.append(verdict)
        if options.log:
            with options.log.open("a") as stream:
                stream.write(json.dumps(verdict) + "\n")
        if complaint := complaint_of(verdict, known):
            print(complaint, flush=True)
    print(dict(Counter(verdict["stage"] for verdict in verdicts)))
    return int(any(complaint_of(verdict, known) for verdict in verdicts))


def _program(name: str) -> str:
    """Names that differ in what is asked of another converter are of one program, which children compile once."""
    return re.sub("_enablexla_(True|False)", "", name)


def _logged(path: Path | None) -> dict[str, Verdict]:
    if path is None or not path.exists():
        return {}
    verdicts = map(json.loads, path.read_text().splitlines())
    return {verdict["name"]: verdict for verdict in verdicts}


def complaint_of(verdict: Verdict, known: dict[str, tuple[str, str]]) -> str:
    """What is unexpected about a verdict; empty if nothing is."""
    name, stage = verdict["name"], verdict["stage"]
    wanted = known[name][0] if name in known else "passed"
    if stage in (wanted, "skipped") and not (stage == "skipped" and name in known):
        return ""
    return f"{name}: {stage} instead of {wanted}: {verdict['reason']}"


if __name__ == "__main__":
    sys.exit(main())
