"""``decompose-dynamic-windows``: windows over arrays of sizes known only at a call.

Before::

    %r = "stablehlo.reduce_window"(%x, %zero) ({ add }) {window [1, 3], padding [[0, 0], [1, 1]]} : (tensor<?x?xf32> ...

After::

    %p = stablehlo.dynamic_pad %x, %zero, ...
    %w = "stablehlo.dynamic_gather"(%p, %places, %window) ...          // the windows, one after the other
    %r = stablehlo.reduce(%w init: %zero) applies stablehlo.add across dimensions = [2, 3]

A convolution of dynamic padding is a pad and a convolution without. Running sums and the like, whose window is the
whole dimension, take a logarithmic number of steps instead of a quadratic number of elements:
``x[i] += x[i - 1]; x[i] += x[i - 2]; x[i] += x[i - 4]; ...``.
Source: StableHLO spec "reduce_window", "dynamic_conv"; Hillis and Steele, "Data parallel algorithms" (1986).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.computations import fill_region
from hloforge.dialect.constants import constant, full, sizes_of, spread
from hloforge.dialect.emission import create, emit, i64, i64s
from hloforge.dialect.mlir import AnyOp, SSAValue, ir, stablehlo
from hloforge.dialect.operations import integers, string_attribute
from hloforge.dialect.regions import inline_region, is_elementwise, vectorize_region
from hloforge.dialect.values import Value
from hloforge.pipelines.dynamic.dynamic_calls import REDUCE_WINDOW, called_region
from hloforge.pipelines.dynamic.size_symbols import Symbol, element, size_of
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, apply_patterns, pattern

_OPEN = ir.ShapedType.get_dynamic_size()


@pattern("stablehlo.dynamic_conv")
def padded_by_values(op: ir.Operation) -> Replacement:
    """dynamic_conv -> dynamic_pad and convolution."""
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    places = list(numbers.input_spatial_dimensions)
    return _on_padded(op, places, *_columns(ops.convert_element_type(Value(op.operands[2]), "s32")))


@pattern("stablehlo.convolution")
def padded_by_numbers(op: ir.Operation) -> Replacement:
    """convolution of dynamic space with padding or holes in its image -> pad and convolution without."""
    if all(value.type.has_static_shape for value in op.operands):
        return NoMatch("static")
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    places = list(numbers.input_spatial_dimensions)
    pads = _padding(op, len(places))
    if not any(op.operands[0].type.is_dynamic_dim(d) for d in places):
        return NoMatch("static space")
    if not pads.any() and all(step == 1 for step in integers(op, "lhs_dilation") or [1]):
        return NoMatch("no padding")
    return _on_padded(op, places, constant(pads[:, 0].tolist(), "s32"), constant(pads[:, 1].tolist(), "s32"))


def _on_padded(op: AnyOp, places: Sequence[int], low: Value, high: Value) -> Value:
    image = Value(op.operands[0])
    dilation = integers(op, "lhs_dilation") or [1] * len(places)
    holes = [0] * image.rank
    for d, step in zip(places, dilation, strict=True):
        holes[d] = step - 1
    padded = _dynamic_pad(
        image,
        constant(0, image.element_type),
        _at_dimensions(low, places, image.rank),
        _at_dimensions(high, places, image.rank),
        constant(holes, "s32"),
    )
    dropped = ("padding", "lhs_dilation")
    attributes = {name: op.attributes[name] for name in op.attributes if name not in dropped}
    return emit("stablehlo.convolution", [padded, Value(op.operands[1])], op.results[0].type, **attributes)


def _at_dimensions(numbers: Value, places: Sequence[int], rank: int) -> Value:
    """A number for every dimension: one of ``numbers`` for those of ``places``, else 0."""
    zero = constant([0], "s32")
    parts = [zero] * rank
    for number, d in enumerate(places):
        parts[d] = ops.slice(numbers, [number], [number + 1], [1])
    return ops.concat_in_dim(parts, 0)


def _padding(op: Any, count: int) -> np.ndarray[Any, Any]:
    if "padding" not in op.attributes:
        return np.zeros((count, 2), np.int64)
    return np.array([int(number) for number in op.attributes["padding"]], np.int64).reshape(count, 2)


def _dynamic_pad(operand: Value, fill: Value, low: Value, high: Value, interior: Value) -> Value:
    type_ = ir.RankedTensorType.get([_OPEN] * operand.rank, operand.type.element_type)
    return emit("stablehlo.dynamic_pad", [operand, fill, low, high, interior], type_)


@dataclass(frozen=True)
class Windows:
    """How windows lie in an array: vectors of s32, one number a dimension."""

    sizes: Value
    strides: Value
    base_dilations: Value
    dilations: Value
    low: Value
    high: Value


@pattern("stablehlo.reduce_window")
def reduced_by_numbers(op: ir.Operation) -> Replacement:
    """reduce_window of dynamic arrays -> pad, gather and reduce."""
    if all(value.type.has_static_shape for value in op.operands):
        return NoMatch("static")
    rank = op.operands[0].type.rank
    ones = [1] * rank
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    given = [constant(integers(op, name) or ones, "s32") for name in names]
    pads = _padding(op, rank)
    windows = Windows(*given, *(constant(pads[:, side].tolist(), "s32") for side in (0, 1)))

    return _reduced(op, list(op.operands), windows, op.regions[0])


@pattern("stablehlo.custom_call")
def reduced_by_values(op: ir.Operation) -> Replacement:
    """A call of dynamic_reduce_window -> pad, gather and reduce."""
    if string_attribute(op, "call_target_name") != REDUCE_WINDOW:
        return NoMatch("another call")
    *arrays, sizes, strides, base_dilations, dilations, padding = op.operands
    vectors = [ops.convert_element_type(Value(v), "s32") for v in (sizes, strides, base_dilations, dilations)]
    pads = ops.convert_element_type(Value(padding), "s32")
    return _reduced(op, arrays, Windows(*vectors, *_columns(pads)), called_region(op))


def _columns(pairs: Value) -> list[Value]:
    """``[n, 2]`` as two vectors."""
    count = pairs.dims[0]
    return [ops.reshape(ops.slice(pairs, [0, side], [count, side + 1], [1, 1]), [count]) for side in (0, 1)]


def _reduced(op: ir.Operation, operands: Sequence[SSAValue], windows: Windows, region: ir.Region) -> Replacement:
    count = len(operands) // 2
    arrays, inits = [Value(v) for v in operands[:count]], [Value(v) for v in operands[count:]]
    if count == 1 and is_elementwise(region):
        found = _running_dimension(op, arrays[0], windows)
        if found is not None:
            return [_running(arrays[0], inits[0], region, *found)]
    rank = arrays[0].rank
    gathered = [_windows(array, init, windows, op.results[0].type) for array, init in zip(arrays, inits, strict=True)]
    made = create(
        "stablehlo.reduce",
        [*gathered, *inits],
        [result.type for result in op.results],
        1,
        dimensions=i64s(range(rank, 2 * rank)),
    )
    scalars = [argument.type for argument in region.blocks[0].arguments]
    fill_region(made.regions[0], scalars, lambda *values: inline_region(region, values))
    return [Value(result) for result in made.results]


def _windows(array: Value, init: Value, windows: Windows, result: Any) -> Value:
    """The elements of every window: the result's dimensions first, those of a window after them."""
    rank = array.rank
    padded = _dynamic_pad(array, init, windows.low, windows.high, windows.base_dilations - 1)
    extents = (windows.sizes - 1) * windows.dilations + 1
    room = sizes_of(padded) - extents
    places = ops.select(room < 0, full(room, 0), ops.div(room, windows.strides) + 1)
    starts = _starts(places, windows.strides, result)
    numbers = ops.GatherDimensionNumbers(range(rank, 2 * rank), [], range(rank), rank)
    sizes = _known(windows.sizes)
    type_ = ir.RankedTensorType.get([*result.shape, *_known(extents)], array.type.element_type)
    slices = emit("stablehlo.dynamic_gather", [padded, starts, extents], type_, dimension_numbers=numbers.attribute())
    if _known(windows.dilations) == [1] * rank:
        return slices
    zeros, ones = (constant([number] * rank, "s32") for number in (0, 1))
    limits, strides = (ops.concat_in_dim(parts, 0) for parts in ([places, extents], [ones, windows.dilations]))
    type_ = ir.RankedTensorType.get([*result.shape, *sizes], array.type.element_type)
    start = ops.concat_in_dim([zeros, zeros], 0)
    return emit("stablehlo.real_dynamic_slice", [slices, start, limits, strides], type_)


