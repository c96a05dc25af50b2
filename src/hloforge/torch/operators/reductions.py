"""Reductions: sums, products, extremes, argmax and argmin, and cumulative ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hloforge.torch.interpreter import converted
from hloforge.torch.registry import Call, lowers, wider

_DOUBLES = {np.dtype(np.float32): np.dtype(np.float64), np.dtype(np.complex64): np.dtype(np.complex128)}


def axes(x: Any, dims: Any) -> tuple[int, ...] | None:
    """Axes as numpy takes them: none means all."""
    if dims is None or x.ndim == 0:
        return None
    listed = [dims] if isinstance(dims, int) else list(dims)
    return tuple(d % x.ndim for d in listed) or None


@lowers("aten.sum", "prims.sum")
def total(call: Call, x: Any, dims: Any = None, keepdim: bool = False, **_: Any) -> Any:
    return jnp.sum(converted(x, call.dtype), axes(x, dims), keepdims=keepdim)


@lowers("aten.mean")
def mean(call: Call, x: Any, dims: Any = None, keepdim: bool = False, **_: Any) -> Any:
    return jnp.mean(converted(x, call.dtype), axes(x, dims), keepdims=keepdim)


@lowers("aten.prod", "prims.prod")
def prod(call: Call, x: Any, dims: Any = None, keepdim: bool = False, **_: Any) -> Any:
    return jnp.prod(converted(x, call.dtype), axes(x, dims), keepdims=keepdim)


@lowers("prims.xor_sum")
def xor_sum(call: Call, x: Any, dims: Any = None, **_: Any) -> Any:
    return jax.lax.reduce(x, np.array(0, x.dtype), jax.lax.bitwise_xor, axes(x, dims) or tuple(range(x.ndim)))


@lowers("aten.amax", "prims.amax")
def amax(call: Call, x: Any, dims: Any = None, keepdim: bool = False, **_: Any) -> Any:
    return jnp.max(x, axes(x, dims), keepdims=keepdim)


@lowers("aten.amin", "prims.amin")
def amin(call: Call, x: Any, dims: Any = None, keepdim: bool = False, **_: Any) -> Any:
    return jnp.min(x, axes(x, dims), keepdims=keepdim)


@lowers("aten.any", "aten._is_any_true")
def any_(call: Call, x: Any, dims: Any = None, keepdim: bool = False) -> Any:
    return jnp.any(x != 0, axes(x, dims), keepdims=keepdim)


@lowers("aten.all", "aten._is_all_true")
def all_(call: Call, x: Any, dims: Any = None, keepdim: bool = False) -> Any:
    return jnp.all(x != 0, axes(x, dims), keepdims=keepdim)


@lowers("aten.var.correction", "prims.var")
def var(call: Call, x: Any, dims: Any = None, correction: Any = 1, keepdim: bool = False, **_: Any) -> Any:
    return _variance(x, axes(x, dims), 1 if correction is None else correction, keepdim)[0]


@lowers("aten.var_mean.correction")
def var_mean(call: Call, x: Any, dims: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Any:
    return _variance(x, axes(x, dims), 1 if correction is None else correction, keepdim)


def _variance(x: Any, over: tuple[int, ...] | None, correction: Any, keepdim: bool) -> tuple[Any, Any]:
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    count = x.size if over is None else int(np.prod([x.shape[axis] for axis in over]))
    mean = jnp.mean(wide, over, keepdims=True)
    squares = jnp.sum(jnp.abs(wide - mean) ** 2, over, keepdims=keepdim)
    divisor = jnp.asarray(max(count - correction, 0), squares.dtype)
    return squares / divisor, mean if keepdim else jnp.mean(wide, over)


@lowers("aten.argmax")
def argmax(call: Call, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return _position(jnp.argmax, x, dim, keepdim)


@lowers("aten.argmin")
def argmin(call: Call, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return _position(jnp.argmin, x, dim, keepdim)


def _position(function: Callable[..., Any], x: Any, dim: Any, keepdim: bool) -> Any:
    if x.ndim == 0:
        return jnp.zeros((), np.int64)
    return function(x, axis=dim, keepdims=keepdim)


@lowers("aten.max.dim")
def max_dim(call: Call, x: Any, dim: int, keepdim: bool = False) -> Any:
    return jnp.max(x, axes(x, dim), keepdims=keepdim), _position(jnp.argmax, x, dim, keepdim)


@lowers("aten.min.dim")
def min_dim(call: Call, x: Any, dim: int, keepdim: bool = False) -> Any:
    return jnp.min(x, axes(x, dim), keepdims=keepdim), _position(jnp.argmin, x, dim, keepdim)


@lowers("aten.max.default")
def max_all(call: Call, x: Any) -> Any:
    return jnp.max(x)


@lowers("aten.min.default")
def min_all(call: Call, x: Any) -> Any:
    return jnp.min(x)


@lowers("aten.cumsum")
def cumsum(call: Call, x: Any, dim: int, **_: Any) -> Any:
    x = converted(x, _of_running(call))
    return jnp.cumsum(x, dim) if x.ndim else x


@lowers("aten.cumprod")
def cumprod(call: Call, x: Any, dim: int, **_: Any) -> Any:
    x = converted(x, _of_running(call))
    return jnp.cumprod(x, dim) if x.ndim else x


def _of_running(call: Call) -> np.dtype[Any]:
    """The type of running sums and products: the next wider one, as PyTorch's on the CPU.

    Roundings of narrow ones add up, and differences of two running sums (the decay between two places of a sequence)
    are often far smaller than the sums. Targets that may lack f64 keep f32.
    """
    if call.has_doubles and call.dtype in _DOUBLES:
        return _DOUBLES[call.dtype]
    return wider(call.dtype)


@lowers("aten.cummax")
def cummax(call: Call, x: Any, dim: int) -> Any:
    return _running(x, dim, jax.lax.cummax)


@lowers("aten.cummin")
def cummin(call: Call, x: Any, dim: int) -> Any:
    return _running(x, dim, jax.lax.cummin)


def _running(x: Any, dim: int, extreme: Callable[..., Any]) -> tuple[Any, Any]:
    """Extremes so far and where they are: the last of equals; a nan stays."""
    if x.ndim == 0:
        return x, jnp.zeros((), np.int64)
    axis = dim % x.ndim
    keys = x.astype(np.uint8) if x.dtype == np.bool_ else x
    found = extreme(keys, axis=axis)
    is_one = (keys == found) | jnp.isnan(keys)
    places = jax.lax.broadcasted_iota(np.int32, x.shape, axis)
    return found.astype(x.dtype), jax.lax.cummax(jnp.where(is_one, places, 0), axis=axis).astype(np.int64)


@lowers("aten.logcumsumexp")
def logcumsumexp(call: Call, x: Any, dim: int) -> Any:
    if not x.ndim or not x.size:
        return x
    if x.dtype.kind != "c":
        return jax.lax.associative_scan(jnp.logaddexp, x, axis=dim % x.ndim)

    # The imaginary part is not brought between -pi and pi, so that the order decides about it.
    def turn(total: Any, value: Any) -> Any:
        less = jnp.real(value) < jnp.real(total)
        greater, smaller = jnp.where(less, total, value), jnp.where(less, value, total)
        infinite = jnp.isinf(jnp.real(greater)) & (jnp.real(greater) == jnp.real(smaller))
        summed = jnp.where(infinite, smaller, greater + jnp.log1p(jnp.exp(smaller - greater)))
        return summed, summed

    rows = jnp.moveaxis(x, dim, 0)
    _, sums = jax.lax.scan(turn, rows[0], rows[1:])
    return jnp.moveaxis(jnp.concatenate([rows[:1], sums]), 0, dim)


@lowers("aten._softmax", "aten._safe_softmax")
def softmax(call: Call, x: Any, dim: int, half_to_float: Any = False) -> Any:
    x = _wide(x, call)
    if "_safe" not in str(call.target):
        return jax.nn.softmax(x, dim) if x.ndim else jnp.ones_like(x)
    hidden = jnp.all(x == -jnp.inf, dim, keepdims=True)
    return jnp.where(hidden, 0, jax.nn.softmax(jnp.where(hidden, 0, x), dim))


@lowers("aten._log_softmax")
def log_softmax(call: Call, x: Any, dim: int, half_to_float: bool = False) -> Any:
    x = _wide(x, call)
    return jax.nn.log_softmax(x, dim) if x.ndim else jnp.zeros_like(x)


def _wide(x: Any, call: Call) -> Any:
    """16-bit floats as f32: what is within one operator is rounded once."""
    x = converted(x, call.dtype)
    return x.astype(np.float32) if x.dtype.itemsize < 4 else x
