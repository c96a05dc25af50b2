"""Shape operators: reshaping, joining, splitting, padding, tiling; space to depth and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.errors import ImporterError
from hloforge.dialect.values import Value
from hloforge.importers.tensors import Array, axis_of, expand, fill, lift, pieces, take, window
from hloforge.importers.tflite.activations import activated
from hloforge.importers.tflite.graph import Outputs
from hloforge.importers.tflite.node import Node
from hloforge.importers.tflite.registry import operator
from hloforge.importers.tflite.slices import strided_places, whole_or_single


@operator("RESHAPE")
def reshape(node: Node) -> Value:
    """-1 takes what is left."""
    x = node.value(0)
    target = node.integers(1) if node.has(1) else node.listed("NewShape")
    if -1 in target:
        rest = math.prod(extent for extent in target if extent != -1)
        target[target.index(-1)] = math.prod(x.dims) // rest if rest else 0
    return ops.reshape(x, target)


@operator("EXPAND_DIMS")
def expand_dims(node: Node) -> Value:
    return expand(node.value(0), node.integers(1))


@operator("SQUEEZE")
def squeeze(node: Node) -> Value:
    x = node.value(0)
    given = node.listed("SqueezeDims")
    gone = [axis_of(axis, x.rank) for axis in given] if given else [d for d in range(x.rank) if x.dims[d] == 1]
    return ops.reshape(x, [extent for d, extent in enumerate(x.dims) if d not in gone])


@operator("TRANSPOSE")
def transpose(node: Node) -> Value:
    x = node.value(0)
    return ops.transpose(x, [axis_of(axis, x.rank) for axis in node.integers(1)])


@operator("CONCATENATION")
def concatenate(node: Node) -> Value:
    parts = [node.aligned(number) for number in range(node.count)]
    axis = axis_of(node.option("Axis"), parts[0].rank)
    joined = ops.concat_in_dim(parts, axis) if len(parts) > 1 else parts[0]
    return activated(node, joined) if joined.element_type.is_float else joined


@operator("PACK")
def pack(node: Node) -> Value:
    parts = [node.aligned(number) for number in range(node.count)]
    axis = axis_of(node.option("Axis"), parts[0].rank + 1)
    wide = [expand(part, [axis]) for part in parts]
    return ops.concat_in_dim(wide, axis) if len(wide) > 1 else wide[0]


@operator("UNPACK")
def unpack(node: Node) -> Any:
    x = node.value(0)
    axis = axis_of(node.option("Axis"), x.rank)
    rest = [extent for d, extent in enumerate(x.dims) if d != axis]
    return Outputs([ops.reshape(part, rest) for part in pieces(x, axis, [1] * x.dims[axis])])


@operator("SPLIT")
def split(node: Node) -> Any:
    x = node.value(1)
    axis, count = node.axis(0, x.rank), len(node.operator.outputs)
    return Outputs(pieces(x, axis, [x.dims[axis] // count] * count))


@operator("SPLIT_V")
def split_by_sizes(node: Node) -> Any:
    x, sizes = node.value(0), node.integers(1)
    axis = node.axis(2, x.rank)
    rest = x.dims[axis] - sum(size for size in sizes if size >= 0)
    return Outputs(pieces(x, axis, [size if size >= 0 else rest for size in sizes]))


@operator("SLICE")
def slice_(node: Node) -> Value:
    """Sizes of -1 reach to the end; starts may come with the call."""
    x, sizes = node.value(0), node.integers(2)
    starts = node.constant(1)
    if starts is None and -1 not in sizes:
        vector = node.value(1)
        return ops.dynamic_slice(x, [ops.reshape(window(vector, 0, d, d + 1), []) for d in range(x.rank)], sizes)
    begin = node.integers(1)
    ends = [x.dims[d] if sizes[d] < 0 else begin[d] + sizes[d] for d in range(x.rank)]
    return ops.slice(x, begin, ends)


@operator("STRIDED_SLICE")
def strided_slice(node: Node) -> Value:
    x = node.value(0)
    if node.constant(1) is None and (places := whole_or_single(node, x.rank)) is not None:
        return _elements_at(node, x, places)
    return indexed(x, strided_places(node, x.dims, *(node.integers(number) for number in (1, 2, 3))))


def _elements_at(node: Node, x: Value, single: tuple[bool, ...]) -> Value:
    """The elements at computed positions of some axes, which vanish; negative positions count from the end."""
    begin = node.value(1)
    starts, sizes = list[Any](), list[int]()
    for axis, extent in enumerate(x.dims):
        if axis < len(single) and single[axis]:
            start = ops.reshape(window(begin, 0, axis, axis + 1), [])
            starts.append(ops.select(start < 0, start + extent, start))
            sizes.append(1)
        else:
            starts.append(fill([], 0, begin.element_type))
            sizes.append(extent)
    kept = [extent for axis, extent in enumerate(x.dims) if not (axis < len(single) and single[axis])]
    return ops.reshape(ops.dynamic_slice(x, starts, sizes), kept)


def indexed(x: Value, places: tuple[Any, ...]) -> Value:
    """numpy's basic indexing by slices, numbers, None and an ellipsis."""
    used = sum(place is not None and place is not Ellipsis for place in places)
    full = [slice(None)] * (x.rank - used)
    at = places.index(Ellipsis) if Ellipsis in places else len(places)
    places = (*places[:at], *full, *places[at + 1 :])
    axis, dims = 0, list[int]()
    for place in places:
        if place is None:
            dims.append(1)
            continue
        if isinstance(place, slice):
            x = _sliced(x, axis, place)
            dims.append(x.dims[axis])
        else:
            start = axis_of(place, x.dims[axis])
            x = window(x, axis, start, start + 1)
        axis += 1
    return ops.reshape(x, dims)


