"""IREE's runtime: its instance, and one device per kind and thread count in a process."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import iree.runtime as rt
from iree.runtime.version import VERSION

from hloforge.dialect.errors import LoadError, OptionError
from hloforge.dialect.versions import check_version
from hloforge.pipelines.framework.machine import AVX2
from hloforge.runtime.devices import drivers
from hloforge.runtime.options import DRIVERS, GPU_DRIVERS, check_device

__all__ = [
    "DRIVERS",
    "FAILURES",
    "GPU_DRIVERS",
    "Memory",
    "apart",
    "choose_driver",
    "copy",
    "device",
    "fetch",
    "instance",
    "is_lost",
    "memory",
    "patience",
    "place",
    "reason",
    "rt",
]

check_version("iree-base-runtime", VERSION)

# What IREE's bindings raise for a status of failure: by its code, one of these.
FAILURES = (RuntimeError, ValueError, IndexError, KeyError, MemoryError)

# ``…: context.c:24: OUT_OF_RANGE; binding count 40 > 32; while invoking …``
_STATUS = re.compile(r": [A-Z_]+; (.+?)(?:; while (?:invoking|calling)\b.*)?;?$")

# Below this many elements that its heaviest operation counts for (``work``) a program gains nothing by a pool: handing
# over a call takes 0.15 ms and more, so that half of 0.3 ms is gained at most. Measured on two cores of a Zen 5, of
# which one makes a million in 0.17 ms: products of 256³, tanh, norms of rows, gathers and 16 MiB by a vector
# take as long with threads or longer, attention of 12 heads of 128² takes three quarters.
_WORTH_THREADS = AVX2.thread_elements

# How long a worker looks for the next dispatch before it sleeps. In loops waking up is what takes time: the heat
# equation takes 0.85 of its time so, an LSTM of 64 steps 0.8. Each call ends so much later, for the caller waits for a
# processor.
_SPIN_MICROSECONDS = 20

# How long a new pool's threads may take to begin, on a machine that is busy.
_NAMING_SECONDS = 5.0

# Fresh memory costs a page fault for every 4 KiB first written: 8 to 23 % of the processor time of kernels with results
# of megabytes. So what is released is kept for results of the same size, while buffers in use and kept ones together
# take at most this much; beyond it everything is given back. IREE bounds the kept ones' number by 64.
_ALLOCATOR = "caching:*=*;512mib"

# IREE 3.13 keeps up to 16 recordings of a command buffer for Vulkan and runs them again. In loops it ran them before
# what they wait for, with no error: results that nobody wrote, calls without end, VK_ERROR_DEVICE_LOST.
_NO_REPLAYS = "--vulkan_cached_bda_replay_instances=0"

# By these IREE knows that mpiexec started it.
_MPI_VARIABLES = ("PMI_RANK", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "MPIEXEC_HOSTNAME")


class Memory(NamedTuple):
    """Bytes that a device's programs and arrays take.

    Attributes:
        live: now, with what is kept for later results.
        peak: at most, since the device was made.
    """

    live: int
    peak: int


class _Devices:
    """The devices of this process, by driver and threads: their count, or the processors that they are pinned to."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.made: dict[tuple[str, int | tuple[int, ...]], Any] = {}
        self.lost: list[Any] = []
        # Of the devices above, those whose memory the host does not see.
        self.apart: tuple[Any, ...] = ()

    def get_gpu(self, name: str) -> Any:
        """The device of a driver's name or a URI. Raises LoadError where there is none."""
        with self.lock:
            if (name, 0) not in self.made:
                self.made[name, 0] = created = _create_gpu(name)
                self.apart = (*self.apart, created)
            return self.made[name, 0]

    def get(self, driver: str, threads: int | tuple[int, ...]) -> Any:
        key = (driver, threads)
        with self.lock:
            if key in self.made:
                # A new program has results of other sizes: what is kept for old ones would only fill the list.
                self.made[key].allocator.trim()
            else:
                # The driver reads the process-wide flag when it is created; 0 lets it look at the machine.
                count = threads if isinstance(threads, int) else len(threads)
                rt.flags.parse_flags(f"--task_topology_group_count={count}")
                rt.flags.parse_flags(f"--task_worker_spin_us={_SPIN_MICROSECONDS}")
                before = _workers()
                with _without_mpi():
                    created = rt._binding.create_hal_driver(driver).create_default_device(allocators=[_ALLOCATOR])
                self.made[key] = created
                if not isinstance(threads, int):
                    _pin(before, threads)
            return self.made[key]

    def after_fork(self) -> None:
        """In the child of a fork the pool's threads are gone: sessions loaded from now on get devices of their own.

        The parent's devices are kept, because their release would wait for those threads.
        """
        self.lock = threading.Lock()
        self.lost += self.made.values()
        self.made, self.apart = {}, ()


