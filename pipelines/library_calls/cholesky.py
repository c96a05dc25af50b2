"""Cholesky factorizations as LAPACK's calls make them. Source: LAPACK "potrf"; JAX ``jax.lax.linalg.cholesky``."""

from __future__ import annotations

from math import prod

from hloforge.dialect import ops
from hloforge.dialect.idioms import zeros
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.own_calls import cholesky
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target, lapack, solver


@custom_call_target(*lapack("potrf"), *solver("potrf"))
def potrf(call: CustomCall) -> list[Value]:
    """a -> its factor in the triangle ``uplo`` beside the other triangle of a, and info.

    ``info`` is 0, or counts the columns up to the first that fails. What LAPACK leaves of a matrix that is not positive
    definite is undefined; here it is NaN.
    """
    (a,) = call.operands
    lower = call.lower
    batch = a.dims[:-2]
    if not prod(a.dims):
        return [a, zeros("s32", batch)]
    factor, info = cholesky(ops.reshape(a, (prod(batch), *a.dims[-2:])), lower=lower)
    rows, columns = (ops.iota("s32", a.dims, a.rank - 2 + axis) for axis in (0, 1))
    inside = rows >= columns if lower else rows <= columns
    return [ops.select(inside, ops.reshape(factor, a.dims), a), ops.reshape(info, batch)]
