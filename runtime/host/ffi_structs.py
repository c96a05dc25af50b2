"""The structures of XLA's typed FFI (C API 0.3) as ctypes. Source: XLA, ``xla/ffi/api/c_api.h``, which jaxlib ships."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any

API_VERSION = (0, 3)

# Stages of a handler.
INSTANTIATE, EXECUTE = 0, 3
# Kinds of operands, results and extensions.
BUFFER, METADATA = 1, 1
# Kinds of attributes.
ARRAY, DICTIONARY, SCALAR, STRING = 1, 2, 3, 4
TOKEN = 17

# XLA's numbers of element types.
_NUMBERED = """
    1 pred, 2 s8, 3 s16, 4 s32, 5 s64, 6 u8, 7 u16, 8 u32, 9 u64, 10 f16, 11 f32, 12 f64, 15 c64, 16 bf16, 18 c128,
    19 f8e5m2, 20 f8e4m3fn, 21 s4, 22 u4, 23 f8e4m3b11fnuz, 24 f8e5m2fnuz, 25 f8e4m3fnuz, 26 s2, 27 u2, 28 f8e4m3,
    29 f8e3m4, 32 f4e2m1fn, 33 f8e8m0fnu
"""
DATA_TYPES = {name: int(number) for number, name in (entry.split() for entry in _NUMBERED.split(","))}

# The names of the status codes of errors, by number.
CODES = (
    *("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS"),
    *("PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED"),
    *("INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"),
)
INTERNAL, UNIMPLEMENTED, NOT_FOUND = CODES.index("INTERNAL"), CODES.index("UNIMPLEMENTED"), CODES.index("NOT_FOUND")


class Sized(Structure):
    """A structure that begins with its own size and a list of extensions."""

    def __init__(self, *values: Any, **fields: Any) -> None:
        super().__init__(*values, **fields)
        self.struct_size = ctypes.sizeof(type(self))


def _sized(name: str, *fields: tuple[str, Any]) -> type[Sized]:
    """A structure of the API: size, extensions, fields."""
    return type(name, (Sized,), {"_fields_": [("struct_size", c_size_t), ("extension_start", c_void_p), *fields]})


class ByteSpan(Structure):
    """Bytes and their number."""

    _fields_ = (("ptr", c_char_p), ("len", c_size_t))


class Scalar(Structure):
    """A number of some element type."""

    _fields_ = (("dtype", c_int), ("value", c_void_p))


class Array(Structure):
    """Numbers of some element type."""

    _fields_ = (("dtype", c_int), ("size", c_size_t), ("data", c_void_p))


class TypeId(Structure):
    """The number of a user's type."""

    _fields_ = (("type_id", c_int64),)


ApiVersion = _sized("ApiVersion", ("major_version", c_int), ("minor_version", c_int))
Buffer = _sized("Buffer", ("dtype", c_int), ("data", c_void_p), ("rank", c_int64), ("dims", POINTER(c_int64)))
Values = _sized("Values", ("size", c_int64), ("types", POINTER(c_int)), ("values", POINTER(c_void_p)))
Attributes = _sized(
    "Attributes",
    ("size", c_int64),
    ("types", POINTER(c_int)),
    ("names", POINTER(POINTER(ByteSpan))),
    ("attrs", POINTER(c_void_p)),
)
CallFrame = _sized(
    "CallFrame",
    ("api", c_void_p),
    ("ctx", c_void_p),
    ("stage", c_int),
    ("args", Values),
    ("rets", Values),
    ("attrs", Attributes),
    ("future", c_void_p),
)
TypeInfo = _sized("TypeInfo", ("deleter", c_void_p))


class Metadata(Structure):
    """What a handler tells of itself."""

    _fields_ = (
        ("struct_size", c_size_t),
        ("api_version", ApiVersion),
        ("traits", c_uint32),
        ("state_type_id", TypeId),
    )


class MetadataExtension(Structure):
    """A call frame with this extension asks for metadata."""

    _fields_ = (
        ("struct_size", c_size_t),
        ("type", c_int),
        ("next", c_void_p),
        ("metadata", POINTER(Metadata)),
    )


# The arguments of the functions that handlers call, by name and in the order of the table of functions.
ARGUMENTS: dict[str, type[Sized]] = {
    "Error_Create": _sized("ErrorCreate", ("message", c_char_p), ("errc", c_int)),
    "Error_GetMessage": _sized("ErrorGetMessage", ("error", c_void_p), ("message", c_char_p)),
    "Error_Destroy": _sized("ErrorDestroy", ("error", c_void_p)),
    "Handler_Register": _sized("HandlerRegister"),
    "Stream_Get": _sized("StreamGet", ("ctx", c_void_p), ("stream", c_void_p)),
    "Type_Register": _sized(
        "TypeRegister", ("name", ByteSpan), ("type_id", POINTER(TypeId)), ("type_info", POINTER(TypeInfo))
    ),
    "ExecutionContext_Get": _sized("ContextGet", ("ctx", c_void_p), ("type_id", POINTER(TypeId)), ("data", c_void_p)),
    "State_Set": _sized(
        "StateSet", ("ctx", c_void_p), ("stage", c_int), ("type_id", POINTER(TypeId)), ("state", c_void_p)
    ),
    "State_Get": _sized(
        "StateGet", ("ctx", c_void_p), ("stage", c_int), ("type_id", POINTER(TypeId)), ("state", c_void_p)
    ),
    "DeviceMemory_Allocate": _sized(
        "Allocate", ("ctx", c_void_p), ("size", c_size_t), ("alignment", c_size_t), ("data", c_void_p)
    ),
    "DeviceMemory_Free": _sized("Free", ("ctx", c_void_p), ("size", c_size_t), ("data", c_void_p)),
    "ThreadPool_Schedule": _sized("Schedule", ("ctx", c_void_p), ("task", c_void_p), ("data", c_void_p)),
    "ThreadPool_NumThreads": _sized("NumThreads", ("ctx", c_void_p), ("num_threads", POINTER(c_int64))),
    "Future_Create": _sized("FutureCreate", ("future", c_void_p)),
    "Future_SetAvailable": _sized("FutureSetAvailable", ("future", c_void_p)),
    "Future_SetError": _sized("FutureSetError", ("future", c_void_p), ("error", c_void_p)),
    "RunId_Get": _sized("RunIdGet", ("ctx", c_void_p), ("run_id", c_int64)),
    "DeviceOrdinal_Get": _sized("DeviceOrdinalGet", ("ctx", c_void_p), ("device_ordinal", c_int32)),
}

# ``XLA_FFI_Error* function(Arguments*)``; a pointer to nothing is success. Destroy and GetMessage return nothing.
Function = ctypes.CFUNCTYPE(c_void_p, c_void_p)
Handler = ctypes.CFUNCTYPE(c_void_p, c_void_p)
Task = ctypes.CFUNCTYPE(None, c_void_p)

Api = _sized("Api", ("api_version", ApiVersion), ("internal_api", c_void_p), *((name, Function) for name in ARGUMENTS))
