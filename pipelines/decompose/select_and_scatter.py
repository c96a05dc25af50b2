"""``decompose-select-and-scatter``: the gradient of pooling as arithmetic on whole arrays.

Before::

    %r = "stablehlo.select_and_scatter"(%x, %s, %init) ({... ge ...}, {... add ...})
           {window [3, 3], strides [2, 2]} : (tensor<8x8xf32>, tensor<3x3xf32>, tensor<f32>) -> tensor<8x8xf32>

After::

    %k = for each of the 9 places in a window: the place of the element selected so far    : tensor<3x3xi32>
    %r = for each of the 4 windows that may cover an element: where %k names this element's
         position in the window, combine the window's source into it                          : tensor<8x8xf32>

Both halves are slices, pads and elementwise operations. Elements see their windows in ascending order, so that the
scatter computation needs no properties; the select computation sees the elements of a window in ascending order.
Elements outside the array take no part. Many positions or windows are a loop of the same steps.
Source: StableHLO spec "select_and_scatter", XLA "SelectAndScatter".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product
from math import prod
from typing import Any, ClassVar

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.dense_values import array_of
from hloforge.dialect.idioms import for_loop, take
from hloforge.dialect.mlir import ir
from hloforge.dialect.regions import is_elementwise, vectorize_region
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

# Up to so many steps are written one after the other and become one kernel.
_UNROLLED = 32


@dataclass(frozen=True)
class _Axis:
    """The windows along one dimension.

    Attributes:
        size: of the operand.
        count: of windows.
        window, stride: the windows' size and distance.
        low: padding before the first element; negative if the first window starts after it.
    """

    size: int
    count: int
    window: int
    stride: int
    low: int

    @property
    def terms(self) -> int:
        """How many windows may cover one element."""
        return min(-(-self.window // self.stride), self.count)

    @property
    def reach(self) -> int:
        """How many windows reach an element whose last one starts at it, this last one aside."""
        return -(-self.window // self.stride) - 1

    def covering(self, term: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """For each element a window, ascending in ``term``, and the element's position in it; else -1."""
        position = np.arange(self.size) + self.low
        # Either all windows in turn, or those that reach an element.
        window = np.full(self.size, term) if self.terms == self.count else position // self.stride - self.reach + term
        place = position - window * self.stride
        good = (window >= 0) & (window < self.count) & (place >= 0) & (place < self.window)
        return np.where(good, window, 0), np.where(good, place, -1)

    def inside(self, place: int) -> np.ndarray[Any, Any]:
        """For each window, whether its element at ``place`` lies in the array."""
        position = np.arange(self.count) * self.stride + place - self.low
        return (position >= 0) & (position < self.size)

    def spread(self, values: Value, d: int, term: int) -> Value:
        """Along ``d``, each element's window of ``covering(term)``, from one value a window."""
        windows, places = self.covering(term)
        good = np.flatnonzero(places >= 0)
        if not good.size:
            return _resized(values, d, self.size)
        first, last = int(windows[good[0]]), int(windows[good[-1]])
        part = _sliced(values, d, first, last + 1, 1)
        if first == last:
            return _resized(part, d, self.size)
        # Every window serves a stride of elements; padding may be negative, for the first may start outside the array.
        repeated = _repeated(part, d, self.stride)
        before = (first + self.reach - term) * self.stride - self.low
        edges = [(0, 0)] * values.rank
        edges[d] = (before, self.size - before - repeated.dims[d])
        return ops.pad(repeated, constant(0, values.element_type), edges)


