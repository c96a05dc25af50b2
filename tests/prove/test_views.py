"""Views and their readers on processors, on Mesa's lavapipe and on the emulated GPU, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from emulator import library
from tests import support_vulkan
from tests.cuda_emulator.marks import needs_emulator
from tests.fuzz.examine import AGREES
from tests.prove.ledger import ROOT
from tests.prove.views import PAIRS, case_of, pair

# Pairs that every run of the tests judges, fewer on devices in software; and those of the wide one.
_FEW = {"cpu": 8, "vulkan:llvmpipe": 2, "cuda:sm_90": 4}
_MANY, _AT_ONCE = 240, 24
_TARGETS: dict[str, tuple[Callable[[], dict[str, str]], list[pytest.MarkDecorator]]] = {
    "cpu": (lambda: dict(os.environ), []),
    "vulkan:llvmpipe": (support_vulkan.environment, [support_vulkan.needs_vulkan]),
    "cuda:sm_90": (library.environment, [needs_emulator]),
}


def _parts() -> list[Any]:
    parts = []
    for target, (_, marks) in _TARGETS.items():
        parts.append(pytest.param(target, range(_FEW[target]), marks=marks))
        for start in range(_FEW[target], _MANY, _AT_ONCE):
            parts.append(pytest.param(target, range(start, start + _AT_ONCE), marks=[*marks, pytest.mark.slow]))
    return parts


@pytest.mark.wide(2)
@pytest.mark.parametrize(("target", "seeds"), _parts())
def test_views_agree(target: str, seeds: range) -> None:
    environment = _TARGETS[target][0]()
    command = [sys.executable, "-m", "tests.prove.batch", "views", *map(str, seeds), f"--target={target}"]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1200)
    outcomes = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    wrong = {seed: outcome["kind"] for outcome in outcomes for seed in outcome["seeds"] if outcome["kind"] != AGREES}
    assert wrong == {}
    assert sorted(seed for outcome in outcomes for seed in outcome["seeds"]) == [*seeds], run.stderr[-2000:]


def test_seeds_are_all_pairs() -> None:
    assert len({pair(seed) for seed in range(PAIRS)}) == PAIRS
    assert pair(PAIRS) == pair(0)
    assert str(case_of(3).program) == str(case_of(3).program)
