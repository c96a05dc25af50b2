"""Products of arrays whose blocks have scales of their own.

Before (importers/hlo_scaled.py makes the call)::

    %z = stablehlo.custom_call @hloforge.scaled_dot(%x, %y, %a, %b) {backend_config = "{\"contracting\": …}"}

After::

    %z = stablehlo.dot_general (%x times %a, repeated over its blocks), (%y times %b, the same)

Source: XLA "ScaledDot", ``ScaledDotRewriter``.
"""

from __future__ import annotations

from hloforge.dialect import ops
from hloforge.dialect.element_types import ElementType, element_type
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.marks import SCALED_DOT
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, pattern
from hloforge.pipelines.library_calls.registry import CustomCall


@pattern("stablehlo.custom_call")
def scaled_dot(op: ir.Operation) -> Replacement:
    """x, y and the scales of their blocks -> the product of the scaled arrays; a scalar represents no scales."""
    call = CustomCall.of(op)
    if call.target != SCALED_DOT:
        return NoMatch("another call")
    x, y, x_scale, y_scale = call.operands
    row = Value(op.results[0]).element_type
    numbers = call.configuration("")
    x, y = _scaled(x, x_scale), _scaled(y, y_scale)
    row_of_operands = _common(x.element_type, y.element_type)
    x, y = (ops.convert_element_type(side, row_of_operands) for side in (x, y))
    dimensions = ops.DotDimensionNumbers(*numbers["contracting"], *numbers["batch"])
    wide = _common(row_of_operands, row)
    return [ops.convert_element_type(ops.dot_general(x, y, dimensions, preferred_element_type=wide), row)]


def _scaled(x: Value, scale: Value) -> Value:
    if scale.rank == 0:
        return x
    if scale.rank != x.rank or any(size % blocks for size, blocks in zip(x.dims, scale.dims, strict=True)):
        raise UnsupportedError(f"scales {scale.shape} do not divide an array {x.shape} into blocks")
    row = _common(x.element_type, scale.element_type)
    x, scale = ops.convert_element_type(x, row), ops.convert_element_type(scale, row)
    # Each scale for all elements of its block: the sizes of blocks as dimensions of their own.
    inside = [part for size, blocks in zip(x.dims, scale.dims, strict=True) for part in (blocks, size // blocks)]
    spread = ops.broadcast_in_dim(scale, inside, range(0, 2 * x.rank, 2))
    return x * ops.reshape(spread, x.dims)


def _common(one: ElementType, other: ElementType) -> ElementType:
    """XLA's: the wider one, bf16 for two of less than 16 bits, f32 for two of the same width."""
    if max(one.bits, other.bits) < 16:
        return element_type("bf16")
    if one.bits == other.bits:
        return one if one == other else element_type("f32")
    return one if one.bits > other.bits else other
