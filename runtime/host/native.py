"""Host functions of machine code: XLA's functions of raw pointers. Handlers of the typed FFI are in ``host_ffi``."""

from __future__ import annotations

import ctypes
from _ctypes import CFuncPtr
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from hloforge.dialect.element_types import is_of_numpy
from hloforge.dialect.errors import ExecutionError, LoadError, OptionError
from hloforge.dialect.host_calls import ORIGINAL, TYPED_FFI, HostCall
from hloforge.dialect.shapes import Shape
from hloforge.runtime.host.bindings import Array, Bound, HostTarget, arrays_of
from hloforge.runtime.host.libraries import Library

# The stages of a typed handler.
EXECUTE = "execute"
# `out`, `in`, and what later versions of the API add: the status; before it the configuration and its length.
_UNIFIED = 3
_POINTER, _SIZE = ctypes.c_void_p, ctypes.c_size_t
_PROTOTYPES = {
    1: ctypes.CFUNCTYPE(None, _POINTER, _POINTER),
    2: ctypes.CFUNCTYPE(None, _POINTER, _POINTER, _POINTER),
    3: ctypes.CFUNCTYPE(None, _POINTER, _POINTER, ctypes.c_char_p, _SIZE, _POINTER),
}
_BYTE = ctypes.c_char
# XLA's status is an optional string of C++: all zero unless the function reports a failure.
_STATUS_BYTES = 64


@dataclass(frozen=True)
class NativeFunction(HostTarget):
    """A function of machine code, called by the API version of the program's call.

    Attributes:
        stages: its address, or the addresses of a typed handler, by stage.
        kind: ``c`` or ``ffi``; None for what the call's API version says.
        keep: what owns the code.
    """

    stages: Mapping[str, int]
    kind: str | None = None
    keep: Any = field(default=None, repr=False)

    def bind(self, call: HostCall, device: Any, check_lifetimes: bool = False) -> Bound:
        dynamic = [leaf for leaf in arrays_of(call.result_leaves) if not leaf.is_static]
        if dynamic:
            raise LoadError(
                f"host function {call} has a result of dynamic size, which machine code cannot choose",
                hint="register a Python function, or compile the program for its sizes",
            )
        if self.kind == "ffi" or (self.kind is None and call.version == TYPED_FFI):
            from hloforge.runtime.host.ffi import bind_handler  # handlers are rare, and their structures many

            return bind_handler(self.stages, call, device)
        return _bind_pointers(self.stages[EXECUTE], call, device)


class MachineCode(Bound):
    """A function that finds its operands and results where XLA's functions do.

    Elements of 2 and 4 bits are packed, the first one lowest, in memory of a byte each; an operand that shares its
    buffer with a result is copied there.

    Args:
        invoke: takes the memory of operands and results, and the logical sizes of the operands that have dynamic ones.
    """

    def __init__(
        self, call: HostCall, device: Any, invoke: Callable[[list[Array], list[Array], Sequence[Sequence[int]]], None]
    ) -> None:
        super().__init__(call, device)
        self._invoke = invoke
        takes, returns = _places(call.operand_leaves), _places(call.result_leaves)
        self._dynamic = [number for number, codec in enumerate(self.takes) if not codec.shape.is_static]
        self._narrow = any(_packed_bits(codec.shape) for codec in (*self.takes, *self.returns))
        self._shared = [(returns[result], takes[operand]) for result, operand in call.aliases]

    def on_views(self, views: Sequence[Any]) -> list[Any]:
        # IREE passes as many views as were declared.
        operands = [codec.physical(view, self._apart) for codec, view in zip(self.takes, views)]  # noqa: B905
        made = [codec.allocate(self._device) for codec in self.returns]
        results = [codec.physical(view, self._apart) for codec, view in zip(self.returns, made)]  # noqa: B905
        sizes = [self.takes[number].logical_dimensions(views[number].shape) for number in self._dynamic]
        self._run(operands, results, sizes)
        return made

    def in_memory(self, operands: list[Array], results: list[Array]) -> None:
        self._run(operands, results, ())

    def _run(self, operands: list[Array], results: list[Array], sizes: Sequence[Sequence[int]]) -> None:
        if self._narrow:
            operands = [packed(array, codec.shape) for array, codec in zip(operands, self.takes, strict=True)]
        for result, operand in self._shared:
            results[result].reshape(-1)[...] = operands[operand].reshape(-1)
            operands[operand] = results[result]
        self._invoke(operands, results, sizes)
        for codec, array in zip(self.returns, results, strict=True) if self._narrow else ():
            unpack_in_place(array, codec.shape)


def _places(leaves: Sequence[Shape]) -> dict[int, int]:
    """The number of each array among the arrays, by its number among all leaves."""
    return {number: place for place, number in enumerate(n for n, leaf in enumerate(leaves) if leaf.is_array)}


