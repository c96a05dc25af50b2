"""Scatters in place: windows of an array combined with updates, one update after the other.

Source: StableHLO spec "scatter", XLA "Scatter". A window that lies partly out of bounds is skipped as a whole, as XLA's
CPU backend does; the specification's text skips only its elements out of bounds.

The innermost loop of a window is cut into loops of vectors without a rest: most windows are short, and LLVM leaves a
loop of 12 iterations to scalar code because it does not end with a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from hloforge.pipelines.codegen.algorithms.arrays import Combine, Element, Elements
from hloforge.pipelines.codegen.algorithms.gather import Starts, batch_start, index_vector
from hloforge.pipelines.codegen.algorithms.places import each, flat, index_of, merged, nest, plus, strides_of
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Number, Value

# The updates of all operands at an index of the update arrays.
Updates = Callable[[Sequence[Number]], Sequence[Element]]

# Windows from which on their loop is worth more code.
_MANY = 16
# Vectors that LLVM takes in an iteration.
_INTERLEAVED = 4


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
        with nest(function, [self.update[dim] for dim in self.batch_dims]) as batch:
            start, is_inside = self._start(batch, load)
            if is_inside is None:
                self._window(function, targets, batch, start, updates, combine)
                return
            with function.if_(is_inside):
                self._window(function, targets, batch, start, updates, combine)

    def _start(self, batch: Sequence[Number], load: Starts) -> tuple[list[Number], Value | None]:
        """The first element of the window of a batch index, and whether the window is within bounds (None: always)."""
        start: list[Number] = [0] * len(self.operand)
        windows = dict(zip(self.window_dims, (self.update[dim] for dim in self.update_window_dims), strict=True))
        flag: Value | None = None
        for component, place in enumerate(self.scatter_dims_to_operand_dims):
            vector = index_vector(batch, component, self.index_vector_dim, len(self.indices))
            start[place] = found = index_of(load(vector), signed=self.signed)
            # Negative ones are great numbers without signs.
            within = found.compare("ult", self.operand[place] - windows.get(place, 1) + 1)
            flag = within if flag is None else flag & within
        for place, number in batch_start(
            batch, self.input_batching_dims, self.scatter_indices_batching_dims, self.index_vector_dim
        ):
            start[place] = number
        return start, flag

    def _window(
        self,
        function: Function,
        targets: Sequence[Elements],
        batch: Sequence[Number],
        start: Sequence[Number],
        updates: Sequence[Elements] | Updates,
        combine: Combine,
    ) -> None:
        strides, steps = strides_of(self.operand), strides_of(self.update)
        first = flat(start, strides)
        sizes = [self.update[dim] for dim in self.update_window_dims]
        own = [strides[dim] for dim in self.window_dims]
        if callable(updates):

            def computed(window: Sequence[Number]) -> None:
                index = dict(zip((*self.batch_dims, *self.update_window_dims), (*batch, *window), strict=True))
                found = list(updates([index[place] for place in range(len(self.update))]))
                _combined(targets, plus(first, flat(window, own)), found, combine)

            self._over(function, sizes, computed)
            return
        source = flat(batch, [steps[dim] for dim in self.batch_dims])
        sizes, (own, other) = merged(sizes, own, [steps[dim] for dim in self.update_window_dims])

        def loaded(window: Sequence[Number]) -> None:
            place = plus(source, flat(window, other))
            _combined(targets, plus(first, flat(window, own)), [update.at(place) for update in updates], combine)

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


def _combined(targets: Sequence[Elements], place: Number, update: list[Element], combine: Combine) -> None:
    new = combine([target.at(place) for target in targets], update)
    for target, element in zip(targets, new, strict=True):
        target.put(element, place)
