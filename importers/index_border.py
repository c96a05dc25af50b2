"""Sizes of type ``index`` are passed as s64 at the border of a program: XLA has no such element type."""

from __future__ import annotations

from typing import Any

from hloforge.dialect.mlir import arith, ir, stablehlo

# Operations that take their sizes in any type of integers.
_SIZED = ("stablehlo.dynamic_", "stablehlo.real_dynamic_")


def cross_as_integers(function: Any) -> None:
    """Give a function s64 for its arguments and results of type ``index``, with conversions inside."""
    entry = function.operation
    block = entry.regions[0].blocks[0]
    end = list(block.operations)[-1].operation
    if not any(_is_index(value.type) for value in (*block.arguments, *end.operands)):
        return
    for argument in block.arguments:
        if _is_index(argument.type):
            with entry.location, ir.InsertionPoint.at_block_begin(block):
                _take_integers(argument)
    with end.location, ir.InsertionPoint(end):
        for number, value in enumerate(end.operands):
            if _is_index(value.type):
                short = arith.index_cast(_integers(value.type, 32), value)
                end.operands[number] = stablehlo.convert(_integers(value.type, 64), short)
    types = [argument.type for argument in block.arguments], [value.type for value in end.operands]
    entry.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))


def _take_integers(argument: Any) -> None:
    type_ = argument.type
    others = [use for use in argument.uses if not use.owner.operation.name.startswith(_SIZED)]
    argument.set_type(_integers(type_, 64))
    if others:
        # StableHLO's pass for the dialect shape knows casts between index and s32 alone.
        short = stablehlo.convert(_integers(type_, 32), argument)
        cast = arith.index_cast(type_, short)
        for use in others:
            use.owner.operation.operands[use.operand_number] = cast


def _integers(type_: Any, bits: int) -> Any:
    return ir.RankedTensorType.get(type_.shape, ir.IntegerType.get_signless(bits))


def _is_index(type_: ir.Type) -> bool:
    return isinstance(type_, ir.RankedTensorType) and isinstance(type_.element_type, ir.IndexType)
