"""Convolutions of few pixels by many weights, as products of the weights, where they lie, by patches.

Before, 48 pixels and 1,536 times 576 weights::

    %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {pad = [[1, 1]]}
      : (tensor<1x192x48xf32>, tensor<1536x192x3xf32>) -> tensor<1x1536x48xf32>

After::

    %p = concatenate (slices of the padded %x, one a place of the window)      // 192x3x48
    %r = stablehlo.dot_general (reshape %w), (reshape %p), contracting_dims = [1] x [0]
      : (tensor<1536x576xf32>, tensor<576x48xf32>) -> tensor<1536x48xf32>

A convolution packs its weights first, in each call where they are arguments. That is one pass over them for few
multiplications each. A product of as few columns reads them as they lie, and patches of few pixels are small. One core
of a Xeon, us before and after, PyTorch: these 1,296, 616, 636; 1536 to 192 features 1,172, 551, 1,041; 512 features by
7 positions at 25 pixels 1,228, 496, 1,017; 512 by 3x3 at 7x7 pixels 1,812, 1,301, 2,391. With as many pixels as output
features (256 by 3x3 at 14x14) it would take 1.4 of its time. Weights with output features last stay: 834 and 1,582.
Source: Chellapilla et al., "High Performance Convolutional Neural Networks for Document Processing" (2006), section 3.
"""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.values import Value
from hloforge.pipelines.codegen.passes.convolutions_as_products import Dimension, dimensions, has_one_group
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, pattern

# Output features for each pixel, and weights, from which packing these costs more than patches.
_FEATURES, _WEIGHTS = 4, 1 << 14
# What packing reads in passing: it turns or moves the weights, or knows them before any call.
_PACKED = ("stablehlo.constant", "stablehlo.reverse", "stablehlo.transpose", "stablehlo.convert")


@pattern("stablehlo.convolution")
def of_few_pixels(op: ir.Operation) -> Replacement:
    """Multiply weights that lie as a matrix by the patches."""
    if not has_one_group(op):
        return NoMatch("of unknown or no size, or of groups")
    image, kernel, result = (Value(one) for one in (*op.operands, op.results[0]))
    if {one.element_type.name for one in (image, kernel, result)} != {"f32"}:
        return NoMatch("no floats of 32 bits")
    if isinstance(kernel.ir.owner, ir.OpView | ir.Operation) and kernel.ir.owner.name in _PACKED:
        return NoMatch("packing reads the weights in passing, or before any call")
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    found = dimensions(op, numbers)
    window, pixels = prod(one.window for one in found), prod(one.result for one in found)
    batch = image.dims[numbers.input_batch_dimension]
    if window == 1 or any(one.is_reversed or one.steps[2] != 1 for one in found):
        return NoMatch("windows of one position, turned ones, or zeros between elements")
    rest = list(range(1, kernel.rank))
    inner, spatial = numbers.kernel_input_feature_dimension, list(numbers.kernel_spatial_dimensions)
    if rest not in ([inner, *spatial], [*spatial, inner]):
        return NoMatch("no matrix of output features by terms; with output features last packing is a copy of rows")
    features = kernel.dims[0]
    if batch * pixels * _FEATURES > features or kernel.shape.element_count < _WEIGHTS:
        return NoMatch("many pixels, or few weights")
    order = [numbers.input_batch_dimension, numbers.input_feature_dimension, *numbers.input_spatial_dimensions]
    patches = _patches(ops.transpose(image, order), found)
    terms, depth = (1, 2) if rest[0] == inner else (2, 1), kernel.shape.element_count // features
    left = ops.reshape(kernel, [features, depth])
    right = ops.reshape(ops.transpose(patches, [*terms, 0, 3]), [depth, batch * pixels])
    attributes = {"precision_config": op.attributes["precision_config"]} if "precision_config" in op.attributes else {}
    found_product = emit(
        "stablehlo.dot_general",
        [left, right],
        ir.RankedTensorType.get([left.dims[0], right.dims[1]], result.ir.type.element_type),
        dot_dimension_numbers=stablehlo.DotDimensionNumbers.get([], [], [1], [0]),
        **attributes,
    )
    places = [numbers.output_batch_dimension, *numbers.output_spatial_dimensions]
    axes = [numbers.output_feature_dimension, *places]
    apart = ops.reshape(found_product, [result.dims[d] for d in axes])
    return ops.transpose(apart, [int(d) for d in np.argsort(axes)])


def _patches(image: Value, found: list[Dimension]) -> Value:
    """Of an image of batch, features and space: ``[batch, features, positions of the window, pixels]``."""
    plain = [(0, 0, 0)] * 2
    padded = ops.pad(image, 0, [*plain, *((one.low, one.high, 0) for one in found)])
    batch, features = image.dims[:2]
    parts = []
    for place in product(*(range(one.window) for one in found)):
        starts = [at * one.steps[1] for at, one in zip(place, found, strict=True)]
        ends = [start + (one.result - 1) * one.steps[0] + 1 for start, one in zip(starts, found, strict=True)]
        part = ops.slice(padded, [0, 0, *starts], [batch, features, *ends], [1, 1, *(one.steps[0] for one in found)])
        parts.append(ops.reshape(part, [batch, features, 1, prod(one.result for one in found)]))
    return ops.concat_in_dim(parts, 2)
