"""``python -m benchmarks.perf_fuzz --seeds 0:50``: random realistic programs beside XLA's CPU client.

A seed is a program with its arguments, the same each time. Each is compiled, judged and timed in a process of its own
(docs/perf-fuzz.md). The exit status is 1 if a program is wrong, refused, crashes or takes too long.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.__main__ import machine
from benchmarks.perf_fuzz import page, summary
from benchmarks.perf_fuzz.children import examined, write_json
from benchmarks.perf_fuzz.programs import KINDS, kind_of, program_of
from benchmarks.tables import times

_KINDS_SHOWN = 40


def seeds_of(text: str) -> list[int]:
    """``0:50``, ``7``, ``3,5,9``, or several of these. Raises ValueError for anything else."""
    found: list[int] = []
    for part in text.split(","):
        first, colon, last = part.partition(":")
        found += range(int(first), int(last)) if colon else [int(first)]
    return found


def asked_for(seeds: list[int], words: list[str]) -> Iterator[tuple[int, str]]:
    """Seeds with their kinds: of each seed the one that it draws, or all whose name or family is asked for."""
    for seed in seeds:
        if words:
            names = [name for name, kind in KINDS.items() if name in words or kind.family in words]
            yield from ((seed, name) for name in sorted(names))
        else:
            yield seed, kind_of(seed)


def earlier(options: argparse.Namespace, path: Path | None) -> dict[str, dict[str, Any]]:
    """What an interrupted run found, by seed and kind. Raises SystemExit if it ran with another environment."""
    if not options.resume or path is None or not path.is_file():
        return {}
    results = json.loads(path.read_text())
    if results["environment"] != options.environment:
        raise SystemExit(f"{path.name} was measured with the environment {results['environment']}: choose another file")
    return {key_of(found): found for found in results["programs"]}


def key_of(found: dict[str, Any]) -> str:
    return f"{found['seed']} {found['kind']}"


def measure(seed: int, name: str, options: argparse.Namespace) -> dict[str, Any]:
    """One program in a process of its own."""
    begun = time.perf_counter()
    random = program_of(seed, name)
    found = {"seed": seed, "kind": name, "family": random.kind.family, "form": random.form, "load": os.getloadavg()[0]}
    found |= examined(seed, name, seconds=options.seconds, timeout=options.timeout, environment=options.environment)
    return found | {"spent": round(time.perf_counter() - begun, 2)}


def said(found: dict[str, Any]) -> str:
    """The line of progress that a program leaves."""
    value, compiled = summary.ratio(found), summary.compile_ratio(found)
    parts = [f"{times(value)} of XLA's time, {times(compiled)} of its compile time"] if value else []
    parts += [summary.trouble(found)] if summary.trouble(found) else []
    if found.get("nan_share"):
        parts.append(f"{100 * found['nan_share']:.0f} % NaN")
    return f"{'; '.join(parts)} ({found['spent']:.0f} s)"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.perf_fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=seeds_of, default=list(range(50)), help="0:50, or 7, or 3,5,9")
    parser.add_argument("--kind", action="append", default=[], help="of this kind or family; can be repeated")
    parser.add_argument("--seconds", type=float, default=0.5, help="of calls for each program")
    parser.add_argument("--timeout", type=float, default=180, help="seconds for one process")
    parser.add_argument("--budget", type=float, help="seconds after which no further program begins")
    parser.add_argument("--again", type=int, default=2, help="how often findings are measured again; the median counts")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="a variable of the processes")
    parser.add_argument("--output", type=Path, help="the JSON, written after each program")
    parser.add_argument("--resume", action="store_true", help="leave out what the JSON has already")
    parser.add_argument("--record", action="store_true", help="benchmarks/results/perf_fuzz.json and docs/perf-fuzz.md")
    parser.add_argument("--note", default="", help="a sentence about this run, for the tables' readers")
    parser.add_argument("--show", type=int, metavar="SEED", help="print the StableHLO of a program, and run nothing")
    parser.add_argument("--kinds", action="store_true", help="list the kinds and families, and run nothing")
    options = parser.parse_args()
    unknown = [word for word in options.kind if word not in KINDS and word not in {k.family for k in KINDS.values()}]
    if unknown:
        parser.error(f"no kind or family: {', '.join(unknown)}; --kinds lists them")
    if wrong := [pair for pair in options.env if "=" not in pair]:
        parser.error(f"--env={wrong[0]}: NAME=VALUE is wanted")
    options.environment = dict(pair.split("=", 1) for pair in options.env)
    return options


def run(options: argparse.Namespace, path: Path | None) -> list[dict[str, Any]]:
    """Measure all programs, then the slow ones again; keep what there is after each."""
    programs = earlier(options, path)
    seeds = f"{min(options.seeds)} to {max(options.seeds)}"
    header = {"machine": machine(), "note": options.note, "seeds": seeds, "environment": options.environment}
    begun = time.monotonic()

    def keep(found: dict[str, Any]) -> None:
        programs[key_of(found)] = found
        if path is not None:
            write_json(path, header | {"programs": list(programs.values())})

    def is_over() -> bool:
        return options.budget is not None and time.monotonic() - begun > options.budget

    asked = [one for one in asked_for(options.seeds, options.kind) if f"{one[0]} {one[1]}" not in programs]
    with suppress(KeyboardInterrupt):
        for number, (seed, name) in enumerate(asked, 1):
            if is_over():
                break
            print(f"[{number}/{len(asked)}] {seed} {name}", end=" … ", file=sys.stderr, flush=True)
            found = measure(seed, name, options)
            keep(found)
            print(said(found), file=sys.stderr, flush=True)
        for found in summary.findings(list(programs.values())):
            while len(found.get("again", [])) < options.again and not is_over():
                print(f"again: {summary.name(found)}", end=" … ", file=sys.stderr, flush=True)
                turn = measure(found["seed"], found["kind"], options)
                found.setdefault("again", []).append(turn)
                keep(found)
                print(said(turn), file=sys.stderr, flush=True)
    return list(programs.values())


def main() -> int:
    options = parsed()
    if options.kinds:
        for name, kind in sorted(KINDS.items(), key=lambda item: (item[1].family, item[0])):
            print(f"{kind.family}: {name}")
        return 0
    if options.show is not None:
        for _, name in asked_for([options.show], options.kind):
            print(f"// {options.show} {name}: {program_of(options.show, name).label}")
            print(program_of(options.show, name).text())
        return 0
    path = page.RESULTS if options.record and options.output is None else options.output
    programs = run(options, path)
    print(summary.report(programs, kinds=_KINDS_SHOWN))
    if options.record and path is not None:
        page.main(path)
        print(f"wrote {path.name} and docs/{page.DOCUMENT.name}", file=sys.stderr)
    return 1 if any(summary.trouble(found) for found in programs) else 0


if __name__ == "__main__":
    sys.exit(main())
