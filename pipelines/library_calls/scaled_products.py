"""Arrays in blocks with a scale each, as JAX's ``jax.nn.scaled_matmul`` and XLA call them.

A scale is of as many numbers along the last dimension as fit; where the scales are padded, the call tells the size of
its blocks. Source: XLA ``block_scaling_rewriter.h``, which says what the calls are equivalent to.
"""

from __future__ import annotations

import json

import ml_dtypes

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.element_types import ElementType, element_type
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.ops.dot import DotDimensionNumbers
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target


@custom_call_target("__op$block_scaled_dot")
def block_scaled_dot(call: CustomCall) -> list[Value]:
    """lhs ``[(b,) m, k]``, rhs ``[(b,) n, k]``, scales of the first, perhaps of the second -> ``[(b,) m, n]``."""
    lhs, rhs, *scales = call.operands
    (shape,) = call.shapes
    row = element_type(shape.element)
    wide = row if row.bits >= 32 else element_type("f32")
    size = _block_size(call)
    lhs = _whole(call, lhs, scales[0], wide, size)
    rhs = _whole(call, rhs, scales[1], wide, size) if len(scales) > 1 else ops.convert_element_type(rhs, wide)
    last, batch = lhs.rank - 1, list(range(lhs.rank - 2))
    found = ops.dot_general(lhs, rhs, DotDimensionNumbers([last], [last], batch, batch))
    return [ops.convert_element_type(found, row)]


@custom_call_target("__op$dequantize")
def dequantize(call: CustomCall) -> list[Value]:
    """Numbers ``[..., k]``, scales ``[..., k / size]`` -> their products."""
    numbers, scales = call.operands
    return [_whole(call, numbers, scales, element_type(call.shapes[0].element), _block_size(call))]


@custom_call_target("__op$quantize")
def quantize(call: CustomCall) -> list[Value]:
    """x -> numbers and scales, by which the greatest of each block is about the greatest power of two of the type."""
    (x,) = call.operands
    data, scales = call.shapes
    row = element_type(data.element)
    blocks = ops.reshape(x, [*scales.dimensions, data.dimensions[-1] // scales.dimensions[-1]])
    largest = ops.reduce(ops.abs(blocks), constant(0, x.element_type), ops.max, [blocks.rank - 1])
    # XLA divides by half of the power of two from which on the type overflows.
    power = 2.0 ** ml_dtypes.finfo(row.dtype).maxexp / 2
    scale = ops.convert_element_type(largest / full(largest, power), scales.element)
    spread = ops.broadcast_in_dim(ops.convert_element_type(scale, x.element_type), blocks.dims, range(blocks.rank - 1))
    return [ops.convert_element_type(ops.reshape(blocks / spread, data.dimensions), row), scale]


def _block_size(call: CustomCall) -> int:
    """The numbers of a block, if the call tells; else 0."""
    if not call.text:
        return 0
    parsed = json.loads(call.text)
    config = parsed.get("block_scaled_dot_backend_config", {}) if isinstance(parsed, dict) else {}
    return int(config.get("block_size", 0))


def _whole(call: CustomCall, numbers: Value, scales: Value, wide: ElementType, size: int) -> Value:
    """Numbers times the scales of their blocks."""
    *lead, length = numbers.dims
    size = size or length // max(1, scales.dims[-1])
    if scales.rank != numbers.rank or not size or length % size or scales.dims[-1] * size < length:
        raise UnsupportedError(f"@{call.target} has scales {scales.shape} of {numbers.shape}, which are not of blocks")
    count = length // size
    kept = tuple(slice(0, extent) for extent in (*lead, count))
    each = ops.convert_element_type(scales[kept], wide)
    spread = ops.broadcast_in_dim(each, [*lead, count, size], range(len(lead) + 1))
    return ops.convert_element_type(numbers, wide) * ops.reshape(spread, numbers.dims)
