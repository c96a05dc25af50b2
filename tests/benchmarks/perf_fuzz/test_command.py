from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hloforge
from benchmarks.__main__ import ROOT
from benchmarks.perf_fuzz import __main__ as command, children
from benchmarks.perf_fuzz.one_program import nan_share, wrongness
from benchmarks.perf_fuzz.programs import kind_of
from hloforge.dialect import ops


def test_seeds() -> None:
    assert command.seeds_of("0:3,7") == [0, 1, 2, 7]
    with pytest.raises(ValueError, match="invalid"):
        command.seeds_of("many")


def test_kinds_and_families_are_asked_for() -> None:
    assert list(command.asked_for([4, 5], [])) == [(4, kind_of(4)), (5, kind_of(5))]
    assert list(command.asked_for([4], ["mlp", "adam"])) == [(4, "adam"), (4, "mlp")]
    assert {"gru", "lstm"} <= {name for _, name in command.asked_for([4], ["recurrences"])}


def test_a_child_that_crashes_or_hangs_says_what_it_was_at() -> None:
    def child(code: str, timeout: float = 60) -> dict[str, Any]:
        lines = f"import os, time, json; print(json.dumps(dict(stage='judging')), flush=True); {code}"
        return children.run([sys.executable, "-c", lines], timeout, {"GIVEN": "1"})

    assert child("os.abort()") == {"error": "ended by SIGABRT", "stage": "judging"}
    assert child("time.sleep(60)", 2.0) == {"error": "took longer than 2 s", "stage": "judging"}
    assert child("raise ValueError('no')") == {"error": "ValueError: no", "stage": "judging"}
    assert child("pass")["stage"] == "judging"
    assert child("print(json.dumps(dict(value=os.environ['GIVEN'])))") == {"value": "1"}


def test_what_is_not_a_number() -> None:
    assert nan_share((np.ones(3), (np.array([np.nan, 1]), np.arange(3)))) == 0.5
    assert nan_share((np.array([1j * np.nan]),)) == 1.0
    assert nan_share(()) == 0.0


def test_what_is_wrong() -> None:
    with hloforge.Builder("sum") as builder:
        x = builder.parameter(0, "f32[100]", "x")
        program = builder.build((x + x, ops.convert_element_type(x, "s32")))
    given = np.linspace(1, 50, 100, dtype=np.float32)
    right = (given + given, given.astype(np.int32))

    def judged(*results: Any, share: float = 0.0) -> str:
        return wrongness(program, [given], tuple(results), right, share)

    other = right[1].copy()
    other[:2] += 1
    assert judged(*right) == ""
    assert judged(right[0] * np.float32(1 + 1e-6), right[1]) == ""
    assert "100 of 100 elements differ" in judged(right[0] * np.float32(1.01), right[1])
    assert "2 of 100 elements differ" in judged(right[0], other)
    assert judged(right[0], other, share=0.02) == ""
    assert "2 of 100 elements differ" in judged(right[0], other, share=0.001)
    assert "got 3xf32, want 100xf32" in judged(right[0][:3], right[1], share=1.0)


def settings(path: Path, **given: Any) -> argparse.Namespace:
    fixed = {"seconds": 0.1, "timeout": 60, "budget": None, "again": 0, "note": "", "resume": False, "kind": []}
    return argparse.Namespace(**(fixed | {"seeds": [0, 1], "output": path, "environment": {}} | given))


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, made = tmp_path / "out.json", []

    def measured(seed: int, name: str, _: argparse.Namespace) -> dict[str, Any]:
        made.append(seed)
        if len(made) == 2:
            raise KeyboardInterrupt
        return {"seed": seed, "kind": name, "family": "f", "form": "plain", "error": "no", "spent": 1.0}

    monkeypatch.setattr(command, "measure", measured)
    assert [found["seed"] for found in command.run(settings(path), path)] == [0]
    assert [found["seed"] for found in command.run(settings(path, resume=True), path)] == [0, 1]
    assert made == [0, 1, 1]
    assert len(json.loads(path.read_text())["programs"]) == 2
    with pytest.raises(SystemExit, match="another file"):
        command.run(settings(path, resume=True, environment={"A": "b"}), path)
    assert command.run(settings(path, budget=-1.0), path) == []


@pytest.mark.slow
def test_one_program_end_to_end(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    words = ["--seeds=3", "--kind=adam", "--kind=rnn", "--seconds=0.1", "--again=0", f"--output={path}"]
    command_line = [sys.executable, "-m", "benchmarks.perf_fuzz", *words]
    done = subprocess.run(command_line, cwd=ROOT, check=False, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| time of a call / XLA | 2 |" in done.stdout
    adam, rnn = json.loads(path.read_text())["programs"]
    assert (adam["kind"], rnn["kind"]) == ("adam", "rnn")
    for found in (adam, rnn):
        assert found["wrong"] == ""
        assert found["latency"].keys() == found["compile_seconds"].keys() == {"hloforge", "xla"}
        assert found["cached_seconds"] > 0
