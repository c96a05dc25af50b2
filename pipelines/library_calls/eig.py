"""Eigenvalues and eigenvectors of square matrices. Source: LAPACK "geev", "trevc"; JAX ``jnp.linalg.eig``."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.idioms import batch_matmul, matrix_transpose, zeros
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.balancing import Balanced
from hloforge.pipelines.library_calls.matrices import from_parts, identity, kept, poisoned, prepared, unscaled
from hloforge.pipelines.library_calls.reflectors import rows_times
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target, hybrid, lapack
from hloforge.pipelines.library_calls.rows import Number, Rows, count_down, count_up, each_matrix
from hloforge.pipelines.library_calls.schur import eigenvalues, schur
from hloforge.pipelines.library_calls.schur_qr import schur_of_hessenberg
from hloforge.pipelines.library_calls.tridiagonal_ql import epsilon_of

_WANTED = {"V": True, "N": False}
# Magnitudes from which a vector is divided by its largest element while it is made.
_LARGE = {"f32": 1e12, "f64": 1e120}
# Rows below the n of vectors and the n of T: eigenvalues, sums, factors.
_VALUES, _SUM, _FACTOR = range(3)


@custom_call_target(*lapack("geev"))
def geev(call: CustomCall) -> list[Value]:
    """a ``[..., n, n]`` -> eigenvalues (of real matrices by parts), left and right eigenvectors, info.

    Vectors have norm 1 and a real largest element; pairs of conjugate values are together, that above the real axis
    first. Matrices are balanced before.
    """
    return _found(call, call.choice("compute_left", _WANTED), call.choice("compute_right", _WANTED))


@custom_call_target(*hybrid("eig_real", "eig_comp"))
def hybrid_eig(call: CustomCall) -> list[Value]:
    """The same, whichever library is asked for."""
    call.setting("magma")
    return _found(call, call.setting("left"), call.setting("right"))


def _found(call: CustomCall, left: bool, right: bool) -> list[Value]:
    (a,) = call.operands
    shapes = call.shapes
    if not prod(a.dims):
        return [zeros(shape.element, shape.dimensions) for shape in shapes]  # type: ignore[arg-type]
    flat, bad, scale = prepared(a)
    balanced = Balanced(flat)
    t, z, missing = schur(balanced.matrix, vectors=left or right)
    values = eigenvalues(t)
    triangle, basis = _complex_form(t, z) if z is not None else (None, None)
    vectors = []
    for is_left, wanted in ((True, left), (False, right)):
        if wanted and triangle is not None and basis is not None:
            of_balanced = _vectors(triangle, basis, values, a.element_type.is_complex, is_left)
            own = _normalized(balanced.vectors(of_balanced, left=is_left))
            vectors.append(poisoned(from_parts(own.parts), bad))
        else:
            vectors.append(zeros(shapes[-2].element, flat.dims))  # type: ignore[arg-type]
    parts = [unscaled(part, scale) for part in values.parts]
    found = parts if not a.element_type.is_complex else [from_parts(parts)]
    info = ops.select(bad, full(missing, 1), missing)
    results = [*(poisoned(x, bad) for x in found), *vectors, info]
    return [ops.reshape(x, shape.dimensions) for x, shape in zip(results, shapes, strict=True)]


def _complex_form(t: Number, z: Number) -> tuple[Number, Number]:
    """T triangular and Z of a Schur form, with two parts: pairs of rows of a real one are split."""
    if t.im is not None:
        return t, z
    full_t, full_z = (Number(x.re, full(x.re, 0)) for x in (t, z))
    if t.re.dims[1] == 1:
        return full_t, full_z
    transposed = Number(*(matrix_transpose(part) for part in full_z.parts))
    triangle, split, _ = schur_of_hessenberg(full_t, transposed)
    assert split is not None
    upper = ops.iota("s32", t.re.dims, 1) <= ops.iota("s32", t.re.dims, 2)
    triangle = Number(*(ops.select(upper, part, full(part, 0)) for part in triangle.parts))
    return triangle, Number(*(matrix_transpose(part) for part in split.parts))


def _vectors(t: Number, z: Number, values: Number, is_complex: bool, is_left: bool) -> Number:
    """The eigenvectors Z x, ``[b, n, n]`` by parts, of a = Z T Z^H.

    Left ones are the right ones of the adjoint, which is triangular again with rows and columns reversed.
    """
    used = t
    if is_left:
        adjoint = [matrix_transpose(part) for part in t.conjugate().parts]
        used = Number(*(ops.optimization_barrier(ops.rev(part, [1, 2])) for part in adjoint))
    x = kept(_of_triangle(kept(used)))
    if is_left:
        x = Number(*(ops.optimization_barrier(ops.rev(part, [1, 2])) for part in x.parts))
    product = kept(_product(z, x))
    if not is_complex:
        # Conjugate eigenvalues have conjugate vectors; the triangle may have the two in the other order.
        differs = _diagonal_of(t) * ops.broadcast_in_dim(values.parts[1], values.re.dims, [0, 1]) < 0.0
        differs = ops.broadcast_in_dim(differs, product.re.dims, [0, 2])
        product = product.conjugate().where(differs, product)
    found = _normalized(kept(product))
    if not is_complex and found.im is not None:
        is_real = ops.broadcast_in_dim(ops.eq(values.parts[1], 0.0), found.re.dims, [0, 2])
        found = Number(found.re, ops.select(is_real, full(found.im, 0), found.im))
    return kept(found)


def _diagonal_of(t: Number) -> Value:
    """The imaginary parts of the diagonal, ``[b, n]``."""
    imaginary = t.parts[1]
    is_diagonal = ops.eq(ops.iota("s32", imaginary.dims, 1), ops.iota("s32", imaginary.dims, 2))
    return ops.reduce(ops.select(is_diagonal, imaginary, full(imaginary, 0)), 0, ops.add, [1])


def _of_triangle(t: Number) -> Number:
    """Column k is x with T x = t_kk x and x_k = 1, up to a factor; by back substitution, all columns at once."""
    _, n, _ = t.re.dims
    one = identity(t.re.element_type, t.re.dims)  # type: ignore[arg-type]
    columns = ops.broadcast_in_dim
    is_diagonal = ops.ne(one, 0.0)
    parts = []
    for start, part, stored in zip((one, full(one, 0)), t.parts, t.conjugate().parts, strict=True):
        values = ops.reduce(ops.select(is_diagonal, part, full(part, 0)), 0, ops.add, [1])
        row = ops.reshape(values, [values.dims[0], 1, n])
        parts.append(ops.concat_in_dim([columns(start, part.dims, [0, 1, 2]), stored, row], 1))
    state = Rows.of(Number(*parts), 2)
    return each_matrix(state, lambda rows: count_down(n - 1, 0, _substitution(n), [rows])[0]).block((0, n), n)


def _substitution(n: int) -> Callable[[Value, Rows], list[Rows]]:
    extra = 2 * n

    def step(j: Value, state: Rows) -> list[Rows]:
        state = rows_times(state, n + j, j + 1, n, extra + _SUM)
        places = ops.iota("s32", [state.width], 0)
        gap = state.scalar(n + j, j).conjugate().spread(state.width) - state.vector(extra + _VALUES)
        epsilon = epsilon_of(state.buffer)
        zero, one = gap.constant(0), gap.constant(1)
        # Equal eigenvalues: a gap of the size of their errors.
        gap = gap.where(gap.squared() > epsilon * epsilon, gap.constant(epsilon))
        x = -(state.vector(extra + _SUM) * gap.inverse())
        x = x.where(places > j, one.where(ops.eq(places, j), zero))
        state = state.with_vector(j, x)
        x = state.vector(j)
        size = ops.max(ops.abs(x.re), ops.abs(x.parts[1]))
        is_large = size > _LARGE[size.element_type.name]
        factor = ops.select(is_large, 1.0 / size, full(size, 1))
        state = state.with_vector(extra + _FACTOR, Number(factor))
        largest = ops.reduce(1.0 - state.vector(extra + _FACTOR).re, 0, ops.max, [0])
        end = ops.select(largest > 0.0, constant(n, "s32"), j)

        def divide(i: Value, state: Rows) -> list[Rows]:
            return [state.with_vector(i, state.vector(i).times(state.vector(extra + _FACTOR).re))]

        return count_up(j, end, divide, [state])

    return step


def _product(a: Number, b: Number) -> Number:
    """The matrix product of arrays with two parts."""
    (a_re, a_im), (b_re, b_im) = a.parts, b.parts
    real = batch_matmul(a_re, b_re) - batch_matmul(a_im, b_im)
    return Number(real, batch_matmul(a_re, b_im) + batch_matmul(a_im, b_re))


def _normalized(v: Number) -> Number:
    """Columns of norm 1 with a real largest element."""
    dims = v.re.dims

    def over_columns(value: Value) -> Value:
        return ops.broadcast_in_dim(value, dims, [0, 2])

    largest = ops.reduce(ops.max(ops.abs(v.re), ops.abs(v.parts[1])), 0, ops.max, [1])
    v = kept(v.times(over_columns(1.0 / ops.optimization_barrier(largest))))
    size = ops.optimization_barrier(v.squared())
    norm = ops.sqrt(ops.reduce(size, 0, ops.add, [1]))
    most = over_columns(ops.reduce(size, 0, ops.max, [1]))
    places = ops.iota("s32", dims, 1)
    first = ops.reduce(ops.select(ops.ge(size, most), places, full(places, dims[1])), dims[1], ops.min, [1])
    is_first = ops.eq(over_columns(first), places)
    chosen = Number(*(ops.reduce(ops.select(is_first, x, full(x, 0)), 0, ops.add, [1]) for x in v.parts))
    phase = chosen.conjugate().times(1.0 / (ops.sqrt(chosen.squared()) * norm))
    v = v * Number(*(over_columns(part) for part in phase.parts))
    return Number(v.re, ops.select(is_first, full(v.re, 0), v.parts[1]))
