"""Latencies of calls that compete, measured in turn, so that a machine's moods hit all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Call = Callable[[], Any]

# One sample is the mean of as many calls as fit in here: less than a scheduler's time slice, many ticks of the clock.
_SAMPLE_SECONDS = 2e-3
_LEAST_SAMPLES = 5


@dataclass(frozen=True)
class Latency:
    """Seconds of a call: quartiles over the samples."""

    low: float
    median: float
    high: float


def latencies(calls: Mapping[str, Call], seconds: float) -> dict[str, Latency]:
    """The latency of each call, which was made before, so that it is warm.

    Args:
        seconds: for all of them together; each is made five times at least.
    """
    counts = {name: max(1, int(_SAMPLE_SECONDS / max(_mean_of(call, 1), 1e-7))) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or any(len(found) < _LEAST_SAMPLES for found in samples.values()):
        for name, call in calls.items():
            samples[name].append(_mean_of(call, counts[name]))
    return {name: _latency(found) for name, found in samples.items()}


def _latency(samples: list[float]) -> Latency:
    return Latency(*(float(np.quantile(samples, share)) for share in (0.25, 0.5, 0.75)))


def _mean_of(call: Call, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count
