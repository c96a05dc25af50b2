"""Devices of several processes, on one machine or several, that know each other's addresses: joined by TCP.

Each two processes have one connection. A message on it is a head (a line of JSON: which run of which devices, from whom
to whom, under which key, and what arrays follow) and the arrays' bytes. A thread for each connection reads whatever
comes, so that writing never waits for long; messages of a run that has not begun here wait for it. Within a process
devices are threads that hand on arrays as they are.

Processes run the same programs on the same devices in the same order, as JAX demands: the first run of some devices is
the first one everywhere. A message tells its program, so that another order is an error, not a wrong number. A process
that ends closes its connections, however it ends, and whoever waits for it hears of it at once.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np

from hloforge.dialect.errors import ExecutionError
from hloforge.runtime.replicas.communicator import Arrays, Threads
from hloforge.runtime.replicas.messages import bytes_of, described, empty

_LENGTH = struct.Struct("!I")
# Of a head in bytes: that of a stranger is not read.
_LONGEST_HEAD = 1 << 20
# Seconds after which a machine that says nothing any more is asked, is asked again, and how often.
_IDLE, _AGAIN, _TIMES = 10, 5, 4
# Seconds for what is still on its way when this process ends, or begins.
_GRACE, _BEGINNING = 5.0, 300.0
_LOST = "has ended, was killed, or its connection is lost"
# The devices of a run, and which run of them it is.
_Number: TypeAlias = tuple[str, int]


@dataclass(frozen=True)
class Address:
    """Where a process listens, and what shows that a caller was told so."""

    host: str
    port: int
    secret: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Peers:
    """The connections of this process.

    Args:
        process: its number among all.
        host: its address, by which others reach it.

    Attributes:
        address: to be told to all others, before ``connect``.
    """

    def __init__(self, process: int, host: str) -> None:
        self.process = process
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listening = socket.create_server((host, 0), family=family, backlog=256)
        self.address = Address(host, self._listening.getsockname()[1], secrets.token_hex(16))
        self._changed = threading.Condition()
        self._connections: dict[int, socket.socket] = {}
        self._writing: dict[int, threading.Lock] = {}
        self._lost: set[int] = set()
        self._runs: dict[_Number, Run] = {}
        # What came for runs that have not begun here; how many of the same devices have begun, and have ended.
        self._early: dict[_Number, list[tuple[int, dict[str, Any], Arrays]]] = {}
        self._begun: dict[str, int] = {}
        self._closed: dict[str, int] = {}
        self._readers: list[threading.Thread] = []

    def connect(self, others: Mapping[int, Address]) -> None:
        """Call the processes of smaller numbers, and let those of larger ones call.

        Raises:
            OSError: one cannot be reached.
        """
        self._thread(self._accept, sum(other > self.process for other in others))
        for other, address in others.items():
            if other < self.process:
                connection = socket.create_connection((address.host, address.port), _BEGINNING)
                connection.sendall(f"{address.secret}{self.process:08}".encode())
                self._add(other, connection)

    def _accept(self, count: int) -> None:
        """Take the calls of other processes; strangers are sent away."""
        while count:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with contextlib.suppress(OSError, ValueError):
                connection.settimeout(_GRACE)
                greeting = _read(connection, len(self.address.secret) + 8).tobytes().decode("ascii", "replace")
                if hmac.compare_digest(greeting[:-8].encode(), self.address.secret.encode()):
                    self._add(int(greeting[-8:]), connection)
                    count -= 1
                    continue
            connection.close()
        self._listening.close()

    def _add(self, other: int, connection: socket.socket) -> None:
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (("TCP_KEEPIDLE", _IDLE), ("TCP_KEEPINTVL", _AGAIN), ("TCP_KEEPCNT", _TIMES)):
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        with self._changed:
            self._connections[other], self._writing[other] = connection, threading.Lock()
            self._changed.notify_all()
        self._readers.append(self._thread(self._read_all, other, connection))

    def _thread(self, function: Callable[..., None], *arguments: Any) -> threading.Thread:
        thread = threading.Thread(target=function, args=arguments, name="hloforge-peer", daemon=True)
        thread.start()
        return thread

    def _read_all(self, other: int, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, EOFError, ValueError):
            while True:
                (length,) = _LENGTH.unpack(_read(connection, _LENGTH.size))
                if length > _LONGEST_HEAD:
                    break
                head = json.loads(_read(connection, length).tobytes())
                arrays = [empty(name, sizes) for name, sizes in head["arrays"]]
                for array in arrays:
                    _fill(connection, bytes_of(array).data)
                self._deliver(other, head, arrays)
        with self._changed:
            self._lost.add(other)
            runs = list(self._runs.values())
        for run in runs:
            run.lose(other, _LOST)

    def _deliver(self, other: int, head: dict[str, Any], arrays: Arrays) -> None:
        devices, number = head["run"]
        with self._changed:
            run = self._runs.get((devices, number))
            if run is None:
                if number > self._closed.get(devices, 0):
                    self._early.setdefault((devices, number), []).append((other, head, arrays))
                return
        run.receive(other, head, arrays)

    def send(self, other: int, head: dict[str, Any], arrays: Arrays) -> None:
        """Write a message.

        Raises:
            ExecutionError: the process is gone, or never came.
        """
        with self._changed:
            self._changed.wait_for(lambda: other in self._connections or other in self._lost, _BEGINNING)
            connection, writing = self._connections.get(other), self._writing.get(other)
        text = json.dumps(head | {"arrays": described(arrays)}).encode()
        try:
            if connection is None or writing is None:
                raise OSError("it is not connected")
            with writing:
                connection.sendall(_LENGTH.pack(len(text)) + text)
                for array in arrays:
                    if array.nbytes:
                        connection.sendall(bytes_of(np.ascontiguousarray(array)).data)
        except OSError as error:
            raise ExecutionError(f"process {other} cannot be reached: {error.strerror or error}") from None

    def begin(self, run: Run, devices: str) -> _Number:
        """The number of a run of some devices, which gets what came for it."""
        with self._changed:
            number = devices, self._begun.get(devices, 0) + 1
            self._begun[devices] = number[1]
            self._runs[number] = run
            early, lost = self._early.pop(number, []), set(self._lost)
        for other, head, arrays in early:
            run.receive(other, head, arrays)
        for other in lost:
            run.lose(other, _LOST)
        return number

    def close(self, number: _Number) -> None:
        """A run has ended: what still comes for it is of no use."""
        with self._changed:
            self._runs.pop(number, None)
            self._closed[number[0]] = max(self._closed.get(number[0], 0), number[1])

    def end(self) -> None:
        """This process ends: others get all that it has written. What they still write is read for a while, because a
        connection that ends with something unread loses what is under way."""
        self._listening.close()
        with self._changed:
            connections = list(self._connections.values())
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
        until = time.monotonic() + _GRACE
        for reader in self._readers:
            reader.join(max(until - time.monotonic(), 0))


class Run(Threads):
    """One run of a program on the devices of several processes, as this process sees it.

    Args:
        peers: the connections.
        program: its name.
        devices: the numbers of the devices, in the order of the grid.
        processes: whose each of them is.
        timeout, name: as of ``Threads``.
    """

    def __init__(
        self,
        peers: Peers,
        program: str,
        devices: Sequence[int],
        processes: Sequence[int],
        timeout: float | None,
        name: Callable[[int], str],
    ) -> None:
        super().__init__(len(devices), timeout, name)
        self._peers, self._program, self._processes = peers, program, tuple(processes)
        self._others = sorted({*processes} - {peers.process})
        self._number = peers.begin(self, ",".join(map(str, devices)))

    def give(self, source: int, target: int, key: str, arrays: Arrays) -> None:
        process = self._processes[target]
        if process == self._peers.process:
            super().give(source, target, key, arrays)
            return
        self._send(process, {"source": source, "target": target, "key": key}, arrays)

    def end(self, rank: int, how: str = "has ended") -> None:
        super().end(rank, how)
        for other in self._others:
            # Who is gone needs no farewell.
            with contextlib.suppress(ExecutionError):
                self._send(other, {"source": rank, "how": how}, [])

    def close(self) -> None:
        self._peers.close(self._number)

    def _send(self, process: int, what: dict[str, Any], arrays: Arrays) -> None:
        self._peers.send(process, {"run": self._number, "program": self._program, **what}, arrays)

    def receive(self, process: int, head: dict[str, Any], arrays: Arrays) -> None:
        """What another process has sent for this run."""
        if head["program"] != self._program:
            self.lose(process, f"runs {head['program']}, and this process {self._program}: all run the same programs")
        elif "how" in head:
            super().end(head["source"], head["how"])
        else:
            super().give(head["source"], head["target"], head["key"], arrays)

    def lose(self, process: int, how: str) -> None:
        """Nothing more comes from the devices of a process."""
        for rank, other in enumerate(self._processes):
            if other == process and rank not in self._ended:
                super().end(rank, f"of process {process} {how}")


def _read(connection: socket.socket, size: int) -> memoryview:
    memory = memoryview(bytearray(size))
    _fill(connection, memory)
    return memory


def _fill(connection: socket.socket, memory: memoryview) -> None:
    """Raises EOFError at the end of a connection."""
    while memory:
        count = connection.recv_into(memory)
        if not count:
            raise EOFError
        memory = memory[count:]
