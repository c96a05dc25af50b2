"""Fourier transforms and resampling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from hloforge.torch.registry import Call, lowers

_NONE, _ROOT, _ALL = 0, 1, 2


def _scaled(x: Any, count: int, mode: int) -> Any:
    if mode == _NONE:
        return x
    return x * jnp.asarray(1 / (np.sqrt(count) if mode == _ROOT else count), jnp.real(x).dtype)


def _count(x: Any, dims: Sequence[int]) -> int:
    return int(np.prod([x.shape[d] for d in dims]))


@lowers("aten._fft_c2c")
def fft_c2c(call: Call, x: Any, dims: Sequence[int], mode: int, forward: bool) -> Any:
    if not dims:
        return x
    count = _count(x, dims)
    result = _over(jnp.fft.fft if forward else jnp.fft.ifft, x, dims)
    return _scaled(result if forward else result * count, count, mode)


def _over(transform: Callable[..., Any], x: Any, dims: Sequence[int]) -> Any:
    for axis in dims:
        x = transform(x, axis=axis)
    return x


@lowers("prims.fft_c2c")
def prims_fft_c2c(call: Call, x: Any, *, dim: Sequence[int], forward: bool) -> Any:
    return fft_c2c(call, x, dim, _NONE, forward)


@lowers("aten._fft_r2c")
def fft_r2c(call: Call, x: Any, dims: Sequence[int], mode: int, onesided: bool) -> Any:
    count = _count(x, dims)
    last = dims[-1]
    first = jnp.fft.rfft(x, axis=last) if onesided else jnp.fft.fft(x, axis=last)
    return _scaled(_over(jnp.fft.fft, first, dims[:-1]), count, mode)


@lowers("prims.fft_r2c")
def prims_fft_r2c(call: Call, x: Any, *, dim: Sequence[int], onesided: bool) -> Any:
    return fft_r2c(call, x, dim, _NONE, onesided)


@lowers("aten._fft_c2r")
def fft_c2r(call: Call, x: Any, dims: Sequence[int], mode: int, last_size: int) -> Any:
    last = dims[-1]
    inner = _over(jnp.fft.ifft, x, dims[:-1])
    result = jnp.fft.irfft(inner, last_size, axis=last)
    count = _count(x, dims[:-1]) * last_size
    return _scaled(result * count, count, mode)


@lowers("prims.fft_c2r")
def prims_fft_c2r(call: Call, x: Any, *, dim: Sequence[int], last_dim_size: int) -> Any:
    return fft_c2r(call, x, dim, _NONE, last_dim_size)


# --- Resampling with a filter as wide as the step: a product with a matrix an axis.


@lowers("aten._upsample_bilinear2d_aa", "aten._upsample_bicubic2d_aa")
def upsample_aa(call: Call, x: Any, sizes: Any, corners: bool, *scales: Any) -> Any:
    return _resampled(call, x, x.shape, call.shape, corners, scales)


@lowers("aten._upsample_bilinear2d_aa_backward", "aten._upsample_bicubic2d_aa_backward")
def upsample_aa_backward(call: Call, x: Any, sizes: Any, before: Any, corners: bool, *scales: Any) -> Any:
    return _resampled(call, x, before, x.shape, corners, scales, backward=True)


def _resampled(
    call: Call, x: Any, before: Any, after: Any, corners: bool, scales: Any, *, backward: bool = False
) -> Any:
    """The last two axes from the sizes before to those after, or a gradient back."""
    cubic = "bicubic" in str(call.target)
    given = scales[0] if scales and isinstance(scales[0], list | tuple) else scales
    for axis in (-1, -2):
        scale = given[axis] if given and len(given) == 2 else None
        matrix = _antialiased(before[axis], after[axis], corners, scale, cubic)
        columns = jnp.moveaxis(x, axis, -1)
        if x.dtype == np.uint8:
            made = _of_bytes(columns, matrix.T)
        else:
            made = columns @ jnp.asarray(matrix if backward else matrix.T, x.dtype)
        x = jnp.moveaxis(made, -1, axis)
    return x


def _of_bytes(x: Any, weights: np.ndarray[Any, Any]) -> Any:
    """Bytes by weights of 16 bits with as many digits as fit, rounded for each axis, as Pillow does."""
    digits = max(n for n in range(1, 23) if int(0.5 + weights.max() * 2**n) < 2**15)
    fixed = jnp.asarray(np.trunc(weights * 2**digits + np.where(weights < 0, -0.5, 0.5)), np.int32)
    total = jnp.matmul(x.astype(np.int32), fixed) + (1 << (digits - 1))
    return jnp.clip(total >> digits, 0, 255).astype(np.uint8)


def _antialiased(size: int, count: int, corners: bool, scale: float | None, cubic: bool) -> np.ndarray[Any, Any]:
    """The weights of the elements in each result: [count, size]."""
    if corners:
        step = (size - 1) / (count - 1) if count > 1 else 0.0
    else:
        step = 1 / scale if scale else size / count
    support = (2.0 if cubic else 1.0) * max(step, 1.0)
    weights = np.zeros((count, size))
    for row in range(count):
        center = step * (row + 0.5)
        low = max(int(center - support + 0.5), 0)
        high = min(int(center + support + 0.5), size)
        distance = np.abs(np.arange(low, high) - center + 0.5) / max(step, 1.0)
        row_weights = _cubic(distance) if cubic else np.maximum(1 - distance, 0)
        total = row_weights.sum()
        weights[row, low:high] = row_weights / total if total else row_weights
    return weights


def _cubic(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Keys' kernel with a = -1/2, as Pillow has it."""
    a = -0.5
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))


@lowers("aten.fft_fftfreq", "aten.fft_rfftfreq")
def fftfreq(call: Call, count: int, spacing: float = 1.0, **_: Any) -> Any:
    frequencies = jnp.fft.rfftfreq if "rfft" in str(call.target) else jnp.fft.fftfreq
    return frequencies(count, spacing, dtype=call.dtype)
