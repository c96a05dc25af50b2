"""Where the real elements are along a padded dimension.

A dimension of an open size ``n`` in an array of ``N`` is a *prefix*: its real elements come first. Where dimensions
were merged, as ``[n, m, 4]`` to ``[n * m * 4]``, the elements stay where they are: the dimension is a list of *atoms*,
such as ``(N, n)``, ``(M, m)``, ``(4, 4)``, and an element is real if it is in each of them. So merging moves nothing,
and splitting again neither; only what asks for an order along the dimension needs the elements moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hloforge.pipelines.padding.sizes import Size


@dataclass(frozen=True)
class Atom:
    """A dimension that was merged into one.

    Attributes:
        extent: its size in the array.
        real: how many of these positions, the first ones, are no padding.
    """

    extent: int
    real: Size

    @property
    def is_open(self) -> bool:
        return self.real.number is None


@dataclass(frozen=True)
class Dim:
    """A dimension with padding.

    Attributes:
        atoms: the most major one first; one of them at least is open.
        uniform: whether all elements along it are equal, so that it is of any layout of its extent.
    """

    atoms: tuple[Atom, ...]
    uniform: bool = False

    @property
    def is_prefix(self) -> bool:
        return len(self.atoms) == 1

    @property
    def real(self) -> Size:
        found = self.atoms[0].real
        for atom in self.atoms[1:]:
            found = found * atom.real
        return found

    @property
    def extent(self) -> int:
        found = 1
        for atom in self.atoms:
            found *= atom.extent
        return found


# Of an array: for each dimension None, if it has no padding.
Layout = tuple[Dim | None, ...]


def merged(atoms: Sequence[Atom]) -> Dim | None:
    """The dimension of atoms, the fewest; None if none of them is open."""
    found: list[Atom] = []
    for atom in atoms:
        if atom.extent == 1 and not atom.is_open:
            continue
        # A full atom behind another: its elements follow each other, so that real ones stay together.
        if found and not atom.is_open:
            last = found[-1]
            found[-1] = Atom(last.extent * atom.extent, last.real * atom.real)
        else:
            found.append(atom)
    return Dim(tuple(found)) if any(atom.is_open for atom in found) else None


def plain(layout: Layout) -> Layout:
    """The layout of other elements, of which none equals another by construction."""
    return tuple(None if dim is None else Dim(dim.atoms) for dim in layout)


def prefix(extent: int, real: Size, *, uniform: bool = False) -> Dim:
    return Dim((Atom(extent, real),), uniform)
