"""Linear algebra: stacks of any count, and square matrices of any size, whose padding is the identity's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from hloforge.dialect.errors import UnsupportedError
from hloforge.torch.bounded.registry import OpenCall, bounded
from hloforge.torch.bounded.sizes import fit


def _padded(call: OpenCall, number: int, array: Any, dims: Sequence[int], padding: Any) -> Any:
    """An argument with a value in the place of the padding of these dimensions."""
    dims = [dim % array.ndim for dim in dims]
    if not set(dims) & set(call.open(number)):
        return array
    return jnp.where(call.inside(number, array, dims), array, jnp.asarray(padding).astype(array.dtype))


def _square(call: OpenCall, number: int, matrix: Any) -> Any:
    """A square matrix beside an identity: factors and inverses of the two blocks are apart.

    Raises:
        UnsupportedError: the matrix is not square, and has an open size.
    """
    dims = range(matrix.ndim)[-2:]
    if not set(dims) & set(call.open(number)):
        return matrix
    rows, columns = matrix.shape[-2:]
    if rows != columns:
        raise UnsupportedError("a matrix that is not square, whose size is not known before the call")
    return _padded(call, number, matrix, dims, jnp.eye(rows))


@bounded(
    *("aten.linalg_inv_ex", "aten._linalg_det", "aten._linalg_slogdet", "aten.linalg_cholesky_ex", "aten.cholesky"),
    *("aten.linalg_lu_factor_ex", "aten._lu_with_info", "aten.linalg_lu", "aten.cholesky_inverse"),
)
def factor(call: OpenCall, matrix: Any, *arguments: Any, **named: Any) -> Any:
    return call.plain(_square(call, 0, matrix), *arguments, **named)


def _stacked(array: Any, batch: Sequence[int], matrix: Sequence[int]) -> Any:
    """An argument with the padding of the result's leading dimensions, and that of a matrix."""
    own = array.shape[:-2]
    wanted = batch[len(batch) - len(own) :]
    leading = [1 if size == 1 else extent for size, extent in zip(own, wanted, strict=True)]
    return fit(array, [*leading, *matrix])


def _system(call: OpenCall, numbers: tuple[int, int], a: Any, b: Any, left: bool) -> tuple[Any, Any]:
    """Both sides of a system of equations, with zeros beside the right one.

    Args:
        numbers: which arguments they are.
    """
    first = call.wanted[0] if isinstance(call.wanted, list | tuple) else call.wanted
    batch = tuple(first.shape[: len(first.shape) - 2])
    a = _square(call, numbers[0], a)
    b = _padded(call, numbers[1], b, [-2 if left else -1], 0)
    size = a.shape[-1]
    inner = (size, b.shape[-1]) if left else (b.shape[-2], size)
    return _stacked(a, batch, a.shape[-2:]), _stacked(b, batch, inner)


@bounded("aten.linalg_solve_triangular")
def solve_triangular(call: OpenCall, a: Any, b: Any, *, left: bool = True, **named: Any) -> Any:
    return call.plain(*_system(call, (0, 1), a, b, left), left=left, **named)


@bounded("aten.cholesky_solve", "aten._cholesky_solve_helper")
def cholesky_solve(call: OpenCall, b: Any, a: Any, *arguments: Any, **named: Any) -> Any:
    a, b = _system(call, (1, 0), a, b, True)
    return call.plain(b, a, *arguments, **named)


@bounded("aten.triangular_solve")
def old_solve_triangular(call: OpenCall, b: Any, a: Any, *arguments: Any, **named: Any) -> Any:
    a, b = _system(call, (1, 0), a, b, True)
    return call.plain(b, a, *arguments, **named)


@bounded("aten._linalg_solve_ex")
def solve(call: OpenCall, a: Any, b: Any, *, left: bool = True, **named: Any) -> Any:
    # Sizes of padded arrays do not tell vectors from matrices: the result's rank does.
    if len(call.wanted[0].shape) == a.ndim - 1:
        if b.ndim == 1:
            b = _padded(call, 1, b, [-1], 0)
            b = jnp.broadcast_to(fit(b, a.shape[-1:]), a.shape[:-1])
        else:
            b = fit(_padded(call, 1, b, [-1], 0), a.shape[:-1])
        return call.plain(_square(call, 0, a), b, left=left, **named)
    return call.plain(*_system(call, (0, 1), a, b, left), left=left, **named)


