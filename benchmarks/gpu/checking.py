"""The loop of a check, and its options, with hloforge or without it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from benchmarks.gpu.progress import PARTS, Progress
from benchmarks.gpu.rows import Row
from benchmarks.gpu.watched import Watched

ROOT = Path(__file__).resolve().parents[2]


def check(progress: Progress, child: Watched, questions: Iterator[Row], limit: float) -> None:
    """Ask for each row that is not there yet, while there is time."""
    for question in questions:
        part, name = question["part"], question["name"]
        if progress.has(part, name):
            continue
        seconds = progress.seconds(limit)
        if not seconds:
            progress.leave(part, name)
            continue
        row = {"name": name} | child.ask(question, seconds)
        print(part, name, row.get("error") or row.get("ratios") or row.get("stage") or "right", flush=True)
        progress.take(part, row)
    progress.write()


def add_options(parser: argparse.ArgumentParser) -> None:
    """What both kinds of check can be told."""
    parser.add_argument("--device", default="cuda", help="cuda, or a URI of hloforge devices; local-task tries it here")
    parser.add_argument("--part", choices=PARTS, action="append", help="only these; by default all")
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    parser.add_argument("--seconds", type=float, default=2.0, help="of calls for each row")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one row: one that hangs ends there")
    parser.add_argument("--budget", type=float, help="seconds for all rows; the others are named in the document")
    parser.add_argument("--resume", action="store_true", help="keep the rows of an earlier check of this device")
    parser.add_argument("--document", type=Path, default=ROOT / "docs" / "gpu.md")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "gpu.json")
