"""Quantized arrays: quantization, dequantization, and products of quantized arrays."""

from __future__ import annotations

from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.element_types import ElementType, element_type
from hloforge.dialect.values import Value
from hloforge.importers.onnx.graph import Outputs
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.operators.convolution import convolve
from hloforge.importers.onnx.operators.elementwise import to_narrow_float
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.window_attributes import windows_of
from hloforge.importers.tensors import along, axis_of, broadcast_to, cast, greatest, highest, least, lowest, matmul

_U8 = element_type("u8")


def _per_element(scale: Value, x: Value, axis: int, block: int) -> Value:
    """A scale (or zero point) for each element: of all, of a position along an axis, or of a block along it."""
    if scale.rank <= 1:
        count = scale.dims[0] if scale.rank else 1
        if count == 1:
            return broadcast_to(ops.reshape(scale, []), x.dims)
        return broadcast_to(along(scale, axis_of(axis, x.rank), x.rank), x.dims)
    at = axis_of(axis, x.rank)
    wide = [*scale.dims[: at + 1], block, *scale.dims[at + 1 :]]
    spread = ops.broadcast_in_dim(scale, wide, [d if d <= at else d + 1 for d in range(scale.rank)])
    merged = ops.reshape(spread, [*scale.dims[:at], scale.dims[at] * block, *scale.dims[at + 1 :]])
    return ops.slice(merged, [0] * x.rank, list(x.dims)) if merged.dims != x.dims else merged


@operator("QuantizeLinear")
def quantize_linear(node: Node) -> Value:
    """``round(x / scale) + zero point``, as near as the type comes."""
    x, scale = node.value(0), node.value(1)
    axis, block = int(node.attribute("axis", 1)), int(node.attribute("block_size", 0))
    row = node.row(2) if node.has(2) else node.dtype("output_dtype", "u8")
    wide = _wide(scale.element_type)
    ratio = cast(x, wide) / _per_element(cast(scale, wide), x, axis, block)
    if row.is_float:
        return to_narrow_float(ratio, row, saturate=bool(node.attribute("saturate", 1)))
    zero = _per_element(cast(node.value(2), wide), x, axis, block) if node.has(2) else full(ratio, 0)
    return stored(ops.round_nearest_even(ratio) + zero, row)


def _wide(row: ElementType) -> Any:
    return "f64" if row.name == "f64" else "f32"


def stored(numbers: Value, row: ElementType) -> Value:
    """Whole floats as integers of a type, of which the nearest represents those out of range."""
    bounds = (full(numbers, float(bound)) for bound in (lowest(row), highest(row)))
    return cast(cast(ops.clamp(next(bounds), numbers, next(bounds)), "s32"), row)


@operator("DequantizeLinear")
def dequantize_linear(node: Node) -> Value:
    """``(x - zero point) * scale``."""
    x, scale = node.value(0), node.value(1)
    axis, block = int(node.attribute("axis", 1)), int(node.attribute("block_size", 0))
    row = node.dtype("output_dtype", scale.element_type)
    wide = _wide(scale.element_type)
    if node.has(2) and not x.element_type.is_float:
        # The difference of two integers of 32 bits takes 33.
        whole = "s64" if x.element_type.bits > 16 else "s32"
        zero = _per_element(cast(cast(node.value(2), "s32"), whole), x, axis, block)
        centered = cast(cast(cast(x, "s32"), whole) - zero, wide)
    else:
        centered = cast(x, wide)
    return cast(centered * _per_element(cast(scale, wide), x, axis, block), row)


def _centered(node: Node, number: int, zero: int, axis: int) -> Value:
    """An operand of integers less its zero point, in s32."""
    x = cast(node.value(number), "s32")
    if not node.has(zero):
        return x
    point = cast(node.value(zero), "s32")
    if point.rank == 1 and point.dims[0] > 1:
        point = along(point, axis_of(axis, x.rank), x.rank)
    elif point.rank <= 1:
        point = ops.reshape(point, [])
    return x - broadcast_to(point, x.dims)


@operator("MatMulInteger")
def product_of_integers(node: Node) -> Value:
    return matmul(_centered(node, 0, 2, -2), _centered(node, 1, 3, -1))


@operator("QLinearMatMul")
def quantized_product(node: Node) -> Value:
    product = matmul(_centered(node, 0, 2, -2), _centered(node, 3, 5, -1))
    return _requantized(node, product, (1, -2), (4, -1), (6, 7))


def _requantized(node: Node, sums: Value, lhs: tuple[int, int], rhs: tuple[int, int], out: tuple[int, int]) -> Value:
    """s32 sums on the scale of the result; ``lhs``, ``rhs``: the number of a scale, and the axis that it goes along."""
    factor = cast(sums, "f32")
    for number, axis in (lhs, rhs):
        factor = factor * _per_element(cast(node.value(number), "f32"), sums, axis, 0)
    ratio = factor / _per_element(cast(node.value(out[0]), "f32"), sums, -1, 0)
    row = node.row(out[1])
    zero = _per_element(cast(node.value(out[1]), "f32"), sums, -1, 0)
    return stored(ops.round_nearest_even(ratio) + zero, row)


@operator("QLinearConv")
def quantized_convolution(node: Node) -> Value:
    x, kernel = _centered(node, 0, 2, -1), _centered(node, 3, 5, 0)
    window = windows_of(node, x.dims[2:], kernel.dims[2:])
    sums = convolve(x, kernel, window.strides, window.pads, window.dilations, int(node.attribute("group", 1)))
    if node.has(8):
        sums = sums + broadcast_to(along(node.value(8), 1, sums.rank), sums.dims)
    return _requantized(node, sums, (1, -1), (4, 1), (6, 7))


def by_range(x: Value) -> tuple[Value, Value]:
    """Scale and zero point, both as floats, at which all elements and zero lie in u8; 1 and 0 of zeros alone."""
    axes = list(range(x.rank))
    high, low = ops.max(greatest(x, axes), 0.0), ops.min(least(x, axes), 0.0)
    scale = (high - low) / 255.0
    scale = ops.select(scale.eq(0.0), full(scale, 1.0), scale)
    return scale, ops.round_nearest_even(ops.clamp(0.0, -low / scale, 255.0))


@operator("DynamicQuantizeLinear")
def quantize_by_range(node: Node) -> Any:
    """To u8, with the scale at which zero and all elements find their place."""
    x = node.value(0)
    scale, zero = by_range(x)
    spread = [broadcast_to(part, x.dims) for part in (scale, zero)]
    units = stored(ops.round_nearest_even(x / spread[0]) + spread[1], _U8)
    return Outputs([units, scale, cast(cast(zero, "s32"), _U8)])
