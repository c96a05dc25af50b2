"""Triangular systems as BLAS's calls solve them. Source: BLAS "trsm"; JAX ``jax.lax.linalg.triangular_solve``."""

from __future__ import annotations

from hloforge.dialect import ops
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.registry import UPLO, CustomCall, custom_call_target, lapack

_SIDE = {"L": True, "R": False}
_FORM = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}
_UNIT_DIAGONAL = {"U": True, "N": False}


@custom_call_target(*lapack("trsm"))
def trsm(call: CustomCall) -> list[Value]:
    """a ``[..., n, n]``, b -> x of b's shape with op(a) x = b, or x op(a) = b."""
    a, b = call.operands
    return [
        ops.triangular_solve(
            a,
            b,
            left_side=call.choice("side", _SIDE),
            lower=call.choice("uplo", UPLO),
            unit_diagonal=call.choice("diag", _UNIT_DIAGONAL),
            transpose_a=call.choice("trans_x", _FORM),
        )
    ]
