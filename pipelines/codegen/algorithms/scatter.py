"""Scatters in place: windows of an array combined with updates, one update after the other.

Source: StableHLO spec "scatter", XLA "Scatter". A window that lies partly out of bounds is skipped as a whole, as XLA's
CPU backend does; the specification's text skips only its elements out of bounds.

The innermost loop of a window is cut into loops of vectors without a rest: most windows are short, and LLVM leaves a
loop of 12 iterations to scalar code because it does not end with a vector.

Planes of an array that lie apart in memory, of which each window has the same places, are changed one after the other,
a few at a time: each element has its updates in the same order, and a plane stays in the cache. Few, because several
sums at once hide how long one takes, and share an index.

Where a window is one element, the one that was changed last is kept in a register: indices are often sorted, and from a
store to a load of the same place takes longer than the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Protocol

from hloforge.pipelines.codegen.algorithms.arrays import Combine, Element, Elements, parts, put_record, record
from hloforge.pipelines.codegen.algorithms.places import (
    each,
    flat,
    index_of,
    merged,
    nest,
    plus,
    strides_of,
    times,
    value,
)
from hloforge.pipelines.codegen.elements.kinds import is_complex, register
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I64, Number, Value

# The integer of the index array at some indices.
Starts = Callable[[Sequence[Number]], Value]
# The updates of all operands at an index of the update arrays.
Updates = Callable[[Sequence[Number]], Sequence[Element]]

# Windows from which on their loop is worth more code.
_MANY = 16
# Vectors that LLVM takes in an iteration.
_INTERLEAVED = 4
# What is rounded, or another number, in memory.
_ROUNDED = frozenset({"f16", "bf16", "i1"})
# Elements of planes that are changed at once.
_AT_ONCE = 8


@dataclass(frozen=True)
class Scatter:
    """The geometry of a ``stablehlo.scatter``, whose fields have its names.

    Attributes:
        operand, indices, update: shapes.
        signed: whether the indices are integers with signs.
        lanes: elements of a vector.
    """

    operand: tuple[int, ...]
    indices: tuple[int, ...]
    update: tuple[int, ...]
    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    index_vector_dim: int
    input_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()
    signed: bool = True
    lanes: int = 1

    @cached_property
    def window_dims(self) -> tuple[int, ...]:
        """The dimensions of the operand along which a window lies, in the order of ``update_window_dims``."""
        left_out = {*self.inserted_window_dims, *self.input_batching_dims}
        return tuple(place for place in range(len(self.operand)) if place not in left_out)

    @cached_property
    def batch_dims(self) -> tuple[int, ...]:
        """The dimensions of the update that number windows."""
        return tuple(place for place in range(len(self.update)) if place not in self.update_window_dims)

    @cached_property
    def _apart(self) -> tuple[int, ...]:
        """The dimensions of the update that number planes: of the window, outside of what decides where it begins."""
        batches = prod(self.update[dim] for dim in self.batch_dims)
        decided = {*self.scatter_dims_to_operand_dims, *self.input_batching_dims}
        if batches < _MANY or not decided:
            return ()
        pairs = zip(self.update_window_dims, self.window_dims, strict=True)
        return tuple(dim for dim, own in pairs if own < max(decided) and own not in decided and self.update[dim] > 1)

    @cached_property
    def _together(self) -> tuple[int, ...]:
        """The dimensions of the update along which a window lies in its plane."""
        return tuple(dim for dim in self.update_window_dims if dim not in self._apart)

    def write(
        self,
        function: Function,
        targets: Sequence[Elements],
        load: Starts,
        updates: Sequence[Elements] | Updates,
        combine: Combine,
    ) -> None:
        """Write the loops.

        Args:
            targets: the operands' copies, which become the results.
            load: the integer of the index array at some indices.
            updates: arrays, or what computes their elements.
            combine: the new elements of all operands from the old ones and the updates.
        """
        if not prod(self.update):
            return

        kept = _Kept(function, targets) if self._is_single(targets) else None

        def changed(planes: Sequence[Sequence[Number]]) -> None:
            if kept is not None:
                kept.begin()
            with nest(function, [self.update[dim] for dim in self.batch_dims]) as batch, ExitStack() as stack:
                start, is_inside = self._start(batch, load)
                if is_inside is not None:
                    stack.enter_context(function.if_(is_inside))
                for plane in planes:
                    self._window(function, kept or _Put(targets), batch, start, plane, updates, combine)

        if not self._apart:
            changed([()])
            return
        *outer, last = (self.update[dim] for dim in self._apart)
        within = prod(self.update[dim] for dim in self._together)
        with nest(function, outer) as plane:
            for begin, end, step in _pieces(last, max(1, _AT_ONCE // within)):
                with nest(function, [(end - begin) // step]) as (piece,):
                    first = plus(begin, times(piece, step))
                    changed([[*plane, plus(first, number)] for number in range(step)])

    def _is_single(self, targets: Sequence[Elements]) -> bool:
        """Whether it changes one element after the other, each for itself."""
        windows = prod(self.update[dim] for dim in self.batch_dims)
        is_whole = all(target.element not in _ROUNDED for target in targets)
        return (
            is_whole and windows >= _MANY and windows == prod(self.update) and bool(self.scatter_dims_to_operand_dims)
        )

    def _start(self, batch: Sequence[Number], load: Starts) -> tuple[list[Number], Value | None]:
        """The first element of the window of a batch index, and whether the window is within bounds (None: always)."""
        start: list[Number] = [0] * len(self.operand)
        windows = dict(zip(self.window_dims, (self.update[dim] for dim in self.update_window_dims), strict=True))
        flag: Value | None = None
        for component, place in enumerate(self.scatter_dims_to_operand_dims):
            vector = list(batch)
            if self.index_vector_dim < len(self.indices):
                vector.insert(self.index_vector_dim, component)
            start[place] = found = index_of(load(vector), signed=self.signed)
            # Negative ones are great numbers without signs.
            within = found.compare("ult", self.operand[place] - windows.get(place, 1) + 1)
            flag = within if flag is None else flag & within
        for place, dim in zip(self.input_batching_dims, self.scatter_indices_batching_dims, strict=True):
            # The vector's dimension is not among those of the batch index.
            start[place] = batch[dim - (dim > self.index_vector_dim)]
        return start, flag

    def _window(
        self,
        function: Function,
        target: _Target,
        batch: Sequence[Number],
        start: Sequence[Number],
        plane: Sequence[Number],
        updates: Sequence[Elements] | Updates,
        combine: Combine,
    ) -> None:
        """Change what lies in a plane of a window."""
        strides, steps = strides_of(self.operand), strides_of(self.update)
        own_of = dict(zip(self.update_window_dims, (strides[dim] for dim in self.window_dims), strict=True))
        first = plus(flat(start, strides), flat(plane, [own_of[dim] for dim in self._apart]))
        sizes = [self.update[dim] for dim in self._together]
        own = [own_of[dim] for dim in self._together]
        fixed = dict(zip((*self.batch_dims, *self._apart), (*batch, *plane), strict=True))
        if callable(updates):

            def computed(window: Sequence[Number]) -> None:
                index = fixed | dict(zip(self._together, window, strict=True))
                found = list(updates([index[place] for place in range(len(self.update))]))
                target.change(plus(first, flat(window, own)), found, combine)

            self._over(function, sizes, computed)
            return
        source = flat(list(fixed.values()), [steps[dim] for dim in fixed])
        sizes, (own, other) = merged(sizes, own, [steps[dim] for dim in self._together])

        def loaded(window: Sequence[Number]) -> None:
            place = plus(source, flat(window, other))
            target.change(plus(first, flat(window, own)), [update.at(place) for update in updates], combine)

        self._over(function, sizes, loaded)

    def _over(self, function: Function, sizes: Sequence[int], body: Callable[[list[Number]], None]) -> None:
        """Loops over the places of a window."""
        if not sizes or sizes[-1] == 1 or prod(self.update) < _MANY * prod(sizes):
            with nest(function, sizes) as window:
                body(window)
            return
        *outer, last = sizes
        with nest(function, outer) as window:
            for begin, end in _cut(last, self.lanes):
                if end == begin + 1:
                    body([*window, begin])
                    continue
                with each(function, begin, end) as place:
                    body([*window, place])


def _pieces(size: int, most: int) -> Iterator[tuple[int, int, int]]:
    """Parts of a loop with steps of about the same length, none longer than ``most``."""
    step, longer = divmod(size, -(-size // most))
    if middle := longer * (step + 1):
        yield 0, middle, step + 1
    yield middle, size, step


def _cut(size: int, lanes: int) -> Iterator[tuple[int, int]]:
    """Parts of a loop, each a number of whole vectors: what LLVM takes at once, and powers of two."""
    begin = 0
    if whole := size - size % (_INTERLEAVED * lanes):
        yield 0, whole
        begin = whole
    while begin < size:
        end = begin + (1 << ((size - begin).bit_length() - 1))
        yield begin, end
        begin = end


class _Target(Protocol):
    def change(self, place: Number, update: list[Element], combine: Combine) -> None: ...


@dataclass(frozen=True)
class _Put:
    """Arrays whose elements are loaded, combined and stored."""

    targets: Sequence[Elements]

    def change(self, place: Number, update: list[Element], combine: Combine) -> None:
        put_record(self.targets, place, combine(record(self.targets, place), update))


class _Kept:
    """As ``_Put``, with the elements that were changed last in registers."""

    def __init__(self, function: Function, targets: Sequence[Elements]) -> None:
        self._function, self._targets = function, targets
        self._place = function.stack(I64)
        self._kinds = [kind for target in targets for kind in _kinds(target.element)]
        self._held = [function.stack(kind) for kind in self._kinds]

    def begin(self) -> None:
        """No element was changed."""
        self._function.store(self._function.index(-1), self._place)

    def change(self, place: Number, update: list[Element], combine: Combine) -> None:
        function = self._function
        at = value(function, place)
        is_last = at.equals(function.load(self._place, I64))
        found = iter(
            function.branch(
                is_last,
                lambda: [function.load(pointer, kind) for pointer, kind in zip(self._held, self._kinds, strict=True)],
                lambda: [part for target in self._targets for part in parts(target.at(at))],
            )
        )
        old: list[Element] = []
        for target in self._targets:
            first = next(found)
            old.append((first, next(found)) if is_complex(target.element) else first)
        new = combine(old, update)
        put_record(self._targets, at, new)
        for part, pointer in zip((part for element in new for part in parts(element)), self._held, strict=True):
            function.store(part, pointer)
        function.store(at, self._place)


def _kinds(element: str) -> list[str]:
    """What the parts of an element are in registers."""
    return [register(element)] * (2 if is_complex(element) else 1)
