"""What the benchmarks measure beside latencies (``runtime.timing``): noise of ratios, calls from several threads."""

from __future__ import annotations

import threading
import time

import numpy as np

from hloforge.runtime.tuning.timing import Call, Latency, sample


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
    return sample(call, 1).wall
