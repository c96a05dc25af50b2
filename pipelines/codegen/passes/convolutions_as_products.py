"""Convolutions that are products: where a result reads one position of the window, or one result all of the image.

Before, with a window of 3 positions beside an image of one, so that the others read padding::

    %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[2, 2]]}
      : (tensor<8x1x16xf32>, tensor<3x16x4xf32>) -> tensor<8x3x4xf32>

After::

    %v = stablehlo.reverse %w, dims = [0] : tensor<3x16x4xf32>
    %r = stablehlo.dot_general %x, %v, contracting_dims = [1] x [1]
      : (tensor<8x16xf32>, tensor<3x16x4xf32>) -> tensor<8x3x4xf32>

Along other dimensions the window has one position, and these are as good as the batch; or the window is as large as the
image, and its positions are terms as the features are: gradients of the weights of 1x1 convolutions, and layers behind
whose image of 7x7 positions one is left. Two cores of an EPYC, such a gradient of 128x256 weights from four images of
28x28 in bf16: 3.2 and 0.25 ms. Convolutions without windows are products as well. Source: StableHLO spec "convolution".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.operations import integers
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static, multiplies_nothing
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, pattern


@dataclass(frozen=True)
class Dimension:
    """Sizes along a spatial dimension; steps are those of windows, of positions in a window, and of elements."""

    image: int
    window: int
    result: int
    low: int
    high: int
    is_reversed: bool
    steps: tuple[int, int, int]
    is_padded: bool

    @property
    def is_batch(self) -> bool:
        return self.window == 1 and self.steps[0] == 1 and self.steps[2] == 1 and not self.is_padded

    @property
    def is_whole(self) -> bool:
        """Whether the only result reads each element of the image by a position of its own."""
        is_dense = self.image == self.window and self.steps[1] == 1 and self.steps[2] == 1
        return is_dense and self.result == 1 and not self.is_padded

    @property
    def is_point(self) -> bool:
        return self.image == 1 and self.steps[0] == 1 and self.steps[1] == 1


def has_one_group(op: ir.Operation) -> bool:
    """Whether a convolution multiplies something of known sizes, all features by all."""
    groups = number_of(op, "feature_group_count") * number_of(op, "batch_group_count")
    return is_static(op) and not multiplies_nothing(op) and groups == 1


@pattern("stablehlo.convolution")
def as_product(op: ir.Operation) -> Replacement:
    """Multiply where no result sums over positions of the window."""
    if not has_one_group(op):
        return NoMatch("of unknown or no size, or of groups")
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    found = dimensions(op, numbers)
    if not all(one.is_batch or one.is_point or one.is_whole for one in found):
        return NoMatch("windows of several positions")
    if found and all(one.is_batch for one in found):
        return NoMatch("windows of one position, which have code of their own")
    image, kernel = map(Value, op.operands)
    in_image, in_kernel = list(numbers.input_spatial_dimensions), list(numbers.kernel_spatial_dimensions)
    batch = [number for number, one in enumerate(found) if one.is_batch]
    terms = [number for number, one in enumerate(found) if one.is_whole and not one.is_batch]
    points = [number for number in range(len(found)) if number not in (*batch, *terms)]
    left_order = [numbers.input_batch_dimension, *(in_image[n] for n in batch)]
    left_order += [numbers.input_feature_dimension, *(in_image[n] for n in terms)]
    left = ops.reshape(
        ops.transpose(image, [*left_order, *(in_image[n] for n in points)]), [image.dims[d] for d in left_order]
    )
    for number in points:
        kernel = _read_by_results(kernel, in_kernel[number], found[number])
    if turned := [in_kernel[number] for number in terms if found[number].is_reversed]:
        kernel = ops.rev(kernel, turned)
    features = [numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension]
    right_order = [*(in_kernel[n] for n in points), features[0], *(in_kernel[n] for n in terms), features[1]]
    right = ops.reshape(
        ops.transpose(kernel, [*right_order, *(in_kernel[n] for n in batch)]), [kernel.dims[d] for d in right_order]
    )
    first, summed = 1 + len(batch), 1 + len(terms)
    outer = [image.dims[d] for d in left_order[:first]] + [found[n].result for n in points] + [kernel.dims[features[1]]]
    element = ir.RankedTensorType(op.results[0].type).element_type
    attributes = {"precision_config": op.attributes["precision_config"]} if "precision_config" in op.attributes else {}
    product = emit(
        "stablehlo.dot_general",
        [left, right],
        ir.RankedTensorType.get(outer, element),
        dot_dimension_numbers=stablehlo.DotDimensionNumbers.get(
            *([], []), range(first, first + summed), range(len(points), len(points) + summed)
        ),
        **attributes,
    )
    in_result = list(numbers.output_spatial_dimensions)
    order = [numbers.output_batch_dimension, *(in_result[n] for n in batch + points), numbers.output_feature_dimension]
    order += [in_result[n] for n in terms]
    product = ops.reshape(product, [*outer, *(1 for _ in terms)])
    return ops.transpose(product, [int(d) for d in np.argsort(order)])


def _read_by_results(kernel: Value, along: int, one: Dimension) -> Value:
    """The weights that each result reads, zeros where it reads padding alone."""
    if not one.is_reversed:
        kernel = ops.rev(kernel, [along])
    low = one.low - (one.window - 1)
    edges = [(0, 0, 0)] * kernel.rank
    edges[along] = (low, one.result - one.window - low, 0)
    return ops.pad(kernel, 0, edges) if any(edges[along]) else kernel


def dimensions(op: Any, numbers: Any) -> list[Dimension]:
    """What a convolution is along each spatial dimension."""
    image, kernel, result = (Value(one).dims for one in (*op.operands, op.results[0]))
    count = len(numbers.input_spatial_dimensions)
    edges = (
        np.array(op.attributes["padding"]).reshape(count, 2)
        if "padding" in op.attributes
        else np.zeros((count, 2), int)
    )
    steps = [
        integers(op, name) if name in op.attributes else (1,) * count
        for name in ("window_strides", "rhs_dilation", "lhs_dilation")
    ]
    back = list(op.attributes["window_reversal"]) if "window_reversal" in op.attributes else [False] * count
    return [
        Dimension(
            image[numbers.input_spatial_dimensions[d]],
            kernel[numbers.kernel_spatial_dimensions[d]],
            result[numbers.output_spatial_dimensions[d]],
            int(edges[d][0]),
            int(edges[d][1]),
            bool(back[d]),
            (steps[0][d], steps[1][d], steps[2][d]),
            bool(edges[d].any()),
        )
        for d in range(count)
    ]


def number_of(op: Any, name: str) -> int:
    """A count that an operation may leave out, then 1."""
    return int(ir.IntegerAttr(op.attributes[name]).value) if name in op.attributes else 1
