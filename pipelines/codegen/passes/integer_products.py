"""``legalize-integer-products``: products of what integers of 8 bits represent, as products of these integers.

Before::

    %x = (convert(%q : tensor<5x64xui8>) - 128.0) * 0.5
    %w = convert(%k : tensor<64x8xi8>) * (broadcast %scales)          // %k is a constant
    %r = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : tensor<5x8xf32>

After, where ``%sums`` are those of the columns of ``%k``, times 128::

    %p = stablehlo.dot_general convert(%q), convert(%k), contracting_dims = [1] x [0] : tensor<5x8xi32>
    %r = convert(%p - (broadcast %sums)) * (broadcast %scales times 0.5)

The sum of integers is exact; that of floats before was rounded. A constant's zero point is subtracted here. The other
factor keeps its own, for which sums of the constant make up, and a convolution's padding is its zero point; where
there is no constant, factors less their zero points have 16 bits. Of a product of integers with other floats, the scale
multiplies the results. Products read their operands before a conversion
(``narrow_factors.py``), so that instructions for bytes compute them. Features of convolutions become the last
dimension, as these instructions have them, and elementwise operations on the result follow (``moved_dimensions.py``).
Source: ONNX "QLinearConv", "ConvInteger"; Jacob et al., "Quantization and Training of Neural Networks", 2.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.emission import emit, i64, i64_matrix, i64s
from hloforge.dialect.mlir import in_context, ir, stablehlo
from hloforge.dialect.operations import integer, integers, operations
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static, multiplies_nothing
from hloforge.pipelines.codegen.passes.integer_factors import (
    Array,
    Factor,
    Spread,
    factor_of,
    facts_of_parameters,
    in_dims,
    known,
    transposed,
)
from hloforge.pipelines.codegen.passes.moved_dimensions import follow
from hloforge.pipelines.evaluation.known import KnownValues
from hloforge.pipelines.framework.facts import NORMALIZED, Facts
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import replace as replace_op

_DOT, _CONVOLUTION = "stablehlo.dot_general", "stablehlo.convolution"
_RESULTS = frozenset({"f32", "f64", "s32", "s64"})
# What no sum of products exceeds in s32, and what a code less its zero point does not.
_MOST, _MOST_CODE = (1 << 31) - 1, 255
# Input features that instructions for bytes take at once.
_GROUP = 4


@dataclass(frozen=True)
class _Side:
    """A factor's integers as they are multiplied, and the zero point that is still to be subtracted."""

    codes: Value
    zero: Spread | None = None
    array: Array | None = None


def _side(factor: Factor, *, keeps_zero: bool) -> _Side:
    """A constant less its zero point in the narrowest type; others with theirs, or in 16 bits."""
    if factor.array is not None and (factor.zero is None or factor.zero.array is not None):
        centered = factor.array.astype(np.int16)
        if factor.zero is not None:
            assert factor.zero.array is not None
            centered = centered - in_dims(factor.zero.array, factor.zero.dims, centered.ndim).astype(np.int16)
        return _constant(centered)
    if factor.zero is None or keeps_zero:
        return _Side(factor.codes, factor.zero)
    wide = ops.convert_element_type(factor.codes, "s16")
    return _Side(wide - factor.zero.over(wide.dims, "s16"))


def _unsigned(factor: Factor, other: Factor) -> Factor:
    """Codes without a sign, as instructions take them beside those of a constant with one."""
    if factor.codes.element_type.name != "s8" or factor.array is not None or other.array is None:
        return factor
    if other.zero is not None or other.codes.element_type.name != "s8":
        return factor
    codes = ops.bitcast_convert_type(factor.codes, "u8")
    codes = ops.xor(codes, full(codes, 128))
    if factor.zero is None:
        return replace(factor, codes=codes, zero=known(np.asarray(128, np.int32)))
    if factor.zero.array is not None:
        return replace(factor, codes=codes, zero=known(factor.zero.array.astype(np.int32) + 128, factor.zero.dims))
    value = ops.convert_element_type(factor.zero.value, "s32")
    return replace(factor, codes=codes, zero=replace(factor.zero, value=value + full(value, 128)))


