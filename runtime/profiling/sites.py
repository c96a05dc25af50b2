"""Find the call sites of a compiled program's dispatches, and the operations that each of them computes.

IREE prints a program after each of its phases, with locations. After ``dispatch-creation`` the code of each dispatch
still is at its place, so the locations inside it are those of this one; after ``stream``, equal code is shared, and
the order of all dispatches is known. Both texts are read by their indentation, which MLIR's printer keeps. Our own code
generator says itself what its dispatches compute.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hloforge.dialect.marks import PROFILE_LABEL
from hloforge.pipelines.codegen.kernel_program import KernelProgram

_ALIAS = re.compile(r"^(#loc\d*) = (loc\(.*\))$", re.MULTILINE)
_PLACE = re.compile(r"#loc\d*\b|" + re.escape(PROFILE_LABEL) + r"(\d+)")
_LABEL = re.compile(re.escape(PROFILE_LABEL) + r"(\d+)")
_OWN_CODE = re.compile(r"= flow\.dispatch\.workgroups[\[(<]")
_EXECUTE = re.compile(r"(?:= |^)stream\.cmd\.execute\b")
_DISPATCH = re.compile(r"stream\.cmd\.dispatch \{?@[^:]+::@([^\s\[({,}]+)")
# What several operations need, and IREE keeps once, with the location of one of them.
_SHARED = re.compile(
    r"= (?:arith\.constant|tensor\.(?:empty|dim|extract_slice)|linalg\.fill|flow\.dispatch\.workgroup\S*|"
    r"\S*dispatch\.tensor\.load|affine\.\S+)\b|dispatch\.tensor\.store|flow\.return|^ *(?:\(%|\^bb)"
)
_AT_LOADING = re.compile(r"^util\.initializer\b")
_FUNCTION = re.compile(r"^util\.(?:func|initializer)\b")


@dataclass(frozen=True)
class Site:
    """A dispatch at its position.

    Attributes:
        dispatch: the name of its code.
        operations: the numbers (``labels``) that its locations name.
    """

    dispatch: str
    operations: frozenset[int]


@dataclass(frozen=True)
class Batch:
    """Dispatches that the host submits at once, in their order."""

    sites: tuple[Site, ...]
    at_loading: bool

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(site.dispatch for site in self.sites)


def batches(phases: Mapping[str, str]) -> list[Batch]:
    """The batches of a program in the order of its text.

    Args:
        phases: IREE's text of the program after ``dispatch-creation`` and after ``stream``.
    """
    inside = _operations_inside(phases["dispatch-creation"])
    found = list(_submitted(_Text(phases["stream"])))
    places = Counter(site.operations for batch in found for site in batch.sites)
    # As many pieces of code as places: one for each, in order. Otherwise a position may be any of them.
    whole = {
        key: iter(inside[key] if len(inside.get(key, ())) == count else [_joined(inside.get(key, ()))] * count)
        for key, count in places.items()
    }
    return [
        Batch(
            tuple(Site(site.dispatch, site.operations | next(whole[site.operations])) for site in batch.sites),
            batch.at_loading,
        )
        for batch in found
    ]


def batches_of_kernels(program: KernelProgram) -> list[Batch]:
    """The only batch of a program of our code generator, which was asked for the origins of its dispatches."""
    sites = tuple(Site(program.name(one.kernel), _numbers(one.origins)) for one in program.dispatches)
    return [Batch(sites, at_loading=False)]


def _numbers(origins: Iterable[str]) -> frozenset[int]:
    return frozenset(int(match[1]) for name in origins if (match := _LABEL.fullmatch(name)))


def _joined(sets: Sequence[frozenset[int]]) -> frozenset[int]:
    return frozenset().union(*sets)


class _Text:
    """Lines of a module, and the numbers that their locations represent."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self._aliases = dict(_ALIAS.findall(text))
        self._known: dict[str, frozenset[int]] = {}

    def numbers(self, text: str) -> frozenset[int]:
        """The numbers in the locations of a line, those after aliases included."""
        found: set[int] = set()
        for match in _PLACE.finditer(text):
            found |= {int(match[1])} if match[1] else self._behind(match[0])
        return frozenset(found)

    def _behind(self, alias: str) -> frozenset[int]:
        if alias not in self._known:
            self._known[alias] = frozenset()  # an alias does not name itself
            self._known[alias] = self.numbers(self._aliases.get(alias, ""))
        return self._known[alias]

    def end(self, start: int) -> int:
        """The line on which the operation of a line ends: that of its last brace, or itself."""
        line = self.lines[start]
        if " loc(" in line:
            return start
        closing = line[: _indentation(line)] + "}"
        for number in range(start + 1, len(self.lines)):
            text = self.lines[number]
            if text.startswith(closing) and " loc(" in text:
                return number
        return start

    def own(self, start: int) -> frozenset[int]:
        """The numbers of an operation's own location."""
        return self.numbers(self.lines[self.end(start)].rpartition(" loc(")[2])


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _operations_inside(text: str) -> dict[frozenset[int], list[frozenset[int]]]:
    """For each location of a dispatch, the numbers inside those that have it, in the order of the program."""
    module, found = _Text(text), defaultdict(list)
    for start, line in enumerate(module.lines):
        if _OWN_CODE.search(line):
            end = module.end(start)
            body = "\n".join(text for text in module.lines[start:end] if not _SHARED.search(text))
            found[module.own(start)].append(module.own(start) | module.numbers(body))
    return found


def _submitted(module: _Text) -> Iterator[Batch]:
    at_loading, start = False, 0
    while start < len(module.lines):
        line = module.lines[start].strip()
        if _FUNCTION.match(line):
            at_loading = bool(_AT_LOADING.match(line))
        if not _EXECUTE.search(line):
            start += 1
            continue
        end = _end_of_region(module.lines, start)
        sites = [
            Site(match[1], module.own(number))
            for number in range(start, end)
            if (match := _DISPATCH.search(module.lines[number]))
        ]
        if sites:
            yield Batch(tuple(sites), at_loading)
        start = end


def _end_of_region(lines: Sequence[str], start: int) -> int:
    closing = lines[start][: _indentation(lines[start])] + "}"
    return next((number for number in range(start + 1, len(lines)) if lines[number].startswith(closing)), len(lines))
