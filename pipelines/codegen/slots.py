"""Memory of a program's arrays: buffers of the caller, one buffer that is gone after the call, and the stack."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from hloforge.pipelines.codegen.kernel_program import ALIGNMENT


class Where(Enum):
    """What an array is a part of."""

    PARAMETER = auto()
    RESULT = auto()
    TRANSIENT = auto()
    CONSTANT = auto()
    STACK = auto()
    HOST = auto()
    WEIGHT = auto()


@dataclass(eq=False)
class Slot:
    """Memory of an array. Two slots share none.

    Attributes:
        number: of the parameter, result or weight.
        offset: in the transient or constant buffer, in bytes.
        size: in bytes.
        element: the element type.
        is_given: whether it is a parameter's that the caller gives up, where a result may lie.
        whole: the slot that it is a part of, with which alone it shares memory.
    """

    where: Where
    size: int
    element: str
    number: int = 0
    offset: int = 0
    is_given: bool = False
    whole: Slot | None = None

    @property
    def is_writable(self) -> bool:
        return self.is_given or self.where not in (Where.PARAMETER, Where.CONSTANT, Where.HOST, Where.WEIGHT)

    @property
    def is_constant(self) -> bool:
        """Whether nobody writes it while a program runs."""
        return not self.is_writable and self.where is not Where.HOST


@dataclass
class Arena:
    """The buffer that is gone after the call.

    Attributes:
        size: in bytes, so far.
    """

    size: int = 0
    _free: list[tuple[int, int]] = field(default_factory=list)

    def take(self, size: int) -> int:
        """The offset of as many bytes, the smallest gap that has them if there is one."""
        size = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        fitting = [gap for gap in self._free if gap[1] >= size]
        if fitting:
            gap = min(fitting, key=lambda gap: gap[1])
            self._free.remove(gap)
            if gap[1] > size:
                self._free.append((gap[0] + size, gap[1] - size))
            return gap[0]
        offset = self.size
        self.size += size
        return offset

    def give_back(self, offset: int, size: int) -> None:
        """Let others have it."""
        size = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        for start, length in list(self._free):
            if start + length == offset or offset + size == start:
                self._free.remove((start, length))
                offset, size = min(offset, start), size + length
        self._free.append((offset, size))
