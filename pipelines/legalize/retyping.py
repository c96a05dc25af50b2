"""Giving all values of some element types another one, in the whole module at once.

A legalization that emulates an element type keeps its values in a type that the target has. It retypes every value,
constant and function first and then corrects the operations that compute, knowing what the types had been.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from hloforge.dialect.constants import dense
from hloforge.dialect.dense_values import array_of
from hloforge.dialect.element_types import ElementType, element_type, mlir_type
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import blocks, operations, types_of
from hloforge.dialect.values import Value

# The element type that holds the values of another one; None leaves it alone.
Storage: TypeAlias = Callable[[ElementType], str | None]


@dataclass(frozen=True)
class Retyped:
    """An operation some of whose operands or results changed their element type.

    Attributes:
        op: the operation, with the new types.
        operands, results: the former element types; None where a value is no array.
    """

    op: Any
    operands: tuple[ElementType | None, ...]
    results: tuple[ElementType | None, ...]

    @property
    def name(self) -> str:
        return str(self.op.name).removeprefix("stablehlo.")


def retype(module: ir.Module, storage: Storage) -> list[Retyped]:
    """Change the element types in place; the module is invalid until the operations are corrected.

    Returns:
        The operations that the change concerns, in program order within each block.
    """
    row_of = cache(_row)
    if not any(storage(row) for type_ in types_of(module) if (row := row_of(type_)) is not None):
        return []
    found = []
    everything = operations(module)
    for op in everything:
        operands, results = (tuple(row_of(value.type) for value in values) for values in (op.operands, op.results))
        if any(row is not None and storage(row) for row in (*operands, *results)):
            found.append(Retyped(op, operands, results))
    constants = [entry for entry in found if entry.op.name == "stablehlo.constant"]
    type_of = cache(lambda type_: _new_type(type_, storage))
    for op in everything:
        for block in blocks(op):
            _retype_values(block.arguments, type_of)
        if op.name != "stablehlo.constant":
            _retype_values(op.results, type_of)
        if op.name == "func.func":
            _retype_function(op, storage)
    others = [entry for entry in found if entry.op.name != "stablehlo.constant"]
    # Last, because it erases operations.
    for entry in constants:
        _recode(entry.op, storage)
    return others


def _row(type_: ir.Type) -> ElementType | None:
    if not isinstance(type_, ir.RankedTensorType):
        return None
    try:
        return element_type(type_.element_type)
    except ValueError:
        return None


def _new_type(type_: Any, storage: Storage) -> ir.RankedTensorType | None:
    row = _row(type_)
    name = storage(row) if row is not None else None
    if name is None:
        return None
    return ir.RankedTensorType.get(type_.shape, mlir_type(name), type_.encoding)


def _retype_values(values: Iterable[Any], type_of: Callable[[Any], Any]) -> None:
    for value in values:
        changed = type_of(value.type)
        if changed is not None:
            value.set_type(changed)


def _retype_function(op: ir.Operation, storage: Storage) -> None:
    type_ = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
    inputs, results = ([_new_type(t, storage) or t for t in types] for types in (type_.inputs, type_.results))
    op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def _recode(op: Any, storage: Storage) -> None:
    """The constant in its storage type: integers keep their value, floats become their code."""
    array = array_of(op.attributes["value"])
    row = element_type(array.dtype)
    name = storage(row)
    assert name is not None
    target = element_type(name)
    recoded = codes(array, target) if row.is_float else array.astype(np.int16).astype(target.dtype)
    with ir.InsertionPoint(op), op.location:
        type_: Any = _new_type(op.results[0].type, storage)
        made = ir.Operation.create("stablehlo.constant", results=[type_], attributes={"value": dense(recoded, target)})
    op.results[0].replace_all_uses_with(made.results[0])
    op.erase()


def codes(array: np.ndarray[Any, Any], target: ElementType) -> np.ndarray[Any, Any]:
    """The bits of narrow floats as unsigned integers."""
    return np.array(array).view(np.uint8).astype(target.dtype)


def correct_result(op: ir.Operation, correction: Callable[[Value], Value], number: int = 0) -> None:
    """Let all users of a result see ``correction`` of it, built after the operation."""
    result = op.results[number]
    uses = [(use.owner, use.operand_number) for use in result.uses]
    with ir.InsertionPoint.after(op), op.location:
        corrected = correction(Value(result))
    for owner, position in uses:
        owner.operands[position] = corrected.ir


def correct_operands(op: ir.Operation, positions: Sequence[int], correction: Callable[[Value], Value]) -> None:
    """Let the operation see ``correction`` of some operands, built before it."""
    with ir.InsertionPoint(op), op.location:
        for position in positions:
            op.operands[position] = correction(Value(op.operands[position])).ir
