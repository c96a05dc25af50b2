"""Sorts, softmax and norms of rows as optimized programs call them.

Source: XLA ``sort_rewriter.cc`` (``__cub$DeviceRadixSort``), ``onednn_ops_rewriter.cc``, ``backend_config.proto``.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.element_types import Kind, element_type
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value, leaves
from hloforge.pipelines.library_calls.library_products import workspace
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target

_SORTS = ("__cub$DeviceRadixSort", "__cub$DeviceRadixSortUnassignedScratchSize", "xla.gpu.ext.cub_sort_keys")


@custom_call_target(*_SORTS, "xla.gpu.ext.cub_sort_pairs", "xla.gpu.ext.cub_sort_unassigned_scratch_size")
def radix_sort(call: CustomCall) -> list[Value]:
    """Keys, perhaps values -> both in the order of the keys along the last dimension, scratch memory."""
    if "descending" in call.settings:
        descending = bool(call.setting("descending"))
        call.setting("batch_size")  # The product of all other dimensions.
    else:
        descending = bool(call.configuration("sort_options").get("descending", False))
    keys = call.operands[0]

    def before(lhs: Value, rhs: Value, *_: Value) -> Value:
        first, second = (rhs, lhs) if descending else (lhs, rhs)
        is_float = keys.element_type.kind is Kind.FLOAT
        return ops.lt_total_order(first, second) if is_float else ops.lt(first, second)

    ordered = leaves(ops.sort(call.operands, before, keys.rank - 1, is_stable=True))
    return [*ordered, *workspace(call.shapes[len(ordered) :])]


@custom_call_target("xla.gpu.ext.cub_scan", "xla.gpu.ext.cub_scan_unassigned_scratch_size")
def scan(call: CustomCall) -> list[Value]:
    """x -> its running sums along the rows of its elements in memory, scratch memory."""
    config = {name: _scan_setting(call, name) for name in ("vector_length", "row_length", "column_length", "kind")}
    if config.pop("kind") not in (1, "SUM"):
        raise UnsupportedError(f"@{call.target} of another kind than sums")
    is_reverse = bool(_scan_setting(call, "is_reverse", default=False))
    call.setting("element_type", 0)
    (x,) = call.operands
    vector, row, column = (int(size) for size in config.values())
    # Minor dimensions first; without layouts the last dimension is the minor one.
    layouts = call.op.attributes.get("result_layouts", None)
    order = list(map(int, reversed(list(layouts[0])))) if layouts is not None else list(range(x.rank))
    if column * row * vector != prod(x.dims):
        raise UnsupportedError(f"@{call.target} of {column} x {row} x {vector} elements of {x.shape}")
    rows = ops.reshape(ops.transpose(x, order), [column, row, vector])
    padding = (0, max(row - 1, 0)) if is_reverse else (max(row - 1, 0), 0)
    zero = constant(0, x.element_type)
    sums = ops.reduce_window(rows, zero, ops.add, [1, max(row, 1), 1], padding=[(0, 0), padding, (0, 0)])
    back = ops.reshape(sums, [x.dims[dimension] for dimension in order])
    inverse = [order.index(dimension) for dimension in range(x.rank)]
    return [ops.transpose(back, inverse), *workspace(call.shapes[1:])]


def _scan_setting(call: CustomCall, name: str, default: Any = None) -> Any:
    """Of the typed FFI's dictionary, or of JSON, where 64-bit numbers may be text."""
    return call.setting(name, default) if call.settings else call.configuration("scan_options").get(name, default or 0)


@custom_call_target("__onednn$softmax")
def softmax(call: CustomCall) -> list[Value]:
    """x -> its exponentials divided by their sums along an axis."""
    axis = int(call.configuration("onednn_softmax_config").get("softmax_axis", call.operands[0].rank - 1))
    x = _wide(call.operands[0])
    axis %= x.rank
    kept = [d for d in range(x.rank) if d != axis]
    low, zero = (constant(number, x.element_type) for number in (-np.inf, 0))
    largest = ops.broadcast_in_dim(ops.reduce(x, low, ops.max, [axis]), x.dims, kept)
    powers = ops.exp(x - largest)
    sums = ops.broadcast_in_dim(ops.reduce(powers, zero, ops.add, [axis]), x.dims, kept)
    return [ops.convert_element_type(powers / sums, call.shapes[0].element)]


@custom_call_target("__onednn$layernorm")
def layer_norm(call: CustomCall) -> list[Value]:
    """x, scale, shift -> x with mean 0 and variance 1 along its last dimension, scaled and shifted."""
    config = call.configuration("onednn_layer_norm_config")
    if config.get("rescale") != "SCALE_AND_SHIFT":
        raise UnsupportedError(f"@{call.target} that rescales by {config.get('rescale')}")
    epsilon = float(np.array(int(config.get("epsilon_typecast", 0)), np.int32).view(np.float32))
    x, scale, shift = map(_wide, call.operands)
    last, kept = x.rank - 1, list(range(x.rank - 1))
    zero, count = constant(0, x.element_type), float(x.dims[-1])
    mean = ops.broadcast_in_dim(ops.reduce(x, zero, ops.add, [last]) / count, x.dims, kept)
    centred = x - mean
    variance = ops.reduce(centred * centred, zero, ops.add, [last]) / count
    factor = ops.broadcast_in_dim(ops.rsqrt(variance + epsilon), x.dims, kept)
    scale, shift = (ops.broadcast_in_dim(value, x.dims, [last]) for value in (scale, shift))
    return [ops.convert_element_type(centred * factor * scale + shift, call.shapes[0].element)]


def _wide(value: Value) -> Value:
    is_narrow = value.element_type.bits < 32
    return ops.convert_element_type(value, element_type("f32")) if is_narrow else value
