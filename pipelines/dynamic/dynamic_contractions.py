"""``legalize-dynamic-contractions``: dots and convolutions over sizes known only at a call.

Before::

    %r = stablehlo.convolution(%x, %k) ... : (tensor<?x?x?x3xf32>, tensor<3x3x3x5xf32>) -> tensor<?x?x?x5xf32>

After::

    %r = linalg.generic ... [(n, h, w, o, y, x, i) -> (n, h + y, w + x, i), (...) -> (y, x, i, o)] ...

IREE 3.13 takes dynamic convolutions in the batch alone, and dots in the form of matrix products, of at most one batch.
Source: StableHLO spec "convolution", "dot_general".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.mlir import AnyOp, ir, stablehlo
from hloforge.dialect.operations import integer, integers
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.dynamic.contractions import can_multiply, sum_of_products
from hloforge.pipelines.framework import generics as at
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


def _is_taken(op: AnyOp) -> bool:
    return all(can_multiply(value.type.element_type) for value in (*op.operands, *op.results))


@pattern("stablehlo.dot_general")
def dot_by_maps(op: ir.Operation) -> Replacement:
    """A dot_general of dynamic sizes that is no product of matrices, or of batches of them -> linalg.generic."""
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    summed = [list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)]
    batch = [list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)]
    ranks = [operand.type.rank for operand in op.operands]
    free = [[d for d in range(rank) if d not in b + s] for rank, b, s in zip(ranks, batch, summed, strict=True)]
    count = len(batch[0])
    of_matrices = count <= 1 and all(len(dims) == 1 for dims in (summed[0], *free))
    if is_static(op) or of_matrices or not _is_taken(op):
        return NoMatch("IREE takes it, or its element types are not multiplied here")
    arrays = [at.signless(operand) for operand in op.operands]
    kept = count + len(free[0]) + len(free[1])
    starts = (count, count + len(free[0]))
    maps, sizes = [], [at.size_at(arrays[0], d) for d in batch[0]]
    for side, array in enumerate(arrays):
        places = {d: number for number, d in enumerate(batch[side])}
        places |= {d: starts[side] + number for number, d in enumerate(free[side])}
        places |= {d: kept + number for number, d in enumerate(summed[side])}
        dims = [ir.AffineExpr.get_dim(places[d]) for d in range(array.type.rank)]
        maps.append(ir.AffineMap.get(kept + len(summed[0]), 0, dims))
        sizes += [at.size_at(array, d) for d in free[side]]
    elements = [value.type.element_type for value in (*op.operands, *op.results)]
    made = sum_of_products(arrays, elements, maps, at.as_declared(sizes, op.results[0].type), len(summed[0]))
    return at.restored(made, op.results[0].type)


@pattern("stablehlo.convolution")
def convolution_by_maps(op: Any) -> Replacement:
    """A convolution of dynamic space without padding -> linalg.generic."""
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    image, kernel = map(at.signless, op.operands)
    where = list(numbers.input_spatial_dimensions)
    groups, batch_groups = (integer(op, f"{name}_group_count") for name in ("feature", "batch"))
    if not any(image.type.is_dynamic_dim(d) for d in where) or batch_groups != 1 or not _is_taken(op):
        return NoMatch("IREE takes it, or it is in a form that is not taken here")
    if any(bool(flag) for flag in op.attributes["window_reversal"]) if "window_reversal" in op.attributes else False:
        return NoMatch("a reversed window")
    space, type_ = len(where), op.results[0].type
    strides = integers(op, "window_strides") or [1] * space
    dilations = integers(op, "rhs_dilation") or [1] * space
    outputs = int(kernel.type.get_dim_size(numbers.kernel_output_feature_dimension)) // groups
    inputs = int(kernel.type.get_dim_size(numbers.kernel_input_feature_dimension))
    # (result's dimensions..., window..., input feature); a group is a range of output and of input features.
    rank = type_.rank + space + 1
    dims = [ir.AffineExpr.get_dim(d) for d in range(rank)]
    window = dims[type_.rank : -1]
    feature: ir.AffineExpr = dims[-1]
    out = dims[numbers.output_feature_dimension]
    if groups > 1:
        feature = ir.AffineExpr.get_floor_div(out, outputs) * inputs + feature
    image_places: list[Any] = [None] * image.type.rank
    kernel_places: list[Any] = [None] * kernel.type.rank
    image_places[numbers.input_batch_dimension] = dims[numbers.output_batch_dimension]
    image_places[numbers.input_feature_dimension] = feature
    kernel_places[numbers.kernel_input_feature_dimension] = dims[-1]
    kernel_places[numbers.kernel_output_feature_dimension] = out
    sizes: list[at.Number] = [0] * type_.rank
    sizes[numbers.output_batch_dimension] = at.size_at(image, numbers.input_batch_dimension)
    sizes[numbers.output_feature_dimension] = at.size_at(kernel, numbers.kernel_output_feature_dimension)
    for number, (at_image, at_kernel, at_result) in enumerate(
        zip(where, numbers.kernel_spatial_dimensions, numbers.output_spatial_dimensions, strict=True)
    ):
        image_places[at_image] = dims[at_result] * strides[number] + window[number] * dilations[number]
        kernel_places[at_kernel] = window[number]
        extent = at.add(at.multiply(at.subtract(at.size_at(kernel, at_kernel), 1), dilations[number]), 1)
        room = at.subtract(at.size_at(image, at_image), extent)
        # Room for no window at all is negative, and rounds toward 0.
        sizes[at_result] = at.maximum(0, at.divide(at.add(room, strides[number]), strides[number]))
    maps = [ir.AffineMap.get(rank, 0, places) for places in (image_places, kernel_places)]
    elements = [value.type.element_type for value in (*op.operands, *op.results)]
    made = sum_of_products([image, kernel], elements, maps, at.as_declared(sizes, type_), space + 1)
    return at.restored(made, type_)


@register
@dataclass(frozen=True)
class LegalizeDynamicContractions(PatternPass):
    """Lower dots and convolutions of dynamic sizes that IREE does not support."""

    name: ClassVar[str] = "legalize-dynamic-contractions"
    patterns: ClassVar[tuple[Pattern, ...]] = (*dot_by_maps, *convolution_by_maps)
