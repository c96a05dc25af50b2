"""Operations of elements over whole arrays, as machine code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hloforge.dialect.element_types import element_type
from hloforge.pipelines.codegen.elements.memory import load, store
from hloforge.pipelines.codegen.elements.table import apply
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value
from tests.pipelines.codegen.jit import Compiled, compiled

Array = np.ndarray[Any, Any]


def loop(
    op: str, operands: Sequence[str], result: str, attributes: Mapping[str, object] | None = None, lanes: int = 0
) -> Compiled:
    """A function of arrays (operands, then the result) and their size, by numbers or by vectors of ``lanes``."""

    def write(function: Function, pointers: list[Value], numbers: list[Value]) -> None:
        with function.loop(0, numbers[0], max(lanes, 1)) as i:
            assert isinstance(i, Value)
            values = [load(function, p, t, i, lanes) for p, t in zip(pointers, operands, strict=False)]
            store(function, apply(op, values, operands, result, attributes or {}), pointers[-1], result, i)

    return compiled(write, len(operands) + 1, 1)


def evaluate(
    op: str, inputs: Sequence[Array], result: str, attributes: Mapping[str, object] | None = None, lanes: int = 0
) -> Array:
    """An operation on arrays of one size; their dtypes are those of the element types."""
    operands = [element_type(array.dtype).mlir for array in inputs]
    count = len(inputs[0])
    padded = -(-count // max(lanes, 1)) * max(lanes, 1)
    rooms = [np.concatenate([array, np.ones(padded - count, array.dtype)]) for array in inputs]
    out = np.zeros(padded, element_type(result).dtype)
    loop(op, operands, result, attributes, lanes)(*rooms, out, padded)
    return out[:count]
