"""hloforge's own factorization calls, between a library's calls and the loops that compute them.

Code generation has code for some of them; ``decompose-factorizations`` makes loops of others::

    %l, %failed = stablehlo.custom_call @hloforge.cholesky(%a) {backend_config = {lower = true}}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.marks import (
    BIDIAGONAL,
    BIDIAGONAL_QR,
    BIDIAGONAL_VECTORS,
    CHOLESKY,
    HESSENBERG,
    LU,
    ORTHOGONAL,
    QR,
    REFLECTED,
    TRIDIAGONAL,
    TRIDIAGONAL_EIGENVECTORS,
    TRIDIAGONAL_QL,
)
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


def tridiagonal(a: Value) -> tuple[Value, Value]:
    """Real symmetric matrices q t q^T, with t tridiagonal.

    Args:
        a: ``[b, n, n]``, n > 0, with magnitudes of about 1 at most.

    Returns:
        the reflectors of q = H_0 H_1 ..., ``[b, n, n]``: row k is a vector with zeros before its 1 at k + 1, and the
        last row is zero; the diagonal of t, the one beside it, and the reflectors' factors: ``[b, 3, n]``.
    """
    batch, n, _ = a.dims
    reflectors, diagonals = own_call(TRIDIAGONAL, [a], [str(a.shape), f"{a.element_type.name}[{batch},3,{n}]"])
    return reflectors, diagonals


def hessenberg(a: Value) -> tuple[Value, Value, Value]:
    """Real square matrices q h q^T, with h of Hessenberg form.

    Args:
        a: ``[b, n, n]``, n > 1, with magnitudes of about 1 at most.

    Returns:
        h, where what is below the other diagonal is to be taken for zero; the reflectors of q as of ``tridiagonal``,
        ``[b, n, n]``; their factors, ``[b, 1, n]``.
    """
    batch, n, _ = a.dims
    form, reflectors, taus = own_call(
        HESSENBERG, [a], [str(a.shape), str(a.shape), f"{a.element_type.name}[{batch},1,{n}]"]
    )
    return form, reflectors, taus


def bidiagonal(a: Value) -> tuple[Value, Value, Value]:
    """Real square matrices q b p^T, with b upper bidiagonal.

    Args:
        a: ``[b, n, n]``, n > 0, with magnitudes of about 1 at most.

    Returns:
        the reflectors of q and those of p, ``[b, n, n]``: row k is a vector with zeros before its 1 at k, and at k + 1;
        the diagonal of b, the one above it, and the reflectors' factors of both: ``[b, 4, n]``. Reflectors whose
        factors are zero may be zero.
    """
    batch, n, _ = a.dims
    left, right, diagonals = own_call(
        BIDIAGONAL, [a], [str(a.shape), str(a.shape), f"{a.element_type.name}[{batch},4,{n}]"]
    )
    return left, right, diagonals


def reflected(reflectors: Value, taus: Value, c: Value, *, offset: int) -> Value:
    """Products of reflectors with matrices: H_0 H_1 ... c, ``[b, n, w]``.

    Args:
        reflectors: ``[b, n, n]``, a vector in each row: of row k with zeros before its 1 at k + offset.
        taus: ``[b, 1, n]``.
        c: its columns, ``[b, w, n]``.
    """
    batch, w, n = c.dims
    (found,) = own_call(REFLECTED, [reflectors, taus, c], [f"{c.element_type.name}[{batch},{n},{w}]"], offset=offset)
    return found


def tridiagonal_eigenvectors(d: Value, e: Value) -> tuple[Value, Value, Value]:
    """Eigenvalues and eigenvectors of real symmetric tridiagonal matrices.

    Args:
        d, e: as of ``tridiagonal_ql``.

    Returns:
        the eigenvalues in ascending order; ``[b, n]``, zero except for eigenvalues that were not found; the
        eigenvectors, ``[b, n, n]``, one in a row.
    """
    batch, n = d.dims
    shapes = [str(d.shape), str(d.shape), f"{d.element_type.name}[{batch},{n},{n}]"]
    values, left, rows = own_call(TRIDIAGONAL_EIGENVECTORS, [d, e], shapes)
    return values, left, rows


def bidiagonal_vectors(d: Value, e: Value) -> tuple[Value, Value, Value, Value]:
    """Singular values and vectors of real upper bidiagonal matrices u s v^T.

    Args:
        d, e: as of ``bidiagonal_qr``.

    Returns:
        the values in descending order; ``[b, n]``, zero except for values that were not found; the vectors of the left
        side and of the right one, ``[b, n, n]``, one in a row.
    """
    batch, n = d.dims
    square = f"{d.element_type.name}[{batch},{n},{n}]"
    values, left, u, v = own_call(BIDIAGONAL_VECTORS, [d, e], [str(d.shape), str(d.shape), square, square])
    return values, left, u, v
