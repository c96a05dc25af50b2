"""``decompose-running-reductions``: running sums of 16-bit floats in blocks, whose roundings are XLA's.

Before::

    %r = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 40>, padding = dense<[[39, 0]]>}> ({add})
      : (tensor<40xbf16>, tensor<bf16>) -> tensor<40xbf16>

After::

    %b = stablehlo.reshape (stablehlo.pad %x, %zero, low = [0], high = [8], interior = [0]) -> tensor<3x16xbf16>
    %w = "stablehlo.reduce_window"(%b, %zero) <{window_dimensions = array<i64: 1, 16>, …}> ({add})
    %before = "stablehlo.reduce_window"(%w[:, 15], %zero) …          // the sums of the blocks, moved by one
    %r = stablehlo.slice (stablehlo.add %w, %before) [0:40]

A sum of 16-bit floats is rounded after each step, so that the order of the steps shows. XLA's CPU client adds windows
one element after the other, and cuts running ones into blocks of 16 first, the sums of blocks as well. Wider floats
keep their windows, because the order hardly shows there. Source: XLA "ReduceWindowRewriter".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import integers
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import combiner, is_static, numbers_of, sums_16_bit_floats
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

BLOCK = 16


@dataclass(frozen=True)
class _Running:
    """A running reduction along the last dimension.

    Attributes:
        name: of the operation that combines two elements.
        start: the scalar before the first.
        reverse: whether a result is of an element and those that follow.
    """

    name: str
    start: Value
    reverse: bool

    def of(self, array: Value) -> Value:
        """Each element with those before it, or those that follow."""
        n = array.dims[-1]
        if n <= BLOCK:
            return self._window(array, array.rank - 1)
        outer, blocks = array.dims[:-1], -(-n // BLOCK)
        padded = ops.pad(array, self.start, [*[(0, 0, 0)] * len(outer), (0, blocks * BLOCK - n, 0)])
        # Blocks beside each other are vectors.
        swapped = [*range(len(outer)), len(outer) + 1, len(outer)]
        columns = ops.transpose(ops.reshape(padded, [*outer, blocks, BLOCK]), swapped)
        within = ops.transpose(self._window(columns, len(outer)), swapped)
        column = 0 if self.reverse else BLOCK - 1
        totals = ops.reshape(_part(within, column, column + 1), [*outer, blocks])
        others = ops.broadcast_in_dim(self._before(totals), within.dims, range(len(outer) + 1))
        joined = emit(self.name, [within, others], within.type)
        return _part(ops.reshape(joined, [*outer, blocks * BLOCK]), 0, n)

    def _before(self, array: Value) -> Value:
        """Each result without the element itself."""
        n, rest = array.dims[-1], [(0, 0, 0)] * (array.rank - 1)
        if self.reverse:
            return _part(ops.pad(self.of(array), self.start, [*rest, (0, 1, 0)]), 1, n + 1)
        return _part(ops.pad(self.of(array), self.start, [*rest, (1, 0, 0)]), 0, n)

    def _window(self, array: Value, along: int) -> Value:
        n = array.dims[along]
        sizes, padding = [1] * array.rank, [(0, 0)] * array.rank
        sizes[along], padding[along] = n, (0, n - 1) if self.reverse else (n - 1, 0)
        return ops.reduce_window(
            array, self.start, lambda a, b: emit(self.name, [a, b], a.type), sizes, padding=padding
        )


def _part(array: Value, first: int, last: int) -> Value:
    """Along the last dimension."""
    zeros = [0] * (array.rank - 1)
    return ops.slice(array, [*zeros, first], [*array.dims[:-1], last], [1] * array.rank)


@pattern("stablehlo.reduce_window")
def in_blocks(op: ir.Operation) -> Replacement:
    """Running sums and products, cut into blocks."""
    if not sums_16_bit_floats(op) or not is_static(op):
        return NoMatch("no sum or product of 16-bit floats")
    array = Value(op.operands[0])
    moving = _moving(op, array.dims)
    if len(moving) != 1 or array.dims[moving[0]] <= BLOCK:
        return NoMatch("windows along several dimensions, or of one block")
    (along,) = moving
    n = array.dims[along]
    size = integers(op, "window_dimensions")[along]
    low, high = (int(edge) for edge in _edges(op, array.rank)[along])
    if size != n or sorted((low, high)) not in ([0, n - 1], [0, n]) or _steps(op, array.rank)[along] != (1, 1, 1):
        return NoMatch("windows that do not grow from one end to the other")
    order = [d for d in range(array.rank) if d != along] + [along]
    running = _Running(combiner(op), Value(op.operands[1]), high > 0)
    found = running.of(ops.transpose(array, order))
    if max(low, high) == n:
        rest = [(0, 0, 0)] * (array.rank - 1)
        found = ops.pad(found, running.start, [*rest, (0, 1, 0) if high else (1, 0, 0)])
    return ops.transpose(found, [order.index(d) for d in range(array.rank)])


def _edges(op: ir.Operation, rank: int) -> Sequence[tuple[int, ...]]:
    numbers = numbers_of(op, "padding") or [0] * (2 * rank)
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _steps(op: ir.Operation, rank: int) -> list[tuple[int, ...]]:
    names = ("window_strides", "base_dilations", "window_dilations")
    return list(zip(*(integers(op, name) or [1] * rank for name in names), strict=True))


def _moving(op: ir.Operation, dims: Sequence[int]) -> list[int]:
    """Dimensions along which a window is more than an element."""
    sizes = integers(op, "window_dimensions")
    edges, steps = _edges(op, len(dims)), _steps(op, len(dims))
    return [d for d, size in enumerate(sizes) if (size, *edges[d], *steps[d]) != (1, 0, 0, 1, 1, 1)]


@register
@dataclass(frozen=True)
class DecomposeRunningReductions(PatternPass):
    """Cut running sums of 16-bit floats into blocks, as XLA does, because it rounds after each step."""

    name: ClassVar[str] = "decompose-running-reductions"
    patterns: ClassVar[tuple[Pattern, ...]] = in_blocks
