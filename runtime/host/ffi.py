"""Typed handlers: call frames of XLA's FFI made from buffers, so that a handler built for JAX's ``ffi`` runs unchanged.

A frame is made once for each call at a time, with shapes and attributes in place; a call fills in addresses. Like XLA's
CPU client, this calls the stages ``instantiate``, once, and ``execute``. Source: XLA, ``xla/ffi/api/c_api.h``.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping, Sequence
from ctypes import POINTER, c_int, c_int64, c_void_p
from typing import Any

import numpy as np

from hloforge.dialect.element_types import element_type
from hloforge.dialect.errors import ExecutionError, LoadError
from hloforge.dialect.host_calls import HostCall
from hloforge.dialect.shapes import Shape
from hloforge.runtime.host import ffi_structs as structs
from hloforge.runtime.host.bindings import Bound
from hloforge.runtime.host.ffi_api import HANDLES, TYPE_NUMBERS, Context, Error, Future, api
from hloforge.runtime.host.native import MachineCode, address

INSTANTIATE, EXECUTE = "instantiate", "execute"
# The type of a handler's state: its number, and how to delete one.
TYPE_ID, TYPE_INFO = "type_id", "type_info"


def bind_handler(stages: Mapping[str, int], call: HostCall, device: Any) -> Bound:
    """A typed handler as one program calls it.

    Args:
        stages: the addresses of its functions; ``execute`` is needed, ``instantiate`` is called here.

    Raises:
        LoadError: a handler of another version of the API, or one that refuses to be instantiated.
    """
    _check_version(stages[EXECUTE], call)
    handler = _Handler(structs.Handler(stages[EXECUTE]), call, _deleter(stages))
    if INSTANTIATE in stages:
        frame = Frame(call, (), (), handler.number, structs.INSTANTIATE)
        error = frame.run(structs.Handler(stages[INSTANTIATE]))
        if error is not None:
            raise LoadError(f"host function {call} cannot be instantiated: {error}")
    return MachineCode(call, device, handler.execute)


def _check_version(function: int, call: HostCall) -> None:
    """Ask the handler for the version that it was compiled with."""
    metadata = structs.Metadata(struct_size=ctypes.sizeof(structs.Metadata), api_version=structs.ApiVersion())
    extension = structs.MetadataExtension(
        ctypes.sizeof(structs.MetadataExtension), structs.METADATA, None, ctypes.pointer(metadata)
    )
    frame = structs.CallFrame(extension_start=ctypes.addressof(extension), api=ctypes.addressof(api()))
    frame.struct_size = structs.CallFrame.future.offset
    error = HANDLES.take(structs.Handler(function)(ctypes.addressof(frame)))
    version = (metadata.api_version.major_version, metadata.api_version.minor_version)
    if error is not None or version[0] != structs.API_VERSION[0]:
        raise LoadError(
            f"host function {call} is a handler of XLA's FFI {version[0]}.{version[1]}, and this is "
            f"{structs.API_VERSION[0]}.{structs.API_VERSION[1]}{f': {error}' if error else ''}",
            hint="compile it with the headers of this jaxlib: jax.ffi.include_dir()",
        )


def _deleter(stages: Mapping[str, int]) -> int | None:
    """The function that ends a handler's state; numbers the state's type, if nobody has."""
    if TYPE_ID in stages:
        type_id = structs.TypeId.from_address(stages[TYPE_ID])
        type_id.type_id = type_id.type_id or next(TYPE_NUMBERS)
    found: int | None = structs.TypeInfo.from_address(stages[TYPE_INFO]).deleter if TYPE_INFO in stages else None
    return found


class _Handler:
    """The call site of a handler: its state and its frames, as many as calls run at once."""

    def __init__(self, function: Any, call: HostCall, deleter: int | None) -> None:
        self._function, self._call = function, call
        self._context = Context()
        self.number = HANDLES.add(self._context)
        self._free: list[Frame] = []
        weakref.finalize(self, _end, self.number, deleter)

    def execute(
        self,
        operands: Sequence[np.ndarray[Any, Any]],
        results: Sequence[np.ndarray[Any, Any]],
        sizes: Sequence[Sequence[int]],
    ) -> None:
        """Call the handler.

        Args:
            sizes: of the operands of dynamic shape.

        Raises:
            ExecutionError: with the handler's error.
        """
        try:
            frame = self._free.pop()
        except IndexError:
            frame = Frame(self._call, self._call.operand_leaves, self._call.result_leaves, self.number)
        self._context.run_id += 1
        frame.fill(operands, results, sizes)
        error = frame.run(self._function)
        self._free.append(frame)
        if error is not None:
            raise ExecutionError(f"host function {self._call} failed: {error}")


def _end(number: int, deleter: int | None) -> None:
    """Delete a handler's state, if it is known how."""
    context = HANDLES.take(number)
    if deleter is None or not isinstance(context, Context):
        return
    for _, state in context.state.values():
        structs.Task(deleter)(state)


