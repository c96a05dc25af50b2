"""Depthwise convolutions whose pixels are contiguous: several rows of a result at once, which see most rows together.

Weights of one column of a window stay in registers, and each vector of pixels is read once for all rows that see it::

    for some rows, strip of pixels:
        sums = 0
        for column of the window, row of the image that one of its weights sees: sums[row - weight] += weight * pixels
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hloforge.pipelines.codegen.chains import Terms, add_up
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I8, Value
from hloforge.pipelines.codegen.products.arithmetic import one_by_one
from hloforge.pipelines.codegen.products.micro_kernel import wide

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.products.convolution import Convolution

# Sums that are made at once, and vectors of a row of them.
_SUMS, _VECTORS = 8, 2
# Sums by weights that are written out at most; of more, columns of the window are a loop.
_WRITTEN_OUT = 256
# How well rows have to fill vectors, beside rows that follow each other with their gaps, and how many rows have to see
# a row of the image in the mean.
_SHARE, _READERS = 0.6, 1.5

# Given an axis and a weight: its bytes in the kernel, and those of its pixels in the image.
Distances = Callable[[int, int], tuple[int, int]]


def rows_at_once(one: Convolution, rows: int, pitch: int, lanes: int) -> int:
    """How many rows of a chunk's result are computed together; 0 for pixels of all rows as one row.

    Args:
        rows: of a chunk.
        pitch: of the result's rows among its pixels, gaps included.
    """
    if (one.inputs, one.outputs, len(one.axes)) != (1, 1, 2):
        return 0
    down, along = one.axes
    if along.out < lanes or down.window <= down.stride or rows == 1:
        return 0
    vectors = -(-along.out // lanes)
    count = min(_SUMS // min(vectors, _VECTORS), rows)
    seen = len({row * down.stride + weight * down.dilation for row in range(count) for weight in range(down.window)})
    if pitch < _SHARE * vectors * lanes or count * down.window < _READERS * seen:
        return 0
    is_short = down.window * along.window * _SUMS <= _WRITTEN_OUT
    return count if is_short or along.stride == 1 else 0


def vectors_of(width: int, lanes: int) -> int:
    """Vectors of a row that are computed together."""
    return min(_VECTORS, -(-width // lanes))


def sums(
    function: Function,
    one: Convolution,
    rows: int,
    row_bytes: int,
    lanes: int,
    kernel: Value,
    vectors: Sequence[Value],
    distances: Distances,
) -> list[Value]:
    """Of some rows, one row's after the other's.

    Args:
        row_bytes: between rows of the result where the image is.
        kernel: the address of the first weight.
        vectors: the address of each vector's first pixel in the first row.
    """
    kind, (down, along), arithmetic = wide(one.sums, lanes), one.axes, one_by_one(one.sums)
    readers: dict[int, list[tuple[int, int]]] = {}
    for row in range(rows):
        for weight in range(down.window):
            readers.setdefault(row * row_bytes + distances(0, weight)[1], []).append((row, weight))

    def column(at: Value, starts: Sequence[Value], totals: list[Value]) -> None:
        factors = []
        for weight in range(down.window):
            factor = function.load(function.offset(at, I8, distances(0, weight)[0]), one.kernel.kind, one.kernel.bytes)
            factors.append(arithmetic.left(factor, lanes, signed=one.kernel.signed))
        for distance in sorted(readers):
            pixels = [function.load(function.offset(start, I8, distance), kind) for start in starts]
            for row, weight in readers[distance]:
                for place, pixel in enumerate(pixels):
                    slot = row * len(starts) + place
                    totals[slot] = arithmetic.multiply_add(factors[weight], pixel, totals[slot])

    zeros = [function.constant(0, kind)] * (rows * len(vectors))
    if down.window * along.window * len(zeros) <= _WRITTEN_OUT:
        totals = list(zeros)
        for weight in range(along.window):
            in_kernel, in_image = distances(1, weight)
            moved = [function.offset(vector, I8, in_image) for vector in vectors]
            column(function.offset(kernel, I8, in_kernel), moved, totals)
        return totals

    def add(places: Sequence[Value], before: Sequence[Value]) -> list[Value]:
        at, moved = places
        totals = list(before)
        column(function.offset(kernel, I8, at), [function.offset(vector, I8, moved) for vector in vectors], totals)
        return totals

    loop = Terms(along.window, along.window, distances(1, 1))
    return add_up(function, [loop], [function.index(0)] * 2, zeros, add, weight=down.window)
