"""A program on a grid of replicas and partitions: each device a thread, or all folded into one program.

::

    program = hloforge.replicate(source, replicas=2)
    program(x)                 # an argument for each parameter, with a leading dimension of the devices; so the results

Every device runs the same vmfb in a session of its own. What it needs of others comes by a communicator, through the
host functions that ``lower-collectives`` calls. Device ``replica * partitions + partition`` is called by its number.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hloforge.dialect.errors import ArgumentError, Error
from hloforge.dialect.program import Signature
from hloforge.dialect.shapes import Shape
from hloforge.pipelines.replicas.grid import Grid
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.artifact.manifest import Manifest
from hloforge.runtime.devices.processor_shares import own_processors, share
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.replicas.border import Whole, border_of
from hloforge.runtime.replicas.calls import Device, check_grid, grid_of_manifest
from hloforge.runtime.replicas.communicator import TIMEOUT, Threads
from hloforge.runtime.session.convention import leaf_values, nest_results, result_leaves
from hloforge.runtime.session.feeds import Feeds, feed_functions
from hloforge.runtime.session.modules import read_manifest
from hloforge.runtime.session.session import Session, load
from hloforge.runtime.session.timed import TimedCall

if TYPE_CHECKING:
    from hloforge.runtime.replicas.mpi import Rank

Source: TypeAlias = str | PathLike[str] | bytes | Executable


@dataclass(frozen=True)
class Joint:
    """This process's part of a grid that several processes share.

    Attributes:
        ranks: the numbers in the grid of this process's devices.
        meet: what connects all devices for a run, of the program's name and the waiting time.
        place, devices: among those that share this process's processors, where its own begin; how many they are.
    """

    ranks: tuple[int, ...]
    meet: Callable[[str, float | None, Callable[[int], str]], Threads]
    place: int
    devices: int


class Replicas:
    """A program on all devices of a grid; one call at a time.

    Args:
        source: as of ``hloforge.load``; compiled with the same ``replicas``, ``partitions`` and ``fold_replicas``.
        replicas, partitions: the grid.
        folded: it is one program for all devices.
        timeout: seconds that a device waits for another, or for its host; None for ever.
        capacity: of the queues of its feeds; None for any number of items.
        joint: of which devices this process runs; of all without it. ``each_views`` alone serves such a grid.
        options: further arguments of ``hloforge.load``, for every session.

    Attributes:
        grid: the grid.
        feeds: the infeed, outfeed and channels of each device.
        signature: of the program of one device, if it is not folded; else with the leading dimension.

    Raises:
        LoadError: as ``hloforge.load``, or the program was compiled for another grid.
    """

    def __init__(
        self,
        source: Source,
        replicas: int = 1,
        partitions: int = 1,
        *,
        folded: bool = False,
        timeout: float | None = TIMEOUT,
        capacity: int | None = None,
        host: Mapping[str, Any] | None = None,
        joint: Joint | None = None,
        **options: Any,
    ) -> None:
        self.grid, self.folded, self._timeout = Grid(replicas, partitions), folded, timeout
        every = range(self.grid.devices)
        self.feeds = tuple(Feeds(capacity, timeout, self.grid.name(device)) for device in every)
        self._joint = joint
        self._ranks = tuple(every) if joint is None else joint.ranks
        self._devices = [] if folded else [Device(rank, self.grid, self.feeds) for rank in self._ranks]
        self._calling = threading.Lock()
        self._pool = ThreadPoolExecutor(len(self._ranks), "hloforge-replica")
        functions = [device.functions() for device in self._devices] or [feed_functions(self.feeds)]
        first, count = (0, len(functions)) if joint is None else (joint.place, joint.devices)
        places = range(first, first + len(functions))
        shares = [share(own_processors(), place, count, options) if count > 1 else options for place in places]
        self._sessions = [
            load_any(source, host={**own, **(host or {})}, **part) for own, part in zip(functions, shares, strict=True)
        ]
        check_grid(self.manifest, self.grid)
        self._border = border_of(self._sessions[0].signature, self.manifest.sharded, self.grid.devices)

    @property
    def device(self) -> str:
        """Where it runs, for messages."""
        return f"{self.grid}, each on {self._sessions[0].device}"

    @property
    def manifest(self) -> Manifest:
        """What the program's vmfb says of itself."""
        return self._sessions[0].manifest

    @property
    def signature(self) -> Signature:
        """The signature of a call: with a leading dimension of the devices, or the whole sharded program's."""
        return self._sessions[0].signature if self._takes_folded else self._border.signature

    @property
    def _takes_folded(self) -> bool:
        """Whether a call takes just what the folded program takes."""
        return self.folded and not isinstance(self._border, Whole)

    def __call__(self, *arguments: Any) -> Any:
        """Run all devices.

        Args:
            arguments: one a parameter, with a leading dimension of the devices: an array, or a list of arrays; a tuple
                of these for a parameter of tuple shape. Of a sharded program whole arrays, which are cut here.

        Returns:
            The results with a leading dimension of the devices, nested as the program's result; of a sharded program
            whole arrays, put together of the devices' parts.

        Raises:
            ArgumentError: as a session, or an argument for another number of devices.
            Exception: what the first device that failed raised.
        """
        if self._takes_folded:
            return self._sessions[0](*arguments)
        parts = self._border.split(arguments)
        return self._border.join(self._each_folded(parts) if self.folded else self.each(parts))

    def _each_folded(self, arguments: Sequence[Sequence[Any]]) -> list[Any]:
        """The results of each device from one call of the folded program."""
        own = self._sessions[0].signature
        columns = zip(*(leaf_values(own, each) for each in arguments), strict=True)
        parameters = Shape.tuple_of(*(parameter.shape for parameter in own.parameters))
        stacked = self._sessions[0](*nest_results(parameters, map(np.stack, columns)))
        rows = zip(*result_leaves(own.result, stacked), strict=True)
        return [nest_results(own.result, row) for row in rows]

    def each(self, arguments: Sequence[Sequence[Any]]) -> list[Any]:
        """Run all devices on arguments of their own; returns the results of each. Errors as of a call."""
        return self._each(arguments, [partial(_call, session) for session in self._sessions])

    def each_views(self, views: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """The same on IREE's buffer views, as ``Session.call_views`` takes them."""
        return self._each(views, [session.call_views for session in self._sessions])

    def each_views_timed(self, views: Sequence[Sequence[Any]]) -> list[TimedCall]:
        """The same as ``Session.call_views_timed``."""
        return self._each(views, [session.call_views_timed for session in self._sessions])

    def _each(self, arguments: Sequence[Sequence[Any]], calls: Sequence[Callable[[Sequence[Any]], Any]]) -> list[Any]:
        """Call each device's program with its arguments."""
        count = len(self._ranks)
        if len(arguments) != count:
            raise ArgumentError(f"arguments are for {len(arguments)} devices, but {count} run")
        if self.folded:
            raise ArgumentError(
                "the devices of a folded program are called together", hint="call it with stacked arrays"
            )
        with self._calling:
            group = self._met()
            for device in self._devices:
                device.communicator = group.member(device.rank)
            for feeds in self.feeds:
                feeds.stop("")
            failures: list[tuple[int, BaseException]] = []
            tasks = [partial(call, own) for call, own in zip(calls, arguments, strict=True)]
            runs = [
                self._pool.submit(self._run, rank, task, group, failures)
                for rank, task in zip(self._ranks, tasks, strict=True)
            ]
            results = [run.result() for run in runs]
            group.close()
        if failures:
            rank, first = failures[0]
            if isinstance(first, Error):
                first.notes = (f"in {self.grid.name(rank)}", *first.notes)
            raise first
        return results

    def _met(self) -> Threads:
        """What connects all devices for a call."""
        if self._joint is None:
            return Threads(self.grid.devices, self._timeout, self.grid.name)
        return self._joint.meet(self.manifest.name, self._timeout, self.grid.name)

    def _run(
        self, device: int, call: Callable[[], Any], group: Threads, failures: list[tuple[int, BaseException]]
    ) -> Any:
        """One device's part of a call. Failures are kept in the order in which they happen."""
        try:
            result = call()
        except BaseException as error:
            failures.append((device, error))
            how = f"failed: {error.message if isinstance(error, Error) else error}"
            group.end(device, how)
            for feeds in self.feeds:
                feeds.stop(f"{self.grid.name(device)} {how}")
            return None
        group.end(device)
        return result


def _call(session: Session, arguments: Sequence[Any]) -> Any:
    return session(*arguments)


def load_any(source: Source, **options: Any) -> Session:
    """A session, also of a program that is compiled for the sizes of its calls and has no vmfb."""
    return source.load(**options) if isinstance(source, Executable) else load(source, **options)


def load_on_grid(
    source: Source, options: CompileOptions, *, mpi: bool = False, **loading: Any
) -> Session | Replicas | Rank:
    """A program as the command line runs it: a session, or one for each device that it was compiled for.

    Args:
        options: what it was compiled with; a vmfb that needs a grid says so itself.
        mpi: this process is one of several, a device each.
        loading: arguments of ``hloforge.load``.
    """
    made = grid_of_manifest(source.manifest if isinstance(source, Executable) else read_manifest(source))
    # With processes, options that name no grid are those of a replica a process.
    grid = made if made is not None and (mpi or options.grid.devices == 1) else options.grid
    if mpi:
        from hloforge.runtime.replicas.mpi import Rank

        return Rank(source, grid.replicas, grid.partitions, **loading)
    if grid.devices == 1:
        return load_any(source, **loading)
    return Replicas(source, grid.replicas, grid.partitions, folded=options.fold_replicas, **loading)
