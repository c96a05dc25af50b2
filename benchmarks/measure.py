"""Latencies measured in turn, so that the machine's moods hit every engine alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

# One sample is the mean of as many calls as fit in here: less than a scheduler's time slice, many ticks of the clock.
SAMPLE_SECONDS = 2e-3
LEAST_SAMPLES = 5


@dataclass(frozen=True)
class Latency:
    """Seconds of a call: quartiles over the samples."""

    low: float
    median: float
    high: float
    samples: int

    @property
    def noise(self) -> float:
        """The distance of the quartiles as a share of the median."""
        return (self.high - self.low) / self.median if self.median else 0.0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def interleaved(calls: Mapping[str, Callable[[], Any]], seconds: float) -> dict[str, Latency]:
    """Measure each call in turn until the time is used up.

    Args:
        seconds: for all calls together. A call whose first two runs take longer than its share is not run again.
    """
    share = seconds / max(1, len(calls))
    counts: dict[str, int] = {}
    samples: dict[str, list[float]] = {}
    for name, call in calls.items():
        first = _sample(call, 1)
        if first > share:
            samples[name] = [first]
            continue
        once = _sample(call, 1)
        counts[name] = max(1, int(SAMPLE_SECONDS / max(once, 1e-7)))
        samples[name] = []
    spent = 0.0
    while counts and (spent < seconds or min(len(samples[name]) for name in counts) < LEAST_SAMPLES):
        for name, count in counts.items():
            sample = _sample(calls[name], count)
            samples[name].append(sample)
            spent += sample * count
    return {name: _latency(found) for name, found in samples.items()}


def _sample(call: Callable[[], Any], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def _latency(samples: list[float]) -> Latency:
    low, middle, high = (float(np.quantile(samples, share)) for share in (0.25, 0.5, 0.75))
    return Latency(low, middle, high, len(samples))