def _constant(centered: Array) -> _Side:
    low, high = centered.min(initial=0), centered.max(initial=0)
    dtype = np.int8 if low >= -128 and high <= 127 else np.uint8 if low >= 0 and high <= 255 else np.int16
    return _Side(constant(centered.astype(dtype)), array=centered)


def _may_overflow(depth: int, sides: Sequence[_Side], summed: Sequence[Sequence[int]]) -> bool:
    """Whether a sum of so many terms may leave s32."""
    most = float(depth) * _MOST_CODE * _MOST_CODE
    for side, dims in zip(sides, summed, strict=True):
        if side.array is not None:
            sums = np.abs(side.array.astype(np.int64)).sum(tuple(dims))
            most = min(most, float(sums.max(initial=0)) * _MOST_CODE)
    return most > _MOST


@dataclass(frozen=True)
class _Places:
    """Which dimension of the result a dimension of each factor becomes; None for those that are summed."""

    lhs: tuple[int | None, ...]
    rhs: tuple[int | None, ...]

    def allow(self, spread: Spread | None, places: Sequence[int | None]) -> bool:
        return spread is None or all(places[d] is not None for d in spread.dims)


def _of_dot(op: ir.Operation) -> tuple[_Places, list[int], list[int]]:
    """The places, and the dimensions of both factors that are summed."""
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    ranks = [Value(operand).rank for operand in op.operands]
    batches = list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)
    depths = list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)
    found: list[tuple[int | None, ...]] = []
    count = len(batches[0])
    for rank, batch, depth in zip(ranks, batches, depths, strict=True):
        places: list[int | None] = [None] * rank
        for number, d in enumerate(batch):
            places[d] = number
        for d in range(rank):
            if d not in (*batch, *depth):
                places[d] = count
                count += 1
        found.append(tuple(places))
    return _Places(found[0], found[1]), depths[0], depths[1]


def _attributes(op: Any) -> dict[str, Any]:
    found = {name: op.attributes[name] for name in op.attributes}
    found.pop("precision_config", None)
    return found


def _wide(value: Value) -> Value:
    return ops.convert_element_type(value, "s32")


def _product(op: ir.Operation, facts: KnownValues) -> Value | None:
    """What replaces a product; None for one that stays."""
    result = Value(op.results[0])
    if result.element_type.name not in _RESULTS or "algorithm" in op.attributes:
        return None
    if not is_static(op) or multiplies_nothing(op):
        return None
    factors = [factor_of(operand, facts) for operand in op.operands]
    left, right = factors
    if left is None or right is None:
        return _scaled(op, left, right) if op.name == _DOT else None
    if result.element_type.is_integer and (left.scale or right.scale):
        return None
    return (_dot if op.name == _DOT else _convolution)(op, left, right)


def _scaled(op: ir.Operation, left: Factor | None, right: Factor | None) -> Value | None:
    """A product with integers of which only one factor is made: their scale multiplies its results."""
    number, factor = (0, left) if left is not None else (1, right)
    if factor is None or factor.scale is None or Value(op.results[0]).element_type.name not in ("f32", "f64"):
        return None
    places, *_ = _of_dot(op)
    where = (places.lhs, places.rhs)[number]
    if not places.allow(factor.scale, where) or (factor.zero is not None and factor.array is None):
        return None
    operands = [Value(operand) for operand in op.operands]
    side = _side(factor, keeps_zero=False)
    operands[number] = ops.convert_element_type(side.codes, operands[number].element_type)
    attributes = {name: op.attributes[name] for name in op.attributes}
    numbers = emit(_DOT, operands, Value(op.results[0]).shape, **attributes)
    return numbers * factor.scale.moved(_numbers(where)).over(numbers.dims, numbers.element_type)


