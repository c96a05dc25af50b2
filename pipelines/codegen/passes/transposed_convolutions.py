"""``legalize-transposed-convolutions``: transposed convolutions of few features as one product and shifted sums.

Before, with gaps between the pixels, of which each phase of the result reads some positions of the window::

    %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
      window = {pad = [[2, 2]], lhs_dilate = [2]} : (tensor<8x14x64xf32>, tensor<3x64x4xf32>) -> tensor<8x29x4xf32>

After, every pixel times all weights, of which phases add up those that meet::

    %y = stablehlo.dot_general %pixels, %weights : (tensor<112x64xf32>, tensor<64x12xf32>) -> tensor<112x12xf32>
    %even = stablehlo.add (%y of position 0, shifted), (%y of position 2, shifted) : tensor<8x15x4xf32>
    %odd = %y of position 1 : tensor<8x15x4xf32>
    %r = stablehlo.slice (%even and %odd in turn : tensor<8x30x4xf32>)

A phase alone is a convolution whose columns are the output features: with a few of them, vectors are mostly empty, and
phases of different windows have little in common. All positions together fill vectors. Features are last. Others whose
size is no multiple of the gaps become longer by less than a gap, and what is too much is cut: phases of equal numbers
of results are computed without the zeros in the gaps. Source: the
``col2im`` of Chellapilla, Puri and Simard, "High Performance Convolutional Neural Networks for Document Processing".
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.emission import emit, i64_matrix
from hloforge.dialect.idioms import zeros
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.canonical_order import InOrder
from hloforge.pipelines.analysis.forms import is_static, multiplies_nothing
from hloforge.pipelines.codegen.passes.convolutions_as_products import Dimension, dimensions, number_of
from hloforge.pipelines.framework.facts import NORMALIZED, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

# Output features that fill vectors: so many of whole vectors, or so many that the last one, which overlaps, counts
# little. Zen 3, 64 features of 24x24 by 4x4, one thread, phases and shifted sums in us: 16 250 and 330, 20 740 and 550,
# 36 740 and 840.
_VECTOR, _FULL, _MANY = 8, 16, 32
# Input features from which on products are worth their sums; elements of an image's products, which go through memory
# once more.
_LEAST, _MOST = 8, 1 << 24


@pattern("stablehlo.convolution")
def as_shifted_sums(op: ir.Operation) -> Replacement:
    """A convolution of an image with gaps between its pixels."""
    if not is_static(op) or multiplies_nothing(op):
        return NoMatch("of unknown or no size")
    if any(Value(value).element_type.name not in ("f32", "f64") for value in (*op.operands, op.results[0])):
        return NoMatch("sums that are rounded")
    if number_of(op, "batch_group_count") > 1:
        return NoMatch("groups of images")
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    found, groups = dimensions(op, numbers), number_of(op, "feature_group_count")
    if any(one.steps[0] != 1 for one in found) or all(one.steps[2] == 1 for one in found):
        return NoMatch("strides, or no gaps between pixels")
    if any(one.window > one.steps[2] == 1 for one in found):
        return NoMatch("windows along a dimension without gaps")
    kernel = Value(op.operands[1]).dims
    inputs, outputs = kernel[numbers.kernel_input_feature_dimension], kernel[numbers.kernel_output_feature_dimension]
    is_last = numbers.output_feature_dimension == len(found) + 1
    # Phases that kernels compute where they are.
    in_place = all(one.steps[1] == 1 and one.window >= one.steps[2] for one in found)
    if in_place and (groups > 1 or not is_last):
        return NoMatch("groups, or features that are not last")
    is_even = all(one.window % one.steps[2] == 0 for one in found)
    fills_vectors = outputs >= _MANY or (outputs >= _FULL and outputs % _VECTOR == 0)
    if inputs < _LEAST or (in_place and is_even and fills_vectors):
        return NoMatch("few terms, or phases of equal windows whose columns fill vectors")
    if prod(one.image * one.window for one in found) * outputs > _MOST:
        return NoMatch("more products than are worth their memory")
    ordered, windows = InOrder.of(op), [one.window for one in found]
    rank, image, own = len(windows), ordered.image, outputs // groups
    weights = ops.reshape(ordered.forwards(op), [*windows, inputs, groups, own])
    weights = ops.transpose(weights, [rank + 1, rank, *range(rank), rank + 2])
    weights = ops.reshape(weights, [groups, inputs, prod(windows) * own])
    pixels = ops.reshape(image, [prod(image.dims) // (groups * inputs), groups, inputs])
    product = _product(op, ops.transpose(pixels, [1, 0, 2]), weights, is_last)
    beside = ops.transpose(ops.reshape(product, [groups, pixels.dims[0], prod(windows), own]), [1, 2, 0, 3])
    products = ops.reshape(beside, [*image.dims[:-1], *windows, outputs])
    return ordered.result(_in_turn(products, found, image.dims[0], outputs))


def _product(op: ir.Operation, pixels: Value, weights: Value, last: bool) -> Value:
    """Of each group; a single one is no dimension. In memory features are last, or first, as those of the result."""
    count = pixels.dims[0]
    factors = (pixels, weights) if last else (ops.transpose(weights, [0, 2, 1]), ops.transpose(pixels, [0, 2, 1]))
    dims, batch = [count, factors[0].dims[1], factors[1].dims[2]], [0]
    if count == 1:
        factors = (ops.reshape(factors[0], factors[0].dims[1:]), ops.reshape(factors[1], factors[1].dims[1:]))
        dims, batch = dims[1:], []
    attributes = {"precision_config": op.attributes["precision_config"]} if "precision_config" in op.attributes else {}
    product = emit(
        "stablehlo.dot_general",
        list(factors),
        ir.RankedTensorType.get(dims, ir.RankedTensorType(op.results[0].type).element_type),
        dot_dimension_numbers=stablehlo.DotDimensionNumbers.get(batch, batch, [len(dims) - 1], [len(dims) - 2]),
        **attributes,
    )
    return product if last else ops.transpose(product, [*batch, len(dims) - 1, len(dims) - 2])


@pattern("stablehlo.convolution")
def of_equal_phases(op: ir.Operation) -> Replacement:
    """One whose size is no multiple of the gaps: a longer one, which has as many results of each phase, is cut."""
    if not is_static(op) or multiplies_nothing(op):
        return NoMatch("of unknown or no size")
    result = Value(op.results[0])
    if any(Value(value).element_type.name not in ("f32", "f64") for value in (*op.operands, op.results[0])):
        return NoMatch("sums that are rounded")
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    found = dimensions(op, numbers)
    if any(one.steps[2] > 1 and one.steps[:2] != (1, 1) for one in found):
        return NoMatch("strides or windows with gaps")
    more = [-one.result % one.steps[2] for one in found]
    if not any(more):
        return NoMatch("phases of equal numbers of results")
    sizes = list(result.dims)
    for count, d in zip(more, numbers.output_spatial_dimensions, strict=True):
        sizes[d] += count
    edges = [[one.low, one.high + count] for one, count in zip(found, more, strict=True)]
    attributes = {name: op.attributes[name] for name in op.attributes} | {"padding": i64_matrix(edges, 2)}
    made: Any = ir.Operation.create(
        "stablehlo.convolution",
        results=[ir.RankedTensorType.get(sizes, ir.RankedTensorType(result.ir.type).element_type)],
        operands=list(op.operands),
        attributes=attributes,
    )
    return [ops.slice(Value(made.results[0]), [0] * len(sizes), list(result.dims))]


def _in_turn(products: Value, found: Sequence[Dimension], batch: int, outputs: int) -> Value:
    """The result: phases along each dimension take turns.

    Args:
        products: of each image, pixel, position of the window and feature.
    """
    sizes = [-(-one.result // one.steps[2]) for one in found]
    turns = itertools.product(*(range(one.steps[2]) for one in found))
    phases = [_phase(products, found, which, [batch, *sizes, outputs]) for which in turns]
    # Phases, innermost dimension first, beside the places along it.
    for d in reversed(range(len(found))):
        count = found[d].steps[2]
        groups = [phases[first : first + count] for first in range(0, len(phases), count)]
        phases = [_joined(group, 2 + d) for group in groups]
    whole = ops.reshape(
        phases[0], [batch, *(size * one.steps[2] for size, one in zip(sizes, found, strict=True)), outputs]
    )
    limits = [batch, *(one.result for one in found), outputs]
    return whole if whole.dims == tuple(limits) else ops.slice(whole, [0] * whole.rank, limits)


def _joined(arrays: Sequence[Value], along: int) -> Value:
    """Arrays along a new dimension."""
    apart = [ops.reshape(array, [*array.dims[:along], 1, *array.dims[along:]]) for array in arrays]
    return ops.concat_in_dim(apart, along) if len(apart) > 1 else apart[0]


def _phase(products: Value, found: Sequence[Dimension], which: Sequence[int], dims: Sequence[int]) -> Value:
    """The sums of one phase: result ``m * d + phase`` reads position ``a`` at ``m + (phase - low + a * gap) / d``."""
    count = len(found)
    meeting = [
        [a for a in range(one.window) if (phase - one.low + a * one.steps[1]) % one.steps[2] == 0]
        for one, phase in zip(found, which, strict=True)
    ]
    terms = []
    for positions in itertools.product(*meeting):
        starts = [0] * (1 + count) + list(positions) + [0]
        limits = [*products.dims[: 1 + count], *(a + 1 for a in positions), products.dims[-1]]
        term = ops.reshape(ops.slice(products, starts, limits), [*products.dims[: 1 + count], products.dims[-1]])
        edges = [(0, 0, 0)]
        for one, phase, a, size in zip(found, which, positions, dims[1:], strict=False):
            shift = (phase - one.low + a * one.steps[1]) // one.steps[2]
            edges.append((-shift, size - one.image + shift, 0))
        terms.append(ops.pad(term, 0, [*edges, (0, 0, 0)]))
    return reduce(ops.add, terms) if terms else zeros(products.element_type, dims)


@register
@dataclass(frozen=True)
class LegalizeTransposedConvolutions(PatternPass):
    """Pixels are multiplied by all positions of the window at once."""

    name: ClassVar[str] = "legalize-transposed-convolutions"
    requires: ClassVar[Facts] = NORMALIZED
    patterns: ClassVar[tuple[Pattern, ...]] = as_shifted_sums + of_equal_phases
