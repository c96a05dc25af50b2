"""The keys of a comparator: which numbers of a record it compares, and in which direction.

A comparator orders by keys if it asks for the same function of both records whether one is less (or greater) than the
other, and where they are equal perhaps for another function, and so on::

    f(a) < f(b)
    f(a) < f(b) or (f(a) = f(b) and (g(a) > g(b) or ...))
    f(a) = f(b) ? g(a) > g(b) : f(a) < f(b)

Records then need no comparator: integers made of each key tell their order (``codegen/algorithms/sort_keys.py``).
Source: XLA "Sort"; StableHLO spec "compare" (FLOAT and TOTALORDER), IEEE 754 totalOrder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hloforge.dialect.element_types import ElementType, element_type
from hloforge.dialect.mlir import AnyOp, SSAValue, ir, stablehlo
from hloforge.dialect.operations import defining_op

_DIRECTION = {"LT": False, "GT": True}


@dataclass(frozen=True)
class SortKey:
    """A number by which records are ordered.

    Attributes:
        value: the number of the first record, a scalar in the comparator's region.
        descending: whether the greatest is first.
        total: whether floats are in total order; else both zeros are equal, and NaN is greater than everything.
    """

    value: Any
    descending: bool
    total: bool

    @property
    def row(self) -> ElementType:
        return element_type(self.value.type.element_type)


def sort_keys(region: ir.Region) -> list[SortKey] | None:
    """The keys of a comparator's region, the most significant first; None if it orders in another way."""
    block = region.blocks[0]
    terminator = list(block.operations)[-1].operation
    keys = _Comparator(block).keys(terminator.operands[0])
    return None if keys is None or not all(_is_ordered(key.row) for key in keys) else keys


@dataclass(frozen=True)
class _Comparator:
    """Reads the block of a comparator, whose arguments belong to the first and second record in turn."""

    block: Any

    def keys(self, value: SSAValue) -> list[SortKey] | None:
        """The keys of a flag that says whether the first record is before the second."""
        single = self.comparison(value, _DIRECTION)
        if single is not None:
            return [single]
        for first, equal, rest in _alternatives(value):
            key, tie = self.comparison(first, _DIRECTION), self.comparison(equal, {"EQ": False})
            if key is not None and tie is not None and key.total == tie.total and self.alike(key.value, tie.value, 0):
                others = self.keys(rest)
                return None if others is None else [key, *others]
        return None

    def comparison(self, value: Any, directions: Mapping[str, bool]) -> SortKey | None:
        """The key that a comparison of one of these directions compares; each says whether the greatest is first."""
        op = _maker(value, "stablehlo.compare")
        if op is None:
            return None
        direction = stablehlo.ComparisonDirectionAttr(op.attributes["comparison_direction"]).value
        left, right = op.operands
        records = self.records(left)
        if direction not in directions or len(records) != 1 or not self.alike(left, right, 1):
            return None
        swapped = 1 in records
        kind = str(op.attributes["compare_type"]) if "compare_type" in op.attributes else ""
        return SortKey(right if swapped else left, directions[direction] != swapped, "TOTALORDER" in kind)

    def records(self, value: Any) -> set[int]:
        """Which of the two records a value depends on."""
        found: set[int] = set()
        for one in self.sources(value):
            if one.owner == self.block:
                found.add(one.arg_number % 2)
        return found

    def sources(self, value: SSAValue) -> set[Any]:
        """The values inside the block and at its border that a value is made of, itself among them."""
        found: set[Any] = set()
        left = [value]
        while left:
            one = left.pop()
            if one not in found:
                found.add(one)
                left += _operands_inside(one, self.block)
        return found

    def alike(self, one: Any, two: Any, other: int) -> bool:
        """Whether two values are computed alike, of the same record (0) or each of its own (1)."""
        equal: set[tuple[Any, Any]] = set()
        left = [(one, two)]
        while left:
            pair = left.pop()
            if pair in equal:
                continue
            equal.add(pair)
            first, second = pair
            if first.owner == self.block or second.owner == self.block:
                if first.owner != second.owner or first.arg_number ^ other != second.arg_number:
                    return False
                continue
            if first == second and not self.records(first):
                continue
            if not _is_alike(first, second):
                return False
            left += zip(first.owner.operation.operands, second.owner.operation.operands, strict=True)
        return True


def _operands_inside(value: SSAValue, block: ir.Block) -> list[Any]:
    """The operands of what makes a value, if that is in the block."""
    if isinstance(value.owner, ir.Block) or value.owner.operation.block != block:
        return []
    return list(value.owner.operation.operands)


def _is_alike(one: Any, two: Any) -> bool:
    """Whether two values are results of equal operations, apart from their operands."""
    if isinstance(one.owner, ir.Block) or isinstance(two.owner, ir.Block) or one.type != two.type:
        return False
    first, second = one.owner.operation, two.owner.operation
    same = first.name == second.name and _attributes(first) == _attributes(second)
    return same and len(first.operands) == len(second.operands)


def _alternatives(value: Any) -> Iterator[tuple[Any, Any, Any]]:
    """How a flag may be read as ``first or (equal and rest)``."""
    for first, other in _both_ways(_maker(value, "stablehlo.or")):
        for equal, rest in _both_ways(_maker(other, "stablehlo.and")):
            yield first, equal, rest
    choice = _maker(value, "stablehlo.select")
    if choice is not None:
        equal, rest, first = choice.operands
        yield first, equal, rest


def _both_ways(op: AnyOp) -> list[tuple[Any, Any]]:
    return [] if op is None else [(op.operands[0], op.operands[1]), (op.operands[1], op.operands[0])]


def _maker(value: SSAValue, name: str) -> Any:
    """The operation of this name that makes a value; None if something else does."""
    return defining_op(value, name)


def _attributes(op: AnyOp) -> dict[str, Any]:
    return {name: op.attributes[name] for name in op.attributes}


def _is_ordered(row: ElementType) -> bool:
    """Whether integers of its width, 8 bits at least, can have the order of a type's numbers."""
    return not (row.is_complex or (row.is_float and row.bits < 16))
