"""Buckets of any program that can be made for given sizes: the sizes at which it is looked at, and its padded form."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hloforge.dialect.abi import crosses
from hloforge.dialect.bounded_sizes import BoundedSize, Padded
from hloforge.dialect.errors import ArgumentError, ImporterError, OperationError, UnsupportedError
from hloforge.dialect.program import Program
from hloforge.dialect.shapes import Shape
from hloforge.pipelines.dynamic.specialize import size_parameters, specialize
from hloforge.pipelines.padding.family import Family
from hloforge.pipelines.padding.pad import padded, with_sizes
from hloforge.pipelines.padding.sizes import Point

# So many choices of sizes are all looked at.
_ALL = 12
_FEW_BUCKETS = 8


@dataclass(eq=False)
class Padding:
    """A program for ranges of its open sizes.

    Attributes:
        program: with open sizes.
        sizes: its open sizes.
        cuts: for each the sizes of its buckets, ascending; each is the largest of a range.
    """

    program: Program
    sizes: tuple[BoundedSize, ...]
    cuts: tuple[tuple[int, ...], ...]
    check: Callable[[Sequence[Sequence[int]]], None] | None = None
    _families: dict[Point, Family] = field(default_factory=dict)
    _is_read: bool = False

    def __post_init__(self) -> None:
        if size_parameters(self.program):
            raise UnsupportedError("elements of an argument decide sizes")

    def check_sizes(self, dimensions: Sequence[Sequence[int]]) -> None:
        """Refuse sizes that the program does not take. Raises ArgumentError."""
        if self.check is not None:
            self.check(dimensions)
        for size in self.sizes:
            size.number(dimensions)
        open_places = {(place.parameter, place.dimension) for each in self.sizes for place in each.places}
        for number, (leaf, sizes) in enumerate(zip(self._leaves(), dimensions, strict=True)):
            wanted = leaf.shape.dimensions
            fixed = [d for d in range(len(wanted)) if (number, d) not in open_places]
            if len(sizes) != len(wanted) or any(sizes[d] != wanted[d] for d in fixed):
                raise ArgumentError(f"argument {leaf.name!r}: expected {leaf.shape}, got sizes {list(sizes)}")

    def _leaves(self) -> list[Any]:
        return [leaf for leaf in self.program.signature.flat_parameters if crosses(leaf.shape)]

    def program_at(self, numbers: Sequence[int]) -> Program:
        """The program for exactly some sizes."""
        dims = zip(self._leaves(), self._dims(numbers), strict=True)
        return specialize(self.program, [Shape.array(leaf.shape.element, *sizes) for leaf, sizes in dims])

    def _at(self, numbers: Sequence[int]) -> Program:
        """As ``program_at``. Raises UnsupportedError for sizes that the program does not take."""
        try:
            return self.program_at(numbers)
        except (ArgumentError, ImporterError, OperationError) as error:
            said = ", ".join(f"{size.name} = {number}" for size, number in zip(self.sizes, numbers, strict=True))
            raise UnsupportedError(
                f"the program is refused for {said}: {error.message}",
                hint="buckets of other sizes; or say which dimensions are of one size: {'x.0=y.0': …}",
            ) from None

    def _dims(self, numbers: Sequence[int]) -> list[list[int]]:
        """The sizes of all arguments."""
        dims = [list(leaf.shape.dimensions) for leaf in self._leaves()]
        for size, number in zip(self.sizes, numbers, strict=True):
            for place in size.places:
                dims[place.parameter][place.dimension] = place.factor * number + place.rest
        return dims

    def lowest(self, number: int, extent: int) -> int:
        """The least size of a bucket."""
        below = [cut for cut in self.cuts[number] if cut < extent]
        return max(self.sizes[number].least, 1, max(below, default=0) + 1)

    def padded(self, extents: Sequence[int]) -> Padded:
        """The program for all sizes of a bucket.

        Raises:
            UnsupportedError: an operation without a rule for padding, or programs that differ in more than sizes.
        """
        names = tuple(size.name for size in self.sizes)
        fixed = tuple(e if self.lowest(n, e) >= e else 0 for n, e in enumerate(extents))
        self._read_buckets()
        program = self._at(extents)
        if all(fixed):
            return with_sizes(program, names)
        opened = [number for number, size in enumerate(fixed) if not size]
        if fixed not in self._families:
            self._families[fixed] = self._family(fixed, opened)
        point = tuple(extents[number] for number in opened)
        return padded(self._families[fixed], program, point, names, opened)

    def _family(self, fixed: Point, opened: Sequence[int]) -> Family:
        ranges = [(min(self._lows(number)), max(self.cuts[number])) for number in opened]

        points = points_of(ranges)
        self._read_ahead([self._numbers(fixed, opened, point) for point in points])
        return Family(points, lambda point: self._at(self._numbers(fixed, opened, point)))

    def _read_ahead(self, wanted: Sequence[Sequence[int]]) -> None:
        """Have the programs for some sizes made at once, by a framework that takes seconds to load."""
        read_ahead = getattr(self.program.template, "read_ahead", None)
        if read_ahead is not None:
            read_ahead([self._dims(numbers) for numbers in wanted])

    def _read_buckets(self) -> None:
        """The programs of all buckets, unless they are many: each has the weights."""
        if self._is_read:
            return
        self._is_read = True
        if math.prod(map(len, self.cuts)) <= _FEW_BUCKETS:
            self._read_ahead(list(itertools.product(*self.cuts)))

    @staticmethod
    def _numbers(fixed: Point, opened: Sequence[int], point: Point) -> list[int]:
        """All sizes, of which some are fixed."""
        numbers = list(fixed)
        for number, size in zip(opened, point, strict=True):
            numbers[number] = size
        return numbers

    def _lows(self, number: int) -> list[int]:
        """The least sizes of the buckets that hold more than one."""
        return [low for extent in self.cuts[number] if (low := self.lowest(number, extent)) < extent]


def points_of(ranges: Sequence[tuple[int, int]]) -> list[Point]:
    """Sizes at which a program is looked at: the largest first, the ends, neighbours, and some between."""
    if math.prod(high - low + 1 for low, high in ranges) <= _ALL:
        return list(itertools.product(*(range(high, low - 1, -1) for low, high in ranges)))
    lists = []
    for number, (low, high) in enumerate(ranges):
        span = high - low
        # Different parts for different sizes, so that no two of them are equal or in one ratio everywhere.
        inner = [low + span * (part % 89) // 89 for part in (34 + 11 * number, 55 - 7 * number)]
        lists.append([high, low, low + 1, high - 1, *inner])
    count = len(ranges)
    turns = [tuple(lists[n][turn] for n in range(count)) for turn in range(6)]
    # One size at its end while the others are elsewhere.
    mixed = [tuple(lists[n][(turn + 2 * n + 1) % 6] for n in range(count)) for turn in range(6)] if count > 1 else []
    return list(dict.fromkeys([*turns, *mixed]))


def padding_of(
    program: Program,
    sizes: tuple[BoundedSize, ...],
    cuts: tuple[tuple[int, ...], ...],
    check: Callable[[Sequence[Sequence[int]]], None] | None = None,
) -> Padding:
    """The buckets of a program, all of whose operations have rules for padding.

    A program that is another one for a size of 1, such as one whose importer leaves out a broadcast, has a bucket of
    that size alone.

    Raises:
        UnsupportedError: as of ``Padding.padded``.
    """
    largest = [each[-1] for each in cuts]
    try:
        found = Padding(program, sizes, cuts, check)
        found.padded(largest)
        return found
    except UnsupportedError:
        apart = tuple(
            each if each[0] == 1 or size.least > 1 else (1, *each) for size, each in zip(sizes, cuts, strict=True)
        )
        if apart == cuts:
            raise
    found = Padding(program, sizes, apart, check)
    found.padded([each[-1] for each in apart])
    return found
