"""StableHLO's interpreter for tests of passes: what a module computes, on numpy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from hloforge.dialect.element_types import element_type
from hloforge.dialect.mlir import in_context, ir, parse_module, stablehlo
from hloforge.dialect.values import dense


def interpret(program: Any, *inputs: Any) -> list[np.ndarray[Any, Any]]:
    """The results of ``main`` of MLIR text or a module; complex results are not readable this way."""
    module = parse_module(program) if isinstance(program, str | bytes) else program
    with in_context(module):
        # The interpreter writes into its operands: each evaluation gets attributes of its own.
        arrays = [np.array(value) for value in inputs]
        attributes = [dense(array, element_type(array.dtype)) for array in arrays]
        results = stablehlo.eval_module(module, attributes)
        return [_array(result) for result in results]


def _array(attribute: Any) -> np.ndarray[Any, Any]:
    type_ = ir.RankedTensorType(attribute.type)
    row = element_type(type_.element_type)
    elements = [attribute.get_splat_value()] * int(np.prod(type_.shape)) if attribute.is_splat else list(attribute)
    values = [getattr(element, "value", element) for element in elements]
    return np.array(values, dtype=row.dtype).reshape(type_.shape)
