"""Aggregate the rows of a profile by operation, line, scope or code."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from hloforge.runtime.profiling.costs import Cost
from hloforge.runtime.profiling.result import (
    Row,
    TimeProfile,
    common_scope,
    kinds,
    roofline_fraction,
)

# Folders before a file that has lines; a name of ONNX has slashes as well.
_FOLDERS = re.compile(r"^[^:]*/(?=[^/:]+:\d)")
BY = ("location", "op", "dispatch", "scope")


@dataclass(frozen=True)
class Group:
    """Rows that have something in common.

    Attributes:
        kinds: what they compute; of several kinds those of the row that takes longest, and how many others.
        location: of their heaviest operation in the user's source.
        scope: that all of them are in.
        dispatches: the names of their code.
        count: how often they run in a call.
        seconds: in a call, together.
        fraction: of the roofline; None if unknown.
    """

    kinds: str
    location: str
    scope: str
    dispatches: tuple[str, ...]
    count: float
    seconds: float
    cost: Cost
    fraction: float | None


def grouped(profile: TimeProfile, by: str) -> list[Group]:
    """The rows in groups, those that take longest first.

    Args:
        by: one of ``BY``; by location, what is on one line and is computed together is one group.
    """
    found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in profile.rows:
        found[_key(profile, row, by)].append(row)
    groups = [_group(profile, rows) for rows in found.values()]
    return sorted(groups, key=lambda group: -group.seconds)


def short_place(place: str) -> str:
    """A position without the folders of its file."""
    return _FOLDERS.sub("", place)


def _key(profile: TimeProfile, row: Row, by: str) -> tuple[str, ...]:
    operations = profile.operations_of(row)
    if by == "dispatch" or not operations:
        return ("dispatch", row.dispatch)
    if by == "op":
        return ("op", kinds(operations))
    if by == "scope":
        return ("scope", common_scope(operations))
    return ("location", profile.place_of(row), kinds(operations))


def _group(profile: TimeProfile, rows: list[Row]) -> Group:
    first = max(rows, key=lambda row: row.seconds)
    several = [profile.operations_of(row) for row in rows]
    names = list(dict.fromkeys([kinds(profile.operations_of(first)), *map(kinds, several)]))
    places = list(dict.fromkeys([profile.place_of(first), *(profile.place_of(row) for row in rows)]))
    cost = sum((row.cost for row in rows), Cost())
    seconds = sum(row.seconds for row in rows)
    return Group(
        _and_others(names),
        _and_others(places),
        common_scope([operation for operations in several for operation in operations]),
        tuple(dict.fromkeys(row.dispatch for row in rows)),
        sum(row.count for row in rows),
        seconds,
        cost,
        roofline_fraction(profile.roofline, cost, seconds),
    )


def _and_others(names: list[str]) -> str:
    first, *others = names
    return f"{first} (+{len(others)})" if others else first
