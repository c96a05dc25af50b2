"""Random programs against both reference engines: ``python -m tests.fuzz --count=1000 --seed=0 --corpus=DIR``."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.fuzz.corpus import bisected, keep, likeness
from tests.fuzz.examine import Examiner, Outcome
from tests.fuzz.generator import Case, case_of


def batches(seeds: range, size: int) -> Iterator[list[Case]]:
    """The cases of seeds, several together except those that are alone."""
    waiting: list[Case] = []
    for seed in seeds:
        case = case_of(seed)
        if case.is_alone:
            yield [case]
            continue
        waiting.append(case)
        if len(waiting) == size:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def campaign(seeds: range, size: int, deadline: float, target: str) -> Iterator[Outcome]:
    """What becomes of the programs of all seeds."""
    with Examiner(target, deadline) as examiner:
        for cases in batches(seeds, size):
            yield from examiner.outcomes(cases)


def _told(outcome: Outcome, corpus: Path | None, budget: float) -> None:
    print(f"{outcome.seeds}: {outcome.kind}: {outcome.message[:400]}", flush=True)
    if corpus is not None:
        place = keep(corpus, outcome)
        if budget:
            print(bisected(place, budget), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="of the first one; each has the next")
    parser.add_argument("--together", type=int, default=12, help="programs in one compilation")
    parser.add_argument("--deadline", type=float, default=120, help="seconds for each compilation, run and evaluation")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--corpus", type=Path, help="where findings go")
    parser.add_argument("--bisect", type=float, default=0, metavar="SECONDS", help="shrink each finding, so long")
    asked = parser.parse_args()
    os.environ.setdefault("HLOFORGE_CACHE_DIR", "")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    counts: Counter[str] = Counter()
    alike: Counter[str] = Counter()
    last, started = asked.seed - 1, time.monotonic()
    seeds = range(asked.seed, asked.seed + asked.count)
    with suppress(KeyboardInterrupt):
        for outcome in campaign(seeds, asked.together, asked.deadline, asked.target):
            last = max(last, *outcome.seeds)
            if len(outcome.seeds) == 1:
                counts[outcome.kind] += 1
            # The CPU refuses nothing; GPUs refuse what their tables give a reason for.
            is_limit = outcome.kind == "refused" and not asked.target.startswith("cpu")
            if outcome.is_finding and not is_limit:
                key = likeness(outcome)
                alike[key] += 1
                _told(outcome, asked.corpus, asked.bisect if alike[key] == 1 else 0)
    summary = {
        "seeds": [asked.seed, last],
        "programs": sum(counts.values()),
        "counts": dict(counts),
        "different_findings": len(alike),
        "seconds": round(time.monotonic() - started),
    }
    print(json.dumps(summary))
    if asked.corpus is not None:
        asked.corpus.mkdir(parents=True, exist_ok=True)
        with (asked.corpus / "campaigns.jsonl").open("a") as file:
            file.write(json.dumps(summary) + "\n")
    return 1 if alike else 0


if __name__ == "__main__":
    sys.exit(main())
