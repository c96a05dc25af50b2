"""The VM module ``host`` of a session: what a compiled program imports, bound to functions of the host."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from hloforge.dialect.host_calls import MODULE, HostCall, import_name
from hloforge.runtime.devices.devices import rt
from hloforge.runtime.host.bindings import Bound, HostTarget, arrays_of
from hloforge.runtime.host.host import find_all


class _Raised(threading.local):
    """The exception that a host function raised in this thread; IREE only hands on its text."""

    error: BaseException | None = None


_raised = _Raised()


def take_raised() -> BaseException | None:
    """What a host function raised during the call of this thread that failed, if it was that."""
    error, _raised.error = _raised.error, None
    return error


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
            views = module.bound(number)([ref.deref(rt.HalBufferView) for ref in refs])
        except BaseException as error:
            _raised.error = error
            raise
        if results == 1:
            return views[0].ref
        return tuple(view.ref for view in views) if results else None

    return call
