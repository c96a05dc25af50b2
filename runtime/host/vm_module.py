"""The VM module ``host`` of a session: what a compiled program imports, bound to functions of the host."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, cast

import numpy as np

from hloforge.dialect.host_calls import MODULE, TABLE, HostCall, import_name
from hloforge.dialect.shapes import Shape
from hloforge.runtime.devices.devices import rt
from hloforge.runtime.host.bindings import Bound, HostTarget, arrays_of
from hloforge.runtime.host.host import find_all
from hloforge.runtime.session.arrays import Codec

# As ``kernel_program`` says: the function by which kernels call the host, and the table that has its address.
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_void_p)
_TABLE = Codec("the table of the host", Shape.array("s64", 1))


class _Raised(threading.local):
    """The exception that a host function raised in this thread; IREE only hands on its text."""

    error: BaseException | None = None


_raised = _Raised()


def take_raised() -> BaseException | None:
    """What a host function raised during the call of this thread that failed, if it was that."""
    error, _raised.error = _raised.error, None
    return error


def check_raised() -> None:
    """Raise what a host function raised during the call of this thread, if it did."""
    if _raised.error is not None:
        # No frame of its traceback names it.
        raise cast(BaseException, take_raised())


def hand_over(error: BaseException | None) -> None:
    """Make what a host function raised in another thread that of this thread's call."""
    _raised.error = error


class HostModule:
    """The host functions of one session.

    Args:
        calls: the records of the program's imports, by their numbers.
        targets: the function that each is bound to.
        device: the session's.
        check_lifetimes: as of ``HostTarget.bind``.

    Attributes:
        table: for kernels of our own (``kernel_program``), which call functions by their numbers.
        module: for the session's context, before the program. It refers to this object weakly: a function may refer to
            the session, and Python's collector does not see through IREE's objects.
    """

    def __init__(
        self, calls: Sequence[HostCall], targets: Sequence[HostTarget], device: Any, check_lifetimes: bool = False
    ) -> None:
        # Targets own the code that is bound by its address.
        self._targets = tuple(targets)
        self._bound = [target.bind(call, device, check_lifetimes) for call, target in zip(calls, targets, strict=True)]
        interface = rt.PyModuleInterface(MODULE, _no_state)
        for number, call in enumerate(calls):
            takes, returns = arrays_of(call.operand_leaves), arrays_of(call.result_leaves)
            entry = _entry(weakref.ref(self), number, len(returns))
            interface.export(import_name(number), f"0{'r' * len(takes) or 'v'}_{'r' * len(returns) or 'v'}", entry)
        self._function = _FUNCTION(_entry_of_kernels(weakref.ref(self)))
        self.table = np.array([ctypes.cast(self._function, ctypes.c_void_p).value], np.int64)
        view = _TABLE.copy_in(self.table, device)
        interface.export(TABLE, "0v_r", lambda _: view.ref)
        self.module = interface.create()

    def bound(self, number: int) -> Bound:
        """The function of an import."""
        return self._bound[number]


@dataclass(frozen=True)
class Host:
    """Where a session looks its host functions up.

    Attributes:
        functions: its own, by name, in any form that ``hloforge.host.register`` takes; before registered ones.
        libraries: shared libraries, for names that are found nowhere else.
        check_lifetimes: as of ``HostTarget.bind``.
    """

    functions: Mapping[str, Any] = field(default_factory=dict)
    libraries: tuple[str | PathLike[str], ...] = ()
    check_lifetimes: bool = False

    def module(self, calls: Sequence[HostCall], device: Any) -> HostModule | None:
        """The functions of a program; None if it calls none. Raises LoadError for names that are found nowhere."""
        if not calls:
            return None
        targets = find_all(calls, self.functions, self.libraries)
        return HostModule(calls, targets, device, self.check_lifetimes)


def _no_state(_: Any) -> None:
    """IREE asks for the state of a module in each context; ours has none."""


def _entry(here: weakref.ref[HostModule], number: int, results: int) -> Any:
    """What IREE calls for an import."""

    def call(_: Any, *refs: Any) -> Any:
        module = here()
        assert module is not None  # its session waits for this call
        try:
            views = module.bound(number).on_views([ref.deref(rt.HalBufferView) for ref in refs])
        except BaseException as error:
            _raised.error = error
            raise
        if results == 1:
            return views[0].ref
        return tuple(view.ref for view in views) if results else None

    return call


def _entry_of_kernels(here: weakref.ref[HostModule]) -> Any:
    """What kernels call, in the thread of the program's call: a number of 0 if the function has not failed."""

    def call(number: int, arrays: int) -> int:
        try:
            module = here()
            assert module is not None  # its session waits for this call
            bound = module.bound(number)
            count, more = len(bound.takes), len(bound.returns)
            addresses = list((ctypes.c_size_t * (count + more)).from_address(arrays)) if count + more else []
            operands = [codec.at(address) for codec, address in zip(bound.takes, addresses)]  # noqa: B905
            results = [codec.at(address) for codec, address in zip(bound.returns, addresses[count:])]  # noqa: B905
            bound.in_memory(operands, results)
        except BaseException as error:
            _raised.error = error
            return 1
        return 0

    return call
