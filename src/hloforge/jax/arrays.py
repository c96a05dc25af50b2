"""Arrays between JAX and sessions: arguments as numpy arrays, results as ``jax.Array``, large ones without copies."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from hloforge.jax import platform

NumpyArray = np.ndarray[Any, Any]

# Bytes from which on arrays are worth not to be copied.
LARGE = 16384


def leaf_to_numpy(leaf: Any, dtype: np.dtype[Any]) -> NumpyArray:
    """A leaf of an argument as a numpy array of the type that the program declares.

    Raises:
        OverflowError: a Python integer that the type cannot hold.
        TypeError: no array.
    """
    kind = type(leaf)
    if kind is platform.Array:
        return np.asarray(leaf)
    if kind is platform.KeyArray:
        return np.asarray(platform.key_data(leaf))
    if getattr(leaf, "dtype", None) == jax.dtypes.float0:
        return np.zeros(leaf.shape, np.bool_)
    if hasattr(leaf, "__jax_array__"):
        return leaf_to_numpy(leaf.__jax_array__(), dtype)
    # What JAX takes for the type when it traces: without x64, arrays of 64 bits have 32.
    return np.asarray(leaf).astype(dtype, copy=False) if hasattr(leaf, "dtype") else np.asarray(leaf, dtype)


def writable(array: NumpyArray) -> NumpyArray:
    """The memory of a large read-only array as one that IREE imports: DLPack of numpy refuses read-only ones.

    Programs do not write into arguments that were not donated.
    """
    if array.nbytes < LARGE or array.flags.writeable or not array.flags.c_contiguous:
        return array
    memory: Any = (ctypes.c_char * array.nbytes).from_address(array.__array_interface__["data"][0])
    memory.owner = array
    return np.ndarray(array.shape, array.dtype, memory)


@functools.cache
def home() -> tuple[Any, Any]:
    """The device on which results are, and its sharding: JAX's CPU, or its default device where JAX has no CPU."""
    try:
        device = jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        device = jax.local_devices()[0]
    return device, jax.sharding.SingleDeviceSharding(device)


def result_maker(aval: Any) -> Callable[[NumpyArray], Any]:
    """The function that makes of a session's result what JAX returns for a value of this aval.

    Large results keep the memory that they are in, so it must be nobody else's.
    """
    if aval.dtype == jax.dtypes.float0:
        return lambda array: np.zeros(aval.shape, jax.dtypes.float0)
    device, sharding = home()
    if not platform.is_key(aval):
        return lambda array: platform.put(array, aval, device, sharding, copy=array.nbytes < LARGE)
    numbers = platform.physical(aval)
    return lambda array: platform.keys(platform.put(array, numbers, device, sharding, copy=True), aval)
