"""Random programs for as long as one likes: ``python -m tests.prove --minutes=60 --generators=jax,builder``.

It goes on where the ledger ends, and prints what is known: programs since the last finding on this state of the code.
"""

from __future__ import annotations

import argparse
import importlib.util
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.corpus import bisected
from tests.fuzz.examine import Outcome
from tests.prove.batch import interrupt, judged
from tests.prove.generators import GENERATORS, ON_DEVICES
from tests.prove.known import cause_of
from tests.prove.ledger import KNOWN, ROOT, Entry, Ledger, state, table


def entries(generator: str, outcome: Outcome, current: str) -> Iterator[Entry]:
    """The lines of the ledger for an outcome: one for each program, and one for programs that fail together alone."""
    first, *others = outcome.seeds
    verdict, cause = outcome.kind, outcome.message[:400] if outcome.kind != "agrees" else ""
    if outcome.is_finding and (known := cause_of(generator, first, outcome.kind, outcome.message)):
        verdict, cause = KNOWN, known
    yield Entry(generator, first, current, verdict, f"with {others}: {cause}" if others else cause)


def _missing(name: str) -> bool:
    needs = GENERATORS[name].needs
    return bool(needs) and importlib.util.find_spec(needs) is None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.prove", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long; 0 prints the table only")
    parser.add_argument("--generators", default=",".join(GENERATORS), help="which, in turn; all of them by default")
    parser.add_argument("--seed", type=int, default=0, help="the least seed; each generator goes on after its last one")
    parser.add_argument("--deadline", type=float, default=120, help="seconds for each compilation, run and evaluation")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "prove", help="of ledger.jsonl and findings")
    parser.add_argument("--jobs", type=int, default=1, help="child processes at a time, each of one to two cores")
    parser.add_argument("--bisect", type=float, default=0, metavar="SECONDS", help="shrink each finding, so long")
    parser.add_argument("--target", default="cpu", help="what programs are compiled for: cpu, vulkan, cuda:sm_90 …")
    asked = parser.parse_args()
    names = asked.generators.split(",")
    if unknown := [name for name in names if name not in GENERATORS]:
        parser.error(f"there is no generator {unknown[0]!r}; generators: {', '.join(GENERATORS)}")
    for name in filter(_missing, names):
        print(f"{name}: left out, because {GENERATORS[name].needs} is not installed", flush=True)
    names = [name for name in names if not _missing(name)]
    if asked.target != "cpu":
        names = [name for name in names if name in ON_DEVICES]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    current = state() + (f" for {asked.target}" if asked.target != "cpu" else "")
    campaign = _Campaign(asked, names, current)
    threads = [threading.Thread(target=campaign.run, daemon=True) for _ in range(asked.jobs)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # `timeout` sends two
        campaign.until = 0
        interrupt()
        for thread in threads:
            thread.join(10)
    print("\n".join(table(campaign.ledger, current)))
    return int(any(entry.is_finding for entry in campaign.ledger if entry.state == current))


class _Campaign:
    """Batches of programs until the time is over; each thread takes the next one."""

    def __init__(self, asked: argparse.Namespace, names: list[str], current: str) -> None:
        self.asked, self.current = asked, current
        self.ledger, self.until = Ledger(asked.folder / "ledger.jsonl"), time.monotonic() + 60 * asked.minutes
        self.following = {name: self.ledger.next_seed(name, asked.seed) for name in names}
        self._lock = threading.Lock()

    def run(self) -> None:
        asked = self.asked
        while self.following and time.monotonic() < self.until:
            name, seeds = self._next()
            for outcome in judged(name, seeds, asked.deadline, asked.folder / "findings", asked.target):
                lines = list(entries(name, outcome, self.current))
                with self._lock:
                    self.ledger.add(lines)
                if lines[0].is_finding:
                    _tell(name, outcome, asked.folder / "findings" / name, asked.bisect)

    def _next(self) -> tuple[str, range]:
        """The generator that has had the fewest programs: each gets its share, whatever its speed."""
        with self._lock:
            name = min(self.following, key=self.following.__getitem__)
            # Devices take their time: what has run is in the ledger soon.
            count = GENERATORS[name].batch if self.asked.target == "cpu" else 8
            seeds = range(self.following[name], self.following[name] + count)
            self.following[name] = seeds.stop
            return name, seeds


def _tell(name: str, outcome: Outcome, folder: Path, seconds: float) -> None:
    print(f"{name} {outcome.seeds}: {outcome.kind}: {outcome.message[:400]}", flush=True)
    print(f"  again: python -m tests.prove.batch {name} {' '.join(map(str, outcome.seeds))}", flush=True)
    place = folder / f"{outcome.seeds[0]}.mlir"
    if seconds and len(outcome.seeds) == 1 and place.exists():
        print(bisected(place, seconds), flush=True)


if __name__ == "__main__":
    sys.exit(main())
