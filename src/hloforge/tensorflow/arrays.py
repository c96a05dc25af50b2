"""Arrays between TensorFlow and sessions, without copies where both can use the same memory."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import tensorflow as tf

from hloforge.dialect.element_types import is_of_numpy
from hloforge.runtime.session.arrays import ALIGNMENT

NumpyArray = np.ndarray[Any, Any]

# Bytes from which on arrays are worth not to be copied.
LARGE = 16384


def to_numpy(value: Any, dtype: np.dtype[Any]) -> NumpyArray:
    """A leaf of an argument as a numpy array; Python's numbers become of the type that the program declares."""
    if isinstance(value, tf.Tensor):
        return _shown(value)
    if isinstance(value, tf.Variable):
        return _shown(value.read_value())
    return np.asarray(value) if hasattr(value, "dtype") else np.asarray(value, dtype)


def variable_value(handle: Any, dtype: Any) -> NumpyArray:
    """What a variable holds. A later assignment leaves it alone: TensorFlow sees that its memory is in use."""
    return _shown(tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype))


def _shown(tensor: Any) -> NumpyArray:
    """The memory of a tensor; a large one as IREE imports it: DLPack of numpy refuses read-only arrays.

    Programs do not write into arguments.
    """
    array = np.asarray(tensor)
    if array.nbytes < LARGE or array.flags.writeable or not array.flags.c_contiguous:
        return array
    memory: Any = (ctypes.c_char * array.nbytes).from_address(array.__array_interface__["data"][0])
    memory.owner = array
    return np.ndarray(array.shape, array.dtype, memory)


def to_tensor(array: NumpyArray) -> Any:
    """A tensor of an array; it takes the memory of a large one if TensorFlow can use it.

    A large array must be nobody else's.
    """
    if not array.size:
        return tf.constant(array)
    # TensorFlow ends the process on memory that is not aligned.
    is_usable = array.flags.c_contiguous and array.flags.writeable
    if array.nbytes < LARGE or not is_usable or array.__array_interface__["data"][0] % ALIGNMENT:
        array = _aligned(array)
    # Of ml_dtypes' types DLPack of numpy knows none.
    is_known = is_of_numpy(array.dtype)
    plain = array if is_known else array.view(f"u{array.dtype.itemsize}")
    tensor = tf.experimental.dlpack.from_dlpack(plain.__dlpack__())
    return tensor if is_known else tf.bitcast(tensor, tf.as_dtype(array.dtype))


def _aligned(array: NumpyArray) -> NumpyArray:
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -memory.__array_interface__["data"][0] % ALIGNMENT
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
