"""Analysis of a scatter's computation, and its evaluation on whole windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hloforge.dialect.constants import constant
from hloforge.dialect.element_types import ElementType, Kind
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import operations
from hloforge.dialect.regions import inline_region
from hloforge.dialect.values import Value

# What IREE 3.13 takes on arrays, and not inside of a scatter ("failed to legalize unresolved materialization").
_APART = frozenset(
    (
        "func.call",
        "stablehlo.cbrt",
        "stablehlo.count_leading_zeros",
        "stablehlo.popcnt",
        "stablehlo.power",
        "stablehlo.reduce_precision",
        "stablehlo.round_nearest_afz",
        "stablehlo.round_nearest_even",
        "stablehlo.tan",
    )
)
_WIDE_FLOATS = ("bf16", "f16", "f32", "f64")


class Combiner:
    """A region from (old_1..old_m, update_1..update_m) to m new values."""

    def __init__(self, region: Any) -> None:
        self.region = region
        self.block = region.blocks[0]
        self.arguments = list(self.block.arguments)
        self.width = len(self.arguments) // 2
        self.returned = list(list(self.block.operations)[-1].operation.operands)

    def is_overwrite(self, number: int) -> bool:
        """Whether result ``number`` is its update."""
        return bool(self.returned[number] == self.arguments[self.width + number])

    def is_old(self, number: int) -> bool:
        """Whether result ``number`` is the old value."""
        return bool(self.returned[number] == self.arguments[number])

    def depends_on(self, number: int) -> set[int]:
        """The numbers of the operands that result ``number`` reads, old values or updates."""
        return {argument % self.width for argument in self._reads(number)}

    def reads_updates(self) -> bool:
        """Whether each new value is computed from an update, or is the old one."""
        numbers = range(self.width)
        return all(self.is_old(n) or any(argument >= self.width for argument in self._reads(n)) for n in numbers)

    def _reads(self, number: int) -> set[int]:
        """The numbers of the arguments that result ``number`` reads."""
        reached: set[int] = set()
        pending, seen = [self.returned[number]], set()
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            if value in self.arguments:
                reached.add(self.arguments.index(value))
            elif not isinstance(value.owner, ir.Block):
                owner = value.owner.operation
                pending += owner.operands
                pending += [operand for inner in operations(owner) for operand in inner.operands]
        return reached

    @property
    def is_elementwise(self) -> bool:
        """Whether the body is straight-line arithmetic that IREE takes inside of a scatter."""
        return not any(len(op.regions) or op.name in _APART for op in operations_of(self.block))

    def on_scalars(self, scalars: Sequence[Value]) -> list[Value]:
        """All results at the insertion point, from (old_1.., update_1..)."""
        return inline_region(self.region, scalars)

    def scalar(self, number: int, old: Value, update: Value) -> Value:
        """Result ``number`` on scalars, where it depends on operand ``number`` alone."""
        scalars = [constant(0, Value(argument).element_type) for argument in self.arguments]
        scalars[number], scalars[self.width + number] = old, update
        return inline_region(self.region, scalars)[number]

    def identity(self, number: int) -> Any:
        """The update that leaves every old value as it is, as a numpy scalar; None if there is no such value."""
        value = self.returned[number]
        if isinstance(value.owner, ir.Block):
            return None
        op = value.owner.operation
        pair = {self.arguments[number], self.arguments[self.width + number]}
        if len(op.operands) != 2 or set(op.operands) != pair:
            return None
        return identity_of(op.name.removeprefix("stablehlo."), Value(value).element_type)


def operations_of(block: Any) -> list[Any]:
    return [op.operation for op in block.operations]


def identity_of(name: str, row: ElementType) -> Any:
    """The neutral element of a commutative operation; None where there is none."""
    if row.kind is Kind.PRED:
        # The arithmetic of booleans is logic.
        return {"add": False, "or": False, "maximum": False, "xor": False, "multiply": True, "and": True}.get(
            name, True if name == "minimum" else None
        )
    if row.is_integer:
        low, high = integer_range(row)
        ones = -1 if row.kind is Kind.SIGNED else high
        values = {"add": 0, "or": 0, "xor": 0, "and": ones, "multiply": 1, "maximum": low, "minimum": high}
        return values.get(name)
    if row.name in _WIDE_FLOATS:
        # -0 + x is x for every x, +0 included; 0 + -0 would be +0.
        return {"add": -0.0, "multiply": 1.0, "maximum": -np.inf, "minimum": np.inf}.get(name)
    if row.is_complex and name == "add":
        return complex(-0.0, -0.0)
    return None


def integer_range(row: ElementType) -> tuple[int, int]:
    """The smallest and largest value of an integer type."""
    if row.kind is Kind.UNSIGNED:
        return 0, (1 << row.bits) - 1
    return -(1 << (row.bits - 1)), (1 << (row.bits - 1)) - 1
