from __future__ import annotations

import time

import pytest

from benchmarks.measure import LEAST_SAMPLES, interleaved


def test_calls_are_taken_in_turn_and_fast_ones_are_repeated() -> None:
    order: list[str] = []
    found = interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 0.02)
    assert found["a"].samples == found["b"].samples >= LEAST_SAMPLES
    # Many calls make one sample, and the samples of both alternate.
    runs = [name for name, before in zip(order, ["", *order], strict=False) if name != before]
    assert runs == ["a", "b"] * (len(runs) // 2)
    assert len(order) > 2 * found["a"].samples


def test_a_call_that_takes_too_long_is_made_once() -> None:
    calls: list[float] = []

    def slow() -> None:
        calls.append(time.perf_counter())
        time.sleep(0.05)

    found = interleaved({"slow": slow, "fast": lambda: None}, 0.04)
    assert len(calls) == found["slow"].samples == 1
    assert found["slow"].median == pytest.approx(0.05, rel=0.5)
    assert found["fast"].samples >= LEAST_SAMPLES


def test_quartiles() -> None:
    found = interleaved({"sleep": lambda: time.sleep(0.003)}, 0.05)["sleep"]
    assert 0.003 <= found.low <= found.median <= found.high
    assert found.noise == pytest.approx((found.high - found.low) / found.median)