def _dot(op: ir.Operation, left: Factor, right: Factor) -> Value | None:
    places, *depths = _of_dot(op)
    result = Value(op.results[0])
    if not (places.allow(left.scale, places.lhs) and places.allow(right.scale, places.rhs)):
        return None
    if places.allow(left.zero, places.lhs):
        left = _unsigned(left, right)
    are_known = left.array is not None, right.array is not None
    sides = [
        _side(factor, keeps_zero=is_known and places.allow(factor.zero, where))
        for factor, is_known, where in ((left, are_known[1], places.lhs), (right, are_known[0], places.rhs))
    ]
    depth = prod(Value(op.operands[0]).dims[d] for d in depths[0])
    if _may_overflow(depth, sides, depths):
        return None
    sums = emit(_DOT, [_wide(side.codes) for side in sides], Shape.array("s32", *result.dims), **_attributes(op))
    for side, other, where, across, summed in (
        (sides[0], sides[1], places.lhs, places.rhs, depths[1]),
        (sides[1], sides[0], places.rhs, places.lhs, depths[0]),
    ):
        if side.zero is not None:
            assert other.array is not None
            totals = other.array.astype(np.int64).sum(tuple(summed))
            kept = [d for d in across if d is not None]
            sums = _made_up(sums, side.zero.moved(_numbers(where)), totals, kept)
    return _represented(
        sums,
        result,
        left.scale and left.scale.moved(_numbers(places.lhs)),
        right.scale and right.scale.moved(_numbers(places.rhs)),
    )


def _numbers(places: Sequence[int | None]) -> list[int]:
    """Of dimensions of which none that is summed is looked at."""
    return [-1 if place is None else place for place in places]


def _made_up(sums: Value, zero: Spread, totals: Array, dims: Sequence[int]) -> Value:
    """``sums - zero * totals``, modulo 2³²; totals go along these dimensions of the result."""
    if zero.array is not None and not zero.dims:
        products = (totals * int(zero.array)).astype(np.int64).astype(np.uint32).view(np.int32)
        return sums - known(products, dims).over(sums.dims, "s32") if products.any() else sums
    wrapped = known(totals.astype(np.uint32).view(np.int32), dims)
    return sums - zero.over(sums.dims, "s32") * wrapped.over(sums.dims, "s32")


def _represented(sums: Value, result: Value, *scales: Spread | None) -> Value:
    """The numbers that sums represent, in the result's type."""
    row = result.element_type
    numbers = ops.convert_element_type(sums, row) if row != sums.element_type else sums
    one, other = scales
    if one and other and one.array is not None and other.array is not None and 0 in (one.array.ndim, other.array.ndim):
        # As programs of integers multiply them, before the sums.
        vector = one if one.dims else other
        scales = (known(one.array.astype(row.dtype) * other.array.astype(row.dtype), vector.dims),)
    for scale in scales:
        if scale is not None:
            numbers = numbers * scale.over(numbers.dims, row)
    return numbers


# Convolutions


