"""Algorithms on batches of square matrices, each of which several workgroups work on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hloforge.pipelines.codegen.algorithms.scratch import InParts
from hloforge.pipelines.codegen.elements import memory as element_memory


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

    @property
    def _size(self) -> int:
        return element_memory.size(self.element)

    @cached_property
    def lanes(self) -> int:
        """Of a vector."""
        return self.vector_bytes // self._size
