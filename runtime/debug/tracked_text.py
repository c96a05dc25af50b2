"""IR as text whose lines are followed from one pass to the next, and whose values keep their names on the way.

MLIR numbers values again at each printing, so that one operation more changes the names in every line after it. Here
lines are matched by what they say besides names, and by their locations in the user's file; values of matched lines are
called as before, and what differs between two texts is what a pass changed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import count, pairwise

_NAME = re.compile(r"%[\w.$-]+")
# Results before their operation, arguments of blocks before their type or their first value.
_DEFINITION = re.compile(r"%[\w.$-]+(?=: |(?::\d+)? = )")
_LOCATION = re.compile(r" loc\((#loc\d*|unknown|\"(?:[^\"\\]|\\.)*\"(?:\(#loc\d*\)|:[\d: to]+)?)\)")
_ALIAS = re.compile(r"#loc\d*")
_FUNCTION = re.compile(r"  \S*func\S*(?: \w+)* (@\"(?:[^\"\\]|\\.)*\"|@[\w.$-]+)")
# Between two lines that surely match, the largest area that is compared line by line.
_AREA = 1 << 20
# A longer line tells nobody more.
_WIDTH = 2000


@dataclass(frozen=True)
class Line:
    """A line of the IR.

    Attributes:
        track: the same number for what is the same line in texts that follow each other; they keep their order.
        text: with values named as in the text before.
    """

    track: int
    text: str


@dataclass
class _Function:
    """The last text of a function: keys and tracks of its lines, and the names that each line holds in order."""

    keys: list[tuple[str, str]] = field(default_factory=list)
    tracks: list[int] = field(default_factory=list)
    names: list[list[str]] = field(default_factory=list)
    used: set[str] = field(default_factory=set)


class TextTracker:
    """Follows the lines of one module through texts of ``get_asm(enable_debug_info=True)``.

    Args:
        most_lines: what ``follow`` gives of each text.
    """

    def __init__(self, most_lines: int) -> None:
        self._most_lines = most_lines
        self._functions: dict[str, _Function] = {}
        self._tracks = count()

    def follow(self, text: str) -> tuple[tuple[Line, ...], int]:
        """The lines of the next text without locations, as many as are kept, and how many it has."""
        raw, locations = _parts(text)
        found: list[Line] = []
        for name, lines in _functions(raw[: self._most_lines]):
            found += self._function(name, [_keyed(line, locations) for line in lines])
        return tuple(found), len(raw)

    def _function(self, name: str, lines: Sequence[tuple[str, tuple[str, str]]]) -> Iterator[Line]:
        before = self._functions.get(name, _Function())
        keys = [key for _, key in lines]
        pairs = dict(_matches(keys, before.keys))
        after = _Function(keys, used=before.used)
        names: dict[str, str] = {}
        for number, (text, _) in enumerate(lines):
            old = pairs.get(number)
            known = before.names[old] if old is not None else []
            defined = set(_DEFINITION.findall(text))
            mine: list[str] = []
            fresh: dict[str, str] = {}
            for place, raw in enumerate(_NAME.findall(text)):
                if raw in defined and raw not in fresh:
                    fresh[raw] = known[place] if place < len(known) else _unused(raw, before.used)
                    names[raw] = fresh[raw]
                mine.append(names.get(raw, raw))
            given = iter(mine)
            after.names.append(mine)
            after.tracks.append(before.tracks[old] if old is not None else next(self._tracks))
            yield Line(after.tracks[-1], _NAME.sub(lambda _, given=given: next(given), text)[:_WIDTH])  # type: ignore[misc]
        self._functions[name] = after


def _parts(text: str) -> tuple[list[str], dict[str, str]]:
    """The lines of a text, and its table of locations."""
    lines: list[str] = []
    locations: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("#loc"):
            name, _, value = line.partition(" = ")
            locations[name] = value
        elif line:
            lines.append(line)
    # Locations name each other by numbers, which the next text gives again; one level tells enough.
    return lines, {n: _ALIAS.sub(lambda m: locations.get(m[0], ""), value) for n, value in locations.items()}


def _keyed(line: str, locations: dict[str, str]) -> tuple[str, tuple[str, str]]:
    """A line without locations, and what it is matched by."""
    places = " ".join(_ALIAS.sub(lambda m: locations.get(m[0], ""), place) for place in _LOCATION.findall(line))
    text = _LOCATION.sub("", line)
    function = _FUNCTION.match(text)
    return text, (function[1], "") if function else (_NAME.sub("%", text), _ALIAS.sub("", places))


def _functions(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """The functions of a module by name, and what is around them without one."""
    name, part = "", list[str]()
    seen: Counter[str] = Counter()
    for line in lines:
        match = _FUNCTION.match(line)
        if match:
            yield name, part
            name, part = f"{match[1]} {seen[match[1]]}", []
            seen[match[1]] += 1
        part.append(line)
    yield name, part


def _unused(raw: str, used: set[str]) -> str:
    """A name that no value of the function has had: the one it has, or the next number."""
    stem = "%" if raw[1:].isdecimal() else re.sub(r"_?\d+$", "", raw) + "_"
    name = raw
    if name in used:
        start = len(used)
        name = next(f"{stem}{number}" for number in count(start) if f"{stem}{number}" not in used)
    used.add(name)
    return name


def _matches(new: Sequence[tuple[str, str]], old: Sequence[tuple[str, str]]) -> Iterator[tuple[int, int]]:
    """Pairs of equal lines in order: equal ends, lines that occur once on both sides, and what is equal between."""
    todo = [(0, len(new), 0, len(old))]
    while todo:
        a, b, c, d = todo.pop()
        while a < b and c < d and new[a] == old[c]:
            yield a, c
            a, c = a + 1, c + 1
        while a < b and c < d and new[b - 1] == old[d - 1]:
            b, d = b - 1, d - 1
            yield b, d
        if a == b or c == d:
            continue
        anchors = _anchors(new, old, a, b, c, d)
        if anchors:
            corners = [(a - 1, c - 1), *anchors, (b, d)]
            todo += [(x + 1, u, y + 1, v) for (x, y), (u, v) in pairwise(corners)]
            yield from anchors
        elif (b - a) * (d - c) <= _AREA:
            for block in SequenceMatcher(None, new[a:b], old[c:d], autojunk=False).get_matching_blocks():
                yield from ((a + block.a + i, c + block.b + i) for i in range(block.size))


def _anchors(
    new: Sequence[tuple[str, str]], old: Sequence[tuple[str, str]], a: int, b: int, c: int, d: int
) -> list[tuple[int, int]]:
    """The longest rising chain of lines that occur once on both sides."""
    ours, theirs = Counter(new[a:b]), Counter(old[c:d])
    places = {old[i]: i for i in range(c, d) if theirs[old[i]] == 1}
    once = [(i, places[new[i]]) for i in range(a, b) if ours[new[i]] == 1 and new[i] in places]
    # Patience: piles of rising ends, each entry remembering what it lies on.
    ends: list[int] = []
    tops: list[int] = []
    below: list[int] = []
    for place, (_, at) in enumerate(once):
        pile = bisect_left(ends, at)
        below.append(tops[pile - 1] if pile else -1)
        if pile == len(ends):
            ends.append(at)
            tops.append(place)
        else:
            ends[pile], tops[pile] = at, place
    chain: list[tuple[int, int]] = []
    place = tops[-1] if tops else -1
    while place >= 0:
        chain.append(once[place])
        place = below[place]
    return chain[::-1]
