"""Factorizations and solutions of linear systems, of batches of matrices.

Source: XLA "Cholesky", "TriangularSolve"; StableHLO specification "cholesky", "triangular_solve".
"""

from __future__ import annotations

from hloforge.dialect.emission import emit, enum, flag
from hloforge.dialect.errors import OperationError
from hloforge.dialect.op import COMPLEX, FLOAT, op
from hloforge.dialect.rules import same_element_type
from hloforge.dialect.values import Value

_FORMS = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")


@op("Cholesky", emits="stablehlo.cholesky", on=FLOAT | COMPLEX)
def cholesky(a: Value, lower: bool = True) -> Value:
    """The triangular factor of symmetric (complex: Hermitian) positive definite matrices.

    Args:
        a: ``[..., n, n]``; one triangle is read, the other may hold anything.
        lower: read the lower triangle and return ``l`` with ``l @ adjoint(l) = a``; else the upper one, and ``u`` with
            ``adjoint(u) @ u = a``.

    Returns:
        The factors, of the operand's shape; their other triangles are undefined, and so is the factor of a matrix that
        is not positive definite (XLA's CPU client and hloforge give zeros and NaN).

    Raises:
        OperationError: the rank is below 2, or the last two sizes differ.

    Example:
        >>> cholesky(constant([[4.0, 2.0], [2.0, 10.0]], "f32"))
        [[2. 0.]
         [1. 3.]]
    """
    _check_square(a)
    return emit("stablehlo.cholesky", [a], a.shape, lower=flag(lower))


@op("TriangularSolve", emits="stablehlo.triangular_solve", on=FLOAT | COMPLEX)
def triangular_solve(
    a: Value,
    b: Value,
    left_side: bool = True,
    lower: bool = True,
    unit_diagonal: bool = False,
    transpose_a: str = "NO_TRANSPOSE",
) -> Value:
    """Solve linear systems of triangular matrices: ``op(a) @ x = b``, or ``x @ op(a) = b``.

    Args:
        a: ``[..., m, m]``; one triangle is read, the other may hold anything.
        b: ``[..., m, k]``, or ``[..., k, m]`` if the unknown is on the left; as many leading dimensions of the
            same sizes as ``a``.
        left_side: whether ``a`` is on the left of the unknown.
        lower: which triangle of ``a`` is read, before ``op`` is applied.
        unit_diagonal: take the diagonal of ``a`` for ones, whatever it holds.
        transpose_a: what ``op`` does: NO_TRANSPOSE, TRANSPOSE or ADJOINT.

    Returns:
        ``x``, of the shape of ``b``.

    Raises:
        OperationError: element types, ranks or leading sizes differ, the rank is below 2, the matrices are not square,
            ``b`` does not fit them, or there is no such ``transpose_a``.

    Example:
        >>> a = constant([[2.0, 0.0], [1.0, 4.0]], "f32")
        >>> triangular_solve(a, constant([[2.0], [9.0]], "f32"))
        [[1.]
         [2.]]
        >>> triangular_solve(a, constant([[4.0, 8.0]], "f32"), left_side=False)
        [[1. 2.]]
    """
    same_element_type(a, b)
    _check_square(a)
    if a.rank != b.rank:
        raise OperationError(f"operands must have equal ranks, not {a.shape} and {b.shape}")
    for d, (mine, theirs) in enumerate(zip(a.dims[:-2], b.dims[:-2], strict=True)):
        if _differ(mine, theirs):
            raise OperationError(f"operands must have equal leading sizes: dimension {d} of {a.shape} and {b.shape}")
    shared = b.dims[-2 if left_side else -1]
    if _differ(a.dims[-1], shared):
        side = "rows" if left_side else "columns"
        raise OperationError(f"{b.shape} must have as many {side} as the matrices of {a.shape}, not {shared}")
    form = transpose_a.upper()
    if form not in _FORMS:
        raise OperationError(f"transpose_a {transpose_a!r} must be one of {', '.join(_FORMS)}")
    return emit(
        "stablehlo.triangular_solve",
        [a, b],
        b.shape,
        left_side=flag(left_side),
        lower=flag(lower),
        unit_diagonal=flag(unit_diagonal),
        transpose_a=enum("transpose", form),
    )


def _check_square(a: Value) -> None:
    if a.rank < 2:
        raise OperationError(f"matrices have two dimensions, {a.shape} has fewer")
    if _differ(*a.dims[-2:]):
        raise OperationError(f"the last two dimensions of {a.shape} must have equal sizes")


def _differ(one: int, other: int) -> bool:
    """Whether two sizes are known and differ."""
    return one != other and min(one, other) >= 0
