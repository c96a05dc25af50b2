"""Sizes as functions of a program's open sizes, found from what they are at some of them.

A program that is imported for sizes ``(2, 9)``, ``(3, 17)`` … has in each a dimension of ``18, 51, …``: the product.
What fits none of the forms below is refused: a guess that is right at the sizes that were looked at says nothing of
others.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

# Divisors that are tried where nothing tells of one.
_MOST_DIVISOR = 8
# Sizes at which two expressions are compared.
_MOST_BETWEEN, _FEW = 4096, 16
# Open sizes in their order.
Point: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Size:
    """An expression of open sizes.

    Attributes:
        op: ``number``, ``symbol``, ``+``, ``*`` or ``//``.
        parts: the number; the number of the symbol; two sizes, of which the second of ``//`` is a number.
    """

    op: str
    parts: tuple[Any, ...]

    def at(self, point: Point) -> int:
        if self.op == "number":
            return int(self.parts[0])
        if self.op == "symbol":
            return int(point[self.parts[0]])
        left, right = (part.at(point) for part in self.parts)
        return int(left + right if self.op == "+" else left * right if self.op == "*" else left // right)

    @property
    def number(self) -> int | None:
        """The value of a size that is the same everywhere."""
        return int(self.parts[0]) if self.op == "number" else None

    def __add__(self, other: Size | int) -> Size:
        other = sized(other)
        if self.number is not None and other.number is not None:
            return sized(self.number + other.number)
        return self if other.number == 0 else other if self.number == 0 else Size("+", (self, other))

    def __mul__(self, other: Size | int) -> Size:
        other = sized(other)
        if self.number is not None and other.number is not None:
            return sized(self.number * other.number)
        return self if other.number == 1 else other if self.number == 1 else Size("*", (self, other))

    def __floordiv__(self, other: int) -> Size:
        if self.number is not None:
            return sized(self.number // other)
        return self if other == 1 else Size("//", (self, sized(other)))

    def __sub__(self, other: Size | int) -> Size:
        return self + sized(other) * -1


def sized(number: Size | int) -> Size:
    return number if isinstance(number, Size) else Size("number", (int(number),))


def symbol(number: int) -> Size:
    return Size("symbol", (number,))


class Fits:
    """Expressions by the values that they have at some sizes.

    Attributes:
        points: these sizes.
    """

    def __init__(self, points: Sequence[Point]) -> None:
        self.points = tuple(points)
        self._known: dict[tuple[int, ...], Size | None] = {}
        for number in range(len(points[0])):
            self.learn(symbol(number))

    def learn(self, size: Size) -> None:
        """Remember an expression that is certain, such as that of a window, which no fit would find."""
        self._known.setdefault(tuple(map(size.at, self.points)), size)

    def of(self, values: Sequence[int]) -> Size | None:
        """The expression that has these values; None if there is none of a known form."""
        key = tuple(int(value) for value in values)
        if len(set(key)) == 1:
            return sized(key[0])
        if key not in self._known:
            self._known[key] = self._fitted(key)
        return self._known[key]

    def _fitted(self, values: tuple[int, ...]) -> Size | None:
        count = len(self.points[0])
        singles = [symbol(number) for number in range(count)]
        products = [
            _product(chosen)
            for length in (2, 3)
            for chosen in itertools.combinations_with_replacement(singles, length)
            if length == 2 or len(set(chosen)) == 3
        ]
        # The fewest terms first: with a term for each value, any values fit.
        bases: list[list[Size]] = [[single] for single in singles] + [[product] for product in products]
        bases += [singles] if count > 1 else []
        bases += [[*singles, product] for product in products]
        # Two points more than terms are what a guess has to hold at, unless there are no sizes but the points.
        spare = 1 if self._is_complete() else 3
        for basis in bases:
            if len(basis) + spare <= len(self.points) and (found := self._combined(basis, values)) is not None:
                return found
        # A size that was learned, with a factor and a rest.
        known = [size for size in dict.fromkeys(self._known.values()) if size is not None]
        for size in known:
            if (found := self._combined([size], values)) is not None:
                return found
        return self._quotient(singles, values) or self._quotient(known, values)

    def _is_complete(self) -> bool:
        """Whether the points are all sizes in their range."""
        ranges = [max(sizes) - min(sizes) + 1 for sizes in zip(*self.points, strict=True)]
        return int(np.prod(ranges)) == len(set(self.points))

    def _quotient(self, sizes: Sequence[Size], values: Sequence[int]) -> Size | None:
        """``(size + rest) // divisor``, if all such expressions are the same between the points as well."""
        found = [
            (size + rest) // divisor
            for size in sizes
            for divisor in range(2, _MOST_DIVISOR + 1)
            for rest in range(1 - 2 * divisor, 2 * divisor)
            if all((size.at(p) + rest) // divisor == value for p, value in zip(self.points, values, strict=True))
        ]
        between = self._between() if len(found) > 1 else ()
        same = all(size.at(point) == found[0].at(point) for size in found for point in between)
        return found[0] if found and same else None

    def _between(self) -> list[Point]:
        """Sizes in the range of the points: all, if they are few."""
        ranges = [range(min(sizes), max(sizes) + 1) for sizes in zip(*self.points, strict=True)]
        while len(ranges) > 1 and np.prod([len(each) for each in ranges]) > _MOST_BETWEEN:
            ranges = [each if len(each) <= _FEW else each[:: len(each) // _FEW + 1] for each in ranges]
            if all(len(each) <= _FEW for each in ranges):
                break
        return list(itertools.product(*ranges))

    def _combined(self, basis: Sequence[Size], values: Sequence[int]) -> Size | None:
        """``values`` as a sum of the basis' sizes with whole factors, and a number."""
        rows = [[*(Fraction(size.at(point)) for size in basis), Fraction(1)] for point in self.points]
        factors = _solved(rows, [Fraction(value) for value in values])
        if factors is None or any(factor.denominator != 1 for factor in factors):
            return None
        total = sized(int(factors[-1]))
        for factor, size in zip(factors, basis, strict=False):
            if factor:
                total = size * int(factor) + total
        return total


def _product(sizes: Sequence[Size]) -> Size:
    found = sizes[0]
    for size in sizes[1:]:
        found = found * size
    return found


def _solved(rows: list[list[Fraction]], values: list[Fraction]) -> list[Fraction] | None:
    """The only solution of linear equations; None if there is none, or more than one."""
    count = len(rows[0])
    table = [[*row, value] for row, value in zip(rows, values, strict=True)]
    for column in range(count):
        pivot = next((number for number in range(column, len(table)) if table[number][column]), None)
        if pivot is None:
            return None
        table[column], table[pivot] = table[pivot], table[column]
        table[column] = [entry / table[column][column] for entry in table[column]]
        for number, row in enumerate(table):
            if number != column and row[column]:
                factor = row[column]
                table[number] = [entry - factor * other for entry, other in zip(row, table[column], strict=True)]
    if any(any(row) for row in table[count:]):
        return None
    return [row[-1] for row in table[:count]]


# What a constant may be of a size: how to invert it, and its name.
_FORMS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("size", lambda x: x),
    ("reciprocal", lambda x: 1 / x),
    ("sqrt", lambda x: x * x),
    ("rsqrt", lambda x: 1 / (x * x)),
)


@dataclass(frozen=True)
class Number:
    """A constant that depends on open sizes.

    Attributes:
        form: ``size``, ``reciprocal``, ``sqrt`` or ``rsqrt`` of the size.
    """

    form: str
    size: Size

    def at(self, point: Point) -> float:
        value = self.size.at(point)
        if self.form == "size":
            return value
        root = value if self.form == "reciprocal" else float(np.sqrt(value))
        return root if self.form == "sqrt" else 1 / root


def fitted_number(fits: Fits, values: Sequence[Any]) -> Number | None:
    """What a number of an array is, by its values at the points of ``fits``; None if it is of no known form."""
    array = np.asarray(values)
    if array.dtype.kind in "iub":
        size = fits.of([int(value) for value in array])
        return None if size is None else Number("size", size)
    if array.dtype.kind == "c" or not np.isfinite(array.astype(np.float64)).all():
        return None
    wide = array.astype(np.float64)
    for form, inverse in _FORMS:
        if form != "size" and (wide <= 0).any():
            continue
        whole = inverse(wide)
        rounded = np.rint(whole)
        if not np.allclose(whole, rounded, rtol=2e-6 if array.dtype.itemsize > 2 else 2e-2, atol=0):
            continue
        size = fits.of([int(value) for value in rounded])
        if size is None:
            continue
        number = Number(form, size)
        # What the program computes is what the importer has computed, but for the last bit.
        made = np.array([number.at(point) for point in fits.points]).astype(array.dtype).astype(np.float64)
        if np.allclose(made, wide, rtol=4 * float(_epsilon(array.dtype)), atol=0):
            return number
    return None


def _epsilon(dtype: np.dtype[Any]) -> float:
    return 2.0**-52 if dtype.itemsize == 8 else 2.0**-23 if dtype.itemsize == 4 else 2.0**-7