@bounded("aten.linalg_lu_solve")
def lu_solve(call: OpenCall, factors: Any, pivots: Any, b: Any, *, left: bool = True, **named: Any) -> Any:
    factors, b = _system(call, (0, 2), factors, b, left)
    pivots = _padded(call, 1, pivots, [-1], jnp.arange(1, pivots.shape[-1] + 1))
    sizes = zip(pivots.shape[:-1], factors.shape[-1 - pivots.ndim : -2], strict=True)
    leading = [1 if own == 1 else extent for own, extent in sizes]
    return call.plain(factors, fit(pivots, [*leading, factors.shape[-1]]), b, left=left, **named)


@bounded("aten.addbmm")
def addbmm(call: OpenCall, bias: Any, x: Any, y: Any, **named: Any) -> Any:
    x, y = _padded(call, 1, x, [0, 2], 0), _padded(call, 2, y, [0, 1], 0)
    return call.plain(call.fitted(bias), x, y, **named)


@bounded("aten._trilinear")
def trilinear(call: OpenCall, *arguments: Any) -> Any:
    factors = [_padded(call, number, each, range(each.ndim), 0) for number, each in enumerate(arguments[:3])]
    return call.plain(*factors, *arguments[3:])


@bounded("aten.linalg_eig", "aten.linalg_eigvals", "aten._linalg_eigvals", "aten.linalg_matrix_exp", "aten.linalg_pinv")
def whole(call: OpenCall, matrix: Any, *arguments: Any, **named: Any) -> Any:
    if set(range(matrix.ndim)[-2:]) & set(call.open(0)):
        raise UnsupportedError("a matrix whose size is not known before the call")
    return call.plain(matrix, *arguments, **named)


@bounded("aten._grouped_mm", "transformers.grouped_mm_fallback")
def grouped_product(call: OpenCall, x: Any, weights: Any, ends: Any = None, *arguments: Any, **named: Any) -> Any:
    """Rows and columns behind the last end belong to no group; what is summed has zeros there.

    Raises:
        UnsupportedError: the number of groups is open.
    """
    stacks = [number for number, array in enumerate((x, weights)) if array.ndim == 3]
    if call.open(2) or (ends is not None and any(0 in call.open(number) for number in stacks)):
        raise UnsupportedError("products of a number of groups that is not known before the call")
    x, weights = _padded(call, 0, x, [-1], 0), _padded(call, 1, weights, [-2], 0)
    return call.plain(x, weights, ends, *arguments, **named)


@bounded("transformers.grouped_mm_fallback_backward")
def grouped_product_backward(call: OpenCall, x: Any, weights: Any, ends: Any, gradient: Any) -> Any:
    """Rows behind the last end belong to no group; columns are summed, and padding of them has zeros."""
    if call.open(2) or 0 in call.open(1):
        raise UnsupportedError("products of a number of groups that is not known before the call")
    return call.plain(x, _padded(call, 1, weights, [-1], 0), ends, _padded(call, 3, gradient, [-1], 0))


@bounded("aten._cdist_forward")
def distances(call: OpenCall, x: Any, y: Any, *arguments: Any) -> Any:
    x, y = _padded(call, 0, x, [-1], 0), _padded(call, 1, y, [-1], 0)
    batch = call.shape[:-2]
    return call.plain(_stacked(x, batch, x.shape[-2:]), _stacked(y, batch, y.shape[-2:]), *arguments)


@bounded("aten._cdist_backward")
def distances_backward(call: OpenCall, gradient: Any, x: Any, y: Any, p: Any, found: Any) -> Any:
    """Nothing comes back from padding."""
    arrays = [_padded(call, n, each, range(each.ndim), 0) for n, each in ((0, gradient), (1, x), (2, y), (4, found))]
    gradient, x, y, found = arrays
    batch = [max(sizes) for sizes in zip(*(each.shape[:-2] for each in arrays), strict=True)]
    rows, columns = found.shape[-2:]
    x, y = _stacked(x, batch, (rows, x.shape[-1])), _stacked(y, batch, (columns, y.shape[-1]))
    return call.plain(_stacked(gradient, batch, (rows, columns)), x, y, p, _stacked(found, batch, (rows, columns)))


@bounded("aten.linalg_cross")
def cross(call: OpenCall, x: Any, y: Any, **named: Any) -> Any:
    return call.plain(call.fitted(x), call.fitted(y), **named)


@bounded("aten.multinomial")
def multinomial(call: OpenCall, weights: Any, *arguments: Any, **named: Any) -> Any:
    """Padding has no chance."""
    return call.plain(_padded(call, 0, weights, [-1], 0), *arguments, **named)


@bounded("aten.poisson", "aten._standard_gamma")
def drawn_of(call: OpenCall, x: Any, *arguments: Any, **named: Any) -> Any:
    """Draws that are repeated until one fits have a number in the place of padding that may not be one."""
    return call.plain(_padded(call, 0, x, range(x.ndim), 1), *arguments, **named)
