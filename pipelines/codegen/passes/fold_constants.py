"""``fold-constants``: what numbers that a program states give, where only one result is right.

Before::

    %two = stablehlo.constant dense<2> : tensor<i64>
    %n = stablehlo.convert %two : (tensor<i64>) -> tensor<i32>
    %q = stablehlo.divide %x, (broadcast %n) : tensor<9xi32>

After::

    %n = stablehlo.constant dense<2> : tensor<i32>

Code generation divides by a number that it knows with a multiplication and shifts. In a loop, ``%n`` would be computed
before it and kept in memory, where LLVM does not know it either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.constants import constant
from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.mlir import AnyOp, in_context, ir
from hloforge.dialect.operations import defining_op, operations
from hloforge.dialect.values import Value
from hloforge.pipelines.evaluation.known import KnownValues
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import replace

_CONSTANT, _SELECT = "stablehlo.constant", "stablehlo.select"


@register
@dataclass(frozen=True)
class FoldConstants(Pass):
    """Replace operations on scalar constants by their results, if no rounding is a choice of the compiler's.

    A selection by a known flag is what it selects.
    """

    name: ClassVar[str] = "fold-constants"

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            pending = [op for op in operations(module, {_CONSTANT}) if _is_scalar(op)]
            while pending:
                for user in _users(known := pending.pop()):
                    if (chosen := _chosen(user, known)) is not None:
                        replace(user, [chosen])
                    elif (folded := _folded(user)) is not None:
                        pending.append(folded)


def _users(op: AnyOp) -> Iterator[ir.Operation]:
    """Operations that read a constant, each once. They may be erased while this goes on."""
    (result,) = op.results
    return iter(dict.fromkeys(use.owner.operation for use in list(result.uses)))


def _chosen(op: ir.Operation, known: AnyOp) -> Value | None:
    """What a selection by a known flag gives; None for all other operations."""
    if op.name != _SELECT or op.operands[0] != known.results[0]:
        return None
    return Value(op.operands[1 if constant_of(known).item() else 2])


def _folded(op: ir.Operation) -> ir.Operation | None:
    """The constant that took the place of an operation; None if the operation stays."""
    if len(op.results) != 1 or op.regions or op.name == _CONSTANT or not _is_scalar(op):
        return None
    if any((made := defining_op(operand, _CONSTANT)) is None or not _is_scalar(made) for operand in op.operands):
        return None
    array = KnownValues(1).result(op, list(op.operands), are_stated=True)
    if array is None:
        return None
    with ir.InsertionPoint(op), op.location:
        number = constant(array, Value(op.results[0]).element_type)
    replace(op, [number])
    made = defining_op(number.ir)
    assert made is not None
    return made.operation


def _is_scalar(op: AnyOp) -> bool:
    type_ = op.results[0].type
    return isinstance(type_, ir.RankedTensorType) and type_.rank == 0
