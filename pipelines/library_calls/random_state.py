"""The state of XLA's own expansion of ``rng``, which optimized programs name: 128 bits, kept by the loaded program.

Each operation of a program has a state of its own, as on XLA's CPU; on GPUs a program has one, so that dumps of
several ``rng`` draw other numbers there. Source: XLA "RngExpander", ``RngState`` of its CPU backend.
"""

from __future__ import annotations

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.marks import RNG_STATE
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.variables import take
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target

# XLA's, the lower half first.
_INITIAL = (0x7012395, 0)
_SIGN = -(2**63)


@custom_call_target(RNG_STATE)
def rng_state(call: CustomCall) -> list[Value]:
    """The state before this operation, u64 ``[2]``, the lower half first; ``delta`` is added for the next one."""
    delta, number = call.setting("delta"), call.setting("number")
    step = constant([delta, -1 if delta < 0 else 0], "s64")
    held = take(call.op, f"{RNG_STATE}.{number}", _INITIAL, _add, step)
    return [ops.bitcast_convert_type(held, "u64")]


def _add(state: Value, step: Value) -> Value:
    """The sum of two numbers of 128 bits as pairs of s64."""
    total = state + step
    low, addend = (ops.slice(pair, [0], [1]) for pair in (total, step))
    # As unsigned numbers, which those with the other sign bit compare like.
    carry = ops.convert_element_type(ops.lt(low ^ _SIGN, addend ^ _SIGN), "s64")
    return total + ops.pad(carry, constant(0, "s64"), [(1, 0, 0)])