def _starts(places: Value, strides: Value, result: Any) -> Value:
    """Where each window begins: ``[positions..., rank]`` of s32."""
    rank = places.dims[0]
    shape = ops.concat_in_dim([places, constant([1], "s32")], 0)
    type_ = ir.RankedTensorType.get([*result.shape, 1], places.type.element_type)
    parts = []
    for d in range(rank):
        number = emit("stablehlo.dynamic_iota", [shape], type_, iota_dimension=i64(d))
        step = ops.reshape(ops.slice(strides, [d], [d + 1], [1]), [])
        parts.append(number * spread(step, number))
    return ops.concat_in_dim(parts, rank)


def _known(vector: Value) -> list[int]:
    """The numbers of a vector; the size of a dynamic dimension for one that only a call knows."""
    numbers = [element(vector.ir, d) for d in range(vector.dims[0])]
    return [number if isinstance(number, int) else _OPEN for number in numbers]


def _running_dimension(op: AnyOp, array: Value, windows: Windows) -> tuple[int, bool] | None:
    """The dimension along which all elements up to each one are combined, and whether from the end; else None."""
    rank = array.rank
    if array.type.shape != op.results[0].type.shape:
        return None
    whole: tuple[int, bool] | None = None
    for d in range(rank):
        size, low, high = (element(vector.ir, d) for vector in (windows.sizes, windows.low, windows.high))
        if any(element(v.ir, d) != 1 for v in (windows.strides, windows.base_dilations, windows.dilations)):
            return None
        if (size, low, high) == (1, 0, 0):
            continue
        if size != size_of(array.ir, d) or whole is not None:
            return None
        if _is_one_less(low, size) and high == 0:
            whole = (d, False)
        elif _is_one_less(high, size) and low == 0:
            whole = (d, True)
        else:
            return None
    return whole