def packed(array: np.ndarray[Any, Any], shape: Shape) -> np.ndarray[Any, Any]:
    """A buffer of as many bytes with narrow elements packed; other arrays as they are."""
    bits = _packed_bits(shape)
    if not bits:
        return array
    codes = array.reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    count = 8 // bits
    padded = np.zeros(-(-codes.size // count) * count, np.uint8)
    padded[: codes.size] = codes
    shifts = np.arange(count, dtype=np.uint8) * bits
    buffer = np.zeros(max(codes.size, 1), np.uint8)
    rows = np.bitwise_or.reduce(padded.reshape(-1, count) << shifts, axis=1)
    buffer[: rows.size] = rows
    return buffer


def unpack_in_place(array: np.ndarray[Any, Any], shape: Shape) -> None:
    """Spread packed narrow elements over a byte each, with their signs."""
    bits = _packed_bits(shape)
    if not bits or not array.size:
        return
    flat, count = array.reshape(-1).view(np.uint8), 8 // bits
    shifts = np.arange(count, dtype=np.uint8) * bits
    codes = (flat[: -(-flat.size // count), None] >> shifts).reshape(-1)[: flat.size] & ((1 << bits) - 1)
    if array.dtype == np.int8:
        codes = (codes << (8 - bits)).view(np.int8) >> (8 - bits)
    array.reshape(-1)[...] = codes


def _packed_bits(shape: Shape) -> int:
    """The width of elements that XLA packs; 0 for others."""
    element = shape.element
    return element.bits if element is not None and element.is_sub_byte and element.bits in (2, 4) else 0


def address(array: np.ndarray[Any, Any]) -> int:
    """Where an array's memory starts."""
    # Not of an empty array, of one that may not be written to, and of ml_dtypes' types, which buffers do not know.
    if array.size and array.flags.writeable and is_of_numpy(array.dtype):
        return ctypes.addressof(_BYTE.from_buffer(array))  # type: ignore[arg-type]  # a fifth of the time below
    found: int = array.__array_interface__["data"][0]
    return found


def _bind_pointers(function: int, call: HostCall, device: Any) -> Bound:
    """XLA's API versions 1 to 3: ``void f(void* out, const void** in, …)``, leaves of tuples one after the other."""
    version = ORIGINAL if call.version == TYPED_FFI else call.version
    is_tuple = call.result.is_tuple
    invoke = _PROTOTYPES[version](function)
    takes = [leaf.is_array for leaf in call.operand_leaves]
    returns = [leaf.is_array for leaf in call.result_leaves]
    text = call.configuration.encode()

    def run(operands: list[Array], results: list[Array], _: Sequence[Sequence[int]]) -> None:
        given, pointers = _pointers(takes, operands), _pointers(returns, results)
        out = pointers if is_tuple else pointers[0]
        if version == ORIGINAL:
            invoke(out, given)
        else:
            status = ctypes.create_string_buffer(_STATUS_BYTES)
            invoke(out, given, *((text, len(text)) if version == _UNIFIED else ()), status)
            if any(status.raw):
                raise ExecutionError(f"host function {call} reported a failure")

    return MachineCode(call, device, run)


def _pointers(are_arrays: Sequence[bool], arrays: Sequence[np.ndarray[Any, Any]]) -> Any:
    """``void*[]``: the arrays' addresses, null for tokens."""
    addresses = map(address, arrays)
    if len(arrays) == len(are_arrays):
        return (_POINTER * len(arrays))(*addresses)
    return (_POINTER * len(are_arrays))(*(next(addresses) if is_array else None for is_array in are_arrays))


def native_function(source: Any, name: str, kind: str | None) -> NativeFunction | None:
    """Machine code that Python holds: a PyCapsule, a function of ctypes or cffi, or a mapping of stages to these.

    Returns:
        None if ``source`` is nothing of that.
    """
    if isinstance(source, Mapping):
        stages = {str(stage): _address_of(handler) for stage, handler in source.items() if handler is not None}
        bad = [stage for stage, found in stages.items() if found is None]
        if bad or EXECUTE not in stages:
            raise OptionError(f"{name}: a typed handler maps stages, {EXECUTE!r} among them, to capsules")
        return NativeFunction({stage: found for stage, found in stages.items() if found}, "ffi", source)
    found = _address_of(source)
    return None if found is None else NativeFunction({EXECUTE: found}, kind, source)


def _address_of(source: Any) -> int | None:
    if isinstance(source, CFuncPtr):
        return ctypes.cast(source, ctypes.c_void_p).value
    kind = type(source)
    if kind.__name__ == "PyCapsule":
        return _capsule_pointer(source)
    if kind.__module__ == "_cffi_backend":
        import cffi  # type: ignore[import-untyped]

        return int(cffi.FFI().cast("uintptr_t", source))
    return None


_python = ctypes.pythonapi
_python.PyCapsule_GetName.argtypes = [ctypes.py_object]
_python.PyCapsule_GetName.restype = ctypes.c_char_p
_python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_python.PyCapsule_GetPointer.restype = ctypes.c_void_p


def _capsule_pointer(capsule: Any) -> int:
    found: int = _python.PyCapsule_GetPointer(capsule, _python.PyCapsule_GetName(capsule))
    return found


def library_function(library: str | PathLike[str], name: str, kind: str | None = None) -> NativeFunction | None:
    """A function that a shared library itself defines, by its symbol; None if it has none that may be called so.

    Args:
        library: ``libmy.so``, or ``libmy.so:f,g`` for these functions alone.

    Raises:
        LoadError: there is no such library, it cannot be loaded, or it lacks a function that is named.
    """
    function = Library.parse(library).function(name)
    return None if function is None else native_function(function, name, kind)
