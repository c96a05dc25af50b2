"""``python -m benchmarks``: measures every case in a process of its own, writes the JSON and renders the tables.

The JSON is written after each case, so that an interrupted run keeps what it has: ``--resume`` goes on with it, and
``--only`` measures some cases anew and leaves the others.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import render, tables
from benchmarks.cases import KINDS, Case
from benchmarks.one_case import ENGINES
from benchmarks.render import RESULTS
from benchmarks.suite import CASES
from hloforge.runtime.artifact.manifest import tool_versions

ROOT = Path(__file__).resolve().parents[1]


def child(arguments: Sequence[str], timeout: float) -> dict[str, Any]:
    """The JSON that a case prints, or ``{"error": …}``. Its compilations find an empty cache."""
    command = [sys.executable, "-m", "benchmarks.one_case", *arguments]
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"HLOFORGE_CACHE_DIR": cache}
        try:
            done = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False, env=environment
            )
        except subprocess.TimeoutExpired:
            return {"error": f"took longer than {timeout:g} s"}
    if done.returncode:
        return {"error": reason(done.stderr) or f"ended with status {done.returncode}"}
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def reason(stderr: str) -> str:
    """The line of a traceback that says what went wrong; notes and hints may follow it."""
    lines = stderr.strip().splitlines()
    errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception)\b", line)]
    return (errors or lines or [""])[-1][:160]


def measure(case: Case, options: argparse.Namespace) -> dict[str, Any]:
    """Everything about one case; a failure is part of the result."""
    found = {"name": case.name, "kind": case.kind, "load": os.getloadavg()[0]}
    if case.needs():
        return found | {"skipped": case.needs()}
    asked = [case.name, f"--seconds={options.seconds}", f"--tune={options.tune}"]
    found |= child(asked, options.timeout + options.tune)
    if "error" not in found and (options.memory == "all" or options.memory == case.kind):
        found["memory"] = {name: child([case.name, f"--memory={name}"], options.timeout) for name in ENGINES}
    return found


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    names = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.processor(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "date": datetime.date.today().isoformat(),
        "versions": dict(tool_versions()),
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def chosen(options: argparse.Namespace) -> list[Case]:
    """The cases that the command line asks for."""
    words = options.only or [""]
    return [
        case
        for case in CASES.values()
        if any(word in case.name for word in words) and options.kind in (None, case.kind)
    ]


def earlier(options: argparse.Namespace) -> tuple[dict[str, dict[str, Any]], str]:
    """What an earlier run found, by name, where this run adds to it, and its note; without cases that are no more."""
    if not (options.resume or options.only or options.kind) or not options.output.is_file():
        return {}, ""
    found = json.loads(options.output.read_text())
    return {case["name"]: case for case in found["cases"] if case["name"] in CASES}, found.get("note", "")


def write(path: Path, results: dict[str, Any], cases: dict[str, dict[str, Any]]) -> None:
    """The JSON, in the suite's order, whole or not at all."""
    ordered = [cases[name] for name in CASES if name in cases]
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(results | {"cases": ordered}, indent=1, ensure_ascii=False) + "\n")
    temporary.replace(path)


def said(found: dict[str, Any], seconds: float) -> str:
    """The line of progress that a case leaves."""
    trouble = found.get("skipped") or found.get("error")
    if trouble:
        return trouble
    value = tables.ratio(found, "xla")
    wrong = [engine for engine, right in found["agrees"].items() if not right]
    parts = [f"{value:.2f} of XLA's time" if value else "no ratio"]
    parts += [f"{name} fails" for name in found["failures"]] + [f"{name} differs from XLA" for name in wrong]
    return f"{', '.join(parts)} ({seconds:.0f} s)"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", help="cases whose name holds this text; can be repeated")
    parser.add_argument("--kind", choices=KINDS, help="one kind of case alone")
    parser.add_argument("--resume", action="store_true", help="leave out what the JSON has already")
    parser.add_argument("--seconds", type=float, default=1.0, help="of calls for each case")
    parser.add_argument("--tune", type=float, default=0.0, help="seconds of `hloforge tune` for each case; 0 for none")
    parser.add_argument("--timeout", type=float, default=180, help="seconds for one process")
    parser.add_argument(
        "--memory", choices=["none", "all", *KINDS], default="models", help="whose peak memory is measured as well"
    )
    parser.add_argument("--note", default="", help="a sentence about this run, for the tables' readers")
    parser.add_argument("--output", type=Path, default=RESULTS, help="the JSON; other than the default renders nothing")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    cases, note = earlier(options)
    asked = [case for case in chosen(options) if not (options.resume and case.name in cases)]
    overhead = child(["overhead", "--seconds=1"], options.timeout)
    replicas = child(["replicas", "--seconds=2"], options.timeout)
    results: dict[str, Any] = {
        "machine": machine(),
        "note": options.note or note,
        "overhead": overhead,
        "replicas": replicas,
    }
    for number, case in enumerate(asked, 1):
        print(f"[{number}/{len(asked)}] {case.name}", end=" … ", file=sys.stderr, flush=True)
        start = time.perf_counter()
        cases[case.name] = measure(case, options)
        print(said(cases[case.name], time.perf_counter() - start), file=sys.stderr, flush=True)
        write(options.output, results, cases)
    if options.output == RESULTS:
        render.main()
        print(
            "wrote benchmarks/results/latest.json, docs/performance.md, docs/comparison.md and the README's table",
            file=sys.stderr,
        )


if __name__ == "__main__":
    main()
