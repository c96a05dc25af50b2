"""jax.scipy, jax.nn, jax.image, jax.numpy.fft and jax.random."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np

from tests.jax.sweep.table import COMPLEX, FLOATS, rows
from tests.sweep.case import Case, array

_NN = """
relu relu6 sigmoid softplus sparse_plus sparse_sigmoid soft_sign silu swish log_sigmoid leaky_relu hard_sigmoid
hard_silu hard_tanh elu celu selu gelu glu squareplus mish identity log_softmax softmax standardize logsumexp logmeanexp
"""
_SPECIAL_1 = """
bernoulli digamma entr erf erfc erfinv expi expit exp1 factorial gammaln loggamma gamma gammasgn i0 i0e i1 i1e
log_ndtr log_softmax logit ndtr ndtri sici spence fresnel softmax logsumexp zeta ellipk dawsn erfcx
"""
_SPECIAL_2 = (
    "beta betaln gammainc gammaincc kl_div poch rel_entr xlog1py xlogy zeta polygamma expn comb stirling2 boxcox "
    "boxcox1p owens_t"
)
_DISTRIBUTIONS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "bernoulli": ("logpmf pmf cdf ppf", (0.3,)),
    "beta": ("logpdf pdf cdf logcdf sf logsf", (1.5, 2.5)),
    "betabinom": ("logpmf pmf", (5, 1.5, 2.0)),
    "binom": ("logpmf pmf", (5, 0.3)),
    "cauchy": ("logpdf pdf cdf logcdf sf logsf isf ppf", ()),
    "chi2": ("logpdf pdf cdf logcdf sf logsf", (3.0,)),
    "expon": ("logpdf pdf cdf logcdf sf logsf ppf", ()),
    "gamma": ("logpdf pdf cdf logcdf sf logsf", (2.3,)),
    "gennorm": ("logpdf pdf cdf", (1.7,)),
    "geom": ("logpmf pmf", (0.3,)),
    "gumbel_l": ("logpdf pdf cdf logcdf sf logsf ppf", ()),
    "gumbel_r": ("logpdf pdf cdf logcdf sf logsf ppf", ()),
    "laplace": ("logpdf pdf cdf", ()),
    "logistic": ("logpdf pdf cdf sf isf ppf", ()),
    "nbinom": ("logpmf pmf", (4, 0.3)),
    "norm": ("logpdf pdf cdf logcdf sf logsf isf ppf", ()),
    "pareto": ("logpdf pdf cdf logcdf sf logsf ppf", (2.5,)),
    "poisson": ("logpmf pmf cdf entropy", (3.2,)),
    "t": ("logpdf pdf", (3.5,)),
    "truncnorm": ("logpdf pdf cdf logcdf sf logsf", (-1.0, 2.0)),
    "uniform": ("logpdf pdf cdf ppf", ()),
    "vonmises": ("logpdf pdf", (1.3,)),
    "wrapcauchy": ("logpdf pdf", (0.4,)),
}


def cases() -> Iterator[Case]:
    yield from _nn()
    yield from _special()
    yield from _statistics()
    yield from _transforms()
    yield from _signal()
    yield from _image()
    yield from _random()


def _nn() -> Iterator[Case]:
    for name in _NN.split():
        if hasattr(jax.nn, name):
            f = getattr(jax.nn, name)
            yield from rows(f"nn.{name}", f, array(6, 8, kind="plain"), dtypes=(*FLOATS, "float16"))
            yield from rows(f"nn.{name}_special", f, array(6, 8, kind="any"), dtypes=FLOATS)
            yield from rows(
                f"nn.{name}_grad",
                lambda x, w, f=f: jax.grad(lambda x: (f(x) * w.ravel()[: f(x).size].reshape(f(x).shape)).sum())(x),
                array(6, 8),
                array(6, 8),
                dtypes=("float32", "float64"),
            )
    yield from rows(
        "nn.one_hot",
        lambda x: [jax.nn.one_hot(x, 5), jax.nn.one_hot(x, 3, axis=0, dtype="bfloat16"), jax.nn.one_hot(x - 4, 3)],
        array(4, 3, kind="small"),
        dtypes=("int32", "uint8", "int64", "float32"),
    )
    yield from rows(
        "nn.masks",
        lambda x: [
            jax.nn.softmax(x, where=np.arange(8) % 2 == 0),
            jax.nn.log_softmax(x, where=np.arange(8) % 2 == 0),
            jax.nn.standardize(x, where=np.arange(8) > 2),
            jax.nn.gelu(x, approximate=False),
            jax.nn.leaky_relu(x, 0.3),
            jax.nn.elu(x, 0.5),
            jax.nn.logsumexp(x, axis=1, b=x, return_sign=True),
        ],
        array(6, 8),
    )
    for form in ("plain", "causal", "mask", "bias", "grouped"):

        def attention(q: Any, k: Any, v: Any, form: str = form) -> Any:
            given: dict[str, Any] = {
                "causal": {"is_causal": True},
                "mask": {"mask": np.tril(np.ones((1, 1, 8, 8), bool))},
                "bias": {"bias": q[:, :1, :1, :1] * 0.1},
            }.get(form, {})
            return jax.nn.dot_product_attention(
                q, k[:, :, :2] if form == "grouped" else k, v[:, :, :2] if form == "grouped" else v, **given
            )

        yield from rows(
            f"nn.attention_{form}", attention, array(2, 8, 4, 16), array(2, 8, 4, 16), array(2, 8, 4, 16), dtypes=FLOATS
        )
    yield from rows(
        "nn.scaled",
        lambda a, b: jax.nn.scaled_matmul(
            a[None].astype("float8_e4m3fn"),
            b[None].astype("float8_e4m3fn"),
            jnp.ones((1, 8, 2), "float8_e8m0fnu"),
            jnp.ones((1, 8, 2), "float8_e8m0fnu"),
        ),
        array(8, 64),
        array(8, 64),
        dtypes=("float32",),
    )
    for name in (
        "zeros",
        "ones",
        "uniform",
        "normal",
        "truncated_normal",
        "glorot_uniform",
        "he_normal",
        "lecun_uniform",
        "orthogonal",
        "delta_orthogonal",
    ):
        make = getattr(jax.nn.initializers, name)
        shape = (3, 3, 4, 4) if name == "delta_orthogonal" else (5, 4)
        f = make if name in ("zeros", "ones") else make()
        yield from rows(f"nn.initializers.{name}", lambda f=f, s=shape: f(jax.random.key(0), s), dtypes=("f",))


def _special() -> Iterator[Case]:
    for name in _SPECIAL_1.split():
        f = getattr(jsp.special, name, None)
        if f is None or name in ("bernoulli", "zeta"):
            continue
        yield from rows(
            f"special.{name}",
            f,
            array(40, kind="positive"),
            dtypes=(*FLOATS, "float16") if name not in ("fresnel", "sici", "expi") else ("float32", "float64"),
        )
        yield from rows(f"special.{name}_any", f, array(60, kind="any"), dtypes=("float32", "float64"))
    for name in _SPECIAL_2.split():
        f = getattr(jsp.special, name, None)
        if f is None:
            continue
        n = np.arange(40) % 5 + (1 if name == "polygamma" else 0)
        first: Any = (
            n.astype(np.int32)
            if name == "expn"
            else (n.astype(np.float64) if name == "polygamma" else array(40, kind="positive"))
        )
        yield from rows(
            f"special.{name}",
            lambda a, b, f=f: f(
                a.astype(b.dtype) if a.dtype.kind == "f" else a, b + (1 if f is jsp.special.zeta else 0)
            ),
            first,
            array(40, kind="positive"),
            dtypes=("float32", "float64"),
        )
        if name not in ("polygamma", "expn"):
            yield from rows(
                f"special.{name}_any", f, array(60, kind="any"), array(60, kind="any"), dtypes=("float32", "float64")
            )
    yield from rows("special.multigammaln", lambda x: jsp.special.multigammaln(x + 3, 3), array(9, kind="positive"))
    yield from rows(
        "special.betainc",
        lambda a, b, x: jsp.special.betainc(a + 0.1, b + 0.1, x / 4),
        array(20, kind="positive"),
        array(20, kind="positive"),
        array(20, kind="positive"),
    )
    yield from rows(
        "special.hyp1f1",
        lambda a, b, x: jsp.special.hyp1f1(a, b + 0.5, x),
        array(20, kind="positive"),
        array(20, kind="positive"),
        array(20, kind="positive"),
    )
    yield from rows(
        "special.hyp2f1",
        lambda a, b, x: jsp.special.hyp2f1(a, b, a + b + 0.5, x / 5),
        array(9, kind="positive"),
        array(9, kind="positive"),
        array(9, kind="positive"),
    )
    yield from rows("special.wofz", jsp.special.wofz, array(30, kind="plain"), dtypes=COMPLEX)
    yield from rows("special.bernoulli", lambda: jsp.special.bernoulli(9), dtypes=("f",))
    yield from rows(
        "special.sph_harm",
        lambda x: jsp.special.sph_harm_y(jnp.array([2]), jnp.array([1]), x, x * 2, n_max=3),
        array(1, kind="unit"),
        dtypes=("float32", "float64"),
    )
    yield from rows("special.bessel_jn", lambda x: jsp.special.bessel_jn(x, v=3), array(7, kind="positive"))
    yield from rows("special.lpmn", lambda x: jsp.special.lpmn_values(2, 2, x, True), array(5, kind="unit"))
    yield from rows(
        "special.grads",
        lambda x: [
            jax.vmap(jax.grad(f))(x)
            for f in (jsp.special.gammaln, jsp.special.erf, jsp.special.ndtri, jsp.special.i0e, jsp.special.logit)
        ],
        array(9, kind="unit"),
    )


def _statistics() -> Iterator[Case]:
    for name, (functions, arguments) in _DISTRIBUTIONS.items():
        module = getattr(jsp.stats, name, None)
        if module is None:
            continue
        fs = [getattr(module, f) for f in functions.split() if hasattr(module, f)]
        quantiles = [f for f in fs if f.__name__ in ("ppf", "isf")]
        others = [f for f in fs if f not in quantiles]
        yield from rows(
            f"stats.{name}",
            lambda x, q=quantiles, o=others, a=arguments: [f(x, *a) for f in o] + [f(x / 4, *a) for f in q],
            array(20, kind="positive"),
        )
        if others:
            yield from rows(
                f"stats.{name}_outside", lambda x, o=others, a=arguments: [f(x, *a) for f in o], array(40, kind="any")
            )
    yield from rows(
        "stats.others",
        lambda x: [
            jsp.stats.mode(jnp.round(x)),
            jsp.stats.rankdata(x),
            jsp.stats.sem(x),
            jsp.stats.dirichlet.logpdf(jnp.ones(3) / 3, jnp.array([1.0, 2, 3])),
            jsp.stats.multinomial.logpmf(jnp.array([1, 2, 3]), 6, jnp.ones(3) / 3),
            jsp.stats.multivariate_normal.logpdf(x[:3], jnp.zeros(3), jnp.eye(3) * 2),
        ],
        array(12),
    )
    yield from rows(
        "stats.kde",
        lambda x: [jsp.stats.gaussian_kde(x)(x[:4]), jsp.stats.gaussian_kde(x).integrate_box_1d(-1, 1)],
        array(12),
    )
    yield from rows(
        "integrate",
        lambda x: (
            [
                jsp.integrate.trapezoid(x),
                jsp.ndimage.map_coordinates(
                    x, [np.array([[0.5, 2.2], [3.7, -1.0]]), np.array([[1.5, 0.2], [9.0, 2.5]])], order=1
                ),
            ]
            + [
                jsp.ndimage.map_coordinates(
                    x, [np.array([0.5, 3.7, -3.2]), np.array([1.5, 9.0, -0.5])], order=o, mode=m
                )
                for o in (0, 1)
                for m in ("constant", "nearest", "wrap", "mirror", "reflect")
            ]
        ),
        array(5, 6),
    )


def _transforms() -> Iterator[Case]:
    for name in ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]:
        f = getattr(jnp.fft, name)
        real = name in ("rfft", "ihfft")
        yield from rows(
            f"fft.{name}",
            lambda x, f=f: [f(x), f(x, n=10), f(x, axis=0), f(x, norm="ortho"), f(x, n=5, norm="forward")],
            array(4, 12),
            dtypes=("float32", "float64") if real else ("float32", "float64", *COMPLEX),
        )
    for name in ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"]:
        f = getattr(jnp.fft, name)
        real = name.startswith("rfft")
        yield from rows(
            f"fft.{name}",
            lambda x, f=f: [f(x), f(x, s=(3, 8)), f(x, axes=(0, 1), norm="ortho")],
            array(4, 6),
            dtypes=("float32", "float64") if real else ("float32", *COMPLEX),
        )
    yield from rows(
        "fft.shifts",
        lambda x: [jnp.fft.fftshift(x), jnp.fft.ifftshift(x, axes=1), jnp.fft.fftfreq(9, 0.1), jnp.fft.rfftfreq(8)],
        array(4, 6),
        dtypes=("float32", "complex64"),
    )
    yield from rows(
        "fft.types",
        lambda x: [jnp.fft.fft(x), jnp.fft.rfft(x)],
        array(8),
        dtypes=("int32", "bool", "float16", "bfloat16", "uint8"),
    )
    yield from rows("fft.grad", lambda x: jax.grad(lambda x: jnp.abs(jnp.fft.rfft(x)).sum())(x), array(8))
    for kind in ("dct", "idct", "dctn", "idctn"):
        yield from rows(
            f"fft.{kind}", lambda x, k=kind: [getattr(jsp.fft, k)(x), getattr(jsp.fft, k)(x, norm="ortho")], array(4, 6)
        )


def _signal() -> Iterator[Case]:
    x, y = array(24), array(5)
    for mode in ("full", "same", "valid"):
        yield from rows(
            f"signal.convolve_{mode}",
            lambda a, b, m=mode: [
                jsp.signal.convolve(a, b, mode=m),
                jsp.signal.correlate(a, b, mode=m),
                jsp.signal.fftconvolve(a, b, mode=m),
            ],
            x,
            y,
            dtypes=("float32", "float64", "complex64"),
        )
        yield from rows(
            f"signal.convolve2d_{mode}",
            lambda a, b, m=mode: [jsp.signal.convolve2d(a, b, mode=m), jsp.signal.correlate2d(a, b, mode=m)],
            array(6, 7),
            array(3, 2),
            dtypes=("float32", "float64", "complex64"),
        )
    yield from rows(
        "signal.detrend",
        lambda a: [jsp.signal.detrend(a), jsp.signal.detrend(a, type="constant"), jsp.signal.detrend(a, bp=[8])],
        x,
    )
    yield from rows(
        "signal.stft",
        lambda a: [
            jsp.signal.stft(a, nperseg=8)[2],
            jsp.signal.welch(a, nperseg=8)[1],
            jsp.signal.csd(a, a * 2, nperseg=8)[1],
        ],
        x,
    )
    yield from rows("signal.istft", lambda a: jsp.signal.istft(jsp.signal.stft(a, nperseg=8)[2], nperseg=8)[1], x)


def _image() -> Iterator[Case]:
    for method in ("nearest", "linear", "cubic", "lanczos3", "lanczos5"):
        yield from rows(
            f"image.resize_{method}",
            lambda x, m=method: [jax.image.resize(x, (7, 4, 3), m), jax.image.resize(x, (2, 9, 3), m, antialias=False)],
            array(4, 6, 3),
            dtypes=("float32", "float64", "bfloat16", "int32", "uint8"),
        )
    yield from rows(
        "image.scale",
        lambda x: [
            jax.image.scale_and_translate(x, (7, 8, 3), (0, 1), jnp.array([1.5, 0.7]), jnp.array([0.3, -1.0]), m)
            for m in ("linear", "cubic")
        ],
        array(4, 6, 3),
    )
    yield from rows(
        "image.grad", lambda x: jax.grad(lambda x: (jax.image.resize(x, (7, 4), "cubic") ** 2).sum())(x), array(4, 6)
    )


def _random() -> Iterator[Case]:
    r, shape = jax.random, (3, 5)
    draws: dict[str, Any] = {
        "bits": lambda k, d: [r.bits(k, shape, t) for t in ("uint8", "uint16", "uint32", "uint64")],
        "uniform": lambda k, d: [r.uniform(k, shape, d), r.uniform(k, shape, d, -3, 5), r.uniform(k, (), d)],
        "randint": lambda k, d: (
            [r.randint(k, shape, 0, n, t) for n, t in ((7, "int32"), (100, "uint8"), (127, "int8"), (10**6, "int64"))]
            + [r.randint(k, shape, -5, 5)]
        ),
        "normal": lambda k, d: [r.normal(k, shape, d), r.truncated_normal(k, -1.0, 2.0, shape, d)],
        "complex_normal": lambda k, d: r.normal(k, shape, "complex64"),
        "bernoulli": lambda k, d: [
            r.bernoulli(k, 0.3, shape),
            r.rademacher(k, shape),
            r.bernoulli(k, 0.3, shape, mode="high"),
        ],
        "exponential": lambda k, d: [
            r.exponential(k, shape, d),
            r.laplace(k, shape, d),
            r.logistic(k, shape, d),
            r.cauchy(k, shape, d),
            r.gumbel(k, shape, d),
            r.rayleigh(k, 2.0, shape, d),
        ],
        "pareto": lambda k, d: [
            r.pareto(k, jnp.asarray(2.0, d), shape, d),
            r.weibull_min(k, 1.5, 2.0, shape, d),
            r.triangular(k, 0, 0.3, 1, shape, d),
            r.lognormal(k, 1.0, shape, d),
            r.maxwell(k, shape, d),
            r.double_sided_maxwell(k, 0.1, 2.0, shape, d),
        ],
        "gamma": lambda k, d: [r.gamma(k, jnp.asarray(2.5, d), shape, d), r.loggamma(k, jnp.asarray(0.3, d), shape, d)],
        "beta": lambda k, d: [
            r.beta(k, 1.5, 2.5, shape, d),
            r.chisquare(k, 3.0, shape=shape, dtype=d),
            r.dirichlet(k, jnp.ones(3, d), (2,), d),
            r.f(k, 3.0, 4.0, shape, d),
            r.t(k, 3.0, shape, d),
        ],
        "poisson": lambda k, d: [r.poisson(k, 3.0, shape), r.poisson(k, 30.0, shape)],
        "binomial": lambda k, d: [
            r.binomial(k, 9, 0.3, shape),
            r.binomial(k, 100, 0.4, shape),
            r.geometric(k, 0.3, shape),
            r.multinomial(k, 9, jnp.ones(3) / 3),
        ],
        "choice": lambda k, d: [
            r.choice(k, 9, shape),
            r.choice(k, 20, shape, replace=False),
            r.choice(k, 9, shape, p=jnp.arange(9) / 36),
            r.choice(k, 20, (5,), replace=False, p=jnp.arange(20) / 190),
            r.permutation(k, 9),
            r.permutation(k, jnp.arange(12).reshape(4, 3), independent=True, axis=1),
        ],
        "categorical": lambda k, d: [
            r.categorical(k, jnp.arange(5.0), shape=(7,)),
            r.categorical(k, jnp.ones((2, 5)), axis=-1),
            r.categorical(k, jnp.arange(5.0), shape=(3,), replace=False),
        ],
        "multivariate_normal": lambda k, d: (
            [
                r.multivariate_normal(k, jnp.zeros(3, d), jnp.eye(3, dtype=d) * 2, (4,), d, m)
                for m in ("cholesky", "eigh", "svd")
            ]
            + [
                r.orthogonal(k, 3, dtype=d),
                r.ball(k, 3, shape=(2,), dtype=d),
                r.generalized_normal(k, 1.5, shape, d),
                r.wald(k, 1.0, shape, d),
            ]
        ),
        "keys": lambda k, d: [
            jax.random.key_data(jax.random.split(k, 5)),
            jax.random.key_data(jax.random.fold_in(k, 7)),
            jax.random.key_data(jax.random.clone(k)),
        ],
    }
    for impl in ("threefry2x32", "rbg", "unsafe_rbg"):
        for name, draw in draws.items():
            if impl == "threefry2x32" or name in ("bits", "uniform", "normal", "keys", "randint"):
                yield from rows(
                    f"random.{name}_{impl}",
                    lambda draw=draw, impl=impl: draw(jax.random.key(5, impl=impl), "float32"),
                    dtypes=("float32",),
                )
        if impl == "threefry2x32":
            for name in ("uniform", "normal", "exponential", "pareto", "gamma"):
                for dtype in ("float64", "bfloat16", "float16"):
                    yield from rows(
                        f"random.{name}_types",
                        lambda draw=draws[name], t=dtype: draw(jax.random.key(5), t),
                        dtypes=(dtype,),
                    )
