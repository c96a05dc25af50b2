"""Tensors whose size depends on elements: padded to a bound, with their size beside them.

A node that makes such a tensor (NonZero, Compress, NonMaxSuppression) returns a ``Bounded``: an array of its largest
size, whose elements from the size on are padding. Any node may read one that has a rule here, which says where the
dimension goes and that no element before the size depends on one after it: the node then computes on the padded array.
For all others, ``hidden`` asks for the elements of the program's inputs, as before (``Needs``). A result of the program
gets its size at the end, so that callers see arrays of exact sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value
from hloforge.importers.needs import known_value
from hloforge.importers.onnx.node import Node
from hloforge.importers.tensors import axis_of, cast, fill, lift, numbers


@dataclass(frozen=True)
class Bounded:
    """A tensor with one dimension of a size that is known at run time.

    Attributes:
        padded: the array; elements from the size on are no part of the tensor.
        axis: the dimension, from 0.
        size: s32, a scalar.
    """

    padded: Value
    axis: int
    size: Value

    def cut(self) -> Value:
        """The array with its dynamic size, as a result of the program."""
        return ops.set_dimension_size(self.padded, self.size, self.axis)


# From a node, and the axes of its bounded inputs by their number, to the axis of the results; None if there is no rule.
Rule: TypeAlias = Callable[[Node, Mapping[int, int]], int | None]


def hidden(tensor: Bounded) -> NoReturn:
    """Refuse a use that no rule describes.

    Raises:
        Needs: with the elements of these inputs known, the size is as well.
        UnsupportedError: it cannot become known.
    """
    known_value(tensor.padded)
    raise UnsupportedError("the size of an input depends on elements, and no rule says where it goes")


def axis_after(node: Node, handler: Any, bounded: Mapping[int, Bounded]) -> int | None:
    """The dimension of a node's results that has the size of its inputs, or None.

    Args:
        node: its inputs are the padded arrays.
        handler: the operator's function.
    """
    first = next(iter(bounded.values()))
    if any(each.size.ir != first.size.ir for each in bounded.values()):
        return None
    rule = _elementwise if handler.__module__.endswith(".elementwise") else _RULES.get(node.name)
    return rule(node, {number: each.axis for number, each in bounded.items()}) if rule else None


def compacted(mask: Value) -> tuple[Value, Value]:
    """The positions of the true elements of a vector, ascending and padded with 0, and their number, both s32."""
    (extent,) = mask.dims
    places = ops.reshape(ops.select(mask, running(mask) - 1, fill([extent], extent, "s32")), [extent, 1])
    layout = ops.ScatterDimensionNumbers([], [0], [0], 1)
    found = ops.scatter(fill([extent], 0, "s32"), places, numbers([extent], 0), lambda _, new: new, layout)
    return found, ops.reduce(cast(mask, "s32"), 0, ops.add, [0])


def running(mask: Value) -> Value:
    """How many elements of a vector are true up to each, itself included, s32."""
    (extent,) = mask.dims
    return ops.reduce_window(cast(mask, "s32"), 0, ops.add, [extent], padding=[(extent - 1, 0)])


def coordinates(places: Value, dims: Sequence[int]) -> list[Value]:
    """Positions in an array of these sizes as one vector of s64 for each of its dimensions."""
    strides = [math.prod(dims[d + 1 :]) for d in range(len(dims))]
    return [cast(places / stride % extent, "s64") for stride, extent in zip(strides, dims, strict=True)]


def _elementwise(node: Node, axes: Mapping[int, int]) -> int | None:
    """numpy's broadcasting aligns dimensions from the end; all others have to be 1 there."""
    if node.version < 7:
        return None
    given = [number for number in range(len(node.inputs)) if node.has(number)]
    rank = max(map(node.rank, given))
    places = {axis + rank - node.rank(number) for number, axis in axes.items()}
    if len(places) > 1:
        return None
    (place,) = places
    others = [(number, place - rank + node.rank(number)) for number in given if number not in axes]
    return place if all(d < 0 or node.dims(number)[d] == 1 for number, d in others) else None


def _transpose(node: Node, axes: Mapping[int, int]) -> int | None:
    order = node.attribute("perm") or list(reversed(range(node.rank())))
    return list(order).index(axes[0])


