from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as run
from benchmarks.suite import CASES

ROOT = Path(__file__).resolve().parents[2]


def options(output: Path, **given: object) -> argparse.Namespace:
    settings = {
        "only": None,
        "kind": None,
        "resume": False,
        "memory": "none",
        "timeout": 1.0,
        "seconds": 0.1,
        "tune": 0,
    }
    return argparse.Namespace(output=output, **settings | given)


def test_results_are_kept_in_the_suites_order_and_merged(tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    first, second, third = list(CASES)[:3]
    found = {name: {"name": name, "value": 1} for name in (third, first)}
    run.write(output, {"machine": {}, "note": "At night."}, found | {"gone": {"name": "gone"}})
    assert [case["name"] for case in json.loads(output.read_text())["cases"]] == [first, third]
    assert run.earlier(options(output)) == ({}, "")
    assert run.earlier(options(output, resume=True)) == (found, "At night.")
    assert run.earlier(options(output, only=[second])) == (found, "At night.")


def test_cases_are_chosen_by_words_and_kind(tmp_path: Path) -> None:
    names = {case.name for case in run.chosen(options(tmp_path, only=["cholesky", "tanh 1024² bf16"]))}
    assert names == {"cholesky 64²", "cholesky 256²", "tanh 1024² bf16"}
    assert {case.kind for case in run.chosen(options(tmp_path, kind="models"))} == {"models"}
    assert len(run.chosen(options(tmp_path))) == len(CASES)


def test_a_failing_case_is_part_of_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> object:
        raise subprocess.TimeoutExpired("case", 1)

    monkeypatch.setattr(run.subprocess, "run", fail)
    found = run.measure(CASES["matmul 256³"], options(tmp_path))
    assert found["error"] == "took longer than 1 s"
    assert run.said(found, 1.0) == "took longer than 1 s"


def test_the_reason_of_a_crash_is_its_error_without_notes() -> None:
    traceback = 'Traceback (most recent call last):\n  File "x.py"\nhloforge.errors.ArgumentError: no\nnote: do that'
    assert run.reason(traceback) == "hloforge.errors.ArgumentError: no"
    assert run.reason("Killed") == "Killed"
    assert run.reason("") == ""


def test_the_line_of_progress_tells_what_is_wrong() -> None:
    found = {
        "latency": {"hloforge": {"median": 2.0}, "xla": {"median": 1.0}},
        "agrees": {"hloforge": True, "plain": False},
        "failures": {"torch": "no such operation"},
    }
    assert run.said(found, 3.0) == "2.00 of XLA's time, torch fails, plain differs from XLA (3 s)"


@pytest.mark.slow
def test_the_harness_end_to_end(tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    words = ["--only=tanh 1024² bf16", "--seconds=0.1", "--memory=all", f"--output={output}"]
    subprocess.run([sys.executable, "-m", "benchmarks", *words], cwd=ROOT, check=True, timeout=300)
    (found,) = json.loads(output.read_text())["cases"]
    assert {"hloforge", "xla", "plain local-sync", "plain local-task"} <= found["latency"].keys()
    assert found["agrees"]["hloforge"] is True
    assert found["throughput"]["hloforge"].keys() == {"1", "2", "4"}
    assert found["cached_seconds"] < found["compile_seconds"]["hloforge"]
    assert found["memory"]["xla"]["process"] > 0
