"""``unfold-convolutions``: im2col, a convolution as a matrix product of its windows with the kernel.

Before::

    %y = stablehlo.convolution(%x, %w) {...3x3 window...} : [n,h,w,c], [3,3,c,f] -> [n,oh,ow,f]

After::

    %p = pad %x                                    // edges, and zeros between elements
    %u = concatenate (slices of %p, one a place of the window)      // [n,oh,ow,9*c]
    %y = dot_general %u, reshape %w                // contracts 9*c

IREE's own loops over a window are slow where the image is no multiple of its tiles: 14x14 by 256 features takes 17
times XLA's time, unfolded less than twice. Its compiler crashes on complex convolutions with padding, which become
products here as well. Source: XLA "ConvWithGeneralPadding"; Chellapilla et al., "High Performance Convolutional Neural
Networks for Document Processing" (2006), section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, ClassVar

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.operations import integer, integers
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.canonical_order import InOrder
from hloforge.pipelines.analysis.forms import is_better_unfolded
from hloforge.pipelines.convolutions.features_first import by_features
from hloforge.pipelines.convolutions.features_last import by_features_last
from hloforge.pipelines.convolutions.few_outputs import by_places
from hloforge.pipelines.convolutions.space_to_depth import by_window_rows
from hloforge.pipelines.convolutions.split_groups import by_channels
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, apply_patterns, pattern

# Features from which products read windows in an image, and terms of a sum that is not short.
_WIDE, _DEEP = 32, 128


@dataclass(frozen=True)
class _Convolution:
    """The attributes of a convolution whose operands are in the order batch, space, features.

    Attributes:
        groups: of features; those of batches become such.
    """

    strides: list[int]
    padding: list[list[int]]
    base_dilations: list[int]
    window_dilations: list[int]
    reversal: list[bool]
    groups: int

    @classmethod
    def of(cls, op: Any) -> _Convolution:
        attributes = op.attributes
        numbers = stablehlo.ConvDimensionNumbers(attributes["dimension_numbers"])
        space = len(numbers.input_spatial_dimensions)
        padding = np.array(attributes["padding"]).reshape(space, 2) if "padding" in attributes else np.zeros((space, 2))
        return cls(
            integers(op, "window_strides") or [1] * space,
            padding.astype(int).tolist(),
            integers(op, "lhs_dilation") or [1] * space,
            integers(op, "rhs_dilation") or [1] * space,
            [bool(flag) for flag in integers(op, "window_reversal")] or [False] * space,
            attributes["feature_group_count"].value * attributes["batch_group_count"].value,
        )


def _multiplied(op: ir.Operation) -> Value:
    """Windows beside each other, times the kernel."""
    ordered, convolution = InOrder.of(op), _Convolution.of(op)
    image = _by_features(ordered.image, integer(op, "batch_group_count"))
    # Products do not read windows of so few features in the image, and copies of these are of no whole vectors.
    is_narrow = image.dims[-1] < _WIDE
    windows = _unfold(image, convolution, ordered.kernel.dims[:-2], ordered.dims[1:-1], in_rows=is_narrow)
    # Products of short sums are IREE's, which takes up to five times as long with a transposition in them.
    is_short = prod(ordered.kernel.dims[:-1]) < _DEEP and windows.dims[-1] < _WIDE
    element = Value(op.results[0]).element_type
    return ordered.result(_product(windows, ordered.kernel, convolution, element, alone=is_short))


def _by_features(image: Value, groups: int) -> Value:
    """``[groups * n, *space, c]`` to ``[n, *space, groups * c]``, whose groups are of features."""
    if groups == 1:
        return image
    batch, *space, features = image.dims
    apart = ops.reshape(image, [groups, batch // groups, *space, features])
    last = apart.rank - 1
    beside = ops.transpose(apart, [*range(1, last), 0, last])
    return ops.reshape(beside, [batch // groups, *space, groups * features])


def _unfold(
    image: Value, convolution: _Convolution, window: tuple[int, ...], spaces: Sequence[int], *, in_rows: bool
) -> Value:
    """``[n, *space, c]`` to ``[n, *spaces, positions of the window, c]``.

    Args:
        in_rows: whether positions along a row of the window are among the features.
    """
    edges = [
        (low, high, step - 1) for (low, high), step in zip(convolution.padding, convolution.base_dilations, strict=True)
    ]
    found = _padded(image, [(0, 0, 0), *edges, (0, 0, 0)])
    long = [axis for axis, size in enumerate(window) if size > 1]
    beside = long[-1] if len(long) > 1 and in_rows else None
    if beside is not None:
        # Rows of positions first: of a few numbers each, parts are copied as slowly as single numbers.
        at = range(window[beside])
        parts = [_place(found, convolution, window, spaces, {beside: place}) for place in at]
        found = ops.concat_in_dim(parts, found.rank - 1)
    rest = [range(1) if axis == beside else range(size) for axis, size in enumerate(window)]
    columns = []
    for place in product(*rest):
        part = _place(found, convolution, window, spaces, {d: at for d, at in enumerate(place) if d != beside})
        columns.append(ops.reshape(part, [*part.dims[:-1], 1, part.dims[-1]]))
    return ops.concat_in_dim(columns, len(spaces) + 1)


def _place(
    image: Value, convolution: _Convolution, window: Sequence[int], spaces: Sequence[int], places: dict[int, int]
) -> Value:
    """The elements that places of the window, along some axes, meet in all windows along these axes."""
    starts, limits, steps = [0] * image.rank, list(image.dims), [1] * image.rank
    for axis, at in places.items():
        turned = window[axis] - 1 - at if convolution.reversal[axis] else at
        d, stride = axis + 1, convolution.strides[axis]
        starts[d], steps[d] = turned * convolution.window_dilations[axis], stride
        limits[d] = starts[d] + (spaces[axis] - 1) * stride + 1
    return ops.slice(image, starts, limits, steps)


def _padded(image: Value, configuration: list[tuple[int, int, int]]) -> Value:
    """Complex numbers by their parts: IREE crashes where padding of c64 meets a strided slice."""
    if image.element_type.is_complex:
        return ops.complex(_padded(ops.real(image), configuration), _padded(ops.imag(image), configuration))
    return ops.pad(image, 0.0, configuration)


def _product(windows: Value, kernel: Value, convolution: _Convolution, element: Any, *, alone: bool) -> Value:
    """``[n, *spaces, .., c]`` times ``[*window, c / groups, f]`` to ``[n, *spaces, f]``.

    Args:
        alone: whether a product without groups is kept apart from what reads it.
    """
    groups = convolution.groups
    *window, inner, outputs = kernel.dims
    outer, places = windows.dims[:-2], prod(window)
    rows, depth = prod(outer), places * inner
    if groups == 1:
        flat = ops.dot_general(
            ops.reshape(windows, [rows, depth]),
            ops.reshape(kernel, [depth, outputs]),
            ops.DotDimensionNumbers((1,), (0,)),
            preferred_element_type=element,
        )
        return ops.reshape(ops.optimization_barrier(flat) if alone else flat, [*outer, outputs])
    left = ops.transpose(ops.reshape(windows, [rows, places, groups, inner]), [2, 0, 1, 3])
    right = ops.transpose(ops.reshape(kernel, [depth, groups, outputs // groups]), [1, 0, 2])
    flat = ops.dot_general(
        ops.reshape(left, [groups, rows, depth]),
        right,
        ops.DotDimensionNumbers((2,), (1,), (0,), (0,)),
        preferred_element_type=element,
    )
    return ops.reshape(ops.transpose(flat, [1, 0, 2]), [*outer, outputs])


@register
@dataclass(frozen=True)
class UnfoldConvolutions(Pass):
    """Replace convolutions that IREE computes slowly or not at all by products or depthwise convolutions."""

    name: ClassVar[str] = "unfold-convolutions"
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SAFE_PRODUCTS})

    def run(self, module: ir.Module) -> None:
        @pattern("stablehlo.convolution")
        def by_product(op: ir.Operation) -> Replacement:
            if not is_better_unfolded(op):
                return NoMatch("IREE's own loops are as good")
            return _multiplied(op)

        apply_patterns(
            module, (*by_features, *by_places, *by_product, *by_window_rows, *by_channels, *by_features_last)
        )