def _sliced(x: Value, axis: int, place: slice) -> Value:
    begin, stop, stride = place.indices(x.dims[axis])
    if stride > 0:
        return window(x, axis, begin, max(begin, stop), stride)
    # The places, ascending, and then in reverse.
    count = len(range(begin, stop, stride))
    last = begin + (count - 1) * stride
    return ops.rev(window(x, axis, last, begin + 1, -stride), [axis]) if count else window(x, axis, 0, 0)


@operator("DYNAMIC_UPDATE_SLICE")
def update_slice(node: Node) -> Value:
    x, update, starts = node.value(0), node.value(1), node.value(2)
    return ops.dynamic_update_slice(x, update, [ops.reshape(window(starts, 0, d, d + 1), []) for d in range(x.rank)])


@operator("PAD", "PADV2")
def pad(node: Node) -> Value:
    """With zeros, whose stored form is the zero point, or with a given number."""
    x = node.aligned(0)
    widths = node.known(1).reshape(-1, 2)
    if node.has(2):
        filler = ops.reshape(node.aligned(2), [])
    else:
        quantization = node.result().quantization
        zero = int(quantization.zero_point[0]) if quantization and not x.element_type.is_float else 0
        filler = fill([], zero, x.element_type)
    return ops.pad(x, filler, [(int(low), int(high), 0) for low, high in widths])


@operator("MIRROR_PAD")
def mirror_pad(node: Node) -> Value:
    x = node.value(0)
    mode: Any = "symmetric" if node.option("Mode") else "reflect"
    for axis, (low, high) in enumerate(node.known(1).reshape(-1, 2)):
        if low or high:
            places = np.pad(np.arange(x.dims[axis], dtype=np.int32), (int(low), int(high)), mode=mode)
            x = take(x, lift(places), axis)
    return x


@operator("TILE")
def tile(node: Node) -> Value:
    x, repeats = node.value(0), node.integers(1)
    inner = [part for count, extent in zip(repeats, x.dims, strict=True) for part in (count, extent)]
    spread = ops.broadcast_in_dim(x, inner, [2 * d + 1 for d in range(x.rank)])
    return ops.reshape(spread, [count * extent for count, extent in zip(repeats, x.dims, strict=True)])


@operator("REVERSE_V2")
def reverse(node: Node) -> Value:
    x = node.value(0)
    return ops.rev(x, [axis_of(axis, x.rank) for axis in node.integers(1)])


@operator("DILATE")
def dilate(node: Node) -> Value:
    """Holes between the elements, filled with a number."""
    x = node.value(0)
    return ops.pad(x, ops.reshape(node.value(2), []), [(0, 0, step - 1) for step in node.integers(1)])


