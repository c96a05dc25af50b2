"""Devices that are processes of MPI, on one machine or several: ``mpiexec -n 4 hloforge run model.vmfb --mpi``.

A message is a header (its key, and what arrays follow) and the arrays' bytes, which MPI keeps in order for a source and
a tag. The tag is a digest of the key; headers tell keys of one digest apart. Giving does not wait: the arrays stay here
until MPI has read them. A device says when it has ended or failed. One that is killed says nothing: ``mpiexec`` then
ends the others, or their waits end by the timeout.

Collectives are MPI's own, between the arrays' memory, on a communicator of the group. They do not tell who is missing,
and would take one operation's arrays for another's: so members first tell each other by messages where they are. An
all_reduce is a reduce-scatter and an all-gather, so that all members have the same bits, which MPI's Allreduce only
recommends.

mpi4py and an MPI library are the extra ``mpi``. Source: MPI 4.1, "Point-to-Point Communication", "Collective
Communication" (nonblocking reduce-scatter, allgatherv, alltoall).
"""

from __future__ import annotations

import atexit
import json
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hloforge.dialect.errors import ExecutionError, LoadError
from hloforge.pipelines.replicas.names import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL
from hloforge.runtime.devices.processor_shares import own_processors, share
from hloforge.runtime.replicas.communicator import TIMEOUT, Array, Arrays, Combination, Communicator, part
from hloforge.runtime.replicas.messages import bytes_of, described, empty

# The least that MPI promises for the largest tag; messages under it say that a device has ended.
_FAREWELL = 32767
# Seconds between two looks at messages, at most: most waits are short, so that they begin without any.
_LONGEST_NAP = 1e-3
# Seconds for what is still on its way from a device that has ended.
_GRACE = 1.0
# Seconds for which a collective, whose members are all there, is looked at without rest: MPI moves data in these looks.
_SOON = 2.0
# MPI's names of the computations: of bits, of booleans, of numbers.
_OF_BITS = {"and": "BAND", "or": "BOR", "xor": "BXOR"}
_OF_BOOLEANS = {"and": "LAND", "or": "LOR", "xor": "LXOR"}
_OF_NUMBERS = {"add": "SUM", "multiply": "PROD", "maximum": "MAX", "minimum": "MIN"}


def world() -> Any:
    """All processes that ``mpiexec`` started.

    Raises:
        LoadError: there is no mpi4py, or no MPI library.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise LoadError(
            f"MPI is not available: {error}", hint="pip install 'hloforge[mpi]', in a clone '.[mpi]'"
        ) from None
    return MPI.COMM_WORLD


def share_of_machine(communicator: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of ``hloforge.load`` for this process's device, beside those of other processes on this machine.

    All processes have to call. A launcher that gave each processors of its own is obeyed.
    """
    from mpi4py import MPI

    near = communicator.Split_type(MPI.COMM_TYPE_SHARED)
    own, every = own_processors(), near.allgather(own_processors())
    place, count = (near.rank, near.size) if every.count(own) == near.size else (0, 1)
    alone = near.size == 1
    near.Free()
    return dict(options) if alone else share(own, place, count, options)


