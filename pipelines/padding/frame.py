"""The program of a bucket while it is rewritten: layouts of its values, real sizes, masks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.element_types import ElementType
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.idioms import take
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import location_of
from hloforge.dialect.values import Value
from hloforge.pipelines.padding.family import Family, Listing
from hloforge.pipelines.padding.layouts import Atom, Dim, Layout, prefix
from hloforge.pipelines.padding.sizes import Point, Size, sized

# Added before a division, so that it is of no negative number: a multiple of any divisor, which is below it.
_LARGE = 1 << 20
Rule: TypeAlias = "Callable[[Frame, Any], None]"
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: what an operation with padded operands or results becomes."""

    def decorate(function: Rule) -> Rule:
        for name in names:
            key = name if "." in name else f"stablehlo.{name}"
            if key in RULES:
                raise ValueError(f"{key} has two rules")
            RULES[key] = function
        return function

    return decorate


class Frame:
    """The program of a bucket.

    Attributes:
        family: what is known of the programs for all sizes.
        point: the bucket's sizes.
        layouts: of values with padding.
    """

    def __init__(self, family: Family, listing: Listing, point: Point, reals: Sequence[Value], anchor: Any) -> None:
        self.family, self.listing, self.point = family, listing, point
        self.layouts: dict[Any, Layout] = {}
        # By results: an operation's hash is another one when its operands are.
        self._places = {result: number for number, member in enumerate(listing.members) for result in member.op.results}
        self._reals, self._anchor = reals, anchor
        self._sizes: dict[Size, Value] = {}
        self._masks: dict[Dim, Value] = {}
        self._orders: dict[tuple[Dim, Dim], Value] = {}
        self._replaced: list[Any] = []

    def knows(self, op: Any) -> bool:
        """Whether an operation was in the program as it came, and has results."""
        return bool(len(op.results)) and op.results[0] in self._places

    def place(self, op: Any) -> int:
        """The number of an operation in the family's listings."""
        return self._places[op.results[0]]

    def dims(self, value: Any) -> tuple[Size, ...]:
        """The sizes of a value of the program as it came."""
        return self.family.dims[self.listing.numbers[value]]

    def attribute(self, op: Any, name: str, numbers: Sequence[int]) -> list[Size]:
        """The numbers of an attribute as sizes; ``numbers`` are those of this program."""
        found = self.family.sizes(self.place(op), name)
        if found is None:
            return [sized(number) for number in numbers]
        return [self._known(op, name, size) for size in found]

    @staticmethod
    def _known(op: Any, name: str, size: Size | None) -> Size:
        if size is None:
            raise refuse(op, f"its {name} depends on a size in no known way")
        return size

    def layout(self, value: Any) -> Layout:
        value = value.ir if isinstance(value, Value) else value
        return self.layouts.get(value) or (None,) * len(_shape(value))

    def set(self, value: Any, layout: Iterable[Dim | None]) -> None:
        """Say how a value is padded."""
        value = value.ir if isinstance(value, Value) else value
        layout = tuple(layout)
        if any(dim is not None for dim in layout):
            self.layouts[value] = layout

    def extents(self, value: Value) -> list[Size]:
        """The sizes of a value, also of one that was made here."""
        pairs = zip(self.layout(value), value.dims, strict=True)
        return [sized(extent) if dim is None else dim.real for dim, extent in pairs]

    def is_open(self, value: Any) -> bool:
        return any(dim is not None for dim in self.layout(value))

    def prefixes(self, value: Any, *, uniform: Iterable[int] = ()) -> list[Dim | None]:
        """The layout of a value of the program as it came, in which all open dimensions are prefixes."""
        chosen = set(uniform)
        pairs = zip(_shape(value), self.dims(value), strict=True)
        return [
            None if size.number is not None else prefix(extent, size, uniform=d in chosen)
            for d, (extent, size) in enumerate(pairs)
        ]

    def replace(self, op: Any, results: Sequence[Value], layouts: Sequence[Iterable[Dim | None]]) -> None:
        """Other values instead of an operation's."""
        for old, new, layout in zip(list(op.results), results, layouts, strict=True):
            old.replace_all_uses_with(new.ir)
            self.set(new, layout)
        self._replaced.append(op)

    def erase_replaced(self) -> None:
        """Erase the operations that were replaced."""
        for op in reversed(self._replaced):
            op.erase()

    @contextmanager
    def _top(self) -> Iterator[None]:
        with ir.InsertionPoint(self._anchor), self._anchor.location:
            yield

    def size(self, size: Size) -> Value:
        """A size as a scalar of s64, computed once at the beginning of the program."""
        if size not in self._sizes:
            with self._top():
                self._sizes[size] = self._computed(size)
        return self._sizes[size]

    def _computed(self, size: Size) -> Value:
        if size.op == "number":
            return constant(np.int64(size.parts[0]))
        if size.op == "symbol":
            real: Value = self._reals[size.parts[0]]
            return real
        left, right = (self.size(part) for part in size.parts)
        if size.op == "//":
            many = size.parts[1].number * _LARGE
            return ops.sub(ops.div(ops.add(left, many), right), _LARGE)
        return ops.add(left, right) if size.op == "+" else ops.mul(left, right)

    def mask(self, dim: Dim) -> Value:
        """Where elements along a dimension are real: pred of its extent."""
        dim = Dim(dim.atoms)
        if dim not in self._masks:
            extents = [atom.extent for atom in dim.atoms]
            reals = [self.size(atom.real) if atom.is_open else None for atom in dim.atoms]
            with self._top():
                found: Value | None = None
                for number, real in enumerate(reals):
                    if real is not None:
                        places = ops.iota("s64", extents, number)
                        inside = ops.lt(places, ops.broadcast_in_dim(real, extents, []))
                        found = inside if found is None else ops.and_(found, inside)
                assert found is not None  # an atom is open
                self._masks[dim] = ops.reshape(found, [dim.extent])
        return self._masks[dim]

    def inside(self, shape: Sequence[int], dims: dict[int, Dim]) -> Value:
        """Where all of some dimensions of an array are real: pred of its shape."""
        found: Value | None = None
        for d, dim in dims.items():
            wide = ops.broadcast_in_dim(self.mask(dim), list(shape), [d])
            found = wide if found is None else ops.and_(found, wide)
        assert found is not None
        return found

    def masked(self, value: Value, dimensions: Iterable[int], fill: Value | Any) -> Value:
        """An array whose padding along some dimensions is a number.

        Args:
            fill: a number or a scalar.
        """
        layout = self.layout(value)
        dims = {d: dim for d in dimensions if (dim := layout[d]) is not None}
        if not dims:
            return value
        if not isinstance(fill, Value):
            fill = constant(np.asarray(fill).astype(value.element_type.dtype), value.element_type)
        wide = ops.broadcast_in_dim(fill, list(value.dims), [])
        made = ops.select(self.inside(value.dims, dims), value, wide)
        self.set(made, [Dim(dim.atoms) if d in dims and dim is not None else dim for d, dim in enumerate(layout)])
        return made

    def with_room(self, x: Value, d: int, size: Size, taken: Size) -> Value:
        """An array in which parts of an open size begin wherever they may: their padding may lie behind its end."""
        points = (*self.family.fits.points, self.point)
        if taken.number is not None or len({size.at(point) - taken.at(point) for point in points}) == 1:
            return x
        room = [(0, taken.at(self.point) if e == d else 0, 0) for e in range(x.rank)]
        made = ops.pad(x, constant(0, x.element_type), room)
        layout = self.layout(x)
        self.set(made, [prefix(made.dims[d], dim.real) if e == d and dim else dim for e, dim in enumerate(layout)])
        return made

    # --- Layouts.

    def positions(self, target: Dim, source: Dim) -> Value:
        """Where the elements of one layout are in another: s64 of the extent of ``target``."""
        key = Dim(target.atoms), Dim(source.atoms)
        if key not in self._orders:
            sizes = {atom.real: self.size(atom.real) for atom in (*target.atoms, *source.atoms)}
            with self._top():
                rank = _ranks(key[0], sizes)
                self._orders[key] = _places(rank, key[1], sizes)
        return self._orders[key]

    def relaid(self, value: Value, d: int, target: Dim) -> Value:
        """An array with another layout along a dimension."""
        source = self.layout(value)[d]
        if source is None or source.atoms == target.atoms:
            return value
        layout = [*self.layout(value)]
        layout[d] = Dim(target.atoms, source.uniform)
        if source.uniform and source.extent == target.extent:
            self.set_alias(value, layout)
            return value
        made = take(value, self.positions(target, source), d)
        self.set(made, layout)
        return made

    def set_alias(self, value: Value, layout: Sequence[Dim | None]) -> None:
        """Say that a value whose elements are equal along a dimension has another layout there."""
        self.layouts[value.ir] = tuple(layout)

    def as_prefix(self, value: Value, dimensions: Iterable[int] | None = None) -> Value:
        """An array whose real elements come first along some dimensions, by default all."""
        for d in range(value.rank) if dimensions is None else dimensions:
            dim = self.layout(value)[d]
            if dim is not None and not dim.is_prefix:
                value = self.relaid(value, d, prefix(dim.extent, dim.real))
        return value

    def common(self, dims: Sequence[Dim | None]) -> Dim | None:
        """The layout in which arrays meet."""
        known = [dim for dim in dims if dim is not None]
        if not known:
            return None
        fixed = [dim for dim in known if not dim.uniform]
        if not fixed:
            return known[0]
        if all(dim.atoms == fixed[0].atoms for dim in fixed):
            return fixed[0]
        return prefix(fixed[0].extent, fixed[0].real)

    def together(self, values: Sequence[Value]) -> tuple[list[Value], Layout]:
        """Arrays of one shape in a common layout."""
        layout = tuple(self.common(dims) for dims in zip(*(self.layout(value) for value in values), strict=True))
        found = []
        for value in values:
            for d, dim in enumerate(layout):
                if dim is not None and self.layout(value)[d] is not None:
                    value = self.relaid(value, d, dim)
            found.append(value)
        return found, layout


