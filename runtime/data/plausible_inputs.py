"""Random arguments for which a model's results are meaningful: without overflow and NaN."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from hloforge.dialect.errors import Error
from hloforge.dialect.mlir import ir
from hloforge.dialect.program import Program, entry_function
from hloforge.pipelines.normalize.normalization import normalize
from hloforge.runtime.data.random_inputs import random_inputs

# Through these a parameter keeps its sign, and reaches what needs a non-negative number.
_TRANSPARENT = frozenset(
    f"stablehlo.{name}"
    for name in ("add", "broadcast_in_dim", "convert", "maximum", "reshape", "slice", "transpose", "concatenate")
)
_NON_NEGATIVE = frozenset({"stablehlo.rsqrt", "stablehlo.sqrt", "stablehlo.log", "stablehlo.log_plus_one"})

# The operation and the number of its operand that is a variance.
_VARIANCE = ("stablehlo.batch_norm_inference", 4)


def plausible_inputs(program: Program, seed: int = 0) -> tuple[Any, ...]:
    """``random_inputs`` of a program, made plausible.

    Float and complex arrays of rank 2 or more are divided by the square root of the product of all sizes but the last,
    as the weights of a fresh network are, so that products with them keep the size of their other factor. A parameter
    that flows into a square root or logarithm (a variance) becomes ``|x| + 0.5``.

    Raises:
        ArgumentError: a parameter has dynamic sizes.
    """
    positive = _non_negative_parameters(program)
    numbers = iter(range(len(program.signature.flat_parameters)))

    def adapt(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(adapt, value))
        number = next(numbers)
        if value is None:
            return None
        return _positive(value) if number in positive else _scaled(value)

    return tuple(map(adapt, random_inputs(program.signature, seed)))


def _positive(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    # Away from zero, for a root is often divided by.
    return np.asarray(np.abs(array) + 0.5).astype(array.dtype)


def _scaled(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    # Eight-bit floats have no room to shrink in.
    if array.ndim < 2 or array.dtype.itemsize < 2 or array.dtype.kind in "biu":
        return array
    return np.asarray(array / np.sqrt(prod(array.shape[:-1]))).astype(array.dtype)


def _non_negative_parameters(program: Program) -> set[int]:
    """Numbers of the arguments of ``main`` that must not be negative."""
    normalized = program.clone()
    try:
        normalize(normalized.module)
    except Error:
        return set()
    arguments = entry_function(normalized.module).regions[0].blocks[0].arguments
    return {number for number, argument in enumerate(arguments) if _reaches_a_root(argument)}


def _reaches_a_root(argument: Any) -> bool:
    pending, seen = [argument], set()
    while pending:
        for use in pending.pop().uses:
            op = use.owner.operation
            if op.name in _NON_NEGATIVE or (op.name, use.operand_number) == _VARIANCE:
                return True
            if op.name in _TRANSPARENT and op not in seen and _is_float(op.results[0]):
                seen.add(op)
                pending.append(op.results[0])
    return False


def _is_float(value: Any) -> bool:
    return isinstance(ir.RankedTensorType(value.type).element_type, ir.FloatType)
