"""Shape operators: reshaping, joining, splitting, padding, tiling, constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.element_types import Kind
from hloforge.dialect.values import Value
from hloforge.importers.onnx.graph import Outputs
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.spans import Number, numbers_of
from hloforge.importers.tensors import (
    Array,
    broadcast_to,
    cast,
    expand,
    fill,
    lift,
    numbers,
    pieces,
    take,
    window,
)


@operator("Constant")
def constant(node: Node) -> Any:
    """A known array."""
    for name, dtype in (
        ("value_float", np.float32),
        ("value_floats", np.float32),
        ("value_int", np.int64),
        ("value_ints", np.int64),
    ):
        if node.attribute(name) is not None:
            return np.asarray(node.attribute(name), dtype)
    for name in ("value_string", "value_strings"):
        if node.attribute(name) is not None:
            return np.asarray(node.attribute(name), object)
    found = node.attribute("value")
    return found if found is not None else node.attribute("sparse_value")


@operator("ConstantOfShape")
def constant_of_shape(node: Node) -> Any:
    element = node.attribute("value", np.zeros(1, np.float32)).reshape(-1)
    return np.broadcast_to(element[0], tuple(node.integers(0)))


@operator("Shape")
def shape(node: Node) -> Array:
    dims = node.dims(0)
    return np.asarray(dims[slice(node.attribute("start", 0), node.attribute("end"))], np.int64)


@operator("Size")
def size(node: Node) -> Array:
    return np.asarray(int(np.prod(node.dims(0), dtype=np.int64)), np.int64)


@operator("Reshape")
def reshape(node: Node) -> Value:
    """0 keeps a size (unless ``allowzero``), -1 takes what is left."""
    x = node.value(0)
    target = list(node.listed("shape", 1) or [])
    if not node.attribute("allowzero", 0):
        target = [x.dims[d] if extent == 0 else extent for d, extent in enumerate(target)]
    if -1 in target:
        rest = int(np.prod([extent for extent in target if extent != -1], dtype=np.int64))
        count = int(np.prod(x.dims, dtype=np.int64))
        target[target.index(-1)] = count // rest if rest else 0
    return ops.reshape(x, target)


@operator("Flatten")
def flatten(node: Node) -> Value:
    x = node.value(0)
    axis = node.axis(1)
    return ops.reshape(x, [int(np.prod(part, dtype=np.int64)) for part in (x.dims[:axis], x.dims[axis:])])


@operator("Squeeze")
def squeeze(node: Node) -> Value:
    x = node.value(0)
    gone = node.axes(1, [d for d, extent in enumerate(x.dims) if extent == 1])
    return ops.reshape(x, [extent for d, extent in enumerate(x.dims) if d not in gone])


@operator("Unsqueeze")
def unsqueeze(node: Node) -> Value:
    return expand(node.value(0), node.listed("axes", 1) or [])


@operator("Transpose")
def transpose(node: Node) -> Value:
    x = node.value(0)
    return ops.transpose(x, node.attribute("perm") or list(reversed(range(x.rank))))


@operator("Concat")
def concat(node: Node) -> Value:
    parts = node.values()
    return ops.concat_in_dim(parts, node.axis(1)) if len(parts) > 1 else parts[0]


@operator("Split")
def split(node: Node) -> Any:
    """By the sizes of ``split``, else into equal parts of which the last may be smaller."""
    x = node.value(0)
    axis = node.axis(0)
    sizes = node.listed("split", 1)
    if sizes is None:
        count = int(node.attribute("num_outputs", node.outputs))
        each = -(-x.dims[axis] // count)
        sizes = [max(0, min(each, x.dims[axis] - each * number)) for number in range(count)]
    return Outputs(pieces(x, axis, sizes))


@operator("Slice")
def slice_(node: Node) -> Value:
    """numpy's slices, but backward ones begin in the array; attributes before version 10, inputs from then on."""
    x = node.value(0)
    followed = _followed(node, x)
    if followed is not None:
        return followed
    starts, ends = node.listed("starts", 1) or [], node.listed("ends", 2) or []
    axes, steps = _axes_and_steps(node, len(starts))
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        size = x.dims[axis]
        begin, stop, stride = slice(max(start, -size) if step < 0 else start, end, step).indices(size)
        if stride > 0:
            x = window(x, axis, begin, max(begin, stop), stride)
            continue
        # The places, ascending, and then in reverse.
        count = len(range(begin, stop, stride))
        last = begin + (count - 1) * stride
        x = ops.rev(window(x, axis, last, begin + 1, -stride), [axis]) if count else window(x, axis, 0, 0)
    return x


