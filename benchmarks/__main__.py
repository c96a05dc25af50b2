"""``python -m benchmarks``: measures every case in a process of its own, writes the JSON and renders the tables."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import render
from benchmarks.case import CASES
from benchmarks.kernels import Kernel
from benchmarks.models import Model
from benchmarks.render import RESULTS
from hloforge.runtime.manifest import tool_versions

ROOT = Path(__file__).resolve().parents[1]


def child(arguments: Sequence[str], timeout: float) -> dict[str, Any]:
    """The JSON that a case prints, or ``{"error": …}``."""
    command = [sys.executable, "-m", "benchmarks.case", *arguments]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"took longer than {timeout:g} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {"error": lines[-1][:160] if lines else f"ended with status {done.returncode}"}
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def measure(case: Kernel | Model, options: argparse.Namespace) -> dict[str, Any]:
    """Everything about one case."""
    found = {"name": case.name, "kind": "model" if isinstance(case, Model) else "kernel"}
    if isinstance(case, Model) and case.missing():
        return found | {"skipped": case.missing()}
    found |= child([case.name, f"--seconds={options.seconds}"], options.timeout)
    if options.memory and "error" not in found:
        engines = ("hloforge", "plain", "xla")
        found["memory"] = {name: child([case.name, f"--memory={name}"], options.timeout) for name in engines}
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


def chosen(options: argparse.Namespace) -> list[Kernel | Model]:
    cases = [case for case in CASES.values() if options.only is None or options.only in case.name]
    kinds = {"kernels": Kernel, "models": Model}
    return [case for case in cases if options.kind is None or isinstance(case, kinds[options.kind])]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", help="cases whose name holds this text")
    parser.add_argument("--kind", choices=["kernels", "models"], help="one kind of case alone")
    parser.add_argument("--seconds", type=float, default=2.0, help="of calls for each case")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one process")
    parser.add_argument("--no-memory", dest="memory", action="store_false", help="leave out the memory measurements")
    parser.add_argument("--output", type=Path, default=RESULTS, help="the JSON; other than the default renders nothing")
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": machine(), "cases": []}
    for case in chosen(options):
        print(case.name, end=" … ", file=sys.stderr, flush=True)
        found = measure(case, options)
        results["cases"].append(found)
        print(found.get("skipped") or found.get("error") or "done", file=sys.stderr)
    results["overhead"] = child(["overhead", f"--seconds={options.seconds}"], options.timeout)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    if options.output == RESULTS:
        render.main()
        print("wrote benchmarks/results/latest.json, docs/benchmarks.md and the README's tables", file=sys.stderr)


if __name__ == "__main__":
    main()
