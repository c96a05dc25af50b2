"""What weights alone decide, such as norms of their rows and scales, is computed at import, as in ONNX Runtime.

Weights are constants of the program, and their views (transposed, repeated, reshaped) are operations on them. Operators
that take numpy no longer than reading its arguments are evaluated where the result is as large as the weights at most.
Views, and conversions to narrower or wider numbers, stay: they would be one more copy in the file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.mlir import SSAValue
from hloforge.dialect.operations import defining_op, integers
from hloforge.dialect.values import Value
from hloforge.importers.onnx.folding import evaluate
from hloforge.importers.tensors import Array

_OPERATORS = frozenset(
    {
        *("Abs", "Add", "Clip", "Div", "Exp", "Log", "Max", "Min", "Mul", "Neg", "Pow", "Reciprocal"),
        *("ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceSumSquare", "Sqrt"),
        *("Sub", "Tanh"),
    }
)
_MOST_ELEMENTS = 1 << 24
_FLOATS = frozenset({"float32", "float64"})


def of_weights(proto: Any, version: int, inputs: Sequence[Any]) -> list[Array] | None:
    """The outputs of a node whose inputs are weights, or known; None if it is to become a part of the program."""
    given = [tensor for tensor in inputs if tensor is not None]
    if proto.domain or proto.op_type not in _OPERATORS or not any(isinstance(tensor, Value) for tensor in given):
        return None
    if max(math.prod(tensor.dims) for tensor in given if isinstance(tensor, Value)) > _MOST_ELEMENTS:
        return None
    arrays = [_array(tensor.ir) if isinstance(tensor, Value) else tensor for tensor in inputs]
    known = [array for array in arrays if array is not None]
    if len(known) < len(given) or not all(isinstance(array, np.ndarray) for array in known):
        return None
    if known[0].dtype.name not in _FLOATS:
        return None
    # A repeated array is as large as what it is of.
    stored = max(_stored(array) for array in known)
    if not proto.op_type.startswith("Reduce"):
        try:
            size = math.prod(np.broadcast_shapes(*(array.shape for array in known)))
        except ValueError:
            return None
        if size > stored:
            return None
    try:
        return [np.asarray(result) for result in evaluate(proto, version, arrays)]
    except Exception:
        # The evaluator lacks the type, or something is wrong, which the operator's own function says.
        return None


def _array(value: SSAValue) -> Array | None:
    """A weight, or a view of it."""
    op = defining_op(value)
    if op is None:
        return None
    if op.name == "stablehlo.constant":
        return np.asarray(constant_of(op))
    if op.name not in ("stablehlo.transpose", "stablehlo.reshape", "stablehlo.broadcast_in_dim"):
        return None
    array, dims = _array(op.operands[0]), tuple(value.type.shape)
    if array is None or op.name == "stablehlo.reshape":
        return array if array is None else array.reshape(dims)
    if op.name == "stablehlo.transpose":
        return array.transpose(integers(op, "permutation"))
    places = integers(op, "broadcast_dimensions")
    order = sorted(range(len(places)), key=lambda d: places[d])
    sizes = [1] * len(dims)
    for d, place in enumerate(places):
        sizes[place] = array.shape[d]
    return np.broadcast_to(array.transpose(order).reshape(sizes), dims)


def _stored(array: Array) -> int:
    return math.prod(size for size, step in zip(array.shape, array.strides, strict=True) if step)
