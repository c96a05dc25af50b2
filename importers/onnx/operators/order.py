"""Sorting, top-k, and operators whose result size depends on counts of elements."""

from __future__ import annotations

import math
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.element_types import Kind
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value, leaves
from hloforge.importers.onnx.bounded import Bounded, compacted, coordinates, stacked
from hloforge.importers.onnx.graph import Outputs
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.tensors import cast, numbers, window


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
    return _of_data(node)


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
