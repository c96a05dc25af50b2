"""Plans of the memory that an algorithm works in: how much it needs, and where each part begins."""

from __future__ import annotations

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
