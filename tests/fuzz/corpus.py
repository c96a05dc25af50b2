"""Findings on disk: the program with its arguments, what is wrong, and what ``hloforge bisect`` makes of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np

from hloforge.runtime.debug.oracle import outlined
from hloforge.runtime.debug.reproducer import self_contained
from hloforge.runtime.session.convention import leaf_values
from tests.fuzz.examine import Outcome, joined
from tests.fuzz.generator import Case, case_of


def keep(folder: Path, outcome: Outcome, made: Callable[[int], Case] = case_of) -> Path:
    """Write ``SEED.mlir``, which ``hloforge verify`` and ``bisect`` take, and ``SEED.json``; the path of the former.

    Args:
        made: the program of a seed.
    """
    cases = [made(seed) for seed in outcome.seeds]
    program, arguments = (cases[0].program, cases[0].arguments) if len(cases) == 1 else joined(cases)
    stem = "-".join(map(str, outcome.seeds[:1] + outcome.seeds[1:][-1:]))
    leaves = [np.asarray(leaf) for leaf in leaf_values(program.signature, tuple(arguments))]
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{stem}.mlir"
    place.write_text(self_contained(program, leaves, [f"{outcome.kind}: {outcome.message}"]))
    (folder / f"{stem}.json").write_text(json.dumps(asdict(outcome), indent=1) + "\n")
    return place


def bisected(place: Path, budget: float) -> str:
    """Shrink a finding to ``SEED.bisected.mlir``; the report, also in ``SEED.txt``."""
    small = place.with_suffix(".bisected.mlir")
    command = [sys.executable, "-m", "hloforge.tools.main", "bisect", place, "-o", small, f"--budget={budget:g}"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    place.with_suffix(".txt").write_text(done.stdout + done.stderr)
    return done.stdout or done.stderr


def likeness(outcome: Outcome) -> str:
    """Equal for findings that fail alike; differences are each of their own."""
    return outlined(f"{outcome.kind} {outcome.message}")[:300] if outcome.kind != "differs" else str(outcome.seeds)