def _is_one_less(number: Symbol, size: Symbol) -> bool:
    if isinstance(number, int):
        return isinstance(size, int) and number == size - 1
    return number in (("stablehlo.add", size, -1), ("stablehlo.add", -1, size), ("stablehlo.subtract", size, 1))


def _running(array: Value, init: Value, region: ir.Region, dimension: int, reverse: bool) -> Value:
    """What is combined of all elements up to each one, the initial value included."""
    sizes = sizes_of(array)
    count = ops.reshape(ops.slice(sizes, [dimension], [dimension + 1], [1]), [])
    line = ir.RankedTensorType.get([array.type.shape[dimension]], count.type.element_type)
    extent = ops.reshape(count, [1])
    number = emit("stablehlo.dynamic_iota", [extent], line, iota_dimension=i64(0))
    if reverse:
        number = spread(count - 1, number) - number
    window = ops.concat_in_dim(
        [ops.slice(sizes, [d], [d + 1], [1]) if d != dimension else constant([1], "s32") for d in range(array.rank)], 0
    )
    others = [d for d in range(array.rank) if d != dimension]
    numbers = ops.GatherDimensionNumbers(others, [dimension], [dimension], 1)

    def turn(step: Value, values: Value) -> list[Value]:
        reach = spread(step, number)
        # A position before the first one is clamped, and its value not used.
        place = number - reach
        if reverse:
            place = spread(count - 1, number) - place
        column = emit(
            "stablehlo.dynamic_reshape",
            [place, ops.concat_in_dim([extent, constant([1], "s32")], 0)],
            ir.RankedTensorType.get([*line.shape, 1], line.element_type),
        )
        before = emit(
            "stablehlo.dynamic_gather", [values, column, window], array.type, dimension_numbers=numbers.attribute()
        )
        (combined,) = vectorize_region(region, [before, values])
        reached = spread(number >= reach, array, [dimension])
        return [step + step, ops.select(reached, combined, values)]

    (initial,) = vectorize_region(region, [spread(init, array), array])
    _, result = ops.while_(lambda step, _: step < count, turn, [constant(1, "s32"), initial])
    return result


@register
@dataclass(frozen=True)
class DecomposeDynamicWindows(Pass):
    """Replace convolutions of dynamic padding, and reductions over windows of dynamic arrays."""

    name: ClassVar[str] = "decompose-dynamic-windows"

    def run(self, module: ir.Module) -> None:
        patterns = (*padded_by_values, *padded_by_numbers, *reduced_by_numbers, *reduced_by_values)
        apply_patterns(module, patterns)
