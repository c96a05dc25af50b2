"""Steps that call the larger part of jax.numpy, jax.scipy, jax.random and jax.lax which the other steps do not name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as scipy
import jax.scipy.special as special
from jax import lax

from tests.prove.pool import Item, Pool, UnfitError, step

Call = Callable[[Pool, Any], Any]


def _line(v: Any, most: int = 40) -> Any:
    """A vector of some elements."""
    return v.ravel()[:most]


def _square(v: Any, most: int = 6) -> Any:
    """A matrix of small elements."""
    n = min(most, max(1, int(v.size**0.5)))
    return jnp.resize(v.ravel(), (n, n)) / 8


# Of exact numbers, because they compare.
_COMPARING: tuple[Call, ...] = (
    lambda p, v: jnp.percentile(v, p.choice((0, 25, 50, 99.5, 100))),
    lambda p, v: jnp.quantile(
        v, jnp.asarray([0.1, 0.5, 0.9]), axis=p.choice((0, -1)), keepdims=p.chance(0.3),
        method=p.choice(("linear", "lower", "higher", "nearest", "midpoint")),
    ),
    lambda p, v: jnp.median(v, axis=p.choice((0, -1, None))),
    lambda p, v: jnp.nanmedian(v),
    lambda p, v: jnp.histogram(v, bins=p.choice((1, 3, 5)), range=(-4, 4))[0],
    lambda p, v: jnp.histogram2d(_line(v), _line(v)[::-1], bins=3, range=[(-3.1, 3.3), (-3.1, 3.3)])[0],
    lambda p, v: jnp.digitize(v, jnp.asarray([-2, 0, 1, 3]), right=p.chance(0.5)),
    lambda p, v: jnp.searchsorted(
        jnp.asarray([-2, 0, 0, 1, 3], v.dtype), v, side=p.choice(("left", "right")),
        method=p.choice(("scan", "scan_unrolled", "sort", "compare_all")),
    ),
    lambda p, v: jnp.unique(v, size=p.choice((1, 4, 9)), return_inverse=True)[1],
    lambda p, v: jnp.unique(v, size=p.choice((1, 4, 9)), return_counts=True, fill_value=-1)[1],
    lambda p, v: jnp.unique(v, axis=0, size=2, return_index=True)[1],
    lambda p, v: jnp.nonzero(v > 0, size=5, fill_value=-1)[0],
    lambda p, v: jnp.argwhere(v > 0, size=4),
    lambda p, v: jnp.flatnonzero(v, size=p.choice((0, 3, 8)), fill_value=7),
    lambda p, v: jnp.partition(v, p.random.randrange(v.shape[-1])),
    lambda p, v: jnp.setdiff1d(v, jnp.asarray([1, 2], v.dtype), size=5),
    lambda p, v: jnp.intersect1d(v, jnp.asarray([1, 2, 0], v.dtype), size=2),
    lambda p, v: jnp.union1d(v, jnp.asarray([1, 2, 0], v.dtype), size=6),
    lambda p, v: jnp.isin(v, jnp.asarray([0, 1, 3], v.dtype), invert=p.chance(0.5)),
    lambda p, v: jnp.bincount(jnp.clip(v.ravel(), 0, 9).astype("int32"), length=p.choice((0, 4, 12))),
    lambda p, v: jnp.bincount(jnp.clip(v.ravel(), 0, 9).astype("int32"), weights=v.ravel(), length=4),
    lambda p, v: jnp.select([v > 1, v < -1], [v, -v], 0),
    lambda p, v: jnp.piecewise(v, [v < 0, v >= 2], [lambda x: -x, 5, lambda x: x + 1]),
    lambda p, v: lax.approx_max_k(v.astype("float32"), p.random.randint(1, v.shape[-1]))[0],
    lambda p, v: jnp.nanargmax(v, axis=p.choice((0, -1))),
    lambda p, v: lax.clamp(jnp.asarray(-1, v.dtype), v, jnp.asarray(2, v.dtype)),
    lambda p, v: jnp.heaviside(v.astype("float32"), 0.5),
    lambda p, v: jnp.signbit(v.astype("float32")),
    lambda p, v: jnp.choose(jnp.clip(v, 0, 2).astype("int32"), [v, v + 1, v * 2], mode="clip"),
    lambda p, v: jnp.compress(_line(v) > 0, _line(v), size=3, fill_value=0),
    lambda p, v: jax.ops.segment_sum(v, jnp.arange(v.shape[0]) * 2 % 5, 4, indices_are_sorted=False),
    lambda p, v: jax.ops.segment_max(v, jnp.arange(v.shape[0]) // 2, v.shape[0]).clip(-9, 9),
    lambda p, v: jnp.searchsorted(jnp.sort(_line(v)), _line(v)[::-1]),
    lambda p, v: jnp.array_equal(v, v[::-1]),
    lambda p, v: lax.reduce(v, jnp.asarray(0, v.dtype), lax.max, (0,)),
    lambda p, v: lax.reduce((v, v[::-1]), (jnp.asarray(-9, v.dtype), jnp.asarray(9, v.dtype)),
                            lambda a, b: (jnp.maximum(a[0], b[0]), jnp.minimum(a[1], b[1])), (v.ndim - 1,))[1],
    lambda p, v: lax.reduce_or(v > 1, (0,)),
    lambda p, v: jnp.fill_diagonal(v, 1, inplace=False),
    lambda p, v: jnp.put_along_axis(v, jnp.argmax(v, 0, keepdims=True), 1, 0, inplace=False),
    lambda p, v: jnp.apply_along_axis(lambda r: jnp.sort(r)[::-1], 0, v),
    lambda p, v: jnp.vectorize(lambda a: jnp.where(a > 0, a, 1), signature="(n)->(n)")(v),
    lambda p, v: jnp.trim_zeros(jnp.ones(3)) if p.level else jnp.rollaxis(v, -1),
    lambda p, v: jnp.delete(v, p.choice((0, -1)), axis=0),
    lambda p, v: jnp.insert(v, 0, jnp.ones((), v.dtype), axis=0),
    lambda p, v: jnp.append(v, v, axis=0),
    lambda p, v: jnp.array_split(v, 2, axis=-1)[1],
    lambda p, v: jnp.meshgrid(_line(v, 5), _line(v, 3), indexing=p.choice(("ij", "xy")))[1],
    lambda p, v: v.at[jnp.arange(v.shape[0])[:, None], 0].set(1) if v.ndim > 1 else v,
    lambda p, v: v.at[jnp.asarray([0, 0, -1])].apply(lambda a: a * 2),
    lambda p, v: jnp.packbits(v.ravel() > 0, bitorder=p.choice(("big", "little"))),
    lambda p, v: jnp.unpackbits(_line(v).astype("uint8")),
    lambda p, v: jnp.right_shift(v.astype("int32"), jnp.asarray(31)),
    lambda p, v: lax.select_n(jnp.clip(v, 0, 2).astype("int32"), v, v + 1, -v),
    lambda p, v: lax.dynamic_index_in_dim(v, p.choice((0, -1, 99)), keepdims=False),
    lambda p, v: lax.dynamic_update_index_in_dim(v, v[0], p.choice((0, -1, 99)), 0),
    lambda p, v: jax.nn.one_hot(jnp.clip(v, -1, 5).astype("int32"), 4, axis=p.choice((0, -1))),
)  # fmt: skip
_ROUNDING: tuple[Call, ...] = (
    lambda p, v: jnp.interp(v, jnp.asarray([-2, 0, 1.5, 3], v.dtype), jnp.asarray([0, 1, -1, 2.0], v.dtype)),
    lambda p, v: jnp.convolve(_line(v), _line(v, 3), mode=p.choice(("full", "same", "valid"))),
    lambda p, v: jnp.correlate(_line(v), _line(v, 5), mode=p.choice(("full", "same", "valid"))),
    lambda p, v: jnp.einsum(p.choice(("ij,jk,kl->il", "ij,kj,il->kl", "ij,ij,ij->j", "ij,jk,ki->")), *[_square(v)] * 3),
    lambda p, v: jnp.einsum(p.choice(("ii->i", "ii", "ij->ji", "ij->j")), _square(v)),
    lambda p, v: jnp.einsum(p.choice(("ij,jk", "...ij,...kj->...ik", "ij,ij->", "ij,kl->ikjl")),
                            _square(v), _square(v)),
    lambda p, v: jnp.tensordot(_square(v), _square(v), axes=p.choice((0, 1, 2, ((0,), (1,)), ((0, 1), (1, 0))))),
    lambda p, v: jnp.gradient(_line(v) if v.size > 1 else jnp.ones(3, v.dtype)),
    lambda p, v: jnp.trapezoid(v, dx=0.5, axis=p.choice((0, -1))),
    lambda p, v: jnp.cov(_square(v)),
    lambda p, v: jnp.polyval(jnp.asarray([0.5, -1.0, 0.25], v.dtype), v / 8),
    lambda p, v: jnp.vander(_line(v, 5) / 8, 3, increasing=p.chance(0.5)),
    lambda p, v: jnp.cross(jnp.resize(v, (2, 3)), jnp.resize(v[::-1], (2, 3))),
    lambda p, v: jnp.ediff1d(v),
    lambda p, v: jnp.nanmean(jnp.where(v > 1, jnp.nan, v), axis=0, where=jnp.arange(v.shape[-1]) < 99),
    lambda p, v: jnp.nansum(jnp.where(v > 100, jnp.nan, v), axis=-1),
    lambda p, v: jnp.average(v, axis=0, weights=1.0 + jnp.arange(v.shape[0], dtype=v.dtype)),
    lambda p, v: jnp.cumulative_sum(_line(v), include_initial=p.chance(0.5)),
    lambda p, v: scipy.signal.convolve2d(_square(v), _square(v, 3), mode=p.choice(("full", "same", "valid"))),
    lambda p, v: scipy.signal.fftconvolve(_line(v), _line(v, 4)),
    lambda p, v: jax.image.resize(_square(v), p.choice(((3, 5), (8, 2), (1, 1))),
                                  p.choice(("nearest", "linear", "cubic", "lanczos3"))),
    lambda p, v: scipy.ndimage.map_coordinates(_square(v), [jnp.asarray([0.5, 1.25]), jnp.asarray([0.0, 0.75])],
                                               order=p.choice((0, 1)), mode=p.choice(("nearest", "constant", "wrap"))),
    lambda p, v: lax.conv_transpose(v.ravel()[:20].reshape(1, -1, 1), jnp.ones((3, 1, 2), v.dtype), (2,),
                                    p.choice(("SAME", "VALID"))),
    lambda p, v: lax.conv_general_dilated(jnp.resize(v, (1, 2, 3, 4, 3)), jnp.ones((2, 2, 2, 1, 2), v.dtype) / 4,
                                          (1, 2, 1), "SAME"),
    lambda p, v: lax.dot_general(_square(v)[None], _square(v)[None], (((1,), (2,)), ((0,), (0,)))),
    lambda p, v: lax.reduce_precision(v, *p.choice(((5, 10), (8, 7), (4, 3)))),
    lambda p, v: jnp.fft.fft2(_square(v)).real,
    lambda p, v: jnp.fft.rfftn(_square(v)).imag,
    lambda p, v: jnp.fft.irfft2(_square(v).astype(v.dtype), s=(4, p.choice((3, 4)))),
    lambda p, v: jnp.fft.rfft(v, n=p.choice((1, 3, 8, 12)), norm=p.choice(("ortho", "forward", None))).real,
    lambda p, v: jnp.linalg.lstsq(_square(v) + 2 * jnp.eye(*_square(v).shape), _square(v))[0],
    lambda p, v: jnp.linalg.pinv(_square(v, 4) + 3 * jnp.eye(*_square(v, 4).shape)),
    lambda p, v: _rebuilt(jnp.linalg.eigh, _square(v) + _square(v).T),
    lambda p, v: _rebuilt(jnp.linalg.svd, _square(v)),
    lambda p, v: _rebuilt(jnp.linalg.qr, _square(v)),
    lambda p, v: scipy.linalg.cho_solve((jnp.eye(*_square(v).shape) * 2, True), _square(v)),
    lambda p, v: scipy.linalg.lu_solve(scipy.linalg.lu_factor(_square(v) + 3 * jnp.eye(*_square(v).shape)),
                                       _square(v)[0]),
    lambda p, v: scipy.linalg.solve_triangular(_square(v) + 3 * jnp.eye(*_square(v).shape), _square(v)[:, 0],
                                               lower=p.chance(0.5), trans=p.choice((0, 1))),
    lambda p, v: scipy.linalg.block_diag(_square(v, 2), _square(v, 3)),
    lambda p, v: scipy.linalg.toeplitz(_line(v, 5), _line(v, 4)),
    lambda p, v: jnp.linalg.norm(_square(v) + 1, ord=p.choice((None, "fro", 1, -1, jnp.inf))),
    lambda p, v: jnp.linalg.multi_dot([_square(v), _square(v), _square(v)[:, 0]]),
    lambda p, v: special.gammainc(jnp.abs(v) / 4 + 1, jnp.abs(v) / 2 + 0.5),
    lambda p, v: special.gammaincc(jnp.abs(v) / 4 + 1, jnp.abs(v) / 2 + 0.5),
    lambda p, v: special.betainc(jnp.abs(v) / 4 + 1, 2.0, jax.nn.sigmoid(v)),
    lambda p, v: special.i0(v / 2),
    lambda p, v: special.i1(v / 2),
    lambda p, v: special.zeta(jnp.abs(v) / 4 + 2, 1.5),
    lambda p, v: special.polygamma(1, jnp.abs(v) + 1),
    lambda p, v: special.ndtri(jax.nn.sigmoid(v / 4)),
    lambda p, v: special.log_ndtr(v / 4),
    lambda p, v: special.exp1(jnp.abs(v) / 4 + 1),
    lambda p, v: special.kl_div(jnp.abs(v) + 1, jnp.abs(v[::-1]) + 2),
    lambda p, v: special.logit(jax.nn.sigmoid(v)),
    lambda p, v: special.erfcx(jnp.abs(v)) if hasattr(special, "erfcx") else special.erfc(v / 8),
    lambda p, v: jax.nn.standardize(v + jnp.arange(v.shape[-1], dtype=v.dtype), axis=-1, epsilon=1.0),
    lambda p, v: jax.nn.log_softmax(v, axis=0, where=None),
    lambda p, v: jax.nn.softmax(v, axis=-1, where=jnp.arange(v.shape[-1]) % 2 == 0),
    lambda p, v: jnp.logaddexp2(v, v[::-1]),
    lambda p, v: jnp.unwrap(v / 8),
    lambda p, v: scipy.stats.gamma.logpdf(jnp.abs(v) + 1, 2.0),
    lambda p, v: scipy.stats.beta.logpdf(jax.nn.sigmoid(v), 2.0, 3.0),
    lambda p, v: scipy.stats.poisson.logpmf(jnp.asarray([0, 1, 4]), 2.5),
    lambda p, v: scipy.stats.t.logpdf(v, 3.0),
    lambda p, v: scipy.integrate.trapezoid(v),
    lambda p, v: jnp.float_power(1 + jnp.abs(v) / 8, 2.5),
    lambda p, v: lax.integer_pow(v / 4, p.choice((-2, 0, 3, 5))) * (jnp.abs(v) > 0.5),
    lambda p, v: lax.linalg.householder_product(jnp.tril(_square(v), -1), jnp.zeros(len(_square(v)), v.dtype)),
)  # fmt: skip
# Without argument but a key.
_DRAWN: tuple[Callable[[Pool, Any], Any], ...] = (
    lambda p, key: jax.random.laplace(key, (5,)),
    lambda p, key: jax.random.logistic(key, (2, 3)),
    lambda p, key: jax.random.rademacher(key, (7,)),
    lambda p, key: jax.random.rayleigh(key, 1.0, (4,)),
    lambda p, key: jax.random.weibull_min(key, 1.5, 2.0, (4,)),
    lambda p, key: jax.random.triangular(key, -1.0, 0.0, 2.0, (5,)),
    lambda p, key: jax.random.multivariate_normal(key, jnp.zeros(2), jnp.eye(2) * 2, (3,)),
    lambda p, key: jax.random.orthogonal(key, 3),
    lambda p, key: jax.random.gamma(key, 2.0, (4,)),
    lambda p, key: jax.random.beta(key, 2.0, 3.0, (3,)),
    lambda p, key: jax.random.dirichlet(key, jnp.ones(3), (2,)),
    lambda p, key: jax.random.poisson(key, 3.0, (5,)),
    lambda p, key: jax.random.geometric(key, 0.3, (5,)),
    lambda p, key: jax.random.choice(key, 7, (3,), replace=False),
    lambda p, key: jax.random.choice(key, jnp.arange(5), (4,), p=jnp.asarray([0.1, 0.2, 0.3, 0.4, 0.0])),
    lambda p, key: jax.random.permutation(key, jnp.arange(12).reshape(4, 3), axis=1, independent=True),
    lambda p, key: jax.random.randint(key, (4,), jnp.asarray([0, 1, 2, 3]), 9),
    lambda p, key: jax.random.maxwell(key, (3,)),
    lambda p, key: jax.random.ball(key, 3),
    lambda p, key: jax.random.key_data(jax.random.clone(key)),
    lambda p, key: jax.random.uniform(key, (3, 5), minval=-2, maxval=5),
    lambda p, key: jax.random.bits(key, (6,), "uint64") if jax.config.jax_enable_x64 else jax.random.bits(key, (6,)),
)


def _rebuilt(factor: Callable[..., Any], matrix: Any) -> Any:
    """The matrix of its factors, whose signs and order are free."""
    if factor is jnp.linalg.eigh:
        values, vectors = jnp.linalg.eigh(matrix)
        return (vectors * values) @ vectors.T
    if factor is jnp.linalg.svd:
        u, values, vt = jnp.linalg.svd(matrix, full_matrices=False)
        return (u * values) @ vt
    q, r = jnp.linalg.qr(matrix)
    return q @ r


def _filled(item: Item) -> bool:
    return 0 not in item.shape


@step(5)
def compared(p: Pool) -> None:
    x = p.pick("integer", "float", depth=0, least=1, where=lambda i: _filled(i) and i.bound <= 8)
    value = jnp.clip(x.value, 0, 20) if "int" in x.dtype else x.value
    made = p.choice(_COMPARING)(p, value)
    _bounded(made)
    # Between two elements, and sums of weights, it rounds.
    p.add(made, x, rounds="float" in str(made.dtype), bound=max(x.bound, 7.0))


@step(6)
def computed(p: Pool) -> None:
    x = p.pick(
        "float", least=1, depth=1, where=lambda i: _filled(i) and i.bound <= 4 and i.dtype in ("float32", "float64")
    )
    made = p.choice(_ROUNDING)(p, x.value)
    _bounded(made)
    p.add(made, Item(x.value, x.depth + 2, x.bound), rounds=True, bound=12.0)


@step(2)
def distributed(p: Pool) -> None:
    key = jax.random.key(p.random.randint(0, 1 << 30), impl=p.choice((None, None, "threefry2x32", "rbg")))
    made = p.choice(_DRAWN)(p, key)
    p.add(made, rounds=True, bound=7.0)
    if str(made.dtype) == "float32":
        # What rejects by comparisons is not exact.
        p.items[-1] = Item(made, 2, 7.0)


def _bounded(made: Any) -> None:
    if made.size > 4096:
        raise UnfitError
