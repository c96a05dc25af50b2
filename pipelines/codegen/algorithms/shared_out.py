"""Algorithms on batches of square matrices, each of which several workgroups work on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from hloforge.pipelines.codegen.algorithms.arrays import Elements
from hloforge.pipelines.codegen.algorithms.scratch import InParts
from hloforge.pipelines.codegen.elements import memory as element_memory
from hloforge.pipelines.codegen.lang.functions import Array
from hloforge.pipelines.codegen.lang.values import I64, Number, Value
from hloforge.pipelines.codegen.nest_loops import Share

Memory = TypeVar("Memory")
# Writes what is shared out: of a workgroup's share, or of all for None.
Handed = Callable[[Callable[[Share | None], None]], None]


def alone(write: Callable[[Share | None], None]) -> None:
    """Writes all of what could be shared out."""
    write(None)


def own_part(share: Share | None, first: Value, last: Number, unit: int) -> tuple[Value, Number]:
    """A workgroup's part of some columns, of which all parts have a multiple of a unit."""
    if share is None:
        return first, last
    count = ((first * -1) + last).udiv(unit)
    begin, end = ((count * number).udiv(share.count) for number in (share.number, share.number + 1))
    return first + begin * unit, first + end * unit


@dataclass(frozen=True)
class SharedOut(InParts):
    """Such an algorithm.

    Attributes:
        batch: how many matrices.
        n: rows of a matrix.
        element: f32 or f64.
        shares: workgroups that a matrix is shared out to.
        vector_bytes: of the processor's registers.
    """

    batch: int
    n: int
    element: str
    shares: int = 1
    vector_bytes: int = 64

    def _laid_out(self, kind: Callable[..., Memory], memory: Value) -> Memory:
        """The parts of the memory by their names: arrays of elements, and last numbers that workgroups read."""
        *pointers, state = self._pointers(memory)
        return kind(*(Elements(pointer, self.element) for pointer in pointers), Array(state, I64))

    @property
    def _size(self) -> int:
        return element_memory.size(self.element)

    @property
    def _rows(self) -> int:
        """Rows that are computed together: their numbers are in registers."""
        return 4 if self.vector_bytes == 64 else 2

    @cached_property
    def lanes(self) -> int:
        """Of a vector."""
        return self.vector_bytes // self._size
