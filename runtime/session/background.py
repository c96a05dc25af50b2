"""Calls that run in the background, one at a time or many in a row."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any


@cache
def _pool() -> ThreadPoolExecutor:
    """The threads of this process that wait for calls; IREE's VM runs without Python's lock."""
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="hloforge")


# A child of a fork has none of its parent's threads.
os.register_at_fork(after_in_child=_pool.cache_clear)


class PendingCall(Future[Any]):
    """A call in the background: a future that threads wait for by ``result()``, and coroutines by ``await``.

    A coroutine that is cancelled cancels the call, unless it has begun: what has begun runs to its end.
    """

    def __await__(self) -> Generator[Any, None, Any]:
        import asyncio  # who awaits has it; others need not load it

        return asyncio.wrap_future(self).__await__()

    def fulfil(self, function: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]) -> None:
        """Call the function and keep what it returns or raises; in the pool's thread."""
        if not self.set_running_or_notify_cancel():
            return
        try:
            result = function(*arguments, **named)
        except BaseException as error:
            self.set_exception(error)
        else:
            self.set_result(result)


class Background(ABC):
    """What can be called in the background as well."""

    @abstractmethod
    def __call__(self, *arguments: Any, **named: Any) -> Any: ...

    def submit(self, *arguments: Any, **named: Any) -> PendingCall:
        """A call in a thread of its own, as many at once as there are cores; the arguments are its until it ends.

        Returns:
            The future of what the call returns or raises; coroutines ``await`` it.
        """
        call = PendingCall()
        _pool().submit(call.fulfil, self, arguments, named)
        return call

    def map(self, calls: Iterable[Sequence[Any]]) -> Iterator[Any]:
        """The results of many calls, in order, as many at once as there are cores.

        Args:
            calls: the arguments of each. Twice as many as there are cores are taken ahead of the results that were
                asked for, so that any number of calls needs little memory.

        Raises:
            Exception: what a call raised, in its place; calls behind it that have not begun are dropped.
        """
        ahead = 2 * (os.cpu_count() or 1)
        waiting: deque[PendingCall] = deque()
        try:
            for arguments in calls:
                waiting.append(self.submit(*arguments))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
