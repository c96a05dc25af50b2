"""Measure latencies of competing calls in alternation, so that disturbances affect all of them alike."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Call = Callable[[], Any]

# One sample is the mean of as many calls as fit in here: less than a scheduler's time slice, many ticks of the clock.
SAMPLE_SECONDS = 2e-3
# After a sample an engine's threads look for more work for a while, OpenMP's for 8 ms, before they sleep: the next
# engine's sample waits until they do, for 50 looks at most.
_LOOK_SECONDS, _MOST_LOOKS = 1e-3, 50
_TASKS = Path("/proc/self/task")
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
    """Measure each call in turn until the time is used up; one more goes before each sample.

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
            # The first call may be a slow one.
            counts[name] = _fitting(sample(call, _fitting(once)))
        _settle()
    spent = 0.0
    while counts and (spent < seconds or min(len(samples[name]) for name in counts) < LEAST_SAMPLES):
        for name, count in counts.items():
            # Whoever was measured before has filled the caches and put this one's threads to sleep.
            calls[name]()
            taken = sample(calls[name], count)
            samples[name].append(taken)
            spent += taken.wall * count
            _settle()
    return {name: _latency(found) for name, found in samples.items()}


def sample(call: Call, count: int) -> Sample:
    """The mean seconds of ``count`` calls, one right after the other."""
    others_start, own_start, start = _others_seconds(), time.thread_time(), time.perf_counter()
    for _ in range(count):
        call()
    end, own, others = time.perf_counter(), time.thread_time(), _others_seconds()
    cpu = own - own_start + sum(seconds - others_start.get(thread, 0.0) for thread, seconds in others.items())
    return Sample((end - start) / count, cpu / count)


def _others_seconds() -> dict[int, float]:
    """Seconds of processors that the other threads of this process have taken, by their numbers.

    Each is asked by itself: the clock of the process leaves out what a thread that runs has taken since the system's
    last tick, up to 4 ms.
    """
    if not _TASKS.is_dir():
        return {0: time.process_time() - time.thread_time()}
    return {thread: _seconds(thread) for thread in _others()}


def _others() -> list[int]:
    """Linux's numbers of the other threads of this process."""
    own = threading.get_native_id()
    return [number for task in _TASKS.iterdir() if (number := int(task.name)) != own]


def _seconds(thread: int) -> float:
    """Seconds of processors that a thread has taken; 0 if it has ended."""
    with suppress(OSError):
        # Linux's number for the clock of one thread: the thread's, inverted, then three bits for the kind of clock.
        return time.clock_gettime(~thread << 3 | 0b110)
    return 0.0


def _fitting(taken: Sample) -> int:
    """How many calls make one sample."""
    return max(1, int(SAMPLE_SECONDS / max(taken.wall, 1e-7)))


def _settle() -> None:
    """Wait until the other threads of this process sleep."""
    for _ in range(_MOST_LOOKS):
        time.sleep(_LOOK_SECONDS)
        if _TASKS.is_dir() and not others_run():
            return


def others_run() -> bool:
    """Whether another thread of this process runs or waits for a processor."""
    return any(_state(thread) == "R" for thread in _others())


def _state(thread: int) -> str:
    """Linux's letter for what a thread does; empty for one that has ended."""
    with suppress(OSError):
        # The letter follows the thread's name in parentheses, which may hold any character.
        return (_TASKS / str(thread) / "stat").read_text().rpartition(") ")[2][:1]
    return ""


def _latency(samples: Sequence[Sample]) -> Latency:
    values = tuple(sample.wall for sample in samples)
    low, middle, high = (float(np.quantile(values, share)) for share in (0.25, 0.5, 0.75))
    return Latency(low, middle, high, len(samples), float(np.median([sample.cpu for sample in samples])), values)
