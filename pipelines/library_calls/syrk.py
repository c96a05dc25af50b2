"""Symmetric products in JAX's programs for GPUs. Source: BLAS "syrk"; JAX ``lax.linalg.symmetric_product``."""

from __future__ import annotations

from math import prod

from hloforge.dialect import ops
from hloforge.dialect.idioms import batch_matmul, matrix_transpose
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.blocks import spread
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target, solver


@custom_call_target(*solver("syrk"))
def syrk(call: CustomCall) -> list[Value]:
    """a ``[..., n, k]``, c ``[..., n, n]`` and the numbers alpha, beta -> ``alpha a a^T + beta c``, both triangles."""
    a, c, alpha, beta = call.operands
    flat = ops.reshape(a, [prod(a.dims[:-2]), *a.dims[-2:]])
    factor = matrix_transpose(flat) if call.setting("transpose") else flat
    product = ops.reshape(batch_matmul(factor, matrix_transpose(factor)), c.dims)
    return [spread(alpha, c.dims) * product + spread(beta, c.dims) * c]
