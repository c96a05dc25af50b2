"""Sizes of arguments that have bounds, and the program for all sizes up to some: what an importer says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hloforge.dialect.errors import ArgumentError
from hloforge.dialect.program import Program


@dataclass(frozen=True)
class Place:
    """A dimension of an argument, whose size is ``factor * n + rest``."""

    parameter: int
    dimension: int
    factor: int = 1
    rest: int = 0


@dataclass(frozen=True)
class BoundedSize:
    """A size ``n`` that several dimensions may have.

    Attributes:
        name: of its first place, such as ``x.0``, by which it is called.
        least: the least size.
        most: the largest one; None for no bound.
    """

    name: str
    least: int
    most: int | None
    places: tuple[Place, ...]

    def to_json(self) -> list[Any]:
        places = [[place.parameter, place.dimension, place.factor, place.rest] for place in self.places]
        return [self.name, self.least, self.most, places]

    @classmethod
    def from_json(cls, entry: Sequence[Any]) -> BoundedSize:
        """Read back ``to_json``. Raises ValueError for anything else."""
        name, least, most, places = entry
        if not isinstance(name, str):
            raise ValueError("a size without a name")
        where = tuple(Place(*(int(number) for number in place)) for place in places)
        if not where or any(place.factor < 1 for place in where):
            raise ValueError(f"the size {name} is nowhere")
        return cls(name, int(least), None if most is None else int(most), where)

    def number(self, shapes: Sequence[Sequence[int]]) -> int:
        """The size ``n`` of arguments. Raises ArgumentError for places that contradict each other."""
        found: int | None = None
        for place in self.places:
            size = shapes[place.parameter][place.dimension]
            n, rest = divmod(size - place.rest, place.factor)
            if rest or (found is not None and n != found):
                said = f"{place.factor} * n + {place.rest}" if rest else f"{place.factor * (found or 0) + place.rest}"
                raise ArgumentError(
                    f"dimension {place.dimension} of argument {place.parameter} is {size}",
                    hint=f"with the other sizes it has to be {said}",
                )
            found = n
        assert found is not None  # a size has a place
        return found


@dataclass(frozen=True)
class Padded:
    """A program for all sizes up to those of a bucket.

    Attributes:
        program: of static shapes. After the parameters it takes a scalar of s64 for each bounded size; after the
            results it returns a scalar of s32 for each of ``cuts``.
        cuts: numbers of results with the dimensions whose real sizes these scalars are.
    """

    program: Program
    cuts: tuple[tuple[int, int], ...]