class Frame:
    """The structures of one call, and what they point to."""

    def __init__(
        self,
        call: HostCall,
        operands: Sequence[Shape],
        results: Sequence[Shape],
        context: int,
        stage: int = structs.EXECUTE,
    ) -> None:
        self._operands = [_buffer(shape) for shape in operands]
        self._results = [_buffer(shape) for shape in results]
        self._takes = [buffer for buffer in self._operands if buffer.dtype != structs.TOKEN]
        self._returns = [buffer for buffer in self._results if buffer.dtype != structs.TOKEN]
        arrays = [shape for shape in operands if shape.is_array]
        self._dynamic = [buffer for buffer, shape in zip(self._takes, arrays, strict=True) if not shape.is_static]
        self._context = context
        # The structures hold addresses alone.
        self._keep: list[Any] = []
        self._frame = structs.CallFrame(
            api=ctypes.addressof(api()),
            ctx=context,
            stage=stage,
            args=_values(self._operands, self._keep),
            rets=_values(self._results, self._keep),
            attrs=attributes(call.attributes, self._keep),
        )
        # Handlers compare the size with that of the structure before futures.
        self._frame.struct_size = structs.CallFrame.future.offset

    def fill(
        self,
        operands: Sequence[np.ndarray[Any, Any]],
        results: Sequence[np.ndarray[Any, Any]],
        sizes: Sequence[Sequence[int]],
    ) -> None:
        """Put the arrays of a call in, and the sizes of those of dynamic shape."""
        for buffer, array in zip(self._takes, operands, strict=True):
            _fill(buffer, array)
        for buffer, array in zip(self._returns, results, strict=True):
            _fill(buffer, array)
        for buffer, dims in zip(self._dynamic, sizes, strict=True):
            for number, size in enumerate(dims):
                buffer.dims[number] = size

    def run(self, function: Any) -> Error | None:
        """Call the handler, and wait for its end; its error, if it failed."""
        self._frame.future = None
        failed = HANDLES.take(function(ctypes.addressof(self._frame)))
        if failed is None and self._frame.future:
            future = HANDLES.get(self._frame.future, Future)
            if future is not None:
                future.done.wait()
                failed = future.error
            HANDLES.take(self._frame.future)
        context = HANDLES.get(self._context, Context)
        if context is not None and context.memory:
            context.memory.clear()
        return failed if isinstance(failed, Error) else None


def _fill(buffer: Any, array: np.ndarray[Any, Any]) -> None:
    buffer.data = address(array)


def _buffer(shape: Shape) -> Any:
    if shape.element is None:
        return structs.Buffer(dtype=structs.TOKEN)
    dims = (c_int64 * max(shape.rank, 1))(*shape.dimensions)
    return structs.Buffer(
        dtype=structs.DATA_TYPES[shape.element.name], rank=shape.rank, dims=ctypes.cast(dims, POINTER(c_int64))
    )


def _values(buffers: Sequence[Any], keep: list[Any]) -> Any:
    count = len(buffers)
    types = (c_int * max(count, 1))(*[structs.BUFFER] * count)
    pointers = (c_void_p * max(count, 1))(*map(ctypes.addressof, buffers))
    keep += [types, pointers]
    return structs.Values(
        size=count, types=ctypes.cast(types, POINTER(c_int)), values=ctypes.cast(pointers, POINTER(c_void_p))
    )


def attributes(values: Mapping[str, Any], keep: list[Any]) -> Any:
    """A dictionary of attributes, sorted by name, for handlers search in it.

    Args:
        values: as of ``HostCall.attributes``.
        keep: receives what the structure points to.
    """
    entries = sorted((name.encode(), value) for name, value in values.items())
    count = len(entries)
    made = [_attribute(value, keep) for _, value in entries]
    names = [structs.ByteSpan(name, len(name)) for name, _ in entries]
    types = (c_int * max(count, 1))(*(kind for kind, _ in made))
    spans = (POINTER(structs.ByteSpan) * max(count, 1))(*map(ctypes.pointer, names))
    pointers = (c_void_p * max(count, 1))(*(ctypes.addressof(item) for _, item in made))
    keep += [made, names, types, spans, pointers]
    return structs.Attributes(
        size=count,
        types=ctypes.cast(types, POINTER(c_int)),
        names=ctypes.cast(spans, POINTER(POINTER(structs.ByteSpan))),
        attrs=ctypes.cast(pointers, POINTER(c_void_p)),
    )


def _attribute(value: Any, keep: list[Any]) -> tuple[int, Any]:
    """The kind of an attribute and its structure."""
    if isinstance(value, str):
        data = value.encode()
        return structs.STRING, structs.ByteSpan(data, len(data))
    if isinstance(value, Mapping):
        return structs.DICTIONARY, attributes(value, keep)
    array = np.ascontiguousarray(value)
    keep.append(array)
    dtype = structs.DATA_TYPES[element_type(array.dtype).name]
    if isinstance(value, np.generic):
        return structs.SCALAR, structs.Scalar(dtype, address(array))
    return structs.ARRAY, structs.Array(dtype, array.size, address(array))
