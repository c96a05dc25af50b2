"""Sequences and optionals: lists that exist while the model is imported, and not in the program."""

from __future__ import annotations

from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.values import Value
from hloforge.importers.onnx.graph import Outputs
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.tensors import axis_of, dims_of, expand, lift, pieces


@operator("SequenceConstruct")
def construct(node: Node) -> Any:
    return list(node.inputs)


@operator("SequenceEmpty")
def empty(node: Node) -> Any:
    return []


@operator("SequenceAt")
def element(node: Node) -> Any:
    return node.inputs[0][int(node.known(1).reshape(()))]


@operator("SequenceInsert")
def insert(node: Node) -> Any:
    sequence = list(node.inputs[0])
    place = int(node.known(2).reshape(())) if node.has(2) else len(sequence)
    sequence.insert(place, node.inputs[1])
    return sequence


@operator("SequenceErase")
def erase(node: Node) -> Any:
    sequence = list(node.inputs[0])
    del sequence[int(node.known(1).reshape(())) if node.has(1) else -1]
    return sequence


@operator("SequenceLength")
def length(node: Node) -> Any:
    return np.asarray(len(node.inputs[0]), np.int64)


@operator("SplitToSequence")
def split(node: Node) -> Any:
    x = node.value(0)
    axis = node.axis(0)
    extent = x.dims[axis]
    sizes, squeezed = [1] * extent, not node.attribute("keepdims", 1) and not node.has(1)
    if node.has(1):
        given = node.integers(1)
        each = given[0]
        sizes = given if node.rank(1) else [min(each, extent - start) for start in range(0, extent, each)]
    parts = pieces(x, axis, sizes)
    return [_squeezed(part, axis) if squeezed else part for part in parts]


def _squeezed(x: Value, axis: int) -> Value:
    return ops.reshape(x, [extent for d, extent in enumerate(x.dims) if d != axis])


@operator("ConcatFromSequence")
def concat(node: Node) -> Any:
    parts = [lift(part) for part in node.inputs[0]]
    new = bool(node.attribute("new_axis", 0))
    axis = axis_of(int(node.attribute("axis")), len(dims_of(parts[0])) + new)
    parts = [expand(part, [axis]) for part in parts] if new else parts
    return ops.concat_in_dim(parts, axis) if len(parts) > 1 else parts[0]


@operator("Optional", "OptionalGetElement")
def optional(node: Node) -> Any:
    """An optional is its element, or None."""
    return Outputs([node.inputs[0] if node.inputs else None])


@operator("OptionalHasElement")
def has_element(node: Node) -> Any:
    return np.asarray(node.has(0))
