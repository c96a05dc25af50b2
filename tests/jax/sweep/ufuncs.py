"""Elementwise functions of jax.numpy, over special values and element types, and mixed ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.jax.sweep.table import COMPLEX, FLOATS, INEXACT, INTEGERS, REALS, SOME, rows
from tests.sweep.case import Case, array

_ALL = (*REALS, *INTEGERS, "bool", *COMPLEX)
_REAL = (*REALS, *INTEGERS, "bool")
_WHOLE = (*INTEGERS, "bool")

_UNARY = {
    "abs fabs sign signbit positive floor ceil trunc rint": _REAL,
    "absolute negative square conj real imag isfinite isinf isnan angle": tuple(set(_ALL) - {"bool"}),
    "exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan": (*REALS, "int32", "bool"),
    "arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh sinc i0": (*REALS, "int32", "bool"),
    "deg2rad rad2deg reciprocal isneginf isposinf nan_to_num spacing frexp modf": REALS,
    "invert bitwise_not bitwise_count": _WHOLE,
    "logical_not": _ALL,
    "unwrap trapezoid": FLOATS,
}
_COMPLEX_UNARY = """
exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh sign
sinc reciprocal nan_to_num
"""
_BINARY = {
    "add subtract multiply": _ALL,
    "divide true_divide equal not_equal less less_equal greater greater_equal": _ALL,
    "logical_and logical_or logical_xor": SOME,
    "maximum minimum": _ALL,
    "fmax fmin heaviside hypot": (*REALS, "int32"),
    "arctan2 copysign logaddexp logaddexp2 nextafter": REALS,
    "floor_divide remainder mod divmod": _REAL[:-1],
    "fmod": _REAL[:-1],
    "power float_power": (*REALS, "int32", "uint8", *COMPLEX),
    "bitwise_and bitwise_or bitwise_xor": _WHOLE,
    "left_shift right_shift": INTEGERS,
    "gcd lcm": ("int32", "int8", "uint32", "int64"),
    "isclose": (*FLOATS, "int32", "complex64"),
    "vdot inner outer kron cross": SOME,
}
_MIXED = ("bool", "int8", "uint8", "int32", "uint32", "int64", "bfloat16", "float16", "float32", "float64", "complex64")


def _named(table: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for names, dtypes in table.items():
        for name in names.split():
            if hasattr(jnp, name):
                yield name, dtypes


def cases() -> Iterator[Case]:
    for name, dtypes in _named(_UNARY):
        yield from rows(name, getattr(jnp, name), array(64, kind="any"), dtypes=dtypes)
    for name in _COMPLEX_UNARY.split():
        yield from rows(f"{name}_complex", getattr(jnp, name), array(200), dtypes=COMPLEX)
    for name, dtypes in _named(_BINARY):
        # JAX itself loops for ever over the least integers of gcd and lcm.
        kind = "plain" if name in ("vdot", "inner", "outer", "kron", "cross", "gcd", "lcm") else "any"
        shape = (3,) if name in ("kron", "cross") else (200,)
        yield from rows(name, getattr(jnp, name), array(*shape, kind=kind), array(*shape, kind=kind), dtypes=dtypes)
    yield from _mixed()
    yield from _by_numbers()
    yield from _odd_ones()


def _mixed() -> Iterator[Case]:
    """Promotion of two types, and of each with the weak types of Python's numbers."""
    for name in ("add", "multiply", "maximum", "divide", "power", "less", "where"):
        pairs = [(a, b) for a, b in product(_MIXED, _MIXED) if a != b]
        chosen = pairs[sum(map(ord, name)) % 5 :: 5]
        for a, b in chosen:
            arguments = array(9, kind="positive", dtype=a), array(9, kind="positive", dtype=b)
            if name == "where":
                yield from rows(f"mixed_{name}", lambda x, y: jnp.where(x > y, x, y), *arguments, dtypes=(f"{a}-{b}",))
            else:
                yield from rows(f"mixed_{name}", getattr(jnp, name), *arguments, dtypes=(f"{a}-{b}",))


def _by_numbers() -> Iterator[Case]:
    for dtype in (*_MIXED, "uint64", "complex128"):
        for number in (2, 0.5, 1j):
            yield from rows(
                "weak",
                lambda x, number=number: [x + number, number * x, x**2, jnp.maximum(x, 1), x / 3, 2 - x * number],
                array(7, kind="positive", dtype=dtype),
                dtypes=(f"{dtype}-{number}",),
            )


