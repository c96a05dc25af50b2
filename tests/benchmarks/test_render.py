from __future__ import annotations

from typing import Any

import pytest

from benchmarks import render, tables
from benchmarks.suite import CASES as SUITE


def case(name: str, ours: float, plain: float | None, xla: float, **more: Any) -> dict[str, Any]:
    def latency(value: float) -> dict[str, float]:
        return {"low": 0.9 * value, "median": value, "high": 1.1 * value, "samples": 9, "cpu": 2 * value}

    latencies = {"hloforge": latency(ours), "xla": latency(xla)}
    if plain:
        latencies |= {"plain local-task": latency(2 * plain), "plain local-sync": latency(plain)}
    found = {
        "name": name,
        "kind": "kernels",
        "latency": latencies,
        "ratio": {"xla": {"low": 0.9 * ours / xla, "high": 1.1 * ours / xla}},
        "compile_seconds": {"hloforge": 1.0, "plain local-sync": 0.8, "xla": 0.1},
        "cached_seconds": 0.01,
        "first_call": {"hloforge": 2e-3, "xla": 3e-3},
        "throughput": {"hloforge": {"1": 5.0, "2": 20.0, "4": 1e4}, "xla": {"1": 5e3, "2": 2e3, "4": 1e3}},
        "load": 0.5,
    }
    return found | more


CASES = [case("fast", 1e-6, 2e-6, 4e-6), case("slow", 4e-3, None, 1e-3, failures={"plain": "iree-compile fails"})]
RESULTS: dict[str, Any] = {
    "machine": {"processor": "P", "architecture": "x86_64", "cores": 2, "date": "2026-01-01", "versions": {"a": "1"}},
    "cases": [*CASES, case("network", 1.0, None, 2.0, kind="models")],
    "overhead": {"hloforge": {"median": 1e-5}},
}


def test_ratios_take_the_better_plain_device() -> None:
    assert tables.ratio(CASES[0], "plain") == pytest.approx(0.5)
    assert tables.ratio(CASES[1], "plain") is None


def test_each_kind_has_rows_of_its_own() -> None:
    lines = render.summary(RESULTS).splitlines()[2:]
    assert lines == [
        "| kernels / XLA's CPU client | 2 | 1.00 | 4.00 (slow) | 0.25 (fast) |",
        "| kernels / XLA's CPU client, processor time | 2 | 1.00 | 4.00 (slow) | 0.25 (fast) |",
        "| kernels / plain IREE | 1 | 0.50 | 0.50 (fast) | 0.50 (fast) |",
        "| models / XLA's CPU client | 1 | 0.50 | 0.50 (network) | 0.50 (network) |",
        "| models / XLA's CPU client, processor time | 1 | 0.50 | 0.50 (network) | 0.50 (network) |",
    ]


def test_calls_of_the_host_are_a_table_where_they_were_measured() -> None:
    assert "function of the host" not in render.document(RESULTS, {})
    overhead = {"callback": {"median": 2e-5}, "xla callback": {"median": 2e-4}}
    lines = render.document(RESULTS | {"overhead": overhead}, {}).splitlines()
    assert "| hloforge, a Python function of numpy arrays | 20 µs |" in lines
    assert "| JAX on XLA's CPU client, `jax.pure_callback` | 200 µs |" in lines


def test_several_devices_are_a_section_where_they_were_measured() -> None:
    assert "## Several devices" not in render.document(RESULTS | {"replicas": {"error": "no memory"}}, {})
    found = {"all_reduce threads": {"median": 0.05}, "all_reduce mpi4py": {"median": 0.06}}
    lines = render.document(RESULTS | {"replicas": found}, {}).splitlines()
    assert "| all_reduce of 64 MB of f32, two threads | 50 ms |" in lines
    assert "| mpi4py's `Allreduce` of numpy arrays, two processes | 60 ms |" in lines


def test_scaling_is_stated_where_its_steps_were_measured() -> None:
    found = {
        "step replicas": {"median": 0.02, "cpu": 0.04},
        "step one core": {"median": 0.03, "cpu": 0.03},
        "step one core, half": {"median": 0.016},
    }
    lines = render.several_devices({"replicas": found}).splitlines()
    assert "| strong scaling | 30 ms | 20 ms | 1.50 | 0.75 | 0.75 |" in lines
    assert "| weak scaling | 16 ms | 20 ms | 1.60 | 0.80 | – |" in lines
    assert not render.scaling({"step replicas": {"median": 0.02}})


