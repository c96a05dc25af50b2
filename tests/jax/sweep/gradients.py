"""Derivatives of the first and second order, forwards and backwards, of what JAX differentiates.

A case has what JAX's ``check_grads`` of order 2 looks at: the tangent of a function, its gradient, and the tangent and
the gradient of this gradient, all with given directions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax

from tests.jax.sweep.table import rows
from tests.sweep.case import Case, array

_FLOATS = ("float32", "float64")
# Where functions are smooth: between 0 and some units, between -1 and 1, and everywhere.
_POSITIVE = """
jnp: sqrt log log1p log2 log10 cbrt reciprocal i0
lax: rsqrt lgamma digamma bessel_i0e bessel_i1e
special: digamma gammaln gamma loggamma i0 i0e i1 i1e exp1 expi spence sici fresnel entr ellipk erfcx dawsn
nn: mish softplus squareplus
"""
_UNIT = """
jnp: arcsin arccos arctanh
lax: erf_inv
special: erfinv
"""
_EVERYWHERE = """
jnp: sin cos tan exp exp2 expm1 sinh cosh tanh arctan arcsinh square sinc abs cumsum cumprod sort
lax: erf erfc logistic tanh cumlogsumexp cummax cummin
special: erf erfc expit log_ndtr ndtr logsumexp softmax log_softmax
nn: relu relu6 sigmoid softplus soft_sign silu log_sigmoid leaky_relu hard_sigmoid hard_silu hard_tanh elu celu selu
nn: gelu glu squareplus mish log_softmax softmax standardize logsumexp logmeanexp sparse_plus
jnp: sum prod max min mean var std ptp median nansum
"""
_PAIRS = """
jnp: add multiply divide power logaddexp logaddexp2 arctan2 hypot maximum minimum fmax fmin remainder float_power
lax: igamma igammac pow atan2 nextafter
special: beta betaln gammainc gammaincc kl_div rel_entr xlog1py xlogy poch boxcox boxcox1p
"""
_ROWS = np.array([0, 2, 2])
_MODULES = {"jnp": jnp, "lax": lax, "special": jsp.special, "nn": jax.nn}


def _direction(x: Any, phase: float) -> Any:
    """A fixed array of its sizes and type, without zeros."""
    numbers = np.cos(np.arange(np.size(x), dtype=np.float64) * 1.7 + phase).reshape(np.shape(x))
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        numbers = numbers + 1j * np.sin(np.arange(np.size(x)) + phase).reshape(np.shape(x))
    return jnp.asarray(numbers, x.dtype)


def _directions(tree: Any, phase: float) -> Any:
    return jax.tree.map(lambda x: _direction(x, phase), tree)


def derivatives(function: Callable[..., Any]) -> Callable[..., Any]:
    """All derivatives up to the second order of a function of arrays of floats."""

    def gradient(*arguments: Any) -> Any:
        result, back = jax.vjp(function, *arguments)
        return back(_directions(result, 0.3))

    def run(*arguments: Any) -> Any:
        tangents = tuple(_directions(arguments, 0.9))
        return [
            jax.jvp(function, arguments, tangents),
            jax.jvp(gradient, arguments, tangents),
            jax.vjp(gradient, *arguments)[1](tangents),
        ]

    return run


def cases() -> Iterator[Case]:
    yield from _elementwise()
    yield from _arrays()
    yield from _matrices()
    yield from _loops()


def _named(text: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    for line in text.strip().splitlines():
        module, _, names = line.partition(": ")
        for name in names.split():
            found = getattr(_MODULES[module], name, None)
            if found is not None:
                yield f"gradients.{module}.{name}", found


def _elementwise() -> Iterator[Case]:
    for text, kind in ((_POSITIVE, "positive"), (_UNIT, "unit"), (_EVERYWHERE, "plain")):
        for name, f in _named(text):
            shift = 0.3 if kind == "positive" else 0.0
            scale = 0.9 if kind == "unit" else 1.0
            yield from rows(
                name, lambda x, f=f, a=scale, b=shift: derivatives(f)(x * a + b), array(2, 6, kind=kind), dtypes=_FLOATS
            )
    for name, f in _named(_PAIRS):
        yield from rows(
            name,
            lambda x, y, f=f: derivatives(f)(x + 0.3, y + 0.4),
            array(8, kind="positive"),
            array(8, kind="positive"),
            dtypes=_FLOATS,
        )
    for name in ("sin", "exp", "tanh", "log", "sqrt", "abs", "square", "reciprocal"):
        yield from rows(
            f"gradients.complex.{name}",
            derivatives(getattr(jnp, name)),
            array(6, kind="unit"),
            dtypes=("complex64", "complex128"),
        )


def _arrays() -> Iterator[Case]:
    x = array(5, 6)
    single: dict[str, Callable[..., Any]] = {
        "norms": lambda x: [jnp.linalg.norm(x), jnp.linalg.norm(x, axis=1), jnp.linalg.norm(x, 3, axis=0)],
        "indexing": lambda x: [x[_ROWS], x[:, ::-2], x.at[1].set(x[3]), x.at[_ROWS].add(x[:3]), x.at[2].mul(x[1])],
        "scatters": lambda x: [x.at[jnp.array([1, 1])].max(x[:2]), x.at[0].divide(x[1] + 9), x.at[0].power(2.0)],
        "shapes": lambda x: [x.T.reshape(3, 10), jnp.pad(x, 1, mode="reflect"), jnp.roll(x, 2, 1), jnp.tile(x, (2, 1))],
        "sorts": lambda x: [jnp.sort(x, 1), lax.top_k(x, 3)[0], jnp.take_along_axis(x, jnp.argsort(x, 0), 0)],
        "quantiles": lambda x: [jnp.percentile(x, 30.0), jnp.quantile(x, 0.7, axis=1), jnp.median(x, 0)],
        "windows": lambda x: [
            lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 2), "VALID"),
            lax.reduce_window(x, 0.0, lax.add, (3, 2), (2, 1), "SAME"),
        ],
        "interpolation": lambda x: [jnp.interp(x[0], jnp.arange(6.0), x[1]), jnp.trapezoid(x), jnp.gradient(x)],
        "transforms": lambda x: [jnp.abs(jnp.fft.rfft(x)) ** 2, jnp.real(jnp.fft.ifft2(x)), jnp.fft.irfft(x)],
        "images": lambda x: [jax.image.resize(x, (7, 4), "cubic"), jax.image.resize(x, (3, 9), "linear")],
        "cumulated": lambda x: [jnp.cumprod(x, 1), lax.cumlogsumexp(x, 1), lax.cummax(x, 0), jnp.cumsum(x, 0)],
        "attention": lambda x: jax.nn.dot_product_attention(*(x.reshape(1, 5, 2, 3) * k for k in (1, 2, 3))),
        "statistics": lambda x: [jnp.cov(x), jnp.corrcoef(x), jnp.std(x, 1), jnp.var(x, 0), jsp.stats.norm.logpdf(x)],
    }
    for name, f in single.items():
        yield from rows(f"gradients.arrays.{name}", derivatives(f), x, dtypes=_FLOATS)
    yield from rows(
        "gradients.arrays.products",
        derivatives(lambda a, b: [a @ b, jnp.einsum("ij,jk->k", a, b), jnp.kron(a, b), jnp.tensordot(a, b, 1)]),
        array(3, 4),
        array(4, 2),
        dtypes=_FLOATS,
    )
    yield from rows(
        "gradients.arrays.convolutions",
        derivatives(
            lambda x, k: [
                lax.conv_general_dilated(x, k, (1, 2), "SAME"),
                lax.conv_general_dilated(x, k, (1, 1), [(2, 1), (0, 1)], (2, 1), (1, 2)),
                lax.conv_transpose(x.transpose(0, 2, 3, 1), k.transpose(2, 3, 1, 0), (2, 1), "VALID"),
            ]
        ),
        array(2, 3, 5, 6),
        array(4, 3, 2, 3),
        dtypes=_FLOATS,
    )


def _matrices() -> Iterator[Case]:
    def regular(x: Any) -> Any:
        return x + 4 * jnp.eye(4, dtype=x.dtype)

    def positive(x: Any) -> Any:
        return x @ x.T + jnp.eye(4, dtype=x.dtype)

    def apart(x: Any) -> Any:
        """Symmetric, with eigenvalues far from each other."""
        return (x + x.T) / 4 + jnp.diag(jnp.arange(4, dtype=x.dtype) * 4)

    single: dict[str, Callable[..., Any]] = {
        "inverse": lambda x: jnp.linalg.inv(regular(x)),
        "determinants": lambda x: [jnp.linalg.det(x), jnp.linalg.slogdet(regular(x))[1]],
        "cholesky": lambda x: jnp.linalg.cholesky(positive(x)),
        "qr": lambda x: jnp.linalg.qr(regular(x)),
        "eigh": lambda x: [jnp.linalg.eigh(apart(x))[0], jnp.abs(jnp.linalg.eigh(apart(x))[1])],
        "singular_values": lambda x: jnp.linalg.svd(apart(x), compute_uv=False),
        "svd": lambda x: [jnp.abs(part) for part in jnp.linalg.svd(apart(x) + jnp.eye(4, dtype=x.dtype))],
        "pinv": lambda x: jnp.linalg.pinv(regular(x)[:, :3]),
        "solves": lambda x: [
            jnp.linalg.solve(regular(x), x[:, :2]),
            jsp.linalg.solve_triangular(regular(x), x[0], lower=True),
            jsp.linalg.cho_solve((positive(x), True), x[1]),
        ],
        "lu": lambda x: jsp.linalg.lu(regular(x))[1:],
        "exponential": lambda x: jsp.linalg.expm(x / 3),
        "power": lambda x: [jnp.linalg.matrix_power(x, 3), jnp.linalg.matrix_power(regular(x), -2)],
        "products": lambda x: [jnp.linalg.multi_dot([x, x[:, :2], x[:2]]), jnp.trace(x), jnp.diagonal(x)],
        "least_squares": lambda x: jnp.linalg.lstsq(regular(x)[:, :2], x[:, 2])[0],
    }
    for name, f in single.items():
        # In f32 second derivatives of singular vectors are only known to some 5e-5; LAPACK has no opinion in f64.
        dtypes = ("float64",) if name == "svd" else _FLOATS
        yield from rows(f"gradients.matrices.{name}", derivatives(f), array(4, 4), dtypes=dtypes)


def _loops() -> Iterator[Case]:
    def scanned(x: Any) -> Any:
        return lax.scan(lambda c, row: (jnp.tanh(c + row), c * row), jnp.zeros_like(x[0]), x)

    def rooted(x: Any) -> Any:
        return lax.custom_root(
            lambda y: y**3 + y - x,
            jnp.zeros_like(x),
            lambda f, y: lax.fori_loop(0, 25, lambda _, y: y - f(y) / 9, y),
            lambda g, y: y / g(jnp.ones_like(y)),
        )

    single: dict[str, Callable[..., Any]] = {
        "scan": scanned,
        "checkpointed": lambda x: jax.checkpoint(scanned)(x),
        "associative": lambda x: lax.associative_scan(lambda a, b: a * b + jnp.sin(b), x),
        "conditional": lambda x: lax.cond(x[0, 0] > 0, jnp.sin, lambda x: x**3, x),
        "switch": lambda x: lax.switch(2, [jnp.sin, jnp.cos, lambda x: x * x[0]], x),
        "counted": lambda x: lax.fori_loop(0, 4, lambda n, y: jnp.sin(y) * x, x),
        "mapped": lambda x: lax.map(lambda row: jnp.outer(row, row), x),
        "root": rooted,
        "solution": lambda x: jsp.sparse.linalg.cg(
            lambda v: 3 * v + 0.1 * jnp.roll(v, 1) + 0.1 * jnp.roll(v, -1), x[0]
        )[0],
    }
    for name, f in single.items():
        yield from rows(f"gradients.loops.{name}", derivatives(f), array(4, 5), dtypes=_FLOATS)
