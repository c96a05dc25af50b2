"""Several processes that ``jax.distributed.initialize`` has joined: one mesh of the devices of all of them.

When JAX makes the client, each process tells the others by JAX's coordination service how many devices it has and where
it listens; arrays go from process to process by TCP.
"""

from __future__ import annotations

import itertools
import json
import os
import platform as machine
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hloforge.runtime.devices.processor_shares import own_processors
from hloforge.runtime.replicas.communicator import Threads
from hloforge.runtime.replicas.communicator_tcp import Address, Peers, Run
from hloforge.runtime.replicas.replicas import Joint

# Seconds for all processes to come.
_PATIENCE = 300
# Seconds that a device waits for another one, whose process may still compile or read files; one that is gone is
# noticed at once.
TIMEOUT = 1800.0
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_clients = itertools.count()


@dataclass(frozen=True)
class World:
    """All processes, as one of them knows them.

    Attributes:
        process: its number.
        counts: of the devices of each process; they are numbered one process after the other.
        peers: the connections to the others.
        place, sharing: among the devices of processes that have the same processors, where its own begin; how many
            they are.
    """

    process: int
    counts: tuple[int, ...]
    peers: Peers
    place: int
    sharing: int

    def joint(self, devices: Sequence[int]) -> Joint | None:
        """This process's part of some devices; None if all of them are its own."""
        owners = [process for process, count in enumerate(self.counts) for _ in range(count)]
        processes = [owners[device] for device in devices]
        ranks = tuple(rank for rank, process in enumerate(processes) if process == self.process)
        if len(ranks) == len(processes):
            return None
        return Joint(ranks, partial(self._meet, tuple(devices), processes), self.place, self.sharing)

    def _meet(
        self,
        devices: Sequence[int],
        processes: Sequence[int],
        program: str,
        timeout: float | None,
        name: Callable[[int], str],
    ) -> Threads:
        return Run(self.peers, program, devices, processes, timeout, name)


_world: World | None = None


def world() -> World | None:
    """All processes, once they are joined."""
    return _world


def join(state: Any, devices: int) -> World:
    """Tell the other processes of this one's devices, and wait for them; each client that JAX makes has to.

    Args:
        state: as of ``backend.joined_processes``.
        devices: how many this process has.

    Raises:
        RuntimeError: one does not come, or cannot be reached.
    """
    global _world
    leave()
    peers = Peers(state.process_id, _own_host(state.coordinator_address))
    place = f"hloforge/{next(_clients)}"
    own = {
        "address": peers.address.to_json(),
        "devices": devices,
        "processors": [_machine(), *own_processors()],
    }
    state.client.key_value_set(f"{place}/{state.process_id}", json.dumps(own))
    told = [_told(state.client, f"{place}/{process}", process) for process in range(state.num_processes)]
    others = {process: Address(**one["address"]) for process, one in enumerate(told) if process != state.process_id}
    try:
        peers.connect(others)
    except OSError as error:
        raise RuntimeError(f"hloforge cannot connect the processes of jax.distributed: {error}") from None
    sharing = [process for process, one in enumerate(told) if one["processors"] == own["processors"]]
    before = sum(told[process]["devices"] for process in sharing if process < state.process_id)
    counts = tuple(one["devices"] for one in told)
    _world = World(state.process_id, counts, peers, before, sum(counts[process] for process in sharing))
    return _world


def leave() -> None:
    """This process runs no more programs."""
    global _world
    if _world is not None:
        _world.peers.end()
        _world = None


def _told(client: Any, key: str, process: int) -> Any:
    try:
        return json.loads(client.blocking_key_value_get(key, _PATIENCE * 1000))
    except Exception as error:
        raise RuntimeError(
            f"process {process} of jax.distributed did not start hloforge within {_PATIENCE} s ({error}): it has to be "
            "the platform of all processes"
        ) from None


def _own_host(coordinator: str) -> str:
    """The address of this machine on the way to the coordinator, by which other processes reach it, too."""
    host, _, port = coordinator.rpartition(":")
    (family, kind, protocol, _, there), *_ = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)
    with socket.socket(family, kind, protocol) as asking:
        asking.connect(there)
        own: str = asking.getsockname()[0]
        return own


def _machine() -> str:
    return _BOOT.read_text().strip() if _BOOT.exists() else f"{machine.node()} {os.cpu_count()}"
