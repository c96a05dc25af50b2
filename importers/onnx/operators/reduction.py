"""Sums, maxima and similar reductions along axes; cumulative sums; argmax and argmin."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.values import Value
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.roundings import rounds_once
from hloforge.importers.tensors import (
    cast,
    expand,
    greatest,
    highest,
    least,
    lowest,
    mean,
    numbers,
    pair,
    reduced,
    total,
)


def _log_sum_exp(x: Value, axes: list[int], keep: bool) -> Value:
    top = greatest(x, axes, True)
    top = ops.select(ops.is_finite(top), top, full(top, 0))
    spread = ops.broadcast_in_dim(ops.reshape(top, _kept(x, axes)), x.dims, _places(x, axes))
    result = ops.log(total(ops.exp(x - spread), axes, True)) + top
    return result if keep else ops.reshape(result, _kept(x, axes))


def _kept(x: Value, axes: list[int]) -> list[int]:
    return [extent for d, extent in enumerate(x.dims) if d not in axes]


def _places(x: Value, axes: list[int]) -> list[int]:
    return [d for d in range(x.rank) if d not in axes]


_REDUCTIONS: dict[str, Callable[[Value, list[int], bool], Value]] = {
    "ReduceL1": lambda x, axes, keep: total(ops.abs(x), axes, keep),
    "ReduceL2": lambda x, axes, keep: ops.sqrt(total(x * x, axes, keep)),
    "ReduceLogSum": lambda x, axes, keep: ops.log(total(x, axes, keep)),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": greatest,
    "ReduceMean": mean,
    "ReduceMin": least,
    "ReduceProd": lambda x, axes, keep: reduced(x, 1.0 if x.element_type.is_float else 1, ops.mul, axes, keep),
    "ReduceSum": total,
    "ReduceSumSquare": lambda x, axes, keep: total(x * x, axes, keep),
}

# Of integers they are computed in float64, and cut.
_ROUNDED = ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp")


@operator(*_REDUCTIONS)
@rounds_once
def reduce(node: Node) -> Value:
    """``axes`` is an attribute, then an input; without them all are reduced, or none with ``noop_with_empty_axes``."""
    x = node.value(0)
    given = node.listed("axes", 1)
    axes = node.axes() if given else list(range(x.rank))
    if not given and node.attribute("noop_with_empty_axes", 0):
        return _of_each(x, node.name)
    keep = bool(node.attribute("keepdims", 1))
    if node.name in _ROUNDED and not x.element_type.is_float:
        return cast(_REDUCTIONS[node.name](cast(x, "f64"), axes, keep), x.element_type.name)
    return _REDUCTIONS[node.name](x, axes, keep)


def _of_each(x: Value, name: str) -> Value:
    """A reduction along no axis: of each element alone."""
    if name in ("ReduceL1", "ReduceL2"):
        return ops.abs(x)
    if name == "ReduceSumSquare":
        return x * x
    if name == "ReduceLogSum":
        return ops.log(x) if x.element_type.is_float else cast(ops.log(cast(x, "f64")), x.element_type.name)
    return x


@operator("ArgMax", "ArgMin")
def place_of_extreme(node: Node) -> Value:
    x = node.value(0)
    axis = node.axis(0)
    largest, last = node.name == "ArgMax", bool(node.attribute("select_last_index", 0))
    if not x.element_type.is_float:
        x = cast(x, "s64") if x.element_type.bits > 16 else cast(x, "s32")

    def better(value: Value, place: Value, other: Value, other_place: Value) -> tuple[Value, Value]:
        wins = value > other if largest else value < other
        earlier = place > other_place if last else place < other_place
        # NaN wins, as in numpy.
        if value.element_type.is_float:
            wins = (wins | value.ne(value)) & other.eq(other) | (value.ne(value) & other.ne(other) & earlier)
        first = wins | (value.eq(other) & earlier)
        return ops.select(first, value, other), ops.select(first, place, other_place)

    start = lowest(x.element_type) if largest else highest(x.element_type)
    found = ops.reduce([x, numbers(x.dims, axis)], [start, -1 if last else np.iinfo(np.int32).max], better, [axis])
    places = cast(pair(found)[1], "s64")
    return expand(places, [axis]) if node.attribute("keepdims", 1) else places


@operator("CumSum", "CumProd")
@rounds_once
def running(node: Node) -> Value:
    x = node.value(0)
    axis = int(node.known(1).reshape(())) % max(x.rank, 1)
    product = node.name == "CumProd"
    combine = ops.mul if product else ops.add
    one = int(product)
    size = x.dims[axis]
    exclusive, backwards = bool(node.attribute("exclusive", 0)), bool(node.attribute("reverse", 0))
    window = [size if d == axis else 1 for d in range(x.rank)]
    before = (0, size - 1) if backwards else (size - 1, 0)
    padding = [before if d == axis else (0, 0) for d in range(x.rank)]
    start = float(one) if x.element_type.is_float else one
    if not size:
        return x
    inclusive = ops.reduce_window(x, start, combine, window, padding=padding)
    if not exclusive:
        return inclusive
    shift = [(0, 0, 0)] * x.rank
    shift[axis] = (-1, 1, 0) if backwards else (1, -1, 0)
    return ops.pad(inclusive, start, shift)
