"""Engines that judge: StableHLO's interpreter in this process, for passes; both engines in processes of their own."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import dense
from hloforge.dialect.element_types import element_type
from hloforge.dialect.mlir import in_context, ir, parse_module, stablehlo
from hloforge.dialect.program import entry_function
from hloforge.dialect.values import Value
from hloforge.runtime.reference.engines import ReferenceEngine, reference


@cache
def shared_reference(name: str) -> ReferenceEngine:
    """The engine ``xla`` or ``interpreter`` of all tests of a process: a process that takes a second to start."""
    return reference(name)


def interpret(program: Any, *inputs: Any) -> list[np.ndarray[Any, Any]]:
    """The results of ``main`` of MLIR text or a module; complex results are not readable this way."""
    module = parse_module(str(program) if isinstance(program, ir.Module) else program)
    with in_context(module):
        types = _widen_results(module)
        # The interpreter writes into its operands: each evaluation gets attributes of its own.
        arrays = [np.array(value) for value in inputs]
        attributes = [dense(array, element_type(array.dtype)) for array in arrays]
        results = stablehlo.eval_module(module, attributes)
        return [_array(result).astype(dtype) for result, dtype in zip(results, types, strict=True)]


def _widen_results(module: Any) -> list[np.dtype[Any]]:
    """Convert narrow float results to f64, exactly, for MLIR's attributes cannot be read in their own type."""
    entry = entry_function(module)
    terminator = list(entry.regions[0].blocks[0].operations)[-1].operation
    results = [Value(operand) for operand in terminator.operands]
    types = [value.element_type.dtype for value in results]
    with ir.InsertionPoint(terminator):
        wide = [
            ops.convert_element_type(v, "f64") if v.element_type.is_float and v.element_type.bits < 32 else v
            for v in results
        ]
    for number, value in enumerate(wide):
        terminator.operands[number] = value.ir
    inputs = entry.type.inputs
    entry.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, [value.type for value in wide]))
    return types


def _array(attribute: Any) -> np.ndarray[Any, Any]:
    type_ = ir.RankedTensorType(attribute.type)
    row = element_type(type_.element_type)
    elements = [attribute.get_splat_value()] * int(np.prod(type_.shape)) if attribute.is_splat else list(attribute)
    values = [getattr(element, "value", element) for element in elements]
    return np.array(values, dtype=row.dtype).reshape(type_.shape)
