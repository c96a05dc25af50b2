"""``legalize-batch-groups``: convolutions by groups of images as convolutions by groups of features.

Before::

    %y = stablehlo.convolution(%x, %w) {batch_group_count = 2} : tensor<6x9x4xbf16>, tensor<1x4x8xbf16> -> 3x9x8

After::

    %g = stablehlo.reshape %x : tensor<2x3x9x4xbf16>
    %f = stablehlo.reshape (transpose %g to 3x9x2x4) : tensor<3x9x8xbf16>
    %y = stablehlo.convolution(%f, %w) {feature_group_count = 2}

Of floats of 16 bits, also widened ones, IREE 3.13 makes products of tensor cores for CUDA. Groups of images are the
innermost dimension but one of the result there, and it mixes up the rows and columns of such a product: most results
are other elements, or zeros. Source: XLA "batch_group_count".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.operations import integer
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.framework.passes import CUDA, PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

# What IREE multiplies by tensor cores; f32 where it was widened.
_TYPES = frozenset({"bf16", "f16", "f32"})


def has_groups_of_images(op: ir.Operation) -> bool:
    """Whether a ``convolution`` that tensor cores may compute has groups of images, of known sizes."""
    is_grouped = integer(op, "batch_group_count") > 1 and is_static(op)
    return is_grouped and Value(op.operands[0]).element_type.name in _TYPES


@pattern("stablehlo.convolution")
def by_features(op: ir.Operation) -> Replacement:
    """Groups of features for groups of images."""
    if not has_groups_of_images(op):
        return NoMatch("one group of images, sizes that are not known, or a type that no tensor core takes")
    groups, x = integer(op, "batch_group_count"), Value(op.operands[0])
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    images, features = numbers.input_batch_dimension, numbers.input_feature_dimension
    dims = list(x.dims)
    apart = x.reshape(*dims[:images], groups, dims[images] // groups, *dims[images + 1 :])
    order = [n + (n >= images) for n in range(len(dims))]
    order[images] = images + 1
    order.insert(features, images)
    dims[images] //= groups
    dims[features] *= groups
    grouped = apart.transpose(*order).reshape(*dims)
    made = ir.Operation.create(
        op.name,
        results=[op.results[0].type],
        operands=[grouped.ir, op.operands[1]],
        attributes={name: op.attributes[name] for name in op.attributes}
        | {"batch_group_count": _count(1), "feature_group_count": _count(groups)},
    )
    return Value(made.result)


def _count(number: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)


@register
@dataclass(frozen=True)
class LegalizeBatchGroups(PatternPass):
    """Make groups of features of a convolution's groups of images."""

    name: ClassVar[str] = "legalize-batch-groups"
    targets: ClassVar[frozenset[str]] = CUDA
    patterns: ClassVar[tuple[Pattern, ...]] = by_features
