"""Narrow floats as TransformerEngine's JAX functions make them: scaled, and by rows and columns.

A scaling mode says what a number of 8 bits is multiplied by. Delayed and current scaling have one number, which the
program brings. MXFP8 has a power of two for every 32 numbers of a row (or column), by the greatest of them. Columns of
the former are written transposed, those of MXFP8 as they stand. Numbers too large become the largest.

Source: TransformerEngine ``jax/csrc/extensions/quantization.cpp``, ``jax/quantize/scaling_modes.py``, ``common/cast``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.element_types import element_type
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.idioms import zeros
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.library_products import workspace
from hloforge.pipelines.library_calls.narrowing import largest_size, narrowed
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target

# JAXX_Scaling_Mode.
_NONE, _DELAYED, _BLOCKS, _CURRENT = range(4)
_NARROW_MODES = {4: "NVFP4_1D_SCALING", 5: "NVFP4_2D_SCALING"}
# Numbers that share a power of two.
_BLOCK = 32


@dataclass(frozen=True)
class Quantizing:
    """How a call's result is written: its first five results by rows, by columns, both scales, the greatest size.

    Attributes:
        call: the call.
        mode: the scaling mode.
        axis: the first dimension of what is a row's elements.
        scale: f32 ``[1]``, of the modes with one number.
        greatest: f32, the greatest absolute value until now; none in the first releases, which count from zero.
        is_observed: whether the greatest absolute value is found where nothing is scaled, too.
    """

    call: CustomCall
    mode: int
    axis: int
    scale: Value
    greatest: Value | None
    is_observed: bool = False

    @staticmethod
    def of(call: CustomCall, axis: int, scale: Value, greatest: Value | None) -> Quantizing:
        """Read a call's mode. Which of rows and columns there are, the results' sizes say."""
        for name in ("quantize_layout", "quantize_layout_enum", "q_layout", "is_2x"):
            call.setting(name, 0)
        mode = int(call.setting("scaling_mode", _NONE))
        if mode not in (_NONE, _DELAYED, _BLOCKS, _CURRENT):
            raise UnsupportedError(
                f"@{call.target} has the scaling mode {_NARROW_MODES.get(mode, mode)}; known are floats of 8 bits "
                "with one scale (1, 3) or one for each block (2)"
            )
        is_observed = bool(call.setting("output_amax_when_no_scaling", False))
        return Quantizing(call, mode, axis, scale, greatest, is_observed)

    def results(self, value: Value) -> list[Value]:
        """The five results for an f32 array."""
        greatest = self.call.shapes[4]
        found = self._by_blocks(value) if self.mode == _BLOCKS else self._by_one_scale(value)
        is_found = self.mode in (_DELAYED, _CURRENT) or self.is_observed
        return [*found, self._greatest(value, greatest) if is_found else self._kept(greatest)]

    def _by_one_scale(self, value: Value) -> list[Value]:
        rows, columns, scales, column_scales = self.call.shapes[:4]
        scale = None if self.mode == _NONE else one_scale(self.scale)
        narrow = narrowed(value, rows.element, scale)
        inverse = None if scale is None else constant(1, "f32") / scale
        if self.mode == _NONE and _holds(columns, value) and value.shape.element_count > 1:
            raise UnsupportedError(f"@{self.call.target} without a scale has a result by columns")
        by_columns = narrowed(value, columns.element, scale) if _holds(columns, value) else None
        return [
            ops.reshape(narrow, rows.dimensions) if _holds(rows, value) else _blank(rows),
            _blank(columns) if by_columns is None else transposed(by_columns, self.axis, columns.dimensions),
            _blank(scales) if inverse is None else _in_first(inverse, scales),
            _blank(column_scales) if inverse is None else _in_first(inverse, column_scales),
        ]

    def _by_blocks(self, value: Value) -> list[Value]:
        rows, columns, scales, column_scales = self.call.shapes[:4]
        found: list[Value] = []
        powers: list[Value] = []
        for dimension, data, shape in ((1, rows, scales), (0, columns, column_scales)):
            if not _holds(data, value):
                found.append(_blank(data))
                powers.append(_blank(shape))
                continue
            narrow, power = by_blocks(self._matrix(value), dimension, data.element)
            found.append(ops.reshape(narrow, data.dimensions))
            powers.append(_padded(power, self.axis, shape))
        return [*found, *powers]

    def _matrix(self, value: Value) -> Value:
        return ops.reshape(value, [prod(value.dims[: self.axis]), prod(value.dims[self.axis :])])

    def _greatest(self, value: Value, shape: Shape) -> Value:
        found = largest_size(value)
        before = None if self.greatest is None else one_scale(self.greatest)
        if before is not None:
            found = ops.max(found, before)
        return _in_first(found, shape)

    def _kept(self, shape: Shape) -> Value:
        return _blank(shape) if self.greatest is None else ops.reshape(self.greatest, shape.dimensions)


def by_blocks(matrix: Value, dimension: int, element: Any) -> tuple[Value, Value]:
    """MXFP8: the numbers of an f32 matrix, and u8 exponents of the powers of two that they are to be multiplied by."""
    rows, columns = matrix.dims
    dims = [rows, columns // _BLOCK, _BLOCK] if dimension else [rows // _BLOCK, _BLOCK, columns]
    blocks = ops.reshape(matrix, dims)
    axis = 2 if dimension else 1
    kept = [d for d in range(3) if d != axis]
    sizes = ops.reduce(ops.abs(blocks), constant(0, "f32"), ops.max, [axis])
    # The reciprocal is rounded to f32, as in the kernels.
    inverse = np.float32(1) / np.float32(ml_dtypes.finfo(element_type(element).dtype).max)
    exponents = _exponents(sizes * full(sizes, float(inverse)))
    bits = ops.convert_element_type(exponents, "u32")
    # 254 - e as an exponent is the reciprocal, but for e = 254, of which it is subnormal, and 255, which means NaN.
    shifted = ops.shift_left(full(bits, 254) - ops.min(bits, full(bits, 254)), full(bits, 23))
    shifted = ops.select(ops.eq(bits, full(bits, 254)), full(bits, 0x00400000), shifted)
    shifted = ops.select(ops.eq(bits, full(bits, 255)), full(bits, 0x7FC00000), shifted)
    factor = ops.bitcast_convert_type(shifted, "f32")
    scaled = blocks * ops.broadcast_in_dim(factor, blocks.dims, kept)
    return ops.reshape(narrowed(scaled, element), matrix.dims), exponents


def _exponents(sizes: Value) -> Value:
    """u8: the biased exponents of the least powers of two that are not smaller, of finite numbers."""
    bits = ops.bitcast_convert_type(sizes, "u32")
    exponent, mantissa = ops.shift_right_logical(bits, full(bits, 23)), bits & full(bits, 0x7FFFFF)
    is_least = ops.eq(exponent, full(bits, 0)) & (mantissa <= full(bits, 0x400000))
    rounds_up = (mantissa > full(bits, 0)) & (exponent < full(bits, 254)) & ops.logical_not(is_least)
    rounded = ops.select(rounds_up, exponent + full(bits, 1), exponent)
    rounded = ops.select(ops.eq(bits, full(bits, 0x7F800000)), full(bits, 254), rounded)
    return ops.convert_element_type(rounded, "u8")


def transposed(value: Value, axis: int, dims: tuple[int, ...]) -> Value:
    """The matrix of the dimensions before ``axis`` and the others, transposed."""
    matrix = ops.reshape(value, [prod(value.dims[:axis]), prod(value.dims[axis:])])
    return ops.reshape(ops.transpose(matrix, [1, 0]), dims)


def column_sums(value: Value, axis: int, shape: Shape) -> Value:
    """An f32 array summed along the dimensions before ``axis``."""
    total = ops.reduce(value, constant(0, "f32"), ops.add, range(axis))
    return ops.reshape(ops.convert_element_type(total, shape.element), shape.dimensions)


def wide(value: Value) -> Value:
    """The array in f32."""
    return ops.convert_element_type(value, "f32")


def _holds(shape: Shape, value: Value) -> bool:
    return shape.element_count == value.shape.element_count


def _blank(shape: Shape) -> Value:
    """What nobody reads."""
    return zeros(element_type(shape.element), shape.dimensions)


def _in_first(scalar: Value, shape: Shape) -> Value:
    """A result that holds one number, or nothing."""
    return ops.broadcast(ops.convert_element_type(scalar, shape.element), shape.dimensions)


def _padded(powers: Value, axis: int, shape: Shape) -> Value:
    """Exponents as a result of powers of two, whose rows and columns are filled up with zeros."""
    dims = prod(shape.dimensions[:axis]), prod(shape.dimensions[axis:])
    more = [(0, size - have, 0) for size, have in zip(dims, powers.dims, strict=True)]
    filled = ops.pad(powers, constant(0, "u8"), more)
    typed = filled if element_type(shape.element).name == "u8" else ops.bitcast_convert_type(filled, shape.element)
    return ops.reshape(typed, shape.dimensions)


@custom_call_target("te_dbias_quantize_ffi")
def quantize(call: CustomCall) -> list[Value]:
    """x, scale, [greatest, ...] -> the five results, the sums of columns, a workspace."""
    if call.setting("stochastic_rounding", False) or call.setting("use_rht", False):
        raise UnsupportedError(
            f"@{call.target} rounds at random or turns its numbers, which only floats of 4 bits need"
        )
    x, scale, *others = call.operands
    axis = int(call.setting("flatten_axis", -1)) % x.rank
    read = Quantizing.of(call, axis, scale, others[0] if others else None)
    results = read.results(wide(x))
    shapes = call.shapes[5:]
    if call.setting("is_dbias", False):
        results.append(column_sums(wide(x), axis, shapes[0]))
        shapes = shapes[1:]
    return [*results, *workspace(shapes)]


@custom_call_target("te_dequantize_ffi")
def dequantize(call: CustomCall) -> list[Value]:
    """x, greatest, scale, its inverse -> x times the inverse."""
    x, _, _, inverse = call.operands
    (shape,) = call.shapes
    factor = ops.reshape(inverse, [1])[0]
    found = wide(x) * ops.broadcast(wide(factor), x.dims)
    return [ops.reshape(ops.convert_element_type(found, shape.element), shape.dimensions)]


@custom_call_target("te_quantize_ffi")
def quantize_rows(call: CustomCall) -> list[Value]:
    """x, greatest, scale, its inverse -> x by rows, the greatest size."""
    return of_release_2_0(call, wide(call.operands[0]), call.operands[1:], 1, "r")


@custom_call_target("te_cast_transpose_ffi")
def quantize_both(call: CustomCall) -> list[Value]:
    """x, greatest, scale, its inverse -> x by rows and by columns, the greatest size."""
    return of_release_2_0(call, wide(call.operands[0]), call.operands[1:], _transpose_axis(call), "rc")


@custom_call_target("te_dbias_cast_transpose_ffi")
def quantize_both_and_sum(call: CustomCall) -> list[Value]:
    """The same, with the sums of columns before the greatest size, and a workspace."""
    return of_release_2_0(call, wide(call.operands[0]), call.operands[1:], _transpose_axis(call), "rcs")


@custom_call_target("te_transpose_ffi")
def transpose(call: CustomCall) -> list[Value]:
    """x -> the matrix of the dimensions before an axis and the others, transposed."""
    return [transposed(call.operands[0], _transpose_axis(call), call.shapes[0].dimensions)]


def _transpose_axis(call: CustomCall) -> int:
    return int(call.setting("transpose_axis", -1)) % call.operands[0].rank


def of_release_2_0(call: CustomCall, value: Value, state: tuple[Value, ...], axis: int, parts: str) -> list[Value]:
    """The results of calls before release 2.3, in the order of ``parts``: by rows, by columns, sums.

    Args:
        value: f32.
        state: the greatest size until now, the scale, its inverse.
    """
    greatest, scale, _ = state
    shapes = call.shapes
    results = []
    for part, shape in zip(parts, shapes, strict=False):
        if part == "s":
            results.append(column_sums(value, axis, shape))
            continue
        narrow = narrowed(value, shape.element, one_scale(scale))
        results.append(
            transposed(narrow, axis, shape.dimensions) if part == "c" else ops.reshape(narrow, shape.dimensions)
        )
    results.append(observed(value, greatest, shapes[0], shapes[len(parts)]))
    return [*results, *workspace(shapes[len(results) :])]


def one_scale(scale: Value) -> Value | None:
    """The number that an array holds, if it holds one."""
    return ops.reshape(scale, [prod(scale.dims)])[0] if prod(scale.dims) else None


def observed(value: Value, greatest: Value, rows: Shape, shape: Shape) -> Value:
    """The greatest size until now and of an f32 array, where that is rounded to 8 bits."""
    if element_type(rows.element).bits > 8:
        return ops.reshape(greatest, shape.dimensions)
    before = one_scale(greatest)
    found = largest_size(value)
    return _in_first(found if before is None else ops.max(found, before), shape)
