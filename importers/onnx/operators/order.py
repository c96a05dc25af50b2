"""Sorting, top-k, and operators whose result size depends on counts of elements."""

from __future__ import annotations

import math
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.element_types import Kind
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value, leaves
from hloforge.importers.onnx.bounded import Bounded, compacted, coordinates, running, stacked
from hloforge.importers.onnx.graph import Outputs
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.tensors import cast, fill, numbers, take, window


@operator("TopK")
def top_k(node: Node) -> Any:
    """Of equal elements the one of lower index goes first."""
    x = node.value(0)
    count = int(node.known(1).reshape(-1)[0]) if node.has(1) else int(node.attribute("k"))
    axis = node.axis(-1)
    largest = bool(node.attribute("largest", 1))

    def before(a: Value, b: Value, place_a: Value, place_b: Value) -> Value:
        wins = a > b if largest else a < b
        return wins | (a.eq(b) & (place_a < place_b))

    values, places = leaves(ops.sort([x, numbers(x.dims, axis)], before, axis))
    return Outputs([window(values, axis, 0, count), cast(window(places, axis, 0, count), "s64")])


@operator("NonZero")
def non_zero(node: Node) -> Any:
    """One row for each dimension: where the elements are, in the order in which they lie."""
    x = node.value(0)
    if not x.rank or 0 in x.dims:
        return _of_data(node)
    flat = ops.reshape(x, [math.prod(x.dims)])
    mask = flat if flat.element_type.kind is Kind.PRED else flat.ne(full(flat, 0))
    places, size = compacted(mask)
    return Bounded(stacked(coordinates(places, x.dims), 0), 1, size)


@operator("Unique")
def unique(node: Node) -> Any:
    """Outputs: the distinct elements, where each is first, the number of each element's, and how many each has."""
    x, axis = node.value(0), node.attribute("axis")
    ascending = bool(node.attribute("sorted", 1))
    if not x.rank or 0 in x.dims or (axis is not None and x.rank > 1):
        return _of_data(node)
    return Outputs(_distinct(ops.reshape(x, [math.prod(x.dims)]), ascending))


@operator("Unique", domain="com.microsoft")
def unique_in_order(node: Node) -> Any:
    """ONNX's operator in the order in which elements are first, without where they are."""
    if 0 in node.dims(0):
        return _of_data(node)
    values, _, group, counts = _distinct(node.value(0), ascending=False)
    return Outputs([values, group, counts])


def _distinct(x: Value, ascending: bool) -> list[Any]:
    """Equal elements of a vector lie beside each other once sorted; NaNs count as equal, as in ONNX's reference.

    Args:
        ascending: whether the results go by values, or by where each is first.
    """
    (extent,) = x.dims
    keys = x
    if x.element_type.is_float:
        keys = ops.select(x.eq(0), full(x, 0), ops.select(x.ne(x), full(x, math.nan), x))
    keys, order = leaves(ops.sort([keys, numbers([extent], 0)], None, 0, True))
    left, right = window(keys, 0, 0, extent - 1), window(keys, 0, 1, extent)
    differs = left.ne(right)
    if x.element_type.is_float:
        differs = differs & (left.eq(left) | right.eq(right))
    is_new = ops.concat_in_dim([fill([1], True, "pred"), differs], 0)
    begins, size = compacted(is_new)
    ends = ops.concat_in_dim([window(begins, 0, 1, extent), fill([1], 0, "s32")], 0)
    counts = ops.select(ends > begins, ends, full(ends, extent)) - begins
    first, group = take(order, begins, 0), _placed(order, running(is_new) - 1)
    if not ascending:
        is_first = _placed(first, fill([extent], True, "pred"))
        renumbered = take(running(is_first) - 1, first, 0)
        first, _ = compacted(is_first)
        counts, group = take(counts, take(group, first, 0), 0), take(renumbered, group, 0)
    found = take(x, first, 0)
    return [
        Bounded(found, 0, size),
        Bounded(cast(first, "s64"), 0, size),
        cast(group, "s64"),
        Bounded(cast(counts, "s64"), 0, size),
    ]


def _placed(places: Value, elements: Value) -> Value:
    """A vector with elements at positions; zero where there are none."""
    (extent,) = places.dims
    layout = ops.ScatterDimensionNumbers([], [0], [0], 1)
    zeros = fill([extent], 0, elements.element_type)
    return ops.scatter(zeros, ops.reshape(places, [extent, 1]), elements, lambda _, new: new, layout)


def _of_data(node: Node) -> Any:
    """The size of the result depends on elements, so these have to be known: then they are folded.

    Raises:
        Needs: the elements of some inputs come with the call.
        UnsupportedError: they are known and yet not folded: there are too many of them.
    """
    for number in range(len(node.inputs)):
        if node.has(number):
            node.known(number)
    raise UnsupportedError(
        "the size of its result depends on more elements than are computed before the call",
        hint="end the model before this node, and compute it with numpy",
    )
