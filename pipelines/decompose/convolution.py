"""``decompose-convolution``: convolutions that a target has no right kernel for, as products of windows and kernels.

Before::

    %y = stablehlo.convolution(%x, %w) {feature_group_count = g} : [n,*space,g*c], [*window,c,g*f] -> [n,*out,g*f]

After::

    %u = for each dimension of space: gather the places of its windows      // [n,out,window,out,window,...,g*c]
    %y = dot_general %u, %w                                                 // g products of [n*out, window*c]

Groups, of features or of images, are the batch of the product. Unlike a slice for each position of the window, gathers
are as many as dimensions, because the kernels of gradients are as large as images. Where the windows are more bytes
than Vulkan promises a shader of one array, the result is computed in parts, by positions, one after the other.
Source: XLA "ConvWithGeneralPadding"; StableHLO spec "convolution".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, ClassVar

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.idioms import take, zeros
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.operations import integer, integers
from hloforge.dialect.values import Value, leaves
from hloforge.pipelines.analysis.canonical_order import InOrder
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern
from hloforge.pipelines.legalize.long_loops import convolves_many

Places = np.ndarray[Any, np.dtype[np.int64]]

# Dimensions of space that IREE has kernels for.
_MOST_SPACE = 3
# What every device of Vulkan promises a shader of one array, in bytes; lavapipe's limit is just that.
_LARGEST = 1 << 27
LIMIT = "128 MiB (maxStorageBufferRange)"
# Parts that a result is computed in, each with a gather and a product of its own.
_MOST_PARTS = 64


def lacks_kernel(op: ir.Operation) -> bool:
    """Whether a ``convolution`` has groups of several channels or of images, along three dimensions of space several
    features of each channel, more than three dimensions of space, or more products for a result than an invocation of
    a shader sums."""
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    channels = int(op.operands[1].type.shape[numbers.kernel_input_feature_dimension])
    groups, images = _groups(op)
    features = int(op.operands[1].type.shape[numbers.kernel_output_feature_dimension])
    space = len(numbers.input_spatial_dimensions)
    is_multiplied = space == _MOST_SPACE and features > groups
    by_groups = groups > 1 and (channels > 1 or is_multiplied)
    return by_groups or images > 1 or space > _MOST_SPACE or convolves_many(op)


def is_unfolded(op: ir.Operation) -> bool:
    """The same, of known sizes, and windows that a shader may read in no more parts than ``_MOST_PARTS``."""
    if not (is_static(op) and lacks_kernel(op)):
        return False
    if _window_bytes(op) <= _LARGEST:
        return True
    parts = _parts(op)
    return parts is not None and prod(map(len, parts)) <= _MOST_PARTS


@pattern("stablehlo.convolution")
def by_windows(op: ir.Operation) -> Replacement:
    """Windows times the kernel, for each group."""
    if not is_unfolded(op):
        return NoMatch("the target has a kernel, sizes are not known, or the windows take too much memory")
    result = Value(op.results[0])
    if prod(result.dims) == 0:
        return zeros(result.element_type, result.dims)
    ordered = InOrder.of(op)
    image, places = _places(op, ordered)
    parts = _parts(op)
    assert parts is not None  # is_unfolded asked
    return ordered.result(_together(op, ordered, image, places, parts))


def _together(
    op: ir.Operation, ordered: InOrder, image: Value, places: Sequence[Places], parts: Sequence[Sequence[slice]]
) -> Value:
    """The result ``[n, *out, features]`` of its parts along each dimension of space."""
    computed: list[Value] = []
    for part in product(*parts):
        taken = [rows[chosen] for rows, chosen in zip(places, part, strict=True)]
        if computed:  # One part's windows are gone before the next one's are made.
            image, computed[-1] = leaves(ops.optimization_barrier((image, computed[-1])))
        computed.append(_product(op, _windows(image, taken), ordered, [len(rows) for rows in taken]))
    for dimension in reversed(range(len(parts))):
        width = len(parts[dimension])
        rows = [computed[n : n + width] for n in range(0, len(computed), width)]
        computed = [ops.concat_in_dim(row, dimension + 1) if len(row) > 1 else row[0] for row in rows]
    return computed[0]


def _groups(op: ir.Operation) -> tuple[int, int]:
    """How many of features and of images; one of them is 1."""
    return integer(op, "feature_group_count"), integer(op, "batch_group_count")


def _window_bytes(op: ir.Operation) -> int:
    """The size of all windows beside each other."""
    return _bytes_of_a_place(op) * prod(_results(op))


def _results(op: ir.Operation) -> list[int]:
    """The sizes of the result along the dimensions of space."""
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    dims = Value(op.results[0]).dims
    return [dims[d] for d in numbers.output_spatial_dimensions]


def _bytes_of_a_place(op: ir.Operation) -> int:
    """The size of the windows, of all images, for one position of the result."""
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    image, kernel = (Value(value) for value in op.operands)
    outer = image.dims[numbers.input_batch_dimension] * image.dims[numbers.input_feature_dimension]
    window = prod(kernel.dims[d] for d in numbers.kernel_spatial_dimensions)
    return max(1, int(outer * window * image.element_type.bits) // 8)


def _parts(op: ir.Operation) -> list[list[slice]] | None:
    """The positions of the result along each dimension of space, in parts whose windows a shader may read.

    The first dimensions are cut first, into single positions before the next one is. None if the windows of a single
    position are too large.
    """
    results = _results(op)
    # Places of a part that are left to choose from the dimensions to come.
    room = _LARGEST // _bytes_of_a_place(op)
    if room == 0:
        return None
    parts = []
    for number, size in enumerate(results):
        inner = prod(results[number + 1 :])
        step = max(1, min(size, room // max(1, inner)))
        parts.append([slice(start, start + step) for start in range(0, size, step)])
        room //= step
    return parts


def _places(op: ir.Operation, ordered: InOrder) -> tuple[Value, list[Places]]:
    """The padded image, and for each dimension of space the positions that each window reads: ``[out, window]``."""
    _, *results, _ = ordered.dims
    space = len(results)
    strides, apart, dilations = (
        integers(op, name) or [1] * space for name in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    padding = integers(op, "padding") or [0] * (2 * space)
    edges = [(padding[2 * d], padding[2 * d + 1], apart[d] - 1) for d in range(space)]
    image = ops.pad(ordered.image, 0, [(0, 0, 0), *edges, (0, 0, 0)])
    windows = ordered.kernel.dims
    return image, [
        np.add.outer(np.arange(results[d]) * strides[d], np.arange(windows[d]) * dilations[d]) for d in range(space)
    ]


def _windows(image: Value, places: Sequence[Places]) -> Value:
    """The padded image as ``[n, out, window, out, window, ..., features]``."""
    # From the last dimension on, so that those before keep their numbers.
    for d, rows in reversed([*enumerate(places)]):
        taken = take(image, constant(rows.ravel(), "s32"), d + 1)
        image = ops.reshape(taken, [*taken.dims[: d + 1], *rows.shape, *taken.dims[d + 2 :]])
    return image


def _product(op: ir.Operation, windows: Value, ordered: InOrder, results: Sequence[int]) -> Value:
    """``[n, out, window, ..., features]`` times ``[*window, c, outputs]`` to ``[batch, *out, outputs]``.

    Args:
        results: the sizes of ``out``.
    """
    groups, images = _groups(op)
    batch, *_, outputs = ordered.dims
    *window, channels, _ = ordered.kernel.dims
    count, space, rank = groups * images, len(results), 2 * len(results)
    split = ops.reshape(windows, [images, batch, *windows.dims[1:-1], groups, channels])
    # [images, groups, batch, *out, *window, channels]: one of the first two is 1.
    order = [0, rank + 2, 1, *range(2, rank + 2, 2), *range(3, rank + 2, 2), rank + 3]
    left = ops.reshape(ops.transpose(split, order), [count, batch * prod(results), prod(window) * channels])
    kernel = ops.reshape(ordered.forwards(op), [prod(window) * channels, count, outputs // count])
    numbers = ops.DotDimensionNumbers([2], [1], [0], [0])
    element = Value(op.results[0]).element_type
    flat = ops.dot_general(left, ops.transpose(kernel, [1, 0, 2]), numbers, preferred_element_type=element)
    apart = ops.reshape(flat, [count, batch, *results, outputs // count])
    together = ops.transpose(apart, [*range(1, space + 2), 0, space + 2])
    return ops.reshape(together, [batch, *results, outputs])


@register
@dataclass(frozen=True)
class DecomposeConvolution(PatternPass):
    """Replace grouped convolutions, and those of many dimensions or very large kernels."""

    name: ClassVar[str] = "decompose-convolution"
    patterns: ClassVar[tuple[Pattern, ...]] = by_windows
