"""Schur decompositions. Source: LAPACK "gees"; JAX ``jax.lax.linalg.schur``."""

from __future__ import annotations

from math import prod

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.idioms import matrix_transpose, zeros
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.hessenberg import hessenberg
from hloforge.pipelines.library_calls.matrices import from_parts, identity, kept, parts_of, poisoned, prepared, unscaled
from hloforge.pipelines.library_calls.reflectors import accumulated
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target, lapack
from hloforge.pipelines.library_calls.rows import Number
from hloforge.pipelines.library_calls.schur_qr import schur_of_hessenberg

_WANTED = {"V": True, "N": False}


@custom_call_target(*lapack("gees"))
def gees(call: CustomCall) -> list[Value]:
    """a ``[..., n, n]`` -> t, z, eigenvalues (real ones by parts), 0 for how many were selected, info.

    Eigenvalues are not sorted.
    """
    (a,) = call.operands
    wanted, _ = call.choice("mode", _WANTED), call.choice("sort", {"N": False})
    batch = a.dims[:-2]
    shapes = [shape.dimensions for shape in call.shapes]
    counts = [zeros("s32", batch), zeros("s32", batch)]
    if not prod(a.dims):
        return [
            a,
            *(zeros(result.element_type, result.dims) for result in map(Value, list(call.op.results)[1:-2])),
            *counts,
        ]
    flat, bad, scale = prepared(a)
    t, z, left = schur(flat, vectors=wanted)
    t = Number(*(unscaled(part, scale) for part in t.parts))
    values = eigenvalues(t)
    if not a.element_type.is_complex:
        assert values.im is not None
        eigen = [poisoned(values.re, bad), poisoned(values.im, bad)]
    else:
        eigen = [poisoned(from_parts(values.parts), bad)]
    vectors = zeros(a.element_type, flat.dims) if z is None else poisoned(from_parts(z.parts), bad)
    info = ops.select(bad, full(left, 1), left)
    found = [poisoned(from_parts(t.parts), bad), vectors, *eigen, zeros("s32", [prod(batch)]), info]
    return [ops.reshape(x, dims) for x, dims in zip(found, shapes, strict=True)]


def schur(a: Value, *, vectors: bool) -> tuple[Number, Number | None, Value]:
    """T and Z of a = Z T Z^H ``[b, n, n]``, scaled to magnitudes of about 1, and how many rows are missing ``[b]``.

    T is upper triangular, for real matrices except for pairs of rows with complex eigenvalues.
    """
    batch, n, _ = a.dims
    if n == 1:
        one = Number(identity(parts_of(a).re.element_type, a.dims))  # type: ignore[arg-type]
        basis = one if not a.element_type.is_complex else Number(one.re, full(one.re, 0))
        return parts_of(a), basis if vectors else None, zeros("s32", [batch])
    form, reflectors, taus = hessenberg(a)
    rows, columns = (ops.iota("s32", a.dims, axis) for axis in (1, 2))
    form = Number(*(ops.select(rows > columns + 1, full(part, 0), part) for part in form.parts))
    q = None
    if vectors:
        q = _transposed(accumulated(reflectors, taus, offset=1))
    t, found, left = schur_of_hessenberg(kept(form), q)
    below = rows > columns + (0 if a.element_type.is_complex else 1)
    t = Number(*(ops.select(below, full(part, 0), part) for part in t.parts))
    return kept(t), None if found is None else kept(_transposed(found)), left


def _transposed(a: Number) -> Number:
    return Number(*(matrix_transpose(part) for part in a.parts))


def eigenvalues(t: Number) -> Number:
    """The eigenvalues ``[b, n]`` of Schur forms, by real and imaginary parts."""
    _, n, _ = t.re.dims
    if t.im is not None:
        return Number(*(_diagonal(part) for part in t.parts))
    if n == 1:
        return Number(_diagonal(t.re), full(_diagonal(t.re), 0))
    below, above = (_diagonal(t.re[:, 1:, : n - 1]), _diagonal(t.re[:, : n - 1, 1:]))
    # A row below the diagonal that is not zero belongs to a pair: c and b have different signs.
    size = ops.sqrt(ops.abs(below)) * ops.sqrt(ops.abs(above))
    size = ops.select(ops.eq(below, 0.0), full(size, 0), size)
    first = ops.pad(size, 0.0, [(0, 0, 0), (0, 1, 0)])
    second = ops.pad(size, 0.0, [(0, 0, 0), (1, 0, 0)])
    return Number(_diagonal(t.re), first - second)


def _diagonal(a: Value) -> Value:
    """``[b, n, n]`` to ``[b, n]``."""
    is_diagonal = ops.eq(ops.iota("s32", a.dims, 1), ops.iota("s32", a.dims, 2))
    return ops.reduce(ops.select(is_diagonal, a, full(a, 0)), 0, ops.add, [2])