class Mpi(Communicator):
    """This process's end.

    Args:
        communicator: mpi4py's, as ``world`` gives it, of the processes that all make one of these.
        timeout: seconds that a device waits for another; None for ever.
        name: what to call a device in messages.

    Raises:
        ExecutionError: not all of them do, in time.
    """

    def __init__(
        self, communicator: Any, timeout: float | None = TIMEOUT, name: Callable[[int], str] = "device {}".format
    ) -> None:
        self.rank, self.size = communicator.rank, communicator.size
        self._timeout, self._name = timeout, name
        # Requests under way with the memory that MPI may still read.
        self._leaving: list[tuple[Any, Any]] = []
        # What came under a tag before it was asked for.
        self._early: dict[tuple[int, str], list[Arrays]] = {}
        self._ended: dict[int, str] = {}
        self._groups: dict[tuple[int, ...], Any] = {}
        # Its messages are not those of whoever else uses MPI.
        self._mpi, made = communicator.Idup()
        self._complete([made], "the beginning", "other processes", None)

    def give(self, target: int, key: str, arrays: Arrays) -> None:
        self._send(json.dumps([key, described(arrays)]).encode(), target, _tag(key))
        for array in arrays:
            if array.nbytes:
                self._send(bytes_of(np.ascontiguousarray(array)), target, _tag(key))

    def take(self, sources: Sequence[int], key: str) -> list[Arrays]:
        taken: dict[int, Arrays] = {}
        since_end = None
        for now in self._looks():
            for source in sources:
                if source not in taken and self._has(source, key):
                    taken[source] = self._early[source, key].pop(0)
            missing = [source for source in sources if source not in taken]
            if not missing:
                break
            since_end = (since_end or now) if self._gone(missing) else None
            late = self._timeout is not None and now > self._timeout
            if late or (since_end is not None and now > since_end + _GRACE):
                raise self._in_vain(key, missing)
        return [taken[source] for source in sources]

    def combine(self, what: Combination, key: str, arrays: Arrays, results: Arrays) -> None:
        others = [member for member in what.group if member != self.rank]
        for other in others:
            self.give(other, key, [])
        self.take(others, key)
        group = self._group(what.group)
        pairs = [(array, result) for array, result in zip(arrays, results, strict=True) if result.nbytes]
        with_whom = ", ".join(map(self._name, others))
        self._complete([_begin(group, what, array, result) for array, result in pairs], key, with_whom, pairs)
        if what.kind == ALL_REDUCE:
            self._complete([_spread(group, result) for _, result in pairs], key, with_whom, pairs)

    def _group(self, members: tuple[int, ...]) -> Any:
        """MPI's communicator of some devices, in their order; all of them have to ask for it."""
        if members == tuple(range(self.size)):
            return self._mpi
        if members not in self._groups:
            self._groups[members] = self._mpi.Create_group(self._mpi.group.Incl(members), _tag(str(members)))
        return self._groups[members]

    def _complete(self, requests: list[Any], key: str, with_whom: str, memory: Any) -> None:
        """Wait for collectives of MPI. They cannot be called off, so that memory which it may still use is kept."""
        from mpi4py import MPI

        start = time.monotonic()
        while not MPI.Request.Testall(requests):
            now = time.monotonic() - start
            if self._timeout is not None and now > self._timeout:
                atexit.register(_abort, requests, memory)
                raise ExecutionError(
                    f"{self._name(self.rank)} waits in {key} after {self._timeout:g} s for {with_whom}",
                    hint="a process has failed, was killed or stopped, or its connection is lost",
                )
            time.sleep(0 if now < _SOON else _LONGEST_NAP)

    def end(self, how: str = "has ended") -> None:
        """Say that this device gives nothing more, and wait until others have what it gave, or have ended as well."""
        for rank in range(self.size):
            if rank != self.rank:
                self._send(how.encode(), rank, _FAREWELL)
        for now in self._looks():
            self._leaving = [entry for entry in self._leaving if not entry[0].Test()]
            everybody = len(self._gone(range(self.size))) == self.size - 1
            if not self._leaving or everybody or now > (self._timeout or TIMEOUT):
                break

    def _send(self, memory: Any, target: int, tag: int) -> None:
        self._leaving = [entry for entry in self._leaving if not entry[0].Test()]
        self._leaving.append((self._mpi.Isend(memory, target, tag), memory))

    @staticmethod
    def _looks() -> Iterator[float]:
        """The seconds since the first look, whenever it is time for another one."""
        start, nap = time.monotonic(), 0.0
        while True:
            yield time.monotonic() - start
            time.sleep(nap)
            nap = min(1.1 * nap + 1e-7, _LONGEST_NAP)

    def _has(self, source: int, key: str) -> bool:
        """Whether a source has given something under a key; receives what came under its tag."""
        while not self._early.get((source, key)):
            header = self._received(source, _tag(key))
            if header is None:
                return False
            found, following = json.loads(header)
            arrays = [empty(name, sizes) for name, sizes in following]
            for array in arrays:
                self._fill(array, source, _tag(key))
            self._early.setdefault((source, found), []).append(arrays)
        return True

    def _received(self, source: int, tag: int) -> bytes | None:
        """A message of few bytes, if there is one."""
        from mpi4py import MPI

        status = MPI.Status()
        message = self._mpi.Improbe(source, tag, status)
        if message is None:
            return None
        content = bytearray(status.Get_count(MPI.BYTE))
        message.Recv(content)
        return bytes(content)

    def _fill(self, array: np.ndarray[Any, Any], source: int, tag: int) -> None:
        """Receive the bytes of an array, which follow their header."""
        if not array.nbytes:
            return
        request = self._mpi.Irecv(bytes_of(array), source, tag)
        for now in self._looks():
            if request.Test():
                return
            if self._timeout is not None and now > self._timeout:
                request.Cancel()
                raise ExecutionError(f"{self._name(source)} did not finish sending an array within {now:.0f} s")

    def _gone(self, devices: Sequence[int]) -> list[int]:
        """Those of some devices that have ended."""
        for source in devices:
            if source not in self._ended and source != self.rank:
                farewell = self._received(source, _FAREWELL)
                if farewell is not None:
                    self._ended[source] = farewell.decode()
        return [source for source in devices if source in self._ended]

    def _in_vain(self, key: str, missing: Sequence[int]) -> ExecutionError:
        gone = self._gone(missing)
        why = "" if gone else f" after {self._timeout:g} s"
        return ExecutionError(
            f"{self._name(self.rank)} waits in {key}{why} for {', '.join(map(self._name, missing))}",
            notes=tuple(f"{self._name(device)} {self._ended[device]}" for device in gone),
            hint="every member of a group has to take part, in the same order",
        )


