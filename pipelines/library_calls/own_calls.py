"""hloforge's own factorization calls, between a library's calls and the loops that compute them.

Code generation has code for some of them; ``decompose-factorizations`` makes loops of others::

    %l, %failed = stablehlo.custom_call @hloforge.cholesky(%a) {backend_config = {lower = true}}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.marks import BIDIAGONAL_QR, CHOLESKY, LU, ORTHOGONAL, QR, TRIDIAGONAL_QL
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value, leaves


def own_call(target: str, operands: Sequence[Value], results: Sequence[str], **settings: Any) -> list[Value]:
    """A call of ours.

    Args:
        results: their shapes, as XLA prints them.
    """
    shapes = list(map(Shape.parse, results))
    shape = shapes[0] if len(shapes) == 1 else Shape.tuple_of(*shapes)
    return leaves(ops.custom_call(target, operands, shape, backend_config=settings, api_version=4))


def cholesky(a: Value, *, lower: bool) -> tuple[Value, Value]:
    """The factors of ``[b, n, n]``, not empty, and s32 ``[b]``: 0, or the number of the first pivot not positive."""
    factor, failed = own_call(CHOLESKY, [a], [str(a.shape), f"s32[{a.dims[0]}]"], lower=lower)
    return factor, failed


def lu(a: Value) -> list[Value]:
    """p a = l u with the largest pivots of each column.

    Args:
        a: ``[b, m, n]``, not empty.

    Returns:
        l, without its unit diagonal, below u: ``[b, m, n]``; ``[b, 1, k]`` of s32, k = min(m, n): with which row
        (from 0) each row was exchanged; ``[b, 1, m]`` of s32: the row of a that is in each row; ``[b]`` of s32: the
        number (from 1) of the first pivot that is zero, else 0.
    """
    batch, m, n = a.dims
    return own_call(LU, [a], [str(a.shape), f"s32[{batch},1,{min(m, n)}]", f"s32[{batch},1,{m}]", f"s32[{batch}]"])


def qr(a: Value) -> tuple[Value, Value]:
    """q r = a in LAPACK's storage.

    Args:
        a: ``[b, m, n]``, not empty.

    Returns:
        r, with the vectors of reflectors below its diagonal: ``[b, m, n]``; their taus: ``[b, 1, k]``, k = min(m, n).
    """
    batch, m, n = a.dims
    factors, taus = own_call(QR, [a], [str(a.shape), f"{a.element_type.name}[{batch},1,{min(m, n)}]"])
    return factors, taus


def orthogonal(a: Value, taus: Value, columns: int) -> Value:
    """The first columns of a product of reflectors, ``[b, m, columns]``.

    Args:
        a, taus: the reflectors in LAPACK's storage, ``[b, m, k]`` and ``[b, 1, k]``, not empty.
    """
    batch, m, _ = a.dims
    (q,) = own_call(ORTHOGONAL, [a, taus], [f"{a.element_type.name}[{batch},{m},{columns}]"], columns=columns)
    return q


def tridiagonal_ql(d: Value, e: Value, vectors: Sequence[Value]) -> list[Value]:
    """Implicit QL of real symmetric tridiagonal matrices.

    Args:
        d, e: ``[b, n]``, n > 1: diagonals of magnitudes of about 1 at most, and those beside them with e[n - 1] = 0.
        vectors: none, or one array ``[b, n, w]`` to whose rows the rotations are applied.

    Returns:
        d, the eigenvalues in no order; e, zero except for eigenvalues that were not found; the vectors.
    """
    return own_call(TRIDIAGONAL_QL, [d, e, *vectors], [str(value.shape) for value in (d, e, *vectors)])


def bidiagonal_qr(d: Value, e: Value, vectors: Sequence[Value]) -> list[Value]:
    """Implicit QR of real upper bidiagonal matrices; the same, with two arrays: of the left side and of the right."""
    return own_call(BIDIAGONAL_QR, [d, e, *vectors], [str(value.shape) for value in (d, e, *vectors)])
