"""Indexing as of jnp.ndarray: slices, arrays of indices, masks, ``.at[]`` with all modes, take and its kin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.jax.sweep.table import COMPLEX, ORDERED, SOME, rows
from tests.sweep.case import Case, array

_MASK = np.arange(24).reshape(4, 6) % 3 == 0
_I = np.array([[0, -1], [7, -9]])
_INDICES: dict[str, Any] = {
    "row": 2,
    "negative": -1,
    "beyond": 9,
    "slice": np.s_[1:3],
    "steps": np.s_[::2, ::-1],
    "backwards": np.s_[3:0:-2, -5:-1],
    "empty_slice": np.s_[2:2],
    "new_axis": np.s_[None, 1, :, None],
    "ellipsis": np.s_[..., 1],
    "array": np.array([0, 2, 2, -1]),
    "array_beyond": np.array([0, 4, -5, 100]),
    "two_arrays": (np.array([0, 1, -1]), np.array([5, 0, -7])),
    "broadcast": (np.array([[0], [2]]), np.array([1, 3, 9])),
    "array_and_slice": np.s_[np.array([1, 0]), 1:4],
    "slice_and_array": np.s_[1:3, np.array([[1, 0], [2, 8]])],
    "separated": np.s_[np.array([1, 0]), None, np.array([1, 2])],
    "empty_array": np.array([], np.int32),
    "mask_of_rows": np.array([True, False, True, False]),
    "unsigned": np.array([1, 3, 200], np.uint8),
    "scalar_array": np.array(1),
    "bool": np.s_[None, True],
}
_MODES = ("fill", "clip", "drop", "promise_in_bounds", "wrap")
_UPDATES: dict[str, Any] = {
    "set": lambda a, v, **k: a.set(v, **k),
    "add": lambda a, v, **k: a.add(v, **k),
    "subtract": lambda a, v, **k: a.subtract(v, **k),
    "multiply": lambda a, v, **k: a.multiply(v, **k),
    "divide": lambda a, v, **k: a.divide(v, **k),
    "power": lambda a, v, **k: a.power(v, **k),
    "min": lambda a, v, **k: a.min(v, **k),
    "max": lambda a, v, **k: a.max(v, **k),
    "apply": lambda a, v, **k: a.apply(jnp.negative, **k),
}


def cases() -> Iterator[Case]:
    yield from _read()
    yield from _written()
    yield from _taken()
    yield from _sliced()
    yield from _scattered()


def _read() -> Iterator[Case]:
    for name, index in _INDICES.items():
        yield from rows("get", lambda x, i=index: x[i], array(4, 6), dtypes=(name,))
        yield from (
            rows("get_traced", lambda x, i: x[i], array(4, 6), index, dtypes=(name,))
            if isinstance(index, np.ndarray) and index.dtype != bool
            else ()
        )
        for mode in ("fill", "clip"):
            yield from rows(f"get_{mode}", lambda x, i=index, m=mode: x.at[i].get(mode=m), array(4, 6), dtypes=(name,))
    for dtype in (*SOME, "int8", "uint32", "int4", "float8_e4m3fn", "float16", "complex128"):
        yield from rows(
            "get_types",
            lambda x: [
                x[np.array([0, 5, -1, -9])],
                x.at[np.array([0, 9, -9])].get(mode="fill"),
                x.at[np.array([1, 9])].get(mode="fill", fill_value=1),
                x[1:, ::2],
                x[::-1],
            ],
            array(4, 6, dtype=dtype),
            dtypes=(dtype,),
        )
    yield from rows(
        "mask_where",
        lambda x: [jnp.where(_MASK, x, 0), x.at[_MASK].set(0), x.at[_MASK].add(1), x[_MASK]],
        array(4, 6),
        dtypes=SOME[:5],
    )


def _written() -> Iterator[Case]:
    for name, update in _UPDATES.items():
        for key, index in _INDICES.items():
            if name not in ("set", "add", "apply") and key not in ("array_beyond", "slice", "two_arrays", "row"):
                continue
            if name == "apply" and key in ("array", "array_beyond", "two_arrays"):
                continue
            modes = _MODES[:3] if key in ("array_beyond", "two_arrays") and name in ("set", "add") else (None,)
            for mode in modes:
                yield from rows(
                    f"at_{name}",
                    lambda x, i=index, u=update, m=mode: u(x.at[i], jnp.asarray(3, x.dtype), mode=m),
                    array(4, 6),
                    dtypes=(f"{key}-{mode}",),
                )
    for dtype in (*SOME, "int8", "uint32", "int4", "float8_e4m3fn", "float16", "complex128"):
        for name, update in _UPDATES.items():
            if (name in ("min", "max") and dtype.startswith("complex")) or (
                name in ("divide", "power") and dtype in ("bool", "int4", "uint32", "int8", "uint8", "int32")
            ):
                continue
            if name in ("subtract", "apply") and dtype == "bool":
                continue
            yield from rows(
                f"at_{name}_types",
                lambda x, v, u=update: [u(x.at[np.array([3, 0, 9])], v), u(x.at[1:3, 2], v[0, 0])],
                array(4, 6, dtype=dtype),
                array(3, 6, dtype=dtype, kind="positive"),
                dtypes=(dtype,),
            )
    for mode in ("add", "max", "multiply"):
        yield from rows(
            f"at_{mode}_repeated",
            lambda x, v, i, u=_UPDATES[mode]: u(x.at[i], v),
            array(5, dtype=None),
            array(12),
            np.arange(12) % 4,
            dtypes=("float32", "int32", "float64", "uint8", "bfloat16"),
        )
    yield from rows(
        "at_sorted",
        lambda x, v: [
            x.at[np.array([0, 1, 3])].set(v, indices_are_sorted=True, unique_indices=True),
            x.at[np.array([-1, 7])].get(mode="fill", fill_value=-1),
        ],
        array(5),
        array(3),
    )
    yield from rows(
        "at_grad",
        lambda x, v: jax.grad(
            lambda x, v: (x.at[np.array([0, 2, 2])].set(v) ** 2).sum() + (x[np.array([1, 1, 9])] * 3).sum(), (0, 1)
        )(x, v),
        array(5),
        array(3),
    )


def _taken() -> Iterator[Case]:
    for mode in ("fill", "clip", "wrap", None):
        yield from rows(
            f"take_{mode}",
            lambda x, m=mode: [
                jnp.take(x, _I, mode=m),
                jnp.take(x, _I, axis=1, mode=m),
                jnp.take(x, 3, axis=0, mode=m),
            ],
            array(4, 6),
            dtypes=SOME,
        )
        yield from rows(
            f"take_along_axis_{mode}",
            lambda x, m=mode: [
                jnp.take_along_axis(x, np.array([[0, 5, -9, 9]] * 4), 1, mode=m),
                jnp.take_along_axis(x, jnp.argsort(x.real, 0), 0, mode=m),
            ],
            array(4, 6),
            dtypes=SOME,
        )
    yield from rows(
        "take_fill_value", lambda x: jnp.take(x, _I, axis=0, mode="fill", fill_value=3), array(4, 6), dtypes=SOME
    )


def _sliced() -> Iterator[Case]:
    starts = np.array([-7, -1, 0, 1, 3, 9], np.int32)
    yield from rows(
        "dynamic_slice",
        lambda x, i: [
            [
                lax.dynamic_slice(x, (i[n], i[-n - 1]), (2, 3)),
                lax.dynamic_index_in_dim(x, i[n], 1),
                lax.dynamic_slice_in_dim(x, i[n], 2),
            ]
            for n in range(6)
        ],
        array(4, 6),
        starts,
        dtypes=SOME,
    )
    yield from rows(
        "dynamic_update_slice",
        lambda x, v, i: [
            [lax.dynamic_update_slice(x, v, (i[n], i[-n - 1])), lax.dynamic_update_index_in_dim(x, v[0, 0], i[n], 1)]
            for n in range(6)
        ],
        array(4, 6),
        array(2, 3),
        starts,
        dtypes=SOME,
    )
    for kind in ("int8", "uint8", "int16", "uint32", "int64", "uint64"):
        yield from rows(
            "slice_starts",
            lambda x, i: [
                lax.dynamic_slice(x, (i[0],), (3,)),
                x[i[1]],
                x[i],
                x.at[i].set(0),
                lax.dynamic_update_slice(x, x[:2], (i[0],)),
            ],
            array(9),
            np.array([3, 120]).astype(kind),
            dtypes=(kind,),
        )


def _scattered() -> Iterator[Case]:
    dims = lax.ScatterDimensionNumbers(
        update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    )
    at = np.array([[0], [2], [2], [9], [-1]], np.int32)
    for name in ("scatter_add", "scatter_mul", "scatter_min", "scatter_max", "scatter", "scatter_sub"):
        dtypes = (*ORDERED, "int8", "float16", *(COMPLEX if name[-3:] not in ("min", "max") else ()))
        chosen = [t for t in dtypes if not (t == "bool" and name in ("scatter_sub", "scatter_mul", "scatter_add"))]
        function = getattr(lax, name)
        yield from rows(
            name,
            lambda x, v, f=function: (
                [f(x, at[[0, 1, 3, 4]], v[:4], dims, mode=m) for m in ("clip", "drop")]
                + ([f(x, at, v, dims)] if f is not lax.scatter else [])
            ),
            array(4, 6),
            array(5, 6),
            dtypes=chosen,
        )
    gather = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    yield from rows(
        "gather",
        lambda x: [lax.gather(x, at, gather, (1, 3), mode=m) for m in ("clip", "fill")],
        array(4, 6),
        dtypes=(*SOME, "int8", "float16"),
    )
    yield from rows(
        "segment_sum",
        lambda x: [
            f(x, np.array([0, 1, 1, 3, 9]), num_segments=4)
            for f in (jax.ops.segment_sum, jax.ops.segment_max, jax.ops.segment_min, jax.ops.segment_prod)
        ],
        array(5, 3),
        dtypes=("float32", "int32", "float64", "bfloat16", "uint8"),
    )
