"""Calls of programs of our own code generator without IREE's runtime: arrays where they lie, no copies, no buffers.

The vmfb holds all that is needed: machine code, constants, and which kernels run on what (``schedule_file``). It is for
programs that run in the caller's thread, as a vmfb's kernels do on IREE's ``local-sync``; the rest is IREE's.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from hloforge.runtime.data.aligned import aligned_bytes
from hloforge.runtime.data.integrity import DAMAGE
from hloforge.runtime.data.stored_entries import entry_bytes
from hloforge.runtime.native import caller
from hloforge.runtime.native.library import Library, MappingError
from hloforge.runtime.native.result_memory import maker
from hloforge.runtime.native.schedule_file import NAME, Bounded, Schedule, read
from hloforge.runtime.native.team import Framework
from hloforge.runtime.session.arrays import Codec

LIBRARY, CONSTANTS = "library.so", "constants.bin"
# Bytes of code, and of constants of a vmfb in memory, that are copied beside those of IREE. A file's are mapped.
_MOST_CODE, _MOST_CONSTANTS = 1 << 26, 1 << 29
# Bytes of frames that stay for the next calls: to get as many from the system takes up to 0.3 ms a megabyte.
_KEPT = 1 << 28
# The sizes of a result, where a call decides them.
_SIZE = np.dtype(np.int32)
# A result that has a smaller part of its memory is copied, so that the rest can be used again.
_LEAST_PART = 8
_SECOND = 10**9


@dataclass(frozen=True)
class NativeProgram:
    """What a vmfb says of its kernels."""

    library: Library
    constants: np.ndarray[Any, Any]
    schedule: Schedule


def native_program(source: str | PathLike[str] | bytes) -> NativeProgram | None:
    """The kernels of a vmfb that our code generator made; None of any other, and where they cannot be called."""
    if not caller.is_available():
        return None
    if not isinstance(source, bytes) and not Path(source).is_file():
        return None  # a pipe, which can be read once
    try:
        with zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as archive:
            sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
            if NAME not in sizes or sizes.get(LIBRARY, 0) > _MOST_CODE:
                return None
            schedule = read(archive.read(NAME))
            if schedule is None or LIBRARY not in sizes:
                return None
            if isinstance(source, bytes) and sizes.get(CONSTANTS, 0) > _MOST_CONSTANTS:
                return None
            constants = entry_bytes(source, CONSTANTS) if sizes.get(CONSTANTS) else aligned_bytes(0)
            library = Library(archive.read(LIBRARY))
    except (*DAMAGE, MappingError):
        return None
    if any(part.kernel >= len(library.kernels) for part in schedule.parts):
        return None
    return NativeProgram(library, constants, schedule)


class _Context(np.ndarray[Any, Any]):
    """A context that keeps alive what it refers to."""

    kept: Any = None


@dataclass(frozen=True)
class Handled:
    """A program that custom calls of XLA's run (``foreign.py``).

    Attributes:
        address: what they name it by.
        kept: must live as long as an executable may call it.
        byte_count: of the memory that it works in.
    """

    address: int
    kept: _Context
    byte_count: int


class NativeCalls:
    """Calls of a program, from any number of threads.

    Args:
        parameters: of the program, as ``fit`` takes them.
        results: as well.
        threads: that share what is worth it, the caller's among them.
        host: the table of the host, for a program that calls it.
        weights: bytes of the arrays that a file has, which stay where they are while the session lives.
    """

    def __init__(
        self,
        program: NativeProgram,
        parameters: Sequence[Codec],
        results: Sequence[Codec],
        threads: int,
        host: np.ndarray[Any, Any] | None = None,
        weights: Sequence[np.ndarray[Any, Any]] = (),
    ) -> None:
        self._program, self._host, self._weights = program, host, weights
        # No more than have something to do, because those that wait for it take their processors.
        self._threads = min(threads, max((part.threads for part in program.schedule.parts), default=1))
        self._count = len(parameters)
        self._bounded = program.schedule.bounded
        self._forms = [(codec.dimensions, codec.dtype) for codec in parameters]
        if self._bounded:
            pairs = zip(self._bounded, results, strict=True)
            self._forms += [(one.most, codec.dtype) for one, codec in pairs]
            self._forms += [((), _SIZE)] * (program.schedule.results - len(results))
        else:
            self._forms += [(codec.dimensions, codec.dtype) for codec in results]
        self._made = list(enumerate(maker(*form) for form in self._forms[self._count :]))
        self._inside = dict(program.schedule.aliases)
        # Frames that no call uses, by the framework of the call; a call has one of its own.
        self._free: dict[Framework | None, list[Any]] = {}
        self._timed: list[tuple[Any, np.ndarray[Any, Any]]] = []
        self._most = _KEPT // max(program.schedule.transient, 1)

    @staticmethod
    def fit(program: NativeProgram, parameters: Sequence[Codec], results: Sequence[Codec]) -> bool:
        """Whether a program's arrays cross as they are, and are as many as its kernels bind."""
        schedule = program.schedule
        returned = len(schedule.bounded) or schedule.results
        if (schedule.parameters, returned) != (len(parameters), len(results)):
            return False
        if not all(codec.is_in_place for codec in parameters):
            return False
        if not schedule.bounded:
            return all(codec.is_in_place for codec in results)
        return not schedule.aliases and all(codec.keeps_bits for codec in results)

    @property
    def is_bounded(self) -> bool:
        """Whether a call decides the sizes of results, so that it alone makes them."""
        return bool(self._bounded)

    @property
    def inside(self) -> Mapping[int, int]:
        """The parameters that results lie in, by the numbers of these. A call overwrites such arguments."""
        return self._inside

    @property
    def is_shared(self) -> bool:
        """Whether threads share some of its work."""
        return self._threads > 1

    def __call__(self, arguments: Sequence[Any]) -> list[np.ndarray[Any, Any]] | None:
        """The results; None if the arguments are anything but arrays of the parameters' element types and sizes."""
        if self._inside and len(arguments) != self._count:
            return None
        inside = self._inside
        results = [arguments[inside[n]] if n in inside else make() for n, make in self._made]
        if not self.write(arguments, results):
            return None
        return [_beginning(one, results, n) for n, one in enumerate(self._bounded)] if self._bounded else results

    def write(self, arguments: Sequence[Any], results: Sequence[Any], framework: Framework | None = None) -> bool:
        """Write the results into arrays of their element types and sizes; False as None of a call.

        A result that lies in a parameter is the argument.

        Args:
            framework: whose threads help, and whose tensors may stand in for arrays. The caller vouches for the element
                type, the sizes and the order in memory of each tensor.
        """
        free = self._free.get(framework)
        if free is None:
            free = self._free.setdefault(framework, [])
        try:
            run = free.pop()
        except IndexError:
            run = self._frame(framework=framework)
        fits: bool = run(*arguments, *results)
        if len(free) < self._most:
            free.append(run)
        return fits

    def write_timed(
        self, arguments: Sequence[Any], results: Sequence[np.ndarray[Any, Any]]
    ) -> list[tuple[str, int, int]] | None:
        """As ``write``, for a profiler: each dispatch with the times of its beginning and end (``time.time_ns``)."""
        program = self._program
        try:
            run, times = self._timed.pop()
        except IndexError:
            times = np.zeros((len(program.schedule.parts) + 1, caller.TIME_WORDS), np.int64)
            run = self._frame(times)
        times[:] = 0
        if not run(*arguments, *results):
            return None
        stamps = (times @ [_SECOND, 1]).tolist()
        self._timed.append((run, times))
        names = [program.library.names[part.kernel] for part in program.schedule.parts]
        # After a function of the host has failed no dispatch ran.
        return [(name, begin, end) for name, begin, end in zip(names, stamps, stamps[1:], strict=False) if end]

    def _frame(self, times: np.ndarray[Any, Any] | None = None, framework: Framework | None = None) -> Any:
        """A function of arguments and results, with memory of its own for one call at a time.

        Args:
            times: where calls are to write when each dispatch ends.
            framework: as of ``write``.
        """
        return caller.function(self._context(times), self._threads, framework)

    @property
    def can_be_handled(self) -> bool:
        """Whether custom calls of XLA's can run the program: it calls no host, decides no sizes, and its memory may be
        kept."""
        return self._host is None and not self._bounded and self._most > 0

    def handled(self) -> Handled:
        """The program for custom calls of XLA's. It takes the frame of a call that has ended."""
        try:
            context = self._free[None].pop().__self__
        except (KeyError, IndexError):
            context = self._context()
        return Handled(caller.handled(context, self._threads), context, self._program.schedule.transient)

    def _context(self, times: np.ndarray[Any, Any] | None = None) -> _Context:
        program, schedule = self._program, self._program.schedule
        transient = aligned_bytes(schedule.transient)
        known = {schedule.arrays: _address(transient), schedule.arrays + 1: _address(program.constants)}
        if self._host is not None:
            known[schedule.arrays + 2] = _address(self._host)
        known |= {number: _address(weight) for number, weight in enumerate(self._weights, schedule.arrays + 3)}
        tables = np.zeros(sum(len(part.bindings) for part in schedule.parts), np.int64)
        places, dispatches, first = [], [], 0
        for part in schedule.parts:
            for number, (buffer, offset) in enumerate(part.bindings, first):
                if buffer in known:
                    tables[number] = known[buffer] + offset
                else:
                    places.append((_address(tables) + 8 * number, buffer, offset))
            dispatches.append((program.library.kernels[part.kernel], _address(tables) + 8 * first, part.workgroups))
            first += len(part.bindings)
        sizes = [np.array(shape, np.int64) for shape, _ in self._forms]
        pairs = zip(self._forms, sizes, strict=True)
        forms = _words([(id(dtype), len(shape), _address(own), dtype.alignment - 1) for (shape, dtype), own in pairs])
        addresses = np.zeros(max(schedule.arrays, 1), np.int64)
        patches, parts = _words(places), _words(dispatches)
        # The states of a dispatch and of a workgroup.
        state = aligned_bytes(2 * caller.STATE_BYTES)
        state[:] = 0
        context = np.zeros(caller.WORDS, np.int64).view(_Context)
        context[caller.ARRAYS], context[caller.FORMS] = schedule.arrays, _address(forms)
        context[caller.ADDRESSES] = _address(addresses)
        context[caller.PATCHES], context[caller.PLACES] = len(places), _address(patches)
        context[caller.PARTS], context[caller.DISPATCHES] = len(dispatches), _address(parts)
        context[caller.STATE] = _address(state)
        state.view(np.int64)[caller.SHARE_AT // 8] = _address(context) + 8 * caller.SHARE
        context[caller.TIMES] = 0 if times is None else _address(times)
        context.kept = (
            times,
            program,
            self._host,
            self._weights,
            self._forms,
            transient,
            tables,
            sizes,
            forms,
            addresses,
            patches,
            parts,
            state,
        )
        return context


def _beginning(one: Bounded, results: Sequence[np.ndarray[Any, Any]], number: int) -> np.ndarray[Any, Any]:
    """What there is of a result."""
    whole = results[number]
    if one.sizes == one.most:
        return whole
    sizes = [size if size >= 0 else int(results[-1 - size]) for size in one.sizes]
    count = math.prod(sizes)
    found = whole.reshape(-1)[:count].reshape(sizes)
    return found.copy() if count * _LEAST_PART < whole.size else found


def _words(rows: Sequence[tuple[int, ...]]) -> np.ndarray[Any, Any]:
    return np.array(rows or [(0,)], np.int64)


def _address(array: np.ndarray[Any, Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
