"""The largest numbers of rows as TransformerEngine's JAX function calls them.

Source: TransformerEngine ``jax/cpp_extensions/topk.py``, ``jax/csrc/extensions/topk.cpp``.
"""

from __future__ import annotations

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.values import Value, leaves
from hloforge.pipelines.library_calls.library_products import workspace
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target


@custom_call_target("te_topk_ffi")
def top_k(call: CustomCall) -> list[Value]:
    """Rows, how many numbers each has -> the largest, where they were, a workspace. The call promises no order."""
    rows, lengths = call.operands
    count = int(call.setting("k_value"))
    places = ops.iota("s32", rows.dims, 1)
    is_there = places < ops.broadcast_in_dim(lengths, rows.dims, [0])
    rows = ops.select(is_there, rows, full(rows, float("-inf")))

    def before(left: Value, right: Value, *_: Value) -> Value:
        return ops.gt_total_order(left, right)

    values, numbers = leaves(ops.sort([rows, places], before, 1, is_stable=True))
    return [values[:, :count], numbers[:, :count], *workspace(call.shapes[2:])]
