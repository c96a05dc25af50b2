"""Programs that see an array and update it, compared bit for bit: ``python -m tests.aliasing --part=0/10``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from tests.aliasing.examine import Examiner, Finding
from tests.aliasing.programs import Form, forms

TOGETHER = 50


def bundles(chosen: Sequence[Form], size: int = TOGETHER) -> Iterator[list[Form]]:
    left = iter(chosen)
    while bundle := list(islice(left, size)):
        yield bundle


def part(number: int, of: int) -> list[Form]:
    """Every ``of``-th form."""
    return [form for place, form in enumerate(forms()) if place % of == number]


def examine(chosen: Sequence[Form], target: str = "cpu") -> Iterator[Finding]:
    with Examiner(target) as examiner:
        for bundle in bundles(chosen):
            yield from examiner.findings(bundle)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.aliasing", description=__doc__)
    parser.add_argument("--part", default="0/1", metavar="K/N", help="every N-th program, from the K-th on")
    parser.add_argument("--start", type=int, default=0, help="leave out so many programs, which ran before")
    parser.add_argument("--most", type=int, help="stop after so many programs")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--keep", type=Path, help="folder for the programs that differ")
    options = parser.parse_args()
    number, of = map(int, options.part.split("/"))
    chosen = part(number, of)[options.start :][: options.most]
    started, found = time.monotonic(), 0
    with Examiner(options.target) as examiner:
        done = 0
        for bundle in bundles(chosen):
            for finding in examiner.findings(bundle):
                found += 1
                print(finding, flush=True)
                if options.keep:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    (options.keep / f"{found}.mlir").write_text(finding.program)
            done += len(bundle)
            print(f"{done} of {len(chosen)}: {found} wrong, {time.monotonic() - started:.0f} s", flush=True)
    return found > 0


if __name__ == "__main__":
    sys.exit(main())
