"""Kernels of PTX's text on the emulator, by the driver's functions alone. For child processes: one that has loaded the
emulator has an NVIDIA GPU ever after."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from emulator.library import library

Array = np.ndarray[Any, Any]
_HEAD = ".version 7.6\n.target sm_80\n.address_size 64\n"


def run(text: str, arrays: Sequence[Array], *, blocks: int = 1, threads: int = 32, shared: int = 0) -> list[Array]:
    """The arrays after a kernel called ``kernel``, whose parameters are their addresses.

    Raises:
        RuntimeError: the text is not read, or the kernel did what it may not; the message is the emulator's.
    """
    driver = _driver()
    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    status = driver.cuModuleLoadDataEx(ctypes.byref(module), (_HEAD + text).encode(), 0, None, None)
    if status:
        raise RuntimeError(f"the text is not read: status {status}")
    if driver.cuModuleGetFunction(ctypes.byref(kernel), module, b"kernel"):
        raise RuntimeError("there is no kernel of that name")
    places = [_copied(array) for array in arrays]
    pointers = (ctypes.c_void_p * len(places))(*(ctypes.addressof(place) for place in places))
    sizes = (blocks, 1, 1, threads, 1, 1, shared)
    driver.cuLaunchKernel(kernel, *map(ctypes.c_uint, sizes), None, pointers, None)
    status = driver.cuStreamSynchronize(None)
    results = [_read(place, array) for place, array in zip(places, arrays, strict=True)]
    if status:
        raise RuntimeError(driver.emulator_fault().decode())
    return results


@cache
def _driver() -> ctypes.CDLL:
    driver = ctypes.CDLL(str(library()))
    driver.emulator_fault.restype = ctypes.c_char_p
    return driver


def _copied(array: Array) -> ctypes.c_uint64:
    """The address of memory of the device with an array's elements."""
    address = ctypes.c_uint64()
    _driver().cuMemAlloc(ctypes.byref(address), ctypes.c_size_t(array.nbytes))
    ctypes.memmove(address.value or 0, np.ascontiguousarray(array).ctypes.data, array.nbytes)
    return address


def _read(address: ctypes.c_uint64, like: Array) -> Array:
    result = np.empty_like(like)
    ctypes.memmove(result.ctypes.data, address.value or 0, like.nbytes)
    _driver().cuMemFree(address)
    return result
