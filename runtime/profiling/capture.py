"""Calls of a program in IREE's benchmark tool, and what its profiler records of them.

The Python bindings start a profiler as well, but name no file for what it records; the tools do.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hloforge.dialect.program import ENTRY
from hloforge.pipelines.weight_names import SCOPE
from hloforge.runtime.devices.cuda_library import provide_cuda
from hloforge.runtime.profiling.children import run_tool
from hloforge.runtime.session.session import Session

# What the drivers of processors and of other devices record of dispatches.
_MODES = {
    "local-sync": "queue-events,host-execution,executable-metadata",
    "local-task": "queue-events,host-execution,executable-metadata",
}
_MODE_OF_DEVICES = "queue-events,dispatch-events,executable-metadata"
_TRANSFERS = frozenset({"execute", "copy", "fill", "update", "read", "write"})
_NO_INDEX = 2**32 - 1
_NUMPY_KINDS = {"b": "i", "i": "i", "u": "i", "f": "f"}


_KERNEL = re.compile(r"kernel_[0-9a-f]+")


@dataclass(frozen=True)
class Subject:
    """What is to be measured.

    Attributes:
        session: the loaded program.
        vmfb: its bytes, of one target.
        threads: as of ``hloforge.load``.
        weights: the file of its weights, if it has one.
    """

    session: Session
    vmfb: bytes
    threads: int | Sequence[int] | None = None
    weights: Path | None = None


@dataclass(frozen=True)
class Run:
    """One run of a dispatch.

    Attributes:
        dispatch: the name of its code.
        submission: of the batch that it was submitted with; batches have rising numbers.
        buffer: the command buffer it is in, which may be submitted again.
        index: its position there, or a number that rises with the time of its end.
        start, end: nanoseconds.
        cpu: nanoseconds of all threads together; 0 where the device does not say.
    """

    dispatch: str
    submission: int
    buffer: int
    index: int
    start: int
    end: int
    cpu: int


@dataclass(frozen=True)
class RecordedCall:
    """A call: its dispatches by submission and index, and the times at which the device moved data or ran any."""

    start: int
    end: int
    runs: tuple[Run, ...]
    busy: tuple[tuple[int, int], ...]


def record(
    subject: Subject, arguments: Sequence[Any], count: int, folder: Path, deadline: float | None
) -> list[RecordedCall] | None:
    """What happened in some calls of a program, one after the other.

    Args:
        arguments: one a leaf of the parameters.
        folder: for files; the caller removes it.

    Returns:
        the calls except for the last one, whose end nobody tells, or the only one; None if they were not alike, so that
        nothing tells where one ends.

    Raises:
        ExecutionError: the program or the tool failed.
    """
    file, profile = folder / "program.vmfb", folder / "record.ireeprof"
    file.write_bytes(subject.vmfb)
    session = subject.session
    mode = _MODES.get(session.device, _MODE_OF_DEVICES)
    options = [
        f"--module={file}",
        f"--function={ENTRY}",
        *_device_options(session.device, subject.threads),
        *([f"--parameters={SCOPE}={subject.weights}"] if session.manifest.weights else []),
        *_inputs(session, arguments, folder),
        f"--benchmark_min_time={count}x",
        "--benchmark_format=json",
        f"--device_profiling_mode={mode}",
        f"--device_profiling_output={profile}",
    ]
    library = provide_cuda() if session.device.startswith("cuda") else None
    run_tool("iree-benchmark-module", options, deadline, {"LD_LIBRARY_PATH": str(library.parent)} if library else {})
    if not profile.exists():
        # A program that needs no device has none whose profiler could write.
        return _split((), count)
    export = run_tool("iree-profile", ["export", "--format=ireeperf-jsonl", str(profile)], deadline, {})
    rows = [json.loads(line) for line in export.splitlines() if line]
    for row in rows:
        if isinstance(key := row.get("key"), str):
            row["key"] = _name(key, session.dispatch_names)
    return _split(_events(rows), count)


def _name(function: str, names: Mapping[str, str]) -> str:
    """The name of a kernel's function in its program."""
    kernel = _KERNEL.match(function)
    return names.get(kernel[0], kernel[0]) + function[kernel.end() :] if kernel else function