@operator("SPACE_TO_DEPTH")
def space_to_depth(node: Node) -> Value:
    x, block = node.value(0), int(node.option("BlockSize"))
    batch, height, width, channels = x.dims
    parts = ops.reshape(x, [batch, height // block, block, width // block, block, channels])
    return ops.reshape(
        ops.transpose(parts, [0, 1, 3, 2, 4, 5]), [batch, height // block, width // block, channels * block * block]
    )


@operator("DEPTH_TO_SPACE")
def depth_to_space(node: Node) -> Value:
    x, block = node.value(0), int(node.option("BlockSize"))
    batch, height, width, channels = x.dims
    depth = channels // (block * block)
    parts = ops.reshape(x, [batch, height, width, block, block, depth])
    return ops.reshape(ops.transpose(parts, [0, 1, 3, 2, 4, 5]), [batch, height * block, width * block, depth])


def _blocks(node: Node, rank: int) -> tuple[list[int], Array]:
    blocks, edges = node.integers(1), node.known(2).reshape(-1, 2)
    if len(blocks) != len(edges) or len(blocks) >= rank:
        raise ImporterError(f"{len(blocks)} block sizes and {len(edges)} edges for {rank} dimensions")
    return blocks, edges


@operator("SPACE_TO_BATCH_ND")
def space_to_batch(node: Node) -> Value:
    x = node.value(0)
    blocks, edges = _blocks(node, x.rank)
    count = len(blocks)
    quantization = node.result().quantization
    zero = int(quantization.zero_point[0]) if quantization and not x.element_type.is_float else 0
    around = [(0, 0, 0), *((int(a), int(b), 0) for a, b in edges), *[(0, 0, 0)] * (x.rank - 1 - count)]
    x = ops.pad(x, fill([], zero, x.element_type), around)
    split_ = [part for d, block in enumerate(blocks) for part in (x.dims[1 + d] // block, block)]
    parts = ops.reshape(x, [x.dims[0], *split_, *x.dims[1 + count :]])
    order = [*(2 + 2 * d for d in range(count)), 0, *(1 + 2 * d for d in range(count))]
    moved = ops.transpose(parts, [*order, *range(1 + 2 * count, parts.rank)])
    spatial = [x.dims[1 + d] // block for d, block in enumerate(blocks)]
    return ops.reshape(moved, [x.dims[0] * math.prod(blocks), *spatial, *x.dims[1 + count :]])


@operator("BATCH_TO_SPACE_ND")
def batch_to_space(node: Node) -> Value:
    x = node.value(0)
    blocks, edges = _blocks(node, x.rank)
    count = len(blocks)
    batch = x.dims[0] // math.prod(blocks)
    parts = ops.reshape(x, [*blocks, batch, *x.dims[1:]])
    mixed = [axis for d in range(count) for axis in (count + 1 + d, d)]
    moved = ops.transpose(parts, [count, *mixed, *range(2 * count + 1, parts.rank)])
    whole = ops.reshape(moved, [batch, *(x.dims[1 + d] * blocks[d] for d in range(count)), *x.dims[1 + count :]])
    starts = [0, *(int(low) for low, _ in edges), *[0] * (x.rank - 1 - count)]
    ends = [whole.dims[0], *(whole.dims[1 + d] - int(edges[d][1]) for d in range(count)), *whole.dims[1 + count :]]
    return ops.slice(whole, starts, ends)


@operator("MATRIX_DIAG")
def matrix_diag(node: Node) -> Value:
    x = node.value(0)
    size = x.dims[-1]
    return _with_diagonal(fill([*x.dims, size], 0, x.element_type), x)


@operator("MATRIX_SET_DIAG")
def matrix_set_diag(node: Node) -> Value:
    return _with_diagonal(node.value(0), node.value(1))


def _with_diagonal(matrix: Value, diagonal: Value) -> Value:
    last = matrix.rank - 1
    rows, columns = (ops.iota("s32", matrix.dims, axis) for axis in (last - 1, last))
    room = matrix.dims[last] - diagonal.dims[-1]
    wide = ops.pad(diagonal, fill([], 0, diagonal.element_type), [(0, 0, 0)] * (diagonal.rank - 1) + [(0, room, 0)])
    spread = ops.broadcast_in_dim(wide, matrix.dims, [*range(last - 1), last])
    return ops.select(rows.eq(columns), spread, matrix)
