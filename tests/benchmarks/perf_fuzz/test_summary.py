from __future__ import annotations

from typing import Any

import pytest

from benchmarks.perf_fuzz import page, summary


def found(seed: int, ours: float, theirs: float = 1.0, **more: Any) -> dict[str, Any]:
    latency = {"hloforge": {"median": ours, "cpu": ours, "best": ours / 2}, "xla": {"median": theirs, "cpu": theirs}}
    program = {"seed": seed, "kind": f"kind {seed % 2}", "family": "family", "form": "plain", "label": "plain(f32[2])"}
    compiled = {"compile_seconds": {"hloforge": 3.0, "xla": 1.0}, "cached_seconds": 0.5, "failures": {}}
    return program | compiled | {"latency": latency} | more


def failed(seed: int, **more: Any) -> dict[str, Any]:
    return {"seed": seed, "kind": "kind", "family": "family", "form": "loop"} | more


def test_a_spread() -> None:
    spread = summary.Spread.of([0.5, 2.0, 1.0, 4.0, 0.25])
    assert (spread.count, spread.median, spread.worst) == (5, 1.0, 4.0)
    assert spread.mean == pytest.approx(1.0)
    assert spread.p95 == pytest.approx(3.6)
    assert spread.cells() == ["5", "1.00", "1.00", "3.60", "4.00"]
    with pytest.raises(ValueError, match="no ratios"):
        summary.Spread.of([])


def test_a_finding_that_was_measured_again_counts_by_its_median() -> None:
    once = found(0, 1.5)
    assert summary.ratio(once) == 1.5
    again = found(0, 1.5, again=[found(0, 1.1), found(0, 1.2)])
    assert summary.ratio(again) == pytest.approx(1.2)
    assert summary.findings([once, again, found(1, 2.0), found(2, 0.4), failed(3, error="no")]) == [found(1, 2.0), once]


def test_ratios_of_programs_that_did_not_run() -> None:
    for one in (failed(1, error="ended by SIGSEGV"), failed(2, latency={"xla": {"median": 1.0}})):
        assert summary.ratio(one) is None
        assert summary.other_ratio(one, "cpu") is None
        assert summary.compile_ratio(one) is None
    assert summary.compile_ratio(found(1, 1.0)) == 3.0
    assert summary.compile_ratio(found(1, 1.0), is_cached=True) == 0.5
    assert summary.other_ratio(found(1, 3.0, 2.0), "cpu") == 1.5
    assert summary.other_ratio(found(1, 3.0, 2.0), "best") is None


def test_troubles() -> None:
    assert summary.trouble(found(0, 1.0)) == ""
    assert summary.trouble(found(0, 1.0, wrong="result f32[2]: 1 of 2")) == "wrong: result f32[2]: 1 of 2"
    assert summary.trouble(found(0, 1.0, again=[found(0, 1.0, wrong="bits")])) == "wrong: bits"
    assert summary.trouble(failed(0, error="ended by SIGSEGV", stage="timing")) == "ended by SIGSEGV (timing)"
    assert summary.trouble(failed(0, failures={"hloforge": "no", "xla": "no"})) == "fails: no"
    assert summary.trouble(failed(0, failures={"xla": "never"})) == "XLA fails: never"


def test_a_report_names_what_is_slow_and_what_fails() -> None:
    text = summary.report([found(0, 0.5), found(1, 1.6), found(2, 0.5), failed(3, error="ended by SIGSEGV", stage="x")])
    assert "| time of a call / XLA | 3 | 0.74 | 0.50 | 1.49 | 1.60 | 1 kind 1 (plain) |" in text
    assert "| kind 1 | 1 | 1.60 | 1.60 | 1.60 | 1.60 | 3.00 | 0 |" in text
    assert text.index("| kind 1 |") < text.index("| kind 0 |")
    assert "Slower than 1.3 of XLA's time (1):" in text
    assert "- 3 kind (loop): ended by SIGSEGV (x)" in text
    assert "| kind 0 |" not in summary.report([found(0, 0.5), found(1, 1.6)], kinds=1)
    assert summary.report([]) == ""


def test_the_page_keeps_what_people_wrote() -> None:
    machine = {"processor": "P", "architecture": "x86_64", "cores": 2, "date": "2030-01-01", "versions": {"iree": "3"}}
    results = {"machine": machine, "seeds": "0 to 1", "environment": {"A": "b"}, "programs": [found(0, 0.5)]}
    once = page.written("# Title\n<!-- generated:perf-fuzz -->\nold\n<!-- end:perf-fuzz -->\nend\n", results)
    assert once.startswith("# Title\n") and once.endswith("\nend\n")
    assert "old" not in once
    assert "1 programs, seeds 0 to 1. With `A=b`." in once
    assert page.written(once, results) == once
    with pytest.raises(ValueError, match="has no"):
        page.written("nothing", results)
    assert page.DOCUMENT.read_text().count("generated:perf-fuzz") == 1