@dataclass(frozen=True)
class _Pooling:
    """One ``stablehlo.select_and_scatter``."""

    operand: Value
    source: Value
    init: Value
    axes: tuple[_Axis, ...]
    select: Any
    scatter: Any

    @classmethod
    def of(cls, op: Any) -> _Pooling:
        operand, *combined = map(Value, op.operands)
        # The scatter computation may have a wider type than the operand.
        source, init = (ops.convert_element_type(value, Value(op.results[0]).element_type) for value in combined)
        rank = operand.rank
        window, strides = (
            [int(n) for n in op.attributes[name]] if name in op.attributes else [1] * rank
            for name in ("window_dimensions", "window_strides")
        )
        lows = array_of(op.attributes["padding"])[:, 0] if "padding" in op.attributes else [0] * rank
        columns = zip(operand.dims, source.dims, window, strides, map(int, lows), strict=True)
        return cls(operand, source, init, tuple(_Axis(*column) for column in columns), *op.regions)

    @cached_property
    def window(self) -> tuple[int, ...]:
        return tuple(axis.window for axis in self.axes)

    @cached_property
    def padded(self) -> Value:
        """The operand such that every window lies inside; what is added is never selected."""
        edges = [(axis.low, (axis.count - 1) * axis.stride + axis.window - axis.low - axis.size) for axis in self.axes]
        return ops.pad(self.operand, constant(0, self.operand.element_type), edges)

    def selected(self) -> Value:
        """For each window the position of the selected element, counted over the window; -1 if it has none."""
        none = full(self.source, -1, "s32")
        state = [full(self.source, 0, self.operand.element_type), none]
        if prod(self.window) <= _UNROLLED:
            for number, places in enumerate(product(*map(range, self.window))):
                inside = [constant(axis.inside(place), "pred") for axis, place in zip(self.axes, places, strict=True)]
                part = self.padded
                for d, (axis, place) in enumerate(zip(self.axes, places, strict=True)):
                    part = _sliced(part, d, place, place + (axis.count - 1) * axis.stride + 1, axis.stride)
                state = self._next(state, constant(number, "s32"), part, inside)
            return state[1]
        tables = [
            constant(np.array([axis.inside(place) for place in range(axis.window)]), "pred") for axis in self.axes
        ]
        extents = [(axis.count - 1) * axis.stride + 1 for axis in self.axes]

        def turn(number: Value, *state: Value) -> list[Value]:
            places = _digits(number, self.window)
            part = ops.dynamic_slice(self.padded, places, extents)
            for d, axis in enumerate(self.axes):
                part = _sliced(part, d, 0, extents[d], axis.stride)
            inside = [_row(table, place) for table, place in zip(tables, places, strict=True)]
            return self._next(state, number, part, inside)

        return for_loop(prod(self.window), state, turn)[1]

    def _next(self, state: Sequence[Value], number: Value, part: Value, inside: Sequence[Value]) -> list[Value]:
        """The best element so far and its position against those at position ``number``."""
        best, place = state
        (keeps,) = vectorize_region(self.select, [best, part])
        takes = (place < 0) | ~keeps
        for d, vector in enumerate(inside):
            takes = takes & ops.broadcast_in_dim(vector, part.dims, [d])
        here = ops.broadcast_in_dim(number, part.dims, [])
        return [ops.select(takes, part, best), ops.select(takes, here, place)]

    def scattered(self, selected: Value) -> Value:
        """The initial value combined with the sources of all windows that selected an element."""
        result = ops.broadcast_in_dim(self.init, self.operand.dims, [])
        counts = [axis.terms for axis in self.axes]
        if prod(counts) <= _UNROLLED:
            for terms in product(*map(range, counts)):
                source, chosen = self.source, selected
                for d, (axis, term) in enumerate(zip(self.axes, terms, strict=True)):
                    source, chosen = axis.spread(source, d, term), axis.spread(chosen, d, term)
                places = [constant(place, "s32") for place in self._places(terms)]
                result = self._combined(result, source, chosen, places)
            return result
        tables = [[axis.covering(term) for term in range(axis.terms)] for axis in self.axes]
        windows = [constant(np.array([window for window, _ in rows]), "s32") for rows in tables]
        places = [
            constant(np.array([self._weighted(d, place) for _, place in rows]), "s32") for d, rows in enumerate(tables)
        ]

        def turn(number: Value, result: Value) -> list[Value]:
            terms = _digits(number, counts)
            source, chosen = self.source, selected
            for d, (table, term) in enumerate(zip(windows, terms, strict=True)):
                source, chosen = (take(values, _row(table, term), d) for values in (source, chosen))
            rows = [_row(table, term) for table, term in zip(places, terms, strict=True)]
            return [self._combined(result, source, chosen, rows)]

        return for_loop(prod(counts), [result], turn)[0]

    def _places(self, terms: Sequence[int]) -> list[np.ndarray[Any, Any]]:
        return [self._weighted(d, axis.covering(terms[d])[1]) for d, axis in enumerate(self.axes)]

    def _weighted(self, d: int, places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The share of one dimension in the number of a position; negative enough, where there is none, for any sum."""
        return np.where(places < 0, -prod(self.window), places * prod(self.window[d + 1 :]))

    def _combined(self, result: Value, source: Value, chosen: Value, places: Sequence[Value]) -> Value:
        here = [ops.broadcast_in_dim(vector, result.dims, [d]) for d, vector in enumerate(places)]
        number = reduce(lambda a, b: a + b, here, full(result, 0, "s32"))
        hit = (chosen >= 0) & chosen.eq(number)
        (combined,) = vectorize_region(self.scatter, [result, source])
        return ops.select(hit, combined, result)


def _digits(number: Value, sizes: Sequence[int]) -> list[Value]:
    """The multi-index of a flat row-major index."""
    return [number / prod(sizes[d + 1 :]) % size for d, size in enumerate(sizes)]


def _row(table: Value, number: Value) -> Value:
    """``table[number]`` of a matrix."""
    return ops.reshape(ops.dynamic_slice(table, [number, constant(0, "s32")], [1, table.dims[1]]), [table.dims[1]])


def _sliced(values: Value, d: int, start: int, limit: int, stride: int) -> Value:
    starts, limits, strides = [0] * values.rank, list(values.dims), [1] * values.rank
    starts[d], limits[d], strides[d] = start, limit, stride
    return ops.slice(values, starts, limits, strides)


def _resized(values: Value, d: int, size: int) -> Value:
    """The first slice along ``d``, ``size`` times."""
    part = _sliced(values, d, 0, 1, 1)
    kept = [e for e in range(values.rank) if e != d]
    sizes = list(values.dims)
    sizes[d] = size
    return ops.broadcast_in_dim(ops.reshape(part, [values.dims[e] for e in kept]), sizes, kept)


def _repeated(values: Value, d: int, times: int) -> Value:
    """Every slice along ``d`` ``times`` times in a row."""
    dims = values.dims
    spread = ops.broadcast_in_dim(
        values, [*dims[: d + 1], times, *dims[d + 1 :]], [*range(d + 1), *range(d + 2, values.rank + 1)]
    )
    return ops.reshape(spread, [*dims[:d], dims[d] * times, *dims[d + 1 :]])


@pattern("stablehlo.select_and_scatter")
def by_places(op: ir.Operation) -> Replacement:
    """select_and_scatter -> the selected position of every window, then every element from its windows."""
    if not all(operand.type.has_static_shape for operand in op.operands):
        return NoMatch("dynamic size")
    if not all(map(is_elementwise, op.regions)):
        return NoMatch("a computation with branches, loops or reductions")
    pooling = _Pooling.of(op)
    if not prod(pooling.source.dims) or not prod(pooling.operand.dims):
        return ops.broadcast_in_dim(pooling.init, pooling.operand.dims, [])
    return pooling.scattered(pooling.selected())


@register
@dataclass(frozen=True)
class DecomposeSelectAndScatter(PatternPass):
    """Rewrite every select_and_scatter of static shape whose computations are straight-line arithmetic."""

    name: ClassVar[str] = "decompose-select-and-scatter"
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SAFE_GATHERS, Fact.SAFE_SCATTERS, Fact.WIDE_SUMS})
    patterns: ClassVar[tuple[Pattern, ...]] = by_places