def _axes_and_steps(node: Node, count: int) -> tuple[list[int], list[int]]:
    axes = node.listed("axes", 3)
    axes = list(range(count)) if axes is None else [axis % node.rank() for axis in axes]
    return axes, (node.integers(4) if node.has(4) else None) or [1] * count


def _followed(node: Node, x: Value) -> Value | None:
    """Slices whose starts and ends a loop computes, a constant apart and inside of the array; None for all others."""
    if not node.has(1) or not node.has(2) or all(isinstance(node.tensor(n), np.ndarray) for n in (1, 2)):
        return None
    sides = [numbers_of(node.tensor(number)) for number in (1, 2)]
    ranges = node.scope.importing.ranges
    if None in sides or not any(key in ranges for side in sides for number in side or () for key in number.terms):
        return None
    starts, ends = (side or [] for side in sides)
    axes, steps = _axes_and_steps(node, len(starts))
    places, sizes = [fill([], 0, "s64")] * x.rank, list(x.dims)
    given = cast(ops.reshape(node.value(1), [len(starts)]), "s64")
    for number, (axis, start, end, step) in enumerate(zip(axes, starts, ends, steps, strict=True)):
        begin, stop = (_from_the_end(side, x.dims[axis], ranges) for side in (start, end))
        if begin is None or stop is None or step < 1 or (stop - begin).terms:
            return None
        at = ops.reshape(window(given, 0, number, number + 1), [])
        places[axis] = at + begin.constant - start.constant
        sizes[axis] = max(stop.constant - begin.constant, 0)
    part = ops.dynamic_slice(x, places, sizes)
    for axis, step in zip(axes, steps, strict=True):
        part = window(part, axis, 0, sizes[axis], step)
    return part


def _from_the_end(number: Number, size: int, ranges: Mapping[Any, tuple[int, int]]) -> Number | None:
    """A start or an end, counted from the array's beginning; None where it may be on either side of its ends."""
    if not number.terms:
        constant = number.constant + size if number.constant < 0 else number.constant
        return Number(min(max(constant, 0), size))
    low, high = number.bounds(ranges) or (0, size + 1)
    if low < 0:
        number, low, high = number + Number(size), low + size, high + size
        high = high if high < size else size + 1
    return number if low >= 0 and high <= size else None


@operator("Expand")
def expand_(node: Node) -> Value:
    target = tuple(node.integers(1))
    return broadcast_to(node.value(0), np.broadcast_shapes(node.dims(0), target))


@operator("Tile", since=6)
def tile(node: Node) -> Value:
    x = node.value(0)
    repeats = node.integers(1)
    inner = [part for count, extent in zip(repeats, x.dims, strict=True) for part in (count, extent)]
    spread = ops.broadcast_in_dim(x, inner, [2 * d + 1 for d in range(x.rank)])
    return ops.reshape(spread, [count * extent for count, extent in zip(repeats, x.dims, strict=True)])


@operator("Pad")
def pad(node: Node) -> Value:
    """Padding is an attribute before version 11, an input from then on; negative numbers cut off."""
    x = node.value(0)
    given = node.listed("pads" if node.version > 1 else "paddings", 1) or []
    axes = axes_in_order(node.integers(3), x.rank) if node.has(3) else list(range(x.rank))
    low, high = [0] * x.rank, [0] * x.rank
    for number, axis in enumerate(axes):
        low[axis], high[axis] = given[number], given[number + len(axes)]
    mode = node.attribute("mode", "constant")
    if mode == "constant":
        value: Any = node.value(2) if node.has(2) else full_scalar(x, node.attribute("value", 0.0))
        return ops.pad(x, ops.reshape(value, []), [(a, b, 0) for a, b in zip(low, high, strict=True)])
    for axis in range(x.rank):
        x = _pad_by_places(x, axis, low[axis], high[axis], mode)
    return x


def axes_in_order(axes: list[int], rank: int) -> list[int]:
    """Axes from 0, in the order given."""
    return [axis % rank for axis in axes]


def full_scalar(like: Value, number: Any) -> Value:
    """A scalar of the element type of ``like``."""
    return fill([], number, like.element_type)


