"""What several devices of one machine cost and gain: an all_reduce of 64 MB over two, and a step of training on two.

python -m benchmarks.one_case replicas
mpiexec -n 2 python -m benchmarks.replicas model.vmfb      # the part that processes of MPI measure
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import hloforge
from hloforge import ops
from hloforge.dialect.program import Program
from hloforge.runtime.devices.processor_shares import own_processors, share
from hloforge.runtime.tuning.timing import sample

REPLICAS = 2
# 64 MB of f32.
ELEMENTS = 16_000_000
# The batch of a step of training, and the width of both its layers.
BATCH, WIDTH = 1024, 512
# Processes of MPI make equally many calls, whatever the time.
CALLS = 10
_TIMEOUT = 120


def all_reduces() -> dict[str, Callable[[], Any]]:
    """The sum over two threads of this process, by name; ``by_mpi`` has those of processes."""
    x = np.ones(ELEMENTS, np.float32)
    summing = hloforge.replicate(all_reduce(), replicas=REPLICAS)
    return {"all_reduce threads": lambda: summing.each([(x,)] * REPLICAS)}


def steps() -> dict[str, Callable[[], Any]]:
    """A step of training on two replicas and on one device, with as many processors as a replica has and with all."""
    random = np.random.default_rng(0)
    weights = [random.normal(scale=0.05, size=(WIDTH, WIDTH)).astype(np.float32) for _ in range(2)]
    batch = [random.normal(size=(BATCH, WIDTH)).astype(np.float32) for _ in range(2)]
    parts = [(*weights, *part) for part in zip(*(np.split(array, REPLICAS) for array in batch), strict=True)]
    training = hloforge.replicate(training_step(BATCH // REPLICAS), replicas=REPLICAS)
    own = share(own_processors(), 0, REPLICAS, {})
    whole, half = hloforge.compile(training_step(BATCH)), hloforge.compile(training_step(BATCH // REPLICAS))
    one, one_of_half, all_cores = whole.load(**own), half.load(**own), whole.load(device="local-task")
    return {
        "step replicas": lambda: training.each(parts),
        "step one core": lambda: one(*weights, *batch),
        "step one core, half": lambda: one_of_half(*parts[0]),
        "step all cores": lambda: all_cores(*weights, *batch),
    }


def all_reduce() -> Program:
    """The sum of an array over all devices."""
    builder = hloforge.Builder("all_reduce")
    with builder:
        return builder.build(ops.cross_replica_sum(builder.parameter(0, f"f32[{ELEMENTS}]", "x")))


def training_step(batch: int) -> Program:
    """A step of gradient descent for two layers on a part of the batch; gradients are sums over all devices."""
    builder = hloforge.Builder("training_step")
    with builder:
        first, second = (builder.parameter(number, f"f32[{WIDTH},{WIDTH}]", f"w{number}") for number in range(2))
        x, y = (builder.parameter(number, f"f32[{batch},{WIDTH}]", f"batch{number}") for number in (2, 3))
        hidden = ops.max(ops.dot(x, first), 0.0)
        error = ops.dot(hidden, second) - y
        behind = ops.dot(error, ops.transpose(second, [1, 0]))
        behind = ops.select(ops.gt(hidden, 0.0), behind, behind * 0.0)
        gradients = [ops.dot(ops.transpose(left, [1, 0]), right) for left, right in ((x, behind), (hidden, error))]
        steps = [1e-5 * ops.cross_replica_sum(gradient) for gradient in gradients]
        return builder.build([first - steps[0], second - steps[1]])


def by_mpi() -> dict[str, Any]:
    """The same all_reduce by two processes of MPI, and mpi4py's Allreduce of numpy's arrays; nothing without MPI."""
    mpiexec = Path(sys.executable).with_name("mpiexec")
    if importlib.util.find_spec("mpi4py") is None or not mpiexec.exists():
        return {}
    with tempfile.TemporaryDirectory() as folder:
        vmfb = Path(folder) / "all_reduce.vmfb"
        hloforge.compile(all_reduce(), replicas=REPLICAS).save(vmfb)
        command = [mpiexec, "-n", str(REPLICAS), sys.executable, "-m", "benchmarks.replicas", vmfb]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure_rank(vmfb: str) -> dict[str, dict[str, float]]:
    """What one process measures beside the other: quartiles of seconds of a call, by name."""
    from hloforge.runtime.replicas.communicator_mpi import world
    from hloforge.runtime.replicas.mpi import Rank

    everyone = world()
    device = Rank(vmfb, REPLICAS)
    x, total = np.ones(ELEMENTS, np.float32), np.empty(ELEMENTS, np.float32)
    ways = {"all_reduce mpi": lambda: device.own(x), "all_reduce mpi4py": lambda: everyone.Allreduce(x, total)}
    values: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(CALLS + 1):
        # In turn, so that what else the machine does hits both.
        for name, call in ways.items():
            everyone.Barrier()
            values[name].append(sample(call, 1).wall)
    names = {"low": 0.25, "median": 0.5, "high": 0.75}
    # The first call of each is a warm-up.
    return {
        way: {name: float(np.quantile(found[1:], share)) for name, share in names.items()}
        for way, found in values.items()
    }


def main() -> None:
    from hloforge.runtime.replicas.communicator_mpi import world

    found = measure_rank(sys.argv[1])
    if world().rank == 0:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
