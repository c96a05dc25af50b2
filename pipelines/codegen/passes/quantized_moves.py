"""``legalize-quantized-moves``: what is quantized again at the scale that it had moves as integers.

Before, of integers ``%q``::

    %x = (convert(%q : tensor<5x8xui8>) - 128) * 0.05
    %m = maximum(transpose(%x), 0.0)
    %r = convert(clamp(0, round_nearest_even(%m / 0.05) + 128, 255)) : tensor<8x5xui8>

After::

    %r = maximum(transpose(%q), 128) : tensor<8x5xui8>

Quantizers write such pairs around each operator that only moves or compares elements. A quotient by the scale that an
integer of up to 16 bits was multiplied by rounds to the integer, and greater numbers do not become smaller integers. A
transformer in QDQ form has five pairs between a product and the next one, which loops over several parts of their
result computed each on its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hloforge.dialect.constants import constant
from hloforge.dialect.mlir import SSAValue, ir, stablehlo
from hloforge.dialect.operations import defining_op
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.codegen.passes.known_divisors import known_number
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

_INTEGERS: dict[str, Any] = {"u8": np.uint8, "s8": np.int8, "u16": np.uint16, "s16": np.int16}
# Operations, each with how many of its first operands are elements; the others say where they are.
_MOVES = {
    **dict.fromkeys(("transpose", "reshape", "slice", "reverse", "broadcast_in_dim", "dynamic_slice", "gather"), 1),
    **dict.fromkeys(("concatenate", "pad", "maximum", "minimum"), None),
}
_EXTREMES = ("stablehlo.reduce", "stablehlo.reduce_window")
# Scales of which multiples by integers are normal numbers.
_LEAST, _GREATEST = 1e-30, 1e30
_DEEP = 24


@dataclass(frozen=True)
class _Units:
    """A scale and a zero point, and the type that integers have."""

    scale: float
    zero: float
    element: str

    def of(self, number: float) -> Any:
        """The integer that represents a number."""
        limits = np.iinfo(_INTEGERS[self.element])
        ratio = np.rint(np.float32(number) / np.float32(self.scale)) + np.float32(self.zero)
        return _INTEGERS[self.element](np.clip(ratio, limits.min, limits.max))


@pattern("stablehlo.convert")
def of_what_was_quantized(op: ir.Operation) -> Replacement:
    """Move the integers themselves."""
    result = Value(op.results[0])
    if result.element_type.name not in _INTEGERS or not is_static(op):
        return NoMatch("no integers of 8 or 16 bits, or of unknown size")
    found = _quantized(op)
    if found is None:
        return NoMatch("no quantization")
    numbers, units = found
    moved = _Integers(units)
    if defining_op(numbers) is None or not moved.can_be(numbers):
        return NoMatch("not of integers at this scale")
    return [Value(moved.of(numbers))]


def _quantized(op: ir.Operation) -> tuple[SSAValue, _Units] | None:
    """The numbers that become integers, and how: ``convert(clamp(round(numbers / scale) + zero))``."""
    element = Value(op.results[0]).element_type.name
    value = op.operands[0]
    if Value(value).element_type.name == "s32":
        inner = defining_op(value)
        if inner is None or inner.name != "stablehlo.convert":
            return None
        value = inner.operands[0]
    if Value(value).element_type.name != "f32":
        return None
    limits, zero = np.iinfo(_INTEGERS[element]), 0.0
    for _ in range(_DEEP):
        inner = defining_op(value)
        if inner is None:
            return None
        match inner.name:
            case "stablehlo.clamp":
                low, high = known_number(inner.operands[0]), known_number(inner.operands[2])
                if low != limits.min or high != limits.max:
                    return None
                value = inner.operands[1]
            case "stablehlo.maximum" | "stablehlo.minimum":
                bound = limits.min if inner.name == "stablehlo.maximum" else limits.max
                if known_number(inner.operands[1]) != bound:
                    return None
                value = inner.operands[0]
            case "stablehlo.add" if not zero:
                number = known_number(inner.operands[1])
                if number is None or not limits.min <= number <= limits.max:
                    return None
                value, zero = inner.operands[0], number
            case "stablehlo.round_nearest_even":
                ratio = defining_op(inner.operands[0])
                if ratio is None or ratio.name != "stablehlo.divide":
                    return None
                scale = known_number(ratio.operands[1])
                if scale is None or not _LEAST < scale < _GREATEST:
                    return None
                return ratio.operands[0], _Units(scale, zero, element)
            case _:
                return None
    return None


class _Integers:
    """Numbers that are made of integers of the same units, as these."""

    def __init__(self, units: _Units) -> None:
        self._units = units
        self._sources: dict[SSAValue, SSAValue] = {}
        self._made: dict[SSAValue, Any] = {}

    def can_be(self, value: SSAValue, deep: int = _DEEP) -> bool:
        """Whether a value is made of such integers by moves and comparisons alone."""
        if value in self._sources:
            return True
        source = self._source(value)
        if source is not None:
            self._sources[value] = source
            return True
        op = defining_op(value)
        if op is None or not deep or len(op.results) != 1:
            return False
        if op.name in _EXTREMES:
            return _extreme_of(op) is not None and len(op.operands) == 2 and self._all(op.operands, deep)
        if op.name == "stablehlo.select":
            return self._all(op.operands[1:], deep)
        name = op.name.removeprefix("stablehlo.")
        return name in _MOVES and self._all(op.operands[: _MOVES[name] or len(op.operands)], deep)

    def _all(self, values: Any, deep: int) -> bool:
        numbers = [known_number(value) for value in values]
        if any(number != number for number in numbers if number is not None):
            return False
        return any(number is None for number in numbers) and all(
            number is not None or self.can_be(value, deep - 1) for number, value in zip(numbers, values, strict=True)
        )

    def _source(self, value: SSAValue) -> SSAValue | None:
        """The integers that ``convert(integers - zero) * scale`` is of."""
        op, units = defining_op(value), self._units
        if op is None or op.name != "stablehlo.multiply" or known_number(op.operands[1]) != units.scale:
            return None
        wide = defining_op(op.operands[0])
        if wide is None or wide.name != "stablehlo.convert":
            return None
        inner, zero = wide.operands[0], 0.0
        while (one := defining_op(inner)) is not None:
            if one.name == "stablehlo.subtract" and not zero and Value(inner).element_type.name in ("s32", "s64"):
                number = known_number(one.operands[1])
                if number is None:
                    return None
                inner, zero = one.operands[0], number
            elif one.name == "stablehlo.convert" and Value(inner).element_type.name in ("s32", "s64"):
                inner = one.operands[0]
            else:
                break
        is_one = zero == units.zero and Value(inner).element_type.name == units.element
        return inner if is_one else None

    def of(self, value: SSAValue) -> Any:
        """The integers of a value."""
        if value in self._sources:
            return self._sources[value]
        if value not in self._made:
            self._made[value] = self._moved(value)
        return self._made[value]

    def _moved(self, value: SSAValue) -> Any:
        kind = ir.RankedTensorType.get(value.type.shape, _type_of(self._units.element))
        number = known_number(value)
        if number is not None:
            return constant(np.full(tuple(value.type.shape), self._units.of(number))).ir
        op = defining_op(value)
        assert op is not None
        name = op.name.removeprefix("stablehlo.")
        count = _MOVES.get(name) or len(op.operands)
        first = 1 if name == "select" else 0
        operands = [self.of(one) if first <= number < count else one for number, one in enumerate(op.operands)]
        extreme = _extreme_of(op) if op.name in _EXTREMES else None
        made = ir.Operation.create(
            op.name,
            results=[kind],
            operands=operands,
            attributes={name: op.attributes[name] for name in op.attributes},
            regions=1 if extreme else 0,
        )
        if extreme:
            one = ir.RankedTensorType.get([], kind.element_type)
            block = made.regions[0].blocks.append(one, one)
            with ir.InsertionPoint(block):
                stablehlo.return_([extreme(*block.arguments)])
        return made.results[0]


def _type_of(element: str) -> Any:
    bits = int(element[1:])
    return ir.IntegerType.get_unsigned(bits) if element[0] == "u" else ir.IntegerType.get_signless(bits)


def _extreme_of(op: ir.Operation) -> Callable[..., Any] | None:
    """How a reduction makes the extreme of two elements; None of another reduction."""
    (block,) = op.regions[0].blocks
    inner = [one.operation for one in block.operations]
    if len(inner) != 2 or set(inner[0].operands) != set(block.arguments):
        return None
    known = {"stablehlo.maximum": stablehlo.maximum, "stablehlo.minimum": stablehlo.minimum}
    return known.get(inner[0].name)


@register
@dataclass(frozen=True)
class LegalizeQuantizedMoves(PatternPass):
    """Integers that are quantized again at their scale are moved and compared as they are."""

    name: ClassVar[str] = "legalize-quantized-moves"
    patterns: ClassVar[tuple[Pattern, ...]] = of_what_was_quantized
