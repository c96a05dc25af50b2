"""Windows: convolutions, pools and cumulative sums see padding as if it lay outside of the array."""

from __future__ import annotations

from typing import Any

import numpy as np

from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.operations import integer, integers
from hloforge.dialect.values import Value
from hloforge.pipelines.padding.family import Family
from hloforge.pipelines.padding.frame import Frame, refuse, rule
from hloforge.pipelines.padding.layouts import Dim
from hloforge.pipelines.padding.reductions import neutral_of
from hloforge.pipelines.padding.sizes import Size, sized


def derived_sizes(op: Any, family: Family, place: int) -> list[Size]:
    """The sizes that windows may give along each dimension, from those of the operand."""
    if op.name == "stablehlo.slice":
        names = ("start_indices", "limit_indices", "strides")
        starts, limits, strides = (_sizes(op, family, place, name, []) for name in names)
        return [
            (limit - start + (_of(stride) - 1)) // _of(stride)
            for start, limit, stride in zip(starts, limits, strides, strict=True)
            if start is not None and limit is not None
        ]
    if op.name == "stablehlo.reduce_window":
        rank = len(op.operands[0].type.shape)
        operand = family.dims[family.number_of(op.operands[0])]
        window = _sizes(op, family, place, "window_dimensions", [1] * rank)
        names = ("window_strides", "base_dilations", "window_dilations")
        axes: list[tuple[Size, Size | None]] = [(operand[d], window[d]) for d in range(rank)]
    elif op.name == "stablehlo.convolution":
        numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
        lhs, rhs = (family.dims[family.number_of(operand)] for operand in op.operands)
        spatial = zip(numbers.input_spatial_dimensions, numbers.kernel_spatial_dimensions, strict=True)
        names = ("window_strides", "lhs_dilation", "rhs_dilation")
        axes = [(lhs[i], rhs[k]) for i, k in spatial]
    else:
        return []
    rank = len(axes)
    strides, base, dilations = (_sizes(op, family, place, name, [1] * rank) for name in names)
    padding = _sizes(op, family, place, "padding", [0] * (2 * rank))
    found = []
    for d, (size, reach) in enumerate(axes):
        low, high = padding[2 * d], padding[2 * d + 1]
        if low is None or reach is None:
            continue
        # Importers pad by as much as windows need: the most that they ever do gives the same number of windows.
        highs = [high] if high is not None else [sized(max(row[2 * d + 1] for row in family.rows(place, "padding")))]
        steps = _of(strides[d]), _of(base[d]), _of(dilations[d])
        found += [_window(size, reach, low, each, *steps) for each in highs]
    return found


def _of(size: Size | None) -> int:
    return (size.number if size is not None else None) or 1


def _window(operand: Size, window: Size, low: Size, high: Size, stride: int, base: int, dilation: int) -> Size:
    reach = (window - 1) * dilation + 1
    return ((operand - 1) * base + 1 + low + high - reach) // stride + 1


def _sizes(op: Any, family: Family, place: int, name: str, default: list[int]) -> list[Size | None]:
    return family.sizes(place, name) or [sized(number) for number in _numbers(op, name, default)]


def _numbers(op: Any, name: str, default: list[int]) -> list[int]:
    if name not in op.attributes:
        return default
    attribute = op.attributes[name]
    if isinstance(attribute, ir.DenseIntElementsAttr):
        return [int(number) for number in np.asarray(attribute).reshape(-1)]
    return integers(op, name)


@rule("reduce_window")
def reduce_window(frame: Frame, op: Any) -> None:
    count = len(op.operands) // 2
    values, layout = frame.together([Value(operand) for operand in list(op.operands)[:count]])
    rank = len(layout)
    place = frame.place(op)
    window = _sizes(op, frame.family, place, "window_dimensions", [1] * rank)
    strides = _numbers(op, "window_strides", [1] * rank)
    padding = _sizes(op, frame.family, place, "padding", [0] * (2 * rank))
    moved = []
    for d, dim in enumerate(layout):
        low, high = padding[2 * d], padding[2 * d + 1]
        reach = window[d]
        if low is None or reach is None:
            raise refuse(op, "its windows depend on a size")
        is_plain = (low.number, reach.number) == (0, 1) and strides[d] == 1 and high is not None and high.number == 0
        if dim is None or is_plain:
            continue
        moved.append(d)
        if low.number is not None and reach.number is not None:
            continue
        if high is None or not _is_whole(frame, reach, low, high, dim.real, strides[d]):
            raise refuse(op, "its windows depend on a size")
    values = [frame.as_prefix(value, moved) for value in values]
    fills = neutral_of(op, list(op.operands)[count:])
    for number, (value, fill) in enumerate(zip(values, fills, strict=True)):
        op.operands[number] = frame.masked(value, moved, fill).ir
    dims = [frame.layout(values[0])[d] if d not in moved else None for d in range(rank)]
    for result in op.results:
        wanted = frame.prefixes(result)
        frame.set(result, [wanted[d] if d in moved or layout[d] is None else dims[d] for d in range(rank)])


def _is_whole(frame: Frame, window: Size, low: Size, high: Size, real: Size, stride: int) -> bool:
    """Whether each window reaches one end of the array or both, so that it may be as large as the bucket's.

    Those of cumulative sums begin (or end) outside of the array; a global pool has one that is all of it.
    """
    for point in (*frame.family.fits.points, frame.point):
        reach, before, behind, count = (size.at(point) for size in (window, low, high, real))
        forwards = stride == 1 and before == reach - 1 and behind == 0
        backwards = stride == 1 and behind == reach - 1 and before == 0
        if reach < count or not (forwards or backwards or before == behind == 0):
            return False
    return True


@rule("convolution")
def convolution(frame: Frame, op: Any) -> None:
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    x = Value(op.operands[0])
    if frame.is_open(op.operands[1]):
        raise refuse(op, "its kernel has an open size")
    layout = frame.layout(x)
    if layout[numbers.input_feature_dimension] is not None:
        raise refuse(op, "its features have an open size")
    rank = len(numbers.input_spatial_dimensions)
    padding = _sizes(op, frame.family, frame.place(op), "padding", [0] * (2 * rank))
    lows = padding[::2]
    if any(low is None or low.number is None for low in lows):
        raise refuse(op, "what it pads with before the array depends on a size")
    spatial = list(numbers.input_spatial_dimensions)
    moved = [d for d in spatial if layout[d] is not None]
    x = frame.masked(frame.as_prefix(x, moved), moved, 0)
    op.operands[0] = x.ir
    dims: list[Dim | None] = frame.prefixes(op.results[0])
    dims[numbers.output_batch_dimension] = layout[numbers.input_batch_dimension]
    groups = integer(op, "batch_group_count") if "batch_group_count" in op.attributes else 1
    if layout[numbers.input_batch_dimension] is not None and groups != 1:
        raise refuse(op, "groups of an open batch")
    frame.set(op.results[0], dims)
