"""Plans of the memory that an algorithm works in: how much it needs, and where each part begins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from hloforge.pipelines.codegen.lang.values import I8, Value

# A line of the caches; no two parts share one.
_ALIGNMENT = 64


class Scratch:
    """Parts of memory one after the other.

    Attributes:
        size: of all of them so far, in bytes.
    """

    def __init__(self) -> None:
        self.size = 0

    def take(self, size: int) -> int:
        """Where a part of so many bytes begins."""
        start = self.size
        self.size += -(-size // _ALIGNMENT) * _ALIGNMENT
        return start


def part(memory: Value, start: int) -> Value:
    """A pointer to a part."""
    return memory.function.offset(memory, I8, start)


class InParts(ABC):
    """What works in parts of memory."""

    @property
    @abstractmethod
    def _parts(self) -> Sequence[int]:
        """The sizes of the parts, in bytes."""

    @property
    def scratch(self) -> int:
        """Bytes that a call works in."""
        plan = Scratch()
        for size in self._parts:
            plan.take(size)
        return plan.size

    def _pointers(self, memory: Value) -> list[Value]:
        """Where each part begins in ``scratch`` bytes."""
        plan = Scratch()
        return [part(memory, plan.take(size)) for size in self._parts]
