"""``decompose-convolution``: convolutions that a target has no right kernel for, as products of windows and kernels.

Before::

    %y = stablehlo.convolution(%x, %w) {feature_group_count = g} : [n,*space,g*c], [*window,c,g*f] -> [n,*out,g*f]

After::

    %u = for each dimension of space: gather the places of its windows      // [n,out,window,out,window,...,g*c]
    %y = dot_general %u, %w                                                 // g products of [n*out, window*c]

Groups, of features or of images, are the batch of the product. Unlike a slice for each place of the window, gathers are
as many as dimensions, for the kernels of gradients are as large as images.
Source: XLA "ConvWithGeneralPadding"; StableHLO spec "convolution".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.idioms import take, zeros
from hloforge.dialect.mlir import stablehlo
from hloforge.dialect.operations import integers
from hloforge.dialect.values import Value
from hloforge.pipelines.convolutions import InOrder
from hloforge.pipelines.forms import is_static
from hloforge.pipelines.legalize.long_loops import convolves_many
from hloforge.pipelines.passes import Pass, register
from hloforge.pipelines.patterns import NoMatch, Replacement, apply_patterns, pattern

# Dimensions of space that IREE has kernels for.
_MOST_SPACE = 3
# What Vulkan promises a shader of one array, in bytes (maxStorageBufferRange).
_LARGEST = 1 << 27


def lacks_kernel(op: Any) -> bool:
    """Whether a ``convolution`` has groups of several channels or of images, more than three dimensions of space, or
    more products for a result than an invocation of a shader sums."""
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    channels = int(op.operands[1].type.shape[numbers.kernel_input_feature_dimension])
    groups, images = _groups(op)
    is_wide = len(numbers.input_spatial_dimensions) > _MOST_SPACE
    return (groups > 1 and channels > 1) or images > 1 or is_wide or convolves_many(op)


def is_unfolded(op: Any) -> bool:
    """The same, of known sizes, and windows that make no larger an array than a shader may read."""
    return is_static(op) and lacks_kernel(op) and _window_bytes(op) <= _LARGEST


@pattern("stablehlo.convolution")
def by_windows(op: Any) -> Replacement:
    """Windows times the kernel, for each group."""
    if not is_unfolded(op):
        return NoMatch("the target has a kernel, sizes are not known, or the windows take too much memory")
    result = Value(op.results[0])
    if prod(result.dims) == 0:
        return zeros(result.element_type, result.dims)
    ordered = InOrder.of(op)
    return ordered.result(_product(op, _windows(op, ordered), ordered))


def _groups(op: Any) -> tuple[int, int]:
    """How many of features and of images; one of them is 1."""
    return op.attributes["feature_group_count"].value, op.attributes["batch_group_count"].value


def _window_bytes(op: Any) -> int:
    """The size of all windows beside each other."""
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    image, kernel, result = (Value(value) for value in (*op.operands, op.results[0]))
    outer = image.dims[numbers.input_batch_dimension] * image.dims[numbers.input_feature_dimension]
    window = prod(kernel.dims[d] for d in numbers.kernel_spatial_dimensions)
    places = prod(result.dims[d] for d in numbers.output_spatial_dimensions)
    return int(outer * window * places * image.element_type.bits) // 8


def _windows(op: Any, ordered: InOrder) -> Value:
    """The image as ``[n, out, window, out, window, ..., features]``."""
    _, *results, _ = ordered.dims
    space = len(results)
    strides, apart, dilations = (
        integers(op, name) or [1] * space for name in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    padding = integers(op, "padding") or [0] * (2 * space)
    edges = [(padding[2 * d], padding[2 * d + 1], apart[d] - 1) for d in range(space)]
    image = ops.pad(ordered.image, 0, [(0, 0, 0), *edges, (0, 0, 0)])
    # From the last dimension on, so that those before keep their numbers.
    for d in reversed(range(space)):
        places = np.add.outer(np.arange(results[d]) * strides[d], np.arange(ordered.kernel.dims[d]) * dilations[d])
        taken = take(image, constant(places.ravel(), "s32"), d + 1)
        image = ops.reshape(taken, [*taken.dims[: d + 1], *places.shape, *taken.dims[d + 2 :]])
    return image


def _product(op: Any, windows: Value, ordered: InOrder) -> Value:
    """``[n, out, window, ..., features]`` times ``[*window, c, outputs]`` to ``[batch, *out, outputs]``."""
    groups, images = _groups(op)
    batch, *results, outputs = ordered.dims
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
class DecomposeConvolution(Pass):
    """Replace convolutions by groups, along many dimensions, and with very large kernels."""

    name: ClassVar[str] = "decompose-convolution"

    def run(self, module: Any) -> None:
        apply_patterns(module, by_windows)
