"""What stands on JAX's functions: sparse arrays, Pallas interpreted, interpolation, rotations, lax.linalg."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import checkify, pallas as pl, sparse
from jax.experimental.sparse import linalg as sparse_linalg
from jax.scipy import cluster, interpolate, ndimage
from jax.scipy.spatial import transform

from tests.jax.sweep.table import rows
from tests.sweep.case import Case, array


def cases() -> Iterator[Case]:
    yield from _sparse()
    yield from _pallas()
    yield from _scipy()
    yield from _factorizations()
    yield from _checks()
    yield from _polynomials()
    yield from _universal()


def _sparse() -> Iterator[Case]:
    def entries(x: Any) -> Any:
        return sparse.BCOO.fromdense(jnp.where(x > 0, x, 0), nse=24)

    yield from rows(
        "sparse.bcoo",
        lambda x, y: [
            entries(x).todense(),
            entries(x) @ y,
            y.T @ entries(x).T,
            (entries(x) + entries(-x)).todense(),
            (entries(x) * 2).todense(),
            (entries(x) * x).todense(),
            entries(x).sum(0).todense(),
            entries(x).T.todense(),
            entries(x).sum_duplicates(nse=24).todense(),
            entries(x)[1:3].todense(),
            entries(x)[2].todense(),
            entries(x).reshape(6, 4).todense(),
            sparse.bcoo_concatenate([entries(x), entries(x)], dimension=0).todense(),
            jax.grad(lambda x: (entries(x) @ y).sum())(x),
            sparse.bcoo_dot_general(entries(x), y, dimension_numbers=(((1,), (0,)), ((), ()))),
            sparse.sparsify(lambda m, v: jnp.sin(m @ v) * 2)(entries(x), y[:, 0]),
            entries(x).sort_indices().indices,
            (entries(x) @ entries(y)).todense(),
        ],
        array(4, 6),
        array(6, 4),
    )
    yield from rows(
        "sparse.batched",
        lambda x, y: [
            (b := sparse.BCOO.fromdense(x, nse=6, n_batch=1)).todense(),
            b @ y,
            sparse.bcoo_dot_general(b, jnp.stack([y] * 4), dimension_numbers=(((1,), (1,)), ((0,), (0,)))),
            sparse.BCOO.fromdense(x, n_dense=1, nse=4).todense(),
            jax.vmap(lambda v: sparse.BCOO.fromdense(v, nse=6) @ y)(x),
        ],
        array(4, 6),
        array(6, 4),
        dtypes=("float32", "int32", "complex64"),
    )
    yield from rows(
        "sparse.others",
        lambda x, y: [
            sparse.BCSR.fromdense(x, nse=24).todense(),
            sparse.BCSR.fromdense(x, nse=24) @ y,
            sparse.CSR.fromdense(x, nse=24) @ y,
            sparse.COO.fromdense(x, nse=24) @ y[:, 0],
            sparse.CSC.fromdense(x, nse=24).todense(),
            sparse.eye(4).todense(),
        ],
        array(4, 6),
        array(6, 4),
        dtypes=("float32",),
    )
    yield from rows(
        "sparse.lobpcg",
        lambda a, x: sparse_linalg.lobpcg_standard(a @ a.T + jnp.diag(jnp.arange(20.0, dtype=a.dtype)), x, m=30)[0],
        array(20, 20, kind="unit"),
        array(20, 2),
        dtypes=("float32",),
    )


def _pallas() -> Iterator[Case]:
    def add(x_ref: Any, y_ref: Any, out_ref: Any) -> None:
        out_ref[...] = x_ref[...] + y_ref[...]

    def product(x_ref: Any, y_ref: Any, out_ref: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            out_ref[...] = jnp.zeros_like(out_ref)

        out_ref[...] += x_ref[...] @ y_ref[...]

    def added(x: Any, y: Any) -> Any:
        return pl.pallas_call(add, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=True)(x, y)

    def multiplied(x: Any, y: Any) -> Any:
        return pl.pallas_call(
            product,
            grid=(2, 2, 2),
            in_specs=[pl.BlockSpec((4, 4), lambda i, j, k: (i, k)), pl.BlockSpec((4, 4), lambda i, j, k: (k, j))],
            out_specs=pl.BlockSpec((4, 4), lambda i, j, k: (i, j)),
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
            interpret=True,
        )(x, y)

    yield from rows(
        "pallas",
        lambda x, y: [added(x, y), multiplied(x, y), jax.vmap(added)(x, y)],
        array(8, 8),
        array(8, 8),
        dtypes=("float32", "float64"),
    )


def _scipy() -> Iterator[Case]:
    axes = (np.linspace(0, 1, 4), np.linspace(0, 2, 5))
    yield from rows(
        "scipy.interpolate",
        lambda v, p: [
            interpolate.RegularGridInterpolator(axes, v, method=m, bounds_error=False, fill_value=f)(p)
            for m in ("linear", "nearest")
            for f in (None, 7.0)
        ],
        array(4, 5),
        array(6, 2, kind="unit"),
        dtypes=("float32",),
    )
    rotation = transform.Rotation
    yield from rows(
        "scipy.rotation",
        lambda q, v: [
            (r := rotation.from_quat(q)).as_matrix(),
            r.as_euler("xyz"),
            r.as_rotvec(),
            r.apply(v),
            r.inv().as_quat(),
            (r * r).as_quat(),
            r.magnitude(),
            rotation.from_matrix(r.as_matrix()).as_quat(),
            rotation.from_rotvec(v).as_matrix(),
            rotation.from_euler("zx", v[:, :2]).as_quat(),
            transform.Slerp.init(jnp.arange(4.0), r)(jnp.array([0.5, 2.25])).as_quat(),
        ],
        array(4, 4),
        array(4, 3),
        dtypes=("float32",),
    )
    yield from rows(
        "scipy.vq", lambda a, b: cluster.vq.vq(a, b), array(9, 3), array(4, 3), dtypes=("float32", "float64")
    )
    yield from rows(
        "scipy.map_coordinates",
        lambda x, at: [
            ndimage.map_coordinates(x, [at, at[::-1]], order=o, mode=m, cval=2)
            for o in (0, 1)
            for m in ("constant", "nearest", "wrap", "mirror", "reflect")
        ],
        array(5, 6),
        array(7, kind="any"),
        dtypes=("float32", "int32", "uint8"),
    )


def _factorizations() -> Iterator[Case]:
    yield from rows(
        "lax.linalg",
        lambda a: [
            jnp.abs(lax.linalg.qr(a, full_matrices=False)[1]),
            lax.linalg.svd(a, compute_uv=False),
            lax.linalg.eigh(a @ a.T)[1],
            lax.linalg.lu(a)[0],
            lax.linalg.lu_pivots_to_permutation(lax.linalg.lu(a)[1], 5),
            jnp.tril(lax.linalg.cholesky(a @ a.T + jnp.eye(5, dtype=a.dtype))),
            lax.linalg.triangular_solve(jnp.tril(a) + 5 * jnp.eye(5, dtype=a.dtype), a, left_side=True, lower=True),
            lax.linalg.triangular_solve(a + 5 * jnp.eye(5, dtype=a.dtype), a, transpose_a=True, unit_diagonal=True),
            lax.linalg.symmetric_product(a, a @ a.T),
            lax.linalg.tridiagonal_solve(a[0], a[1] + 9, a[2], a),
            lax.linalg.cholesky_update(jnp.linalg.cholesky(a @ a.T + jnp.eye(5, dtype=a.dtype)).T, a[0]),
        ],
        array(5, 5),
    )
    yield from rows(
        "lax.linalg_qdwh",
        lambda a: [
            lax.linalg.qdwh(a)[1],
            jax.scipy.linalg.polar(a, method="qdwh")[0],
            lax.linalg.svd(a, compute_uv=False, algorithm=lax.linalg.SvdAlgorithm.POLAR),
            lax.linalg.svd(a, compute_uv=False, algorithm=lax.linalg.SvdAlgorithm.JACOBI),
            lax.linalg.eigh(a + a.T, implementation=lax.linalg.EighImplementation.JACOBI)[1],
        ],
        array(5, 5),
        dtypes=("float32",),
    )
    for name in ("svd", "eigh", "qr", "cholesky", "inv", "det", "slogdet", "pinv", "solve"):

        def scalar(a: Any, name: str = name) -> Any:
            s = a @ a.T + jnp.eye(4, dtype=a.dtype)
            return {
                "svd": lambda: jnp.linalg.svd(a, compute_uv=False)[:2].sum(),
                "eigh": lambda: (jnp.linalg.eigh(s)[0] * jnp.arange(4, dtype=a.dtype)).sum(),
                "qr": lambda: jnp.abs(jnp.linalg.qr(a)[1]).sum(),
                "cholesky": lambda: jnp.linalg.cholesky(s).sum(),
                "inv": lambda: jnp.linalg.inv(s).sum(),
                "det": lambda: jnp.linalg.det(a),
                "slogdet": lambda: jnp.linalg.slogdet(s)[1],
                "pinv": lambda: jnp.linalg.pinv(s[:, :3]).sum(),
                "solve": lambda: jnp.linalg.solve(s, a).sum(),
            }[name]()

        yield from rows(
            f"lax.linalg_grad_{name}",
            lambda a, f=scalar: [jax.grad(f)(a), jax.jvp(f, (a,), (a,))[1], jax.vmap(jax.grad(f))(jnp.stack([a, a.T]))],
            array(4, 4),
        )


def _checks() -> Iterator[Case]:
    def checked(x: Any) -> Any:
        checkify.check(x.sum() > 0, "negative {}", x.sum())
        return lax.scan(lambda c, v: (c + jnp.log(v), v[0:1]), jnp.zeros_like(x), jnp.stack([x, x + 1]))[0][1] / x[0]

    yield from rows(
        "checkify",
        lambda x: [
            (r := checkify.checkify(checked, errors=checkify.all_checks)(x))[1],
            checkify.checkify(lambda v: v[v.astype(int)], errors=checkify.index_checks)(x)[1],
            *jax.tree.leaves(r[0])[:1],
        ],
        array(4),
    )


def _polynomials() -> Iterator[Case]:
    yield from rows(
        "polynomials",
        lambda x, p: [
            jnp.polyval(p, x),
            jnp.polyval(p, x, unroll=4),
            jnp.polyadd(p, x),
            jnp.polymul(p, x),
            jnp.polyder(p, 2),
            jnp.polyint(p, k=1),
            jnp.polydiv(x, p)[0],
            jnp.poly(p),
            jnp.polyfit(jnp.arange(9, dtype=x.dtype), x, 2),
            jnp.sort(jnp.abs(jnp.roots(p, strip_zeros=False))),
        ],
        array(9),
        array(4),
    )


def _universal() -> Iterator[Case]:
    add, own = jnp.add, jnp.frompyfunc(lambda a, b: a * b + 1, 2, 1, identity=1)
    yield from rows(
        "ufuncs.methods",
        lambda x: [
            add.reduce(x, axis=0),
            add.accumulate(x, axis=1),
            add.outer(x[0], x[1]),
            add.at(x, np.array([0, 0, 2]), 1, inplace=False),
            add.reduceat(x, np.array([0, 2]), axis=1),
            jnp.multiply.reduce(x, axis=(0,), initial=2),
            jnp.maximum.reduce(x, axis=1, where=x < 1, initial=-9),
            own(x, x),
            own.outer(x[0], x[1]),
            own.reduce(x, axis=0),
            own.accumulate(x, axis=0),
        ],
        array(3, 4),
        dtypes=("float32", "int32"),
    )
