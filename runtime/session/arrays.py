"""Arrays at the border to IREE: logical arrays of any kind to physical buffers and back.

A parameter's ``Codec`` knows its logical shape (what a user sees) and its physical one (``dialect.abi``).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from hloforge.dialect.abi import buffer_layout, major_to_minor, physical_shape
from hloforge.dialect.element_types import ElementType, is_of_numpy
from hloforge.dialect.errors import ArgumentError, ExecutionError
from hloforge.dialect.packing import pack, unpack
from hloforge.dialect.shapes import Shape
from hloforge.runtime.devices import dlpack
from hloforge.runtime.devices.devices import apart, copy, fetch, place as place_of, rt
from hloforge.runtime.session.scalars import brief, converted, is_of_kind

# Signless, as IREE's functions declare their integers.
_HAL_TYPES: dict[str, Any] = {
    "pred": rt.HalElementType.BOOL_8,
    "s8": rt.HalElementType.INT_8,
    "u8": rt.HalElementType.INT_8,
    "s16": rt.HalElementType.INT_16,
    "u16": rt.HalElementType.INT_16,
    "s32": rt.HalElementType.INT_32,
    "u32": rt.HalElementType.INT_32,
    "s64": rt.HalElementType.INT_64,
    "u64": rt.HalElementType.INT_64,
    "bf16": rt.HalElementType.BFLOAT_16,
    "f16": rt.HalElementType.FLOAT_16,
    "f32": rt.HalElementType.FLOAT_32,
    "f64": rt.HalElementType.FLOAT_64,
    "c64": rt.HalElementType.COMPLEX_64,
    "c128": rt.HalElementType.COMPLEX_128,
}
# Of the buffers that hold arrays.
MEMORY = int(rt.MemoryType.DEVICE_LOCAL | rt.MemoryType.HOST_VISIBLE)
USAGE = int(rt.BufferUsage.DEFAULT) | int(rt.BufferUsage.MAPPING_SCOPED)
# Of devices with memory of their own: where programs read and write, and where the host does too.
_DEVICE_MEMORY = int(rt.MemoryType.DEVICE_LOCAL)
_USAGE = int(rt.BufferUsage.DEFAULT)
_SHARED_MEMORY = MEMORY | int(rt.MemoryType.HOST_COHERENT)

# ``PyBUF_WRITE``.
_WRITABLE = 0x200
# Three times as fast as an array of ctypes, whose element type numpy parses.
_memory_at: Any = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)(
    ("PyMemoryView_FromMemory", ctypes.pythonapi)
)
# DLPack's kind and number of the host.
_ON_HOST = (1, 0)

# Importing pays for an array's address check and capsule from about this size on; below it a copy is as fast.
_IMPORT_BYTES = 16384
# Where IREE can use memory that it did not allocate.
ALIGNMENT = 64
# New arrays times all, which are compared with each other.
_MOST_PAIRS = 16


def hal_type(element: ElementType) -> int:
    """IREE's number of a physical element type."""
    return int(_HAL_TYPES[element.name])


