"""Programs in which an array is seen in one way and updated in another, all of them up to a length.

Each has the form: a source, up to three views of it that somebody reads or that are returned, and up to two other views
that are updated. A compiler that overwrites the array while the first view is still needed gives another number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce as fold
from itertools import product
from math import prod
from random import Random
from typing import Any

import numpy as np

from hloforge.computation import Builder
from hloforge.dialect import ops
from hloforge.dialect.element_types import element_type
from hloforge.dialect.ops.indexing import ScatterDimensionNumbers
from hloforge.dialect.values import Value

View = Callable[[Value, Value], Value]
TYPES = ("f32", "s64", "pred", "bf16", "c64")
SHAPES = ((4,), (3, 4), (5, 1), (1, 3), (16,))
SOURCES = ("argument", "computed", "filled", "constant")
OUTCOMES = ("returned", "read")
COUNT = 20_000


def _unit(x: Value, _: Value) -> Value:
    return ops.reshape(x, (1, *x.dims))


def _flat(x: Value, _: Value) -> Value:
    return ops.reshape(x, (prod(x.dims),))


def _spread(x: Value, _: Value) -> Value:
    return ops.broadcast_in_dim(x, (*x.dims, 1), range(x.rank))


def _stretched(x: Value, _: Value) -> Value:
    return ops.pad(x, zero(x), [(0, 0, 1), *[(0, 0, 0)] * (x.rank - 1)])


def _clipped(x: Value, _: Value) -> Value:
    return ops.pad(x, zero(x), [*[(0, 0, 0)] * (x.rank - 1), (0, -1 if x.dims[-1] > 1 else 0, 0)])


def _padded_and_sliced(x: Value, _: Value) -> Value:
    return ops.slice(ops.pad(x, zero(x), [(0, 1, 0)] * x.rank), [0] * x.rank, x.dims)


def _joined_and_sliced(x: Value, _: Value) -> Value:
    return ops.slice(ops.concat_in_dim([x, x], 0), [0] * x.rank, x.dims)


def _transposed(x: Value, _: Value) -> Value:
    return ops.transpose(ops.reshape(x, (*x.dims, 1)), [x.rank, *range(x.rank)])


def _reversed(x: Value, _: Value) -> Value:
    return ops.reshape(ops.rev(ops.reshape(x, (1, *x.dims)), [0]), x.dims)


def _retyped(x: Value, _: Value) -> Value:
    if x.element_type.is_complex:
        return ops.complex(ops.real(x), ops.imag(x))
    if x.element_type.name == "pred":
        return ops.convert_element_type(ops.convert_element_type(x, "u8"), "pred")
    bits = f"u{x.element_type.bits}"
    return ops.bitcast_convert_type(ops.bitcast_convert_type(x, bits), x.element_type)


def _fenced(x: Value, _: Value) -> Value:
    return ops.optimization_barrier(x)


def _chosen(x: Value, number: Value) -> Value:
    return ops.conditional(number > 100, x, lambda y: ops.rev(y, [0]), x, lambda y: y)


def _carried(x: Value, number: Value) -> Value:
    return ops.while_(lambda n, _: n < number, lambda n, y: [n + 1, y], [ops.constant(0, "s32"), x])[1]


VIEWS: dict[str, View] = {
    "unit": _unit,
    "flat": _flat,
    "spread": _spread,
    "stretched": _stretched,
    "clipped": _clipped,
    "padded and sliced": _padded_and_sliced,
    "joined and sliced": _joined_and_sliced,
    "transposed": _transposed,
    "reversed": _reversed,
    "retyped": _retyped,
    "fenced": _fenced,
    "chosen": _chosen,
    "carried": _carried,
}


def _slice_update(x: Value, number: Value) -> Value:
    return ops.dynamic_update_slice(x, filled(x, (1, *x.dims[1:])), [number, *[0] * (x.rank - 1)])


def _scatter(combine: Callable[[Value, Value], Value]) -> View:
    def update(x: Value, number: Value) -> Value:
        numbers = ScatterDimensionNumbers(list(range(1, x.rank)), [0], [0], 1)
        return ops.scatter(x, ops.reshape(number, (1, 1)), filled(x, (1, *x.dims[1:])), combine, numbers)

    return update


def _selected(x: Value, number: Value) -> Value:
    return ops.select(ops.eq(ops.iota("s32", x.dims, 0), number), filled(x, x.dims), x)


def _sorted(x: Value, _: Value) -> Value:
    if x.element_type.is_complex:
        return ops.sort([x], lambda a, b: ops.real(a) > ops.real(b))
    return ops.sort([x], lambda a, b: a > b)


def _looped(x: Value, number: Value) -> Value:
    """A carry, of which each turn updates a row by the number of the turn."""

    def turn(n: Value, rows: Value) -> list[Value]:
        return [n + 1, _slice_update(rows, n)]

    return ops.while_(lambda n, _: n < number + 1, turn, [ops.constant(0, "s32"), x])[1]


def _branched(x: Value, number: Value) -> Value:
    """An update in one of two branches."""
    return ops.conditional(number < 100, x, lambda y: _slice_update(y, number), x, lambda y: y)


def _scanned(x: Value, number: Value) -> Value:
    """A scan's outputs, each made of the one before."""

    def turn(n: Value, last: Value, rows: Value) -> list[Value]:
        made = either(last, filled(last, last.dims))
        return [n + 1, made, ops.dynamic_update_slice(rows, made, [n, *[0] * (x.rank - 1)])]

    first = filled(x, (1, *x.dims[1:]))
    return ops.while_(lambda n, *_: n < number + 1, turn, [ops.constant(0, "s32"), first, x])[2]


