"""Products with weights of few bits, as torchao calls them: bytes, packed halves of bytes, 8-bit floats.

Weights of 4 bits have the order in which PyTorch's processor kernels read them. It depends on the vectors of the
machine that packed them, and this one's is taken. Source: PyTorch, "aten/src/ATen/native/cpu/int4mm_kernel.cpp".
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import torch

from hloforge.torch.registry import Call, lowers

# Columns of a whole block, by what PyTorch calls the processor; others have no whole blocks.
_BLOCKS = {"AVX512": 64, "AVX2": 32}
_MIDDLE = 8.0


@lowers("aten._weight_int8pack_mm")
def product_of_scaled_bytes(call: Call, x: Any, weights: Any, scales: Any) -> Any:
    """Weights ``[columns, terms]`` with a scale a column, which multiplies sums."""
    sums = jnp.matmul(_wide(x), weights.T.astype(jnp.float32))
    return (sums * _wide(scales)).astype(call.dtype)


@lowers("aten._convert_weight_to_int4pack_for_cpu")
def pack_halves(call: Call, numbers: Any, _: Any) -> Any:
    """``[columns, terms]`` of 0 to 15 as bytes, two columns' numbers of a term in each."""
    columns, terms = numbers.shape
    packed = []
    for begin, end, is_whole in _parts(columns):
        block = _size(columns) if is_whole else end - begin
        halves = numbers[begin:end].astype(jnp.uint8)
        apart = (-1, 2, block // 2, terms) if is_whole else (-1, block // 2, 2, terms)
        low, high = jnp.moveaxis(halves.reshape(apart), 1 if is_whole else 2, 0)
        packed.append(jnp.swapaxes(low | (high << np.uint8(4)), 1, 2).reshape(end - begin, terms // 2))
    return jnp.concatenate(packed)


@lowers("aten._weight_int4pack_mm_for_cpu")
def product_of_halves(call: Call, x: Any, packed: Any, group: int, scales_and_zeros: Any) -> Any:
    """Weights are ``(number - 8) * scale + zero``, with ``[group, column, 2]`` scales and zeros of groups of terms."""
    columns, terms = packed.shape[0], 2 * packed.shape[1]
    scales, zeros = (_wide(scales_and_zeros[..., part])[:, None] for part in range(2))
    found = []
    for begin, end, is_whole in _parts(columns):
        block = _size(columns) if is_whole else end - begin
        stored = packed[begin:end].reshape(-1, terms, 1, block // 2)
        halves = ((stored >> np.array([[0], [4]], np.uint8)) & np.uint8(15)).astype(jnp.float32)
        if not is_whole:
            halves = jnp.swapaxes(halves, 2, 3)
        numbers = jnp.moveaxis(halves.reshape(-1, terms, block), 0, 1).reshape(terms // group, group, end - begin)
        weights = (numbers - _MIDDLE) * scales[..., begin:end] + zeros[..., begin:end]
        found.append(jnp.matmul(_wide(x), weights.reshape(terms, end - begin)))
    return jnp.concatenate(found, 1).astype(call.dtype)


@lowers("aten._scaled_mm")
def scaled_product(
    call: Call, x: Any, y: Any, scale: Any, other: Any, bias: Any = None, scale_result: Any = None, *_: Any, **__: Any
) -> Any:
    """Matrices of 8-bit floats, each with a scale or one for each row (``[rows, 1]``) and column (``[1, columns]``)."""
    sums = jnp.matmul(_wide(x), _wide(y)) * _of_matrix(scale) * _of_matrix(other)
    if bias is not None:
        sums = sums + _wide(bias)
    if scale_result is not None and call.dtype.itemsize == 1:
        sums = sums * _of_matrix(scale_result)
    return sums.astype(call.dtype)


def _of_matrix(scale: Any) -> Any:
    return scale.reshape(()) if scale.size == 1 else scale


def _wide(x: Any) -> Any:
    return x.astype(jnp.float32)


def _size(columns: int) -> int:
    """Columns of a whole block. The first half of them is in the low halves of bytes; elsewhere every second one is."""
    return _BLOCKS.get(torch.backends.cpu.get_cpu_capability(), columns + 1)


def _parts(columns: int) -> list[tuple[int, int, bool]]:
    """The columns of whole blocks and those after them: first, last, and whether blocks are whole."""
    whole = columns - columns % _size(columns)
    return [part for part in ((0, whole, True), (whole, columns, False)) if part[0] < part[1]]
