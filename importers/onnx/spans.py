"""Numbers of a program as sums of constants and of multiples of what loops count, with their bounds.

A ``Slice`` whose start and end both follow a loop's number has a size that is known although its place is not, if their
difference is a constant and neither leaves the array.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.importers.tensors import Tensor

# Starts and ends of slices have an element for each dimension.
_MOST_ELEMENTS, _MOST_STEPS = 64, 256


@dataclass(frozen=True)
class Number:
    """A constant and multiples of scalars of the program.

    Attributes:
        terms: the factor of each scalar; none is 0.
    """

    constant: int
    terms: Mapping[Any, int] = field(default_factory=dict)

    def __add__(self, other: Number) -> Number:
        factors = {key: self.terms.get(key, 0) + other.terms.get(key, 0) for key in {**self.terms, **other.terms}}
        return Number(self.constant + other.constant, {key: factor for key, factor in factors.items() if factor})

    def __sub__(self, other: Number) -> Number:
        return self + other.times(-1)

    def times(self, factor: int) -> Number:
        return Number(
            self.constant * factor, {key: each * factor for key, each in self.terms.items()} if factor else {}
        )

    def bounds(self, ranges: Mapping[Any, tuple[int, int]]) -> tuple[int, int] | None:
        """The least and the greatest that it can be, for these of scalars; None if one has none."""
        low = high = self.constant
        for key, factor in self.terms.items():
            if key not in ranges:
                return None
            ends = sorted(factor * end for end in ranges[key])
            low, high = low + ends[0], high + ends[1]
        return low, high


# From an operation, and from a value to its numbers, to those of the operation's result.
_Of: TypeAlias = Callable[[Any], "list[Number] | None"]
_Rule: TypeAlias = Callable[[Any, _Of], "list[Number] | None"]


def numbers_of(tensor: Tensor) -> list[Number] | None:
    """The elements of a small array of integers, in the order of its memory; None if they are no such sums."""
    if not isinstance(tensor, Value):
        return [Number(int(element)) for element in tensor.reshape(-1)] if tensor.dtype.kind in "iu" else None
    known: dict[Any, list[Number] | None] = {}

    def of(value: Any) -> list[Number] | None:
        if value not in known:
            # What is further away counts as unknown.
            known[value] = None
            known[value] = _numbers(value, of if len(known) < _MOST_STEPS else lambda _: None)
        return known[value]

    return of(tensor.ir)


def _numbers(value: Any, of: _Of) -> list[Number] | None:
    kind = ir.RankedTensorType(value.type)
    if not isinstance(kind.element_type, ir.IntegerType) or math.prod(kind.shape) > _MOST_ELEMENTS:
        return None
    if not isinstance(value.owner, ir.Block):
        rule = _RULES.get(value.owner.operation.name)
        found = rule(value.owner.operation, of) if rule else None
        if found is not None:
            return found
    return [Number(0, {value: 1})] if kind.rank == 0 else None


def _of_constant(op: Any, _: _Of) -> list[Number]:
    return [Number(int(element)) for element in np.asarray(constant_of(op)).reshape(-1)]


def _same(op: Any, of: _Of) -> list[Number] | None:
    return of(op.operands[0])


def _widened(op: Any, of: _Of) -> list[Number] | None:
    """A conversion that changes no number that it can have."""
    before, after = (ir.RankedTensorType(value.type).element_type for value in (op.operands[0], op.results[0]))
    is_wide = isinstance(before, ir.IntegerType) and 1 < ir.IntegerType(before).width <= ir.IntegerType(after).width
    return of(op.operands[0]) if is_wide else None


def _spread(op: Any, of: _Of) -> list[Number] | None:
    """Of one element, or of a vector with dimensions of one element around it."""
    size = math.prod(ir.RankedTensorType(op.results[0].type).shape)
    found = of(op.operands[0]) if ir.RankedTensorType(op.operands[0].type).rank < 2 else None
    if found is None or len(found) == size:
        return found
    return found * size if len(found) == 1 else None


def _pairs(rule: Callable[[Number, Number], Number | None]) -> _Rule:
    def apply(op: Any, of: _Of) -> list[Number] | None:
        left, right = map(of, op.operands)
        if left is None or right is None:
            return None
        found = [each for pair in zip(left, right, strict=True) if (each := rule(*pair)) is not None]
        return found if len(found) == len(left) else None

    return apply


def _product(left: Number, right: Number) -> Number | None:
    if left.terms and right.terms:
        return None
    return left.times(right.constant) if not right.terms else right.times(left.constant)


def _joined(op: Any, of: _Of) -> list[Number] | None:
    """Of vectors: a joint of arrays of more dimensions mixes their elements."""
    parts = [of(operand) if ir.RankedTensorType(operand.type).rank == 1 else None for operand in op.operands]
    return None if None in parts else [number for part in parts for number in part or ()]


def _cut(op: Any, of: _Of) -> list[Number] | None:
    found = of(op.operands[0]) if ir.RankedTensorType(op.operands[0].type).rank == 1 else None
    if found is None:
        return None
    start, stop, step = (op.attributes[name][0] for name in ("start_indices", "limit_indices", "strides"))
    return found[start:stop:step]


def _negated(op: Any, of: _Of) -> list[Number] | None:
    found = of(op.operands[0])
    return None if found is None else [number.times(-1) for number in found]


_RULES: dict[str, _Rule] = {
    "stablehlo.constant": _of_constant,
    "stablehlo.reshape": _same,
    "stablehlo.convert": _widened,
    "stablehlo.broadcast_in_dim": _spread,
    "stablehlo.add": _pairs(Number.__add__),
    "stablehlo.subtract": _pairs(Number.__sub__),
    "stablehlo.multiply": _pairs(_product),
    "stablehlo.negate": _negated,
    "stablehlo.concatenate": _joined,
    "stablehlo.slice": _cut,
}
