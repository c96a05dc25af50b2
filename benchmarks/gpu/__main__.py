"""``python -m benchmarks.gpu``: what ``make gpu-check`` runs.

Each row is measured by a child process (``watched.py``); the files are written after each (``progress.py``).
"""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import hloforge
from benchmarks.gpu import conformance, kernels
from benchmarks.gpu.checking import add_options, check
from benchmarks.gpu.machine import Machine, machine
from benchmarks.gpu.progress import PARTS, Progress
from benchmarks.gpu.rows import Row
from benchmarks.gpu.watched import Watched
from benchmarks.suite import CASES
from hloforge.runtime.artifact.manifest import tool_versions


def main(arguments: Sequence[str] | None = None) -> int:
    """The check; returns the exit status: 1 where there is no device, or a result is wrong."""
    options = _options().parse_args(arguments)
    try:
        checked = machine(options.device)
    except hloforge.Error as error:
        print(f"gpu-check cannot run here: {error.message}\n{error.hint}", file=sys.stderr)
        return 1
    progress = Progress(_head(checked), options.results, options.document, budget=options.budget, resume=options.resume)
    child = Watched(["-m", "benchmarks.gpu.worker", options.device])
    try:
        check(progress, child, _questions(options), options.limit)
    finally:
        child.close()
    print(f"wrote {options.document} and {options.results}")
    return 1 if progress.is_wrong else 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    add_options(parser)
    parser.add_argument("--scale", type=int, default=1, help="divides the sizes of the kernels")
    parser.add_argument("--share", type=int, default=10, help="one of this many conformance rows")
    return parser


def _head(checked: Machine) -> dict[str, Any]:
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": asdict(checked) | {"target": str(checked.target)},
        "versions": dict(tool_versions()),
    }


def _questions(options: argparse.Namespace) -> Iterator[Row]:
    """The rows of the parts that were asked for."""
    names = {
        "kernels": [kernel.name for kernel in kernels.kernels(options.scale)],
        "programs": list(CASES),
        "conformance": conformance.rows(options.share),
    }
    for part in options.part or PARTS:
        for name in names[part]:
            if options.only in name:
                yield {"part": part, "name": name, "seconds": options.seconds, "scale": options.scale}


if __name__ == "__main__":
    sys.exit(main())
