"""Eigenvalues and eigenvectors of Hermitian matrices. Source: LAPACK "syevd", "heevd"; JAX ``jnp.linalg.eigh``,
whose call on TPUs is XLA's "Eigh"."""

from __future__ import annotations

from math import prod

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.idioms import zeros
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.matrices import (
    from_parts,
    hermitian,
    kept,
    not_finite,
    parts_of,
    poisoned,
    scaled,
)
from hloforge.pipelines.library_calls.own_calls import reflected, tridiagonal, tridiagonal_eigenvectors
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target, lapack, solver
from hloforge.pipelines.library_calls.tridiagonal import TAU, D, E, tridiagonalize
from hloforge.pipelines.library_calls.tridiagonal_ql import diagonalize

_MODE = {"V": True, "N": False}


@custom_call_target(*lapack("syevd", prefixes="sd"), *lapack("heevd", prefixes="cz"))
def syevd(call: CustomCall) -> list[Value]:
    """a ``[..., n, n]`` -> eigenvectors (without them a), ascending eigenvalues ``[..., n]``, info ``[...]``.

    Numbers that are not finite make NaN of a matrix's results, and 1 of its info.
    """
    (a,) = call.operands
    vectors = call.choice("mode", _MODE) and call.is_read(0)
    return _of_any_batch(a, lower=call.lower, vectors=vectors)


@custom_call_target(*solver("syevd"))
def syevd_of_solver(call: CustomCall) -> list[Value]:
    """The same with the vectors, whichever algorithm is asked for."""
    call.setting("algorithm")
    return _of_any_batch(call.operands[0], lower=call.lower, vectors=call.is_read(0))


@custom_call_target("Eigh")
def portable(call: CustomCall) -> list[Value]:
    """a -> eigenvectors, ascending eigenvalues; its text tells the triangle, and three things of its own algorithm."""
    lower, *rest = call.text.split(",")
    if lower not in ("0", "1") or len(rest) != 3:
        raise UnsupportedError(f'@Eigh has the configuration "{call.text}", and not lower,sort,turns,tolerance')
    return _of_any_batch(call.operands[0], lower=lower == "1", vectors=call.is_read(0))[:2]


def _of_any_batch(a: Value, *, lower: bool, vectors: bool) -> list[Value]:
    batch, n = a.dims[:-2], a.dims[-1]
    if not prod(a.dims):
        real = ops.real(a).element_type if a.element_type.is_complex else a.element_type
        return [a, zeros(real, a.dims[:-1]), zeros("s32", batch)]
    values, columns, info = eigh(ops.reshape(a, [prod(batch), n, n]), lower=lower, vectors=vectors)
    found = a if columns is None else ops.reshape(columns, a.dims)
    return [found, ops.reshape(values, a.dims[:-1]), ops.reshape(info, batch)]


def eigh(a: Value, *, lower: bool, vectors: bool) -> tuple[Value, Value | None, Value]:
    """Eigenvalues ``[b, n]``, eigenvectors ``[b, n, n]``, and how many are missing ``[b]``, of ``[b, n, n]``.

    By Householder's reduction to tridiagonal form; with vectors divide and conquer where there is code for it, else
    implicit QL.
    """
    a = hermitian(a, lower)
    bad = not_finite(a)
    a, scale = scaled(a, bad)
    reflectors, (d, e, taus) = _tridiagonal(a)
    if vectors:
        values, left, rows = tridiagonal_eigenvectors(d, e)
    else:
        values, left, _ = diagonalize(d, e, None)
        left = ops.convert_element_type(left, values.element_type)
    info = ops.reduce(ops.convert_element_type(ops.ne(left, 0.0), "s32"), 0, ops.add, [1])
    info = ops.select(bad, full(info, 1), info)
    values = poisoned(values * ops.broadcast_in_dim(scale, values.dims, [0]), bad)
    if not vectors:
        return values, None, info
    if a.element_type.is_complex:
        rows = ops.complex(rows, full(rows, 0))
    return values, poisoned(reflected(reflectors, taus, rows, offset=1), bad), info


def _tridiagonal(a: Value) -> tuple[Value, tuple[Value, Value, Value]]:
    """Reflectors ``[b, n, n]``; the diagonal and the one beside it ``[b, n]``, and the reflectors' factors."""
    batch, n, _ = a.dims
    if not a.element_type.is_complex:
        reflectors, diagonals = tridiagonal(a)
        d, e = (ops.reshape(diagonals[:, row : row + 1], [batch, n]) for row in (D, E))
        return reflectors, (d, e, diagonals[:, TAU : TAU + 1])
    reduced = tridiagonalize(parts_of(a))
    d, e = (ops.reshape(reduced.block((n + row, n + row + 1), n).re, [batch, n]) for row in (D, E))
    found = (reduced.block(rows, n) for rows in ((0, n), (n + TAU, n + TAU + 1)))
    reflectors, taus = (from_parts(kept(of).parts) for of in found)
    return reflectors, (d, e, taus)
