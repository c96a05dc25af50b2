from __future__ import annotations

from typing import Any

import pytest

from benchmarks import render


def case(name: str, ours: float, plain: float | None, xla: float, **more: Any) -> dict[str, Any]:
    def latency(value: float) -> dict[str, float]:
        return {"low": 0.9 * value, "median": value, "high": 1.1 * value, "samples": 9}

    latencies = {"hloforge": latency(ours), "xla": latency(xla)}
    if plain:
        latencies |= {"plain local-task": latency(2 * plain), "plain local-sync": latency(plain)}
    return {"name": name, "kind": "kernel", "latency": latencies, "compile_seconds": {"hloforge": 1.0}} | more


CASES = [case("fast", 1e-6, 2e-6, 4e-6), case("slow", 4e-3, None, 1e-3, failures={"plain": "iree-compile fails"})]


def test_ratios_take_the_better_plain_device() -> None:
    assert render.ratio(CASES[0], "plain") == pytest.approx(0.5)
    assert render.ratio(CASES[1], "plain") is None


def test_summary_has_mean_worst_and_best() -> None:
    lines = render.summary(CASES).splitlines()
    assert lines[2] == "| latency / plain IREE | 1 | 0.50 | 0.50 (fast) | 0.50 (fast) |"
    assert lines[3] == "| latency / XLA's CPU client | 2 | 1.00 | 4.00 (slow) | 0.25 (fast) |"


def test_rows_say_what_failed_and_what_is_wrong() -> None:
    wrong = case("wrong", 1e-3, 1e-3, 1e-3, agrees={"hloforge": True, "plain": False})
    rows = render.latency_table([CASES[1], wrong]).splitlines()[2:]
    assert rows[0] == "| slow | 4 ms | 10 % | does not compile | 1 ms | – | 4.00 |"
    assert rows[1] == "| wrong | 1 ms | 10 % | 1 ms ✗ | 1 ms | 1.00 | 1.00 |"


def test_skipped_and_failed_cases_are_listed_with_their_reasons() -> None:
    skipped = {"name": "absent", "kind": "model", "skipped": "the dump is not on this machine"}
    found = render.problems({"cases": [*CASES, skipped]})
    assert found == "- slow: plain: iree-compile fails\n- absent: the dump is not on this machine"


def test_the_document_holds_every_measured_case() -> None:
    machine = {"processor": "P", "architecture": "x86_64", "cores": 2, "date": "2026-01-01", "versions": {"a": "1"}}
    overhead = {"hloforge": {"median": 1e-5}}
    text = render.document({"machine": machine, "cases": CASES, "overhead": overhead})
    assert "P (x86_64, 2 cores), 2026-01-01; a 1" in text
    assert "| fast |" in text and "| slow |" in text and "| hloforge's `Session` | 10 µs |" in text
