"""The result of a profile: rows of dispatches with their operations, and calls with their events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hloforge.dialect.errors import Location
from hloforge.dialect.operations import scope_names
from hloforge.runtime.profiling.costs import Cost

FORMAT = "hloforge.time-profile"
VERSION = 1
# Operations that only say how values lie or what they are: named where a dispatch has no other.
_PLAIN = frozenset(
    {"constant", "iota", "reshape", "broadcast_in_dim", "transpose", "convert", "slice", "bitcast_convert"}
)
_KINDS_SHOWN = 4


@dataclass(frozen=True)
class ProfiledOperation:
    """An operation of the program, as the user wrote it, after calls and fusions were inlined.

    Attributes:
        name: such as ``stablehlo.dot_general``.
        location: where it is in the user's file, or the instruction's name.
        scope: the names around it, outermost first, joined by ``/``: of JAX's functions and ``named_scope``s, of
            nodes of ONNX; empty if there are none.
        cost: of one execution.
    """

    name: str
    location: Location | None
    scope: str
    cost: Cost

    @property
    def kind(self) -> str:
        """The name without its dialect."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True)
class Row:
    """A dispatch at one position of the program: what it computes and how long that takes.

    Attributes:
        dispatch: the name of its code, which equal dispatches share.
        operations: numbers of ``TimeProfile.operations``; empty where nothing tells.
        main: the one among them that computes most here, or else moves most; -1 of none.
        count: how often it runs in a call.
        seconds: in a call, of all its runs: mean, least and most of the measured calls.
        cpu_seconds: the same of all threads together, the mean; 0 on a device of its own.
        cost: of all its runs in a call.
    """

    dispatch: str
    operations: tuple[int, ...]
    main: int
    count: float
    seconds: float
    least_seconds: float
    most_seconds: float
    cpu_seconds: float
    cost: Cost


@dataclass(frozen=True)
class Event:
    """One run of a dispatch; nanoseconds of a clock that all events share."""

    row: int
    start: int
    end: int


@dataclass(frozen=True)
class Call:
    """One measured call; it ends where the next one begins.

    Attributes:
        busy: from when to when command buffers ran, or data was moved: dispatches, and what is between them.
    """

    start: int
    end: int
    events: tuple[Event, ...]
    busy: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Roofline:
    """The best that the device can do.

    Attributes:
        gflops: 10^9 operations a second.
        bandwidth: 10^9 bytes a second.
        origin: ``measured`` or ``given``.
    """

    gflops: float
    bandwidth: float
    origin: str

    def seconds(self, cost: Cost) -> float:
        """The least time for these counts; a transcendental function takes one operation at least."""
        return max((cost.flops + cost.transcendentals) / self.gflops, cost.bytes / self.bandwidth) / 1e9

    def bound(self, cost: Cost) -> str:
        """What limits it: ``compute``, ``memory``, or nothing where there is nothing to do."""
        compute, memory = (cost.flops + cost.transcendentals) / self.gflops, cost.bytes / self.bandwidth
        return "" if not compute and not memory else "compute" if compute > memory else "memory"


