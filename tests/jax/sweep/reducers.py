"""Reductions of jax.numpy: axes, where=, initial=, keepdims, empty axes, NaN versions, sums that run along."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.jax.sweep.table import COMPLEX, FLOATS, INEXACT, INTEGERS, ORDERED, SOME, rows
from tests.sweep.case import Case, array

_SUMS = "sum prod mean any all nansum nanprod"
_EXTREMES = "max min argmax argmin nanmax nanmin nanargmax nanargmin ptp"
_SPREADS = "var std nanmean nanvar nanstd median nanmedian"
_ALONG = "cumsum cumprod nancumsum nancumprod cumulative_sum cumulative_prod"
_ALL = (*FLOATS, *INTEGERS, "bool", *COMPLEX)


def _forms(function: Any) -> Any:
    return lambda x: [function(x), function(x, axis=1), function(x, axis=-2, keepdims=True)]


def _wide(function: Any) -> Any:
    return lambda x: [function(x, axis=(0, 2)), function(x, axis=(0, -1), keepdims=True)]


def cases() -> Iterator[Case]:
    for names, dtypes in ((_SUMS, _ALL), (_EXTREMES, ORDERED), (_SPREADS, (*FLOATS, "int32", "complex64"))):
        for name in names.split():
            kind = "plain" if name in _SPREADS or "prod" in name else "any"
            if name in ("sum", "nansum", "mean"):
                kind = "plain"
            some = [t for t in dtypes if not (t == "complex64" and "median" in name)]
            yield from rows(name, _forms(getattr(jnp, name)), array(3, 4, 2, kind=kind), dtypes=some)
            if "arg" not in name:
                yield from rows(f"{name}_axes", _wide(getattr(jnp, name)), array(3, 4, 2, kind=kind), dtypes=some[:3])
    for name in _ALONG.split():
        function = getattr(jnp, name)
        yield from rows(name, lambda x, f=function: [f(x, axis=1), f(x, axis=0)], array(5, 7), dtypes=_ALL)
    yield from _chosen()
    yield from _statistics()
    yield from _special()


def _chosen() -> Iterator[Case]:
    mask = np.arange(24).reshape(3, 4, 2) % 3 > 0
    for name, start in {
        "sum": 1,
        "prod": 2,
        "max": -1,
        "min": 3,
        "any": None,
        "all": None,
        "mean": None,
        "std": None,
        "var": None,
        "nansum": 1,
        "nanmax": 0,
        "nanmin": 2,
        "nanmean": None,
    }.items():
        f = getattr(jnp, name)
        given = {} if start is None else {"initial": start}
        yield from rows(
            f"{name}_where",
            lambda x, f=f, g=given: [
                f(x, where=mask, **g),
                f(x, axis=1, where=mask, keepdims=True, **g),
                f(x, where=mask[:, :1], axis=(0, 1), **g),
            ],
            array(3, 4, 2, kind="plain"),
            dtypes=("float32", "float64", "bfloat16", "int32", "bool") if name not in ("nanmean",) else FLOATS,
        )
        if start is not None or name in ("any", "all"):
            yield from rows(
                f"{name}_empty",
                lambda x, f=f, g=given: [f(x, axis=0, **g), f(x, axis=1, **g), f(x, **g), f(x, axis=(), **g)],
                array(0, 3),
                dtypes=("float32", "int32", "bool"),
            )
    for name in ("sum", "max", "any", "mean", "var"):
        f = getattr(jnp, name)
        yield from rows(f"{name}_no_axes", lambda x, f=f: f(x, axis=()), array(3, 4), dtypes=SOME[:-1])
    yield from rows(
        "sum_dtype",
        lambda x: [
            jnp.sum(x, dtype=t) for t in ("float32", "float64", "int32", "complex64", "bfloat16", "uint8", "bool")
        ],
        array(9),
        dtypes=("float32", "int8", "bool", "bfloat16"),
    )
    yield from rows(
        "mean_dtype",
        lambda x: [jnp.mean(x, dtype=t) for t in ("float32", "float64", "complex64", "bfloat16")],
        array(9),
        dtypes=("float32", "int8", "bool", "float16"),
    )
    yield from rows(
        "cumsum_dtype",
        lambda x: [jnp.cumsum(x, dtype=t) for t in ("float32", "float64", "int32", "uint8")],
        array(9),
        dtypes=("float32", "int8", "bool"),
    )


def _statistics() -> Iterator[Case]:
    for method in ("linear", "lower", "higher", "midpoint", "nearest"):
        for name in ("quantile", "nanquantile", "percentile", "nanpercentile"):
            if (method, name[:3]) in (("lower", "per"), ("higher", "per"), ("midpoint", "nan")):
                continue
            scale = 100 if "percentile" in name else 1
            f = getattr(jnp, name)
            yield from rows(
                f"{name}_{method}",
                lambda x, f=f, s=scale, m=method: [
                    f(x, 0.3 * s, method=m),
                    f(x, jnp.array([0.1, 0.5, 1.0]) * s, axis=1, method=m, keepdims=True),
                ],
                array(5, 6, kind="any" if name == "quantile" and method == "linear" else "plain"),
                dtypes=("float32", "float64", "bfloat16", "int32"),
            )
    yield from rows(
        "average",
        lambda x, w: [jnp.average(x, weights=abs(w) + 1, axis=1, returned=True), jnp.average(x)],
        array(5, 6),
        array(5, 6),
        dtypes=INEXACT,
    )
    yield from rows(
        "cov",
        lambda x: [jnp.cov(x), jnp.cov(x, ddof=0, rowvar=False), jnp.corrcoef(x)],
        array(4, 6),
        dtypes=("float32", "float64", "complex64"),
    )
    yield from rows(
        "cov_weights",
        lambda x: jnp.cov(x, fweights=np.array([1, 2, 1, 3, 1, 1]), aweights=np.arange(6) + 1.0),
        array(4, 6),
        dtypes=("float32", "float64"),
    )
    yield from rows(
        "histogram",
        lambda x: [
            *jnp.histogram(x, bins=7),
            *jnp.histogram(x, bins=np.linspace(-3, 3, 5)),
            *jnp.histogram(x, range=(-2, 2), density=True),
            jnp.histogram_bin_edges(x),
        ],
        array(40),
        dtypes=("float32", "float64", "int32"),
    )
    yield from rows(
        "histogram_weights", lambda x, w: jnp.histogram(x, weights=w), array(40), array(40), dtypes=("float32", "int32")
    )
    yield from rows(
        "histogram2d",
        lambda x, y: [*jnp.histogram2d(x, y, bins=4), *jnp.histogramdd(jnp.stack([x, y]).T, bins=3)[0]],
        array(40),
        array(40),
    )
    yield from rows(
        "bincount",
        lambda x: [
            jnp.bincount(x, length=9),
            jnp.bincount(x, weights=x * 0.5, length=4),
            jnp.bincount(x, minlength=3, length=3),
        ],
        array(40, kind="positive"),
        dtypes=("int32", "uint8", "int64"),
    )
    yield from rows(
        "digitize",
        lambda x: [jnp.digitize(x, np.array([-2.0, 0, 1, 3])), jnp.digitize(x, np.array([3.0, 1, 0]), right=True)],
        array(40, kind="any"),
        dtypes=("float32", "float64", "int32"),
    )
    yield from rows(
        "count_nonzero",
        lambda x: [jnp.count_nonzero(x), jnp.count_nonzero(x, axis=0, keepdims=True)],
        array(5, 6, kind="any"),
        dtypes=_ALL,
    )
    yield from rows(
        "nonzero",
        lambda x: [
            jnp.nonzero(x, size=7, fill_value=-1),
            jnp.flatnonzero(x, size=9),
            jnp.argwhere(x > 0, size=5),
            jnp.where(x, size=4),
        ],
        array(4, 3, kind="small"),
        dtypes=("float32", "int32", "bool", "complex64"),
    )
    yield from rows(
        "diff",
        lambda x: [
            jnp.diff(x),
            jnp.diff(x, n=2, axis=0),
            jnp.diff(x, prepend=x[:, :1], append=x[:, :2]),
            jnp.ediff1d(x.ravel()),
        ],
        array(4, 6),
        dtypes=SOME,
    )
    yield from rows("gradient", lambda x: [*jnp.gradient(x), jnp.gradient(x, 2.0, axis=1)], array(4, 6), dtypes=INEXACT)
    yield from rows(
        "trapezoid", lambda x: [jnp.trapezoid(x), jnp.trapezoid(x, dx=0.3, axis=0)], array(4, 6), dtypes=INEXACT
    )


def _special() -> Iterator[Case]:
    values = np.array([[np.nan, 1, -np.inf], [np.inf, -0.0, 0.0], [np.nan, np.nan, np.nan], [1e-40, -1e-40, 2]])
    for dtype in ("float32", "float64", "bfloat16", "float16"):
        given = values.astype(jnp.dtype(dtype))
        for name in f"{_SUMS} {_EXTREMES} nanmean nanstd median nanmedian cumsum cumprod nancumsum".split():
            f = getattr(jnp, name)
            yield from rows(f"{name}_special", lambda x, f=f: [f(x, axis=1), f(x, axis=0)], given, dtypes=(dtype,))
    big = np.arange(100_003, dtype=np.float32) % 17 - 8
    yield from rows(
        "long_axis",
        lambda x: [
            x.sum(),
            x.mean(),
            x.var(),
            x.max(),
            jnp.argmin(x),
            jnp.cumsum(x)[-5:],
            jnp.sort(x)[:9],
            jnp.median(x),
        ],
        big,
        dtypes=("f",),
    )
    yield from rows(
        "long_axis_int",
        lambda x: [
            x.sum(),
            x.max(),
            jnp.argmax(x),
            jnp.cumsum(x)[-5:],
            jnp.argsort(x)[:9],
            jnp.unique(x, size=20),
            jnp.count_nonzero(x),
        ],
        big.astype(np.int32),
        dtypes=("i",),
    )
    yield from rows(
        "logsumexp",
        lambda x: [jnp.logaddexp.reduce(x, axis=1)],
        array(4, 6, kind="plain"),
        dtypes=("float32", "float64"),
    )
