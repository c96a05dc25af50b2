"""The functions of the host that a device of a grid calls: its numbers, collectives and transfers by a communicator.

``lower-collectives`` and ``lower-feeds`` make the calls, and describe in their attributes who takes part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from hloforge.dialect.errors import LoadError
from hloforge.dialect.host_calls import HostCall
from hloforge.dialect.marks import COMBINE, GATHER, MOVE, RECV, SEND
from hloforge.dialect.shapes import Shape
from hloforge.pipelines.replicas.grid import Grid
from hloforge.pipelines.replicas.names import ALL_GATHER, NOBODY, NUMBERS, REDUCE_SCATTER
from hloforge.runtime.artifact.manifest import Manifest
from hloforge.runtime.devices.devices import apart
from hloforge.runtime.host.bindings import Bound, HostTarget, PythonFunction
from hloforge.runtime.replicas.communicator import Arrays, Combination, Communicator
from hloforge.runtime.session.arrays import Codec
from hloforge.runtime.session.feeds import Feeds, feed_functions


def grid_of_manifest(manifest: Manifest) -> Grid | None:
    """The grid that a program was compiled for; None if nothing in it depends on one."""
    if manifest.sharded:
        return Grid(1, manifest.sharded.devices)
    for call in manifest.host_calls:
        if call.target in (COMBINE, GATHER, MOVE, *NUMBERS.values()):
            ((replicas, partitions),) = np.asarray(call.attributes["grid"]).tolist()
            return Grid(replicas, partitions)
    return None


def check_grid(manifest: Manifest, grid: Grid) -> None:
    """Raises LoadError if a program was compiled for another grid than the one that is to run it."""
    made = grid_of_manifest(manifest) or grid
    if made != grid:
        raise LoadError(
            f"{manifest.name} was compiled for {made}, but is called on {grid}",
            hint="compile it again with --replicas and --partitions of the grid that runs it",
        )


@dataclass(frozen=True)
class _Refusal(HostTarget):
    """What represents communication in a session of its own."""

    def bind(self, call: HostCall, device: Any, check_lifetimes: bool = False) -> Bound:
        ((replicas, partitions),) = np.asarray(call.attributes["grid"]).tolist()
        grid = Grid(replicas, partitions)
        raise LoadError(
            f"the program runs on {grid} at once: each waits for the others",
            hint=f"run it with hloforge.replicate(…, replicas={replicas}, partitions={partitions}), or on the command "
            f"line with --replicas={replicas} --partitions={partitions}",
        )


@dataclass(frozen=True)
class _Memory:
    """Arrays in memory of IREE's device, which keeps what was released for others and aligns what programs use."""

    device: Any

    def empty(self, sizes: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        count = prod(sizes) * dtype.itemsize
        if not count:
            return np.empty(sizes, dtype)
        memory = Codec("memory", Shape.array("u8", count))
        array: np.ndarray[Any, Any] = np.ndarray(
            sizes, dtype, memory.physical(memory.allocate(self.device), apart(self.device))
        )
        return array

    def copy(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        copy = self.empty(array.shape, array.dtype)
        np.copyto(copy, array)
        return copy


@dataclass(frozen=True)
class _Exchange(HostTarget):
    """A function whose first argument is the memory for its results, which are the program's from then on."""

    function: Callable[..., Any]

    def bind(self, call: HostCall, device: Any, check_lifetimes: bool = False) -> Bound:
        function = partial(self.function, _Memory(device))
        # Another thread may let go of an operand a moment after the call.
        return PythonFunction(function, gives_away=True).bind(call, device, check_lifetimes=False)


def refusals() -> dict[str, HostTarget]:
    """Functions that refuse to load a program of several devices as if it were one of one."""
    return dict.fromkeys((COMBINE, GATHER, MOVE, *NUMBERS.values()), _Refusal())


class Device:
    """One device of a grid that runs a program of its own.

    Attributes:
        rank: its number.
        communicator: to the other devices, for the run under way.
    """

    def __init__(self, rank: int, grid: Grid, feeds: Sequence[Feeds] | Mapping[int, Feeds]) -> None:
        self.rank, self._grid, self._feeds = rank, grid, feeds
        self.communicator: Communicator | None = None

    def functions(self) -> dict[str, HostTarget]:
        """What its session binds."""
        own: dict[str, Callable[..., Any]] = {
            NUMBERS["stablehlo.replica_id"]: lambda **_: np.uint32(self._grid.replica_of(self.rank)),
            NUMBERS["stablehlo.partition_id"]: lambda **_: np.uint32(self._grid.partition_of(self.rank)),
        }
        shared: dict[str, Callable[..., Any]] = {
            COMBINE: self._combine,
            GATHER: self._gather,
            MOVE: self._move,
            SEND: self._send,
            RECV: self._recv,
        }
        return (
            feed_functions(self._feeds, self.rank)
            | {name: PythonFunction(function) for name, function in own.items()}
            | {name: _Exchange(function) for name, function in shared.items()}
        )

    def _gather(self, memory: _Memory, *arrays: Any, groups: Any, **what: Any) -> tuple[Any, ...]:
        """The operands of all members of this device's group, operand by operand; its place, and how many they are."""
        group = self._group(groups)
        others = [member for member in group if member != self.rank]
        given: dict[int, Arrays] = dict(zip(others, self._exchange(memory, what, others, others, arrays), strict=True))
        given[self.rank] = arrays
        # Short groups are filled up; their size says what counts.
        members = [given[member] for member in group] + [arrays] * (groups.shape[1] - len(group))
        place = np.array([group.index(self.rank), len(group)], np.int32)
        return *(member[number] for number in range(len(arrays)) for member in members), place

    def _combine(self, memory: _Memory, *arrays: Any, kind: str, computation: str, groups: Any, **what: Any) -> Any:
        """A collective of this device's group, by the communicator."""
        assert self.communicator is not None  # set before a session runs
        group = self._group(groups)
        results = tuple(memory.empty(_combined_sizes(kind, array.shape, len(group)), array.dtype) for array in arrays)
        self.communicator.combine(Combination(kind, tuple(group), computation), key_of(what), arrays, results)
        return results[0] if len(results) == 1 else results

    def _group(self, groups: Any) -> list[int]:
        """The members of this device's group."""
        rows = [[member for member in row if member != NOBODY] for row in groups.tolist()]
        return next(row for row in rows if self.rank in row)

    def _move(self, memory: _Memory, *arrays: Any, sources: Any, **what: Any) -> Any:
        """The operands of this device's source, or zeros."""
        (row,) = sources.tolist()
        source = row[self.rank]
        targets = [device for device, other in enumerate(row) if other == self.rank != device]
        brought = self._exchange(memory, what, [source] if source not in (NOBODY, self.rank) else [], targets, arrays)
        own = arrays if source == self.rank else [np.zeros_like(array) for array in arrays]
        results = brought[0] if brought else own
        return results[0] if len(results) == 1 else tuple(results)

    def _send(self, memory: _Memory, array: Any, *, sources: Any = None, **what: Any) -> None:
        """Give an array to the devices that receive of this one, or to the channel."""
        if sources is None:
            self._feeds[self.rank].channel(what["channel"]).put(array.copy())
            return
        (row,) = sources.tolist()
        targets = [device for device, source in enumerate(row) if source == self.rank]
        self._exchange(memory, _transfer(what), [], targets, [array])

    def _recv(self, memory: _Memory, *nothing: Any, sources: Any = None, **what: Any) -> Any:
        """The array that this device's source sends, ``nothing`` if it has none; or what comes by the channel."""
        if sources is None:
            return np.array(self._feeds[self.rank].channel(what["channel"]).get())
        source = sources.tolist()[0][self.rank]
        return nothing[0] if source == NOBODY else self._exchange(memory, _transfer(what), [source], [], [])[0][0]

    def _exchange(
        self, memory: _Memory, what: Mapping[str, Any], sources: Sequence[int], targets: Sequence[int], arrays: Arrays
    ) -> list[Arrays]:
        """Give arrays to the targets, and take what the sources give in the same operation."""
        assert self.communicator is not None  # set before a session runs
        for target in targets:
            # Their memory is the program's, which goes on; and a target may write into what it gets.
            self.communicator.give(target, key_of(what), [memory.copy(array) for array in arrays])
        return self.communicator.take(sources, key_of(what)) if sources else []


def _combined_sizes(kind: str, sizes: tuple[int, ...], members: int) -> tuple[int, ...]:
    """The sizes of a collective's result, of those of its operand."""
    if kind == ALL_GATHER:
        return (members, *sizes)
    return sizes[1:] if kind == REDUCE_SCATTER else sizes


def _transfer(what: Mapping[str, Any]) -> dict[str, Any]:
    """Both sides of a transfer by one name."""
    return {"operation": "send/recv", "channel": what["channel"]}


def key_of(what: Mapping[str, Any]) -> str:
    """The name of an operation, for messages and to tell messages apart."""
    number = f" number {what['number']}" if "number" in what else ""
    channel = f" on channel {what['channel']}" if what["channel"] else ""
    return f"{what['operation']}{number}{channel}{f' at {where}' if (where := what.get('at')) else ''}"