@dataclass(frozen=True)
class TimeProfile:
    """Where the time of a program's calls goes.

    Attributes:
        program: the name of the source.
        target, device: what it was compiled for, and where it ran.
        calls: the measured calls, without those that warmed up.
        warmup: how many calls warmed up.
        unprofiled_seconds: the median of calls by ``hloforge.load(...)`` without measuring inside them.
        rows: the dispatches, those that take longest first.
        operations: what rows refer to.
        attributed: whether rows know their operations; False of a vmfb alone.
        roofline: what the device can do; None if that was not asked for.
        notes: what a reader has to know.
    """

    program: str
    target: str
    device: str
    calls: tuple[Call, ...]
    warmup: int
    unprofiled_seconds: float
    rows: tuple[Row, ...]
    operations: tuple[ProfiledOperation, ...]
    attributed: bool
    roofline: Roofline | None
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """The mean time of a call, measured from inside; what measuring takes is in it."""
        return self._mean(lambda call: call.end - call.start)

    @property
    def dispatch_seconds(self) -> float:
        """The mean time of a call in which a dispatch ran; runs at the same time count once."""
        return self._mean(lambda call: _covered(call, [(event.start, event.end) for event in call.events]))

    @property
    def transfer_seconds(self) -> float:
        """The mean time of a call in which command buffers ran beside their dispatches: fills, copies, barriers."""
        return max(0.0, self._mean(lambda call: _covered(call, call.busy)) - self.dispatch_seconds)

    @property
    def host_seconds(self) -> float:
        """What is left: calling, allocating, scheduling, control flow and waiting."""
        return max(0.0, self.seconds - self.dispatch_seconds - self.transfer_seconds)

    def _mean(self, nanoseconds: Callable[[Call], int]) -> float:
        return sum(map(nanoseconds, self.calls)) / len(self.calls) / 1e9

    @property
    def cost(self) -> Cost:
        """The counts of a call, as far as its dispatches are known."""
        return sum((row.cost for row in self.rows), Cost())

    def share(self, seconds: float) -> float:
        """A part of a call's time, from 0 to 1."""
        return seconds / self.seconds if self.seconds else 0.0

    def operations_of(self, row: Row) -> tuple[ProfiledOperation, ...]:
        return tuple(self.operations[number] for number in row.operations)

    def place_of(self, row: Row) -> str:
        """Where the main operation of a row is in the user's source; empty if nothing tells."""
        place = self.operations[row.main].location if row.main >= 0 else None
        return str(place) if place is not None else ""

    def to_json(self) -> dict[str, Any]:
        """Plain data, as docs/profiling.md describes it; ``format`` and ``version`` tell readers what it is."""
        cost, roofline = self.cost, self.roofline
        return {
            "format": FORMAT,
            "version": VERSION,
            "program": self.program,
            "target": self.target,
            "device": self.device,
            "calls": len(self.calls),
            "warmup": self.warmup,
            "seconds": self.seconds,
            "dispatch_seconds": self.dispatch_seconds,
            "transfer_seconds": self.transfer_seconds,
            "host_seconds": self.host_seconds,
            "unprofiled_seconds": self.unprofiled_seconds,
            "flops": cost.flops,
            "transcendentals": cost.transcendentals,
            "bytes": cost.bytes,
            "attributed": self.attributed,
            "roofline": roofline
            and {"gflops": roofline.gflops, "bandwidth": roofline.bandwidth, "origin": roofline.origin},
            "rows": [self._row_json(row) for row in self.rows],
            "operations": [_operation_json(operation) for operation in self.operations],
            "notes": list(self.notes),
        }

    def _row_json(self, row: Row) -> dict[str, Any]:
        found = self.operations_of(row)
        return {
            "dispatch": row.dispatch,
            "kinds": kinds(found),
            "location": self.place_of(row),
            "scope": common_scope(found),
            "count": row.count,
            "seconds": row.seconds,
            "least_seconds": row.least_seconds,
            "most_seconds": row.most_seconds,
            "cpu_seconds": row.cpu_seconds,
            "share": self.share(row.seconds),
            "flops": row.cost.flops,
            "transcendentals": row.cost.transcendentals,
            "bytes": row.cost.bytes,
            "roofline_fraction": roofline_fraction(self.roofline, row.cost, row.seconds),
            "bound": self.roofline.bound(row.cost) if self.roofline else "",
            "operations": list(row.operations),
        }


def roofline_fraction(roofline: Roofline | None, cost: Cost, seconds: float) -> float | None:
    """How near to the roofline: 1 is as fast as the device can; more, that data stayed in a cache. None if unknown."""
    if roofline is None or not seconds or not roofline.bound(cost):
        return None
    return roofline.seconds(cost) / seconds


def kinds(operations: Sequence[ProfiledOperation]) -> str:
    """What operations are: ``dot_general+add+maximum``, without what only moves values; empty of none."""
    names = list(dict.fromkeys(operation.kind for operation in operations))
    telling = [name for name in names if name not in _PLAIN] or names
    rest = len(telling) - _KINDS_SHOWN
    return "+".join(telling[:_KINDS_SHOWN]) + (f"+{rest} more" if rest > 0 else "")


def common_scope(operations: Sequence[ProfiledOperation]) -> str:
    """The scope that all operations are in."""
    paths = [scope_names(operation.scope) for operation in operations if operation.scope]
    if not paths:
        return ""
    shared = []
    for names in zip(*paths, strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    return "/".join(shared)


def _covered(call: Call, spans: Iterable[tuple[int, int]]) -> int:
    """Nanoseconds of a call that lie in some of the spans."""
    covered, until = 0, call.start
    for start, end in sorted(spans):
        covered += max(0, min(end, call.end) - max(start, until))
        until = max(until, end)
    return covered


def _operation_json(operation: ProfiledOperation) -> dict[str, Any]:
    return {
        "name": operation.name,
        "location": str(operation.location) if operation.location else "",
        "scope": operation.scope,
        "flops": operation.cost.flops,
        "transcendentals": operation.cost.transcendentals,
        "bytes": operation.cost.bytes,
    }
