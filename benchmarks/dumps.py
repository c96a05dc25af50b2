"""Programs of your own beside XLA's CPU client: how long a call of each file takes, and its compilation.

python -m benchmarks.dumps dumps/ model.hlo          # files, or folders of .hlo, .mlir and .pb files
python -m benchmarks.dumps dumps/ --seconds=2

XLA gets what hloforge reads of a file. Inputs are random, plausible ones. Each program has a process of its own, with
a limit of time; one that names several devices, or that either engine does not run, is told with its reason.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import hloforge
from benchmarks.engines import prepare_hloforge, prepare_xla
from benchmarks.tables import geometric_mean, seconds, table, times
from hloforge.runtime.data.plausible_inputs import plausible_inputs
from hloforge.runtime.session.convention import leaf_values
from hloforge.runtime.tuning.timing import interleaved

_SUFFIXES = frozenset({".hlo", ".mlir", ".pb"})
_MESSAGE = 160


def measured(path: str, duration: float) -> dict[str, Any]:
    """Of one program: seconds of a call and of a compilation by each engine, and the ratios of calls side by side.

    Those of the shortest calls and of processor time are what other work on the machine changes least.
    """
    # Constants whose values the text has lost are random, and no argument is given up, because calls use it again.
    program = hloforge.read(path, elided="random")
    program = replace(program, signature=replace(program.signature, aliases=()))
    program.signature.attach(program.module)
    arguments = leaf_values(program.signature, plausible_inputs(program))
    engines = {"hloforge": prepare_hloforge(program, arguments), "xla": prepare_xla(program, arguments)}
    for one in engines.values():
        one.call()
    latencies = interleaved({name: one.call for name, one in engines.items()}, duration)
    ours, theirs = latencies["hloforge"], latencies["xla"]
    return {
        "calls": [latencies[name].median for name in engines],
        "compilations": [one.compile_seconds for one in engines.values()],
        "ratio": ours.median / theirs.median,
        "shortest": min(ours.values) / min(theirs.values),
        "processor": ours.cpu / theirs.cpu,
    }


def apart(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The same in a process of its own; ``problem`` if that fails."""
    words = [sys.executable, "-m", "benchmarks.dumps", "--one", str(path), f"--seconds={options.seconds}"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=options.limit, check=False)
    except subprocess.TimeoutExpired:
        return {"problem": f"more than {options.limit:g} s"}
    lines = (done.stdout if not done.returncode else done.stderr).splitlines()
    if not done.returncode and lines:
        found: dict[str, Any] = json.loads(lines[-1])
        return found
    said = [line for line in lines if "rror" in line] or lines or [f"exit status {done.returncode}"]
    return {"problem": said[-1].strip()[:_MESSAGE]}


def _ratios(found: dict[str, Any]) -> str:
    return " ".join(times(found[key]) for key in ("ratio", "shortest", "processor"))


def files(places: Sequence[Path]) -> Iterator[Path]:
    for place in places:
        yield from sorted(one for one in place.rglob("*") if one.suffix in _SUFFIXES) if place.is_dir() else [place]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dumps", description="Time programs beside XLA.")
    parser.add_argument("places", nargs="*", type=Path, metavar="FILE|FOLDER")
    parser.add_argument("--seconds", type=float, default=1.0, help="of calls of a program, of both engines together")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for a program in all")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.one, options.seconds)))
        return
    if not options.places:
        parser.error("name a program, or a folder of programs")
    rows, problems = [], []
    for path in files(options.places):
        found = apart(path, options)
        print(path.name, found.get("problem") or _ratios(found), file=sys.stderr, flush=True)
        if "problem" in found:
            problems.append(f"- {path.name}: {found['problem']}")
        else:
            rows.append((found["ratio"], path.name, found))
    rows.sort(key=lambda row: -row[0])
    header = ["program", "hloforge", "XLA", "/ XLA", "shortest", "processor", "compile", "XLA's"]
    texts = [
        [
            name,
            *map(seconds, found["calls"]),
            *(times(found[key]) for key in ("ratio", "shortest", "processor")),
            *map(seconds, found["compilations"]),
        ]
        for _, name, found in rows
    ]
    if rows:
        print(table(header, texts))
        ratios = [ratio for ratio, *_ in rows]
        print(f"\nGeometric mean of {len(ratios)}: {geometric_mean(ratios):.2f}; worst {max(ratios):.2f}.")
    print(*problems, sep="\n")


if __name__ == "__main__":
    main()
