"""Reductions, extremes and sorts: padding is replaced by what changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from hloforge.dialect.errors import UnsupportedError
from hloforge.torch.bounded.registry import OpenCall, bounded
from hloforge.torch.bounded.sizes import fit
from hloforge.torch.interpreter import converted
from hloforge.torch.operators.indexing import histogram_of
from hloforge.torch.operators.statistics import median_of, mode_of
from hloforge.torch.registry import number


def least(dtype: Any) -> Any:
    """The least number of an element type, minus infinity among floats."""
    if dtype == np.bool_:
        return False
    return -np.inf if jnp.issubdtype(dtype, jnp.floating) else int(jnp.iinfo(dtype).min)


def most(dtype: Any) -> Any:
    """The greatest number of an element type, infinity among floats."""
    if dtype == np.bool_:
        return True
    return np.inf if jnp.issubdtype(dtype, jnp.floating) else int(jnp.iinfo(dtype).max)


def masked(call: OpenCall, x: Any, dims: list[int], value: Any) -> Any:
    """The first argument with a value in the place of the padding of these dimensions."""
    dims = [dim for dim in dims if dim in call.open(0)]
    return jnp.where(call.inside(0, x, dims), x, number(value, x.dtype)) if dims else x


def _over(x: Any, dims: Any) -> list[int]:
    if dims is None or dims == [] or dims == () or x.ndim == 0:
        return list(range(x.ndim))
    return [d % x.ndim for d in ([dims] if isinstance(dims, int) else dims)]


def _reduction(neutral: Callable[[Any], Any], *names: str) -> None:
    def rule(call: OpenCall, x: Any, dims: Any = None, *arguments: Any, **named: Any) -> Any:
        x = masked(call, x, _over(x, dims), neutral(x.dtype))
        return call.plain(x, *([] if dims is None and not arguments else [dims]), *arguments, **named)

    bounded(*names)(rule)


_reduction(
    lambda _: 0,
    "aten.sum",
    "prims.sum",
    "aten.any",
    "aten._is_any_true",
    "aten.nansum",
    "aten.count_nonzero",
    "prims.xor_sum",
)
_reduction(lambda _: 1, "aten.prod", "prims.prod", "aten.all", "aten._is_all_true")
_reduction(least, "aten.amax", "prims.amax", "aten.max.default", "aten.max.dim", "aten.logsumexp")
_reduction(most, "aten.amin", "prims.amin", "aten.min.default", "aten.min.dim")
_reduction(least, "aten._softmax", "aten._safe_softmax", "aten._log_softmax")


@bounded("aten.argmax", "aten.argmin")
def place_of_extreme(call: OpenCall, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Without a dimension, the place counts the elements of the real array."""
    neutral = least if "argmax" in str(call.target) else most
    found = call.plain(masked(call, x, _over(x, dim), neutral(x.dtype)), dim, keepdim)
    return real_place(call, found, x.shape, range(x.ndim)) if dim is None else found


def real_place(call: OpenCall, place: Any, shape: Any, dims: Any) -> Any:
    """A place among the elements of some dimensions of the first argument, counted without padding."""
    found, stride = jnp.zeros_like(place), jnp.ones((), place.dtype)
    for dim in reversed(dims):
        found += place % shape[dim] * stride
        place, stride = place // shape[dim], stride * jnp.asarray(call.count(0, dim)).astype(place.dtype)
    return found


def _number_of(call: OpenCall, x: Any, dims: list[int]) -> Any:
    """How many elements are reduced to one."""
    count: Any = 1
    for dim in dims:
        count = count * (call.count(0, dim) if dim in call.open(0) else x.shape[dim])
    return count


@bounded("aten.mean")
def mean(call: OpenCall, x: Any, dims: Any = None, keepdim: bool = False, **_: Any) -> Any:
    over = _over(x, dims)
    x = masked(call, converted(x, call.dtype), over, 0)
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    total = jnp.sum(wide, tuple(over), keepdims=keepdim)
    return total / jnp.asarray(_number_of(call, x, over)).astype(total.dtype)


@bounded("aten.var.correction", "prims.var", "aten.var_mean.correction")
def var(call: OpenCall, x: Any, dims: Any = None, correction: Any = 1, keepdim: bool = False, **_: Any) -> Any:
    over = _over(x, dims)
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    count = jnp.asarray(_number_of(call, x, over)).astype(jnp.real(wide).dtype)
    average = jnp.sum(masked(call, wide, over, 0), tuple(over), keepdims=True) / count
    squares = masked(call, jnp.abs(wide - average) ** 2, over, 0)
    divisor = jnp.maximum(count - (1 if correction is None else correction), 0)
    found = jnp.sum(squares, tuple(over), keepdims=keepdim) / divisor
    if not isinstance(call.result, list | tuple):
        return found
    return found, average if keepdim else average.reshape(found.shape)


@bounded("aten.linalg_vector_norm")
def vector_norm(call: OpenCall, x: Any, order: Any = 2, dims: Any = None, *arguments: Any, **named: Any) -> Any:
    over = _over(x, dims)
    if order < 0 and set(over) & set(call.open(0)):
        raise UnsupportedError(f"a norm of order {order} over a size that depends on elements")
    return call.plain(masked(call, x, over, 0), order, dims, *arguments, **named)


