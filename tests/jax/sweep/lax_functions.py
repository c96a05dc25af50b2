"""jax.lax element by element, sorts, conversions, random bits, and the derivatives of its functions."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.jax.sweep.table import COMPLEX, FLOATS, INEXACT, REALS, rows
from tests.sweep.case import INTEGERS, NARROW_FLOATS, NARROW_INTEGERS, Case, array

_KINDS = (*FLOATS, "float16", "complex64", "int32", "uint8", "bool")
_UNARY = (
    "abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e cbrt ceil cos cosh digamma erf erf_inv erfc exp exp2 "
    "expm1 floor integer_pow is_finite lgamma log log1p logistic neg reciprocal round rsqrt sign sin sinh sqrt "
    "square tan tanh"
)
_BINARY = "add atan2 div eq ge gt igamma igammac le lt max min mul ne nextafter pow rem sub zeta"


def cases() -> Iterator[Case]:
    yield from _elementwise()
    yield from _sorted()
    yield from _cumulative()
    yield from _reduced()
    yield from _converted()
    yield from _generated()
    yield from _differentiated()


def _elementwise() -> Iterator[Case]:
    for name in _UNARY.split():
        f = functools.partial(lax.integer_pow, y=-3) if name == "integer_pow" else getattr(lax, name)
        yield from rows(f"lax.{name}", f, array(50, kind="any"), dtypes=(*REALS,))
        if name not in ("bessel_i0e", "bessel_i1e", "cbrt", "ceil", "digamma", "erf", "erf_inv", "erfc", "floor",
                        "is_finite", "lgamma", "round"):  # fmt: skip
            yield from rows(f"lax.{name}_complex", f, array(20), dtypes=COMPLEX)
    for name in _BINARY.split():
        f = getattr(lax, name)
        kind = "positive" if name in ("igamma", "igammac", "zeta") else "any"
        yield from rows(f"lax.{name}", f, array(50, kind=kind), array(50, kind=kind), dtypes=REALS)
    yield from rows(
        "lax.bits",
        lambda a, b: (
            [
                f(a, b)
                for f in (
                    lax.bitwise_and,
                    lax.bitwise_or,
                    lax.bitwise_xor,
                    lax.shift_left,
                    lax.shift_right_arithmetic,
                    lax.shift_right_logical,
                    lax.mulhi,
                )
            ]
            + [
                lax.bitwise_not(a),
                lax.clz(a),
                lax.population_count(a),
                lax.sign(a),
                lax.rem(a, b),
                lax.div(a, b),
            ]
        ),
        array(40, kind="any"),
        array(40, kind="any"),
        dtypes=INTEGERS,
    )
    yield from rows(
        "lax.powers",
        lambda a, i: [lax.pow(a, i), lax.pow(a, i.astype("int8")), lax.integer_pow(a, 5), lax.integer_pow(a, 0)],
        array(12),
        np.arange(12, dtype=np.int32) - 4,
        dtypes=(*FLOATS, "float16", *COMPLEX),
    )
    yield from rows(
        "lax.clamp",
        lambda a: [lax.clamp(jnp.asarray(1, a.dtype), a, jnp.asarray(2, a.dtype)), lax.clamp(a - a, a, a + a)],
        array(12),
        dtypes=(*FLOATS, "int8", "uint32"),
    )
    yield from rows(
        "lax.selected",
        lambda a, b: [
            lax.select(a > b, a, b),
            lax.select(jnp.array(True), a, b),
            lax.select_n((a > b).astype(np.int32) + (a > 1), a, b, a),
            lax.select_n(a > b, a, b),
        ],
        array(12),
        array(12),
        dtypes=(*FLOATS, "int8", "uint32"),
    )
    yield from rows(
        "lax.parts", lambda a, b: [lax.complex(a, b), lax.real(lax.complex(a, b)), lax.imag(lax.complex(b, a)),
                                   lax.conj(a), lax.conj(lax.complex(a, b)), abs(lax.complex(a, b))],
        array(9), array(9),
    )  # fmt: skip
    yield from rows(
        "lax.gamma_gradients",
        lambda a, x: [lax.igamma_grad_a(a, x), lax.random_gamma_grad(a + 0.1, x), lax.betainc(a + 1, x + 1, x / 5),
                      lax.polygamma(jnp.round(a), x + 0.5)],
        array(20, kind="positive"), array(20, kind="positive"),
    )  # fmt: skip


def _sorted() -> Iterator[Case]:
    for dtype in (*_KINDS, "int8", "uint32", "int64", "complex128"):
        yield from rows(
            "lax.sort",
            lambda x: [
                lax.sort(x),
                lax.sort(x, dimension=0),
                lax.sort((x, jnp.arange(30).reshape(5, 6)), num_keys=1),
                lax.sort(
                    ((x if x.dtype == bool else jnp.round(x.real)).astype(x.dtype), x, jnp.arange(30).reshape(5, 6)),
                    num_keys=2,
                    dimension=0,
                ),
                lax.sort_key_val(x, jnp.arange(30, dtype="uint8").reshape(5, 6)),
                lax.sort((x, x[::-1]), is_stable=True),
            ],
            array(5, 6, kind="any"),
            dtypes=(dtype,),
        )
        if not dtype.startswith(("complex", "bool")):
            yield from rows(
                "lax.top_k",
                lambda x: [lax.top_k(x, 3), lax.top_k(x[0], 1), lax.top_k(x, 0), lax.top_k(x, 2, axis=0)],
                array(5, 6, kind="any"),
                dtypes=(dtype,),
            )
            yield from rows(
                "lax.argmax",
                lambda x: [
                    lax.argmax(x, 0, jnp.int32),
                    lax.argmin(x, 1, jnp.uint8),
                    lax.argmax(x, 1, jnp.int16),
                ],
                array(5, 6, kind="any"),
                dtypes=(dtype,),
            )
    yield from rows(
        "lax.approx",
        lambda x: [
            lax.approx_max_k(x, 3)[0],
            lax.approx_min_k(x, 3)[0],
            lax.approx_max_k(x, 4, reduction_dimension=0, recall_target=0.9)[0],
            lax.approx_min_k(x, 4, aggregate_to_topk=False)[0].shape[0],
        ],
        array(6, 40),
        dtypes=("float32", "bfloat16"),
    )
    yield from rows(
        "lax.sort_grad",
        lambda x, w: [
            jax.grad(lambda x: (lax.sort(x) * w).sum())(x),
            jax.grad(lambda x: (lax.sort((x, x * 2), num_keys=1)[1] * w).sum())(x),
            jax.grad(lambda x: (lax.top_k(x, 3)[0] * w[:, :3]).sum())(x),
            jax.vmap(lambda x: lax.sort(x), in_axes=1, out_axes=1)(x),
        ],
        array(4, 6),
        array(4, 6),
    )


def _cumulative() -> Iterator[Case]:
    for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"):
        f = getattr(lax, name)
        kinds: Sequence[str] = (*FLOATS, "float16") if name == "cumlogsumexp" else (*REALS, "int32", "uint8", "int64")
        if name in ("cumsum", "cumprod"):
            kinds = (*kinds, *COMPLEX)
        yield from rows(
            f"lax.{name}",
            lambda x, f=f: [f(x), f(x, axis=1), f(x, axis=1, reverse=True)],
            array(5, 7, kind="unit"),
            dtypes=kinds,
        )
        yield from rows(
            f"lax.{name}_grad",
            lambda x, w, f=f: [
                jax.grad(lambda x, r=r: (f(x, axis=1, reverse=r) * w).sum())(x) for r in (False, True)
            ],
            array(3, 7, kind="unit"),
            array(3, 7),
        )  # fmt: skip
    yield from rows(
        "lax.associative_scan",
        lambda x: [
            lax.associative_scan(jnp.add, x),
            lax.associative_scan(jnp.maximum, x, reverse=True),
            lax.associative_scan(lambda a, b: jnp.einsum("...ij,...jk->...ik", a, b), x.reshape(-1, 2, 2)),
            lax.associative_scan(lambda a, b: (a[0] + b[0], a[1] * b[1]), (x, x), axis=1),
        ],
        array(6, 4, kind="unit"),
    )


def _reduced() -> Iterator[Case]:
    yield from rows(
        "lax.reduce",
        lambda x: [
            lax.reduce(x, np.asarray(0, x.dtype), lax.add, (0,)),
            lax.reduce(x, np.asarray(1, x.dtype), lax.mul, (0, 1)),
            lax.reduce(x, np.asarray(0, x.dtype), lax.max, (1,)),
            lax.reduce((x, x * 2), (np.asarray(0, x.dtype), np.asarray(1, x.dtype)),
                       lambda a, b: (a[0] + b[0], lax.min(a[1], b[1])), (1,)),
            lax.reduce_sum(x, (0,)), lax.reduce_prod(x, (1,)), lax.reduce_max(x, (0,)), lax.reduce_min(x, (0, 1)),
            lax.reduce(x, np.asarray(0, x.dtype), lax.add, ()),
        ],
        array(4, 5, kind="positive"),
        dtypes=(*REALS, "int32", "uint8", "int64"),
    )  # fmt: skip
    yield from rows(
        "lax.reduce_bits",
        lambda x: [
            lax.reduce_and(x, (0,)),
            lax.reduce_or(x, (1,)),
            lax.reduce_xor(x, (0, 1)),
            lax.reduce(x, np.asarray(0, x.dtype), lax.bitwise_xor, (1,)),
        ],
        array(4, 5, kind="any"),
        dtypes=("int32", "uint8", "bool", "int64"),
    )
    yield from rows(
        "lax.reduce_precision",
        lambda x: [lax.reduce_precision(x, e, m) for e, m in ((5, 10), (8, 7), (4, 3), (5, 2), (8, 23), (2, 1))],
        array(60, kind="any"),
        dtypes=REALS,
    )


def _converted() -> Iterator[Case]:
    every = (*INTEGERS, *REALS, "bool", *NARROW_INTEGERS, *NARROW_FLOATS)
    for dtype in every:
        yield from rows(
            "lax.convert_element_type",
            lambda x, t=dtype: [lax.convert_element_type(v, t) for v in x],
            [0, 1, 2, 3] and array(3, 9, kind="small"),
            dtypes=(dtype,) if dtype in ("float32",) else (),
        )
        yield from rows(
            "lax.convert_from",
            lambda x: [
                lax.convert_element_type(x, t)
                for t in every
                if t not in ("float4_e2m1fn", "int2", "uint2", "float8_e8m0fnu")
            ],
            array(9, kind="positive", dtype=dtype),
            dtypes=(dtype,),
        )
    pairs = {
        "float32": ("int32", "uint8", "int16", "float16", "uint4"),
        "float64": ("int64", "uint32", "float32", "int8", "bfloat16"),
        "bfloat16": ("int16", "uint8", "float8_e5m2"),
        "float16": ("uint16", "int8"),
        "int8": ("uint8", "float8_e4m3fn", "int4", "uint2"),
        "int32": ("float32", "bfloat16", "uint8"),
        "uint8": ("int8", "uint4", "int2"),
        "uint64": ("float64", "int16"),
        "complex64": ("complex64",),
        "bool": ("bool",),
    }
    for dtype, others in pairs.items():
        yield from rows(
            "lax.bitcast",
            lambda x, o=others: [lax.bitcast_convert_type(x, t) for t in o],
            array(4, 8, kind="any", dtype=dtype),
            dtypes=(dtype,),
        )
    yield from rows(
        "lax.bitcast_wider",
        lambda x: [
            lax.bitcast_convert_type(x.reshape(4, 2, 4), "int32"),
            lax.bitcast_convert_type(x.reshape(8, 2, 2), "bfloat16"),
            lax.bitcast_convert_type(x.reshape(8, 4), "float32"),
        ],
        array(32, dtype="uint8", kind="any"),
        dtypes=("uint8",),
    )


def _generated() -> Iterator[Case]:
    for algorithm in ("RNG_THREE_FRY", "RNG_PHILOX", "RNG_DEFAULT"):
        for dtype in ("uint32", "uint64", "uint8", "uint16"):
            yield from rows(
                "lax.rng_bit_generator",
                lambda key, a=algorithm, t=dtype: [
                    lax.rng_bit_generator(
                        key[: 2 if "FRY" in a and key.dtype == "uint64" else 4 if key.dtype == "uint32" else 2]
                        if key.dtype == "uint64"
                        else key,
                        (3, 5),
                        t,
                        getattr(lax.RandomAlgorithm, a),
                    )
                ],
                np.array([1, 2, 3, 4], np.uint32),
                dtypes=(f"{algorithm}-{dtype}",),
            )


def _differentiated() -> Iterator[Case]:
    """Second derivatives, forwards over backwards."""
    smooth = (
        "acos asin atan atanh bessel_i0e bessel_i1e cbrt cos cosh digamma erf erf_inv erfc exp exp2 expm1 lgamma log "
        "log1p logistic reciprocal rsqrt sin sinh sqrt square tan tanh asinh"
    )
    for name in smooth.split():
        f = getattr(lax, name)
        scalar = lambda v, f=f: f(v * 0.4 + 0.55)  # noqa: E731
        yield from rows(
            f"lax.grad_{name}",
            lambda x, f=scalar: [
                jax.vmap(jax.grad(f))(x),
                jax.vmap(jax.jacfwd(jax.grad(f)))(x),
                jax.jvp(f, (x,), (x,))[1],
                jax.linearize(f, x)[1](x),
            ],
            array(9, kind="unit"),
        )
        if name not in ("bessel_i0e", "bessel_i1e", "cbrt", "digamma", "erf", "erf_inv", "erfc", "lgamma"):
            yield from rows(
                f"lax.grad_{name}",
                lambda x, f=scalar: [jax.jvp(f, (x,), (x,))[1], jax.vjp(f, x)[1](x)[0]],
                array(9, kind="unit"),
                dtypes=COMPLEX,
            )
    for name in ("atan2", "div", "max", "min", "mul", "pow", "rem", "sub", "add", "igamma", "igammac"):
        f = getattr(lax, name)
        yield from rows(
            f"lax.grad_{name}",
            lambda x, y, f=f: [
                jax.vjp(f, x + 0.1, y + 0.2)[1](x),
                jax.jvp(f, (x + 0.1, y + 0.2), (y, x))[1],
            ],
            array(9, kind="positive"),
            array(9, kind="positive"),
        )
    yield from rows(
        "lax.grad_shapes",
        lambda x: jax.grad(
            lambda x: sum(
                (v.real**2).sum()
                for v in (
                    lax.pad(x, np.float32(1), ((1, -1, 2), (0, 2, 0))),
                    lax.rev(x, (0,)),
                    lax.reshape(x, (6, 4), (1, 0)),
                    lax.dynamic_slice(x, (1, 2), (2, 2)),
                    lax.reduce_prod(x, (0,)),
                    lax.reduce_max(x, (1,)),
                    lax.fft(x, lax.FftType.RFFT, (6,)),
                    lax.clamp(np.float32(-1), x, np.float32(1)),
                    lax.select(x > 0, x, x * 2),
                    lax.broadcast_in_dim(x, (4, 2, 6), (0, 2)),
                )
            )
        )(x.astype("float32")),
        array(4, 6),
        dtypes=("float32",),
    )
    yield from rows(
        "lax.types", lambda x: [lax.stop_gradient(x), lax.optimization_barrier((x, x + 1))], array(3), dtypes=INEXACT
    )
