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
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from tests.fuzz.examine import AGREES, Outcome
from tests.prove.generators import GENERATORS
from tests.prove.ledger import ROOT


def judged(
    generator: str, seeds: Sequence[int], deadline: float, corpus: Path | None, target: str = "cpu"
) -> Iterator[Outcome]:
    """What becomes of programs, by a child process; where that ends early, by one for each half of the rest."""
    outcomes, ending = _by_child(generator, seeds, deadline, corpus, target)
    yield from outcomes
    done = {seed for outcome in outcomes for seed in outcome.seeds}
    left = [seed for seed in seeds if seed not in done]
    if len(left) == 1:
        yield Outcome((left[0],), *ending)
    elif left:
        middle = len(left) // 2
        yield from judged(generator, left[:middle], deadline, corpus, target)
        yield from judged(generator, left[middle:], deadline, corpus, target)


def _by_child(
    generator: str, seeds: Sequence[int], deadline: float, corpus: Path | None, target: str = "cpu"
) -> tuple[list[Outcome], tuple[str, str]]:
    """What a child process says, and the kind and message of how it ended."""
    command = [sys.executable, "-m", "tests.prove.batch", generator, *map(str, seeds), f"--deadline={deadline:g}"]
    command.append(f"--target={target}")
    if corpus is not None:
        command.append(f"--corpus={corpus}")
    child = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        # Memory that nothing wrote is not zero by chance.
        env=os.environ | {"MALLOC_PERTURB_": "170"},
    )  # fmt: skip
    late = threading.Event()

    def stop() -> None:
        late.set()
        with suppress(ProcessLookupError):
            child.send_signal(signal.SIGUSR1)  # it says where its threads are
        time.sleep(2)
        _end(child)

    timer = threading.Timer(deadline + 10 * len(seeds), stop)
    timer.start()
    try:
        output, errors = child.communicate()
    except BaseException:
        _end(child)
        raise
    finally:
        timer.cancel()
        _end(child)  # what it started and left
    outcomes = []
    for line in output.splitlines():
        with suppress(json.JSONDecodeError):
            facts = json.loads(line)
            outcomes.append(Outcome(tuple(facts["seeds"]), facts["kind"], facts["message"]))
    if late.is_set():
        # Of each thread the innermost frame.
        lines = errors.splitlines()
        inner = [after.strip() for line, after in itertools.pairwise(lines) if "most recent call first" in line]
        return outcomes, ("hang", f"the process of the generator did not end, in {'; '.join(inner)}")
    said = (errors.strip().splitlines() or [""])[-1][:300]
    how = signal.Signals(-child.returncode).name if child.returncode < 0 else f"status {child.returncode}"
    return outcomes, (
        "crash" if child.returncode < 0 else "error",
        f"the process of the generator ended, {how}: {said}",
    )


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
