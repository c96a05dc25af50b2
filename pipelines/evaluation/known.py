"""Small values that a program knows: constant folding, one operation at a time."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.mlir import SSAValue, ir
from hloforge.dialect.operations import defining_op
from hloforge.pipelines.evaluation.arithmetic import ARITHMETIC
from hloforge.pipelines.evaluation.moves import MOVES
from hloforge.pipelines.evaluation.plan import Array, Planner, UnplannedError, dims, element_and_dims

_RULES = {**ARITHMETIC, **MOVES}


class KnownValues:
    """The arrays of values, those of constants included.

    Args:
        most: elements of an array that is looked into.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._found: dict[Any, Array | None] = {}

    def add(self, value: SSAValue, array: Array) -> None:
        """Say what a value is."""
        self._found[value] = array

    def is_known(self, value: SSAValue) -> bool:
        """Whether ``of`` has an array."""
        if value in self._found:
            return self._found[value] is not None
        return defining_op(value, "stablehlo.constant") is not None and prod(value.type.shape) <= self._most

    def of(self, value: SSAValue) -> Array | None:
        """The array of a value; None if it is not known, or has too many elements."""
        if value not in self._found:
            is_known = self.is_known(value)
            self._found[value] = np.array(constant_of(defining_op(value))) if is_known else None
        return self._found[value]

    def result(self, op: ir.Operation, operands: Sequence[SSAValue], *, are_stated: bool = False) -> Array | None:
        """What an operation gives for other operands than its own, to the bit; None if these are not known, it has no
        such result, or it is a choice of the compiler's how it rounds.

        Args:
            are_stated: whether the program states the operands, so that none is a product that a sum contracts with.
        """
        if op.name not in _RULES:
            return None
        values = [self.of(operand) for operand in operands]
        if any(value is None for value in values):
            return None
        planner = Planner({}, _RULES, {})
        try:
            for value in (*op.operands, *op.results):
                element_and_dims(value.type)
            kernel = _RULES[op.name](planner, op)
        except UnplannedError:
            return None
        if planner.multiplies or (planner.adds and not are_stated):
            return None
        with np.errstate(all="ignore"):
            return np.asarray(kernel(*values)).reshape(dims(op.results[0]))
