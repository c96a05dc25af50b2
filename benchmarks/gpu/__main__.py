"""``python -m benchmarks.gpu``: what ``make gpu-check`` runs.

The JSON is written after each row, so that an interrupted check keeps what it has.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import hloforge
from benchmarks.gpu import conformance, kernels, measure
from benchmarks.gpu.machine import Machine, machine
from benchmarks.gpu.render import document
from benchmarks.suite import CASES
from hloforge.runtime.manifest import tool_versions

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("kernels", "programs", "conformance")


def main(arguments: Sequence[str] | None = None) -> int:
    """The check; returns the exit status: 1 where there is no device, or a result is wrong."""
    options = _options().parse_args(arguments)
    try:
        checked = machine(options.device)
    except hloforge.Error as error:
        print(f"gpu-check cannot run here: {error.message}\n{error.hint}", file=sys.stderr)
        return 1
    found = _head(checked)
    _check(checked, options, found)
    options.document.write_text(document(found))
    print(f"wrote {options.document} and {options.results}")
    return 1 if _is_wrong(found) else 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--device", default="cuda", help="cuda, or a URI of hloforge devices; local-task tries it here")
    parser.add_argument("--part", choices=PARTS, action="append", help="only these; by default all")
    parser.add_argument("--only", default="", help="programs and kernels whose name has this in it")
    parser.add_argument("--seconds", type=float, default=2.0, help="of calls for each row")
    parser.add_argument("--scale", type=int, default=1, help="divides the sizes of the kernels")
    parser.add_argument("--share", type=int, default=10, help="one of this many conformance rows")
    parser.add_argument("--document", type=Path, default=ROOT / "docs" / "gpu.md")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "gpu.json")
    return parser


def _head(checked: Machine) -> dict[str, Any]:
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": asdict(checked) | {"target": str(checked.target)},
        "versions": dict(tool_versions()),
    }


def _check(checked: Machine, options: argparse.Namespace, found: dict[str, Any]) -> None:
    """Fill in the parts that were asked for."""
    parts = options.part or PARTS

    def take(part: str, row: dict[str, Any]) -> None:
        found.setdefault(part, []).append(row)
        print(row["name"], row.get("error") or row["ratios"], flush=True)
        options.results.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")

    if "kernels" in parts:
        for kernel in kernels.kernels(options.scale):
            if options.only in kernel.name:
                take("kernels", measure.kernel_row(kernel, checked, options.seconds))
    if "programs" in parts:
        for case in CASES.values():
            if options.only in case.name:
                take("programs", measure.case_row(case, checked, options.seconds))
    if "conformance" in parts:
        found["conformance"] = conformance.conformance(checked, options.share)
        options.results.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def _is_wrong(found: dict[str, Any]) -> bool:
    failures = found.get("conformance", {}).get("failures", [])
    wrong = any(failure["stage"] == "numerics" for failure in failures)
    return wrong or any(row.get("agrees") is False for row in found.get("programs", []))


if __name__ == "__main__":
    sys.exit(main())
