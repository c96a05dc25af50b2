"""``legalize-requantization``: sums of products of integers, scaled, rounded and stored as integers again.

Before, of sums ``%s`` in s32 that a product of integers made::

    %x = convert(%s) * 0.25 + (broadcast %bias)                            : tensor<5x8xf32>
    %q = convert(convert(clamp(0, round_nearest_even(%x / 0.5) + 128, 255) : s32) : ui8)

After, where the bias is a whole number of units of the sums, ``%units``::

    %n = convert(clamp(-128, convert(%s + (broadcast %units)) * 0.5, 127)) {hloforge.nearest} : tensor<5x8xi32>
    %q = convert(%n + 128 : ui8)

This is how runtimes of quantized models compute it: one multiplication, by the quotient of scales. What the product was
rounded to before may differ by its last bit, so that a tie may be rounded to the other side. A conversion keeps within
its type's range by itself.
Source: ONNX "QLinearConv"; XNNPACK "qs8-requantization".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.emission import emit
from hloforge.dialect.marks import NEAREST
from hloforge.dialect.mlir import SSAValue, ir, stablehlo
from hloforge.dialect.operations import defining_op
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.pipelines.codegen.passes.integer_factors import (
    Array,
    facts_of_parameters,
    in_dims,
    known,
    spread_of,
)
from hloforge.pipelines.evaluation.known import KnownValues
from hloforge.pipelines.framework.facts import NORMALIZED, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

_PRODUCTS = ("stablehlo.dot_general", "stablehlo.convolution")
# Operations between sums and what is rounded.
_DEEP = 16
# What sums and a bias stay below, so that they are exact together.
_MOST, _MOST_OF_TERM = 1 << 30, 1 << 16
# How far from a whole number of units a bias may be, of its size and at least: both scales are rounded.
_NEAR, _LEAST_NEAR = 2.0**-21, 2.0**-10


@dataclass(frozen=True)
class _Scaled:
    """``clamped(convert(sums) * scale + offset)``, where arrays have the form that numpy broadcasts.

    Attributes:
        sums: in s32.
        units: whole numbers that are still to be added to them.
        clamps: bounds in their order, each with whether it is a lower one.
    """

    sums: Value
    units: Array
    scale: Array
    offset: Array
    clamps: tuple[tuple[bool, Array], ...] = ()
    steps: int = 0

    def times(self, change: Callable[[Array], Array]) -> _Scaled:
        clamps = tuple((is_low, change(bound)) for is_low, bound in self.clamps)
        return replace(self, scale=change(self.scale), offset=change(self.offset), clamps=clamps, steps=self.steps + 1)

    def plus(self, addend: Array) -> _Scaled:
        clamps = tuple((is_low, bound + addend) for is_low, bound in self.clamps)
        return replace(self, offset=self.offset + addend, clamps=clamps, steps=self.steps + 1)


def _scaled(value: SSAValue, facts: KnownValues, left: int) -> _Scaled | None:
    op = defining_op(value)
    if op is None or not left:
        return None
    name = op.name.removeprefix("stablehlo.")
    if name == "convert":
        return _sums(op.operands[0], facts)
    if name == "clamp":
        low, operand, high = op.operands
        inner = _scaled(operand, facts, left - 1)
        bounds = [_number(bound, facts) for bound in (low, high)]
        if inner is None or any(bound is None or bound.size != 1 for bound in bounds):
            return None
        ends = tuple((not place, bound.reshape(())) for place, bound in enumerate(bounds) if bound is not None)
        return replace(inner, clamps=(*inner.clamps, *ends))
    if name not in ("multiply", "divide", "add", "subtract", "maximum", "minimum"):
        return None
    one, other = op.operands
    inner, number = _scaled(one, facts, left - 1), _number(other, facts)
    if (inner is None or number is None) and name not in ("divide", "subtract"):
        inner, number = _scaled(other, facts, left - 1), _number(one, facts)
    if inner is None or number is None or not np.isfinite(number).all():
        return None
    if name in ("add", "subtract"):
        return inner.plus(number if name == "add" else -number)
    if name in ("maximum", "minimum"):
        return replace(inner, clamps=(*inner.clamps, (name == "maximum", number)))
    if not (number > 0).all():
        return None
    found = inner.times((lambda array: array * number) if name == "multiply" else (lambda array: array / number))
    # Nothing is lost below the smallest normal numbers.
    return found if np.isfinite(found.scale).all() and (np.abs(found.scale) > 1e-30).all() else None


def _number(value: SSAValue, facts: KnownValues) -> Array | None:
    spread = spread_of(value, facts)
    if spread is None or spread.array is None:
        return None
    return in_dims(spread.array, spread.dims, len(value.type.shape))


def _sums(value: SSAValue, facts: KnownValues) -> _Scaled | None:
    """The sums of a product, with whole numbers that are added to them."""
    rank = len(value.type.shape)
    units = np.zeros([1] * rank, np.int64)
    if Value(value).element_type.name != "s32":
        return None
    op = defining_op(value)
    while op is not None and op.name in ("stablehlo.add", "stablehlo.subtract"):
        number = _number(op.operands[1], facts)
        if number is None:
            return None
        units = units + number.astype(np.int64) * (1 if op.name == "stablehlo.add" else -1)
        value = op.operands[0]
        op = defining_op(value)
    if op is None or op.name not in _PRODUCTS or _depth(op) * _MOST_OF_TERM > _MOST:
        return None
    one = np.ones([1] * rank, np.float32)
    return _Scaled(Value(value), units, one, one * 0)


def _depth(op: ir.Operation) -> float:
    """An upper bound of the terms of a sum."""
    sizes = [prod(value.type.shape) for value in (*op.operands, *op.results)]
    if op.name == "stablehlo.convolution":
        numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
        return float(sizes[1] / max(op.operands[1].type.shape[numbers.kernel_output_feature_dimension], 1))
    return float(np.sqrt(sizes[0] * sizes[1] / max(sizes[2], 1)))


def _once(found: _Scaled) -> tuple[Value, bool]:
    """What is scaled, by one multiplication, and whether that is fewer operations than before."""
    exact = found.offset.astype(np.float64) / found.scale
    whole = np.round(exact)
    is_whole = bool((np.abs(exact - whole) <= np.maximum(np.abs(whole) * _NEAR, _LEAST_NEAR)).all())
    is_whole = is_whole and bool((np.abs(whole) < _MOST).all())
    units = found.units + (whole.astype(np.int64) if is_whole else 0)
    numbers = found.sums
    if units.any():
        numbers = numbers + _over(units.astype(np.uint32).view(np.int32), numbers, "s32")
    numbers = ops.convert_element_type(numbers, "f32") * _over(found.scale, numbers, "f32")
    if not is_whole:
        numbers = numbers + _over(found.offset, numbers, "f32")
    for is_low, bound in found.clamps:
        numbers = (ops.max if is_low else ops.min)(numbers, _over(bound, numbers, "f32"))
    return numbers, found.steps >= (2 if is_whole else 3)


@pattern("stablehlo.round_nearest_even")
def of_scaled_sums(op: ir.Operation) -> Replacement:
    """Round one product with the quotient of scales, of sums to which the bias was added."""
    found = _rounded(op)
    if found is None:
        return NoMatch("no scaled sums of f32")
    numbers, is_shorter = _once(found)
    return ops.round_nearest_even(numbers) if is_shorter else NoMatch("scaled once")


def _rounded(op: ir.Operation) -> _Scaled | None:
    """The sums that an operation rounds."""
    type_ = op.operands[0].type
    if Value(op.results[0]).element_type.name != "f32" or not type_.has_static_shape:
        return None
    return _scaled(op.operands[0], facts_of_parameters(), _DEEP)


@pattern("stablehlo.convert")
def of_stored_sums(op: ir.Operation) -> Replacement:
    """Bound scaled sums before they are rounded, by the conversion itself; they are no NaN."""
    result = Value(op.results[0])
    if result.element_type.name not in ("s8", "u8"):
        return NoMatch("not to 8 bits")
    wide = defining_op(op.operands[0], "stablehlo.convert")
    value = wide.operands[0] if wide is not None else op.operands[0]
    if Value(value).element_type.name != "f32" or Value(op.operands[0]).element_type.name not in ("s32", "f32"):
        return NoMatch("not of a float")
    limits = np.iinfo(result.element_type.dtype)
    low, high = float(limits.min), float(limits.max)
    facts, zero = facts_of_parameters(), 0.0
    while True:
        made = defining_op(value)
        name = "" if made is None else made.name.removeprefix("stablehlo.")
        if made is None or name not in ("clamp", "select", "add", "subtract", "round_nearest_even"):
            return NoMatch("no rounded sums")
        if name == "round_nearest_even":
            break
        if name == "clamp":
            bounds = [_number(bound, facts) for bound in (made.operands[0], made.operands[2])]
            if zero or any(bound is None or bound.size != 1 for bound in bounds):
                return NoMatch("bounds that are not known")
            least, most = (bound.item() for bound in bounds if bound is not None)
            if not low <= least <= most <= high or least != int(least) or most != int(most):
                return NoMatch("bounds beyond the type, or no whole numbers")
            low, high, value = least, most, made.operands[1]
        elif name == "select":
            if not _asks_for_nan(made):
                return NoMatch("a choice")
            value = made.operands[2]
        else:
            number = _number(made.operands[1], facts)
            if number is None or number.size != 1 or not abs(number.item()) <= 255 or number.item() % 1:
                return NoMatch("no zero point is added")
            zero += number.item() if name == "add" else -number.item()
            value = made.operands[0]
    found = _rounded(made)
    # Below, sums that are scaled stay finite.
    if found is None or not (np.abs(found.scale) < 1e20).all() or not np.isfinite(found.offset).all():
        return NoMatch("what is rounded are no scaled sums")
    numbers, _ = _once(found)
    numbers = ops.min(ops.max(numbers, full(numbers, low - zero)), full(numbers, high - zero))
    shape = Shape.array("s32", *numbers.dims)
    whole = emit("stablehlo.convert", [numbers], shape, **{NEAREST: ir.UnitAttr.get()})
    whole = whole + full(whole, int(zero)) if zero else whole
    return ops.convert_element_type(whole, result.element_type)


def _asks_for_nan(op: ir.Operation) -> bool:
    """Whether a selection gives another number for NaN alone."""
    condition = defining_op(op.operands[0], "stablehlo.compare")
    if condition is None or not all(operand == op.operands[2] for operand in condition.operands):
        return False
    return "NE" in str(condition.attributes["comparison_direction"])


def _over(array: Array, like: Value, row: str) -> Value:
    dims = [d for d, size in enumerate(array.shape) if size > 1]
    return known(array.reshape([array.shape[d] for d in dims]), dims).over(like.dims, row)


@pattern("stablehlo.convert")
def of_bounded(op: ir.Operation) -> Replacement:
    """Convert a bounded float to a narrow integer at once, which keeps it within the integer's range."""
    result = Value(op.results[0])
    if result.element_type.name not in ("s8", "u8"):
        return NoMatch("not to 8 bits")
    wide = defining_op(op.operands[0], "stablehlo.convert")
    value = Value(wide.operands[0] if wide is not None else op.operands[0])
    if value.element_type.name != "f32" or (wide is not None and Value(op.operands[0]).element_type.name != "s32"):
        return NoMatch("not of a float")
    clamp = defining_op(value.ir, "stablehlo.clamp")
    if clamp is None:
        return NoMatch("of a float without bounds")
    facts = facts_of_parameters()
    low, high = (_number(bound, facts) for bound in (clamp.operands[0], clamp.operands[2]))
    if low is None or high is None or low.size != 1 or high.size != 1:
        return NoMatch("the bounds are not known")
    limits = np.iinfo(result.element_type.dtype)
    if (low.item(), high.item()) == (limits.min, limits.max):
        return ops.convert_element_type(Value(clamp.operands[1]), result.element_type)
    if wide is None or not limits.min <= low.item() <= high.item() <= limits.max:
        return NoMatch("it is converted at once, or to other numbers")
    return ops.convert_element_type(value, result.element_type)


@register
@dataclass(frozen=True)
class LegalizeRequantization(PatternPass):
    """Scale and round sums of products of integers as runtimes of quantized models do."""

    name: ClassVar[str] = "legalize-requantization"
    requires: ClassVar[Facts] = NORMALIZED
    patterns: ClassVar[tuple[Pattern, ...]] = (*of_stored_sums, *of_scaled_sums, *of_bounded)
