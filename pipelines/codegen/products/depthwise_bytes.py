"""Depthwise convolutions of bytes by an instruction that multiplies four of them: those of four pixels in a row.

An integer of 32 bits has a feature of a pixel and of the three pixels behind it, another one four weights of a row of
the window. Pixels are packed once for all windows that see them, from the last one of a row on::

    packed = 0; for pixel in reversed row: packed = packed << 8 | pixel; keep packed
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I8, I32, Value
from hloforge.pipelines.codegen.products import images
from hloforge.pipelines.codegen.products.arithmetic import Arithmetic, groups_of, one_by_one
from hloforge.pipelines.codegen.products.images import Copy
from hloforge.pipelines.codegen.products.loops import carrying, each
from hloforge.pipelines.codegen.products.micro_kernel import wide
from hloforge.pipelines.codegen.products.operands import clamped, split_index, strided
from hloforge.pipelines.codegen.products.packing import element
from hloforge.pipelines.framework.machine import Machine

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.products.convolution import Convolution

_GROUP, _BYTES = 4, 4
_FLIP = 0x80


def arithmetic_of(one: Convolution, lanes: int, machine: Machine) -> Arithmetic | None:
    """The instruction, where it takes a convolution."""
    image, kernel, last = one.image, one.kernel, one.axes[-1]
    if image.kind != I8 or kernel.kind != I8 or last.dilation != 1 or not 2 <= last.window <= 2 * _GROUP:
        return None
    if any(axis.base != 1 for axis in one.axes) or _GROUP % last.stride:
        return None
    found = groups_of(I8, image.signed, I8, kernel.signed, one.sums, lanes, machine, one.extensions)
    return found if found is not None and found.group == _GROUP else None


def byte_copy(one: Convolution, rows: int) -> Copy | None:
    """A copy of so many rows of the image with their padding; None where there is none."""
    if all(axis.is_plain for axis in one.axes):
        return None
    return images.by_pixels(one.axes, one.groups, rows, one_by_one(I8))


def places(one: Convolution) -> int:
    """Packed pixels of a row: each first one of a window, and those four behind it."""
    return -(-one.axes[-1].padded // one.axes[-1].stride)


def strides_of(one: Convolution, rows: int) -> list[int]:
    """Bytes between packed pixels along each dimension, and of all of them."""
    found, step = [], one.groups * _BYTES
    for size in reversed([rows, *(axis.padded for axis in one.axes[1:-1]), places(one)]):
        found.append(step)
        step *= size
    return [*reversed(found), step]


def weight_bytes(one: Convolution) -> int:
    """Of packed weights, and of what sums begin with."""
    outer = math.prod(axis.window for axis in one.axes[:-1])
    return (outer * -(-one.axes[-1].window // _GROUP) + 1) * one.groups * _BYTES


def pack_row(
    function: Function,
    one: Convolution,
    arithmetic: Arithmetic,
    lanes: int,
    source: Value,
    step: int,
    target: Value,
) -> None:
    """Pack a row of pixels.

    Args:
        source: the address of its first pixel.
        step: bytes from one pixel to the next.
    """
    stride, count, padded = one.axes[-1].stride, places(one), one.axes[-1].padded
    size = one.groups * _BYTES
    with each(function, 0, one.groups, lanes) as reached:
        feature = clamped(function, reached, one.groups - lanes)
        start, to = function.offset(source, I8, feature), function.offset(target, I32, feature)

        def further(packed: Value, place: Value, pixels: int) -> Value:
            at = function.offset(start, I8, place * (stride * step))
            for pixel in reversed(range(pixels)):
                stored = function.load(function.offset(at, I8, pixel * step), wide(I8, lanes))
                if arithmetic.flips:
                    stored = stored ^ (_FLIP - (1 << 8))
                packed = (packed << 8) | stored.as_(I32, signed=False)
            function.store(packed, function.offset(to, I8, place * size), _BYTES)
            return packed

        zero = function.constant(0, wide(I32, lanes))
        top = function.index(count - 1)
        packed = further(zero, top, padded - (count - 1) * stride)
        with carrying(function, 0, count - 1, [packed]) as (loop, number, (carried,)):
            loop.next([further(carried, function.index(count - 2) - number, stride)])


def pack_weights(
    function: Function, one: Convolution, arithmetic: Arithmetic, lanes: int, kernel: Value, target: Value
) -> None:
    """Write ``[rows of the window, fours, features]``, and what sums begin with for each feature."""
    outer = [axis.window for axis in one.axes[:-1]]
    last, fours = one.axes[-1].window, -(-one.axes[-1].window // _GROUP)
    lanes = lanes if one.kernel.group == 1 else 1
    single, kind = one_by_one(I32), wide(I32, lanes)
    with each(function, 0, one.groups, lanes) as reached:
        feature = clamped(function, reached, one.groups - lanes)
        zero = function.constant(0, kind)
        with carrying(function, 0, math.prod(outer), [zero]) as (loop, turn, (total,)):
            row = split_index(function, turn, outer)
            for four in range(fours):
                packed = zero
                for number in range(min(_GROUP, last - four * _GROUP)):
                    place = [*row, function.index(four * _GROUP + number), feature]
                    source = strided(function, kernel, I8, place, [*one.kernel.spatial, one.kernel.group])
                    value = element(function, single, one.kernel, source, lanes)
                    total = total + value
                    packed = packed | ((value & 0xFF) << (8 * number))
                to = (turn * fours + four) * one.groups + feature
                function.store(packed, function.offset(target, I32, to), _BYTES)
            loop.next([total])
        begin = arithmetic.made_up(loop.results[0]) if arithmetic.flips else zero
        to = function.index(math.prod(outer) * fours * one.groups) + feature
        function.store(begin, function.offset(target, I32, to), _BYTES)


def sums(
    function: Function,
    one: Convolution,
    arithmetic: Arithmetic,
    lanes: int,
    pixels: int,
    at: Value,
    weights: Value,
    feature: Value,
    strides: Sequence[int],
) -> list[Value]:
    """Of some pixels of the result.

    Args:
        at: the address of the first packed pixel of the first one.
        strides: bytes between packed pixels along each dimension.
    """
    outer = [axis.window for axis in one.axes[:-1]]
    fours, kind = -(-one.axes[-1].window // _GROUP), wide(I32, lanes)
    steps = [axis.dilation * stride for axis, stride in zip(one.axes[:-1], strides, strict=False)]
    mine = function.offset(weights, I32, feature)
    beginning = function.load(function.offset(mine, I32, math.prod(outer) * fours * one.groups), kind, _BYTES)
    with carrying(function, 0, math.prod(outer), [beginning] * pixels) as (loop, turn, carried):
        start = strided(function, at, I8, split_index(function, turn, outer), steps)
        weight = strided(function, mine, I32, [turn], [fours * one.groups])
        totals = list(carried)
        for four in range(fours):
            stored = function.load(function.offset(weight, I32, four * one.groups), kind, _BYTES)
            factor = arithmetic.right(stored, signed=True)
            further = four * _GROUP // one.axes[-1].stride
            for pixel in range(pixels):
                packed = function.load(function.offset(start, I8, (pixel + further) * strides[-1]), kind, _BYTES)
                totals[pixel] = arithmetic.multiply_add(arithmetic.right(packed, signed=True), factor, totals[pixel])
        loop.next(totals)
    return loop.results