def _device_options(device: str, threads: int | Sequence[int] | None) -> list[str]:
    if device != "local-task" or not threads:
        return [f"--device={device}"]
    if isinstance(threads, int):
        return [f"--device={device}", f"--task_topology_group_count={threads}"]
    return [f"--device={device}", f"--task_topology_cpu_ids={','.join(map(str, threads))}"]


def _inputs(session: Session, arguments: Sequence[Any], folder: Path) -> Iterator[str]:
    """The arguments as files, in the form in which they cross the border."""
    for number, value in enumerate(arguments):
        array = session.put(value, number).host
        if array.dtype.kind == "c":
            # The tool's own grammar has no complex numbers.
            np.save(folder / f"{number}.npy", array)
            yield f"--input=@{folder / f'{number}.npy'}"
            continue
        sizes = "".join(f"{size}x" for size in array.shape)
        data = folder / f"{number}.bin"
        data.write_bytes(np.ascontiguousarray(array).tobytes())
        yield f"--input={sizes}{_element(array.dtype)}=@{data}"


def _element(dtype: np.dtype[Any]) -> str:
    """IREE's name of a physical element type, integers without a sign."""
    name = "bf" if dtype.name == "bfloat16" else _NUMPY_KINDS[dtype.kind]
    return f"{name}{8 * dtype.itemsize}"


@dataclass(frozen=True)
class _Event:
    """One line of the record: something that the host or the device did."""

    what: str
    start: int
    end: int
    run: Run | None


def _events(rows: Sequence[dict[str, Any]]) -> list[_Event]:
    found = []
    for row in rows:
        kind = row["record_type"]
        if kind == "host_execution_event" and row["valid"]:
            start, end, cpu = row["start_host_time_ns"], row["end_host_time_ns"], row["tile_duration_sum_ns"]
            run = _run(row, start, end, cpu) if row["op"] == "dispatch" else None
            found.append(_Event(row["key"] or row["op"], start, end, run))
        elif kind == "dispatch_event" and row["valid"] and row["derived_time_available"]:
            start, end = row["start_driver_host_cpu_time_ns"], row["end_driver_host_cpu_time_ns"]
            found.append(_Event(row["key"], start, end, _run(row, start, end, 0)))
    return found


def _run(row: dict[str, Any], start: int, end: int, cpu: int) -> Run:
    index = row["command_index"]
    order = row["event_id"] if index == _NO_INDEX else index
    return Run(row["key"], row["submission_id"], row["command_buffer_id"], order, start, end, cpu)


def _split(events: Sequence[_Event], count: int) -> list[RecordedCall] | None:
    """Equal parts, if they are alike."""
    size, rest = divmod(len(events), count)
    if rest:
        return None
    parts = [events[start : start + size] for start in range(0, len(events), size)] if size else [()] * count
    names = [Counter(event.what for event in part) for part in parts]
    if any(found != names[0] for found in names):
        return None
    starts = [min((event.start for event in part), default=0) for part in parts]
    if starts != sorted(starts):
        return None
    if count == 1:
        return [_call(parts[0], starts[0], max((event.end for event in parts[0]), default=0))]
    return [_call(part, starts[number], starts[number + 1]) for number, part in enumerate(parts[:-1])]


def _call(part: Sequence[_Event], start: int, end: int) -> RecordedCall:
    runs = sorted((event.run for event in part if event.run), key=lambda run: (run.submission, run.index))
    busy = [(event.start, event.end) for event in part if event.run or event.what in _TRANSFERS]
    return RecordedCall(start, end, tuple(runs), tuple(sorted(busy)))