def _convolution(op: ir.Operation, left: Factor, right: Factor) -> Value | None:
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    image_dims = [
        numbers.input_batch_dimension,
        *numbers.input_spatial_dimensions,
        numbers.input_feature_dimension,
    ]
    kernel_dims = [
        *numbers.kernel_spatial_dimensions,
        numbers.kernel_input_feature_dimension,
        numbers.kernel_output_feature_dimension,
    ]
    out_dims = [
        numbers.output_batch_dimension,
        *numbers.output_spatial_dimensions,
        numbers.output_feature_dimension,
    ]
    rank = len(image_dims)
    left, right = _arranged(left, image_dims), _arranged(right, kernel_dims)
    if (left.scale and left.scale.dims) or (right.scale and right.scale.dims not in ((), (rank - 1,))):
        return None
    window = _Window.of(op, rank - 2)
    # Zeros between pixels are pixels that represent zero: these convolutions leave them out.
    keeps = (
        right.array is not None
        and not (left.zero and left.zero.dims)
        and set(window.bases) == {1}
        and window.batch_groups == 1
    )
    if keeps and (left.zero is not None or not any(map(any, window.padding))):
        left = _unsigned(left, right)
    image, kernel = _side(left, keeps_zero=keeps), _side(right, keeps_zero=False)
    depth = prod(right.codes.dims[:-1])
    summed = list(range(rank - 1))
    if _may_overflow(depth, (_Side(image.codes), kernel), (summed, summed)):
        return None
    codes = image.codes
    if image.zero is not None and any(map(any, window.padding)):
        value = ops.convert_element_type(image.zero.value, codes.element_type)
        codes = ops.pad(codes, value, [(0, 0), *window.padding, (0, 0)])
        window = replace(window, padding=((0, 0),) * (rank - 2))
    features = codes.dims[-1]
    weights = kernel.codes
    if window.groups == window.batch_groups == 1 and 1 < features < _GROUP and kernel.array is not None:
        # Instructions take four features at once; those that are added meet weights of zero.
        more = _GROUP - features
        codes = ops.pad(codes, 0, [(0, 0)] * (rank - 1) + [(0, more)])
        weights = constant(
            np.pad(kernel.array, [(0, 0)] * (rank - 2) + [(0, more), (0, 0)]).astype(kernel.codes.element_type.dtype)
        )
    result = Value(op.results[0])
    shape = Shape.array("s32", *(result.dims[d] for d in out_dims))
    sums = emit(_CONVOLUTION, [_wide(codes), _wide(weights)], shape, **window.attributes(rank))
    if image.zero is not None:
        assert kernel.array is not None
        sums = _made_up(sums, image.zero, kernel.array.astype(np.int64).sum(tuple(summed)), [rank - 1])
    scales = (left.scale, right.scale and replace(right.scale, dims=tuple(rank - 1 for _ in right.scale.dims)))
    found = _represented(sums, result, *scales)
    order = [out_dims.index(d) for d in range(rank)]
    return found if order == list(range(rank)) else ops.transpose(found, order)


def _arranged(factor: Factor, order: Sequence[int]) -> Factor:
    """A factor with its dimensions in another order."""
    places = [list(order).index(d) for d in range(len(order))]
    zero, scale = (part.moved(places) if part else None for part in (factor.zero, factor.scale))
    array = None if factor.array is None else np.transpose(factor.array, order)
    return Factor(transposed(factor.codes, order), zero, scale, array)


@dataclass(frozen=True)
class _Window:
    """The attributes of a convolution."""

    padding: tuple[tuple[int, int], ...]
    bases: tuple[int, ...]
    groups: int
    batch_groups: int
    others: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, op: ir.Operation, spatial: int) -> _Window:
        has = op.attributes
        edges = np.array(has["padding"]).reshape(spatial, 2) if "padding" in has else np.zeros((spatial, 2), int)
        others = [(name, has[name]) for name in ("window_strides", "rhs_dilation", "window_reversal") if name in has]
        return cls(
            tuple((int(low), int(high)) for low, high in edges),
            tuple(integers(op, "lhs_dilation") or [1] * spatial),
            integer(op, "feature_group_count"),
            integer(op, "batch_group_count"),
            tuple(others),
        )

    def attributes(self, rank: int) -> dict[str, Any]:
        """With features last."""
        middle = list(range(1, rank - 1))
        spatial = list(range(rank - 2))
        numbers = stablehlo.ConvDimensionNumbers.get(
            0, rank - 1, middle, rank - 2, rank - 1, spatial, 0, rank - 1, middle
        )
        return dict(self.others) | {
            "dimension_numbers": numbers,
            "padding": i64_matrix(self.padding, 2),
            "lhs_dilation": i64s(self.bases),
            "feature_group_count": i64(self.groups),
            "batch_group_count": i64(self.batch_groups),
        }


@register
@dataclass(frozen=True)
class LegalizeIntegerProducts(Pass):
    """Multiply the integers of 8 bits that represent the factors of products and convolutions."""

    name: ClassVar[str] = "legalize-integer-products"
    requires: ClassVar[Facts] = NORMALIZED
    needs: ClassVar[frozenset[str]] = frozenset({_DOT, _CONVOLUTION})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            facts = facts_of_parameters()
            for op in operations(module, {_DOT, _CONVOLUTION}):
                with ir.InsertionPoint(op), op.location:
                    found = _product(op, facts)
                if found is not None:
                    replace_op(op, [found])
                    follow(found)
