"""Map runs of dispatches to their call sites, and to the operations that they compute."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeAlias

from hloforge.runtime.profiling.capture import RecordedCall, Run
from hloforge.runtime.profiling.costs import Cost
from hloforge.runtime.profiling.labels import Labels
from hloforge.runtime.profiling.result import Call, Event, Row
from hloforge.runtime.profiling.sites import Batch

Key: TypeAlias = Hashable
# What a row need not list beside what computes.
_PLAIN = frozenset(
    "stablehlo." + name
    for name in (
        *("constant", "iota", "reshape", "broadcast_in_dim", "return", "bitcast_convert", "optimization_barrier"),
        *("while", "if", "case"),
    )
) | {"func.return"}
# Of the most that an operation of the row computes and moves: what is less is some scalar's.
_LEAST_PART = 1e-3


@dataclass(frozen=True)
class _Place:
    """Where a dispatch is, and what its locations name there."""

    key: Key
    dispatch: str
    operations: frozenset[int]


class Places:
    """Finds the positions of runs.

    Batches are told by the names of their dispatches. Of several with the same names, as layers of a model have, a
    command buffer that was met before is the same one again; a new one is the next in the program.
    """

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches
        self._by_names: dict[tuple[str, ...], list[int]] = defaultdict(list)
        self._by_name: dict[str, set[int]] = defaultdict(set)
        self._buffers: dict[int, int] = {}
        self._last = -1
        for number, batch in enumerate(batches):
            self._by_names[batch.names].append(number)
            for site in batch.sites:
                self._by_name[site.dispatch] |= site.operations

    @property
    def names(self) -> frozenset[str]:
        """All dispatches of the program."""
        return frozenset(self._by_name)

    def of_call(self, runs: Sequence[Run]) -> list[_Place]:
        """The position of each run of a call."""
        self._last = -1
        found: list[_Place] = []
        for _, group in groupby(runs, key=lambda run: run.submission):
            found += self._of_batch(list(group))
        return found

    def _of_batch(self, runs: Sequence[Run]) -> list[_Place]:
        candidates = self._by_names.get(tuple(run.dispatch for run in runs), [])
        if not candidates:
            return [_Place(run.dispatch, run.dispatch, frozenset(self._by_name.get(run.dispatch, ()))) for run in runs]
        number = self._number(candidates, runs[0].buffer)
        sites = self._batches[number].sites
        return [_Place((number, place), site.dispatch, site.operations) for place, site in enumerate(sites)]

    def _number(self, candidates: Sequence[int], buffer: int) -> int:
        known = self._buffers.get(buffer)
        if known not in candidates or known is None:
            known = next((number for number in candidates if number > self._last), candidates[0])
            self._buffers[buffer] = known
        self._last = known
        return known


def attribute(
    calls: Sequence[RecordedCall], batches: Sequence[Batch], labels: Labels | None
) -> tuple[tuple[Row, ...], tuple[Call, ...]]:
    """Rows, those that take longest first, and the calls with the numbers of their events' rows."""
    places = Places(batches)
    placed = [places.of_call(call.runs) for call in calls]
    measured = _measured(calls, placed)
    rows = _with_operations(measured, labels) if labels else [one.row for one in measured.values()]
    order = sorted(range(len(rows)), key=lambda number: -rows[number].seconds)
    numbers = {key: number for number, key in enumerate(list(measured)[place] for place in order)}
    events = [
        Call(
            call.start,
            call.end,
            tuple(Event(numbers[place.key], run.start, run.end) for run, place in zip(call.runs, own, strict=True)),
            call.busy,
        )
        for call, own in zip(calls, placed, strict=True)
    ]
    return tuple(rows[number] for number in order), tuple(events)


@dataclass(frozen=True)
class _Measured:
    """A position with its times; the row has no operations and counts yet."""

    operations: frozenset[int]
    row: Row