UPDATES: dict[str, View] = {
    "slice": _slice_update,
    "scatter": _scatter(lambda old, new: new),
    "scatter add": _scatter(lambda old, new: either(old, new)),
    "scatter keep": _scatter(lambda old, new: old),
    "select": _selected,
    "sort": _sorted,
    "carry": _looped,
    "branch": _branched,
    "scan": _scanned,
}


def zero(x: Value) -> Value:
    return ops.constant(0, x.element_type)


def filled(x: Value, dims: tuple[int, ...]) -> Value:
    return ops.broadcast(ops.constant(np.asarray(1 if x.element_type.name == "pred" else 5), x.element_type), dims)


def either(x: Value, y: Value) -> Value:
    return ops.or_(x, y) if x.element_type.name == "pred" else x + y


def read(x: Value) -> Value:
    """All elements, each of them changed."""
    return ops.not_(x) if x.element_type.name == "pred" else x + filled(x, x.dims)


@dataclass(frozen=True)
class Form:
    """One program.

    Attributes:
        seen: the views that are read or returned.
        updated: the views of the source of which the last is updated.
        update_first: whether the update stands before the views that are read.
    """

    seen: tuple[str, ...]
    updated: tuple[str, ...]
    update: str
    update_first: bool
    outcome: str
    source: str
    element: str
    dims: tuple[int, ...]
    donates: bool

    def __str__(self) -> str:
        order = "update first" if self.update_first else "read first"
        given = " donated" if self.donates else ""
        way = " -> ".join(self.seen) or "itself"
        into = " -> ".join((*self.updated, self.update))
        return f"{self.element}{list(self.dims)} {self.source}{given}: {way} {self.outcome}; {into}; {order}"

    def add_to(self, builder: Builder, number: int) -> tuple[tuple[Value, ...], list[Any], int | None]:
        """Add the program to one that is being built.

        Args:
            number: of its first parameter.

        Returns:
            Its results, its arguments, and the number of the donated parameter, which the first result takes.
        """
        arguments = [self.values(), np.int32(min(1, self.dims[0] - 1))]
        given = builder.parameter(number, f"{self.element}{list(self.dims)}".replace(" ", ""), f"x{number}")
        where = builder.parameter(number + 1, "s32[]", f"i{number}")
        source = self._source(given)
        made: list[Value] = []

        def look() -> None:
            seen = fold(lambda x, name: VIEWS[name](x, where), self.seen, source)
            made.append(read(seen) if self.outcome == "read" else seen)

        def update() -> None:
            view = fold(lambda x, name: VIEWS[name](x, where), self.updated, source)
            made.append(UPDATES[self.update](view, where))

        for step in (update, look) if self.update_first else (look, update):
            step()
        taking = [
            place for place, result in enumerate(made) if result.shape.without_layout() == given.shape.without_layout()
        ]
        donated = taking[-1] if self.donates and taking else None
        return tuple(made), arguments, donated

    def _source(self, given: Value) -> Value:
        if self.source == "argument":
            return given
        if self.source == "computed":
            return either(given, read(given))
        if self.source == "filled":
            first = ops.reshape(ops.slice(given, [0] * given.rank, [1] * given.rank), ())
            return ops.broadcast(first, self.dims)
        return ops.constant(self.values(), self.element)

    def values(self) -> Any:
        count = prod(self.dims)
        row = element_type(self.element)
        numbers = np.arange(count) % 7 + 1
        if row.name == "pred":
            return (numbers % 3 == 0).reshape(self.dims)
        values = numbers + (1j * (numbers + 1) if row.is_complex else 0)
        return values.astype(row.dtype).reshape(self.dims)


def forms() -> Iterator[Form]:
    """All programs, ``COUNT`` of them: every pair of two views in all, and a sample of the longer ones."""
    short = [(seen, updated) for seen in _chains(2) for updated in _chains(2) if len(seen) + len(updated) <= 2]
    number = 0
    for (seen, updated), update, first, outcome in product(short, UPDATES, (False, True), OUTCOMES):
        if number == COUNT:
            return
        yield _form(number, seen, updated, update, first, outcome)
        number += 1
    random = Random(0)
    while number < COUNT:
        seen = tuple(random.choices(list(VIEWS), k=random.randint(1, 3)))
        updated = tuple(random.choices(list(VIEWS), k=random.randint(1, 2)))
        if len(seen) + len(updated) > 2:
            yield _form(
                number, seen, updated, random.choice(list(UPDATES)), random.random() < 0.5, random.choice(OUTCOMES)
            )
            number += 1


def _form(number: int, seen: Any, updated: Any, update: str, first: bool, outcome: str) -> Form:
    # By generators of their own, so that no type always meets the same form.
    random = Random(number)
    source, element, dims = random.choice(SOURCES), random.choice(TYPES), random.choice(SHAPES)
    return Form(seen, updated, update, first, outcome, source, element, dims, random.random() < 0.3)


def _chains(longest: int) -> Iterator[tuple[str, ...]]:
    for length in range(longest + 1):
        yield from product(VIEWS, repeat=length)
