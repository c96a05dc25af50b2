"""Functions of jax.numpy that make, move, join, sort and contract arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.jax.sweep.table import COMPLEX, FLOATS, INEXACT, ORDERED, SOME, SOME_INTEGERS, rows
from tests.sweep.case import Case, array

_KEYS = (*FLOATS, "float16", "int32", "int8", "uint8", "uint32", "int64", "bool", *COMPLEX)


def cases() -> Iterator[Case]:
    yield from _moved()
    yield from _made()
    yield from _joined()
    yield from _sorted()
    yield from _contracted()
    yield from _polynomials()


def _moved() -> Iterator[Case]:
    functions: dict[str, Any] = {
        "roll": lambda x: [jnp.roll(x, 2), jnp.roll(x, -1, axis=1), jnp.roll(x, (1, 2), axis=(0, 1))],
        "rot90": lambda x: [jnp.rot90(x), jnp.rot90(x, 2), jnp.rot90(x, -1, axes=(1, 0))],
        "flip": lambda x: [jnp.flip(x), jnp.fliplr(x), jnp.flipud(x), x[::-2, 1::2]],
        "repeat": lambda x: [
            jnp.repeat(x, 3),
            jnp.repeat(x, 2, axis=1),
            jnp.repeat(x, np.array([1, 0, 3, 2]), axis=0),
            jnp.repeat(x, jnp.array([1, 0, 3, 2]), axis=0, total_repeat_length=5),
        ],
        "tile": lambda x: [jnp.tile(x, 2), jnp.tile(x, (2, 1, 3)), jnp.broadcast_to(x, (2, 4, 6))],
        "triangles": lambda x: [
            jnp.tril(x),
            jnp.triu(x, 1),
            jnp.diag(x),
            jnp.diagonal(x, 1),
            jnp.diagflat(x),
            jnp.trace(x),
            jnp.trace(x, 2),
        ],
        "moveaxis": lambda x: [
            jnp.moveaxis(x[None], 0, 2),
            jnp.swapaxes(x, 0, 1),
            jnp.transpose(x),
            jnp.expand_dims(x, (0, 2)),
            jnp.squeeze(x[None], 0),
            jnp.ravel(x, order="F"),
            x.reshape(-1, 3),
            x.reshape((3, 8), order="F"),
        ],
        "split": lambda x: [
            *jnp.split(x, 2),
            *jnp.split(x, [1, 4], axis=1),
            *jnp.array_split(x, 4, axis=1),
            *jnp.hsplit(x, 3),
            *jnp.vsplit(x, 2),
        ],
        "resize": lambda x: [
            jnp.resize(x, (5, 7)),
            jnp.delete(x, 1, axis=0),
            jnp.delete(x, np.array([0, 3]), axis=1),
            jnp.insert(x, 1, 7, axis=0),
            jnp.append(x, x, axis=1),
        ],
        "fill_diagonal": lambda x: [
            jnp.fill_diagonal(x, 3, inplace=False),
            jnp.fill_diagonal(x, jnp.arange(4).astype(x.dtype), inplace=False),
        ],
        "apply": lambda x: [
            jnp.apply_along_axis(jnp.cumsum, 1, x),
            jnp.vectorize(lambda a, b: a @ b, signature="(n),(n)->()")(x, x),
            jnp.apply_over_axes(jnp.sum, x, (0, 1)),
        ],
        "extract": lambda x: [
            jnp.extract(x > 0, x, size=5),
            jnp.compress(np.array([1, 0, 1, 1], bool), x, axis=0, size=3),
            jnp.choose(np.array([0, 2, 1]), list(x[:3, :3]), mode="clip"),
            jnp.place(x, x > 0, jnp.array([1, 2]).astype(x.dtype), inplace=False),
            jnp.put(x, np.array([0, 5]), 9, inplace=False),
            jnp.put_along_axis(x, np.array([[0], [1], [2], [5]]), 4, 1, inplace=False),
        ],
    }
    for name, function in functions.items():
        yield from rows(
            name,
            function,
            array(4, 6),
            dtypes=[t for t in (*SOME, "int8") if not (name == "extract" and t == "complex64")],
        )
    for mode in (
        "constant",
        "edge",
        "reflect",
        "symmetric",
        "wrap",
        "linear_ramp",
        "maximum",
        "minimum",
        "mean",
        "median",
        "empty",
    ):
        given = {"constant_values": ((1, 2), (3, 4))} if mode == "constant" else {}
        yield from rows(
            f"pad_{mode}",
            lambda x, m=mode, g=given: (
                [jnp.pad(x, ((1, 2), (0, 3)), mode=m, **g)]
                + ([jnp.pad(x, 9, mode=m)] if m in ("reflect", "symmetric", "wrap") else [])
            ),
            array(4, 6),
            dtypes=("float32", "float64", "int32", "bfloat16", "complex64")[
                : 4 if mode in ("maximum", "minimum", "median") else 5
            ],
        )


def _made() -> Iterator[Case]:
    dtypes = ("float32", "float64", "int32", "bfloat16", "float16", "complex64")

    def made(dtype: str) -> Any:
        real = dtype != "complex64"
        return lambda: [
            jnp.linspace(0, 10, 7, dtype=dtype),
            jnp.linspace(-3, 4, 5, endpoint=False, dtype=dtype),
            jnp.linspace(1, 2, 50, dtype=dtype),
            jnp.logspace(0, 2, 5, dtype=dtype),
            jnp.geomspace(1, 100, 5, dtype=dtype),
            jnp.full((2, 3), 7, dtype),
            jnp.eye(3, 4, 1, dtype=dtype),
            jnp.identity(3, dtype),
            jnp.tri(3, 4, dtype=dtype),
            jnp.ones((2, 0), dtype),
            *(
                [
                    jnp.arange(2, 9, 2, dtype=dtype),
                    jnp.vander(jnp.arange(4, dtype=dtype)),
                    jnp.arange(0, 2, 0.3).astype(dtype),
                ]
                if real
                else []
            ),
        ]

    for dtype in dtypes:
        yield from rows("made", made(dtype), dtypes=(dtype,))
    yield from rows(
        "linspace_arrays",
        lambda x, y: [
            jnp.linspace(x, y, 5),
            jnp.linspace(x, y, 5, axis=-1, retstep=True),
            jnp.logspace(x, y, 4),
            jnp.geomspace(abs(x) + 1, abs(y) + 1, 4),
        ],
        array(3),
        array(3),
        dtypes=("float32", "float64", "int32"),
    )
    yield from rows(
        "meshgrid",
        lambda x, y: [
            *jnp.meshgrid(x, y),
            *jnp.meshgrid(x, y, indexing="ij", sparse=True),
            *jnp.indices((2, 3)),
            jnp.ix_(jnp.array([1, 2]), jnp.array([0])),
        ],
        array(3),
        array(4),
        dtypes=SOME,
    )
    yield from rows(
        "windows",
        lambda x: (
            [
                jnp.bartlett(7),
                jnp.blackman(8),
                jnp.hamming(7),
                jnp.hanning(8),
                jnp.kaiser(7, 3.5),
                jnp.tril_indices(4),
                jnp.triu_indices(3, 1),
                jnp.diag_indices(3),
                jnp.mask_indices(3, jnp.triu, size=6),
                jnp.unravel_index(jnp.array([7, 3, -1]), (3, 4)),
                jnp.ravel_multi_index((jnp.array([1, 2]), jnp.array([3, 5])), (3, 4), mode="clip"),
                x,
            ]
        ),
        array(1),
    )
    yield from rows(
        "bits",
        lambda x: [
            jnp.packbits(x > 0, axis=1),
            jnp.packbits(x > 0, bitorder="little"),
            jnp.unpackbits(x.astype("uint8")),
            jnp.unpackbits(x.astype("uint8"), axis=1, count=5, bitorder="little"),
        ],
        array(4, 6, kind="positive"),
        dtypes=("uint8", "int32"),
    )
    yield from rows(
        "from",
        lambda x: [
            jnp.frombuffer(np.arange(6, dtype=np.int16).tobytes(), "int16"),
            jnp.array([x, x]),
            jnp.asarray(x, "float32"),
            jnp.stack([x, 1 - x]),
            jnp.fromfunction(lambda i, j: i * j, (3, 2)),
            x.view("uint8"),
        ],
        array(3, 4),
        dtypes=("float32", "int32", "float64"),
    )


def _joined() -> Iterator[Case]:
    def joined(x: Any, y: Any) -> Any:
        return [
            jnp.concatenate([x, y]),
            jnp.stack([x, y], 1),
            jnp.hstack([x, y]),
            jnp.vstack([x, y, x]),
            jnp.dstack([x, y]),
            jnp.column_stack([x, y]),
            jnp.block([[x, y], [y, x]]),
            jnp.concatenate([x, y], axis=None),
            jnp.concatenate([x[:0], y]),
        ]

    yield from rows("joined", joined, array(4, 3), array(4, 3), dtypes=(*SOME, "int4", "float8_e4m3fn"))
    yield from rows(
        "joined_mixed",
        joined,
        array(4, 3, dtype="int32"),
        array(4, 3),
        dtypes=("float32", "bool", "uint8", "complex64"),
    )


def _sorted() -> Iterator[Case]:
    functions: dict[str, Any] = {
        "sort": lambda x: [jnp.sort(x), jnp.sort(x, axis=0), jnp.sort(x, axis=None, descending=True)],
        "argsort": lambda x: [
            jnp.argsort(x),
            jnp.argsort(x, axis=0),
            jnp.argsort(x, axis=None, descending=True),
            jnp.argsort(x, stable=False)[..., :0],
        ],
        "lexsort": lambda x: [jnp.lexsort((x[0], x[1])), jnp.lexsort(x)],
        "partition": lambda x: [jnp.sort(jnp.partition(x, 3)[:, :3]), jnp.partition(x, 3)[:, 3]],
        "unique": lambda x: [
            jnp.unique(x, size=30, return_index=True, return_inverse=True, return_counts=True),
            jnp.unique_values(x, size=5, fill_value=2),
            jnp.unique(x, axis=0, size=3),
        ],
        "searchsorted": lambda x: [
            jnp.searchsorted(jnp.sort(x[0]), x, side=s, method=m)
            for s in ("left", "right")
            for m in ("scan", "sort", "compare_all", "scan_unrolled")
        ],
        "top_k": lambda x: [
            jax.lax.top_k(x, 3),
            jax.lax.top_k(x, 2, axis=0),
            jax.lax.approx_max_k(x.astype("float32"), 2),
        ],
    }
    for name, function in functions.items():
        dtypes = [
            t
            for t in _KEYS
            if name not in ("top_k", "searchsorted", "partition") or not (t.startswith("c") or t == "bool")
        ]
        yield from rows(name, function, array(4, 7, kind="any"), dtypes=dtypes)
        yield from rows(f"{name}_ties", function, array(4, 7, kind="small"), dtypes=dtypes[:6])
    yield from rows(
        "sort_many",
        lambda x, y: [
            jax.lax.sort((x, y), num_keys=1),
            jax.lax.sort((x, y), num_keys=2, dimension=0),
            jax.lax.sort((y, x, x), is_stable=False, num_keys=1)[0],
        ],
        array(5, 6, kind="small"),
        array(5, 6, kind="small", dtype="int32"),
        dtypes=ORDERED,
    )


def _contracted() -> Iterator[Case]:
    all_types = (*INEXACT, "float16", "int32", "int8", "uint8", "bool", "int64")
    for name in (
        "ij,jk->ik",
        "ij,ij->",
        "ij->ji",
        "ii->i",
        "ii",
        "bij,bjk->bik",
        "ij,kj,k->i",
        "i,j,k->ijk",
        "...i,...i",
        "ij,jk,kl",
        "abc,cbd->da",
        "iij->j",
        "ij,j",
        "abc->b",
    ):
        operands = name.split("->")[0]
        sizes = {"i": 4, "j": 5, "k": 3, "b": 2, "l": 2, "a": 3, "c": 4, "d": 2}
        arguments = [array(*(sizes[c] for c in part.replace("...", "b"))) for part in operands.split(",")]
        yield from rows(
            f"einsum_{name}",
            lambda *x, n=name: jnp.einsum(n, *x),
            *arguments,
            dtypes=all_types if name in ("ij,jk->ik", "bij,bjk->bik") else SOME,
        )
    a, b = array(3, 4), array(4, 5)
    functions: dict[str, Any] = {
        "matmul": lambda x, y: [
            jnp.matmul(x, y),
            jnp.dot(x, y),
            jnp.tensordot(x, y, 1),
            jnp.matvec(x, y[:, 0]),
            jnp.vecmat(x[0], y),
            jnp.vecdot(x[:, :3], y.T[:3, :3]),
        ],
        "matmul_accumulating": lambda x, y: (
            [jnp.matmul(x, y, preferred_element_type=t) for t in ("float32", "float64")]
            + [jnp.dot(x, y, precision="highest")]
        ),
        "dot_vectors": lambda x, y: [
            x[0] @ y,
            x @ y[:, 1],
            x[0] @ y[:, 0],
            jnp.tensordot(x, y.T[:3], axes=([0, 1], [0, 1])),
            jnp.multiply.outer(x[0], y[0]),
        ],
        "dot_batches": lambda x, y: [
            jnp.stack([x, x]) @ y,
            x @ jnp.stack([y, y, y]),
            jnp.tensordot(jnp.stack([x, x]), y, axes=([2], [0])),
        ],
    }
    for name, function in functions.items():
        yield from rows(
            name, function, a, b, dtypes=all_types if "acc" not in name else (*FLOATS, "float16", "int8", "int32")
        )
    yield from rows(
        "matmul_mixed",
        lambda x, y: [x @ y, jnp.einsum("ij,jk", x, y)],
        array(3, 4, dtype="int32"),
        b,
        dtypes=("float32", "bool", "uint8", "bfloat16", "complex64", "float16"),
    )
    yield from rows(
        "dot_empty", lambda x: [x @ x.T, x.T @ x, jnp.dot(x[:, 0], x[:, 0])], np.ones((0, 3), np.float32), dtypes=("f",)
    )
    for t in ("float8_e4m3fn", "float8_e5m2", "int4", "uint4", "bfloat16"):
        yield from rows(
            "dot_narrow",
            lambda x, y: [
                jax.lax.dot(x, y, preferred_element_type=p)
                for p in (("int32",) if "int" in str(x.dtype) else ("float32", "bfloat16"))
            ],
            array(8, 16, dtype=t),
            array(16, 8, dtype=t),
            dtypes=(t,),
        )


def _polynomials() -> Iterator[Case]:
    yield from rows(
        "poly",
        lambda p, q: [
            jnp.poly(p),
            jnp.polyadd(p, q[:3]),
            jnp.polysub(p, q),
            jnp.polymul(p, q),
            jnp.polyder(p),
            jnp.polyint(p),
            jnp.polydiv(p, q[:3]),
        ],
        array(5),
        array(5),
        dtypes=INEXACT,
    )
    yield from rows(
        "polyfit", lambda x, y: jnp.polyfit(x, y, 2), np.linspace(-1, 1, 9), array(9), dtypes=("float32", "float64")
    )
    yield from rows(
        "roots", lambda p: jnp.sort(jnp.roots(p, strip_zeros=False)), np.array([1.0, -6, 11, -6]), dtypes=("f",)
    )
    yield from rows(
        "integers",
        lambda x: [x[:, None] % 7, jnp.mod(x, 3), jnp.gcd(x, 12), jnp.bitwise_count(x), jnp.left_shift(x, 2)],
        array(9, kind="any"),
        dtypes=SOME_INTEGERS,
    )
