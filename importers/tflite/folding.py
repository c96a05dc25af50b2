"""Computing operators whose inputs are known, with numpy: the chains that lead to sizes, and weights stored in f16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hloforge.importers.tensors import Array
from hloforge.importers.tflite.node import Node
from hloforge.importers.tflite.slices import strided_places

# Sizes and indices; the weights of a DEQUANTIZE are larger.
_MOST_ELEMENTS = 1 << 12


def fold(node: Node) -> Array | None:
    """The output of an operator as numpy computes it; None if it is to become a part of the program."""
    if node.name == "SHAPE":
        return np.asarray(node.dims(), node.result().row.dtype)
    if node.name == "RANK":
        return np.asarray(len(node.dims()), np.int32)
    compute = _FOLDS.get(node.name)
    if compute is None:
        return None
    inputs = [node.constant(number) for number in range(node.count) if node.has(number)]
    known = [array for array in inputs if array is not None]
    if not inputs or len(known) < len(inputs):
        return None
    if node.name == "DEQUANTIZE":
        return known[0].astype(np.float32) if known[0].dtype.kind == "f" else None
    if any(array.size > _MOST_ELEMENTS for array in known) or _is_quantized(node):
        return None
    with np.errstate(all="ignore"):
        return np.asarray(compute(node, *known)).astype(node.result().row.dtype)


def _is_quantized(node: Node) -> bool:
    return any(node.quantization(number) is not None for number in range(node.count) if node.has(number))


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """An elementwise function, which the options must not give an activation."""
    return lambda node, *arrays: _activated(node, function(*arrays))


def _activated(node: Node, array: Any) -> Any:
    bounds = {1: (0, None), 2: (-1, 1), 3: (0, 6)}.get(node.option("FusedActivationFunction"))
    return array if bounds is None else np.clip(array, *bounds)


def _divided(a: Array, b: Array) -> Any:
    if a.dtype.kind == "f":
        return a / b
    return np.trunc(a / np.where(b == 0, 1, b))


def _gathered(node: Node, x: Array, places: Array) -> Any:
    if node.option("BatchDims"):
        raise ValueError("batch dimensions of known indices")
    return np.take(x, places, node.option("Axis"))


def _sliced(node: Node, x: Array, *bounds: Array) -> Any:
    return x[strided_places(node, x.shape, *(list(map(int, bound)) for bound in bounds))]


def _axes(given: Array) -> tuple[int, ...]:
    return tuple(int(axis) for axis in given.reshape(-1))


_FOLDS: dict[str, Callable[..., Any]] = {
    "ADD": _plain(np.add),
    "SUB": _plain(np.subtract),
    "MUL": _plain(np.multiply),
    "DIV": _plain(_divided),
    "FLOOR_DIV": lambda node, a, b: np.floor_divide(a, b),
    "FLOOR_MOD": lambda node, a, b: np.mod(a, b),
    "MAXIMUM": lambda node, a, b: np.maximum(a, b),
    "MINIMUM": lambda node, a, b: np.minimum(a, b),
    "NEG": lambda node, a: -a,
    "ABS": lambda node, a: np.abs(a),
    "SQRT": lambda node, a: np.sqrt(a),
    "FLOOR": lambda node, a: np.floor(a),
    "CEIL": lambda node, a: np.ceil(a),
    "EQUAL": lambda node, a, b: a == b,
    "NOT_EQUAL": lambda node, a, b: a != b,
    "LESS": lambda node, a, b: a < b,
    "LESS_EQUAL": lambda node, a, b: a <= b,
    "GREATER": lambda node, a, b: a > b,
    "GREATER_EQUAL": lambda node, a, b: a >= b,
    "LOGICAL_AND": lambda node, a, b: a & b,
    "LOGICAL_OR": lambda node, a, b: a | b,
    "LOGICAL_NOT": lambda node, a: ~a,
    "SELECT": lambda node, c, a, b: np.where(c, a, b),
    "SELECT_V2": lambda node, c, a, b: np.where(c, a, b),
    "CAST": lambda node, a: a,
    "RESHAPE": lambda node, a, dims=None: a.reshape(node.listed("NewShape") if dims is None else dims),
    "EXPAND_DIMS": lambda node, a, axis: np.expand_dims(a, int(axis.reshape(-1)[0])),
    "SQUEEZE": lambda node, a: np.squeeze(a, tuple(node.listed("SqueezeDims")) or None),
    "CONCATENATION": lambda node, *arrays: np.concatenate(arrays, node.option("Axis")),
    "PACK": lambda node, *arrays: np.stack(arrays, node.option("Axis")),
    "GATHER": _gathered,
    "SLICE": lambda node, x, begin, size: x[
        tuple(slice(b, None if s < 0 else b + s) for b, s in zip(begin.tolist(), size.tolist(), strict=True))
    ],
    "STRIDED_SLICE": _sliced,
    "TRANSPOSE": lambda node, a, order: np.transpose(a, order),
    "RANGE": lambda node, start, stop, step: np.arange(*(part.reshape(())[()] for part in (start, stop, step))),
    "FILL": lambda node, dims, element: np.full(tuple(dims), element.reshape(-1)[0]),
    "TILE": lambda node, a, times: np.tile(a, times),
    "SUM": lambda node, a, axes: np.sum(a, _axes(axes), keepdims=bool(node.option("KeepDims"))),
    "REDUCE_PROD": lambda node, a, axes: np.prod(a, _axes(axes), keepdims=bool(node.option("KeepDims"))),
    "REDUCE_MAX": lambda node, a, axes: np.max(a, _axes(axes), keepdims=bool(node.option("KeepDims"))),
    "REDUCE_MIN": lambda node, a, axes: np.min(a, _axes(axes), keepdims=bool(node.option("KeepDims"))),
    "BROADCAST_ARGS": lambda node, a, b: np.broadcast_shapes(tuple(a), tuple(b)),
    "BROADCAST_TO": lambda node, a, dims: np.broadcast_to(a, tuple(dims)),
    "ZEROS_LIKE": lambda node, a: np.zeros_like(a),
    "DEQUANTIZE": lambda node, a: a,
}
