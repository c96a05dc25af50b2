"""``decompose-scatter``: every form of scatter as row updates in bounds.

Before::

    %r = "stablehlo.scatter"(%o, %i, %u) ({... add ...}) {windows [2, 8], scattered dimensions [1], ...}

After, rows being the operand flattened to ``[rows, w]`` by its trailing untouched dimensions::

    %rows = start of every window, spread over the rows that the window covers; 0 where the window is out of bounds
    %u1   = %u where in bounds, else the neutral element
    %r    = "stablehlo.scatter"(reshape %o, %rows, %u1) ({... add ...}) {unit scatter along dimension 0, in_bounds}

IREE 3.13 takes only that form, and an index out of bounds corrupts its heap. It updates such rows in place, one by one
in order, at about 2 ns a row, while a slice read, combined and written back costs a copy of the operand. So nothing
here reads the operand apart from the scatter itself, and only a computation without a neutral element, on several
windows, copies it. A computation with branches, loops, or what IREE takes on arrays alone runs element by element.

Source: StableHLO spec "scatter", XLA "Scatter". Where they differ, on windows that lie partly out of bounds, XLA's CPU
backend skips the window; the specification's text skips only its elements out of bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.element_types import Kind
from hloforge.dialect.idioms import for_loop, take_rows, update_rows
from hloforge.dialect.marks import IN_BOUNDS
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import defining_op, is_made_by, operations
from hloforge.dialect.values import Value
from hloforge.pipelines.decompose.scatter_combiner import Combiner
from hloforge.pipelines.decompose.scatter_packing import can_pack, scatter_packed
from hloforge.pipelines.decompose.scatter_windows import Windows, broadcast_leading
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, apply_patterns, pattern

# Up to so many windows are written one after the other, each under its own condition.
_UNROLLED = 4

_BARRIER = "stablehlo.optimization_barrier"

_Combine = Callable[..., Value]


@pattern("stablehlo.scatter")
def scatter_by_rows(op: ir.Operation) -> Replacement:
    """scatter -> unit scatters of rows; static shapes."""
    if IN_BOUNDS in op.attributes:
        return NoMatch("already in the form that IREE takes")
    windows, combiner = Windows.of(op), Combiner(op.regions[0])
    if not windows.is_static:
        return NoMatch("dynamic size")
    if not windows.count or not prod(windows.window):
        return list(windows.operands)
    # Without a use of the updates IREE reads and writes the array in one dispatch without workgroups, or loses a copy.
    if not combiner.is_elementwise or not combiner.reads_updates():
        return _by_elements(windows, combiner)
    if all(combiner.depends_on(number) <= {number} for number in range(combiner.width)):
        return _by_rows(windows, combiner)
    if can_pack(windows.operands):
        return scatter_packed(_Rows(windows), windows, combiner)
    return _by_elements(windows, combiner)


@pattern("stablehlo.scatter")
def scatter_of_complex_by_elements(op: ir.Operation) -> Replacement:
    """scatter of complex numbers -> a loop over elements; static shapes."""
    windows, combiner = Windows.of(op), Combiner(op.regions[0])
    if not any(operand.element_type.is_complex for operand in windows.operands):
        return NoMatch("no complex numbers")
    if not windows.is_static:
        return NoMatch("dynamic size")
    if not windows.count or not prod(windows.window):
        return list(windows.operands)
    return _by_elements(windows, combiner)


@pattern("stablehlo.scatter")
def rows_of_unsigned_as_signed(op: ir.Operation) -> Replacement:
    """A scatter of rows of unsigned integers -> one of signed ones with the same bits; its computation is as it was."""
    operand, rows, updates = map(Value, op.operands)
    row = operand.element_type
    if IN_BOUNDS not in op.attributes or row.kind is not Kind.UNSIGNED:
        return NoMatch("not rows of unsigned integers")
    signed, combiner = f"s{row.bits}", Combiner(op.regions[0])

    def computation(*scalars: Value) -> Value:
        (new,) = combiner.on_scalars([ops.bitcast_convert_type(scalar, row) for scalar in scalars])
        return ops.bitcast_convert_type(new, signed)

    moved = [ops.bitcast_convert_type(value, signed) for value in (operand, updates)]
    unique = ir.BoolAttr(op.attributes["unique_indices"]).value
    made = update_rows(moved[0], ops.reshape(rows, rows.dims[:-1]), moved[1], computation, unique=unique)
    return ops.bitcast_convert_type(made, row)


def _with_updates_apart(op: ir.Operation) -> None:
    """Let no dispatch compute the updates of rows together with their scatter."""
    updates = Value(op.operands[2]) if len(op.operands) == 3 else None
    if IN_BOUNDS not in op.attributes or updates is None:
        return
    if defining_op(updates.ir) and not is_made_by(updates.ir, _BARRIER):
        with ir.InsertionPoint(op), op.location:
            op.operands[2] = ops.optimization_barrier(updates).ir


def _leading(windows: Windows) -> int:
    """How many leading dimensions the rows count: the trailing ones are covered by every window entirely."""
    lead = len(windows.dims)
    addressed = windows.starts_at
    while lead and lead - 1 not in addressed and windows.window[lead - 1] == windows.dims[lead - 1]:
        lead -= 1
    return lead


def _by_elements(windows: Windows, combiner: Combiner) -> list[Value]:
    """A loop over the elements of all windows, for computations that run only on scalars."""
    starts = windows.starts()
    starts, good, updates = _elements(windows, starts, windows.inside(starts, windows.uncertain()))
    zero = constant(0, "s32")

    def turn(number: Value, *operands: Value) -> list[Value]:
        at = {d: ops.reshape(ops.dynamic_slice(vector, [number], [1]), []) for d, vector in starts.items()}
        here = None if good is None else ops.reshape(ops.dynamic_slice(good, [number], [1]), [])
        missing = full(next(iter(at.values())), 0) if at else zero
        corner = [at.get(d, missing) for d in range(len(windows.dims))]
        ones = [1] * len(corner)
        olds = [ops.reshape(ops.dynamic_slice(operand, corner, ones), []) for operand in operands]
        news = combiner.on_scalars([*olds, *(ops.reshape(ops.dynamic_slice(u, [number], [1]), []) for u in updates)])
        if here is not None:
            news = [ops.select(here, new, old) for new, old in zip(news, olds, strict=True)]
        pairs = zip(operands, news, strict=True)
        return [ops.dynamic_update_slice(operand, ops.reshape(new, ones), corner) for operand, new in pairs]

    return for_loop(windows.count * prod(windows.window), windows.operands, turn)


def _elements(
    windows: Windows, starts: dict[int, Value], good: Value | None
) -> tuple[dict[int, Value], Value | None, list[Value]]:
    """Starts, validity and updates with each element of each window as a window of its own."""
    spread = (windows.count, *windows.window)
    total = [prod(spread)]
    moved = {}
    for d, size in enumerate(windows.window):
        if d not in starts and size == 1:
            continue
        # dynamic_slice wants one type for all its indices.
        offset = ops.iota("s64", spread, d + 1)
        start = broadcast_leading(ops.convert_element_type(starts[d], "s64"), spread) if d in starts else None
        moved[d] = ops.reshape(offset if start is None else offset + start, total)
    flat = None if good is None else ops.reshape(broadcast_leading(good, spread), total)
    return moved, flat, [ops.reshape(update, total) for update in windows.ordered_updates()]


def _by_rows(windows: Windows, combiner: Combiner) -> list[Value]:
    rows = _Rows(windows)
    results = []
    for number, (operand, update) in enumerate(zip(windows.operands, windows.ordered_updates(), strict=True)):
        results.append(operand if combiner.is_old(number) else rows.scatter(operand, update, combiner, number))
    return results


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
            total = total + ops.convert_element_type(start, dtype) * stride
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
        spread = (base.dims[0], prod(sizes))
        columns = ops.broadcast_in_dim(constant(np.ravel(offsets), base.element_type), spread, [1])
        return ops.reshape(broadcast_leading(base, spread) + columns, [prod(spread)])

    def flat(self, operand: Value) -> Value:
        return ops.reshape(operand, [self.rows] if self.width == 1 else [self.rows, self.width])

    def flat_updates(self, update: Value) -> Value:
        count = update.dims[0] * prod(self.windows.window[: self.lead])
        return ops.reshape(update, [count] if self.width == 1 else [count, self.width])

    def scatter(self, operand: Value, update: Value, combiner: Combiner, number: int) -> Value:
        """The scatter of one operand whose result depends on no other."""

        def computation(old: Value, new: Value) -> Value:
            return combiner.scalar(number, old, new)

        result = self.run(operand, update, computation, combiner.identity(number), combiner.is_overwrite(number))
        return ops.reshape(result, operand.dims)

    def run(self, operand: Value, update: Value, computation: _Combine, identity: Any, overwrite: bool) -> Value:
        """Choose how windows out of bounds are kept from having an effect."""
        flat = self.flat(operand)
        if self.inside is None:
            return self._update(flat, self.base, update, computation)
        base = ops.select(self.inside, self.base, full(self.base, 0))
        if identity is not None:
            good = broadcast_leading(self.inside, update.dims)
            return self._update(flat, base, ops.select(good, update, full(update, identity)), computation)
        if overwrite and self.windows.count > 1:
            return self._with_repeats(flat, update)
        if self.windows.count <= _UNROLLED:
            return self._one_by_one(flat, base, update, computation)
        return self._with_spare_row(operand, update, computation)

    def _update(self, flat: Value, base: Value, update: Value, computation: _Combine) -> Value:
        rows = self.numbers(base)
        return update_rows(flat, rows, self.flat_updates(update), computation, unique=self.windows.unique)

    def _one_by_one(self, flat: Value, base: Value, update: Value, computation: _Combine) -> Value:
        """Each window under its own condition, which the computation captures."""
        assert self.inside is not None
        for number in range(self.windows.count):
            good = ops.reshape(ops.slice(self.inside, [number], [number + 1]), [])
            part = ops.slice(update, [number] + [0] * (update.rank - 1), [number + 1, *update.dims[1:]])
            start = ops.slice(base, [number], [number + 1])
            flat = self._update(flat, start, part, _on_condition(good, computation))
        return flat

    def _with_repeats(self, flat: Value, update: Value) -> Value:
        """A window out of bounds repeats the one before it, which overwrites with the same values once more.

        Those before the first good window repeat that one. If there is none, the computation keeps what it finds.
        """
        assert self.inside is not None
        count = self.windows.count
        order = ops.iota("s32", [count], 0)
        source = _running_maximum(ops.select(self.inside, order, full(order, -1)))
        first = ops.reduce(ops.select(self.inside, order, full(order, count)), count, _minimum, [0])
        any_good = first < count
        start = ops.broadcast_in_dim(ops.select(any_good, first, 0), [count], [])
        source = ops.select(source < 0, start, source)
        base = take_rows(self.base, source)
        base = ops.select(ops.broadcast_in_dim(any_good, [count], []), base, full(base, 0))
        return self._update(flat, base, take_rows(update, source), _on_condition(any_good, lambda old, new: new))

    def _with_spare_row(self, operand: Value, update: Value, computation: _Combine) -> Value:
        """Windows out of bounds go to one more row, which is dropped afterwards."""
        assert self.inside is not None
        flat = self.flat(operand)
        edges = [(0, 0)] * (flat.rank - 1)
        longer = ops.pad(flat, constant(0, flat.element_type), [(0, 1), *edges])
        rows = self.numbers(ops.select(self.inside, self.base, full(self.base, 0)))
        good = self.numbers_inside(rows)
        rows = ops.select(good, rows, full(rows, self.rows))
        result = update_rows(longer, rows, self.flat_updates(update), computation, unique=self.windows.unique)
        return ops.slice(result, [0] * flat.rank, flat.dims)

    def numbers_inside(self, rows: Value) -> Value:
        """``inside`` for every row of every window."""
        assert self.inside is not None
        spread = (self.windows.count, rows.dims[0] // self.windows.count)
        return ops.reshape(broadcast_leading(self.inside, spread), rows.dims)


def _on_condition(good: Value, computation: _Combine) -> _Combine:
    """The computation if ``good`` (a scalar outside of it), else the old value."""
    return lambda old, new: ops.select(good, computation(old, new), old)


def _minimum(a: Value, b: Value) -> Value:
    return ops.select(a < b, a, b)


def _running_maximum(vector: Value) -> Value:
    """The largest of the elements up to each place, of ``[n]``, in log2(n) steps; -1 is the smallest there is."""
    count = vector.dims[0]
    step = 1
    while step < count:
        before = ops.pad(ops.slice(vector, [0], [count - step]), constant(-1, vector.element_type), [(step, 0)])
        vector = ops.select(before > vector, before, vector)
        step *= 2
    return vector


@register
@dataclass(frozen=True)
class DecomposeScatter(Pass):
    """Rewrite every scatter of static shape.

    Attributes:
        complex_by_elements: make loops of those of complex numbers: IREE crashes on them, for CUDA.
        unsigned_as_signed: for GPUs, where IREE refuses those of unsigned integers in loops ("unresolved
            materialization").
        updates_apart: for CUDA, where IREE does not end with dispatches that compute updates and scatter them ("failed
            to apply fusion + hoisting patterns"): those of 64 bits, and choices of constants, which it computes again
            wherever they are read; others only at O2.
    """

    name: ClassVar[str] = "decompose-scatter"
    establishes: ClassVar[Facts] = frozenset({Fact.SAFE_SCATTERS})
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SAFE_GATHERS})
    complex_by_elements: bool = False
    unsigned_as_signed: bool = False
    updates_apart: bool = False

    def run(self, module: ir.Module) -> None:
        if self.complex_by_elements:
            apply_patterns(module, scatter_of_complex_by_elements)
        apply_patterns(module, scatter_by_rows)
        if self.unsigned_as_signed:
            apply_patterns(module, rows_of_unsigned_as_signed)
        if self.updates_apart:
            with in_context(module):
                for op in operations(module, {"stablehlo.scatter"}):
                    _with_updates_apart(op)