class DeviceArray:
    """An array that stays on its device between calls.

    Its elements never change: it converts to a read-only numpy array, without a copy where the element type allows.
    A call that takes it as a donated argument ends it: the program may write into its memory.

    Attributes:
        shape_text: XLA's text of its shape and layout.
        dtype, shape, ndim: as of the numpy array that it converts to.
        is_shared: whether something else refers to its memory, so that a call gets a copy even where it is donated.
    """

    __slots__ = ("_apart", "_codec", "_device", "_host", "_taker", "_view", "is_shared")

    def __init__(self, buffer_view: Any, codec: Codec, apart: Any = None) -> None:
        self._view = buffer_view
        self._codec = codec
        self._apart = apart
        self._device: Any = None
        self._host: np.ndarray[Any, Any] | None = None
        self._taker = ""
        self.is_shared = False

    @classmethod
    def on_host(cls, host: np.ndarray[Any, Any], codec: Codec, device: Any) -> DeviceArray:
        """An array that IREE has not seen.

        Args:
            host: its elements, which nobody else refers to, in physical form or with the same bits.
            device: whose memory is the host's.
        """
        array = cls(None, codec)
        host = host if codec.is_plain else codec.with_bits(host)
        host.flags.writeable = False
        array._host, array._device = host, device
        return array

    @property
    def buffer_view(self) -> Any:
        """IREE's own object. Raises ArgumentError once the array has been donated."""
        if self._view is None and self._device is not None:
            # IREE asks for an alignment that numpy's memory lacks: from here on the array is IREE's copy.
            self._view = self._codec.copy_in(self.host, self._device)
            self._host = self._device = None
        if self._view is None:
            raise ArgumentError(
                f"this device array of {self.shape_text} was donated as argument {self._taker!r}",
                hint="use the result that replaced it, or pass a copy: np.array(array)",
            )
        return self._view

    @property
    def is_on_host(self) -> bool:
        """Whether IREE has not seen it."""
        return self._view is None and self._device is not None

    @property
    def plain(self) -> np.ndarray[Any, Any] | None:
        """The elements where they lie in the host's memory in logical form; None elsewhere."""
        if self._apart is not None or not self._codec.is_in_place:
            return None
        return self.host if self._codec.is_plain else self.host.view(self._codec.dtype)

    def end(self, taker: str) -> None:
        """Give the memory up, to the argument of this name."""
        self._view = self._host = self._device = None
        self._taker = taker

    @property
    def host(self) -> np.ndarray[Any, Any]:
        """The elements as they lie in memory: a read-only array of physical shape and type.

        From a device with memory of its own they are copied, once.
        """
        if self._host is None:
            self._host = self._codec.physical(self.buffer_view, self._apart)
            self._host.flags.writeable = False
        return self._host

    @property
    def shape_text(self) -> str:
        return str(self._codec.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._codec.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self._codec.logical_dimensions(self.host.shape if self._view is None else self._view.shape)

    @property
    def ndim(self) -> int:
        return len(self._codec.shape.dimensions)

    @property
    def is_apart(self) -> bool:
        """Whether it lies in memory that the host does not see."""
        return self._apart is not None

    def is_of(self, apart: Any) -> bool:
        """Whether it lies in the memory of a device of its own, or in the host's for None."""
        return self._apart is apart

    def fits(self, codec: Codec) -> bool:
        """Whether the buffer can be passed where ``codec`` is expected: same element type, layout and sizes."""
        return (
            codec.shape.element == self._codec.shape.element
            and codec.takes(self)
            and codec.order == self._codec.order
            and codec.buffer_layout == self._codec.buffer_layout
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        # Copied or not: whether numpy still shows the memory later is not known here.
        self.is_shared = self.is_shared or not copy
        return np.array(self._codec.logical(self.host), dtype=dtype, copy=copy)

    def __dlpack__(self, **arguments: Any) -> Any:
        """As numpy's: a consumer that knows no read-only arrays gets a BufferError unless it asks for a copy.

        Of an NVIDIA GPU it is a copy on the GPU, unless the consumer asks for one in the host's memory
        (``dl_device=(1, 0)``).
        """
        place = self.__dlpack_device__()
        if place != _ON_HOST and arguments.get("dl_device") in (None, place):
            return self._codec.give(self.buffer_view, self._apart, place)
        self.is_shared = True
        arguments.pop("stream", None)
        return self._codec.logical(self.host).__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self._apart is not None and place_of(self._apart)) or _ON_HOST

    def __repr__(self) -> str:
        return f"DeviceArray({self.shape_text})"


def share(made: Sequence[DeviceArray], kept: Sequence[DeviceArray]) -> None:
    """Mark new device arrays, and older ones, that lie in the same memory as a new one.

    A program may return an argument, or a value twice. Memory of a device of its own is not looked into: all of it
    counts as shared.
    """
    if any(array.is_apart for array in made):
        for array in made:
            array.is_shared = True
        return
    if len(made) * (len(made) + len(kept)) > _MOST_PAIRS:
        _share_by_address([*made, *kept])
        return
    # Two addresses take five times as long to find out as whether two arrays overlap.
    for number, array in enumerate(made):
        host = array.host
        for other in (*made[:number], *kept):
            if np.may_share_memory(host, other.host):
                array.is_shared = other.is_shared = True


def _share_by_address(arrays: Sequence[DeviceArray]) -> None:
    """``share`` of many arrays."""
    placed = sorted((array.host.__array_interface__["data"][0], array.host.nbytes, n) for n, array in enumerate(arrays))
    end, last = 0, 0
    for start, length, number in placed:
        if length and start < end:
            arrays[number].is_shared = arrays[last].is_shared = True
        if start + length > end:
            end, last = start + length, number


class Codec:
    """Conversion of one parameter or result between logical arrays and IREE's buffer views.

    Args:
        name: what messages call it.
        shape: its logical shape, an array.
        overwritten: whether the program may write into the argument's buffer; it then gets a copy of what callers see.
        donated: whether callers give up the device arrays that they pass, so that these need no copy.
    """

    __slots__ = (
        "_dimensions",
        "_fixed",
        "_hal_type",
        "_inverse",
        "_is_code",
        "_never_empty",
        "_physical_dimensions",
        "_physical_dtype",
        "_plain",
        "buffer_layout",
        "donated",
        "dtype",
        "name",
        "order",
        "overwritten",
        "shape",
    )

    def __init__(self, name: str, shape: Shape, *, overwritten: bool = False, donated: bool = False) -> None:
        physical = physical_shape(shape)
        if shape.element is None or physical.element is None:
            raise ValueError(f"{shape} is not an array")
        self.name = name
        self.shape = shape
        self.dtype = shape.element.dtype
        self.order = major_to_minor(shape)
        self.buffer_layout = buffer_layout(shape)
        self.overwritten = overwritten or donated
        self.donated = donated
        self._dimensions = shape.dimensions
        self._fixed = shape.is_static
        self._never_empty = shape.is_static and 0 not in shape.dimensions
        self._physical_dimensions = list(physical.dimensions)
        self._physical_dtype = physical.element.dtype
        self._hal_type = _HAL_TYPES[physical.element.name]
        self._inverse = tuple(np.argsort(self.order)) if self.order != tuple(range(shape.rank)) else None
        is_same = self._inverse is None and self.buffer_layout is None
        self._plain = is_same and self.dtype == self._physical_dtype
        is_float = shape.element.is_float and self.dtype.itemsize == self._physical_dtype.itemsize
        self._is_code = is_same and not self._plain and is_float

    @property
    def byte_count(self) -> int:
        """Bytes of the physical array, of static shape."""
        return prod(self._physical_dimensions) * self._physical_dtype.itemsize

    @property
    def dimensions(self) -> tuple[int, ...]:
        """The logical sizes."""
        return self._dimensions

    @property
    def is_plain(self) -> bool:
        """Whether arrays of one shape cross as they are."""
        return self._plain and self._fixed

    @property
    def is_in_place(self) -> bool:
        """Whether arrays of one shape cross with their bits as they are: floats of 8 bits are integers to a program."""
        return self._fixed and self.keeps_bits

    @property
    def keeps_bits(self) -> bool:
        """Whether arrays, of any sizes, cross with their bits in the order in which they are."""
        return self._plain or self._is_code

    def with_bits(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The bits of a logical array that is in place in the physical type."""
        return array.view(self._physical_dtype)

    @property
    def is_small(self) -> bool:
        """Whether arguments have few bytes, always as many, and cross as they are."""
        return self._plain and self._never_empty and self.byte_count < _IMPORT_BYTES

    def put_zeros(self, device: Any, inputs: Any) -> np.ndarray[Any, Any]:
        """Append a new buffer of zeros to an argument list; the array, which may be written to, is its memory."""
        view = self.copy_in(np.zeros(self._physical_dimensions, self._physical_dtype), device)
        inputs.push_ref(view)
        return self.physical(view)

    def allocate(self, device: Any) -> Any:
        """A buffer view of the physical array, of static shape, with whatever is in its memory."""
        memory = MEMORY if apart(device) is None else _SHARED_MEMORY
        buffer = device.allocator.allocate_buffer(memory, USAGE, self.byte_count)
        return rt.HalBufferView(buffer, self._physical_dimensions, int(self._hal_type))

    def logical_dimensions(self, physical: Any) -> tuple[int, ...]:
        """Sizes of a physical buffer in the logical order."""
        if self.buffer_layout is not None:
            return self._dimensions
        sizes = tuple(physical)
        return sizes if self._inverse is None else tuple(sizes[d] for d in self._inverse)

    def takes(self, array: Any) -> bool:
        """Whether an array has the logical element type and sizes."""
        return array.dtype == self.dtype and (array.shape == self._dimensions or self._takes_dynamic(array.shape))

    def _takes_dynamic(self, sizes: tuple[int, ...]) -> bool:
        if self._fixed or len(sizes) != len(self._dimensions):
            return False
        bounds = zip(sizes, self._dimensions, self.shape.dynamic, strict=True)
        return all(size == bound or (dynamic and (bound < 0 or size <= bound)) for size, bound, dynamic in bounds)

    def encode(self, value: Any, device: Any, keep: list[np.ndarray[Any, Any]]) -> Any:
        """A buffer view that holds ``value``.

        Args:
            keep: receives the array whose memory the buffer view borrows, if it does.

        Raises:
            ArgumentError: wrong element type or sizes, or nothing that converts to an array.
        """
        if isinstance(value, DeviceArray):
            if not value.fits(self):
                raise self._refuse(value, f"a device array {value.shape_text}")
            keeps = self.overwritten and (value.is_shared or not self.donated)
            # An array of another device crosses by the host.
            keeps = keeps or not value.is_of(apart(device))
            return self.copy_in(value.host, device) if keeps else value.buffer_view
        if (shared := self._shared(value, device)) is not None:
            return shared
        array = self._checked(value)
        if not self._plain:
            array = self._to_physical(array)
        if array.nbytes >= _IMPORT_BYTES and not self.overwritten and _importable(array) and apart(device) is None:
            keep.append(array)
            view = device.from_dlpack_capsule(array.view(_import_dtype(array.dtype)).__dlpack__())
            return rt.HalBufferView(view.get_buffer(), list(array.shape), int(self._hal_type))
        return self.copy_in(array, device)

    def sizes(self, value: Any) -> tuple[int, ...]:
        """The logical sizes of an argument. Raises ArgumentError as ``encode`` does."""
        if not isinstance(value, DeviceArray):
            sizes: tuple[int, ...] = self._checked(value).shape
            return sizes
        if not value.fits(self):
            raise self._refuse(value, f"a device array {value.shape_text}")
        return value.shape

    def store(self, value: Any, device: Any) -> DeviceArray:
        """A copy of ``value`` on the device. Raises ArgumentError as ``encode`` does."""
        if isinstance(value, DeviceArray):
            stored = DeviceArray(self.encode(value, device, []), self, apart(device))
            share([stored], [value])
            return stored
        if (shared := self._shared(value, device, copied=True)) is not None:
            return DeviceArray(shared, self, apart(device))
        array = self._checked(value)
        return DeviceArray(
            self.copy_in(array if self._plain else self._to_physical(array), device), self, apart(device)
        )

    def give(self, view: Any, device: Any, place: tuple[int, int]) -> Any:
        """A DLPack capsule of a copy on the device.

        Raises BufferError where the logical array is another one than lies in memory, or DLPack lacks its type.
        """
        if not self._plain or self.shape.element is None:
            raise BufferError(
                f"{self.shape} has another layout in the device's memory: copy it to the host, np.asarray"
            )
        return dlpack.give(view, device, place, self.shape.element)

    def _shared(self, value: Any, device: Any, *, copied: bool = False) -> Any:
        """A buffer view of a tensor that lies on a GPU already, or of a copy there; None if it is none.

        Args:
            copied: whether the view must not be of the tensor's own memory.
        """
        if type(value) is np.ndarray or apart(device) is None or not hasattr(value, "__dlpack_device__"):
            return None
        place = place_of(device)
        if place is None or not self._plain or tuple(map(int, value.__dlpack_device__())) != place:
            return None
        view = dlpack.take(value, device, place[1])
        sizes, element = tuple(view.shape), self.shape.element
        if element is None or not dlpack.is_of_type(view, element):
            raise self._refuse(value, f"{type(value).__name__} of {getattr(value, 'dtype', 'another element type')}")
        if sizes != self._dimensions and not self._takes_dynamic(sizes):
            raise self._refuse(value, f"{type(value).__name__} of shape {sizes}")
        buffer = view.get_buffer()
        if copied or self.overwritten:
            target = device.allocator.allocate_buffer(_DEVICE_MEMORY, _USAGE, view.byte_length)
            copy(buffer, target, device)
            buffer = target
        return rt.HalBufferView(buffer, list(sizes), int(self._hal_type))

    def _checked(self, value: Any) -> np.ndarray[Any, Any]:
        array = value if type(value) is np.ndarray else self._as_array(value)
        if array.dtype != self.dtype or (array.shape != self._dimensions and not self._takes_dynamic(array.shape)):
            raise self._refuse(array, f"{array.dtype} array of shape {array.shape}")
        return array

    def placed(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
        """An array of the parameter's element type and sizes as kernels read it; None if it has others."""
        if array.dtype != self.dtype or array.shape != self._dimensions:
            return None
        if not (array.flags.c_contiguous and array.flags.aligned):
            array = np.array(array, order="C")
        # The element type of an array that was pickled is equal and not the same object.
        return array if array.dtype is self.dtype else array.view(self.dtype)

    def copy_in(self, array: np.ndarray[Any, Any], device: Any) -> Any:
        """A buffer view of a copy of an array in physical form."""
        contiguous = array if array.flags.c_contiguous else np.ascontiguousarray(array)
        if apart(device) is not None:
            return device.allocator.allocate_buffer_copy(_DEVICE_MEMORY, _USAGE, device, contiguous, self._hal_type)
        # Positional, because nanobind takes a microsecond to sort keywords.
        return device.allocator.allocate_buffer_copy(MEMORY, USAGE, device, contiguous, self._hal_type)

    def _to_physical(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if self.buffer_layout is not None:
            return pack(self._to_physical_type(array), self.buffer_layout)
        return self._to_physical_type(array if self._inverse is None else array.transpose(self.order))

    def _to_physical_type(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if self.dtype == self._physical_dtype:
            return array
        if self.shape.element is not None and self.shape.element.is_float:
            return np.ascontiguousarray(array).reshape(array.shape).view(self._physical_dtype)
        return array.astype(self._physical_dtype)

    def decode(self, view: Any, apart: Any = None) -> np.ndarray[Any, Any]:
        """The logical array of a buffer view; a view of its memory unless the element type must be widened."""
        array = self.physical(view, apart)
        return array if self._plain else self.logical(array)

    def physical(self, view: Any, apart: Any = None) -> np.ndarray[Any, Any]:
        """The memory of a buffer view, which the array keeps alive.

        Args:
            apart: the device it belongs to if that has memory of its own (``devices.apart``): the array is a copy.
        """
        sizes = self._physical_dimensions if self._fixed else list(view.shape)
        if not self._never_empty and view.byte_length == 0:
            return np.empty(sizes, self._physical_dtype)
        # Not MappedMemory.asarray: a numpy view of its result outlives the memory that it shows.
        memory = view.map() if apart is None else fetch(view, apart)
        try:
            return np.ndarray(sizes, self._physical_dtype, memory)
        except TypeError:
            raise ExecutionError(
                f"{self.name} is {self.shape} by the manifest, and has {view.byte_length} bytes",
                hint="the file was damaged or changed: compile the program again",
            ) from None

    def at(self, address: int) -> np.ndarray[Any, Any]:
        """A physical array of static shape where memory of somebody's is."""
        memory = _memory_at(address, self.byte_count, _WRITABLE) if self._never_empty else None
        return np.ndarray(self._physical_dimensions, self._physical_dtype, memory)

    def write(self, value: Any, target: np.ndarray[Any, Any]) -> None:
        """Write ``value`` into a physical array. Raises ArgumentError as ``encode`` does."""
        array = self._checked(value)
        np.copyto(target, array if self._plain else self._to_physical(array))

    def logical(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A physical array in the logical type and order of dimensions."""
        if self.buffer_layout is not None:
            shape = Shape.array(self._physical_dtype, *self._dimensions, layout=self.buffer_layout)
            return self._logical_type(unpack(array, shape))
        array = self._logical_type(array)
        return array if self._inverse is None else array.transpose(self._inverse)

    def _logical_type(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if self.dtype != self._physical_dtype:
            is_code = self.shape.element is not None and self.shape.element.is_float
            return array.view(self.dtype) if is_code else array.astype(self.dtype)
        return array

    def _as_array(self, value: Any) -> np.ndarray[Any, Any]:
        """Anything that has an array in it as numpy; a Python scalar where it is exactly one of the element type."""
        if isinstance(value, int | float | complex):
            return self._scalar(value)
        if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
            try:
                return np.from_dlpack(value)
            except (BufferError, RuntimeError, TypeError):
                pass  # another device or element type than DLPack knows: the array protocol may still serve
        try:
            return np.asarray(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ArgumentError(f"argument {self.name!r} is no array: {error}") from None

    def _scalar(self, value: complex) -> np.ndarray[Any, Any]:
        """A Python number of the parameter's kind; a float is rounded, as everywhere in numpy, but not to infinity."""
        element = self.shape.element
        if element is None or self._dimensions or not is_of_kind(value, element):
            raise self._refuse(value, f"the Python scalar {brief(value)}")
        with np.errstate(over="ignore"):
            array = converted(value, element)
        if array is None:
            raise self._refuse(value, f"{brief(value)}, which {element} cannot hold")
        return array

    def _refuse(self, value: Any, got: str) -> ArgumentError:
        hint = ""
        if (
            isinstance(value, np.ndarray)
            and value.dtype.kind in "biufcV"
            and value.dtype != self.dtype
            and value.shape == self._dimensions
        ):
            hint = f"convert it: x.astype({self.dtype.name!r})"
        return ArgumentError(f"argument {self.name!r}: expected {self.shape}, got {got}", hint=hint)


def placed(codecs: Sequence[Codec], arguments: Sequence[Any]) -> list[np.ndarray[Any, Any]] | None:
    """numpy arrays as kernels read them, copied where they lie otherwise in memory; None of anything else."""
    if len(arguments) != len(codecs):
        return None
    found: list[np.ndarray[Any, Any]] = []
    for codec, array in zip(codecs, arguments, strict=True):
        own = codec.placed(array) if isinstance(array, np.ndarray) else None
        if own is None:
            return None
        found.append(own)
    return found


def _importable(array: np.ndarray[Any, Any]) -> bool:
    """Whether IREE can use the array's own memory: contiguous, writable (DLPack asks) and aligned to 64 bytes."""
    flags = array.flags
    address: int = array.__array_interface__["data"][0]
    return bool(flags.c_contiguous and flags.writeable and address % ALIGNMENT == 0)


def _import_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """A dtype of the same width that DLPack knows; ml_dtypes' are strangers to it."""
    return dtype if is_of_numpy(dtype) else np.dtype(f"u{dtype.itemsize}")
