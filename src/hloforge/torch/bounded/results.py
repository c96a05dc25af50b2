"""Results of a program cut to their real sizes, so that callers see no padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.program import Program, entry_function
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value


def cut(program: Program, dimensions: Sequence[tuple[int, int]]) -> Program:
    """A program whose last results, scalars of s32, are the sizes of dimensions of the others.

    Args:
        dimensions: the number of a result and a dimension of it, one for each of the last results.
    """
    if not dimensions:
        return program
    with in_context(program.module):
        shapes = _cut(entry_function(program.module).operation, dimensions)
    result = shapes[0] if len(shapes) == 1 else Shape.tuple_of(*shapes)
    # Names of what was traced count the sizes too.
    program.signature = replace(program.signature, result=result, result_names=())
    program.signature.attach(program.module)
    return program


def _cut(entry: Any, dimensions: Sequence[tuple[int, int]]) -> list[Shape]:
    end = list(entry.regions[0].blocks[0].operations)[-1].operation
    count = len(end.operands) - len(dimensions)
    values = [Value(operand) for operand in end.operands]
    with end.location, ir.InsertionPoint(end):
        for (number, dimension), size in zip(dimensions, values[count:], strict=True):
            values[number] = ops.set_dimension_size(values[number], size, dimension)
        ir.Operation.create(end.name, operands=[value.ir for value in values[:count]])
    end.erase()
    types = ir.FunctionType(ir.TypeAttr(entry.attributes["function_type"]).value)
    results = [value.ir.type for value in values[:count]]
    entry.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types.inputs, results))
    if "res_attrs" in entry.attributes:
        del entry.attributes["res_attrs"]
    return [value.shape for value in values[:count]]