def _odd_ones() -> Iterator[Case]:
    small = array(20, kind="small")
    yield from rows("ldexp", jnp.ldexp, array(20), array(20, kind="small", dtype="int32"), dtypes=REALS)
    yield from rows(
        "round",
        lambda x: [jnp.round(x), jnp.round(x, 2), jnp.around(x, -1)],
        array(20),
        dtypes=(*REALS, "int32", "complex64"),
    )
    yield from rows(
        "clip",
        lambda x: [jnp.clip(x, -1, 2), jnp.clip(x, None, 1), jnp.clip(x, 1, None)],
        array(20, kind="any"),
        dtypes=_REAL[:-1],
    )
    yield from rows("sort_complex", jnp.sort_complex, array(20), dtypes=("float32", "complex64", "complex128"))
    yield from rows("polyval", lambda p, x: jnp.polyval(p, x), array(5), array(20), dtypes=INEXACT)
    yield from rows(
        "integer_pow", lambda x: [x**3, x**-2, x**0, x**7], array(20, kind="any"), dtypes=(*REALS, *COMPLEX)
    )
    yield from rows("integer_pow_int", lambda x: [x**3, x**0, x**7], array(20, kind="any"), dtypes=INTEGERS)
    yield from rows(
        "power_int", lambda x, y: jnp.power(x, jnp.abs(y)), small, small, dtypes=("int32", "int64", "uint8")
    )
    yield from rows(
        "divmod_zero",
        lambda x: [x // 0, x % 0, jnp.divmod(x, 0)[0]],
        array(9, kind="any"),
        dtypes=("int32", "int8", "uint8", "float32"),
    )
    yield from rows(
        "cast",
        lambda x: [
            x.astype(t)
            for t in (
                "float32",
                "int32",
                "int8",
                "uint8",
                "bool",
                "complex64",
                "bfloat16",
                "float16",
                "float8_e4m3fn",
                "float8_e5m2",
                "int4",
                "uint4",
            )
        ],
        array(40, kind="any"),
        dtypes=(*REALS, "int32", "uint8", "int8", "bool"),
    )
    yield from rows(
        "cast_narrow",
        lambda x: [x.astype(t) for t in ("float32", "bfloat16", "float16", "int32", "int4", "int8")],
        array(40, kind="any"),
        dtypes=(
            "float8_e4m3fn",
            "float8_e5m2",
            "float8_e4m3b11fnuz",
            "float8_e8m0fnu",
            "float4_e2m1fn",
            "int4",
            "uint4",
            "int2",
        ),
    )
    yield from rows(
        "narrow_arithmetic",
        lambda x, y: [x + y, x * y, x - y, jnp.maximum(x, y), x < y, -x, jnp.abs(x)],
        array(40, kind="plain"),
        array(40, kind="plain"),
        dtypes=("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "int4", "uint4"),
    )
    yield from rows(
        "view",
        lambda x: x.view(jnp.uint32),
        array(8, kind="any"),
        dtypes=("float32", "int32", "float64", "int8", "float16"),
    )
    yield from rows(
        "gammaln", lambda x: [jnp.real(x), jax.lax.complex(x, -x)], array(9, kind="any"), dtypes=("float32", "float64")
    )
    yield from rows(
        "zero_size",
        lambda x: [jnp.sin(x), x + x, x @ x.T, x.sum(0), jnp.sort(x, 0), jnp.cumsum(x, 1)],
        np.zeros((0, 3), np.float32),
        dtypes=("f",),
    )
    yield from rows(
        "zero_d",
        lambda x: [
            jnp.sin(x),
            x + 1,
            jnp.sum(x),
            jnp.cumsum(x),
            jnp.argmax(x),
            jnp.sort(x.ravel()),
            x[None],
            jnp.broadcast_to(x, (3,)),
        ],
        array(),
        dtypes=("float32", "float64", "bfloat16", "complex64"),
    )
    yield from rows(
        "piecewise",
        lambda x: jnp.piecewise(x, [x < 0, x > 1], [lambda v: -v, lambda v: v * 2, 7]),
        array(20),
        dtypes=("float32", "int32"),
    )
    yield from rows(
        "select",
        lambda x: [jnp.select([x > 1, x < 0], [x, -x], 5), jnp.where(x > 0, x, 0), jnp.where(x, 1.0, x)],
        array(20),
        dtypes=SOME[:-1],
    )
    yield from rows(
        "frompyfunc",
        lambda x: [
            jnp.add.reduce(x, axis=1),
            jnp.add.accumulate(x),
            jnp.multiply.outer(x[0], x[1]),
            jnp.add.at(x, 1, 3, inplace=False),
            jnp.add.reduceat(x, np.array([0, 2])),
        ],
        array(4, 5),
        dtypes=("float32", "int32"),
    )
    yield from rows("logaddexp_complex", jnp.logaddexp, array(9), array(9), dtypes=COMPLEX)
    yield from rows(
        "ufunc_methods",
        lambda x: [
            jnp.maximum.reduce(x),
            jnp.logical_or.reduce(x, axis=1),
            jnp.bitwise_xor.accumulate(x.astype(int)),
            jnp.minimum.accumulate(x, axis=1),
        ],
        array(4, 5),
        dtypes=("float32", "int32"),
    )
    yield from rows(
        "isin",
        lambda x, y: [
            jnp.isin(x, y),
            jnp.isin(x, y, invert=True),
            jnp.intersect1d(x, y, size=9),
            jnp.union1d(x, y, size=30),
            jnp.setdiff1d(x, y, size=9),
            jnp.setxor1d(x, y, size=30),
        ],
        array(15, kind="small"),
        array(9, kind="small"),
        dtypes=("float32", "int32", "uint8"),
    )
    yield from rows(
        "interp",
        lambda x, a, b: [
            jnp.interp(x, jnp.sort(a), b),
            jnp.interp(x, jnp.sort(a), b, left=0, right=1),
            jnp.interp(x, jnp.sort(a), b, period=2),
        ],
        array(15),
        array(7),
        array(7),
        dtypes=("float32", "float64", "int32"),
    )
    yield from rows(
        "convolve",
        lambda x, y: (
            [jnp.convolve(x, y, mode=m) for m in ("full", "same", "valid")] + [jnp.correlate(x, y, mode="full")]
        ),
        array(15),
        array(4),
        dtypes=(*SOME[:5], "complex64"),
    )
