"""What a program's dispatches bind, as a file of its vmfb: all that a call needs beside machine code and constants.

IREE's runtime reads the same from the module's bytecode and does not look at this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

NAME = "schedule.bin"
_VERSION = 4
# Version; parameters, results, bytes of the transient buffer, weights, aliases, bounded results, dispatches.
_HEADER = 8
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
class Bounded:
    """A result of which a call writes the beginning.

    Attributes:
        most: the sizes of the array that kernels write to.
        sizes: of what is there, one element after the other: -1 - n is the number of 32 bits in result n.
    """

    most: tuple[int, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Schedule:
    """The dispatches of a program, in order.

    Attributes:
        transient: bytes that they work in.
        weights: how many arrays they read that a file has.
        aliases: the parameters that results lie in, by the numbers of these.
        bounded: what a caller gets, the first results, where some have sizes that a call decides. The results after
            these are such sizes.
    """

    parameters: int
    results: int
    transient: int
    parts: tuple[Part, ...]
    weights: int = 0
    aliases: tuple[tuple[int, int], ...] = ()
    bounded: tuple[Bounded, ...] = ()

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
        numbers += [len(self.bounded), len(self.parts)]
        for alias in self.aliases:
            numbers += alias
        for one in self.bounded:
            numbers += [len(one.most), *one.most, *one.sizes]
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
    version, parameters, results, transient, weights, inside, returned, count = numbers[:_HEADER]
    if version != _VERSION or min(parameters, results, transient, weights, inside, returned, count) < 0:
        return None
    parts, place = [], _HEADER + 2 * inside
    pairs = numbers[_HEADER:place]
    if len(pairs) != 2 * inside or min(pairs, default=0) < 0:
        return None
    aliases = tuple(zip(pairs[::2], pairs[1::2], strict=True))
    if any(result >= results or parameter >= parameters for result, parameter in aliases):
        return None
    bounded = []
    for _ in range(returned):
        rank = numbers[place] if place < len(numbers) else -1
        dims = numbers[place + 1 : place + 1 + 2 * rank] if rank >= 0 else []
        place += 1 + len(dims)
        own = Bounded(tuple(dims[:rank]), tuple(dims[rank:]))
        if len(dims) != 2 * rank or not _is_bounded(own, returned, results):
            return None
        bounded.append(own)
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
    if place != len(numbers):
        return None
    return Schedule(parameters, results, transient, tuple(parts), weights, aliases, tuple(bounded))


def _is_bounded(one: Bounded, returned: int, results: int) -> bool:
    pairs = zip(one.most, one.sizes, strict=True)
    return all(0 <= size == most or (most >= 0 > size and returned <= -1 - size < results) for most, size in pairs)


def _are_bindings(pairs: Sequence[int], count: int, buffers: int) -> bool:
    if len(pairs) != 2 * count or min(pairs, default=0) < 0:
        return False
    return all(buffer < buffers for buffer in pairs[::2])
