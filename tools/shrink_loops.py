"""Loops that count to a size: where that shrinks, they count to the new one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hloforge.dialect.constants import dense
from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.element_types import element_type
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import blocks, defining_op, operations


def scale_counts(module: ir.Module, by_size: Mapping[int, int]) -> None:
    """Give the conditions of loops that compare with a shrunk size the new one, inside a condition or as a carry."""
    for loop in operations(module, ["stablehlo.while"]):
        condition = next(blocks(loop))
        for op in operations(loop, ["stablehlo.compare"]):
            if op.block != condition:
                continue
            for number, operand in enumerate(op.operands):
                if operand.owner == condition:
                    _scale(loop, ir.BlockArgument(operand).arg_number, by_size)
                else:
                    _scale(op, number, by_size)


def _scale(op: ir.Operation, number: int, by_size: Mapping[int, int]) -> None:
    """Replace an operand that is a scalar integer constant equal to an old size."""
    made = defining_op(op.operands[number], "stablehlo.constant")
    if made is None:
        return
    type_: Any = made.results[0].type
    row = element_type(type_.element_type)
    if type_.rank or not row.is_integer:
        return
    new = by_size.get(int(constant_of(made)))
    if new is None:
        return
    value = dense(np.array(new, row.dtype), row)
    if len(list(made.results[0].uses)) == 1:
        made.attributes["value"] = value
        return
    with ir.InsertionPoint(op), op.location:
        constant = ir.Operation.create("stablehlo.constant", results=[type_], attributes={"value": value})
    op.operands[number] = constant.results[0]
