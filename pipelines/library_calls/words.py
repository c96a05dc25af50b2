"""Numbers of 64 bits as two of 32, as XLA's programs for TPUs hold them.

Integers are cut into their low and high bits. Floats are sums: the high part is the number rounded to f32, the low part
what this leaves, so that both together have 48 bits. Source: XLA ``X64SplitLow``, ``X64SplitHigh``, ``X64Combine``
(hlo_replication_analysis.cc, sharding_propagation.cc).
"""

from __future__ import annotations

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target


@custom_call_target("X64SplitLow")
def low(call: CustomCall) -> list[Value]:
    """x of 64 bits -> the low 32 bits of integers, or what rounding to f32 leaves."""
    (x,) = call.operands
    _check(call, x, 64)
    if not x.element_type.is_float:
        return [ops.convert_element_type(x, call.shapes[0].element)]
    rest = x - ops.convert_element_type(_rounded(x), "f64")
    # What is left of an infinity, and of what rounds to one, is nothing.
    zero = ops.broadcast(constant(0, x.element_type), x.dims)
    return [ops.convert_element_type(ops.select(ops.is_finite(rest), rest, zero), "f32")]


@custom_call_target("X64SplitHigh")
def high(call: CustomCall) -> list[Value]:
    """x of 64 bits -> the high 32 bits of integers, or f32."""
    (x,) = call.operands
    _check(call, x, 64)
    if x.element_type.is_float:
        return [_rounded(x)]
    bits = ops.convert_element_type(x, "u64")
    return [ops.convert_element_type(ops.shift_right_logical(bits, 32), call.shapes[0].element)]


@custom_call_target("X64Combine")
def combine(call: CustomCall) -> list[Value]:
    """Low and high parts -> the number of 64 bits."""
    lower, upper = call.operands
    (shape,) = call.shapes
    for part in (lower, upper):
        _check(call, part, 32)
    if lower.element_type.is_float:
        lower, upper = (ops.convert_element_type(part, "f64") for part in (lower, upper))
        return [upper + lower]
    lower, upper = (ops.convert_element_type(ops.convert_element_type(part, "u32"), "u64") for part in (lower, upper))
    return [ops.convert_element_type(ops.or_(ops.shift_left(upper, 32), lower), shape.element)]


def _rounded(x: Value) -> Value:
    return ops.convert_element_type(x, "f32")


def _check(call: CustomCall, value: Value, bits: int) -> None:
    row = value.element_type
    if row.is_complex or row.bits != bits:
        raise UnsupportedError(f"@{call.target} of {value.shape}: it takes numbers of {bits} bits")
