"""ONNX Runtime's operators (``com.microsoft``) whose weights have few bits: products, and rows of a table."""

from __future__ import annotations

import math

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.values import Value
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.operators.contrib import MICROSOFT, spread_row
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.roundings import widened
from hloforge.importers.tensors import cast, fill, lift, reduced, take, total, window

# Up to so many rows, weights are unpacked where they are multiplied; more rows share unpacked ones.
_FEW_ROWS = 1
# The accuracy level by which rows are quantized.
_OF_BYTES = 4


@operator("MatMulNBits", domain=MICROSOFT)
def product_of_bits(node: Node) -> Value:
    """``A @ B.T`` of weights of 2, 4 or 8 bits, a scale and a zero point for each block of a row of B; the first
    weight is in the low bits of a byte.

    The weights of a byte stay apart: the first weights of all bytes of a row, then the second ones. So nothing is
    interleaved, and A's columns are in that order instead.
    """
    x = node.value(0)
    depth, rows = int(node.attribute("K")), int(node.attribute("N"))
    bits, block = int(node.attribute("bits", 4)), int(node.attribute("block_size"))
    blocks, parts = -(-depth // block), 8 // bits
    stored = ops.reshape(node.value(1), [rows, blocks, block // parts])
    scales = cast(ops.reshape(node.value(2), [rows, blocks]), "f32")
    zeros = _zeros_of(node, scales, bits)
    lines = ops.reshape(widened(x), [math.prod(x.dims[:-1]), depth])
    if node.has(4) and not _is_in_order(node, depth, block):
        product = _by_groups(node, lines, stored, scales, zeros)
    elif int(node.attribute("accuracy_level", 0)) == _OF_BYTES and not (node.has(3) and node.row(3).is_float):
        product = _product_of_bytes(lines, stored, scales, zeros, bits)
    else:
        product = product_of_packed(lines, stored, scales, zeros, bits)
    product = ops.reshape(product, [*x.dims[:-1], rows])
    if node.has(5):
        product = product + spread_row(node.value(5), product)
    return cast(product, x.element_type)


def product_of_packed(lines: Value, stored: Value, scales: Value, zeros: Value | float, bits: int) -> Value:
    """``lines @ weights.T``, f32, of weights in blocks with a scale and a zero point each.

    Args:
        lines: ``[lines, depth]``.
        stored: bytes of weights ``[rows, blocks, bytes]``, the first one in the low bits.
        scales: ``[rows, blocks]``; so are zeros, if they are no single number.
    """
    rows, blocks, size = stored.dims
    parts, (count, depth) = 8 // bits, lines.dims
    whole = blocks * size * parts
    if whole > depth:
        lines = ops.concat_in_dim([lines, fill([count, whole - depth], 0.0, "f32")], 1)
    # (lines, blocks, bytes, weights of a byte), and the same with the last ones first.
    apart = ops.reshape(lines, [count, blocks, size, parts])
    weights = [_part(stored, zeros, number, bits) for number in range(parts)]
    if count <= _FEW_ROWS:
        return _fused(apart, weights, scales)
    turned = ops.reshape(ops.transpose(apart, [0, 3, 1, 2]), [count, whole])
    scaled = [each * ops.broadcast_in_dim(scales, each.dims, [0, 1]) for each in weights]
    flat = [ops.reshape(each, [rows, blocks * size]) for each in scaled]
    factor = ops.concat_in_dim(flat, 1) if parts > 1 else flat[0]
    return ops.dot_general(turned, factor, ops.DotDimensionNumbers([1], [1]), "HIGHEST")


def _product_of_bytes(lines: Value, stored: Value, scales: Value, zeros: Value | float, bits: int) -> Value:
    """The same of rows that are quantized to bytes in the weights' blocks, each by its largest number.

    Sums of a block's products are integers. Zero points multiply sums of a row's block, which are integers as well.
    Source: ONNX Runtime, ``sqnbitgemm_kernel_avx512_int8_blklen*.h``.
    """
    rows, blocks, size = stored.dims
    parts, (count, depth) = 8 // bits, lines.dims
    whole = blocks * size * parts
    if whole > depth:
        lines = ops.concat_in_dim([lines, fill([count, whole - depth], 0.0, "f32")], 1)
    x = ops.reshape(lines, [count, blocks, size * parts])
    most = reduced(ops.abs(x), 0.0, ops.max, [2])
    inverse = ops.select(ops.gt(most, 0.0), 127.0 / most, fill(most.dims, 0.0, "f32"))
    codes = ops.round_nearest_even(x * ops.broadcast_in_dim(inverse, x.dims, [0, 1]))
    x = ops.reshape(cast(codes, "s8"), [count, blocks, size, parts])
    sums = total(cast(x, "s32"), [2, 3])
    dims = [blocks, count, rows]
    numbers = ops.DotDimensionNumbers([2], [2], [1], [1])
    found = None if isinstance(zeros, Value) else _over(sums * int(-zeros), dims, 1)
    for number in range(parts):
        own = ops.reshape(window(x, 3, number, number + 1), [count, blocks, size])
        term = ops.dot_general(cast(own, "s32"), cast(_field(stored, number, bits), "s32"), numbers)
        found = term if found is None else found + term
    assert found is not None
    steps = most / 127.0
    product = total(cast(found, "f32") * _over(steps, dims, 1) * _over(scales, dims, 2), [0])
    if isinstance(zeros, Value):
        moved = ops.dot_general(cast(sums, "f32") * steps, zeros * scales, ops.DotDimensionNumbers([1], [1]), "HIGHEST")
        product = product - moved
    return product


def _over(blocks: Value, dims: list[int], dimension: int) -> Value:
    """Numbers ``[rows or columns, blocks]`` over ``[blocks, rows, columns]``."""
    return ops.broadcast_in_dim(ops.transpose(blocks, [1, 0]), dims, [0, dimension])


def _zeros_of(node: Node, scales: Value, bits: int) -> Value | float:
    """What is subtracted from the weights of each block."""
    rows, blocks = scales.dims
    if node.has(3) and node.row(3).is_float:
        return cast(ops.reshape(node.value(3), [rows, blocks]), "f32")
    if not node.has(3):
        return float(1 << bits - 1)
    parts = 8 // bits
    stored = ops.reshape(node.value(3), [rows, -(-blocks // parts)])
    each = [ops.reshape(_bits(stored, number, bits), [*stored.dims, 1]) for number in range(parts)]
    together = ops.concat_in_dim(each, 2) if parts > 1 else each[0]
    return ops.slice(ops.reshape(together, [rows, stored.dims[1] * parts]), [0, 0], [rows, blocks])


def _bits(stored: Value, number: int, bits: int) -> Value:
    """The numbers at one place of each byte, f32."""
    return cast(_field(stored, number, bits), "f32")


def _field(stored: Value, number: int, bits: int) -> Value:
    """The same as bytes."""
    moved = ops.shift_right_logical(stored, number * bits) if number else stored
    return ops.and_(moved, (1 << bits) - 1) if bits < 8 else moved


def _part(stored: Value, zeros: Value | float, number: int, bits: int) -> Value:
    """The weights at one place of each byte, without their scale: ``(rows, blocks, bytes)``."""
    weights = _bits(stored, number, bits)
    if isinstance(zeros, float):
        return weights - zeros
    return weights - ops.broadcast_in_dim(zeros, weights.dims, [0, 1])


def _fused(apart: Value, weights: list[Value], scales: Value) -> Value:
    """The product as one sum, in which each byte is read once for each line."""
    lines, blocks, size, _ = apart.dims
    rows = scales.dims[0]
    dims = [lines, rows, blocks, size]
    found: Value | None = None
    for number, weight in enumerate(weights):
        own = ops.reshape(window(apart, 3, number, number + 1), [lines, blocks, size])
        term = ops.broadcast_in_dim(own, dims, [0, 2, 3]) * ops.broadcast_in_dim(weight, dims, [1, 2, 3])
        found = term if found is None else found + term
    assert found is not None
    # Blocks first: a vector of sums for each row, which is added up once.
    return total(total(found * ops.broadcast_in_dim(scales, dims, [1, 2]), [2]), [2])


def _is_in_order(node: Node, depth: int, block: int) -> bool:
    """Whether the group of each of A's columns (``g_idx``) is that of its block."""
    given = node.tensor(4)
    return isinstance(given, np.ndarray) and bool(np.array_equal(given.reshape(-1)[:depth], np.arange(depth) // block))


def _by_groups(node: Node, lines: Value, stored: Value, scales: Value, zeros: Value | float) -> Value:
    """The product if columns have the scale and the zero point of a group that they name."""
    rows, depth = scales.dims[0], lines.dims[1]
    groups = cast(window(node.value(4), 0, 0, depth), "s32")
    weights = window(unpacked(stored, int(node.attribute("bits", 4)), [rows]), 1, 0, depth)
    weights = weights - (zeros if isinstance(zeros, float) else take(zeros, groups, 1))
    weights = weights * take(scales, groups, 1)
    return ops.dot_general(lines, weights, ops.DotDimensionNumbers([1], [1]), "HIGHEST")


def unpacked(stored: Value, bits: int, dims: list[int]) -> Value:
    """The numbers of bytes, in order, as one more dimension after ``dims``; f32."""
    parts = [ops.reshape(_bits(stored, number, bits), [*stored.dims, 1]) for number in range(8 // bits)]
    together = ops.concat_in_dim(parts, stored.rank) if len(parts) > 1 else parts[0]
    return ops.reshape(together, [*dims, math.prod(together.dims) // math.prod(dims)])


@operator("GatherBlockQuantized", domain=MICROSOFT)
def rows_of_bits(node: Node) -> Value:
    """Rows of a table of integers, of which each block of numbers along an axis has a scale and a zero point."""
    data, places = node.value(0), node.value(1)
    bits, block = int(node.attribute("bits", 4)), int(node.attribute("block_size", 128))
    rank = data.rank
    gather, quantized = int(node.attribute("gather_axis", 0)) % rank, int(node.attribute("quantize_axis", 1)) % rank
    packed = data.element_type.name == "u8" and bits < 8
    taken, scale = take(data, places, gather), take(node.value(2), places, gather)
    zero = take(node.value(3), places, gather) if node.has(3) else None
    if packed:
        taken = unpacked(taken, bits, list(taken.dims[:-1]))
        zero = (
            None
            if zero is None
            else window(unpacked(zero, bits, list(zero.dims[:-1])), zero.rank - 1, 0, scale.dims[-1])
        )
    at = quantized if quantized < gather else quantized + places.rank - 1
    units = cast(taken, "f32") if taken.element_type.is_float else cast(cast(taken, "s32"), "f32")
    if zero is not None:
        zero = cast(cast(zero, "s32"), "f32") if not zero.element_type.is_float else zero
        units = units - repeated(zero, at, block, units)
    elif data.element_type.name == "u8":
        units = units - float(1 << bits - 1)
    return cast(units * repeated(cast(scale, "f32"), at, block, units), scale.element_type)


def repeated(x: Value, axis: int, block: int, like: Value) -> Value:
    """One number a block along an axis, for each element of an array."""
    dims = [*x.dims[: axis + 1], block, *x.dims[axis + 1 :]]
    each = ops.broadcast_in_dim(x, dims, [d if d <= axis else d + 1 for d in range(x.rank)])
    merged = ops.reshape(each, [*x.dims[:axis], x.dims[axis] * block, *x.dims[axis + 1 :]])
    return window(merged, axis, 0, like.dims[axis])


# Source: bitsandbytes, "FP4" and "NF4".
_FP4 = [0.0, 0.005208333, 0.6666667, 1.0, 0.3333333, 0.5, 0.1666667, 0.25]
_NF4 = [
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635),
    *(-0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725),
    *(0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
]


@operator("MatMulBnb4", domain=MICROSOFT)
def product_of_table(node: Node) -> Value:
    """``A @ B.T`` of weights that are numbers of a table of 16, the first one in the high bits of a byte."""
    x = node.value(0)
    depth, rows, block = (int(node.attribute(name)) for name in ("K", "N", "block_size"))
    table = _NF4 if int(node.attribute("quant_type")) else [*_FP4, *(-number for number in _FP4)]
    count = rows * depth
    halves = [ops.shift_right_logical(node.value(1), 4), ops.and_(node.value(1), 15)]
    each = ops.concat_in_dim([ops.reshape(half, [*half.dims, 1]) for half in halves], 1)
    flat = window(ops.reshape(each, [math.prod(each.dims)]), 0, 0, count)
    weights = take(lift(np.array(table, np.float32)), cast(flat, "s32"), 0)
    scales = cast(ops.reshape(node.value(2), [math.prod(node.dims(2))]), "f32")
    weights = ops.reshape(weights * repeated(scales, 0, block, weights), [rows, depth])
    transposed = int(node.attribute("transB", 1))
    lines = ops.reshape(widened(x), [math.prod(x.dims[:-1]), x.dims[-1]])
    product = ops.dot_general(lines, weights, ops.DotDimensionNumbers([1], [1 if transposed else 0]), "HIGHEST")
    return cast(ops.reshape(product, [*x.dims[:-1], product.dims[1]]), x.element_type)
