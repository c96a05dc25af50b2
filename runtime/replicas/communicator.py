"""The interface that moves arrays between the devices of a grid, and its implementation by threads.

A message goes from one device to another under a key that says what it is for; messages of one key arrive in the order
in which they were given. Giving never waits, and taking waits for all sources at once. Any collective can be made of
the two; for large arrays there is a third verb, combine, which moves every part once and copies nothing else. A wait
that nothing can end is an error that names what waits, and for whom:

- a source has ended its program, or failed;
- all devices wait, each for another one;
- the time is up.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from hloforge.dialect.errors import ExecutionError
from hloforge.pipelines.replicas.names import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL

Array: TypeAlias = np.ndarray[Any, Any]
Arrays: TypeAlias = Sequence[Array]
# Seconds that a device waits for another one, if nobody says.
TIMEOUT = 60.0
# The computations of reductions (``in_parts.PLAIN``); of booleans the last three alone.
_COMPUTE = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
# Elements of a part that are reduced at a time, so that what comes of two arrays is in the cache for the third.
_BLOCK = 64 * 1024


@dataclass(frozen=True)
class Combination:
    """A collective of all members of a group, whose position in it is the leading index of arrays that have blocks.

    Attributes:
        kind: ``all_gather`` (the result has the arrays of all as its blocks), ``all_to_all`` (block ``i`` is that of
            member ``i`` for this one), ``reduce_scatter`` (this one's blocks of all, reduced) or ``all_reduce``.
        group: the members, in order.
        computation: of the two that reduce; one of ``in_parts.PLAIN``.
    """

    kind: str
    group: tuple[int, ...]
    computation: str = ""


class Communicator(ABC):
    """One device's end of what connects the devices of a grid.

    Attributes:
        rank: the device's number.
        size: how many devices there are.
    """

    rank: int
    size: int

    @abstractmethod
    def give(self, target: int, key: str, arrays: Arrays) -> None:
        """Send arrays to a target; they are its own from here on."""

    @abstractmethod
    def take(self, sources: Sequence[int], key: str) -> list[Arrays]:
        """What each source gave under the key; waits for it.

        Raises:
            ExecutionError: it cannot come any more, or did not in time; names the key and who is missing.
        """

    @abstractmethod
    def combine(self, what: Combination, key: str, arrays: Arrays, results: Arrays) -> None:
        """Take part in a collective of a group that this device is a member of; waits for the others.

        Args:
            arrays: row-major; others may read them until this returns.
            results: receives the result for each array; row-major. All members of an ``all_reduce`` or ``all_gather``
                get the same bits.

        Raises:
            ExecutionError: as of ``take``.
        """


class Threads:
    """Devices that are threads of this process. Arrays are handed on as they are.

    Args:
        size: how many devices.
        timeout: seconds that one may wait for another; None for ever.
        name: what to call a device in messages.
    """

    def __init__(
        self, size: int, timeout: float | None = TIMEOUT, name: Callable[[int], str] = "device {}".format
    ) -> None:
        self._size, self._timeout, self._name = size, timeout, name
        self._changed = threading.Condition()
        self._boxes: dict[tuple[int, int, str], deque[Arrays]] = {}
        # What each device that waits is waiting for, and from whom.
        self._waiting: dict[int, tuple[str, list[int]]] = {}
        self._ended: dict[int, str] = {}

    def member(self, rank: int) -> Communicator:
        """The end of one device."""
        return _Thread(self, rank, self._size)

    def end(self, rank: int, how: str = "has ended") -> None:
        """Say that a device gives nothing more: it has ended, or failed, which stops those that wait for it."""
        with self._changed:
            self._ended[rank] = how
            self._changed.notify_all()

    def close(self) -> None:
        """Say that all devices here have ended: nobody takes anything any more."""

    def give(self, source: int, target: int, key: str, arrays: Arrays) -> None:
        with self._changed:
            self._boxes.setdefault((source, target, _bare(key)), deque()).append(arrays)
            self._changed.notify_all()

    def take(self, sources: Sequence[int], target: int, key: str) -> list[Arrays]:
        end = None if self._timeout is None else time.monotonic() + self._timeout
        with self._changed:
            self._waiting[target] = key, list(sources)
            # It may be the last one that others hoped for.
            self._changed.notify_all()
            while self._missing(target):
                self._check(target, end)
                self._changed.wait(None if end is None else max(end - time.monotonic(), 0))
            del self._waiting[target]
            return [self._taken(source, target, key) for source in sources]

    def _missing(self, device: int) -> list[int]:
        """Whose messages a device waits for that have not come."""
        key, sources = self._waiting.get(device, ("", []))
        return [source for source in sources if not self._boxes.get((source, device, _bare(key)))]

    def _taken(self, source: int, target: int, key: str) -> Arrays:
        box = self._boxes[source, target, _bare(key)]
        arrays = box.popleft()
        if not box:
            del self._boxes[source, target, _bare(key)]
        return arrays

    def _check(self, rank: int, end: float | None) -> None:
        """Raises ExecutionError if the wait of a device is in vain."""
        key, missing = self._waiting[rank][0], self._missing(rank)
        gone = [source for source in missing if source in self._ended]
        stuck = all(device in self._ended or self._missing(device) for device in range(self._size))
        late = end is not None and time.monotonic() >= end
        if not (gone or stuck or late):
            return
        why = "" if gone or stuck else f" after {self._timeout:g} s"
        raise ExecutionError(
            f"{self._name(rank)} waits in {key}{why} for {', '.join(map(self._name, missing))}",
            notes=tuple(f"{self._name(device)} {self._state(device)}" for device in missing),
            hint="every member of a group has to take part, in the same order",
        )

    def _state(self, device: int) -> str:
        if device in self._ended:
            return self._ended[device]
        return f"waits in {self._waiting[device][0]}" if device in self._waiting else "computes"


class _Thread(Communicator):
    def __init__(self, group: Threads, rank: int, size: int) -> None:
        self._group, self.rank, self.size = group, rank, size

    def give(self, target: int, key: str, arrays: Arrays) -> None:
        self._group.give(self.rank, target, key, arrays)

    def take(self, sources: Sequence[int], key: str) -> list[Arrays]:
        return self._group.take(sources, self.rank, key)

    def combine(self, what: Combination, key: str, arrays: Arrays, results: Arrays) -> None:
        place, count = what.group.index(self.rank), len(what.group)
        pieces = [[_piece(what.kind, array, member, count) for array in arrays] for member in range(count)]
        for result, *given in zip(results, *self._of_all(what, key, pieces), strict=True):
            if what.kind in (ALL_GATHER, ALL_TO_ALL):
                np.stack(given, out=result)
            else:
                _reduce(what.computation, given, part(result, place, count) if what.kind == ALL_REDUCE else result)
        if what.kind == ALL_REDUCE:
            own = [part(result, place, count) for result in results]
            for result, *made in zip(results, *self._of_all(what, key, [own] * count), strict=True):
                for other in set(range(count)) - {place}:
                    np.copyto(part(result, other, count), made[other])
        # Others still read this device's memory.
        self._of_all(what, key, [[]] * count)

    def _of_all(self, what: Combination, key: str, pieces: Sequence[Arrays]) -> list[Arrays]:
        """What each member has for this one, who gives ``pieces``; waits until all have come here."""
        others = [member for member in what.group if member != self.rank]
        for member, arrays in zip(what.group, pieces, strict=True):
            if member != self.rank:
                self.give(member, key, arrays)
        taken = dict(zip(others, self.take(others, key), strict=True))
        return [taken.get(member, arrays) for member, arrays in zip(what.group, pieces, strict=True)]


def _bare(key: str) -> str:
    """A key without the line that it names: processes may have the same program in other folders."""
    return key.partition(" at ")[0]


def _piece(kind: str, array: Array, member: int, members: int) -> Array:
    """What a member of a group needs of an array of another one."""
    if kind == ALL_REDUCE:
        return part(array, member, members)
    return array if kind == ALL_GATHER else array[member]


def part(array: Array, place: int, members: int) -> Array:
    """The part of an array's elements, in their row-major order, that a member of a group reduces; parts are as equal
    as they can be."""
    flat = array.reshape(-1)
    return flat[flat.size * place // members : flat.size * (place + 1) // members]


def _reduce(computation: str, arrays: Sequence[Array], result: Array) -> None:
    """The arrays combined element by element, the first two first."""
    compute, total = _COMPUTE[computation], result.reshape(-1)
    first, second, *others = [array.reshape(-1) for array in arrays]
    with np.errstate(all="ignore"):
        for start in range(0, total.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            compute(first[block], second[block], out=total[block])
            for other in others:
                compute(total[block], other[block], out=total[block])
