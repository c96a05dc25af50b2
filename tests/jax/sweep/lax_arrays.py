"""jax.lax: shapes, gathers, scatters and slices, and what ``vmap`` makes of its functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.jax.sweep.table import rows
from tests.sweep.case import Case, array


def cases() -> Iterator[Case]:
    yield from _shaped()
    yield from _sliced()
    yield from _batched()


def _shaped() -> Iterator[Case]:
    for dtype in ("float32", "bfloat16", "complex64", "int8", "bool", "int4", "uint64", "float8_e5m2"):
        yield from rows(
            "lax.shaping",
            lambda x: [
                lax.broadcast(x, (2, 3)),
                lax.broadcast_in_dim(x, (2, 4, 5, 6), (1, 3)),
                lax.collapse(x[None], 0, 2),
                lax.concatenate([x, x[1:]], 0),
                lax.expand_dims(x, (0, 3)),
                lax.reshape(x, (6, 4), (1, 0)),
                lax.reshape(x, (2, 12)),
                lax.rev(x, (0, 1)),
                lax.squeeze(x[None], (0,)),
                lax.transpose(x, (1, 0)),
                lax.split(x, (2, 4), 1),
                lax.tile(x, (2, 1)),
                lax.full_like(x, 1),
                lax.full((2, 3), 1, x.dtype),
                lax.empty((0, 2), x.dtype),
            ],
            array(4, 6, dtype=dtype),
            dtypes=(dtype,),
        )
        yield from rows(
            "lax.pad",
            lambda x: [
                lax.pad(x, jnp.ones((), x.dtype), c)
                for c in (
                    ((1, 2, 0), (0, 0, 0)),
                    ((0, 1, 2), (-1, 2, 1)),
                    ((-2, -1, 0), (0, -9, 3)),
                    ((0, 0, 0), (1, 1, 0)),
                )
            ],
            array(4, 6, dtype=dtype),
            dtypes=(dtype,),
        )
    yield from rows(
        "lax.iotas",
        lambda: [
            [lax.iota(t, 5), lax.broadcasted_iota(t, (3, 4), 1), lax.broadcasted_iota(t, (3, 4), 0)]
            for t in ("float32", "bfloat16", "int8", "uint64", "complex64", "float16", "int4", "float8_e4m3fn")
        ],
        dtypes=("iota",),
    )


def _sliced() -> Iterator[Case]:
    yield from rows(
        "lax.slice",
        lambda x: [
            lax.slice(x, (1, 0), (3, 5)),
            lax.slice(x, (0, 1), (4, 6), (2, 3)),
            lax.slice(x, (2, 2), (2, 6)),
            lax.slice_in_dim(x, -3, None, 2, 1),
            lax.index_in_dim(x, -1, 0, keepdims=False),
            lax.index_take(x, (np.array([0, 2, 1]), np.array([1, 5, 0])), (0, 1)),
        ],
        array(4, 6),
        dtypes=("float32", "int8", "bool", "complex64", "bfloat16"),
    )
    forms: dict[str, tuple[Any, Any, tuple[int, ...]]] = {
        "rows": (np.array([[0], [2], [9]]), lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 6)),
        "points": (np.array([[0, 1], [3, 9], [-1, 2]]), lax.GatherDimensionNumbers((), (0, 1), (0, 1)), (1, 1)),
        "windows": (np.array([[0, 1], [3, 4]]), lax.GatherDimensionNumbers((1, 2), (), (0, 1)), (2, 3)),
        "swapped": (np.array([[0, 1], [3, 2]]), lax.GatherDimensionNumbers((0, 2), (), (1, 0)), (2, 3)),
        "batch": (
            np.array([[[0], [9]], [[1], [2]], [[5], [0]], [[3], [-1]]]),
            lax.GatherDimensionNumbers((), (1,), (1,), (0,), (0,)),
            (1, 1),
        ),
    }
    for name, (at, numbers, sizes) in forms.items():
        scattered = lax.ScatterDimensionNumbers(
            numbers.offset_dims,
            numbers.collapsed_slice_dims,
            numbers.start_index_map,
            numbers.operand_batching_dims,
            numbers.start_indices_batching_dims,
        )
        for mode in ("clip", "fill", "promise_in_bounds")[: 2 if name != "swapped" else 3]:
            yield from rows(
                "lax.gather",
                lambda x, i, n=numbers, s=sizes, m=mode: [
                    lax.gather(x, i, n, s, mode=m),
                    jax.grad(lambda x: (lax.gather(x, i, n, s, mode=m) ** 2).sum())(x),
                ],
                array(4, 6),
                at.astype(np.int32),
                dtypes=(f"{name}-{mode}",),
            )
            yield from rows(
                "lax.scatter",
                lambda x, i, n=numbers, s=sizes, d=scattered, m=mode: [
                    f(x, i, lax.gather(x, i, n, s, mode="clip") + 2, d, mode="drop" if m == "fill" else m)
                    for f in (lax.scatter_add, lax.scatter_mul, lax.scatter_min, lax.scatter_max, lax.scatter_sub)
                ],
                array(4, 6),
                at.astype(np.int32),
                dtypes=(f"{name}-{mode}",),
            )
            yield from rows(
                "lax.scatter_grad",
                lambda x, i, n=numbers, s=sizes, d=scattered, m=mode: [
                    jax.grad(
                        lambda x, v, f=f: (
                            f(x, i, v, d, mode="drop" if m == "fill" else m, unique_indices=True) ** 2
                        ).sum(),
                        (0, 1),
                    )(x, lax.gather(x, i, n, s, mode="clip") + 2)
                    for f in (lax.scatter_add, lax.scatter_mul, lax.scatter)
                ],
                array(4, 6),
                at.astype(np.int32)[: 1 if name in ("windows", "swapped") else None],
                dtypes=(f"{name}-{mode}",),
            )
    yield from rows(
        "lax.scatter_apply",
        lambda x: lax.scatter_apply(
            x, np.array([[0], [2]]), jnp.sin, lax.ScatterDimensionNumbers((1,), (0,), (0,)), update_shape=(2, 6)
        ),
        array(4, 6),
    )


def _batched() -> Iterator[Case]:
    """What stands in each row, mapped along each of several dimensions."""
    functions: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
        "dot": (lambda a, b: lax.dot(a, b), ((3, 4), (4, 2))),
        "dot_general": (lambda a, b: lax.dot_general(a, b, (((2,), (1,)), ((0,), (0,)))), ((2, 3, 4), (2, 4, 3))),
        "reduce_window": (lambda a: lax.reduce_window(a, np.float32(0), lax.add, (2, 2), (1, 1), "SAME"), ((4, 5),)),
        "max_pool": (lambda a: lax.reduce_window(a, -np.float32(np.inf), lax.max, (2, 2), (1, 2), "VALID"), ((4, 5),)),
        "pool_grad": (
            jax.grad(lambda a: (lax.reduce_window(a, -np.inf, lax.max, (2, 2), (2, 2), "VALID") ** 2).sum()),
            ((4, 6),),
        ),
        "sort": (lambda a, b: lax.sort((a, b), dimension=0), ((4, 3), (4, 3))),
        "top_k": (lambda a: lax.top_k(a, 2), ((4, 5),)),
        "cumsum": (lambda a: lax.cumsum(a, 1), ((4, 3),)),
        "pad": (lambda a, b: lax.pad(a, b[0], ((1, 2, 1), (0, -1, 0))), ((4, 3), (2,))),
        "concatenate": (lambda a, b: lax.concatenate([a, b], 0), ((4, 3), (2, 3))),
        "dynamic_slice": (lambda a, i: lax.dynamic_slice(a, (i[0].astype(int), 1), (2, 2)), ((4, 3), (1,))),
        "update": (
            lambda a, v, i: lax.dynamic_update_slice(a, v, (i[0].astype(int), i[1].astype(int))),
            ((4, 3), (2, 2), (2,)),
        ),
        "gather": (
            lambda a, i: lax.gather(
                a,
                i.astype(int),
                lax.GatherDimensionNumbers((1,), (0,), (0,)),
                (1, 3),
            ),
            ((4, 3), (5, 1)),
        ),
        "scatter": (
            lambda a, i, v: lax.scatter_add(
                a, i.astype(int), v, lax.ScatterDimensionNumbers((1,), (0,), (0,)), mode="drop"
            ),
            ((4, 3), (5, 1), (5, 3)),
        ),
        "fft": (lambda a: lax.fft(a, lax.FftType.RFFT, (6,)), ((3, 6),)),
        "argmax": (lambda a: lax.argmax(a, 0, np.int32), ((4, 3),)),
        "select": (lambda a, b: lax.select(a[0, 0] > 0, a, b), ((4, 3), (4, 3))),
        "clamp": (lambda a, b: lax.clamp(b[0], a, b[1]), ((4, 3), (2,))),
        "bits": (lambda a: lax.bitcast_convert_type(a, np.uint8), ((4, 3),)),
    }
    for name, (f, shapes) in functions.items():
        for where in ("first", "last", "one", "twice"):

            def mapped(*given: Any, f: Callable[..., Any] = f, where: str = where) -> Any:
                if where == "first":
                    return jax.vmap(f)(*given)
                if where == "last":
                    return jax.vmap(f, -1, 1)(*(jnp.moveaxis(v, 0, -1) for v in given))
                if where == "one":
                    return jax.vmap(f, (0, *[None] * (len(given) - 1)))(given[0], *(v[0] for v in given[1:]))
                return jax.vmap(jax.vmap(f, 0), 1)(*(jnp.stack([v, v + 1], 1) for v in given))

            yield from rows(f"lax.vmap_{name}", mapped, *(array(3, *shape) for shape in shapes), dtypes=(where,))
