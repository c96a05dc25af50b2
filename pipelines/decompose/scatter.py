"""``decompose-scatter``: every form of scatter as row updates in bounds, or as slices written one by one.

Before::

    %r = "stablehlo.scatter"(%o, %i, %u) ({... add ...}) {windows [2, 8], scattered dimensions [1], ...}

After, rows being the operand flattened to ``[rows, w]`` by its trailing untouched dimensions::

    %rows = start of every window, spread over the rows that the window covers; 0 where the window is out of bounds
    %u1   = %u where in bounds, else the neutral element
    %r    = "stablehlo.scatter"(reshape %o, %rows, %u1) ({... add ...}) {unit scatter along dimension 0, in_bounds}

IREE 3.13 takes only that form, and an index out of bounds corrupts its heap. A few windows, or very large ones, become
dynamic slices that are read, combined and written back. Nothing here copies the operand unless the computation has no
neutral element and the index may be out of bounds. Updates apply in the order of their index vectors.

Source: StableHLO spec "scatter", XLA "Scatter". Where they differ, on windows that lie partly out of bounds, XLA's CPU
backend skips the window; the specification's text skips only its elements out of bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from hloforge.dialect.ops.control import for_loop
from hloforge.dialect.ops.elementwise import convert, select
from hloforge.dialect.ops.indexing import IN_BOUNDS, take_rows, update_rows
from hloforge.dialect.ops.reduction import reduce
from hloforge.dialect.ops.shape import (
    broadcast_in_dim,
    dynamic_slice,
    dynamic_update_slice,
    iota,
    pad,
    reshape,
    slice_,
)
from hloforge.dialect.values import Value, constant, full
from hloforge.pipelines.decompose.scatter_combiner import Combiner
from hloforge.pipelines.decompose.scatter_packing import can_pack, scatter_packed
from hloforge.pipelines.decompose.scatter_windows import Windows, broadcast_leading
from hloforge.pipelines.passes import Pass, register
from hloforge.pipelines.patterns import NoMatch, Replacement, apply_patterns, pattern

# Up to so many windows of several rows are written as slices without a loop.
_UNROLLED = 4
# A turn of a loop costs about as much as updating so many rows one by one (10 us against 2 ns).
_ROWS_PER_TURN = 4096


@pattern("stablehlo.scatter")
def scatter_by_rows(op: Any) -> Replacement:
    """scatter -> unit scatter of rows, slices, or a loop; static shapes."""
    if IN_BOUNDS in op.attributes:
        return NoMatch("already in the form that IREE takes")
    windows, combiner = Windows.of(op), Combiner(op.regions[0])
    if not windows.is_static:
        return NoMatch("dynamic size")
    if not windows.count or not prod(windows.window):
        return list(windows.operands)
    if not combiner.is_elementwise:
        return _by_loop(windows, combiner, element_by_element=True)
    rows_each = prod(windows.window[: _leading(windows)])
    few = windows.count == 1 or (windows.count <= _UNROLLED and rows_each > 1)
    if few:
        return _unrolled(windows, combiner)
    if rows_each >= _ROWS_PER_TURN:
        return _by_loop(windows, combiner)
    if all(combiner.depends_on(number) <= {number} for number in range(combiner.width)):
        return _by_rows(windows, combiner)
    return _coupled(windows, combiner)


def _leading(windows: Windows) -> int:
    """How many leading dimensions the rows count: the trailing ones are covered by every window entirely."""
    lead = len(windows.dims)
    addressed = windows.starts_at
    while lead and lead - 1 not in addressed and windows.window[lead - 1] == windows.dims[lead - 1]:
        lead -= 1
    return lead


def _unrolled(windows: Windows, combiner: Combiner) -> list[Value]:
    """Window after window: read a slice, combine, write it back."""
    starts = windows.starts()
    inside = windows.inside(starts, windows.uncertain())
    updates = windows.ordered_updates()
    operands = list(windows.operands)
    for number in range(windows.count):
        at = {d: reshape(slice_(vector, [number], [number + 1]), []) for d, vector in starts.items()}
        good = None if inside is None else reshape(slice_(inside, [number], [number + 1]), [])
        limits = [number + 1, *windows.window]
        parts = [
            reshape(slice_(update, [number] + [0] * len(windows.window), limits), windows.window) for update in updates
        ]
        operands = _write_window(operands, parts, at, good, combiner)
    return operands


def _by_loop(windows: Windows, combiner: Combiner, *, element_by_element: bool = False) -> list[Value]:
    """A loop over windows, or over their elements for a computation that runs only on scalars."""
    starts = windows.starts()
    good = windows.inside(starts, windows.uncertain())
    updates = windows.ordered_updates()
    window, count = windows.window, windows.count
    if element_by_element:
        starts, good, updates = _elements(windows, starts, good, updates)
        window, count = (1,) * len(window), count * prod(window)
    zero = constant(0, "s32")

    def turn(number: Value, *operands: Value) -> list[Value]:
        at = {d: reshape(dynamic_slice(vector, [number], [1]), []) for d, vector in starts.items()}
        here = None if good is None else reshape(dynamic_slice(good, [number], [1]), [])
        corner = [number] + [zero] * len(window)
        parts = [reshape(dynamic_slice(update, corner, [1, *window]), window) for update in updates]
        return _write_window(operands, parts, at, here, combiner)

    return for_loop(count, windows.operands, turn)


def _elements(
    windows: Windows, starts: dict[int, Value], good: Value | None, updates: list[Value]
) -> tuple[dict[int, Value], Value | None, list[Value]]:
    """Each element of each window as a window of its own."""
    spread = (windows.count, *windows.window)
    total = [prod(spread)]
    ones = (1,) * len(windows.window)
    moved = {}
    for d, size in enumerate(windows.window):
        if d not in starts and size == 1:
            continue
        offset = iota(starts[d].element_type if d in starts else "s32", spread, d + 1)
        moved[d] = reshape(offset + broadcast_leading(starts[d], spread) if d in starts else offset, total)
    flat = None if good is None else reshape(broadcast_leading(good, spread), total)
    return moved, flat, [reshape(update, [*total, *ones]) for update in updates]


def _write_window(
    operands: Sequence[Value], updates: Sequence[Value], at: dict[int, Value], good: Value | None, combiner: Combiner
) -> list[Value]:
    """The operands after one window; a window out of bounds writes back what it read."""
    rank = operands[0].rank
    missing = full(next(iter(at.values())), 0) if at else constant(0, "s32")
    corner = [at.get(d, missing) for d in range(rank)]
    olds = [dynamic_slice(operand, corner, updates[0].dims) for operand in operands]
    news = _combined(combiner, olds, updates)
    if good is not None:
        news = [select(good, new, old) for new, old in zip(news, olds, strict=True)]
    return [dynamic_update_slice(operand, new, corner) for operand, new in zip(operands, news, strict=True)]


def _combined(combiner: Combiner, olds: Sequence[Value], updates: Sequence[Value]) -> list[Value]:
    if combiner.is_elementwise:
        return [combiner.combine(number, olds, updates) for number in range(combiner.width)]
    scalars = [reshape(value, []) for value in (*olds, *updates)]
    return [reshape(value, olds[0].dims) for value in combiner.on_scalars(scalars)]


def _by_rows(windows: Windows, combiner: Combiner) -> list[Value]:
    rows = _Rows(windows)
    results = []
    for number, (operand, update) in enumerate(zip(windows.operands, windows.ordered_updates(), strict=True)):
        results.append(operand if combiner.is_old(number) else rows.scatter(operand, update, combiner, number))
    return results


def _coupled(windows: Windows, combiner: Combiner) -> list[Value]:
    """Several operands whose computation mixes them: as one operand of packed bits if they fit, else by a loop."""
    if not can_pack(windows.operands):
        return _by_loop(windows, combiner, element_by_element=True)
    rows = _Rows(windows)
    return scatter_packed(rows, windows, combiner)


class _Rows:
    """The windows of a scatter, as row numbers of the flattened operand."""

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.lead = _leading(windows)
        self.rows = prod(windows.dims[: self.lead])
        self.width = prod(windows.dims[self.lead :])
        self.starts = windows.starts()
        self.inside = windows.inside(self.starts, windows.uncertain())
        self.base = self._base()

    def _base(self) -> Value:
        """The first row of every window: ``[count]``, right where the window is inside."""
        dtype = "s32" if self.rows < 1 << 31 else "s64"
        total = constant(np.zeros(self.windows.count), dtype)
        for d, start in self.starts.items():
            stride = prod(self.windows.dims[d + 1 : self.lead])
            total = total + convert(start, dtype) * stride
        return total

    def numbers(self, base: Value) -> Value:
        """The rows that the windows starting at ``base`` cover: ``[count * rows a window]``."""
        sizes = self.windows.window[: self.lead]
        if prod(sizes) == 1:
            return base
        strides = [prod(self.windows.dims[d + 1 : self.lead]) for d in range(self.lead)]
        offsets = sum(
            np.arange(n).reshape([-1 if d == e else 1 for e in range(self.lead)]) * strides[d]
            for d, n in enumerate(sizes)
        )
        spread = (self.windows.count, prod(sizes))
        columns = broadcast_in_dim(constant(np.ravel(offsets), base.element_type), spread, [1])
        return reshape(broadcast_leading(base, spread) + columns, [prod(spread)])

    def flat(self, operand: Value) -> Value:
        return reshape(operand, [self.rows] if self.width == 1 else [self.rows, self.width])

    def flat_updates(self, update: Value) -> Value:
        count = update.dims[0] * prod(self.windows.window[: self.lead])
        return reshape(update, [count] if self.width == 1 else [count, self.width])

    def scatter(self, operand: Value, update: Value, combiner: Combiner, number: int) -> Value:
        """The scatter of one operand whose result depends on no other."""

        def computation(old: Value, new: Value) -> Value:
            return combiner.scalar(number, old, new)

        result = self.run(operand, update, computation, combiner.identity(number), combiner.is_overwrite(number))
        return reshape(result, operand.dims)

    def run(self, operand: Value, update: Value, computation: Any, identity: Any, overwrite: bool) -> Value:
        """Choose how windows out of bounds are kept from having an effect."""
        if self.inside is None:
            return self._update(self.flat(operand), self.base, update, computation)
        if identity is not None:
            good = broadcast_leading(self.inside, update.dims)
            kept = select(good, update, full(update, identity))
            base = select(self.inside, self.base, full(self.base, 0))
            return self._update(self.flat(operand), base, kept, computation)
        if overwrite and update.shape.element_count < operand.shape.element_count:
            base, kept = self._repeated(operand, update)
            return self._update(self.flat(operand), base, kept, computation)
        return self._with_spare_row(operand, update, computation)

    def _update(self, flat: Value, base: Value, update: Value, computation: Any) -> Value:
        rows, updates = self.numbers(base), self.flat_updates(update)
        return update_rows(flat, rows, updates, computation, unique=self.windows.unique)

    def _repeated(self, operand: Value, update: Value) -> tuple[Value, Value]:
        """A window out of bounds repeats the one before it, which writes the same values once more.

        Those before the first good window repeat that one. If there is none, all write what the operand holds in its
        first window.
        """
        assert self.inside is not None
        count = self.windows.count
        order = iota("s32", [count], 0)
        source = _running_maximum(select(self.inside, order, full(order, -1)))
        first = reduce(select(self.inside, order, full(order, count)), count, _minimum, [0])
        start = broadcast_in_dim(select(first < count, first, 0), [count], [])
        source = select(source < 0, start, source)
        any_good = broadcast_in_dim(first < count, [count], [])
        base = select(any_good, take_rows(self.base, source), full(self.base, 0))
        present = slice_(operand, [0] * operand.rank, self.windows.window)
        present = broadcast_in_dim(present, update.dims, range(1, update.rank))
        return base, select(broadcast_leading(any_good, update.dims), take_rows(update, source), present)

    def _with_spare_row(self, operand: Value, update: Value, computation: Any) -> Value:
        """Windows out of bounds go to one more row, which is dropped afterwards."""
        assert self.inside is not None
        flat = self.flat(operand)
        edges = [0] * (flat.rank - 1)
        longer = pad(flat, constant(0, flat.element_type), [0, *edges], [1, *edges])
        rows = self.numbers(select(self.inside, self.base, full(self.base, 0)))
        good = self.numbers_inside(rows)
        rows = select(good, rows, full(rows, self.rows))
        result = update_rows(longer, rows, self.flat_updates(update), computation, unique=self.windows.unique)
        return slice_(result, [0] * flat.rank, flat.dims)

    def numbers_inside(self, rows: Value) -> Value:
        """``inside`` for every row of every window."""
        assert self.inside is not None
        spread = (self.windows.count, rows.dims[0] // self.windows.count)
        return reshape(broadcast_leading(self.inside, spread), rows.dims)


def _minimum(a: Value, b: Value) -> Value:
    return select(a < b, a, b)


def _running_maximum(vector: Value) -> Value:
    """The largest of the elements up to each place, of ``[n]``, in log2(n) steps; -1 is the smallest there is."""
    count = vector.dims[0]
    step = 1
    while step < count:
        before = pad(slice_(vector, [0], [count - step]), constant(-1, vector.element_type), [step], [0])
        vector = select(before > vector, before, vector)
        step *= 2
    return vector


@register
@dataclass(frozen=True)
class DecomposeScatter(Pass):
    """Rewrite every scatter of static shape."""

    name: ClassVar[str] = "decompose-scatter"

    def run(self, module: Any) -> None:
        apply_patterns(module, scatter_by_rows)
