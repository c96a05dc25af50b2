"""Convolutions with a window of one position whose features are before the space: products as the arrays lie.

Before::

    %y = stablehlo.convolution(%x, %w) {b f 0 1, o i 0 1 -> b f 0 1, 1x1 window} : [n,c,h,w], [f,c,1,1] -> [n,f,h,w]

After::

    %y = dot_general (reshape %w), (reshape %x)              // [f,c] times [c,h*w], for each of the batch

IREE 3.13 transposes the image, or sums over features that lie far apart: two to three times the product's time.
"""

from __future__ import annotations

from math import prod

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_product_of_features
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, pattern


@pattern("stablehlo.convolution")
def by_features(op: ir.Operation) -> Replacement:
    """The kernel times each image of the batch; of f32 and f64."""
    if not is_product_of_features(op):
        return NoMatch("not a product of features that come first")
    image, kernel, result = Value(op.operands[0]), Value(op.operands[1]), Value(op.results[0])
    batch, depth, *space = image.dims
    outputs, places = result.dims[1], prod(space)
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    if numbers.kernel_output_feature_dimension < numbers.kernel_input_feature_dimension:
        weights = ops.reshape(kernel, [outputs, depth])
    else:
        weights = ops.transpose(ops.reshape(kernel, [depth, outputs]), [1, 0])
    if batch == 1:
        product = ops.dot(weights, ops.reshape(image, [depth, places]))
    else:
        repeated = ops.broadcast_in_dim(weights, [batch, outputs, depth], [1, 2])
        dimensions = ops.DotDimensionNumbers((2,), (1,), (0,), (0,))
        product = ops.dot_general(repeated, ops.reshape(image, [batch, depth, places]), dimensions)
    return ops.reshape(product, result.dims)
