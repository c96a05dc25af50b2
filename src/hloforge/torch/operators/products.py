"""Matrix products and convolutions.

An operator of PyTorch rounds 16-bit floats once, at its end: products are f32, and so is what the operator adds to them
or scales them by. The conversion at its end is one of the program's own, which stays, so that each reader takes the
rounded numbers, as in eager mode and between Inductor's kernels; a product of bf16 alone is one that XLA's rule leaves
unrounded for readers in f32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hloforge.torch.registry import Call, lowers, number, wider


@lowers("aten.mm", "aten.bmm", "aten.matmul", "aten.dot", "aten.mv")
def product(call: Call, x: Any, y: Any) -> Any:
    return _product(x, y)


@lowers("aten.linear")
def linear(call: Call, x: Any, weight: Any, bias: Any = None) -> Any:
    """One product of matrices, whatever the dimensions of x: weight: [out, in]."""
    rows = x.reshape(-1, x.shape[-1]) if x.ndim > 2 else x
    found = _product(rows, weight.T)
    found = found if bias is None else found + bias.astype(wider(bias.dtype))
    return found.reshape(*x.shape[:-1], *found.shape[1:]) if x.ndim > 2 else found


@lowers("aten._int_mm")
def product_of_bytes(call: Call, x: Any, y: Any) -> Any:
    """Of s8 (and u8) matrices, in s32."""
    return jnp.matmul(x, y, preferred_element_type=jnp.int32)


@lowers("aten.vdot")
def vdot(call: Call, x: Any, y: Any) -> Any:
    return jnp.vdot(x, y)


@lowers("aten.addmm", "aten.baddbmm", "aten.addmv")
def addmm(call: Call, bias: Any, x: Any, y: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return _added(bias, _product(x, y), beta, alpha)


def _product(x: Any, y: Any) -> Any:
    """Of matrices, with the sums not rounded yet."""
    return jnp.matmul(x, y, preferred_element_type=_sums(x))


def _sums(x: Any) -> Any:
    """JAX's ``preferred_element_type`` of a product of such arrays."""
    wide = wider(x.dtype)
    return None if wide == x.dtype else wide


