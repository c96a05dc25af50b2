"""Export profiles for viewers: Chrome's trace events and folded stacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hloforge.dialect.operations import scope_names
from hloforge.runtime.profiling.groups import short_place
from hloforge.runtime.profiling.result import Call, Event, TimeProfile, common_scope, kinds

# What viewers show without effort; the calls beyond are left out.
_MOST_EVENTS = 50_000
_PROCESS = 1


def trace_events(profile: TimeProfile) -> dict[str, Any]:
    """The calls as Chrome's Trace Event format, which Perfetto, speedscope and chrome://tracing open.

    Calls contain scopes, and these the dispatches. Dispatches that run at the same time are in tracks of their own.
    Times are microseconds from the beginning of the first call.
    """
    events: list[dict[str, Any]] = []
    origin = profile.calls[0].start if profile.calls else 0
    tracks = 1
    for number, call in enumerate(profile.calls):
        if len(events) > _MOST_EVENTS:
            break
        events.append(_slice(f"call {number}", "call", call.start, call.end, origin))
        lanes = _lanes(call)
        tracks = max(tracks, len(lanes))
        for track, lane in enumerate(lanes):
            if not track:
                events += _scopes(profile, lane, call.end, origin)
            events += (_dispatch(profile, event, call.end, origin, track) for event in lane)
    return {
        "traceEvents": [*_names(profile, tracks), *events],
        "displayTimeUnit": "ns",
        "otherData": {"program": profile.program, "target": profile.target, "device": profile.device},
    }


def _names(profile: TimeProfile, tracks: int) -> Iterator[dict[str, Any]]:
    title = f"{profile.program} on {profile.device}"
    yield {"ph": "M", "name": "process_name", "pid": _PROCESS, "tid": 0, "args": {"name": title}}
    for track in range(tracks):
        name = "calls" if not track else f"at the same time {track}"
        yield {"ph": "M", "name": "thread_name", "pid": _PROCESS, "tid": track + 1, "args": {"name": name}}


def _microseconds(nanoseconds: int) -> float:
    """In parts of a power of two, whose sums are exact: speedscope takes a slice that ends 1e-13 late for open."""
    return round(nanoseconds * 1.024) / 1024


def _slice(name: str, kind: str, start: int, end: int, origin: int, track: int = 0, **told: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "cat": kind,
        "pid": _PROCESS,
        "tid": track + 1,
        "ts": _microseconds(start - origin),
        "dur": _microseconds(end - origin) - _microseconds(start - origin),
        "args": told,
    }


def _lanes(call: Call) -> list[list[Event]]:
    """The events so that those of one lane do not overlap; one lane where the device does one thing at a time."""
    lanes: list[list[Event]] = []
    for event in sorted(call.events, key=lambda one: (one.start, one.end)):
        lane = next((lane for lane in lanes if lane[-1].end <= event.start), None)
        if lane is None:
            lanes.append([event])
        else:
            lane.append(event)
    return lanes


def _scopes(profile: TimeProfile, lane: Sequence[Event], until: int, origin: int) -> Iterator[dict[str, Any]]:
    """What encloses neighbouring dispatches of one scope."""
    opened: list[tuple[str, int]] = []
    end = 0
    for event in lane:
        scope = common_scope(profile.operations_of(profile.rows[event.row]))
        path = scope_names(scope)
        kept = 0
        while kept < min(len(opened), len(path)) and opened[kept][0] == path[kept]:
            kept += 1
        while len(opened) > kept:
            name, start = opened.pop()
            yield _slice(name, "scope", start, end, origin)
        opened += ((name, event.start) for name in path[kept:])
        end = min(event.end, until)
    while opened:
        name, start = opened.pop()
        yield _slice(name, "scope", start, end, origin)


def _dispatch(profile: TimeProfile, event: Event, until: int, origin: int, track: int) -> dict[str, Any]:
    row = profile.rows[event.row]
    operations = profile.operations_of(row)
    return _slice(
        kinds(operations) or row.dispatch,
        "dispatch",
        event.start,
        min(event.end, until),
        origin,
        track,
        dispatch=row.dispatch,
        location=profile.place_of(row),
        scope=common_scope(operations),
        flops=row.cost.flops / (row.count or 1),
        bytes=row.cost.bytes / (row.count or 1),
    )


def folded_stacks(profile: TimeProfile) -> str:
    """The mean call as folded stacks, one a line with its nanoseconds: what flamegraph.pl and speedscope read.

    A stack is the program, the scopes, the line of the source and the operations of a dispatch.
    """
    stacks: dict[tuple[str, ...], float] = {}
    for row in profile.rows:
        operations = profile.operations_of(row)
        scope = common_scope(operations)
        names = (
            *scope_names(scope),
            short_place(profile.place_of(row)),
            kinds(operations) or row.dispatch,
        )
        stack = tuple(filter(None, names))
        stacks[stack] = stacks.get(stack, 0.0) + row.seconds
    stacks["[fills and copies]",] = profile.transfer_seconds
    stacks["[host]",] = profile.host_seconds
    lines = (
        f"{';'.join(_frame(name) for name in (profile.program, *stack))} {round(1e9 * seconds)}"
        for stack, seconds in stacks.items()
        if round(1e9 * seconds)
    )
    return "\n".join(lines) + "\n"


def _frame(name: str) -> str:
    return name.replace(";", ",").replace("\n", " ")
