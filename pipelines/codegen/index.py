"""Places in arrays as affine expressions of loops' counters, simplified by what is known of their ranges.

A reshape divides and takes remainders. Where the sizes fit, ``(8 i + j) / 8`` is ``i`` if ``j`` is below 8, so that
most reshapes cost nothing and a loop over rows stays a loop over rows. What does not simplify becomes a symbol of its
own, whose value is computed when it is asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

_numbers = itertools.count()


@dataclass(eq=False, frozen=True)
class Symbol:
    """A number that is known when the code runs.

    Attributes:
        most: its largest value; the smallest is 0.
        quotient: the expression and the divisor whose quotient it is, if any.
        value: of the code, for others: a counter of a loop, a start that is read from memory.
        order: symbols are sorted by it in expressions.
    """

    most: int
    quotient: tuple[Index, int] | None = None
    value: Any = None
    order: int = field(default_factory=lambda: next(_numbers))


@dataclass(eq=False, slots=True)
class Index:
    """A sum of multiples of symbols and of a number, which nobody changes.

    Planning makes hundreds of thousands of them for a program of thousands of operations, so they are made as cheaply
    as Python can (a frozen dataclass takes four times as long), and remember what tables ask for.

    Attributes:
        terms: symbols with their factors, none of which is 0, by the symbols' order.
        offset: the number.
    """

    terms: Terms = ()
    offset: int = 0
    _hash: int | None = field(default=None, init=False, repr=False)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.terms, self.offset))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Index) and self.offset == other.offset and self.terms == other.terms

    @property
    def low(self) -> int:
        """A bound: no value is below it."""
        return self.offset + sum(symbol.most * factor for symbol, factor in self.terms if factor < 0)

    @property
    def high(self) -> int:
        """A bound: no value is above it."""
        return self.offset + sum(symbol.most * factor for symbol, factor in self.terms if factor > 0)

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return Index(self.terms, self.offset + other) if other else self
        if not other.terms:
            return self + other.offset
        if not self.terms:
            return other + self.offset
        return Index(_joined(self.terms, other.terms), self.offset + other.offset)

    def __sub__(self, other: Index | int) -> Index:
        return self + (-other if isinstance(other, int) else other * -1)

    def __mul__(self, factor: int) -> Index:
        if factor == 1:
            return self
        if factor == 0:
            return Index()
        return Index(tuple([(symbol, was * factor) for symbol, was in self.terms]), self.offset * factor)

    def over(self, divisor: int) -> Index:
        """The quotient, rounded down, of a value that is not negative."""
        if divisor == 1:
            return self
        whole = [(symbol, factor // divisor) for symbol, factor in self.terms if factor % divisor == 0]
        rest = Index(tuple(term for term in self.terms if term[1] % divisor), self.offset % divisor)
        quotient = Index(_merged(whole), self.offset // divisor)
        if rest.low >= 0 and rest.high < divisor:
            return quotient
        if rest.low < 0:
            # Rounded down below zero is not what the code computes.
            quotient, rest = Index(), self
        if rest.low >= 0 and len(rest.terms) == 1 and rest.terms[0][1] == 1 and rest.terms[0][0].quotient:
            # A quotient of a quotient, in one form however it is written.
            inner, before = rest.terms[0][0].quotient
            return quotient + (inner + rest.offset * before).over(before * divisor)
        common = _common((*(factor for _, factor in rest.terms), divisor))
        if common > 1:
            # The offset's remainder by the common factor never matters.
            smaller = Index(tuple((symbol, factor // common) for symbol, factor in rest.terms), rest.offset // common)
            return quotient + smaller.over(divisor // common)
        for factor in sorted({factor for _, factor in rest.terms if 1 < factor < divisor}, reverse=True):
            # What is below a factor never carries into its multiples.
            below = Index(tuple(term for term in rest.terms if term[1] % factor), rest.offset % factor)
            if divisor % factor == 0 and below.low >= 0 and below.high < factor:
                above = Index(tuple((symbol, was // factor) for symbol, was in rest.terms if was % factor == 0))
                return quotient + (above + rest.offset // factor).over(divisor // factor)
        return quotient + Index(((_quotient(rest, divisor), 1),))

    def modulo(self, divisor: int) -> Index:
        """The remainder of a value that is not negative."""
        return self - self.over(divisor) * divisor


Terms = tuple[tuple[Symbol, int], ...]
_quotients: dict[tuple[Index, int], Symbol] = {}


def _quotient(index: Index, divisor: int) -> Symbol:
    # The same quotient is one symbol, so that it cancels in remainders.
    key = (index, divisor)
    if key not in _quotients:
        if len(_quotients) > 4096:
            _quotients.clear()
        _quotients[key] = Symbol(index.high // divisor, key)
    return _quotients[key]


def _joined(first: Terms, second: Terms) -> Terms:
    """The sum of two sums."""
    if first[-1][0].order < second[0][0].order:
        return first + second
    if second[-1][0].order < first[0][0].order:
        return second + first
    return _merged(first + second)


def _merged(terms: Iterable[tuple[Symbol, int]]) -> Terms:
    sums: dict[Symbol, int] = {}
    for symbol, factor in terms:
        sums[symbol] = sums.get(symbol, 0) + factor
    found = [term for term in sums.items() if term[1]]
    return tuple(sorted(found, key=lambda term: term[0].order))


def _common(numbers: Iterable[int]) -> int:
    import math

    return math.gcd(*numbers)


ZERO = Index()


def counter(size: int, value: Any = None) -> Index:
    """The counter of a loop of ``size`` iterations from 0 on."""
    return Index(((Symbol(max(size - 1, 0), value=value), 1),)) if size > 1 else ZERO


def constant(number: int) -> Index:
    return Index((), number)


def linear(place: Iterable[Index], shape: Iterable[int]) -> Index:
    """The number of an element in a dense row-major array."""
    found = ZERO
    for index, size in zip(place, shape, strict=True):
        # Most dimensions before the first counter are 0.
        found = found * size + index if found.terms or found.offset else index
    return found


def delinear(number: Index, shape: tuple[int, ...]) -> tuple[Index, ...]:
    """The place of the element of a number in a dense row-major array."""
    found: list[Index] = []
    for size in reversed(shape[1:]):
        quotient = number.over(size)
        found.append(number - quotient * size)
        number = quotient
    return (number, *reversed(found)) if shape else ()


@lru_cache(1 << 12)
def reshaped(place: tuple[Index, ...], old: tuple[int, ...], new: tuple[int, ...]) -> tuple[Index, ...]:
    """The place in an array of another shape with the same elements in the same order.

    Dimensions that both shapes share stay apart, so that fewer quotients are left. Arrays of nothing have no places.
    """
    if 0 in old:
        return (ZERO,) * len(new)
    found: list[Index] = []
    i = j = 0
    while i < len(old) or j < len(new):
        first, second = i, j
        left = old[i] if i < len(old) else 1
        right = new[j] if j < len(new) else 1
        i, j = min(i + 1, len(old)), min(j + 1, len(new))
        while left != right:
            if left < right:
                left *= old[i]
                i += 1
            else:
                right *= new[j]
                j += 1
        while i < len(old) and old[i] == 1 and j == len(new):
            i += 1
        found += delinear(linear(place[first:i], old[first:i]), new[second:j])
    return tuple(found)
