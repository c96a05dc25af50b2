"""Steps that sum, multiply, factor and draw: reductions, products, convolutions, transforms, linalg, random."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import jax.scipy.stats as stats
from jax import lax

from tests.prove.pool import LARGEST, Item, Pool, UnfitError, highest, step


def _exact(x: Item) -> bool:
    return "float" not in x.dtype and "complex" not in x.dtype


def _grown(x: Item, terms: int, factors: int = 1) -> float:
    """The bound of a sum of products."""
    bound = x.bound * factors + math.log2(max(terms, 1))
    if not _exact(x) and bound > highest(x.dtype):
        raise UnfitError
    return bound


@step(6, smooth=True)
def reduced(p: Pool) -> None:
    x = p.pick("integer", "float", "complex")
    axes = tuple(sorted(p.random.sample(range(len(x.shape)), p.random.randint(0, len(x.shape)))))
    options = ["sum", "sum", "mean"]
    if not p.smooth and "complex" not in x.dtype:
        options += ["max", "min", "var", "logsumexp", "norm", "any", "prod", "std", "ptp", "average"]
    kind = p.choice(options)
    if kind in ("max", "min", "ptp", "logsumexp", "average") and 0 in x.shape:
        raise UnfitError
    keep = p.chance(0.3)
    if kind == "any":
        mask = jnp.not_equal(x.value, 0) if x.depth == 0 else jnp.isfinite(x.value)
        p.add(p.choice((jnp.any, jnp.all, jnp.count_nonzero))(mask, axes, keepdims=keep))
    elif kind == "prod":
        if not _exact(x):
            raise UnfitError
        p.add(jnp.prod(x.value, axes, keepdims=keep))
    elif kind in ("max", "min", "ptp"):
        p.add(getattr(jnp, kind)(x.value, axes, keepdims=keep), x, rounds=kind == "ptp", bound=x.bound + 1)
    elif kind in ("logsumexp", "norm", "std", "var", "average") and "int" in x.dtype:
        raise UnfitError
    elif kind == "logsumexp":
        p.add(jax.nn.logsumexp(x.value, axes, keepdims=keep), x, rounds=True, bound=max(x.bound, 4.0))
    elif kind == "norm":
        p.add(jnp.sqrt(1 + jnp.sum(jnp.square(x.value), axes)), x, rounds=True, bound=_grown(x, x.value.size, 2))
    else:
        made = {"sum": jnp.sum, "mean": jnp.mean, "std": lambda v, a, keepdims: jnp.sqrt(jnp.var(v, a) + 1),
                "var": jnp.var, "average": lambda v, a, keepdims: jnp.average(v, axis=a)}[kind]  # fmt: skip
        if kind in ("mean", "var", "std") and (_exact(x) or 0 in x.shape):
            raise UnfitError
        bound = _grown(x, x.value.size, 2 if kind in ("var", "std") else 1)
        p.add(made(x.value, axes, keepdims=keep), x, rounds=not _exact(x), bound=bound)


@step(2)
def place(p: Pool) -> None:
    x = p.pick("integer", "float", "bool", depth=0, least=1)
    if 0 in x.shape:
        raise UnfitError
    p.add(p.choice((jnp.argmax, jnp.argmin))(x.value, p.choice((None, p.axis(x)))))


@step(3, smooth=True)
def running(p: Pool) -> None:
    # XLA rounds each step of running sums in 16 bits, in an order of its own.
    x = p.pick("integer", "float", least=1, where=lambda i: i.dtype not in ("float16", "bfloat16"))
    axis = p.axis(x)
    kind = p.choice(("sum", "sum", "max", "min", "prod", "reverse", "lse", "diff", "scan"))
    if kind == "diff":
        p.add(jnp.diff(x.value, axis=axis), x, rounds=not _exact(x), bound=x.bound + 1)
    elif kind in ("max", "min") and not p.smooth:
        p.add((lax.cummax if kind == "max" else lax.cummin)(x.value, axis % len(x.shape)), x)
    elif kind == "prod" and _exact(x):
        p.add(jnp.cumprod(x.value, axis))
    elif kind == "lse" and not _exact(x):
        p.add(lax.cumlogsumexp(x.value, axis % len(x.shape)), x, rounds=True, bound=x.bound + 3)
    elif kind == "scan" and x.shape[axis]:
        p.add(lax.associative_scan(jnp.add, x.value, axis=axis), x, rounds=not _exact(x), bound=_grown(x, x.value.size))
    else:
        made = lax.cumsum(x.value, axis % len(x.shape), reverse=kind == "reverse")
        p.add(made, x, rounds=not _exact(x), bound=_grown(x, x.value.size))


@step(2)
def windows(p: Pool) -> None:
    x = p.pick("integer", "float", least=1, where=lambda i: i.dtype not in ("float16", "bfloat16"))
    window = [p.choice((1, 2, 3)) for _ in x.shape]
    strides = [p.choice((1, 1, 2)) for _ in x.shape]
    combine, start = p.choice(((lax.add, 0), (lax.max, None), (lax.min, None)))
    if start is None:
        info = jnp.iinfo(x.dtype) if _exact(x) else jnp.finfo(x.dtype)
        start = info.min if combine is lax.max else info.max
        if not _exact(x):
            start = -jnp.inf if combine is lax.max else jnp.inf
    padding = p.choice(("SAME", "VALID", [(1, 1)] * len(x.shape)))
    if padding == "VALID" and any(size < wide for size, wide in zip(x.shape, window, strict=True)):
        raise UnfitError
    made = lax.reduce_window(x.value, jnp.asarray(start, x.dtype), combine, window, strides, padding)
    if combine is lax.add:
        p.add(made, x, rounds=not _exact(x), bound=_grown(x, 27))
    else:
        p.add(jnp.clip(made, -100, 100) if not _exact(x) else made, x, bound=max(x.bound, 7.0))


@step(5, smooth=True)
def product(p: Pool) -> None:
    x = p.pick("integer", "float", "complex", least=1, most=3)
    contracted = x.shape[-1]
    columns = p.choice(p.sizes)
    if math.prod(x.shape[:-1]) * columns > LARGEST or contracted * columns > LARGEST:
        raise UnfitError
    kind = p.choice(("matmul", "einsum", "vector", "self", "tensordot", "batch", "outer", "inner"))
    bound = _grown(x, contracted, 2)
    if kind == "self" and len(x.shape) > 1:
        made = x.value @ jnp.swapaxes(x.value, -1, -2)
        y = x
    elif kind == "vector":
        y = p.like(x, (contracted,))
        made = x.value @ y.value
    elif kind == "einsum":
        y = p.like(x, (columns, contracted))
        made = jnp.einsum("...i,ji->...j", x.value, y.value)
    elif kind == "batch" and len(x.shape) == 3:
        y = p.like(x, (x.shape[0], contracted, columns))
        made = x.value @ y.value
    elif kind == "outer":
        if x.value.size > 60:
            raise UnfitError
        y = x
        made = jnp.outer(x.value, x.value) if p.chance(0.5) else jnp.kron(x.value, x.value)
    elif kind == "inner":
        y = p.like(x)
        made = jnp.vdot(x.value, y.value)
        bound = _grown(x, x.value.size, 2)
    else:
        y = p.like(x, (contracted, columns))
        made = x.value @ y.value if kind == "matmul" else jnp.tensordot(x.value, y.value, 1)
    bound += max(0.0, y.bound - x.bound)
    if not _exact(x) and bound > highest(x.dtype):
        raise UnfitError
    p.add(made, x, y, rounds=not _exact(x), bound=bound)


@step(2, smooth=True)
def convolution(p: Pool) -> None:
    x = p.pick("float", least=2, most=4, where=lambda i: 0 not in i.shape)
    if x.bound > 5:
        raise UnfitError
    image = x.value.reshape((1, 1, *x.shape)) if len(x.shape) == 2 else x.value.reshape((*x.shape, 1)[:4])
    groups = p.choice([g for g in (1, 2, 3) if image.shape[1] % g == 0])
    kernel = (p.choice((1, 2)) * groups, image.shape[1] // groups, p.choice((1, 2, 3)), p.choice((1, 2, 3)))
    strides, dilation = (p.choice((1, 1, 2)), p.choice((1, 2))), (p.choice((1, 1, 2)), 1)
    w = p.like(x, kernel)
    if math.prod(kernel) > 600 or w.bound > 4:
        raise UnfitError
    made = lax.conv_general_dilated(
        image, w.value, strides, p.choice(("SAME", "VALID", [(1, 0), (2, 1)])), feature_group_count=groups,
        rhs_dilation=dilation, lhs_dilation=p.choice(((1, 1), (1, 1), (2, 1))),
    )  # fmt: skip
    p.add(made, x, w, rounds=True, bound=x.bound + w.bound + 7)


@step(2)
def rows(p: Pool) -> None:
    """What layers do with rows."""
    x = p.pick("float", least=1, where=lambda i: 0 not in i.shape and i.bound <= 6)
    kind = p.choice(("softmax", "log_softmax", "norm", "rms", "one_hot", "glu", "attention", "logpdf"))
    if kind == "softmax":
        p.add(jax.nn.softmax(x.value, p.axis(x)), x, rounds=True, bound=0.0)
    elif kind == "log_softmax":
        p.add(jax.nn.log_softmax(x.value, p.axis(x)), x, rounds=True, bound=x.bound + 4)
    elif kind == "norm":
        mean = x.value.mean(-1, keepdims=True)
        p.add((x.value - mean) * lax.rsqrt(x.value.var(-1, keepdims=True) + 1), x, rounds=True)
    elif kind == "rms":
        p.add(x.value * lax.rsqrt(jnp.mean(x.value**2, -1, keepdims=True) + 1), x, rounds=True)
    elif kind == "glu" and x.shape[-1] % 2 == 0:
        p.add(jax.nn.glu(x.value), x, rounds=True)
    elif kind == "logpdf":
        p.add(stats.norm.logpdf(x.value, 0.5, 2), x, rounds=True, bound=2 * x.bound)
    elif kind == "attention" and len(x.shape) == 3 and x.dtype == "float32":
        q = x.value[:, :, None, :]
        p.add(jax.nn.dot_product_attention(q, q, q, is_causal=p.chance(0.5)), x, rounds=True)
    else:
        places = jnp.asarray(p.index(5, (4,)))
        p.add(jax.nn.one_hot(places, 5, dtype=x.dtype))


@step(1.5)
def transform(p: Pool) -> None:
    x = p.pick(
        "float", "complex", least=1, where=lambda i: i.dtype in ("float32", "float64", "complex64", "complex128")
    )
    if 0 in x.shape or x.bound > 8:
        raise UnfitError
    axis = p.axis(x)
    bound = x.bound + math.log2(x.value.size) + 1
    if "complex" in x.dtype:
        f = p.choice((jnp.fft.fft, jnp.fft.ifft, jnp.fft.fftshift, jnp.fft.irfft, jnp.fft.hfft))
        made = f(x.value, axes=axis) if f is jnp.fft.fftshift else f(x.value, axis=axis) if x.shape[axis] > 1 else None
        if made is None:
            raise UnfitError
    else:
        made = p.choice((jnp.fft.rfft, jnp.fft.fft, jnp.fft.ihfft))(x.value, axis=axis)
    p.add(made, x, rounds=True, bound=bound)


@step(2)
def factored(p: Pool) -> None:
    """Matrices that are far from singular."""
    x = p.pick("float", "complex", least=2, most=3, where=lambda i: i.dtype in ("float32", "float64", "complex64",
                                                                            "complex128"))  # fmt: skip
    n = min(x.shape[-2:])
    if not n or n > 20 or x.bound > 6 or 0 in x.shape or x.depth > 2:
        raise UnfitError
    part = x.value[..., :n, :n] / (n * (1 + jnp.max(jnp.abs(x.value)).astype(x.dtype)))
    matrix = part + 2 * jnp.eye(n, dtype=x.dtype)
    hermitian = part + jnp.conj(jnp.swapaxes(part, -1, -2)) + 4 * jnp.eye(n, dtype=x.dtype)
    right = p.like(x, (*x.shape[:-2], n, p.choice((1, 2, 5))))
    kind = p.choice(("cholesky", "solve", "inv", "det", "slogdet", "qr", "eigh", "svd", "lu", "tri", "power", "expm"))
    if kind == "cholesky":
        made = jnp.linalg.cholesky(hermitian)
    elif kind == "solve":
        made = jnp.linalg.solve(matrix, right.value)
    elif kind == "inv":
        made = jnp.linalg.inv(matrix)
    elif kind == "det":
        made = jnp.linalg.det(matrix / 2)
    elif kind == "slogdet":
        made = jnp.linalg.slogdet(matrix)[1]
    elif kind == "qr":
        made = jnp.abs(jnp.linalg.qr(matrix).R)
    elif kind == "eigh":
        made = jnp.linalg.eigvalsh(hermitian)
    elif kind == "svd":
        made = jnp.linalg.svd(matrix, compute_uv=False)
    elif kind == "lu":
        made = jax.scipy.linalg.lu(matrix)[2]
    elif kind == "tri":
        made = lax.linalg.triangular_solve(
            matrix, right.value, left_side=True, lower=p.chance(0.5), transpose_a=p.chance(0.3),
            unit_diagonal=p.chance(0.3),
        )  # fmt: skip
    elif kind == "power":
        made = jnp.linalg.matrix_power(matrix / 2, p.choice((0, 1, 3, -1)))
    else:
        made = jax.scipy.linalg.expm(part) if part.ndim == 2 else matrix
    p.add(made, x, right, rounds=True, bound=right.bound + 6)


@step(2)
def drawn(p: Pool) -> None:
    key = jax.random.key(p.random.randint(0, 1 << 30)) if p.chance(0.7) else jax.random.PRNGKey(p.random.randint(0, 9))
    shape = p.dims(3)
    kind = p.choice(("uniform", "normal", "bernoulli", "randint", "permutation", "bits", "gumbel", "categorical",
                     "truncated", "exponential", "choice", "split"))  # fmt: skip
    dtype = p.choice(("float32", "float32", "bfloat16", "float16"))
    if kind == "uniform":
        p.add(jax.random.uniform(key, shape, dtype), bound=0.0)
    elif kind == "bernoulli":
        p.add(jax.random.bernoulli(key, 0.3, shape))
    elif kind == "randint":
        p.add(jax.random.randint(key, shape, -5, 17, p.choice(("int32", "int8", "uint8", "int16"))))
    elif kind == "permutation":
        p.add(jax.random.permutation(key, p.choice((3, 7, 10))))
    elif kind == "bits":
        p.add(jax.random.bits(key, shape, p.choice(("uint32", "uint8", "uint16"))))
    elif kind == "categorical":
        p.add(jax.random.categorical(key, jnp.zeros((3, 4))))
    elif kind == "choice":
        p.add(jax.random.choice(key, 11, shape))
    elif kind == "split":
        p.add(jax.random.key_data(jax.random.split(jax.random.fold_in(key, 3), 3)))
    else:
        functions = {"normal": jax.random.normal, "gumbel": jax.random.gumbel, "exponential": jax.random.exponential}
        if kind == "truncated":
            made = jax.random.truncated_normal(key, -2, 2, shape)
        else:
            made = functions[kind](key, shape, dtype)
        p.add(made, rounds=True, bound=5.0)