def _unsqueeze(node: Node, axes: Mapping[int, int]) -> int | None:
    added = node.listed("axes", 1) or []
    rank = node.rank() + len(added)
    rest = [d for d in range(rank) if d not in {axis_of(int(axis), rank) for axis in added}]
    return rest[axes[0]]


def _squeeze(node: Node, axes: Mapping[int, int]) -> int | None:
    gone = node.axes(1, [])
    return axes[0] - sum(axis < axes[0] for axis in gone) if gone and axes[0] not in gone else None


def _reshape(node: Node, axes: Mapping[int, int]) -> int | None:
    """The size is what -1 stands for, if there are as many elements before and after it as there were."""
    if set(axes) != {0} or node.attribute("allowzero", 0):
        return None
    dims, target = node.dims(0), node.integers(1)
    if target.count(-1) != 1 or target[axes[0] : axes[0] + 1] == [0]:
        return None
    place = target.index(-1)
    sizes = [dims[d] if extent == 0 else extent for d, extent in enumerate(target)]
    before = math.prod(sizes[:place]) == math.prod(dims[: axes[0]])
    after = math.prod(sizes[place + 1 :]) == math.prod(dims[axes[0] + 1 :])
    return place if before and after and 0 not in dims else None


def _gather(node: Node, axes: Mapping[int, int]) -> int | None:
    axis = node.axis(0)
    if set(axes) == {1}:
        return axis + axes[1]
    if set(axes) != {0} or axes[0] == axis:
        return None
    return axes[0] if axes[0] < axis else axes[0] + node.rank(1) - 1


def _gather_nd(node: Node, axes: Mapping[int, int]) -> int | None:
    fits = set(axes) == {1} and axes[1] < node.rank(1) - 1 and not node.attribute("batch_dims", 0)
    return axes[1] if fits else None


def _slice(node: Node, axes: Mapping[int, int]) -> int | None:
    if set(axes) != {0}:
        return None
    starts = node.listed("starts", 1) or []
    cut = node.listed("axes", 3)
    chosen = range(len(starts)) if cut is None else [axis_of(axis, node.rank()) for axis in cut]
    return axes[0] if axes[0] not in chosen else None


def _concat(node: Node, axes: Mapping[int, int]) -> int | None:
    places = set(axes.values())
    fits = len(axes) == len(node.inputs) and len(places) == 1 and node.axis(0) not in places
    return places.pop() if fits else None


def _reduction(node: Node, axes: Mapping[int, int]) -> int | None:
    gone = node.axes(1, [])
    if set(axes) != {0} or not gone or axes[0] in gone:
        return None
    return axes[0] if node.attribute("keepdims", 1) else axes[0] - sum(axis < axes[0] for axis in gone)


def _argument(node: Node, axes: Mapping[int, int]) -> int | None:
    axis = node.axis(0)
    if axis == axes[0]:
        return None
    return axes[0] if node.attribute("keepdims", 1) else axes[0] - (axis < axes[0])


def _softmax(node: Node, axes: Mapping[int, int]) -> int | None:
    return axes[0] if node.version >= 13 and node.axis(-1) != axes[0] else None


def _product(node: Node, axes: Mapping[int, int]) -> int | None:
    """The rows of the left factor are rows of the result."""
    fits = set(axes) == {0} and node.rank(0) >= max(2, node.rank(1)) and axes[0] == node.rank(0) - 2
    return axes[0] if fits and node.rank(1) == 2 else None


_RULES: dict[str, Rule] = {
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Reshape": _reshape,
    "Gather": _gather,
    "GatherND": _gather_nd,
    "Slice": _slice,
    "Concat": _concat,
    "MatMul": _product,
    "Softmax": _softmax,
    "LogSoftmax": _softmax,
    **dict.fromkeys(("ArgMax", "ArgMin"), _argument),
    **dict.fromkeys(("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL1"), _reduction),
    **dict.fromkeys(("ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"), _reduction),
}


def stacked(columns: Sequence[Value], axis: int) -> Value:
    """Vectors as the rows (0) or columns (1) of a matrix."""
    (extent,) = columns[0].dims
    dims = [1, extent] if axis == 0 else [extent, 1]
    return ops.concat_in_dim([ops.reshape(column, dims) for column in columns], axis)


def empty(*dims: int) -> Value:
    """No elements of s64."""
    return lift(np.zeros(dims, np.int64))
