"""``python -m tests.upstream``: whether the faults of IREE that hloforge works around are still there."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hloforge.runtime.upstream.ledger import WORKAROUNDS
from tests.upstream.reproducer import FOLDER, GONE, Reproducer, Tools, judged


def main() -> int:
    """Print a table. The exit status is 1 if a fault is gone, because its workaround must be deleted then."""
    parser = argparse.ArgumentParser(prog="python -m tests.upstream", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", help="run this workaround's reproducer alone")
    another = parser.add_mutually_exclusive_group()
    another.add_argument("--compiler", metavar="PATH", type=Path, help="another iree-compile")
    another.add_argument("--iree", metavar="VERSION", help="another version of IREE, which is installed below build/")
    options = parser.parse_args()
    known = {record.name for record in WORKAROUNDS if record.reproducer}
    if unknown := sorted(set(options.only or ()) - known):
        parser.error(f"no workaround with a reproducer is called {unknown[0]!r}")
    if options.compiler is not None and not options.compiler.is_file():
        parser.error(f"{options.compiler} is no file; --compiler takes the path of iree-compile")
    tools = Tools.of(options.iree) if options.iree else Tools.found(options.compiler)
    gone = []
    for record in WORKAROUNDS:
        if not record.reproducer or (options.only and record.name not in options.only):
            continue
        outcome = judged(Reproducer.read(FOLDER / record.reproducer), tools)
        print(f"{record.name:<24} {outcome.state:<12} {outcome.seen}", flush=True)
        if outcome.state == GONE:
            gone.append(record.name)
    without = sum(not record.reproducer for record in WORKAROUNDS)
    print(f"{without} of {len(WORKAROUNDS)} workarounds have no reproducer.")
    if gone:
        print(f"These faults are gone, so delete their workarounds and records: {', '.join(gone)}")
    return bool(gone)


if __name__ == "__main__":
    sys.exit(main())
