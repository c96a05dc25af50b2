"""Where a gather or a dynamic slice reads its elements, for code that computes a result element by element.

Source: StableHLO spec "gather", "dynamic_slice", "dynamic_update_slice"; XLA "Gather". A window that would lie partly
out of bounds is moved to the nearest place within them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from hloforge.pipelines.codegen.algorithms.places import between, index_of, minus, plus
from hloforge.pipelines.codegen.lang.values import Number, Value

# The integer of the index array at some indices.
Starts = Callable[[Sequence[Number]], Value]


@dataclass(frozen=True)
class Gather:
    """The geometry of a ``stablehlo.gather``, whose fields have its names.

    Attributes:
        operand, indices: shapes.
        signed: whether the indices are integers with signs.
    """

    operand: tuple[int, ...]
    indices: tuple[int, ...]
    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    index_vector_dim: int
    slice_sizes: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()
    signed: bool = True

    @cached_property
    def batches(self) -> tuple[int, ...]:
        """The shape of the array of windows."""
        return tuple(size for place, size in enumerate(self.indices) if place != self.index_vector_dim)

    @cached_property
    def window_dims(self) -> tuple[int, ...]:
        """The dimensions of the operand along which the result has one too."""
        left_out = {*self.collapsed_slice_dims, *self.operand_batching_dims}
        return tuple(place for place in range(len(self.operand)) if place not in left_out)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Of the result."""
        windows = dict(zip(self.offset_dims, (self.slice_sizes[place] for place in self.window_dims), strict=True))
        others = iter(self.batches)
        rank = len(windows) + len(self.batches)
        return tuple(windows[place] if place in windows else next(others) for place in range(rank))

    def operand_index(self, index: Sequence[Number], load: Starts) -> list[Number]:
        """Where the element of the result at an index comes from."""
        batch = [number for place, number in enumerate(index) if place not in self.offset_dims]
        return self.inside(self.window_start(batch, load), [index[place] for place in self.offset_dims])

    def window_start(self, batch: Sequence[Number], load: Starts) -> list[Number]:
        """The first element of the window of a batch index, within bounds."""
        start: list[Number] = [0] * len(self.operand)
        for component, place in enumerate(self.start_index_map):
            most = self.operand[place] - self.slice_sizes[place]
            if most:
                vector = index_vector(batch, component, self.index_vector_dim, len(self.indices))
                start[place] = between(index_of(load(vector), signed=self.signed), 0, most)
        for place, number in batch_start(
            batch, self.operand_batching_dims, self.start_indices_batching_dims, self.index_vector_dim
        ):
            start[place] = number
        return start

    def inside(self, start: Sequence[Number], offset: Sequence[Number]) -> list[Number]:
        """An element of a window, by its place in the window's dimensions of the result."""
        index = list(start)
        for place, number in zip(self.window_dims, offset, strict=True):
            index[place] = plus(index[place], number)
        return index


def index_vector(batch: Sequence[Number], component: int, index_vector_dim: int, rank: int) -> list[Number]:
    """Where a component of the index vector of a batch index is in the array of indices."""
    vector = list(batch)
    if index_vector_dim < rank:
        vector.insert(index_vector_dim, component)
    return vector


def batch_start(
    batch: Sequence[Number], operand_dims: Sequence[int], index_dims: Sequence[int], index_vector_dim: int
) -> list[tuple[int, Number]]:
    """The dimensions of the operand that are batches, each with the index along it."""
    # The vector's dimension is not among those of the batch index.
    places = [place - (place > index_vector_dim) for place in index_dims]
    return [(dim, batch[place]) for dim, place in zip(operand_dims, places, strict=True)]


def clamped_starts(
    starts: Sequence[Value], shape: Sequence[int], sizes: Sequence[int], *, signed: bool = True
) -> list[Number]:
    """Where a dynamic slice of these sizes begins in an array of a shape."""
    return [
        between(index_of(start, signed=signed), 0, size - part) if size > part else 0
        for start, size, part in zip(starts, shape, sizes, strict=True)
    ]


def inside_update(
    index: Sequence[Number], starts: Sequence[Number], shape: Sequence[int], sizes: Sequence[int]
) -> tuple[Value | None, list[Number]]:
    """Whether an element of a dynamic update slice's result comes from the update, and from where.

    Args:
        index: of the result.
        starts: by ``clamped_starts``.
        shape, sizes: of the operand and the update.

    Returns:
        the flag, None if all of them do; the index of the update, which is out of bounds where the flag does not hold.
    """
    flag: Value | None = None
    places: list[Number] = []
    for number, start, size, part in zip(index, starts, shape, sizes, strict=True):
        if size == part:
            places.append(number)
            continue
        # One question for both borders: places before the window are great numbers without signs.
        place = minus(number, start)
        places.append(place)
        if not isinstance(place, Value):
            raise TypeError("an index or a start must be unknown")
        within = place.compare("ult", part)
        flag = within if flag is None else flag & within
    return flag, places