def test_tuned_forms_have_rows_of_their_own() -> None:
    tuned = case("tuned", 1.0, None, 2.0)
    tuned["latency"]["tuned"] = {"low": 0.5, "median": 0.5, "high": 0.5, "samples": 9}
    lines = render.summary(RESULTS | {"cases": [tuned]}).splitlines()[2:]
    assert lines == [
        "| kernels / XLA's CPU client | 1 | 0.50 | 0.50 (tuned) | 0.50 (tuned) |",
        "| kernels / XLA's CPU client, processor time | 1 | 0.50 | 0.50 (tuned) | 0.50 (tuned) |",
        "| kernels, tuned / XLA's CPU client | 1 | 0.25 | 0.25 (tuned) | 0.25 (tuned) |",
        "| kernels / tuned | 1 | 2.00 | 2.00 (tuned) | 2.00 (tuned) |",
    ]


def test_a_busy_machine_is_told() -> None:
    busy = [one | {"load": 9.0} for one in CASES]
    assert "Other work" in render.quiet_line(RESULTS | {"cases": busy})
    assert "Other work" not in render.quiet_line(RESULTS)
    assert render.quiet_line({"machine": {}, "cases": [], "note": "At night."}) == "At night."


def test_rows_say_what_failed_and_what_is_wrong() -> None:
    wrong = case("wrong", 1e-3, 1e-3, 1e-3, agrees={"hloforge": True, "plain": False})
    rows = render.latency_table([CASES[1], wrong]).splitlines()[2:]
    assert rows[0] == "| slow | 4 ms | 1 ms | does not compile | – | 4.00 | 3.60–4.40 | 4.00 | – | – | – |"
    assert rows[1] == "| wrong | 1 ms | 1 ms | 1 ms ✗ | – | 1.00 | 0.90–1.10 | 1.00 | – | 1.00 | – |"


def test_throughput_compares_the_most() -> None:
    row = render.throughput_table(CASES[:1]).splitlines()[2]
    assert row == "| fast | 5.0 | 20 | 10,000 | 5,000 | 2,000 | 1,000 | 2.00 |"


def test_costs_are_those_of_the_cold_compilation_and_the_cache() -> None:
    row = render.cost_table(CASES[:1]).splitlines()[2]
    assert row == "| fast | 1 s | 800 ms | 100 ms | 1.25 | 10 ms | 2 ms | 3 ms |"


def test_slow_cases_are_explained_or_said_not_to_be() -> None:
    slower = case("slower", 5e-3, None, 1e-3)
    found = render.analysis(RESULTS | {"cases": [*CASES, slower]}, {"slow": "bound by memory", "fast": "unused"})
    assert found == "- **slower**, 5.00: not explained yet\n- **slow**, 4.00: bound by memory"


def test_explanations_name_cases() -> None:
    assert render.explanations().keys() <= SUITE.keys()


def test_skipped_and_failed_cases_are_listed_with_their_reasons() -> None:
    skipped = {"name": "absent", "kind": "dumps", "skipped": "the dump is not on this machine"}
    broken = {"name": "broken", "kind": "kernels", "error": "took longer than 9 s"}
    found = render.problems({"cases": [*CASES, skipped, broken]})
    assert found.splitlines() == [
        "- slow: plain: iree-compile fails",
        "- absent: the dump is not on this machine",
        "- broken: took longer than 9 s",
    ]
    # Cases without a latency stand in no table.
    assert render.measured({"cases": [skipped, broken]}, "kernels") == []


def test_the_document_holds_every_measured_case() -> None:
    text = render.document(RESULTS, {})
    assert "P (x86_64, 2 cores), 2026-01-01; a 1.\nLoad averages before each case: median 0.5, highest 0.5.\n" in text
    assert "| fast |" in text and "| slow |" in text and "| hloforge's `Session` | 10 µs |" in text
    assert "### Models" in text and "| network |" in text
