"""Quantized arrays are passed as their stored integers at the border of a program."""

from __future__ import annotations

from typing import Any

from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import SSAValue, ir
from hloforge.dialect.quantized import is_quantized, storage_of
from hloforge.dialect.values import Value


def cross_as_storage(function: Any) -> None:
    """Give a function the storage types of its quantized arguments and results, with bitcasts inside."""
    entry = function.operation
    block = entry.regions[0].blocks[0]
    end = list(block.operations)[-1].operation
    if not any(is_quantized(value.type) for value in (*block.arguments, *end.operands)):
        return
    with entry.location, ir.InsertionPoint.at_block_begin(block):
        for argument in block.arguments:
            if is_quantized(argument.type):
                _take_storage(argument)
    with end.location, ir.InsertionPoint(end):
        for number, value in enumerate(end.operands):
            if is_quantized(value.type):
                end.operands[number] = emit("stablehlo.bitcast_convert", [Value(value)], storage_of(value.type)).ir
    types = [argument.type for argument in block.arguments], [value.type for value in end.operands]
    entry.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))


def _take_storage(argument: SSAValue) -> None:
    type_ = argument.type
    # A stand-in takes over the uses while the argument gets its new type.
    stand_in = ir.Operation.create("builtin.unrealized_conversion_cast", results=[type_], operands=[])
    argument.replace_all_uses_with(stand_in.results[0])
    argument.set_type(storage_of(type_))
    stand_in.results[0].replace_all_uses_with(emit("stablehlo.bitcast_convert", [Value(argument)], type_).ir)
    stand_in.erase()