def last(call: OpenCall, x: Any, dim: int, descending: bool) -> Any:
    """The first argument with padding that a stable sort puts last."""
    if x.ndim == 0:
        return x
    value = least(x.dtype) if descending else most(x.dtype)
    if not descending and jnp.issubdtype(x.dtype, jnp.floating):
        value = np.nan
    return masked(call, x, [dim % x.ndim], value)


@bounded("aten.sort")
def sort(call: OpenCall, x: Any, *arguments: Any, **named: Any) -> Any:
    is_stable = str(call.target).endswith("stable")
    dim = named.pop("dim", -1)
    descending = named.pop("descending", False)
    rest = list(arguments[1:] if is_stable and arguments and not isinstance(arguments[0], int) else arguments)
    dim, descending = [*rest, *[dim, descending][len(rest) :]]
    return call.plain(last(call, x, dim, descending), dim, descending)


@bounded("aten.argsort")
def argsort(call: OpenCall, x: Any, dim: int = -1, descending: bool = False, **_: Any) -> Any:
    return call.plain(last(call, x, dim, descending), dim, descending)


@bounded("aten.topk")
def topk(call: OpenCall, x: Any, count: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """As many as there may be: those from the real number on are padding."""
    dim %= x.ndim
    extent = call.wanted[0].shape[dim]
    x = last(call, x, dim, largest)
    if extent > x.shape[dim]:
        x = fit(x, [extent if d == dim else size for d, size in enumerate(x.shape)])
    values, places = call.plain(x, extent, dim, largest, sorted)
    return values, places


@bounded("aten.median.dim", "aten.nanmedian.dim")
def median_along(call: OpenCall, x: Any, dim: int = -1, keepdim: bool = False) -> Any:
    if dim % max(x.ndim, 1) not in call.open(0):
        return call.plain(x, dim, keepdim)
    x = last(call, x, dim, descending=False)
    return median_of(x, dim, keepdim, "nanmedian" in str(call.target), call.count(0, dim % x.ndim))


@bounded("aten.median.default", "aten.nanmedian.default")
def median(call: OpenCall, x: Any) -> Any:
    over = list(range(x.ndim))
    value = np.nan if jnp.issubdtype(x.dtype, jnp.floating) else most(x.dtype)
    flat = masked(call, x, over, value).reshape(-1)
    if not flat.size:
        return call.plain(flat)
    count = _number_of(call, x, over)
    found = median_of(flat, 0, False, "nanmedian" in str(call.target), count)[0]
    return jnp.where(count > 0, found, jnp.asarray(np.nan if flat.dtype.kind == "f" else 0, found.dtype))


@bounded("aten.mode")
def mode(call: OpenCall, x: Any, dim: int = -1, keepdim: bool = False) -> Any:
    if dim % max(x.ndim, 1) not in call.open(0):
        return call.plain(x, dim, keepdim)
    return mode_of(last(call, x, dim, descending=False), dim, keepdim, call.count(0, dim % x.ndim))


@bounded("aten.kthvalue")
def kth_value(call: OpenCall, x: Any, k: Any, dim: int = -1, keepdim: bool = False) -> Any:
    return call.plain(last(call, x, dim, descending=False), k, dim, keepdim)


@bounded("aten.histc")
def histogram(call: OpenCall, x: Any, bins: int = 100, low: Any = 0, high: Any = 0) -> Any:
    counted = call.inside(0, x)
    if low == high:
        low = jnp.min(jnp.where(counted, x, number(most(x.dtype), x.dtype)))
        high = jnp.max(jnp.where(counted, x, number(least(x.dtype), x.dtype)))
    return histogram_of(x, bins, low, high, counted)


@bounded("aten.mm", "aten.bmm", "aten.matmul", "aten.dot", "aten.vdot", "aten.mv")
def product(call: OpenCall, x: Any, y: Any) -> Any:
    return call.plain(*_factors(call, x, y, 0, 1))


@bounded("aten.addmm", "aten.baddbmm", "aten.addmv")
def addmm(call: OpenCall, bias: Any, x: Any, y: Any, **named: Any) -> Any:
    return call.plain(call.fitted(bias), *_factors(call, x, y, 1, 2), **named)


@bounded("aten.linear")
def linear(call: OpenCall, x: Any, weight: Any, bias: Any = None) -> Any:
    if x.ndim - 1 in call.open(0) or call.open(1):
        raise UnsupportedError("the features of a linear layer have a size that depends on elements")
    return call.plain(x, weight, bias)


def _factors(call: OpenCall, x: Any, y: Any, first: int, second: int) -> tuple[Any, Any]:
    """Factors whose padding along the summed dimension is 0 in both, and of one size there."""
    at, to = x.ndim - 1, max(y.ndim - 2, 0)
    if at in call.open(first) or to in call.open(second):
        zero = np.zeros((), x.dtype)
        x = jnp.where(call.inside(first, x, [at]), x, zero)
        y = jnp.where(call.inside(second, y, [to]), y, zero)
        extent = max(x.shape[at], y.shape[to])
        x = fit(x, [extent if d == at else size for d, size in enumerate(x.shape)])
        y = fit(y, [extent if d == to else size for d, size in enumerate(y.shape)])
    batch = call.shape[: max(len(call.shape) - 2, 0)] if x.ndim > 2 and y.ndim > 2 else ()
    if not batch:
        return x, y
    fitted = []
    for each in (x, y):
        rows = zip(each.shape[:-2], batch[-(each.ndim - 2) :], strict=True)
        fitted.append(fit(each, [*(1 if size == 1 else extent for size, extent in rows), *each.shape[-2:]]))
    return fitted[0], fitted[1]
