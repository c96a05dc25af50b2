"""Latencies of calls that compete, measured in turn, so that a machine's moods hit all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Call = Callable[[], Any]

# One sample is the mean of as many calls as fit in here: less than a scheduler's time slice, many ticks of the clock.
SAMPLE_SECONDS = 2e-3
# After a sample an engine's threads look for more work for a while, OpenMP's for milliseconds, before they sleep: the
# next engine's sample waits until the process takes less than a tenth of a processor, but for 50 looks at most.
_LOOK_SECONDS, _IDLE_SHARE, _MOST_LOOKS = 1e-3, 0.1, 50
LEAST_SAMPLES = 5


@dataclass(frozen=True)
class Latency:
    """Seconds of a call: quartiles over the samples.

    Attributes:
        samples: how many.
        cpu: the median of the processor's time, of all threads: what a busy machine changes little.
        values: each sample; those of one number were taken one right after the other.
    """

    low: float
    median: float
    high: float
    samples: int
    cpu: float
    values: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        names = ("low", "median", "high", "samples", "cpu")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Sample:
    """Seconds of a call on the clock and on all processors."""

    wall: float
    cpu: float


def interleaved(calls: Mapping[str, Call], seconds: float) -> dict[str, Latency]:
    """Measure each call in turn until the time is used up.

    Args:
        calls: made once before, so that they are warm.
        seconds: for all calls together. A call that alone takes longer is made once.
    """
    counts: dict[str, int] = {}
    samples: dict[str, list[Sample]] = {}
    for name, call in calls.items():
        once = sample(call, 1)
        samples[name] = []
        if once.wall > seconds:
            samples[name].append(once)
        else:
            counts[name] = max(1, int(SAMPLE_SECONDS / max(once.wall, 1e-7)))
    spent = 0.0
    while counts and (spent < seconds or min(len(samples[name]) for name in counts) < LEAST_SAMPLES):
        for name, count in counts.items():
            taken = sample(calls[name], count)
            samples[name].append(taken)
            spent += taken.wall * count
            _settle()
    return {name: _latency(found) for name, found in samples.items()}


def sample(call: Call, count: int) -> Sample:
    """The mean seconds of ``count`` calls, one right after the other."""
    start, cpu_start = time.perf_counter(), time.process_time()
    for _ in range(count):
        call()
    cpu = time.process_time() - cpu_start
    return Sample((time.perf_counter() - start) / count, cpu / count)


def _settle() -> None:
    """Wait until the threads of this process sleep."""
    for _ in range(_MOST_LOOKS):
        start, cpu_start = time.perf_counter(), time.process_time()
        time.sleep(_LOOK_SECONDS)
        if time.process_time() - cpu_start < _IDLE_SHARE * (time.perf_counter() - start):
            return


def _latency(samples: Sequence[Sample]) -> Latency:
    values = tuple(sample.wall for sample in samples)
    low, middle, high = (float(np.quantile(values, share)) for share in (0.25, 0.5, 0.75))
    return Latency(low, middle, high, len(samples), float(np.median([sample.cpu for sample in samples])), values)
