"""Convolutions of windows that do not overlap, and their gradients by weights, by dimensions that are taken apart.

Before, patches of 16 positions that follow each other::

    %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [16]}
      : (tensor<8x3x512xbf16>, tensor<64x3x16xbf16>) -> tensor<8x64x32xf32>

After: the number of a patch, and the position in it::

    %p = stablehlo.reshape %x : (tensor<8x3x512xbf16>) -> tensor<8x3x32x16xbf16>
    %v = stablehlo.reshape %w : (tensor<64x3x16xbf16>) -> tensor<64x3x1x16xbf16>
    %s = stablehlo.convolution(%p, %v) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]
      : (tensor<8x3x32x16xbf16>, tensor<64x3x1x16xbf16>) -> tensor<8x64x32x1xf32>
    %r = stablehlo.reshape %s : (tensor<8x64x32x1xf32>) -> tensor<8x64x32xf32>

Along the first the window has one position, and along the second it is as large as the image, so that a product is left
(``convolutions_as_products.py``). Of the gradient by the weights the positions in a patch are the results. Source:
StableHLO spec "convolution".

Factors of bf16 are gathered in pairs, which pays if a patch has a few elements beside each other. One core of a Zen 5,
us before and after: patches of 16x16 of two images of 3x224x224 1,124 and 514, of 14x14 of one 411 and 156, of 8x8 of
32x56x56 144 and 43; gradients by their weights 2,010 and 508, 604 and 163, 153 and 80. Convolutions of f32 are as fast,
but for gradients by weights of long patches: 14x14 537 and 265, 8x8 380 and 202. So are gradients by the image.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.emission import emit, i64_matrix
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.values import Value
from hloforge.pipelines.codegen.passes.convolutions_as_products import Dimension, dimensions, has_one_group
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, pattern

# Elements of a patch that have to lie beside each other in the image; of gradients by weights a pair, or as many as
# follow.
_RUN, _PAIR, _LONG_RUN = 4, 2, 8
# Features that fill vectors.
_VECTOR = 16
_RANK_OF_IMAGES = 4


@dataclass(frozen=True)
class _Apart:
    """A spatial dimension as one or two, of which the first counts patches.

    Attributes:
        image, window, result: sizes; one size each, or two.
        edges: how many positions of padding are before and after each of them.
        steps: strides of windows, of positions in a window, and of elements, of each of them.
        is_reversed: whether the window is, along each of them.
    """

    image: tuple[int, ...]
    window: tuple[int, ...]
    result: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    steps: tuple[tuple[int, int, int], ...]
    is_reversed: tuple[bool, ...]


@pattern("stablehlo.convolution")
def in_patches(op: ir.Operation) -> Replacement:
    """Take apart what counts patches and what is in one."""
    if not has_one_group(op):
        return NoMatch("of unknown or no size, or of groups")
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    found = dimensions(op, numbers)
    apart = [_apart(one) for one in found]
    if not any(apart) or not all(
        two or one.is_batch or one.is_point or one.is_whole for one, two in zip(found, apart, strict=True)
    ):
        return NoMatch("windows that overlap or have gaps")
    if not _gains(op, numbers, apart):
        return NoMatch("a convolution that is as fast")
    parts = [two or _kept(one) for one, two in zip(found, apart, strict=True)]
    image, kernel = map(Value, op.operands)
    result = Value(op.results[0])
    sizes = list(image.dims)
    for place, part in zip(numbers.input_spatial_dimensions, parts, strict=True):
        sizes[place] = math.prod(part.image)
    if sizes != list(image.dims):
        image = ops.slice(image, [0] * image.rank, sizes)
    images = _Places.of(sizes, numbers.input_spatial_dimensions, [part.image for part in parts])
    kernels = _Places.of(kernel.dims, numbers.kernel_spatial_dimensions, [part.window for part in parts])
    results = _Places.of(result.dims, numbers.output_spatial_dimensions, [part.result for part in parts])
    steps = [step for part in parts for step in part.steps]
    attributes = {name: op.attributes[name] for name in op.attributes} | {
        "dimension_numbers": stablehlo.ConvDimensionNumbers.get(
            *images.numbers(numbers.input_batch_dimension, numbers.input_feature_dimension),
            *kernels.numbers(numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension),
            *results.numbers(numbers.output_batch_dimension, numbers.output_feature_dimension),
        ),
        "padding": i64_matrix([list(edge) for part in parts for edge in part.edges], 2),
        "window_reversal": ir.DenseBoolArrayAttr.get([turned for part in parts for turned in part.is_reversed]),
        "window_strides": ir.DenseI64ArrayAttr.get([stride for stride, _, _ in steps]),
        "rhs_dilation": ir.DenseI64ArrayAttr.get([inner for _, inner, _ in steps]),
        "lhs_dilation": ir.DenseI64ArrayAttr.get([gaps for _, _, gaps in steps]),
    }
    made = emit(
        "stablehlo.convolution",
        [ops.reshape(image, images.sizes), ops.reshape(kernel, kernels.sizes)],
        ir.RankedTensorType.get(results.sizes, ir.RankedTensorType(op.results[0].type).element_type),
        **attributes,
    )
    return ops.reshape(made, result.dims)


def _gains(op: ir.Operation, numbers: Any, apart: Sequence[_Apart | None]) -> bool:
    """Whether a product is faster."""
    image, kernel = map(Value, op.operands)
    kinds = {str(operand.element_type) for operand in (image, kernel)}
    if any(part.result[1] > 1 for part in apart if part):  # the gradient by the weights, which sums over the batch
        features = numbers.input_batch_dimension
        run = _run(image, features, numbers, apart)
        is_long = run >= _LONG_RUN
        if kinds == {"f32"}:
            return is_long and image.rank <= _RANK_OF_IMAGES
        return kinds == {"bf16"} and (is_long or run <= _PAIR or image.dims[features] < _VECTOR)
    is_wide = kernel.dims[numbers.kernel_output_feature_dimension] >= _VECTOR
    return kinds == {"bf16"} and is_wide and _run(image, numbers.input_feature_dimension, numbers, apart) >= _RUN


def _run(image: Value, features: int, numbers: Any, apart: Sequence[_Apart | None]) -> int:
    """How many elements of a patch, with its features, lie beside each other."""
    by_place: dict[int, _Apart | None] = dict(zip(numbers.input_spatial_dimensions, apart, strict=True))
    run = 1
    for place in reversed(range(image.rank)):
        if place == features:
            run *= image.dims[place]
            continue
        part = by_place.get(place)
        if part is None:
            return run
        run *= part.image[1]
        if part.image[0] > 1:
            return run
    return run


def _apart(one: Dimension) -> _Apart | None:
    """A dimension along which windows, or what their gradients sum, lie side by side; none if it is another."""
    window, result, (stride, inner, gaps) = one.window, one.result, one.steps
    plain, back = ((1, 1, 1), (1, 1, 1)), one.is_reversed
    if one.low == 0 and one.high <= 0 and window > 1 and gaps == 1:
        if (stride, inner) == (window, 1) and result * window <= one.image:
            return _Apart((result, window), (1, window), (result, 1), ((0, 0), (0, 0)), plain, (False, back))
        if (stride, inner) == (1, result) and result > 1 and window * result <= one.image:
            return _Apart((window, result), (window, 1), (1, result), ((0, 0), (0, 0)), plain, (back, False))
    return None


def _kept(one: Dimension) -> _Apart:
    edges = ((one.low, one.high),)
    return _Apart((one.image,), (one.window,), (one.result,), edges, (one.steps,), (one.is_reversed,))


@dataclass(frozen=True)
class _Places:
    """The sizes of an array with some dimensions apart, where its spatial ones are then, and where each one begins."""

    sizes: list[int]
    spatial: list[int]
    begins: list[int]

    @staticmethod
    def of(dims: Sequence[int], spatial: Sequence[int], parts: Sequence[tuple[int, ...]]) -> _Places:
        by_place = dict(zip(spatial, parts, strict=True))
        sizes: list[int] = []
        begins: list[int] = []
        for place, size in enumerate(dims):
            begins.append(len(sizes))
            sizes += by_place.get(place, (size,))
        found = [begins[place] + n for place, part in zip(spatial, parts, strict=True) for n in range(len(part))]
        return _Places(sizes, found, begins)

    def numbers(self, first: int, second: int) -> tuple[int, int, list[int]]:
        """As dimension numbers have them: two dimensions that are not spatial, and the spatial ones."""
        return self.begins[first], self.begins[second], self.spatial
