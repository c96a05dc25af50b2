"""Random numbers: other ones than PyTorch's, of the same distributions, drawn from the program's seed."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hloforge.torch.registry import Call, draws, lowers


def _float(call: Call) -> Any:
    return np.float32 if call.dtype.itemsize < 4 else call.dtype


@lowers("aten.rand", "aten.rand_like")
@draws
def rand(call: Call, sizes: Any, *_: Any, **__: Any) -> Any:
    return jax.random.uniform(call.key(), _sizes(sizes), _float(call))


@lowers("aten.randn", "aten.randn_like")
@draws
def randn(call: Call, sizes: Any, *_: Any, **__: Any) -> Any:
    return jax.random.normal(call.key(), _sizes(sizes), call.dtype if call.dtype.kind == "c" else _float(call))


def _sizes(given: Any) -> tuple[Any, ...]:
    return given.shape if hasattr(given, "shape") else tuple(given)


@lowers("aten.uniform", "prims._uniform_helper")
@draws
def uniform(call: Call, x: Any, low: Any = 0, high: Any = 1, **options: Any) -> Any:
    low, high = options.get("low", low), options.get("high", high)
    if call.dtype.kind == "c":
        parts = jax.random.uniform(call.key(), (2, *_sizes(x)), np.finfo(call.dtype).dtype)
        return jax.lax.complex(*(parts * (high - low) + low))
    return jax.random.uniform(call.key(), _sizes(x), _float(call)) * (high - low) + low


@lowers("aten.normal.float_float", "prims.normal")
@draws
def normal(call: Call, first: Any, second: Any = None, sizes: Any = None, **options: Any) -> Any:
    if sizes is None:  # prims: sizes, then named
        return jax.random.normal(call.key(), tuple(first), _float(call)) * options["std"] + options["mean"]
    return jax.random.normal(call.key(), tuple(sizes), _float(call)) * second + first


@lowers("aten.normal_functional")
@draws
def normal_functional(call: Call, x: Any, mean: Any = 0.0, std: Any = 1.0, **_: Any) -> Any:
    return jax.random.normal(call.key(), x.shape, _float(call)) * std + mean


@lowers("aten.normal.Tensor_float", "aten.normal.float_Tensor", "aten.normal.Tensor_Tensor")
@draws
def normal_tensor(call: Call, mean: Any, std: Any = 1.0, **_: Any) -> Any:
    sizes = np.broadcast_shapes(np.shape(mean), np.shape(std))
    return jax.random.normal(call.key(), sizes, _float(call)) * std + mean


@lowers("aten.randint", "aten.randint_like")
@draws
def randint(call: Call, *arguments: Any, **_: Any) -> Any:
    if "like" in str(call.target):
        sizes, bounds = arguments[0].shape, arguments[1:]
    else:
        sizes, bounds = tuple(arguments[-1]), arguments[:-1]
    low, high = bounds if len(bounds) == 2 else (0, bounds[0])
    return jax.random.randint(call.key(), sizes, low, high, np.int64)


@lowers("aten.randperm")
@draws
def randperm(call: Call, count: Any, **_: Any) -> Any:
    return jax.random.permutation(call.key(), jnp.arange(count, dtype=np.int64))


@lowers("aten.bernoulli", "aten.bernoulli.p", "aten.bernoulli.Tensor")
@draws
def bernoulli(call: Call, x: Any, p: Any = None, **_: Any) -> Any:
    chance = x if p is None else p
    return jax.random.uniform(call.key(), x.shape, np.float32) < chance


@lowers("aten.native_dropout")
@draws
def native_dropout(call: Call, x: Any, p: float, train: bool | None = True) -> Any:
    if not train or p == 0:
        return x, jnp.ones(x.shape, np.bool_)
    kept = jax.random.uniform(call.key(), x.shape, np.float32) >= p
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return jnp.where(kept, x * np.asarray(scale, x.dtype), 0).astype(x.dtype), kept


@lowers("aten.exponential")
@draws
def exponential(call: Call, x: Any, rate: float = 1.0, **_: Any) -> Any:
    return jax.random.exponential(call.key(), x.shape, _float(call)) / rate


@lowers("aten.multinomial")
@draws
def multinomial(call: Call, weights: Any, count: int, replacement: bool = False, **_: Any) -> Any:
    logits = jnp.log(weights)
    if replacement:
        shape = (count, *logits.shape[:-1])
        return jnp.moveaxis(jax.random.categorical(call.key(), logits, -1, shape=shape), 0, -1)
    # The largest of Gumbel's numbers above the logits are a draw without replacement.
    noisy = logits + jax.random.gumbel(call.key(), logits.shape, logits.dtype)
    return jax.lax.top_k(noisy, count)[1]


@lowers("aten.geometric")
@draws
def geometric(call: Call, x: Any, p: float, **_: Any) -> Any:
    uniform = jax.random.uniform(call.key(), x.shape, np.float32, minval=np.finfo(np.float32).tiny)
    return jnp.ceil(jnp.log(uniform) / np.log1p(-p))


@lowers("aten.cauchy")
@draws
def cauchy(call: Call, x: Any, median: float = 0.0, sigma: float = 1.0, **_: Any) -> Any:
    return jax.random.cauchy(call.key(), x.shape, _float(call)) * sigma + median


@lowers("aten.log_normal")
@draws
def log_normal(call: Call, x: Any, mean: float = 1.0, std: float = 2.0, **_: Any) -> Any:
    return jnp.exp(jax.random.normal(call.key(), x.shape, _float(call)) * std + mean)


@lowers("aten.poisson")
@draws
def poisson(call: Call, x: Any, *_: Any, **__: Any) -> Any:
    return jax.random.poisson(call.key(), x, dtype=np.int32)


@lowers("aten._standard_gamma")
@draws
def standard_gamma(call: Call, x: Any, *_: Any, **__: Any) -> Any:
    return jax.random.gamma(call.key(), x, dtype=_float(call))


@lowers("aten.rrelu_with_noise", "aten.rrelu_with_noise_functional")
@draws
def rrelu(
    call: Call, x: Any, noise: Any, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, *_: Any
) -> Any:
    if training:
        drawn = jax.random.uniform(call.key(), x.shape, _float(call), lower, upper).astype(x.dtype)
        slopes = jnp.where(x > 0, jnp.ones_like(x), drawn)
    else:
        slopes = jnp.full_like(x, (lower + upper) / 2)
    result = jnp.where(x > 0, x, x * slopes)
    return (result, slopes) if "functional" in str(call.target) else result
