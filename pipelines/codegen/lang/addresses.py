"""Addresses in innermost loops: a number that the loop is given, and what its own counter adds to it.

LLVM's loop strength reduction takes an address apart into all of its terms, those of the loops around it included, and
compares the ways to add them up: a third of what code generation of a kernel takes, though only the loop's own counter
changes there. So what does not change is added up before the loop, behind an empty piece of assembly that LLVM does not
look into.

An array that the loop writes keeps its addresses unless all of them begin at one such number, because LLVM has to see
how far apart what is written and what is read are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field

_ADDRESS = re.compile(r"  (%\w+) = getelementptr (inbounds )?([^,]+|\[[^]]+\]), ptr (%[\w.]+), (\S.*)$")
_SUM = re.compile(r"  (%\w+) = (add|sub|mul)(?: nuw)?(?: nsw)? i64 (%?-?\w+), (%?-?\w+)$")
# An address that something is given.
_POINTER = re.compile(r"ptr (%[\w.]+)")
# What hides where an address comes from. Metadata tells which arrays share no memory.
_HIDING = 'call ptr asm "", "=r,0"(ptr {}) memory(none) willreturn'
# The same, after which LLVM still knows whose it is: for arrays that are apart as arguments. It takes more time.
_KEEPING = "call ptr @llvm.launder.invariant.group.p0(ptr {})"
_ARGUMENTS = ("%turn", "%p")
_HIDDEN = re.compile(re.escape(_HIDING).replace(r"\{\}", r"(%[\w.]+)"))

# Names with their factors, in the order of the names.
Terms = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class _Sum:
    """Multiples of numbers, and a constant."""

    terms: Terms = ()
    constant: int = 0

    def plus(self, other: _Sum, factor: int = 1) -> _Sum:
        found = dict(self.terms)
        for name, times in other.terms:
            found[name] = found.get(name, 0) + times * factor
        terms = tuple(sorted((name, times) for name, times in found.items() if times))
        return _Sum(terms, self.constant + other.constant * factor)


@dataclass(frozen=True)
class _Address:
    """Of an element of an array.

    Attributes:
        place: of its line.
        array: the array's own address.
        kind: of the array's elements.
        fixed: terms of the number that the loop does not change.
        rest: of the number.
        is_plain: whether it is a number, and no vector.
    """

    place: int
    name: str
    array: str
    kind: str
    fixed: Terms = ()
    rest: _Sum = field(default_factory=_Sum)
    is_plain: bool = True


def with_bases(
    lines: Sequence[str], counters: Iterable[str], local: Set[str], name: Callable[[], str]
) -> tuple[list[str], list[str]] | None:
    """Lines to stand before a loop, and those of its body; None if they are as they were.

    Args:
        lines: of the body.
        counters: numbers that it has beside those, which are others in each iteration.
        local: addresses on the stack, which LLVM keeps apart from all others as long as it sees what they are.
        name: a new one.
    """
    own = {line[2 : line.index(" ", 2)] for line in lines if line.startswith("  %")}.union(counters)
    addresses = _addresses(lines, own)
    kept = own | _kept(lines, addresses) | local
    before: list[str] = []
    made: dict[tuple[str, str, Terms], str] = {}
    changed: dict[int, list[str]] = {}

    def sum_of(found: _Sum, to: list[str]) -> str:
        """The name of a sum, which is written."""
        total = ""
        for one, factor in found.terms:
            term = one
            if factor != 1:
                to.append(f"  {(term := name())} = mul i64 {one}, {factor}")
            if total:
                to.append(f"  {(both := name())} = add i64 {total}, {term}")
                term = both
            total = term
        if found.constant:
            to.append(f"  {(both := name())} = add i64 {total}, {found.constant}")
            total = both
        return total

    for one in addresses:
        if not one.is_plain or not one.fixed or not one.rest.terms or one.array in kept:
            continue
        key = one.array, one.kind, one.fixed
        if key not in made:
            number = sum_of(_Sum(one.fixed), before)
            before.append(f"  {(start := name())} = getelementptr {one.kind}, ptr {one.array}, i64 {number}")
            hidden = name()
            hiding = _KEEPING if one.array.startswith(_ARGUMENTS) else _HIDING
            before.append(f"  {hidden} = {hiding.format(start)}")
            made[key] = hidden
        number = sum_of(one.rest, changed.setdefault(one.place, []))
        # The base may lie outside of the array.
        changed[one.place].append(f"  {one.name} = getelementptr nusw {one.kind}, ptr {made[key]}, i64 {number}")
    if not made:
        return None
    return before, [new for place, line in enumerate(lines) for new in changed.get(place, [line])]


def of_arguments(line: str) -> str:
    """A line where arrays are arguments, and have no metadata."""
    return _HIDDEN.sub(lambda match: _KEEPING.format(match[1]), line) if " asm " in line else line


def _addresses(lines: Sequence[str], own: set[str]) -> list[_Address]:
    sums: dict[str, _Sum] = {}

    def known(text: str) -> _Sum:
        if not text.startswith("%"):
            return _Sum((), int(text))
        return sums.get(text) or _Sum(((text, 1),))

    found = []
    for place, line in enumerate(lines):
        if " = getelementptr " not in line:
            if " i64 " not in line or not (match := _SUM.match(line)):
                continue
            name, what, first, second = match.groups()
            left, right = known(first), known(second)
            if what != "mul":
                sums[name] = left.plus(right, 1 if what == "add" else -1)
            elif not right.terms:
                sums[name] = _Sum().plus(left, right.constant)
            elif not left.terms:
                sums[name] = _Sum().plus(right, left.constant)
            continue
        match = _ADDRESS.match(line)
        if match is None:
            continue
        name, _, kind, array, number = match.groups()
        if not number.startswith("i64 "):
            found.append(_Address(place, name, array, kind, is_plain=False))
            continue
        whole = known(number.removeprefix("i64 "))
        fixed = tuple(term for term in whole.terms if term[0] not in own)
        rest = _Sum(tuple(term for term in whole.terms if term[0] in own), whole.constant)
        found.append(_Address(place, name, array, kind, fixed, rest))
    return found


def _writes(line: str) -> bool:
    """Whether it may write memory."""
    return line.startswith("  store ") or " call " in line


def _kept(lines: Sequence[str], addresses: Sequence[_Address]) -> set[str]:
    """The arrays that are written here, and have several bases."""
    roots: dict[str, str] = {}
    for one in addresses:
        roots[one.name] = roots.get(one.array, one.array)
    written = {roots.get(pointer, pointer) for line in lines if _writes(line) for pointer in _POINTER.findall(line)}
    bases: dict[str, set[tuple[str, Terms] | None]] = {}
    for one in addresses:
        if one.array not in roots:
            base = (one.kind, one.fixed) if one.is_plain else None
            bases.setdefault(one.array, set()).add(base)
    return {array for array in written if len(bases.get(array, ())) > 1}
