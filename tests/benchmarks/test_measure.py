from __future__ import annotations

import hashlib
import sys
import threading
import time

import pytest

from benchmarks.measure import calls_per_second, paired_ratio
from hloforge.runtime.tuning.timing import LEAST_SAMPLES, Latency, interleaved, others_run, sample


def latency(*values: float) -> Latency:
    return Latency(min(values), sorted(values)[len(values) // 2], max(values), len(values), 0.0, values)


def test_calls_are_taken_in_turn_and_fast_ones_are_repeated() -> None:
    order: list[str] = []
    found = interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 0.3)
    assert found["a"].samples == found["b"].samples >= LEAST_SAMPLES
    # Many calls make one sample, and the samples of both alternate.
    runs = [name for name, before in zip(order, ["", *order], strict=False) if name != before]
    assert runs == ["a", "b"] * (len(runs) // 2)
    assert len(order) > 2 * found["a"].samples


def test_a_call_that_takes_too_long_is_made_once() -> None:
    calls: list[float] = []

    def slow() -> None:
        calls.append(time.perf_counter())
        time.sleep(0.5)

    found = interleaved({"slow": slow, "fast": lambda: None}, 0.4)
    assert len(calls) == found["slow"].samples == 1
    assert found["slow"].median >= 0.5
    assert found["fast"].samples >= LEAST_SAMPLES


def test_quartiles() -> None:
    found = interleaved({"sleep": lambda: time.sleep(0.003)}, 0.3)["sleep"]
    assert 0.003 <= found.low <= found.median <= found.high
    # Sleep costs a processor nothing.
    assert found.cpu < found.low
    assert found.to_json().keys() == {"low", "median", "high", "samples", "cpu"}


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the threads' states and clocks")
def test_a_thread_that_computes_is_seen_at_once_and_one_that_sleeps_is_not() -> None:
    end = threading.Event()
    sleeper = threading.Thread(target=end.wait)
    # One call that leaves Python's lock alone for as long as it takes.
    worker = threading.Thread(target=hashlib.pbkdf2_hmac, args=("sha256", b"", b"", 300_000))
    sleeper.start()
    worker.start()
    runs, shares = 0, []
    while worker.is_alive():
        runs += others_run()
        taken = sample(others_run, 1)
        shares.append(taken.cpu / taken.wall)
    worker.join()
    assert runs
    # A clock that ticks every few milliseconds would show nothing in most of these short samples.
    assert sum(share > 0 for share in shares) > len(shares) / 2
    # Pools of earlier tests may look for work a little longer.
    assert not all(others_run() for _ in range(1000))
    end.set()
    sleeper.join()


def test_the_noise_of_a_ratio_leaves_out_what_hits_both() -> None:
    # The machine is three times as slow for half of the samples.
    assert paired_ratio(latency(1, 3, 1, 3), latency(2, 6, 2, 6)) == {"low": 0.5, "high": 0.5}
    assert paired_ratio(latency(1, 2), latency(4)) == {"low": 0.25, "high": 0.5}


def test_threads_call_at_once() -> None:
    together = threading.Barrier(3, timeout=20)
    # Each of three threads makes one call at least, and none returns before all three were made.
    assert calls_per_second(together.wait, 3, 0.0) > 0
    assert calls_per_second(lambda: time.sleep(0.01), 1, 0.05) == pytest.approx(100, rel=0.9)