def _pad_by_places(x: Value, axis: int, low: int, high: int, mode: str) -> Value:
    if low == 0 == high:
        return x
    modes: dict[str, Any] = {"edge": "edge", "reflect": "reflect", "wrap": "wrap"}
    cut = window(x, axis, max(0, -low), x.dims[axis] - max(0, -high)) if min(low, high) < 0 else x
    places = np.pad(np.arange(cut.dims[axis], dtype=np.int32), (max(low, 0), max(high, 0)), mode=modes[mode])
    return take(cut, lift(places), axis)


@operator("Trilu")
def triangle(node: Node) -> Value:
    x = node.value(0)
    offset = cast(ops.reshape(node.value(1), []), "s32") if node.has(1) else fill([], 0, "s32")
    distance = numbers(x.dims, x.rank - 1) - numbers(x.dims, x.rank - 2)
    edge = ops.broadcast_in_dim(offset, x.dims, [])
    kept = distance >= edge if node.attribute("upper", 1) else distance <= edge
    return ops.select(kept, x, full(x, 0))


@operator("EyeLike")
def eye(node: Node) -> Array:
    rows, columns = node.dims(0)
    row = node.dtype("dtype", node.row(0))
    return np.eye(rows, columns, int(node.attribute("k", 0)), dtype=row.dtype)


@operator("Range")
def range_(node: Node) -> Array:
    start, limit, delta = (node.known(number).reshape(()) for number in range(3))
    wide: type[int] | type[float] = int if start.dtype.kind in "iu" else float
    return np.arange(wide(start), wide(limit), wide(delta)).astype(start.dtype)


@operator("SpaceToDepth")
def space_to_depth(node: Node) -> Value:
    x, block = node.value(0), int(node.attribute("blocksize"))
    batch, channels, height, width = x.dims
    parts = ops.reshape(x, [batch, channels, height // block, block, width // block, block])
    if node.attribute("mode", "DCR") == "CRD":
        moved = ops.transpose(parts, [0, 1, 3, 5, 2, 4])
    else:
        moved = ops.transpose(parts, [0, 3, 5, 1, 2, 4])
    return ops.reshape(moved, [batch, channels * block * block, height // block, width // block])


@operator("DepthToSpace")
def depth_to_space(node: Node) -> Value:
    x, block = node.value(0), int(node.attribute("blocksize"))
    batch, channels, height, width = x.dims
    depth = channels // (block * block)
    if node.attribute("mode", "DCR") == "CRD":
        parts = ops.transpose(ops.reshape(x, [batch, depth, block, block, height, width]), [0, 1, 4, 2, 5, 3])
    else:
        parts = ops.transpose(ops.reshape(x, [batch, block, block, depth, height, width]), [0, 3, 4, 1, 5, 2])
    return ops.reshape(parts, [batch, depth, height * block, width * block])


@operator("ReverseSequence")
def reverse_sequence(node: Node) -> Value:
    """The first ``sequence_lens[b]`` elements of each batch in reverse, the others as they are."""
    x, lengths = node.value(0), cast(node.value(1), "s32")
    batch, time = int(node.attribute("batch_axis", 1)), int(node.attribute("time_axis", 0))
    sizes = [x.dims[time], x.dims[batch]]
    place = numbers(sizes, 0)
    length = ops.broadcast_in_dim(lengths, sizes, [1])
    source = ops.select(place < length, length - 1 - place, place)
    ordered = ops.transpose(x, [time, batch, *(d for d in range(x.rank) if d not in (time, batch))])
    starts = ops.concat_in_dim([expand(source, [2]), expand(numbers(sizes, 1), [2])], 2)
    numbered = ops.GatherDimensionNumbers(range(2, x.rank), [0, 1], [0, 1], 2)
    taken = ops.gather(ordered, starts, numbered, [1, 1, *ordered.dims[2:]])
    back = np.argsort([time, batch, *(d for d in range(x.rank) if d not in (time, batch))])
    return ops.transpose(taken, [int(d) for d in back])


@operator("BitCast")
def bit_cast(node: Node) -> Value:
    x, row = node.value(0), node.dtype("to")
    if x.element_type.kind is Kind.PRED:
        x = cast(x, "u8")
    if row.kind is Kind.PRED:
        return cast(x, "u8").ne(0)
    return ops.bitcast_convert_type(x, row)