def _abort(requests: list[Any], memory: Any) -> None:
    """End all processes: MPI would not end in this one, which takes part in what the others did not."""
    from mpi4py import MPI

    sys.stdout.flush()
    sys.stderr.flush()
    MPI.COMM_WORLD.Abort(1)


def _begin(group: Any, what: Combination, array: Array, result: Array) -> Any:
    """Begin a collective on the memory of two arrays; of an all_reduce the first half, which makes this one's part."""
    if what.kind == ALL_GATHER:
        return group.Iallgather(bytes_of(array), bytes_of(result))
    if what.kind == ALL_TO_ALL:
        return group.Ialltoall(bytes_of(array), bytes_of(result))
    own = part(result, group.rank, group.size) if what.kind == ALL_REDUCE else result.reshape(-1)
    counts = [part(array, place, group.size).size for place in range(group.size)]
    given, received, name = _as_mpi_computes(what.computation, array.reshape(-1), own)
    return group.Ireduce_scatter(given, received, counts, name)


def _spread(group: Any, result: Array) -> Any:
    """Begin the second half of an all_reduce: what each member has made of its part goes to all."""
    from mpi4py import MPI

    parts = [part(result, place, group.size) for place in range(group.size)]
    counts = [one.nbytes for one in parts]
    starts = [sum(counts[:place]) for place in range(group.size)]
    return group.Iallgatherv(MPI.IN_PLACE, [bytes_of(result), counts, starts, MPI.BYTE])


def _as_mpi_computes(computation: str, array: Array, result: Array) -> tuple[Array, Array, Any]:
    """Two arrays and MPI's operation. Signed integers wrap around as unsigned ones do, by which C is bound."""
    from mpi4py import MPI

    if computation in _OF_NUMBERS:
        if array.dtype.kind == "i" and computation in ("add", "multiply"):
            unsigned = np.dtype(f"u{array.dtype.itemsize}")
            array, result = array.view(unsigned), result.view(unsigned)
        return array, result, getattr(MPI, _OF_NUMBERS[computation])
    names = _OF_BOOLEANS if array.dtype.kind == "b" else _OF_BITS
    return array, result, getattr(MPI, names[computation])


def _tag(key: str) -> int:
    return zlib.crc32(key.encode()) % _FAREWELL