def _shape(value: Any) -> Sequence[int]:
    return list(value.type.shape) if isinstance(value.type, ir.RankedTensorType) else []


def _ranks(dim: Dim, sizes: dict[Size, Value]) -> Value:
    """Of each position how many real elements are before it, in the order of the elements."""
    extents = [atom.extent for atom in dim.atoms]
    found: Value | None = None
    for number, atom in enumerate(dim.atoms):
        place = ops.iota("s64", extents, number)
        if found is not None:
            place = ops.add(ops.mul(found, ops.broadcast_in_dim(sizes[atom.real], extents, [])), place)
        found = place
    assert found is not None
    return ops.reshape(found, [dim.extent])


def _places(rank: Value, dim: Dim, sizes: dict[Size, Value]) -> Value:
    """The positions of elements by their ranks; those of padding are any."""
    found: Value | None = None
    weight = 1
    left = rank
    for atom in reversed(dim.atoms):
        real = ops.broadcast_in_dim(ops.max(sizes[atom.real], 1), list(rank.dims), [])
        digit = left if atom is dim.atoms[0] else ops.rem(left, real)
        left = ops.div(left, real)
        part = ops.mul(ops.min(digit, atom.extent - 1), weight)
        found = part if found is None else ops.add(found, part)
        weight *= atom.extent
    assert found is not None
    return found


def refuse(op: Any, why: str, hint: str = "") -> UnsupportedError:
    """The error of an operation that padding would change."""
    return UnsupportedError(f"padding has no rule: {why}", op=op.name, location=location_of(op), hint=hint)


def least(row: ElementType) -> Any:
    """The number that no other is less than."""
    return _extreme(row, -1)


def greatest(row: ElementType) -> Any:
    return _extreme(row, 1)


def _extreme(row: ElementType, sign: int) -> Any:
    dtype = np.dtype(row.dtype)
    if row.name == "pred":
        return np.bool_(sign > 0)
    if row.is_integer:
        low = -(1 << row.bits - 1) if dtype.kind == "i" else 0
        return low if sign < 0 else low + (1 << row.bits) - 1
    return sign * np.inf


def split_atoms(dim: Dim | None, extent: int) -> list[Atom]:
    """The atoms of a dimension; one that is full if it has no padding."""
    return list(dim.atoms) if dim is not None else [Atom(extent, sized(extent))]
