"""What ran on the devices while JAX's profiler was on: ``jax.profiler.trace`` writes it beside what JAX itself did.

Each device is a plane of the trace with two lines: programs, and their kernels. The lines have the names that XLA's
devices give to theirs, because tools look for these.

Source: XLA, ``tsl/profiler/protobuf/xplane.proto`` and ``xplane_schema.h``.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hloforge.dialect.protobuf import encode, encode_number
from hloforge.runtime.session.timed import TimedCall

# Planes of devices that are neither TPUs nor GPUs begin with this.
_PLANE = "/device:CUSTOM:hloforge:"
_PROGRAMS, _KERNELS = "XLA Modules", "XLA Ops"
# Fields.
_SPACE_PLANES = 1
_PLANE_NAME, _PLANE_LINES, _PLANE_EVENTS, _PLANE_STATISTICS = 2, 3, 4, 5
_ENTRY_KEY, _ENTRY_VALUE = 1, 2
_LINE_ID, _LINE_NAME, _LINE_START, _LINE_EVENTS = 1, 2, 3, 4
_EVENT_ID, _EVENT_OFFSET, _EVENT_DURATION, _EVENT_STATISTICS = 1, 2, 3, 4
_STATISTIC_ID, _STATISTIC_REFERENCE = 1, 7
_DATA_ID, _DATA_NAME = 1, 2
_PICOSECONDS = 1000


@dataclass(frozen=True)
class _Run:
    device: int
    program: str
    call: TimedCall


class Trace:
    """The calls of all threads, until somebody takes them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: list[_Run] = []

    def add(self, device: int, program: str, call: TimedCall) -> None:
        with self._lock:
            self._runs.append(_Run(device, program, call))

    def take(self, since: int) -> bytes:
        """An XSpace of what began at a time or later (nanoseconds of ``time.time_ns``), empty if nothing did.

        All calls are forgotten.
        """
        with self._lock:
            runs, self._runs = self._runs, []
        planes = defaultdict(list)
        for run in runs:
            if run.call.begin >= since:
                planes[run.device].append(run)
        return b"".join(encode(_SPACE_PLANES, _plane(device, planes[device])) for device in sorted(planes))


@dataclass
class _Names:
    """Numbers of names, which events refer to."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers) + 1)

    def entries(self, number: int) -> bytes:
        """The table as a field of a plane."""
        return b"".join(
            encode(
                number,
                encode_number(_ENTRY_KEY, own)
                + encode(_ENTRY_VALUE, encode_number(_DATA_ID, own) + encode(_DATA_NAME, name.encode())),
            )
            for name, own in self.numbers.items()
        )


def _plane(device: int, runs: Sequence[_Run]) -> bytes:
    events, statistics = _Names(), _Names()
    start = min(run.call.begin for run in runs)

    def event(name: str, begin: int, end: int, said: dict[str, str]) -> bytes:
        numbers = encode_number(_EVENT_ID, events.number(name))
        numbers += encode_number(_EVENT_OFFSET, max(begin - start, 0) * _PICOSECONDS)
        numbers += encode_number(_EVENT_DURATION, max(end - begin, 0) * _PICOSECONDS)
        for key, value in said.items():
            statistic = encode_number(_STATISTIC_ID, statistics.number(key))
            statistic += encode_number(_STATISTIC_REFERENCE, statistics.number(value))
            numbers += encode(_EVENT_STATISTICS, statistic)
        return numbers

    programs = [event(run.program, run.call.begin, run.call.end, {"hlo_module": run.program}) for run in runs]
    kernels = [
        event(name, begin, end, {"hlo_module": run.program, "hlo_op": name})
        for run in runs
        for name, begin, end in run.call.kernels
    ]
    lines = _line(1, _PROGRAMS, start, programs) + (_line(2, _KERNELS, start, kernels) if kernels else b"")
    name = encode(_PLANE_NAME, f"{_PLANE}{device}".encode())
    return name + lines + events.entries(_PLANE_EVENTS) + statistics.entries(_PLANE_STATISTICS)


def _line(number: int, name: str, start: int, events: Iterable[bytes]) -> bytes:
    head = encode_number(_LINE_ID, number) + encode(_LINE_NAME, name.encode())
    head += encode_number(_LINE_START, start)
    body = b"".join(encode(_LINE_EVENTS, event) for event in events)
    return encode(_PLANE_LINES, head + body)
