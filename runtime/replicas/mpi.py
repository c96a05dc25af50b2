"""A program on the processes of MPI, a device each: what ``hloforge run --mpi`` runs.

::

    # mpiexec -n 2 python train.py
    device = hloforge.runtime.replicas.mpi.Rank("step.vmfb", replicas=2)
    result = device.own(w, x, y)           # this device's arguments and results
"""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hloforge.dialect.errors import Error, OptionError
from hloforge.dialect.program import Signature
from hloforge.pipelines.replicas.grid import Grid
from hloforge.runtime.artifact.manifest import Manifest
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.replicas.border import border_of
from hloforge.runtime.replicas.calls import Device, check_grid
from hloforge.runtime.replicas.communicator import TIMEOUT, Array
from hloforge.runtime.replicas.communicator_mpi import Mpi, share_of_machine, world
from hloforge.runtime.replicas.replicas import Source, load_any
from hloforge.runtime.session.convention import nest_results, result_leaves
from hloforge.runtime.session.feeds import Feeds

# The messages by which results, and what came out of feeds, go to the first device.
_RESULTS = "the results"
_NAMED = "what came out of its feeds"


class Rank:
    """This process's device of a program that all processes run.

    Args:
        source: as of ``hloforge.load``; compiled for the same grid.
        replicas, partitions: the grid; together as many as there are processes.
        timeout: seconds that a device waits for another, or for its host; None for ever.
        options: further arguments of ``hloforge.load``.

    Attributes:
        grid: the grid.
        rank: this device's number.
        feeds: its infeed, outfeed and channels.

    Raises:
        OptionError: there are more or fewer processes than devices.
        LoadError: as ``hloforge.load``; the program was compiled for another grid; there is no MPI.
    """

    def __init__(
        self, source: Source, replicas: int, partitions: int = 1, *, timeout: float | None = TIMEOUT, **options: Any
    ) -> None:
        self.grid = Grid(replicas, partitions)
        everyone = world()
        if everyone.size != self.grid.devices:
            raise OptionError(
                f"{self.grid} are {self.grid.devices} devices, and mpiexec started {everyone.size} processes",
                hint=f"mpiexec -n {self.grid.devices}, or --replicas={everyone.size}",
            )
        self.rank: int = everyone.rank
        self._communicator = Mpi(everyone, timeout, self.grid.name)
        self._ended = False
        # Before MPI ends, which waits for all processes; also if this one fails below.
        atexit.register(self.end)
        options = share_of_machine(everyone, options)
        self.feeds = Feeds(timeout=timeout, name=self.grid.name(self.rank))
        device = Device(self.rank, self.grid, {self.rank: self.feeds})
        device.communicator = self._communicator
        self._session = load_any(source, host={**device.functions(), **options.pop("host", {})}, **options)
        check_grid(self._session.manifest, self.grid)
        self._border = border_of(self._session.signature, self._session.manifest.sharded, self.grid.devices)

    @property
    def device(self) -> str:
        """Where it runs, for messages."""
        return f"{self.grid}, each a process on {self._session.device}"

    @property
    def manifest(self) -> Manifest:
        """What the program's vmfb says of itself."""
        return self._session.manifest

    @property
    def signature(self) -> Signature:
        """The signature of a call, as of ``Replicas``."""
        return self._border.signature

    def own(self, *arguments: Any) -> Any:
        """Run this device; all processes have to call. Arguments, results and errors as of a session."""
        try:
            return self._session(*arguments)
        except BaseException as error:
            self.end(f"failed: {error.message if isinstance(error, Error) else error}")
            raise

    def __call__(self, *arguments: Any) -> Any:
        """Run this device on its part of the arguments of all, as of ``Replicas``; all processes have to.

        Returns:
            On the first device the results of all; None on others.
        """
        result = self.own(*self._border.split(arguments)[self.rank])
        shape = self._session.signature.result
        own = [np.array(leaf) for leaf in result_leaves(shape, result)]
        if self.rank:
            self._communicator.give(0, _RESULTS, own)
            return None
        others = self._communicator.take(range(1, self.grid.devices), _RESULTS)
        return self._border.join([nest_results(shape, leaves) for leaves in (own, *others)])

    def to_first(self, named: Sequence[tuple[str, Array]]) -> list[tuple[str, Array]]:
        """Named arrays of all devices, in the devices' order, on the first one; nothing on others. All processes have
        to call. Errors as of the communicator."""
        if self.rank:
            names = np.frombuffer("\n".join(name for name, _ in named).encode(), np.uint8)
            self._communicator.give(0, _NAMED, [names, *(array for _, array in named)])
            return []
        found = list(named)
        for names, *arrays in self._communicator.take(range(1, self.grid.devices), _NAMED):
            found += zip(names.tobytes().decode().split("\n"), arrays, strict=False)
        return found

    def end(self, how: str = "has ended") -> None:
        """Tell the others, once, that this device runs no more; what it sent has arrived then."""
        if not self._ended:
            self._ended = True
            self._communicator.end(how)


def with_all_processes(options: CompileOptions) -> CompileOptions:
    """Options for a replica a process, if they say nothing of replicas."""
    return replace(options, replicas=world().size // options.partitions) if options.replicas == 1 else options
