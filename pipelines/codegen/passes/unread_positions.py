"""Windows of convolutions without the positions at their ends that read padding alone, wherever the window lies.

Before, a window of three positions, 24 apart, over an image of 16 numbers::

    %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
        window = {pad = [[24, 24]], rhs_dilate = [24]}
      : (tensor<8x16x4xf32>, tensor<3x4x4xf32>) -> tensor<8x16x4xf32>

After::

    %v = stablehlo.slice %w [1:2, 0:4, 0:4] : tensor<1x4x4xf32>
    %r = stablehlo.convolution(%x, %v) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
      : (tensor<8x16x4xf32>, tensor<1x4x4xf32>) -> tensor<8x16x4xf32>

Pyramids of dilated windows (DeepLab) over small images, and windows larger than their images, are such. As in
``convolutions_as_products.py``, infinite weights that only padding meets are not multiplied by its zeros.
"""

from __future__ import annotations

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import dense
from hloforge.dialect.element_types import element_type
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static, multiplies_nothing
from hloforge.pipelines.codegen.passes.convolutions_as_products import Dimension, dimensions
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, pattern


@pattern("stablehlo.convolution")
def without_unread_positions(op: ir.Operation) -> Replacement:
    """A convolution by the positions of its window between the first and the last one that read the image."""
    if not is_static(op) or multiplies_nothing(op):
        return NoMatch("of unknown or no size")
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    kernel = Value(op.operands[1])
    starts, limits = [0] * kernel.rank, [*kernel.dims]
    edges, apart = [], []
    for one, along in zip(dimensions(op, numbers), numbers.kernel_spatial_dimensions, strict=True):
        first, last = _read(one)
        step = one.steps[1]
        low, high = one.low - first * step, one.high - (one.window - 1 - last) * step
        if last - first + 1 < one.window and min(low, high) >= 0:
            starts[along], limits[along] = first, last + 1
            if one.is_reversed:
                starts[along], limits[along] = one.window - 1 - last, one.window - first
            edges.append([low, high])
            apart.append(step if last > first else 1)
        else:
            edges.append([one.low, one.high])
            apart.append(step)
    if limits == [*kernel.dims] and not any(starts):
        return NoMatch("every position reads the image somewhere")
    part = ops.slice(kernel, starts, limits, [1] * kernel.rank)
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes["padding"] = dense(np.array(edges, np.int64).reshape(-1, 2), element_type("s64"))
    attributes["rhs_dilation"] = ir.DenseI64ArrayAttr.get(apart)
    return emit(op.name, [Value(op.operands[0]), part], op.results[0].type, **attributes)


def _read(one: Dimension) -> tuple[int, int]:
    """The first and the last position of a window that meet an element; all if none does."""
    stride, step, spread = one.steps
    places = np.arange(one.result) * stride - one.low
    reach = (one.image - 1) * spread

    def meets(position: int) -> bool:
        at = places + position * step
        return bool(np.any((at >= 0) & (at <= reach) & (at % spread == 0)))

    every = range(one.window)
    first = next(filter(meets, every), None)
    return (0, one.window - 1) if first is None else (first, next(filter(meets, reversed(every))))