def _measured(calls: Sequence[RecordedCall], placed: Sequence[Sequence[_Place]]) -> dict[Key, _Measured]:
    of_call: dict[Key, list[float]] = defaultdict(lambda: [0.0] * len(calls))
    counts: dict[Key, int] = defaultdict(int)
    cpu: dict[Key, float] = defaultdict(float)
    known: dict[Key, _Place] = {}
    for number, (call, own) in enumerate(zip(calls, placed, strict=True)):
        for run, place in zip(call.runs, own, strict=True):
            known[place.key] = place
            of_call[place.key][number] += (run.end - run.start) / 1e9
            counts[place.key] += 1
            cpu[place.key] += run.cpu / 1e9
    return {
        key: _Measured(
            place.operations,
            Row(
                place.dispatch,
                (),
                -1,
                counts[key] / len(calls),
                sum(of_call[key]) / len(calls),
                min(of_call[key]),
                max(of_call[key]),
                cpu[key] / len(calls),
                Cost(),
            ),
        )
        for key, place in known.items()
    }


def _covering(measured: Mapping[Key, _Measured], labels: Labels) -> dict[Key, frozenset[int]]:
    """All operations of each place: those that locations name, and those that were taken into them without a trace.

    A pass that makes one of several operations often keeps the location of the last one alone. What no dispatch names
    is part of those that read its results, of the loop around it, or else of what it reads.
    """
    places: dict[int, set[Key]] = defaultdict(set)
    for key, one in measured.items():
        for number in one.operations:
            if number < len(labels.operations):
                places[number].add(key)
    for number in reversed(range(len(labels.operations))):
        if not places[number]:
            users = (places[user] for user in labels.users[number])
            places[number] |= set().union(*users)
    for number, around in enumerate(labels.around):
        if not places[number] and around >= 0:
            places[number] |= places[around]
    for number, reads in enumerate(labels.reads):
        if not places[number]:
            makers = (places[maker] for maker, _ in reads if maker >= 0)
            places[number] |= set().union(*makers)
    found: dict[Key, set[int]] = {key: set() for key in measured}
    for number, keys in places.items():
        for key in keys:
            found[key].add(number)
    return {key: frozenset(numbers) for key, numbers in found.items()}


def _with_operations(measured: Mapping[Key, _Measured], labels: Labels) -> list[Row]:
    covered = _covering(measured, labels)
    totals: dict[int, float] = defaultdict(float)
    runs: dict[int, float] = {}
    for key, numbers in covered.items():
        row = measured[key].row
        for number in numbers:
            totals[number] += row.seconds
            runs[number] = min(row.count, runs.get(number, row.count))
    rows = []
    for key, numbers in covered.items():
        row = measured[key].row
        # Places that share an operation share its counts by their times.
        parts = {number: row.seconds / totals[number] if totals[number] else 1.0 for number in numbers}
        turns = {number: labels.turns[number] or runs[number] for number in numbers}
        main = max(parts, key=lambda number: _heaviness(labels.operations[number].cost, parts[number]), default=-1)
        rows.append(replace(row, operations=_told(numbers, labels), main=main, cost=_cost(row, parts, turns, labels)))
    return rows


def _heaviness(cost: Cost, part: float) -> tuple[float, float]:
    return part * (cost.flops + cost.transcendentals), part * cost.bytes


def _told(numbers: Iterable[int], labels: Labels) -> tuple[int, ...]:
    """What a row lists of its operations: those that compute or rearrange much of it, if there are any."""
    found = sorted(numbers)
    weights = {number: _weight(labels.operations[number].cost) for number in found}
    least = _LEAST_PART * max(weights.values(), default=0)
    telling = [number for number in found if labels.operations[number].name not in _PLAIN and weights[number] >= least]
    return tuple(telling or found)


def _weight(cost: Cost) -> float:
    return cost.flops + cost.transcendentals + cost.bytes


def _cost(row: Row, parts: Mapping[int, float], turns: Mapping[int, float], labels: Labels) -> Cost:
    """Counts of a position in a call."""
    work, largest = Cost(), 0.0
    for number, part in parts.items():
        work += labels.operations[number].cost.times(part * turns[number])
        largest = max(largest, part * min(turns[number], row.count))
    # Once for each run: what a loop inside a dispatch carries stays where it is.
    return Cost(work.flops, work.transcendentals, labels.cost(parts).bytes * largest)
