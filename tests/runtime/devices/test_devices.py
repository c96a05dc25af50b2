"""Devices over the life of a process: its end, its forks, and the cost of a call."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.dialect.errors import OptionError
from hloforge.runtime.devices import devices

# What is still alive when the interpreter ends, and how: cycles are freed in any order, modules and arrays alike.
LIVES = {
    "nothing": "del session, result, kept",
    "globals": "everything = [session, result, kept]",
    "a cycle": "cycle = Cycle(); cycle.me = cycle; cycle.all = (session, kept, result.T); del session, result, kept",
    "an exception": "raise SystemExit(0)",
}
SCRIPT = """
import sys
import numpy as np
from hloforge.runtime.session.session import load

class Cycle:
    pass

session = load(sys.argv[1], device=sys.argv[2])
x = np.ones(4, np.float32)
result, kept = session(x, x), session.call_device(x, x)
"""


@pytest.fixture(scope="module")
def path(add: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("devices") / "add.vmfb"
    add.save(path)
    return path


@pytest.mark.wide(2)
@pytest.mark.parametrize("driver", devices.DRIVERS)
@pytest.mark.parametrize("life", LIVES)
def test_the_end_of_a_process_is_silent(path: Path, driver: str, life: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT + LIVES[life], str(path), driver],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


FORK = """
import os, sys
import numpy as np
from hloforge.runtime.session.session import load
x = np.ones(4, np.float32)
load(sys.argv[1], device="local-task")(x, x)
child = os.fork()
if child == 0:
    print(load(sys.argv[1], device="local-task")(x, x).sum(), flush=True)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_gets_threads_of_its_own(path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", FORK, str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (run.returncode, run.stdout) == (0, "8.0\n")


def test_one_device_a_driver_and_thread_count() -> None:
    assert devices.device("local-task", 2) is devices.device("local-task", 2)
    assert devices.device("local-task", 2) is not devices.device("local-task", 3)
    assert devices.device("local-sync") is devices.device("local-sync", 5)


def test_threads_are_as_many_as_asked_for() -> None:
    def threads() -> int:
        return len(list(Path("/proc/self/task").iterdir()))

    before = threads()
    devices.device("local-task", 7)
    assert 7 <= threads() - before <= 9


def test_released_memory_is_kept_for_the_same_size_and_within_limits() -> None:
    device = devices.device("local-sync")

    def allocate(count: int) -> list[Any]:
        arguments = (devices.rt.MemoryType.DEVICE_LOCAL, devices.rt.BufferUsage.DEFAULT)
        return [device.allocator.allocate_buffer(*arguments, (32 << 20) + n) for n in range(count)]

    def held() -> int:
        numbers = device.allocator.statistics
        return int(numbers["device_bytes_allocated"] - numbers["device_bytes_freed"])

    device.allocator.trim()
    before = held()
    del (first := allocate(1))[:]
    assert held() - before == 32 << 20
    second = allocate(1)
    assert held() - before == 32 << 20
    del first, second
    many = allocate(40)
    assert held() - before > 1 << 30
    many.clear()
    # One buffer more than the limit: what is released does not count itself.
    assert 0 < held() - before <= (512 + 33) << 20
    # A program that is loaded has results of other sizes.
    assert devices.device("local-sync") is device
    assert held() == before


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads are pinned on Linux alone")
def test_threads_are_pinned_to_the_processors_asked_for() -> None:
    def affinities() -> dict[int, set[int]]:
        return {int(task.name): os.sched_getaffinity(int(task.name)) for task in Path("/proc/self/task").iterdir()}

    processor = max(os.sched_getaffinity(0))
    before = affinities()
    devices.device("local-task", [processor])
    assert {processor} in [found for thread, found in affinities().items() if thread not in before]
    # Whoever asks for a count later gets threads that run anywhere.
    before = affinities()
    devices.device("local-task", 6)
    assert len(set(affinities()) - set(before)) >= 6


def test_processors_that_a_machine_lacks_are_an_error() -> None:
    with pytest.raises(OptionError, match="pinned to the processors") as caught:
        devices.device("local-task", [0, 100_000])
    assert "this process may use" in str(caught.value.hint)


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="batch tasks are Linux's")
def test_who_waits_for_threads_takes_no_processor_from_them() -> None:
    policies = [os.SCHED_OTHER, os.SCHED_BATCH]
    for before in policies:
        os.sched_setscheduler(0, before, os.sched_param(0))
        try:
            with pytest.raises(ZeroDivisionError), devices.patience():
                assert os.sched_getscheduler(0) == os.SCHED_BATCH
                raise ZeroDivisionError
            assert os.sched_getscheduler(0) == before
        finally:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def test_memory_is_counted() -> None:
    """On a device of its own, which keeps nothing of other tests."""
    text = "func.func @main(%a: tensor<1024x256xf32>) -> tensor<1024x256xf32> { return %a : tensor<1024x256xf32> }"
    session = hloforge.compile(text).load(device="local-task", threads=7)
    before = session.memory
    arrays = [session.put(np.zeros((1024, 256), np.float32), 0) for _ in range(4)]
    after = session.memory
    assert after.live - before.live >= 4 * 2**20
    assert after.peak >= after.live
    del arrays
    assert session.memory.peak == after.peak
