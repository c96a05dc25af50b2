"""The functions that a typed handler may call back: errors, state, scratch memory, threads, futures.

Handlers hold what they are given as opaque pointers. Here these are numbers, under which Python keeps the objects; a
number is never used twice, so that a stale one finds nothing. Source: XLA, ``xla/ffi/api/c_api.h``.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

import numpy as np

from hloforge.runtime.host import ffi_structs as structs

Item = TypeVar("Item")


@dataclass
class Error:
    """A handler's report of a failure."""

    code: int
    message: bytes

    def __str__(self) -> str:
        name = structs.CODES[self.code] if 0 <= self.code < len(structs.CODES) else str(self.code)
        return f"{name}: {self.message.decode(errors='replace')}"


@dataclass
class Context:
    """What belongs to one call site of a handler, in all of its calls.

    Attributes:
        state: the handler's own, by stage, with the type's number.
        run_id: counts the calls.
    """

    state: dict[int, tuple[int, int]] = field(default_factory=dict)
    memory: dict[int, np.ndarray[Any, Any]] = field(default_factory=dict)
    run_id: int = 0


@dataclass
class Future:
    """The end of a call that goes on when its handler has returned."""

    done: threading.Event = field(default_factory=threading.Event)
    error: Error | None = None


class Handles:
    """Objects by the numbers that represent them on the other side."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._objects: dict[int, Any] = {}

    def add(self, item: Any) -> int:
        number = next(self._numbers)
        self._objects[number] = item
        return number

    def get(self, number: int, kind: type[Item]) -> Item | None:
        """The object of a number, if it is of this kind."""
        found = self._objects.get(number)
        return found if isinstance(found, kind) else None

    def take(self, number: int | None) -> Any:
        """Forget a number, and return what it represented."""
        return self._objects.pop(number, None) if number else None


HANDLES = Handles()
# Numbers of users' types that nobody else has numbered.
TYPE_NUMBERS = itertools.count(1)


def _fail(code: int, message: str) -> int:
    return HANDLES.add(Error(code, message.encode()))


def _error_create(args: Any) -> int:
    return HANDLES.add(Error(args.errc, args.message or b""))


def _error_get_message(args: Any) -> int:
    error = HANDLES.get(args.error, Error)
    # The bytes live as long as the error does.
    args.message = error.message if error is not None else b""
    return 0


def _error_destroy(args: Any) -> int:
    HANDLES.take(args.error)
    return 0


def _refuse_registration(args: Any) -> int:
    return _fail(structs.UNIMPLEMENTED, "register handlers by hloforge.host.register")


def _refuse_stream(args: Any) -> int:
    return _fail(structs.UNIMPLEMENTED, "the host has no streams")


def _type_register(args: Any) -> int:
    """Number a type; a number that it brings along is kept."""
    args.type_id.contents.type_id = args.type_id.contents.type_id or next(TYPE_NUMBERS)
    return 0


def _context_get(args: Any) -> int:
    return _fail(structs.NOT_FOUND, "the call has no data of this type")


def _state_set(args: Any) -> int:
    context = HANDLES.get(args.ctx, Context)
    if context is None or args.stage in context.state:
        return _fail(structs.INTERNAL, "the state of this stage is set already")
    context.state[args.stage] = (args.type_id.contents.type_id, args.state)
    return 0


def _state_get(args: Any) -> int:
    context = HANDLES.get(args.ctx, Context)
    found = None if context is None else context.state.get(args.stage)
    if found is None or found[0] != args.type_id.contents.type_id:
        return _fail(structs.NOT_FOUND, "the handler has no state of this type: it needs an 'instantiate' stage")
    args.state = found[1]
    return 0


def _allocate(args: Any) -> int:
    """Scratch memory; what a handler does not free ends with its call."""
    context = HANDLES.get(args.ctx, Context)
    if context is None:
        return _fail(structs.INTERNAL, "unknown context")
    alignment = max(args.alignment, 1)
    memory = np.empty(args.size + alignment, np.uint8)
    start = memory.__array_interface__["data"][0]
    args.data = start + -start % alignment
    context.memory[args.data] = memory
    return 0


def _free(args: Any) -> int:
    context = HANDLES.get(args.ctx, Context)
    if context is not None:
        context.memory.pop(args.data, None)
    return 0


def _schedule(args: Any) -> int:
    """Run a task at once, as XLA's interface allows: a handler must not count on a second thread."""
    structs.Task(args.task)(args.data)
    return 0


def _thread_count(args: Any) -> int:
    args.num_threads[0] = 1
    return 0


def _future_create(args: Any) -> int:
    args.future = HANDLES.add(Future())
    return 0


def _future_set_available(args: Any) -> int:
    future = HANDLES.get(args.future, Future)
    if future is not None:
        future.done.set()
    return 0


def _future_set_error(args: Any) -> int:
    future = HANDLES.get(args.future, Future)
    if future is not None:
        future.error = HANDLES.take(args.error)
        future.done.set()
    return 0


def _run_id(args: Any) -> int:
    context = HANDLES.get(args.ctx, Context)
    args.run_id = 0 if context is None else context.run_id
    return 0


def _device_ordinal(args: Any) -> int:
    args.device_ordinal = 0
    return 0


_FUNCTIONS: dict[str, Callable[[Any], int]] = {
    "Error_Create": _error_create,
    "Error_GetMessage": _error_get_message,
    "Error_Destroy": _error_destroy,
    "Handler_Register": _refuse_registration,
    "Stream_Get": _refuse_stream,
    "Type_Register": _type_register,
    "ExecutionContext_Get": _context_get,
    "State_Set": _state_set,
    "State_Get": _state_get,
    "DeviceMemory_Allocate": _allocate,
    "DeviceMemory_Free": _free,
    "ThreadPool_Schedule": _schedule,
    "ThreadPool_NumThreads": _thread_count,
    "Future_Create": _future_create,
    "Future_SetAvailable": _future_set_available,
    "Future_SetError": _future_set_error,
    "RunId_Get": _run_id,
    "DeviceOrdinal_Get": _device_ordinal,
}


# Tables whose addresses handlers may keep. Threads that ask at once may each make one, of which ``cache`` keeps the
# last.
_KEPT: list[Any] = []


@cache
def api() -> Any:
    """The table of functions, one a process: handlers may keep its address."""
    table = structs.Api()
    table.api_version = structs.ApiVersion(major_version=structs.API_VERSION[0], minor_version=structs.API_VERSION[1])
    for name, function in _FUNCTIONS.items():
        setattr(table, name, structs.Function(_entry(structs.ARGUMENTS[name], function)))
    _KEPT.append(table)
    return table


def _entry(kind: type[structs.Sized], function: Callable[[Any], int]) -> Callable[[int], int]:
    def enter(pointer: int) -> int:
        return function(kind.from_address(pointer))

    return enter
