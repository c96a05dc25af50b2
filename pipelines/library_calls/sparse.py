"""Products of sparse matrices as JAX's calls make them. Source: JAX ``jax.experimental.sparse.BCSR``."""

from __future__ import annotations

from math import prod

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.idioms import take_rows, update_rows, within, zeros
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.blocks import spread
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target


@custom_call_target("cpu_csr_sparse_dense_ffi")
def csr_times_dense(call: CustomCall) -> list[Value]:
    """Compressed rows (data ``[e]``, starts ``[m + 1]``, columns ``[e]``) times ``[k, ...]`` -> ``[m, ...]``.

    Entries from the last start on are padding.
    """
    data, starts, columns, dense = call.operands
    rows, entries = starts.dims[0] - 1, data.dims[0]
    dims = [rows, *dense.dims[1:]]
    if not entries * prod(dense.dims) * rows:
        return [zeros(data.element_type, dims)]
    # XLA reads no column that the array lacks; what it computes of one is not defined.
    terms = take_rows(dense, within(columns, dense.dims[0])) * spread(data, [entries, *dense.dims[1:]])
    # Padding adds to a row of its own.
    total = zeros(data.element_type, [rows + 1, *dense.dims[1:]])
    total = update_rows(total, _row_of_each_entry(starts, entries), terms, ops.add, unique=False)
    return [ops.slice(total, [0] * total.rank, dims, [1] * total.rank)]


def _row_of_each_entry(starts: Value, entries: int) -> Value:
    """s32 ``[entries]``: the last row that starts at or before each entry, by bisection of all at once."""
    count = starts.dims[0]
    number = ops.iota(starts.element_type, (entries,), 0)
    row = zeros("s32", (entries,))
    for bit in reversed(range((count - 1).bit_length())):
        further = row + (1 << bit)
        start = take_rows(starts, ops.min(further, count - 1))
        row = ops.select((further < full(row, count)) & (start <= number), further, row)
    return row
