"""What a program's dispatches bind, as a file of its vmfb: all that a call needs beside machine code and constants.

IREE's runtime reads the same from the module's bytecode and does not look at this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

NAME = "schedule.bin"
_VERSION = 3
# Version; parameters, results, bytes of the transient buffer, weights, aliases, dispatches.
_HEADER = 7
# Kernel, workgroups, shares, bindings.
_PART = 4


@dataclass(frozen=True)
class Part:
    """A dispatch.

    Attributes:
        kernel: its number in the library.
        workgroups: how many run, in any order.
        bindings: for each array the number of its buffer and its first byte there. Buffers are parameters, results, the
            transient and the constant one, the table of the host, and weights, in this order.
        shares: most workgroups that a step of a loop in it has done.
    """

    kernel: int
    workgroups: int
    bindings: tuple[tuple[int, int], ...]
    shares: int = 1

    @property
    def threads(self) -> int:
        """That find something to do."""
        return max(self.workgroups, self.shares)


@dataclass(frozen=True)
class Schedule:
    """The dispatches of a program, in order.

    Attributes:
        transient: bytes that they work in.
        weights: how many arrays they read that a file has.
        aliases: the parameters that results lie in, by the numbers of these.
    """

    parameters: int
    results: int
    transient: int
    parts: tuple[Part, ...]
    weights: int = 0
    aliases: tuple[tuple[int, int], ...] = ()

    @property
    def arrays(self) -> int:
        """Parameters and results; the transient buffer's number, and one less than the constant one's."""
        return self.parameters + self.results

    @property
    def calls_host(self) -> bool:
        """Whether some dispatch binds the table of the host."""
        return any(buffer == self.arrays + 2 for part in self.parts for buffer, _ in part.bindings)

    def to_bytes(self) -> bytes:
        numbers = [_VERSION, self.parameters, self.results, self.transient, self.weights, len(self.aliases)]
        numbers.append(len(self.parts))
        for alias in self.aliases:
            numbers += alias
        for part in self.parts:
            numbers += [part.kernel, part.workgroups, part.shares, len(part.bindings)]
            for binding in part.bindings:
                numbers += binding
        return np.array(numbers, "<i8").tobytes()


def read(data: bytes) -> Schedule | None:
    """What ``to_bytes`` wrote; None for anything else."""
    if len(data) % 8 or len(data) < 8 * _HEADER:
        return None
    numbers = np.frombuffer(data, "<i8").tolist()
    version, parameters, results, transient, weights, inside, count = numbers[:_HEADER]
    if version != _VERSION or min(parameters, results, transient, weights, inside, count) < 0:
        return None
    parts, place = [], _HEADER + 2 * inside
    pairs = numbers[_HEADER:place]
    if len(pairs) != 2 * inside or min(pairs, default=0) < 0:
        return None
    aliases = tuple(zip(pairs[::2], pairs[1::2], strict=True))
    if any(result >= results or parameter >= parameters for result, parameter in aliases):
        return None
    for _ in range(count):
        head = numbers[place : place + _PART]
        if len(head) < _PART or min(head) < 0:
            return None
        kernel, workgroups, shares, bound = head
        pairs = numbers[place + _PART : place + _PART + 2 * bound]
        place += _PART + 2 * bound
        if not _are_bindings(pairs, bound, parameters + results + 3 + weights):
            return None
        parts.append(Part(kernel, workgroups, tuple(zip(pairs[::2], pairs[1::2], strict=True)), shares))
    return Schedule(parameters, results, transient, tuple(parts), weights, aliases) if place == len(numbers) else None


def _are_bindings(pairs: Sequence[int], count: int, buffers: int) -> bool:
    if len(pairs) != 2 * count or min(pairs, default=0) < 0:
        return False
    return all(buffer < buffers for buffer in pairs[::2])