def _create_gpu(name: str) -> Any:
    kind, _, path = name.partition("://")
    drivers.prepare(kind)
    if kind == "vulkan":
        rt.flags.parse_flags(_NO_REPLAYS)
    try:
        with _without_mpi():
            driver = rt._binding.create_hal_driver(kind)
            return driver.create_device_by_uri(name) if path else driver.create_default_device()
    except FAILURES as error:
        found = drivers.driver(kind)
        why, hint = found.problem or reason(error), found.way_out
        if found.devices:
            hint = f"devices: {', '.join(device.uri for device in found.devices)}"
        raise LoadError(f"there is no device {name!r} here: {why}", hint=hint) from None


@contextmanager
def _without_mpi() -> Iterator[None]:
    """Hide MPI's variables: under ``mpiexec`` IREE would load an MPI library of its own for each device, or fail."""
    hidden = {name: os.environ.pop(name) for name in _MPI_VARIABLES if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(hidden)


def _workers() -> set[int]:
    """The threads of IREE's pools in this process, where the system lists them."""
    tasks = Path("/proc/self/task")
    if not tasks.is_dir():
        return set()
    return {int(task.name) for task in tasks.iterdir() if "worker" in _thread_name(task)}


def _thread_name(task: Path) -> str:
    """The name of a thread; none if it has ended meanwhile, as those that compile kernels do."""
    try:
        return (task / "comm").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _pin(before: set[int], processors: Sequence[int]) -> None:
    """Pin the workers that are new, each to its processor."""
    # A thread takes its name when it first runs.
    end = time.monotonic() + _NAMING_SECONDS
    while len(workers := _workers() - before) < len(processors) and time.monotonic() < end:
        time.sleep(1e-3)
    for worker, processor in zip(sorted(workers), processors, strict=False):
        os.sched_setaffinity(worker, {processor})


_devices = _Devices()
# A buffer must be released before its device is. At exit the collector frees cycles in any order, modules and arrays
# alike; what a fork handler holds outlives them.
os.register_at_fork(after_in_child=_devices.after_fork)


@cache
def instance() -> Any:
    """IREE's VM instance of this process."""
    return rt.VmInstance()


def choose_driver(work: int, threads: int | Sequence[int] | None) -> str:
    """The driver for a program whose heaviest operation is ``work`` elements (``work.heaviest_operation``)."""
    if threads is not None and not isinstance(threads, int):
        threads = len(threads)
    available = threads if threads is not None else os.cpu_count() or 1
    return "local-task" if available > 1 and work >= _WORTH_THREADS else "local-sync"


def device(driver: str, threads: int | Sequence[int] | None = None) -> Any:
    """A device, made on first use.

    Args:
        driver: one of ``DRIVERS``, one of ``GPU_DRIVERS`` for its first device, or a device's URI,
            ``vulkan://GPU-6d65…``.
        threads: workers of local-task, or the processors that they are pinned to; None for as many as IREE finds cores.

    Raises:
        OptionError: an unknown driver, a thread count below 1, or processors that this machine lacks.
        LoadError: the machine has no such device.
    """
    check_device(driver)
    if isinstance(threads, int) and threads < 1:
        raise OptionError(f"threads must be at least 1, not {threads}")
    if driver not in DRIVERS:
        return _devices.get_gpu(driver)
    if driver != "local-task":
        return _devices.get(driver, 0)
    if threads is None or isinstance(threads, int):
        return _devices.get(driver, threads or 0)
    message = f"threads cannot be pinned to the processors {list(threads)}"
    if not hasattr(os, "sched_setaffinity"):
        raise OptionError(message, hint="pinning needs Linux; give a number instead: threads=4")
    allowed = os.sched_getaffinity(0)
    if not threads or not allowed.issuperset(threads):
        raise OptionError(message, hint=f"this process may use {', '.join(map(str, sorted(allowed)))}")
    return _devices.get(driver, tuple(threads))


def memory(device: Any) -> Memory:
    """What a device has given to the programs and arrays of this process, all sessions together."""
    found = device.allocator.statistics
    live = found["device_bytes_allocated"] - found["device_bytes_freed"]
    # What CUDA's pools give is not in IREE's peak.
    return Memory(live, max(live, found["device_bytes_peak"]))


def apart(device: Any) -> Any:
    """The device if its memory is not the host's, so that arrays are copied between the two; else None."""
    return device if any(device is other for other in _devices.apart) else None


def place(device: Any) -> tuple[int, int] | None:
    """What DLPack calls a device whose arrays others can share: CUDA's kind and a number; None for all others."""
    name = next((name for (name, _), made in _devices.made.items() if made is device), "")
    if name.partition("://")[0] != "cuda":
        return None
    uris = [found.uri for found in drivers.driver("cuda").devices]
    return _DLPACK_CUDA, uris.index(name) if name in uris else 0


def is_lost(device: Any) -> bool:
    """Whether the device was made before this process was forked, so that its threads, or its GPU, are not here."""
    return any(device is other for other in _devices.lost)


def fetch(view: Any, device: Any) -> Any:
    """The bytes of a buffer view as host memory, which they are copied to unless the host sees them where they are.

    Args:
        device: the one that the buffer belongs to, of those that ``apart`` names.
    """
    buffer = view.get_buffer()
    if buffer.allowed_usage() & _MAPPED:
        return view.map()
    staging = device.allocator.allocate_buffer(_HOST_MEMORY, _STAGING, view.byte_length)
    # IREE's own DeviceArray.to_host imports host memory, which Vulkan takes by whole pages alone.
    copy(buffer, staging, device)
    return staging.map()


def copy(source: Any, target: Any, device: Any) -> None:
    """Copy a buffer into another one of the same size, by the device's queue, and wait for it."""
    semaphore = device.create_semaphore(0)
    device.queue_copy(
        source,
        target,
        wait_semaphores=rt.HalFence.create_at(semaphore, 0),
        signal_semaphores=rt.HalFence.create_at(semaphore, 1),
    )
    semaphore.wait(1)


@contextmanager
def patience() -> Iterator[None]:
    """Let the caller's thread wait for a pool of threads without taking a processor from one of them.

    IREE 3.13 wakes the caller from within a worker, and the caller then spins until that worker is done with waking it.
    If Linux lets the caller take over the worker's processor, both wait for a time slice of some milliseconds. A batch
    task takes over no processor when it wakes up.
    """
    if not _is_ordinary_thread():
        yield
        return
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _is_ordinary_thread() -> bool:
    """Whether the caller's thread has the policy that is usual, and may change it."""
    return _CAN_SCHEDULE and os.sched_getscheduler(0) == os.SCHED_OTHER


def _can_schedule() -> bool:
    """Whether this system has batch tasks and lets a process make some."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        policy = os.sched_getscheduler(0)
        os.sched_setscheduler(0, policy, os.sched_getparam(0))
    except OSError:
        return False
    return True


def reason(error: Exception) -> str:
    """What IREE says of a failure, without its source positions, status code and stack."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    match = _STATUS.search(line)
    return match[1] if match else line


_CAN_SCHEDULE = _can_schedule()
_DLPACK_CUDA = 2
_MAPPED = int(rt.BufferUsage.MAPPING_SCOPED)
_HOST_MEMORY = int(rt.MemoryType.HOST_LOCAL) | int(rt.MemoryType.DEVICE_VISIBLE)
_STAGING = int(rt.BufferUsage.TRANSFER_TARGET) | _MAPPED
