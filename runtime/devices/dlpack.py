"""Arrays in a GPU's memory, exchanged with PyTorch, JAX and CuPy by DLPack.

IREE 3.13 reads and writes memory of others where it lies (an import of a device allocation), but gives out only memory
that it was given: its CUDA driver exports no buffer that it allocated itself. So an array of ours is copied once, on
the device, into memory of the CUDA driver's, which others may have. Nothing crosses by the host.

What the sources of IREE and DLPack's specification say was followed; the tests put the processor in a GPU's place.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from hloforge.dialect.element_types import ElementType
from hloforge.dialect.errors import ArgumentError, ExecutionError
from hloforge.runtime.devices.cuda_library import find_cuda
from hloforge.runtime.devices.devices import FAILURES, copy, reason, rt

# DLPack's number of CUDA's legacy default stream, after which a producer puts its work.
_LEGACY_STREAM = 1
_CAPSULE = b"dltensor"

# What IREE makes of DLPack's element types.
_IMPORTED: dict[str, Any] = {
    "pred": rt.HalElementType.BOOL_8,
    **{f"s{bits}": getattr(rt.HalElementType, f"SINT_{bits}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": getattr(rt.HalElementType, f"UINT_{bits}") for bits in (8, 16, 32, 64)},
    **{f"f{bits}": getattr(rt.HalElementType, f"FLOAT_{bits}") for bits in (16, 32, 64)},
    "bf16": rt.HalElementType.BFLOAT_16,
    "c64": rt.HalElementType.COMPLEX_64,
    "c128": rt.HalElementType.COMPLEX_128,
}


def take(value: Any, device: Any, ordinal: int) -> Any:
    """A buffer view of a tensor's own memory, which it keeps alive.

    Args:
        value: what has ``__dlpack__``, and lies on the device.
        ordinal: the number of the device among CUDA's.

    Raises:
        ArgumentError: its elements do not lie one after the other, or DLPack has no name for their type.
    """
    capsule = value.__dlpack__(stream=_LEGACY_STREAM)
    # IREE's streams do not wait for the default one.
    synchronize(ordinal)
    try:
        return device.from_dlpack_capsule(capsule)
    except FAILURES as error:
        raise ArgumentError(
            f"the memory of {type(value).__name__} cannot be shared: {reason(error)}",
            hint="pass a contiguous tensor, or a copy in the host's memory",
        ) from None


def is_of_type(view: Any, element: ElementType) -> bool:
    """Whether a view that ``take`` returned holds elements of a type."""
    wanted = _IMPORTED.get(element.name)
    return wanted is not None and int(wanted) == int(view.element_type)


def give(view: Any, device: Any, place: tuple[int, int], element: ElementType) -> Any:
    """A DLPack capsule of a copy on the device.

    Args:
        place: DLPack's kind of device, and its number.

    Raises:
        BufferError: DLPack has no name for the element type.
        ExecutionError: the device does not have the memory.
    """
    wanted = _IMPORTED.get(element.name)
    if wanted is None:
        raise BufferError(f"DLPack has no {element}: copy the array to the host, np.asarray(array)")
    size = int(view.byte_length)
    target = device.from_dlpack_capsule(_bytes_at(*allocate(size, place[1]), max(size, 1), place)).get_buffer()
    copy(view.get_buffer(), target, device)
    return device.create_dlpack_capsule(rt.HalBufferView(target, list(view.shape), int(wanted)), *place)


def synchronize(ordinal: int) -> None:
    """Wait for all work of the device's primary context, which IREE, PyTorch, JAX and CuPy share."""
    with _Context(ordinal) as cuda:
        _check(cuda.cuCtxSynchronize(), "cuCtxSynchronize")


def allocate(size: int, ordinal: int) -> tuple[int, Callable[[], None]]:
    """The address of new memory of the device, and what frees it. Raises ExecutionError if there is none."""
    address = ctypes.c_uint64()
    with _Context(ordinal) as cuda:
        _check(cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(max(size, 1))), f"cuMemAlloc of {size} bytes")

    def free() -> None:
        with _Context(ordinal) as cuda:
            cuda.cuMemFree_v2(address)

    return address.value, free


class _Context:
    """The primary context of a device, current on this thread for a while."""

    def __init__(self, ordinal: int) -> None:
        self._cuda = ctypes.CDLL(find_cuda() or "libcuda.so.1")
        self._ordinal = ctypes.c_int(ordinal)

    def __enter__(self) -> Any:
        device, context = ctypes.c_int(), ctypes.c_void_p()
        _check(self._cuda.cuDeviceGet(ctypes.byref(device), self._ordinal), "cuDeviceGet")
        self._ordinal = device
        _check(self._cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
        _check(self._cuda.cuCtxPushCurrent_v2(context), "cuCtxPushCurrent")
        return self._cuda

    def __exit__(self, *_: object) -> None:
        self._cuda.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
        self._cuda.cuDevicePrimaryCtxRelease_v2(self._ordinal)


def _check(status: int, what: str) -> None:
    if status:
        raise ExecutionError(f"{what} failed with CUDA's status {status}")


class _Tensor(ctypes.Structure):
    """DLPack's DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    """DLPack's DLManagedTensor."""

    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_UNSIGNED = 1
_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
# What belongs to memory that somebody still refers to, by the address of its DLManagedTensor.
_held: dict[int, tuple[_Managed, Any, Callable[[], None]]] = {}


def _delete(managed: int) -> None:
    _, _, free = _held.pop(managed)
    free()


_DELETE = _DELETER(_delete)


def _bytes_at(address: int, free: Callable[[], None], size: int, place: tuple[int, int]) -> Any:
    """A DLPack capsule of an array of bytes; ``free`` is called when nobody refers to it."""
    shape = (ctypes.c_int64 * 1)(size)
    tensor = _Tensor(address, *place, 1, _UNSIGNED, 8, 1, shape, None, 0)
    managed = _Managed(tensor, None, ctypes.cast(_DELETE, ctypes.c_void_p))
    _held[ctypes.addressof(managed)] = managed, shape, free
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make(ctypes.addressof(managed), _CAPSULE, None)
