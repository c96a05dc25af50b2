"""Quantized models as PT2E and quantization-aware training write them: integers and scales in plain tensors.

The types of a quantized tensor (``torch.qint8``) are another thing, and not imported.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import torch

from hloforge.torch.registry import Call, lowers
from hloforge.torch.types import dtype_of

_NAMESPACE = "quantized_decomposed"


def _along(x: Any, dims: int, axis: int) -> Any:
    """A number for each position of an axis, so that it meets an array of so many dimensions."""
    shape = [1] * dims
    shape[axis] = -1
    return jnp.reshape(x, shape)


def _wide(x: Any) -> Any:
    """16-bit floats are quantized in f32."""
    return x.astype(jnp.float32) if x.dtype in (jnp.float16, jnp.bfloat16) else x


def _single(x: Any, dtype: Any) -> Any:
    """A scale or zero point of a whole tensor, a number or a tensor of one element."""
    return jnp.reshape(jnp.asarray(x), ()).astype(dtype)


def _integers(x: Any, least: Any, greatest: Any, dtype: Any) -> Any:
    return jnp.clip(x, least, greatest).astype(dtype_of(dtype))


@lowers(f"{_NAMESPACE}.quantize_per_tensor")
def quantize_per_tensor(
    call: Call, x: Any, scale: Any, zero: Any, least: Any, greatest: Any, dtype: Any, **_: Any
) -> Any:
    """Scales are f64, and so is the reciprocal that f32 is multiplied by."""
    x = _wide(x)
    factor = (1.0 / _single(scale, jnp.float64)).astype(x.dtype)
    return _integers(jnp.round(x * factor) + _single(zero, x.dtype), least, greatest, dtype)


@lowers(f"{_NAMESPACE}.dequantize_per_tensor")
def dequantize_per_tensor(
    call: Call, x: Any, scale: Any, zero: Any, least: Any, greatest: Any, dtype: Any, **_: Any
) -> Any:
    return (x.astype(call.dtype) - _single(zero, call.dtype)) * _single(scale, call.dtype)


@lowers(f"{_NAMESPACE}.quantize_per_channel")
def quantize_per_channel(
    call: Call, x: Any, scales: Any, zeros: Any, axis: int, least: int, greatest: int, dtype: Any
) -> Any:
    x = _wide(x)
    found = jnp.round(x * _along(1.0 / scales, x.ndim, axis)) + _along(zeros, x.ndim, axis)
    return _integers(found, least, greatest, dtype)


@lowers(f"{_NAMESPACE}.dequantize_per_channel")
def dequantize_per_channel(
    call: Call, x: Any, scales: Any, zeros: Any, axis: int, least: int, greatest: int, dtype: Any, **_: Any
) -> Any:
    if zeros is not None:
        x = x - _along(zeros, x.ndim, axis)
    return x * _along(scales, x.ndim, axis)


@lowers(f"{_NAMESPACE}.quantize_per_token")
def quantize_per_token(call: Call, x: Any, scales: Any, zeros: Any, least: int, greatest: int, dtype: Any) -> Any:
    return _integers(jnp.round(x * (1.0 / scales) + zeros), least, greatest, dtype)


@lowers(f"{_NAMESPACE}.dequantize_per_token")
def dequantize_per_token(
    call: Call, x: Any, scales: Any, zeros: Any, least: int, greatest: int, dtype: Any, wanted: Any = None
) -> Any:
    return (x - zeros) * scales


@lowers(f"{_NAMESPACE}.choose_qparams", f"{_NAMESPACE}.choose_qparams_symmetric")
def choose_qparams(call: Call, x: Any, least: int, greatest: int, epsilon: float, dtype: Any) -> Any:
    """Scale and zero point for the range of a tensor, which holds 0."""
    x = _wide(x)
    low, high = jnp.minimum(jnp.min(x), 0), jnp.maximum(jnp.max(x), 0)
    if "symmetric" in str(call.target):
        scale = jnp.maximum(jnp.maximum(-low, high) / ((greatest - least) / 2), epsilon)
        return scale.reshape(1), jnp.full(1, 128 if dtype == torch.uint8 else 0)
    scale = jnp.maximum((high - low) / float(greatest - least), epsilon)
    zero = jnp.clip(least - jnp.round(low / scale), least, greatest)
    return scale.reshape(1), zero.reshape(1)


@lowers(f"{_NAMESPACE}.choose_qparams_per_token_asymmetric", f"{_NAMESPACE}._choose_qparams_per_token_asymmetric_impl")
def choose_qparams_per_token(call: Call, x: Any, dtype: Any) -> Any:
    low = jnp.minimum(jnp.min(x, -1, keepdims=True), 0)
    high = jnp.maximum(jnp.max(x, -1, keepdims=True), 0)
    scale = jnp.maximum((high - low) / 255.0, np.finfo(np.float32).eps)
    down, up = low / scale, high / scale
    zero = jnp.where((-128 + down) + (127 + up) > 0, -128 - down, 127 - up)
    return scale, jnp.round(jnp.clip(zero, -128, 127))


@lowers("aten.fake_quantize_per_tensor_affine_cachemask")
def fake_quantize(call: Call, x: Any, scale: Any, zero: Any, least: int, greatest: int) -> Any:
    """What is left of numbers by quantization, and which of them are within its range."""
    factor, shift = _single(scale, jnp.float32), _single(zero, jnp.float32)
    return _kept(x, factor, shift, least, greatest)


@lowers("aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams")
def fake_quantize_by_tensors(call: Call, x: Any, scale: Any, zero: Any, enabled: Any, least: int, greatest: int) -> Any:
    found, mask = _kept(x, _single(scale, jnp.float32), _single(zero, jnp.float32), least, greatest)
    on = jnp.reshape(enabled, ()) != 0
    return jnp.where(on, found, x), jnp.logical_or(mask, ~on)


@lowers("aten.fake_quantize_per_channel_affine_cachemask")
def fake_quantize_per_channel(call: Call, x: Any, scales: Any, zeros: Any, axis: int, least: int, greatest: int) -> Any:
    factor, shift = _along(scales, x.ndim, axis), _along(zeros, x.ndim, axis)
    return _kept(x, factor, shift.astype(jnp.float32), least, greatest)


def _kept(x: Any, scale: Any, zero: Any, least: int, greatest: int) -> tuple[Any, Any]:
    wide = _wide(x)
    stored = zero + jnp.round(wide * (1 / scale).astype(wide.dtype))
    inside = jnp.logical_and(stored >= least, stored <= greatest)
    return ((jnp.clip(stored, least, greatest) - zero) * scale).astype(x.dtype), inside
