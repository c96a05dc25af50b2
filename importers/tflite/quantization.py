"""Quantized values: stored integers and the numbers that they represent.

Rescaled sums are ``round(f32(sum) * f32(scale))`` with ties to even, as in XNNPACK, which TFLite's interpreter runs by
default; its own kernels multiply in fixed point, which differs by one quantum where a product is near a tie.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.element_types import ElementType
from hloforge.dialect.values import Value
from hloforge.importers.tensors import along, broadcast_to, cast, fill, highest, lift, lowest
from hloforge.importers.tflite.load import Array, Quantization


def per_place(numbers: Array, axis: int, dims: Any) -> Value:
    """One number for all elements, or one for each position along an axis, in the shape ``dims``."""
    if numbers.size == 1:
        return fill(dims, numbers.reshape(()), numbers.dtype)
    return broadcast_to(along(lift(numbers), axis, len(dims)), dims)


def dequantized(stored: Value, quantization: Quantization) -> Value:
    """The numbers in f32."""
    wide = cast(stored, "s32")
    if quantization.zero_point.any():
        wide = wide - per_place(quantization.zero_point.astype(np.int32), quantization.axis, stored.dims)
    return cast(wide, "f32") * per_place(quantization.scale, quantization.axis, stored.dims)


def quantized(numbers: Value, quantization: Quantization, row: ElementType) -> Value:
    """The stored integers for numbers, as near as they come."""
    scale = per_place(quantization.scale, quantization.axis, numbers.dims)
    return stored(cast(numbers, "f32") / scale, quantization, row)


def stored(units: Value, quantization: Quantization, row: ElementType) -> Value:
    """Numbers in units of the scale, as integers: rounded, moved by the zero point, and clamped to the type."""
    zero = per_place(quantization.zero_point.astype(np.float32), quantization.axis, units.dims)
    whole = ops.round_nearest_even(units) + zero
    low, high = (fill(units.dims, float(bound), "f32") for bound in (lowest(row), highest(row)))
    bounded = ops.clamp(low, ops.select(whole.ne(whole), zero, whole), high)
    return cast(cast(bounded, "s32"), row)
