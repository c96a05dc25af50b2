"""A child process that judges some programs: ``python -m tests.prove.batch jax 17`` for one of them.

Each line that it prints is an outcome as JSON. A crash or a hang ends it, and not the campaign.
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, TypeAlias, cast

from tests.fuzz.examine import AGREES, Outcome
from tests.prove.generators import GENERATORS
from tests.prove.ledger import ROOT

# While a child speaks, what became of programs; its end, how it ended.
_Outcomes: TypeAlias = Generator[Outcome, None, tuple[str, str]]
# At most so many programs are compiled together.
_NEAR = 32
_interrupted = threading.Event()
_children: set[subprocess.Popen[str]] = set()


def judged(
    generator: str, seeds: Sequence[int], deadline: float, corpus: Path | None, target: str = "cpu"
) -> Iterator[Outcome]:
    """What becomes of programs, by a child process; where that ends early, by one for each half of the rest."""
    done: set[int] = set()
    ending = yield from _noted(_by_child(generator, seeds, deadline, corpus, target), done)
    left = [seed for seed in seeds if seed not in done and not _interrupted.is_set()]
    if len(left) == 1:
        yield Outcome((left[0],), *ending)
    elif left:
        # It is the first one of those whose outcome is not there, or one that is compiled with it.
        middle = min(len(left) // 2, _NEAR)
        yield from judged(generator, left[:middle], deadline, corpus, target)
        yield from judged(generator, left[middle:], deadline, corpus, target)


def interrupt() -> None:
    """End all children, also those of other threads, without a verdict."""
    _interrupted.set()
    for child in tuple(_children):
        _end(child)


def _noted(outcomes: _Outcomes, done: set[int]) -> _Outcomes:
    """The outcomes of a child, whose seeds are noted; how it ended."""
    while True:
        try:
            outcome = next(outcomes)
        except StopIteration as end:
            return end.value
        done.update(outcome.seeds)
        yield outcome


def _by_child(
    generator: str, seeds: Sequence[int], deadline: float, corpus: Path | None, target: str = "cpu"
) -> _Outcomes:
    """What a child process says while it says it; the kind and message of how it ended."""
    command = [sys.executable, "-m", "tests.prove.batch", generator, *map(str, seeds), f"--deadline={deadline:g}"]
    command.append(f"--target={target}")
    if corpus is not None:
        command.append(f"--corpus={corpus}")
    with tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
            # Memory that nothing wrote is not zero by chance.
            env=os.environ | {"MALLOC_PERTURB_": "170"},
        )  # fmt: skip
        _children.add(child)
        patience = _Patience(child, deadline + 10 * min(len(seeds), _NEAR))
        try:
            for line in cast(IO[str], child.stdout):
                patience.begin()
                with suppress(json.JSONDecodeError):
                    facts = json.loads(line)
                    yield Outcome(tuple(facts["seeds"]), facts["kind"], facts["message"])
            child.wait()
        finally:
            patience.end()
            _end(child)  # what it started and left
            _children.discard(child)
        child.wait()
        errors.seek(0)
        lines = errors.read().splitlines()
    if patience.is_over:
        # Of each thread the innermost frame.
        inner = [after.strip() for line, after in itertools.pairwise(lines) if "most recent call first" in line]
        return "hang", f"the process of the generator did not end, in {'; '.join(inner)}"
    said = (lines or [""])[-1][:300]
    how = signal.Signals(-child.returncode).name if child.returncode < 0 else f"status {child.returncode}"
    kind = "crash" if child.returncode < 0 else "error"
    return kind, f"the process of the generator ended, {how}: {said}"


class _Patience:
    """Ends a child that says nothing for so many seconds; it says before where its threads are."""

    def __init__(self, child: subprocess.Popen[str], seconds: float) -> None:
        self.child, self.seconds = child, seconds
        self.is_over = False
        self._timer: threading.Timer | None = None
        self.begin()

    def begin(self) -> None:
        self.end()
        self._timer = threading.Timer(self.seconds, self._stop)
        self._timer.start()

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _stop(self) -> None:
        self.is_over = True
        with suppress(ProcessLookupError):
            self.child.send_signal(signal.SIGUSR1)
        time.sleep(2)
        _end(self.child)


def _end(child: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.prove.batch", description=__doc__)
    parser.add_argument("generator", choices=sorted(GENERATORS))
    parser.add_argument("seeds", type=int, nargs="+")
    parser.add_argument("--deadline", type=float, default=120, help="seconds for each compilation, run and evaluation")
    parser.add_argument("--corpus", type=Path, help="a folder for the programs of findings")
    parser.add_argument("--target", default="cpu", help="what programs are compiled for")
    asked = parser.parse_args()
    os.environ.setdefault("HLOFORGE_CACHE_DIR", "")
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    generator = GENERATORS[asked.generator]
    wrong = False
    for outcome in generator.outcomes(asked.seeds, asked.deadline, asked.target):
        wrong |= outcome.is_finding
        print(json.dumps(asdict(outcome)), flush=True)
        if outcome.is_finding and asked.corpus is not None:
            try:
                generator.keep(asked.corpus / asked.generator, outcome)
            except Exception:
                traceback.print_exc()
    return 0


__all__ = ["AGREES", "judged"]

if __name__ == "__main__":
    sys.exit(main())
