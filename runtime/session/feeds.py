"""What a program and its host exchange while it runs: infeed, outfeed, and channels, as queues of a session.

::

    session.feeds.infeed.put(batch)              # the next item that the program's Infeed takes
    session.feeds.infeed.extend(batches)         # taken from an iterable when the program asks
    for item in session.feeds.outfeed: ...       # what Outfeed gave, until it is closed
    session.feeds.channel(7).put(x)              # for the program's Recv on channel 7
    session.feeds.channel(7).get()               # what its Send on channel 7 sent

An item is a numpy array, or a tuple of them. Two sessions that share their feeds (``load(..., feeds=other.feeds)``)
exchange by their channels. Source: XLA "Infeed", "Outfeed", "Send", "Recv".
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from hloforge.dialect.errors import ExecutionError
from hloforge.dialect.marks import INFEED, OUTFEED, RECV, SEND
from hloforge.runtime.host.bindings import HostTarget, PythonFunction

# Seconds that a program or its host waits for the other, if nobody says.
TIMEOUT = 60.0


class ClosedError(ExecutionError):
    """A queue is closed, and empty."""


class Queue:
    """A line of items from one side to the other; safe from several threads.

    Args:
        name: what to call it in messages.
        capacity: how many items wait in it before ``put`` waits for one to be taken; None for any number.
        timeout: seconds that ``put`` and ``get`` wait; None for ever.
    """

    def __init__(self, name: str, capacity: int | None = None, timeout: float | None = TIMEOUT) -> None:
        self.name, self.capacity, self.timeout = name, capacity, timeout
        self._items: deque[Any] = deque()
        self._sources: deque[Iterator[Any]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._in_vain = ""

    def __len__(self) -> int:
        """The number of items in it, those of iterables left out."""
        return len(self._items)

    def put(self, item: Any, timeout: float | None = None) -> None:
        """Append an item, as soon as there is room.

        Raises:
            ClosedError: the queue is closed.
            ExecutionError: there was no room in time.
        """
        with self._changed:
            self._wait(self._has_room, timeout, "it is full, and no items are taken")
            if self._closed:
                raise ClosedError(f"{self.name} is closed")
            self._items.append(item)
            self._changed.notify_all()

    def extend(self, items: Iterable[Any]) -> None:
        """Append items that are taken from an iterable one by one, when the queue is empty."""
        with self._changed:
            if self._closed:
                raise ClosedError(f"{self.name} is closed")
            self._sources.append(iter(items))
            self._changed.notify_all()

    def get(self, timeout: float | None = None) -> Any:
        """Take the first item, as soon as there is one.

        Raises:
            ClosedError: the queue is closed, and empty.
            ExecutionError: there was none in time.
        """
        with self._changed:
            self._wait(lambda: bool(self._items) or self._draw(), timeout, "nothing is put into it")
            if not self._items:
                raise ClosedError(f"{self.name} is closed and empty")
            item = self._items.popleft()
            self._changed.notify_all()
            return item

    def close(self) -> None:
        """Take no more items; those that are in it can still be taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def stop(self, why: str) -> None:
        """Let waiting end at once, now and later, for what it waits for has failed; an empty ``why`` takes it back."""
        with self._changed:
            self._in_vain = why
            self._changed.notify_all()

    def __iter__(self) -> Iterator[Any]:
        """The items, until the queue is closed and empty."""
        while True:
            try:
                yield self.get()
            except ClosedError:
                return

    def _has_room(self) -> bool:
        return self.capacity is None or len(self._items) < self.capacity

    def _draw(self) -> bool:
        """Take an item from the iterables, if they have one."""
        while self._sources:
            for item in self._sources[0]:
                self._items.append(item)
                return True
            self._sources.popleft()
        return False

    def _wait(self, ready: Callable[[], bool], timeout: float | None, why: str) -> None:
        """Wait until it is ready or closed."""
        limit = self.timeout if timeout is None else timeout
        end = None if limit is None else time.monotonic() + limit
        while not ready() and not self._closed:
            if self._in_vain:
                raise ExecutionError(f"{self.name}: {why}, and {self._in_vain}")
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise ExecutionError(
                    f"{self.name}: {why} for {limit:g} s",
                    hint="both sides have to exchange as many items, in the same order; or wait longer: timeout=",
                )
            self._changed.wait(left)


class Feeds:
    """The queues of one device.

    Args:
        capacity: of each queue.
        timeout: of each queue, in seconds; None to wait for ever.
        name: of the device, in messages.

    Attributes:
        infeed: what the program's Infeed takes.
        outfeed: what its Outfeed gives.
    """

    def __init__(self, capacity: int | None = None, timeout: float | None = TIMEOUT, name: str = "") -> None:
        self._capacity, self._timeout = capacity, timeout
        self._suffix = f" of {name}" if name else ""
        self._channels: dict[int, Queue] = {}
        self._lock = threading.Lock()
        self.infeed, self.outfeed = self._queue("infeed"), self._queue("outfeed")

    def channel(self, number: int) -> Queue:
        """The queue of a channel, made when it is first asked for."""
        with self._lock:
            if number not in self._channels:
                self._channels[number] = self._queue(f"channel {number}")
            return self._channels[number]

    def close(self) -> None:
        """Close all queues: whoever waits for one is told, and iterations end."""
        for queue in self._queues():
            queue.close()

    def stop(self, why: str) -> None:
        """Let waiting for all queues end; as of ``Queue.stop``."""
        for queue in self._queues():
            queue.stop(why)

    def _queues(self) -> list[Queue]:
        with self._lock:
            return [self.infeed, self.outfeed, *self._channels.values()]

    def _queue(self, name: str) -> Queue:
        return Queue(name + self._suffix, self._capacity, self._timeout)


def feed_functions(feeds: Sequence[Feeds] | Mapping[int, Feeds], rank: int = 0) -> dict[str, HostTarget]:
    """The host functions of feeds and transfers.

    Args:
        feeds: by device. A folded program says which device each of its calls is for.
        rank: the device that runs the program, if it is not folded.
    """

    def of(device: int) -> Feeds:
        return feeds[rank if device < 0 else device]

    def infeed(*, device: int, **_: Any) -> Any:
        item = of(device).infeed.get()
        # One array is an item as well as the only member of a tuple.
        return item[0] if isinstance(item, tuple | list) and len(item) == 1 else item

    def outfeed(*arrays: Any, device: int, **_: Any) -> None:
        of(device).outfeed.put(arrays[0] if len(arrays) == 1 else arrays)

    def send(array: Any, *, channel: int, device: int, **_: Any) -> None:
        of(device).channel(channel).put(array)

    def recv(*, channel: int, device: int, **_: Any) -> Any:
        return of(device).channel(channel).get()

    # What goes into a queue stays there beyond the call.
    taken = {name: PythonFunction(function) for name, function in ((INFEED, infeed), (RECV, recv))}
    given = {name: PythonFunction(function, copies=True) for name, function in ((OUTFEED, outfeed), (SEND, send))}
    return {**taken, **given}