def _added(bias: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """The sum of both, each scaled, in the product's type."""
    scaled = _scaled(product, alpha)
    return scaled + _scaled(bias.astype(wider(bias.dtype)), beta) if beta else scaled


def _scaled(x: Any, factor: Any) -> Any:
    return x if factor == 1 else x * number(factor, x.dtype)


@lowers("aten.convolution", "aten._convolution")
def convolution(
    call: Call,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    *_: Any,
) -> Any:
    """x: [batch, channels, …] or without batch; weight: [out, in / groups, …], transposed [in, out / groups, …]."""
    result = _convolved(x, weight, stride, padding, dilation, transposed, output_padding, groups, _sums(x))
    return result if bias is None else result + bias.reshape(-1, *[1] * (weight.ndim - 2)).astype(wider(bias.dtype))


def _convolved(
    x: Any,
    weight: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    sums: Any = None,
) -> Any:
    """A convolution without bias; ``sums`` is its element type, by default the operands'."""
    rank = weight.ndim - 2
    stride, padding, dilation, extra = (_each(given, rank) for given in (stride, padding, dilation, output_padding))
    single = x.ndim == rank + 1
    if single:
        x = x[None]
    if transposed:
        result = _transposed(x, weight, stride, padding, dilation, extra, groups, sums)
    else:
        result = jax.lax.conv_general_dilated(
            x,
            weight,
            stride,
            [(p, p) for p in padding],
            rhs_dilation=dilation,
            feature_group_count=groups,
            dimension_numbers=_numbers(rank),
            preferred_element_type=sums,
        )
    return result[0] if single else result


def _each(given: Sequence[int], rank: int) -> list[int]:
    return list(given) * rank if len(given) == 1 else list(given)


def _numbers(rank: int) -> tuple[str, str, str]:
    letters = "DHWXYZ"[3 - rank : 3] if rank <= 3 else "DHWXYZ"[:rank]
    return "NC" + letters, "OI" + letters, "NC" + letters


def _transposed(
    x: Any,
    weight: Any,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    extra: list[int],
    groups: int,
    sums: Any,
) -> Any:
    """The gradient of a convolution with regard to its input: a convolution of the widened input."""
    rank = weight.ndim - 2
    sizes = weight.shape[2:]
    # [in, out / groups, …] → [out, in / groups, …], each kernel turned about.
    kernel = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
    kernel = jnp.flip(jnp.swapaxes(kernel, 1, 2), tuple(range(3, 3 + rank)))
    kernel = kernel.reshape(-1, *kernel.shape[2:])
    around = [d * (k - 1) - p for d, k, p in zip(dilation, sizes, padding, strict=True)]
    return jax.lax.conv_general_dilated(
        x,
        kernel,
        [1] * rank,
        [(a, a + e) for a, e in zip(around, extra, strict=True)],
        lhs_dilation=stride,
        rhs_dilation=dilation,
        feature_group_count=groups,
        dimension_numbers=_numbers(rank),
        preferred_element_type=sums,
    )


@lowers("aten.convolution_backward")
def convolution_backward(
    call: Call,
    gradient: Any,
    x: Any,
    weight: Any,
    bias_sizes: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    wanted: Sequence[bool],
) -> Any:
    """The gradients of a convolution with regard to input, weight and bias, those that are wanted."""

    def forward(x: Any, weight: Any) -> Any:
        return _convolved(x, weight, stride, padding, dilation, transposed, output_padding, groups)

    over_x, over_weight = jax.vjp(forward, x, weight)[1](gradient)
    around = tuple(axis for axis in range(gradient.ndim) if axis != gradient.ndim - weight.ndim + 1)
    return (
        over_x if wanted[0] else None,
        over_weight if wanted[1] else None,
        jnp.sum(gradient, around) if wanted[2] else None,
    )


@lowers("aten._cdist_backward")
def cdist_backward(call: Call, gradient: Any, x: Any, y: Any, p: float, distances: Any) -> Any:
    """The gradient of x."""
    difference = x[..., :, None, :] - y[..., None, :, :]
    return jnp.sum(_of_distance(difference, distances[..., None], p) * gradient[..., None], -2)


@lowers("aten._pdist_backward")
def pdist_backward(call: Call, gradient: Any, x: Any, p: float, distances: Any) -> Any:
    first, second = np.triu_indices(x.shape[0], 1)
    shares = _of_distance(x[first] - x[second], distances[:, None], p) * gradient[:, None]
    return jnp.zeros_like(x).at[first].add(shares).at[second].add(-shares)


def _of_distance(difference: Any, distance: Any, p: float) -> Any:
    """The gradient of distances of order p; 0 between equal rows, as PyTorch has it."""
    size, sign = jnp.abs(difference), jnp.sign(difference)
    if p == 0:
        return jnp.zeros_like(difference)
    if p == 1:
        return sign
    if np.isinf(p):
        return jnp.where(size == distance, sign, 0)
    powers = jnp.where(size > 0, size, 1) ** (p - 1) / jnp.where(distance > 0, distance, 1) ** (p - 1)
    return jnp.where((distance > 0) & (size > 0), sign * powers, 0)


@lowers("aten._cdist_forward")
def cdist(call: Call, x: Any, y: Any, p: float, mode: Any) -> Any:
    difference = jnp.abs(x[..., :, None, :] - y[..., None, :, :])
    if p == 0:
        return jnp.sum((difference != 0).astype(x.dtype), -1)
    if np.isinf(p):
        return jnp.max(difference, -1, initial=0)
    if p == 2:
        return jnp.sqrt(jnp.sum(difference * difference, -1))
    return jnp.sum(difference**p, -1) ** (1 / p)


@lowers("aten.addbmm")
def addbmm(call: Call, bias: Any, x: Any, y: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    summed = jnp.einsum("bij,bjk->ik", x, y, preferred_element_type=_sums(x))
    return _added(bias, summed, beta, alpha)


@lowers("aten.addr")
def addr(call: Call, bias: Any, x: Any, y: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    outer = jnp.outer(*(v.astype(wider(call.dtype)) for v in (x, y)))
    if call.dtype == np.bool_:
        return (bias.astype(np.bool_) & bool(beta)) | (outer & bool(alpha))
    return _added(bias.astype(call.dtype), outer, beta, alpha)


@lowers("aten._trilinear")
def trilinear(
    call: Call,
    x: Any,
    y: Any,
    z: Any,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Any:
    for dims, which in ((expand1, 0), (expand2, 1), (expand3, 2)):
        for dim in dims:
            x, y, z = (jnp.expand_dims(v, dim) if n == which else v for n, v in enumerate((x, y, z)))
    return jnp.sum(x * y * z, tuple(sumdim))


@lowers("aten._pdist_forward")
def pdist(call: Call, x: Any, p: float = 2) -> Any:
    rows, columns = np.triu_indices(x.shape[0], 1)
    return cdist(call, x[rows][:, None], x[columns][:, None], p, None)[:, 0, 0]
