"""Latencies measured in turn, so that the machine's moods hit every engine alike; calls from several threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# One sample is the mean of as many calls as fit in here: less than a scheduler's time slice, many ticks of the clock.
SAMPLE_SECONDS = 2e-3
# After a sample the engine's own threads get this long to fall asleep, before another engine's need the cores.
SETTLING_SECONDS = 1e-3
LEAST_SAMPLES = 5

Call = Callable[[], Any]


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
        once = _sample(call, 1)
        samples[name] = []
        if once.wall > seconds:
            samples[name].append(once)
        else:
            counts[name] = max(1, int(SAMPLE_SECONDS / max(once.wall, 1e-7)))
    spent = 0.0
    while counts and (spent < seconds or min(len(samples[name]) for name in counts) < LEAST_SAMPLES):
        for name, count in counts.items():
            sample = _sample(calls[name], count)
            samples[name].append(sample)
            spent += sample.wall * count
            time.sleep(SETTLING_SECONDS)
    return {name: _latency(found) for name, found in samples.items()}


def paired_ratio(ours: Latency, theirs: Latency) -> dict[str, float]:
    """Quartiles of the ratio of samples taken in the same turn: its noise, without that of the machine's speed."""
    if ours.samples != theirs.samples:
        return {"low": ours.low / theirs.high, "high": ours.high / theirs.low}
    ratios = np.divide(ours.values, theirs.values)
    return {"low": float(np.quantile(ratios, 0.25)), "high": float(np.quantile(ratios, 0.75))}


def calls_per_second(call: Call, threads: int, seconds: float) -> float:
    """How many calls several Python threads get done together; each makes one at least."""
    start = threading.Barrier(threads + 1)
    counts = [0] * threads

    def work(number: int) -> None:
        start.wait()
        end = time.perf_counter() + seconds
        while not counts[number] or time.perf_counter() < end:
            call()
            counts[number] += 1

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    start.wait()
    begin = time.perf_counter()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - begin)


def timed(call: Call) -> float:
    """Seconds of one call."""
    return _sample(call, 1).wall


def _sample(call: Call, count: int) -> Sample:
    start, cpu_start = time.perf_counter(), time.process_time()
    for _ in range(count):
        call()
    cpu = time.process_time() - cpu_start
    return Sample((time.perf_counter() - start) / count, cpu / count)


def _latency(samples: Sequence[Sample]) -> Latency:
    values = tuple(sample.wall for sample in samples)
    low, middle, high = (float(np.quantile(values, share)) for share in (0.25, 0.5, 0.75))
    return Latency(low, middle, high, len(samples), float(np.median([sample.cpu for sample in samples])), values)
