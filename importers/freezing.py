"""Replace parameters of a program by constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hloforge.dialect.constants import dense
from hloforge.dialect.element_types import element_type
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.program import Program, entry_function


def freeze(program: Program, values: Mapping[int, np.ndarray[Any, Any]]) -> Program:
    """The program with constants in place of some parameters, all of them arrays; it is changed.

    Args:
        values: of these parameters, by their numbers; C-contiguous. The program must not donate its parameters.
    """
    entry = entry_function(program.module)
    block = entry.regions[0].blocks[0]
    with in_context(program.module):
        for number in sorted(values, reverse=True):
            argument = block.arguments[number]
            with ir.InsertionPoint.at_block_begin(block), argument.location:
                value = dense(values[number], element_type(values[number].dtype))
                attributes = {"value": value}
                constant = ir.Operation.create("stablehlo.constant", results=[argument.type], attributes=attributes)
            argument.replace_all_uses_with(constant.result)
            block.erase_argument(number)
        attributes = entry.operation.attributes
        results = ir.FunctionType(ir.TypeAttr(attributes["function_type"]).value).results
        inputs = [argument.type for argument in block.arguments]
        attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
        if "arg_attrs" in attributes:
            attributes["arg_attrs"] = ir.ArrayAttr.get(_without(list(attributes["arg_attrs"]), values))
    parameters = tuple(_without(list(program.signature.parameters), values))
    program.signature = replace(program.signature, parameters=parameters)
    program.signature.attach(program.module)
    return program


def _without(entries: list[Any], values: Mapping[int, Any]) -> list[Any]:
    return [entry for number, entry in enumerate(entries) if number not in values]
