"""Element types between PyTorch, JAX and numpy, and tensors as numpy arrays that show their memory."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import torch

from hloforge.dialect.errors import UnsupportedError

_DTYPES: dict[torch.dtype, Any] = {
    torch.bool: np.bool_,
    torch.uint8: np.uint8,
    torch.uint16: np.uint16,
    torch.uint32: np.uint32,
    torch.uint64: np.uint64,
    torch.int8: np.int8,
    torch.int16: np.int16,
    torch.int32: np.int32,
    torch.int64: np.int64,
    torch.float16: np.float16,
    torch.bfloat16: ml_dtypes.bfloat16,
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.complex64: np.complex64,
    torch.complex128: np.complex128,
    torch.float8_e4m3fn: ml_dtypes.float8_e4m3fn,
    torch.float8_e4m3fnuz: ml_dtypes.float8_e4m3fnuz,
    torch.float8_e5m2: ml_dtypes.float8_e5m2,
    torch.float8_e5m2fnuz: ml_dtypes.float8_e5m2fnuz,
}
_TORCH = {np.dtype(ours): theirs for theirs, ours in _DTYPES.items()}
# Types that PyTorch and numpy do not exchange, by the integers of their widths.
_CARRIERS = {1: (torch.uint8, np.uint8), 2: (torch.int16, np.int16)}
_FOREIGN = frozenset(
    theirs for theirs, ours in _DTYPES.items() if np.dtype(ours).kind == "V" or ours is ml_dtypes.bfloat16
)


def dtype_of(dtype: torch.dtype) -> np.dtype[Any]:
    """The element type as numpy and JAX call it. Raises UnsupportedError for quantized types and complex32."""
    try:
        found: np.dtype[Any] = np.dtype(_DTYPES[dtype])
    except KeyError:
        raise UnsupportedError(f"tensors of {dtype} are not imported", hint="convert them before the call") from None
    return found


def torch_dtype_of(dtype: Any) -> torch.dtype:
    """The element type as PyTorch calls it."""
    return _TORCH[np.dtype(dtype)]


def to_numpy(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """A tensor of the CPU as a numpy array: its memory, where it is dense and plain, else a copy."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.dtype in _FOREIGN:
        carrier, _ = _CARRIERS[tensor.element_size()]
        bits: np.ndarray[Any, Any] = tensor.contiguous().view(carrier).numpy()
        return bits.view(_DTYPES[tensor.dtype])
    array: np.ndarray[Any, Any] = tensor.numpy()
    return array


def to_torch(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """A tensor that shows the memory of an array which nobody else writes."""
    dtype = torch_dtype_of(array.dtype)
    if dtype in _FOREIGN:
        _, carrier = _CARRIERS[array.dtype.itemsize]
        return torch.from_numpy(array.view(carrier)).view(dtype)
    return torch.from_numpy(array)


def constant(value: Any, dtype: Any = None) -> Any:
    """A number or an array as an array of JAX, of this element type."""
    return jnp.asarray(value, dtype=dtype)
