"""Operations of elements over whole arrays, as machine code."""

from __future__ import annotations

import platform
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


# The processor's flags as XLA's and IREE's threads have them: subnormal numbers are zeros, nothing is trapped.
_FLUSHING, _USUAL = 0x9FC0, 0x1F80


def loop(
    op: str,
    operands: Sequence[str],
    result: str,
    attributes: Mapping[str, object] | None = None,
    *,
    lanes: int = 0,
    flushing: bool = False,
) -> Compiled:
    """A function of arrays (operands, then the result) and their size, by numbers or by vectors of ``lanes``."""

    def write(function: Function, pointers: list[Value], numbers: list[Value]) -> None:
        if flushing:
            _set_flags(function, _FLUSHING)
        with function.loop(0, numbers[0], max(lanes, 1)) as i:
            assert isinstance(i, Value)
            values = [load(function, p, t, i, lanes) for p, t in zip(pointers, operands, strict=False)]
            store(function, apply(op, values, operands, result, attributes or {}), pointers[-1], result, i)
        if flushing:
            _set_flags(function, _USUAL)

    return compiled(write, len(operands) + 1, 1)


def _set_flags(function: Function, flags: int) -> None:
    if platform.machine() not in ("x86_64", "AMD64"):
        return
    word = function.stack("i32", align=4)
    function.store(function.constant(flags, "i32"), word)
    function.do(f"call void @llvm.x86.sse.ldmxcsr(ptr {word.text})")


def evaluate(
    op: str,
    inputs: Sequence[Array],
    result: str,
    attributes: Mapping[str, object] | None = None,
    *,
    lanes: int = 0,
    flushing: bool = True,
) -> Array:
    """An operation on arrays of one size; their dtypes are those of the element types."""
    operands = [element_type(array.dtype).mlir for array in inputs]
    count, step = len(inputs[0]), max(lanes, 1)
    padding = -count % step
    rooms = [np.concatenate([array, np.ones(padding, array.dtype)]) for array in inputs]
    out = np.zeros(count + padding, element_type(result).dtype)
    loop(op, operands, result, attributes, lanes=lanes, flushing=flushing)(*rooms, out, count + padding)
    return out[:count]
